/* certificate.c - as small a certificate as OpenSSL takes. */
#include "certificate.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

static char folder[] = "/tmp/pgseek-fuzz-XXXXXX";
static int is_made;

static FILE *file(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    if (!out || chmod(path, 0600) < 0)
        abort();
    return out;
}

static void clean_up(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        perror(folder);
}

static X509 *sign(EVP_PKEY *key)
{
    X509 *certificate = X509_new();
    X509_NAME *name = certificate ? X509_get_subject_name(certificate) : NULL;
    if (!name || !X509_set_version(certificate, 2) || !ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) ||
        !X509_gmtime_adj(X509_getm_notBefore(certificate), -86400) ||
        !X509_gmtime_adj(X509_getm_notAfter(certificate), 10L * 86400) ||
        !X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0) ||
        !X509_set_issuer_name(certificate, name) || !X509_set_pubkey(certificate, key) ||
        !X509_sign(certificate, key, EVP_sha256()))
        abort();
    return certificate;
}

const char *certificate_folder(void)
{
    if (is_made)
        return folder;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    if (!key || !mkdtemp(folder))
        abort();
    X509 *certificate = sign(key);
    FILE *to_certificate = file("fuzz.crt");
    FILE *to_key = file("fuzz.key");
    if (!PEM_write_X509(to_certificate, certificate) || !PEM_write_PrivateKey(to_key, key, NULL, NULL, 0, NULL, NULL))
        abort();
    fclose(to_certificate);
    fclose(to_key);
    X509_free(certificate);
    EVP_PKEY_free(key);
    atexit(clean_up);
    is_made = 1;
    return folder;
}
