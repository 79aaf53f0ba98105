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
};

/* ALPN's list with the one protocol that we speak. */
extern const uint8_t tls_alpn[11];

/* The way of connections to their bytes. NULL when out of memory. */
BIO_METHOD *tls_method_new(void) MUST_USE;

/* OpenSSL's questions. A refusal is explained to the connection that it is about. */
int tls_on_verify(int is_good, X509_STORE_CTX *store);
int tls_on_alpn(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_len, const unsigned char *offer,
                unsigned int offer_len, void *unused);

/* ---- certificates: tls_certificate.c ---- */

/* The subject as RFC 2253 writes it, in printable ASCII. False when it was cut. */
bool tls_subject(const X509 *certificate, char *out, size_t room);
/* Fills peer_cn and peer_dn. */
void tls_name(const X509 *certificate, struct channel *channel);
/* tls-server-end-point (RFC 5929): the hash of the certificate, by the algorithm of its signature. Returns its length,
 * 0 when there is none. */
size_t tls_binding(X509 *certificate, uint8_t hash[CHANNEL_BINDING_MAX]) MUST_USE;
/* "has expired on ...", "is not valid before ...", or "" when it is valid today. */
#define TLS_VALIDITY 64
void tls_validity(const X509 *certificate, char why[TLS_VALIDITY]);

#endif
