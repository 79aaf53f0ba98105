/* tls_revocation.c - lists of revoked certificates (CRLs): read, compared with their authorities, told of. */
#include "tls_openssl.h"

#include <time.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "../admin/log.h"

/* ---- reading ---- */

/* As PostgreSQL and libpq: each certificate of a chain is looked up in a list of its issuer, the authority's own
 * included. Certificates in the file are passed over; theirs would be trusted. */
bool tls_lists_read(X509_STORE *store, BIO *bio, const char **why)
{
    size_t count = 0;
    bool ok = true;
    X509_CRL *list;
    while (ok && (list = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL)) != NULL) {
        ok = X509_STORE_add_crl(store, list) == 1;
        X509_CRL_free(list);
        count++;
    }
    if (!ok)
        *why = "cannot be used: out of memory";
    else if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        *why = "holds a revocation list that is damaged";
    else if (count == 0)
        *why = "holds no revocation list in PEM (openssl crl -inform DER makes it from what authorities publish)";
    else
        *why = NULL;
    ERR_clear_error();
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return !*why;
}

/* ---- what is in a store ---- */

/* A walk over the certificates and lists of a store, while nobody else uses it: look-ups sort it. */
struct walk {
    STACK_OF(X509_OBJECT) * objects;
    int next;
};

static struct walk walk_over(X509_STORE *store)
{
    return (struct walk){.objects = X509_STORE_get0_objects(store)};
}

/* The next list, NULL at the end. */
static X509_CRL *walk_to_list(struct walk *walk)
{
    X509_CRL *list = NULL;
    while (!list && walk->next < sk_X509_OBJECT_num(walk->objects))
        list = X509_OBJECT_get0_X509_CRL(sk_X509_OBJECT_value(walk->objects, walk->next++));
    return list;
}

/* The next authority, NULL at the end. */
static X509 *walk_to_authority(struct walk *walk)
{
    X509 *authority = NULL;
    while (!authority && walk->next < sk_X509_OBJECT_num(walk->objects))
        authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(walk->objects, walk->next++));
    return authority;
}

/* OpenSSL takes the newest list of an issuer. */
static bool tls_list_is_replaced(X509_STORE *store, const X509_CRL *list)
{
    struct walk walk = walk_over(store);
    for (const X509_CRL *other = walk_to_list(&walk); other; other = walk_to_list(&walk))
        if (X509_CRL_cmp(other, list) == 0 &&
            ASN1_TIME_compare(X509_CRL_get0_lastUpdate(other), X509_CRL_get0_lastUpdate(list)) > 0)
            return true;
    return false;
}

/* One of that name may be another's: it must have signed it. */
static bool tls_authority_has_list(X509_STORE *store, X509 *authority)
{
    struct walk walk = walk_over(store);
    bool has = false;
    for (X509_CRL *list = walk_to_list(&walk); list && !has; list = walk_to_list(&walk))
        has = X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_subject_name(authority)) == 0 &&
              X509_CRL_verify(list, X509_get0_pubkey(authority)) == 1;
    ERR_clear_error();
    return has;
}

bool tls_lists_serve(X509_STORE *store)
{
    struct walk walk = walk_over(store);
    bool serve = false;
    for (X509 *authority = walk_to_authority(&walk); authority && !serve; authority = walk_to_authority(&walk))
        serve = tls_authority_has_list(store, authority);
    return serve;
}

static int64_t tls_seconds(const ASN1_TIME *time)
{
    struct tm broken_down;
    return ASN1_TIME_to_tm(time, &broken_down) == 1 ? (int64_t)timegm(&broken_down) : INT64_MIN;
}

int64_t tls_lists_end(X509_STORE *store)
{
    struct walk walk = walk_over(store);
    int64_t end = INT64_MAX;
    for (const X509_CRL *list = walk_to_list(&walk); list; list = walk_to_list(&walk)) {
        const ASN1_TIME *until = X509_CRL_get0_nextUpdate(list);
        if (until && !tls_list_is_replaced(store, list) && tls_seconds(until) < end)
            end = tls_seconds(until);
    }
    return end;
}

/* ---- what an operator should know ---- */

static void tls_announce_list(X509_CRL *list, const char *file)
{
    char why[TLS_VALIDITY];
    char issuer[160];
    char due[TLS_TIME] = "never";
    const ASN1_TIME *until = X509_CRL_get0_nextUpdate(list);
    STACK_OF(X509_REVOKED) *revoked = X509_CRL_get_REVOKED(list);
    tls_name_text(X509_CRL_get_issuer(list), issuer, sizeof issuer);
    tls_validity(X509_CRL_get0_lastUpdate(list), until, why);
    if (until)
        tls_time_text(until, due);
    if (why[0])
        log_at(LOG_WARNING, "%s: the revocation list of %s %s: all certificates of this authority are refused", file,
               issuer, why);
    else
        log_at(LOG_INFO, "%s: certificates that %s has revoked: %d; its next list is due: %s", file, issuer,
               revoked ? sk_X509_REVOKED_num(revoked) : 0, due);
}

static void tls_announce_missing(const X509 *authority, const char *file)
{
    char subject[160];
    tls_name_text(X509_get_subject_name(authority), subject, sizeof subject);
    log_at(LOG_WARNING, "%s: there is no revocation list of %s: all certificates of this authority are refused", file,
           subject);
}

void tls_context_announce(const struct tls_context *context, const char *file)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context->ctx);
    struct walk walk = walk_over(store);
    for (X509_CRL *list = walk_to_list(&walk); list; list = walk_to_list(&walk))
        if (!tls_list_is_replaced(store, list))
            tls_announce_list(list, file);
    walk = walk_over(store);
    for (X509 *authority = walk_to_authority(&walk); authority; authority = walk_to_authority(&walk))
        if (!tls_authority_has_list(store, authority))
            tls_announce_missing(authority, file);
}
