/* tls_openssl.h - what the files of TLS share: OpenSSL's objects behind a context, and what it asks us in a handshake.
 *
 * Nobody but tls.c and the tls_ files includes it: to all others TLS is a transformation. */
#ifndef TLS_OPENSSL_H
#define TLS_OPENSSL_H

#include <stdatomic.h>

#include <openssl/ssl.h>

#include "tls.h"
#include "tls_context.h"

struct tls_context {
    _Atomic int refs;
    SSL_CTX *ctx;
    BIO_METHOD *method; /* how connections read and write: see tls.c */
    bool is_server;     /* the role of ours that it is for */
    bool verifies_names;
    int64_t lists_end; /* when its first revocation list runs out, in seconds of time() */
};

/* ALPN's list with the one protocol that we speak. */
extern const uint8_t tls_alpn[11];

/* The way of connections to their bytes. NULL when out of memory. */
BIO_METHOD *tls_method_new(void) MUST_USE;

/* OpenSSL's questions. A refusal is explained to the connection that it is about; the context is tls_on_ticket()'s
 * argument. */
int tls_on_verify(int is_good, X509_STORE_CTX *store);
int tls_on_alpn(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_len, const unsigned char *offer,
                unsigned int offer_len, void *unused);
SSL_TICKET_RETURN tls_on_ticket(SSL *ssl, SSL_SESSION *session, const unsigned char *key, size_t key_len,
                                SSL_TICKET_STATUS status, void *context);

/* ---- certificates: tls_certificate.c ---- */

/* A name as RFC 2253 writes it, in printable ASCII. False when it was cut. */
bool tls_name_text(const X509_NAME *name, char *out, size_t room);
/* Fills peer_cn and peer_dn. */
void tls_name(const X509 *certificate, struct channel *channel);
/* tls-server-end-point (RFC 5929): the hash of the certificate, by the algorithm of its signature. Returns its length,
 * 0 when there is none. */
size_t tls_binding(X509 *certificate, uint8_t hash[CHANNEL_BINDING_MAX]) MUST_USE;
#define TLS_TIME 32
void tls_time_text(const ASN1_TIME *time, char out[TLS_TIME]);
/* "has expired on ...", "is not valid before ...", or "" when it is valid today. `until` may be NULL: for ever. */
#define TLS_VALIDITY 64
void tls_validity(const ASN1_TIME *from, const ASN1_TIME *until, char why[TLS_VALIDITY]);

/* ---- lists of revoked certificates: tls_revocation.c ---- */

/* Adds all lists of a file to the store, in which certificates are looked up from now on. False with the end of a
 * sentence in *why that begins with the file's name. */
bool tls_lists_read(X509_STORE *store, BIO *bio, const char **why) MUST_USE;
/* Of a store that nobody uses yet: whether an authority in it has signed a list in it, without which no certificate
 * can be good. */
bool tls_lists_serve(X509_STORE *store);
/* And the second of time() from which on one of its lists is out of date; INT64_MAX: never. */
int64_t tls_lists_end(X509_STORE *store);

#endif
