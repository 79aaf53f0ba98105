/* channel.h - what a TLS handshake has established on one leg, for whoever decides who is at its other end.
 *
 * It is a value that its maker fills and others read; it must not know the TLS library or sessions. */
#ifndef CHANNEL_H
#define CHANNEL_H

#include "bytes.h"

/* RFC 5929: a certificate's hash is at most SHA-512's. */
#define CHANNEL_BINDING_MAX 64u
#define CHANNEL_NAME_MAX 256u

struct channel {
    char version[16];                     /* "TLSv1.3" */
    char cipher[48];                      /* "TLS_AES_256_GCM_SHA384" */
    bool is_verified;                     /* the peer's certificate was given, and verified as configured */
    char peer_cn[CHANNEL_NAME_MAX];       /* of a verified certificate: its one common name; "" when there is none */
    char peer_dn[CHANNEL_NAME_MAX * 2];   /* its whole subject as RFC 2253 writes it; "" when it does not fit */
    uint8_t binding[CHANNEL_BINDING_MAX]; /* tls-server-end-point: the hash of the server's certificate on this leg */
    size_t binding_len;                   /* 0: the certificate's signature has no hash, so nothing can be bound */
};

#endif
