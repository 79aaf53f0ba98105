/* negotiate.c - SSLRequest, the letter, the handshake.
 *
 *     SSLRequest ──▶ one byte ──S──▶ handshake ──▶ secure
 *     direct ───────────────────────▲     │
 *                        └──N──▶ declined └──▶ failed
 *
 * Of the answer exactly one byte is read. What somebody has put behind it stays in the kernel and can only be taken for
 * ciphertext, so it breaks the handshake and is never believed (CVE-2021-23222). */
#include "negotiate.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "tls.h"

#define NEGOTIATE_CIPHER_BYTES ((size_t)16 * 1024)
#define NEGOTIATE_SSL_REQUEST 80877103u

static enum negotiate_result negotiate_fail(struct negotiation *negotiation, const char *why)
{
    snprintf(negotiation->why, sizeof negotiation->why, "%s", why);
    return NEGOTIATE_FAILED;
}

static bool negotiate_connect(struct negotiation *negotiation, bool is_direct)
{
    negotiation->tls = tls_connect(negotiation->context, negotiation->host, is_direct);
    return negotiation->tls != NULL;
}

void negotiate_start(struct negotiation *negotiation, int fd, struct tls_context *context, const char *host,
                     bool is_direct)
{
    *negotiation = (struct negotiation){.fd = fd, .context = context, .host = host};
    if (!is_direct) {
        buf_put_u32(&negotiation->unsent, 8);
        buf_put_u32(&negotiation->unsent, NEGOTIATE_SSL_REQUEST);
    } else if (!negotiate_connect(negotiation, true)) {
        negotiation->unsent.failed = true;
    }
}

struct tls *negotiate_take(struct negotiation *negotiation)
{
    struct tls *tls = negotiation->tls;
    negotiation->tls = NULL;
    return tls;
}

void negotiate_end(struct negotiation *negotiation)
{
    tls_free(negotiation->tls);
    negotiation->tls = NULL;
    buf_fini(&negotiation->unsent);
}

/* ---- bytes ---- */

/* Sends what waits, TLS's own words behind it. 0 or a negative errno; what was refused stays. */
static int negotiate_flush(struct negotiation *negotiation)
{
    struct buf *unsent = &negotiation->unsent;
    struct buf *output = negotiation->tls ? tls_output(negotiation->tls) : NULL;
    if (output) {
        buf_put_span(unsent, buf_span(output));
        unsent->failed |= output->failed;
        buf_fini(output);
    }
    if (unsent->failed)
        return -ENOMEM;
    while (unsent->len > 0) {
        ssize_t sent = send(negotiation->fd, unsent->ptr, unsent->len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN ? 0 : -errno;
        buf_consume(unsent, (size_t)sent);
    }
    return 0;
}

/* The number of bytes, 0 when none are there, or a negative errno; the end is -ECONNRESET. */
static ssize_t negotiate_recv(const struct negotiation *negotiation, uint8_t *bytes, size_t len)
{
    ssize_t got;
    do
        got = recv(negotiation->fd, bytes, len, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got > 0)
        return got;
    return got == 0 ? -ECONNRESET : errno == EAGAIN ? 0 : -errno;
}

static enum negotiate_result negotiate_lost(struct negotiation *negotiation, int error)
{
    if (error == ECONNRESET)
        return negotiate_fail(negotiation, negotiation->tls ? "it closed the connection in the TLS handshake"
                                                            : "it closed the connection when it was asked for TLS");
    return negotiate_fail(negotiation, error == ENOMEM ? "out of memory" : strerror(error));
}

/* ---- the letter ---- */

static enum negotiate_result negotiate_hear_answer(struct negotiation *negotiation)
{
    uint8_t letter;
    ssize_t got = negotiate_recv(negotiation, &letter, 1);
    if (got < 0)
        return negotiate_lost(negotiation, (int)-got);
    if (got == 0)
        return NEGOTIATE_READ;
    switch (letter) {
    case 'S':
        return negotiate_connect(negotiation, false) ? NEGOTIATE_WRITE : negotiate_fail(negotiation, "out of memory");
    case 'N': return NEGOTIATE_DECLINED;
    case 'E': /* nobody knows yet who says that: its words are not for anybody */
        return negotiate_fail(negotiation, "it answered the request for TLS with an error");
    default: return negotiate_fail(negotiation, "it answered the request for TLS with neither S nor N");
    }
}

/* ---- the handshake ---- */

static enum negotiate_result negotiate_shake(struct negotiation *negotiation)
{
    uint8_t cipher[NEGOTIATE_CIPHER_BYTES];
    uint8_t plain[NEGOTIATE_CIPHER_BYTES + TLS_RECORD_MAX];
    ssize_t got = negotiate_recv(negotiation, cipher, sizeof cipher);
    if (got < 0)
        return negotiate_lost(negotiation, (int)-got);
    if (got == 0)
        return NEGOTIATE_READ;
    size_t said = tls_read(negotiation->tls, span_of(cipher, (size_t)got), plain, sizeof plain);
    if (said > 0)
        return negotiate_fail(negotiation, "it spoke before it was asked anything");
    return NEGOTIATE_WRITE;
}

/* What the handshake has come to, once all that we had to say is sent. */
static enum negotiate_result negotiate_judge(struct negotiation *negotiation)
{
    char why[sizeof negotiation->why];
    switch (tls_state(negotiation->tls)) {
    case TLS_OPEN: return NEGOTIATE_SECURE;
    case TLS_HANDSHAKE: return NEGOTIATE_READ;
    case TLS_ENDED: return negotiate_fail(negotiation, "it ended TLS before it was asked anything");
    case TLS_FAILED: break;
    }
    snprintf(why, sizeof why, "TLS: %s", tls_why(negotiation->tls));
    return negotiate_fail(negotiation, why);
}

/* ---- both ---- */

static enum negotiate_result negotiate_send(struct negotiation *negotiation)
{
    bool has_failed = negotiation->tls && tls_state(negotiation->tls) == TLS_FAILED;
    int rc = negotiate_flush(negotiation); /* the alert of a failure goes out if it can */
    if (rc < 0 && !has_failed)
        return negotiate_lost(negotiation, -rc);
    if (negotiation->unsent.len > 0 && !has_failed)
        return NEGOTIATE_WRITE;
    return negotiation->tls ? negotiate_judge(negotiation) : NEGOTIATE_READ;
}

enum negotiate_result negotiate_step(struct negotiation *negotiation)
{
    enum negotiate_result result = negotiate_send(negotiation);
    while (result == NEGOTIATE_READ) {
        result = negotiation->tls ? negotiate_shake(negotiation) : negotiate_hear_answer(negotiation);
        if (result != NEGOTIATE_WRITE)
            return result;
        result = negotiate_send(negotiation); /* it has something to say, or has come to its end */
    }
    return result;
}
