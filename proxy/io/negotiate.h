/* negotiate.h - how TLS begins on a new connection to a server: SSLRequest and its one letter, then the handshake.
 *
 * It knows a descriptor that does not block and says what it waits for; it must not know loops, time or PostgreSQL's
 * own messages. */
#ifndef NEGOTIATE_H
#define NEGOTIATE_H

#include "../protocol/bytes.h"

struct tls;
struct tls_context;

enum negotiate_result {
    NEGOTIATE_READ,     /* call again when bytes are there ... */
    NEGOTIATE_WRITE,    /* ... or when some can be sent */
    NEGOTIATE_SECURE,   /* TLS is on: take it */
    NEGOTIATE_DECLINED, /* the server has no TLS, and the connection goes on in clear text */
    NEGOTIATE_FAILED    /* negotiation.why says why */
};

struct negotiation {
    struct tls_context *context;
    const char *host; /* what the certificate must be for */
    struct tls *tls;  /* once the server has agreed */
    struct buf unsent;
    int fd;
    char why[320];
};

/* `is_direct`: without SSLRequest. The context and the host must live until negotiate_end(). */
void negotiate_start(struct negotiation *negotiation, int fd, struct tls_context *context, const char *host,
                     bool is_direct);
enum negotiate_result negotiate_step(struct negotiation *negotiation) MUST_USE;
/* The caller's from now on. */
struct tls *negotiate_take(struct negotiation *negotiation) MUST_USE;
/* Frees; the descriptor stays open. To be called once it is over, at any time, and harmless on a zeroed one. */
void negotiate_end(struct negotiation *negotiation);

#endif
