/* tls_certificate.c - certificates as texts and hashes: subject, common name, validity, channel binding. */
#include "tls_openssl.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/x509.h>

bool tls_name_text(const X509_NAME *name, char *out, size_t room)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    long len = -1;
    /* RFC 2253 escapes what is not printable ASCII. */
    if (bio && X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253) >= 0)
        len = BIO_get_mem_data(bio, &text);
    snprintf(out, room, "%.*s", len > 0 ? (int)len : 0, len > 0 ? text : "");
    BIO_free(bio);
    return len >= 0 && (size_t)len < room;
}

/* Only one that everybody reads alike: the only one, and without a NUL inside. */
static void tls_common_name(const X509 *certificate, char out[CHANNEL_NAME_MAX])
{
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    uint8_t *text = NULL;
    if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
        return;
    int len = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (len > 0 && (size_t)len < CHANNEL_NAME_MAX && memchr(text, '\0', (size_t)len) == NULL)
        snprintf(out, CHANNEL_NAME_MAX, "%.*s", len, (const char *)text);
    OPENSSL_free(text);
}

void tls_name(const X509 *certificate, struct channel *channel)
{
    tls_common_name(certificate, channel->peer_cn);
    if (!tls_name_text(X509_get_subject_name(certificate), channel->peer_dn, sizeof channel->peer_dn))
        channel->peer_dn[0] = '\0';
    ERR_clear_error();
}

size_t tls_binding(X509 *certificate, uint8_t hash[CHANNEL_BINDING_MAX])
{
    int digest = NID_undef;
    unsigned int len = 0;
    _Static_assert(CHANNEL_BINDING_MAX >= EVP_MAX_MD_SIZE, "a hash fits");
    if (X509_get_signature_info(certificate, &digest, NULL, NULL, NULL) != 1 || digest == NID_undef)
        return 0;
    if (digest == NID_md5 || digest == NID_sha1)
        digest = NID_sha256; /* RFC 5929, 4.1 */
    const EVP_MD *md = EVP_get_digestbynid(digest);
    bool ok = md && X509_digest(certificate, md, hash, &len) == 1;
    ERR_clear_error();
    return ok ? len : 0;
}

void tls_time_text(const ASN1_TIME *time, char out[TLS_TIME])
{
    struct tm broken_down;
    if (ASN1_TIME_to_tm(time, &broken_down) != 1 || strftime(out, TLS_TIME, "%Y-%m-%d %H:%M:%S UTC", &broken_down) == 0)
        snprintf(out, TLS_TIME, "a date that is none");
}

void tls_validity(const ASN1_TIME *from, const ASN1_TIME *until, char why[TLS_VALIDITY])
{
    char date[TLS_TIME];
    why[0] = '\0';
    if (until && X509_cmp_current_time(until) <= 0) {
        tls_time_text(until, date);
        snprintf(why, TLS_VALIDITY, "has expired on %s", date);
    } else if (X509_cmp_current_time(from) >= 0) {
        tls_time_text(from, date);
        snprintf(why, TLS_VALIDITY, "is not valid before %s", date);
    }
    ERR_clear_error();
}
