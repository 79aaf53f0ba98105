/* certificate.h - a self-signed certificate for "localhost" and its key, in files of a folder of the fuzzer's own. */
#ifndef CERTIFICATE_H
#define CERTIFICATE_H

/* The folder; made with fuzz.crt and fuzz.key in it at the first call, and removed when the process ends. */
const char *certificate_folder(void);

#endif
