/* tls_context.h - what many connections share: certificate, key, authorities, revocation lists, versions, tickets.
 *
 * It reads files and settings and must not know connections. A context is immutable once made and may be used by all
 * threads. It counts references: connections keep the one that they were made from, so that a reload can replace it. */
#ifndef TLS_CONTEXT_H
#define TLS_CONTEXT_H

#include <stdio.h>

#include "../admin/conf.h"

struct tls_context;

/* The client leg: our certificate and key, and the authorities that clients' certificates are verified against where
 * client_tls_sslmode asks for that. *context is NULL for `disable`. False after writing "file:line: sentence" lines to
 * `complaints`, one for each fault: a file that is missing or cannot be read, a key that does not match or that others
 * can read, an authority file without a certificate, revocation lists of nobody in it, ciphers that nobody knows, a
 * certificate that has expired (which is a fault, since no client would take it). */
bool tls_context_for_clients(const struct conf *conf, struct tls_context **context, FILE *complaints) MUST_USE;
/* One line of [databases]. *context is NULL when none of its hosts is to be reached with TLS. */
bool tls_context_for_server(const struct conf *conf, const struct conf_database *database, struct tls_context **context,
                            FILE *complaints) MUST_USE;
/* Logs what an operator should know of the revocation lists that it was made with, of which `file` is the name: until
 * when each is good, and whose certificates are refused because there is none that is. A list that is out of date is no
 * fault of the configuration: it came to be so by itself, and what is newer must not be kept out by it. To be called
 * before connections use the context. */
void tls_context_announce(const struct tls_context *context, const char *file);
/* Whether one context would serve both lines. */
bool tls_context_is_alike(const struct conf *conf, const struct conf_database *one, const struct conf_database *other);
/* Counted: connections keep theirs. NULL is nobody's and may be given to both. */
struct tls_context *tls_context_ref(struct tls_context *context);
void tls_context_free(struct tls_context *context);

#endif
