/* tls.h - one connection's TLS, as a transformation: ciphertext in, plaintext out, and back.
 *
 * It knows OpenSSL and must not know sockets, loops, messages or settings: whoever owns the socket feeds it what came
 * and sends what it made. So a handshake runs in a test at every split point, and a fuzzer needs no network. */
#ifndef TLS_H
#define TLS_H

#include <sys/uio.h>

#include "../protocol/bytes.h"
#include "../protocol/channel.h"

/* A read needs room for the ciphertext it is given and for one record begun before. */
#define TLS_RECORD_MAX ((size_t)16384 + 2048)

struct tls;
struct tls_context; /* tls_context.h */

enum tls_state {
    TLS_HANDSHAKE, /* more is needed from the peer */
    TLS_OPEN,
    TLS_ENDED, /* the peer has said close_notify: it sends no more */
    TLS_FAILED /* tls_why() says why; an alert may be waiting in tls_output() */
};

/* `is_direct`: TLS began without SSLRequest, so ALPN must have chosen "postgresql". NULL when out of memory. Both keep
 * a reference to the context. */
struct tls *tls_accept(struct tls_context *context, bool is_direct) MUST_USE;
/* `host`: a name (sent as SNI) or an address; where the context verifies names it is what the certificate must be for.
 * The ClientHello waits in tls_output(). */
struct tls *tls_connect(struct tls_context *context, const char *host, bool is_direct) MUST_USE;
void tls_free(struct tls *tls);

enum tls_state tls_state(const struct tls *tls);
/* The cause of TLS_FAILED, for the log: never empty then, one line, no secrets. */
const char *tls_why(const struct tls *tls);

/* Takes ciphertext as it came, all of it, and returns how many bytes of plaintext were written to `plain`, which has
 * room for cipher.len + TLS_RECORD_MAX. The handshake goes on by itself, and may end in the same call that brings the
 * first plaintext. Nothing decrypted stays inside. Look at tls_state() and tls_output() afterwards. */
size_t tls_read(struct tls *tls, struct span cipher, uint8_t *plain, size_t room) MUST_USE;

/* Encrypts all of the pieces, appending to `cipher`; small pieces share a record. A peer that has ended may still be
 * answered. False when out of memory (TLS_FAILED then), before TLS_OPEN, and after tls_finish(). */
bool tls_write(struct tls *tls, const struct iovec *pieces, size_t npieces, struct buf *cipher) MUST_USE;

/* Says close_notify, once; it waits in tls_output(). */
void tls_finish(struct tls *tls);

/* What TLS itself has to say: handshake, alerts, key updates. The owner sends it in front of anything else, then
 * buf_fini()s it. */
struct buf *tls_output(struct tls *tls);

/* What the handshake has established. Only when it is over. */
void tls_describe(const struct tls *tls, struct channel *channel);

#endif
