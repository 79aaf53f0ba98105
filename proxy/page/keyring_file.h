/* keyring_file.h - the key file: one key a line, its permissions, and its replacement in one step.
 *
 * It knows the file's text and must not know what the keys are used for. */
#ifndef KEYRING_FILE_H
#define KEYRING_FILE_H

#include "keyring.h"

/* `pgseek-key v1 <8 hexadecimal digits> <43 characters base64url>` */
struct keyring_line {
    uint8_t id[KEYRING_ID];
    uint8_t secret[KEYRING_SECRET];
};

bool keyring_line_random(struct keyring_line *line) MUST_USE;

/* Reads all keys; at least one is there when it succeeds. False with *error. The caller wipes `line`. */
bool keyring_file_read(const char *path, struct keyring_line line[KEYRING_MAX_KEYS], size_t *count,
                       struct pgseek_error *error) MUST_USE;

/* Writes the sentence of a failure; `error` may be NULL. */
void keyring_fault(struct pgseek_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
