/* link.h - one socket, in clear text or under TLS: receives into a borrowed buffer, sends a sink in one call, keeps
 * what the peer refused.
 *
 * It knows descriptors and readiness and must not know messages, sessions or its peer link. Whoever owns it decides
 * when to read; memory is held only for bytes that the socket would not take, encrypted where they are to be. */
#ifndef LINK_H
#define LINK_H

#include <uv.h>

#include "../protocol/bytes.h"
#include "../protocol/sink.h"
#include "tls.h"

/* More than this unsent means a fault of ours or a peer that never reads: the link fails with ENOBUFS. */
#define LINK_UNSENT_MAX ((size_t)64 * 1024 * 1024)
/* Ciphertext taken in one go, and the buffer that link_recv() needs for it. */
#define LINK_CIPHER_BYTES ((size_t)32 * 1024)
#define LINK_PLAIN_MIN (LINK_CIPHER_BYTES + TLS_RECORD_MAX)

struct conf;
struct link;

enum link_state { LINK_UNUSED, LINK_OPEN, LINK_CLOSING, LINK_CLOSED };

/* What a link can wait for and report. LINK_HUNG_UP is reported only while LINK_READABLE is not wanted: the peer has
 * stopped sending. LINK_BROKEN (reported only): the socket is in error, link_error() says which. */
enum link_event { LINK_READABLE = 1, LINK_WRITABLE = 2, LINK_HUNG_UP = 4, LINK_BROKEN = 8 };

typedef void (*link_on_event)(struct link *link, unsigned events);
typedef void (*link_on_closed)(struct link *link);

struct link {
    uv_poll_t poll;  /* poll.data: the owner */
    struct tls *tls; /* NULL: in clear text */
    struct buf unsent;
    size_t unsent_from; /* the bytes of `unsent` before this offset are sent */
    link_on_event on_event;
    link_on_closed on_closed;
    int fd;
    uint8_t state;    /* enum link_state */
    uint8_t events;   /* what the poll handle is started with, as enum link_event */
    bool hung_up;     /* LINK_HUNG_UP was reported: not waited for again */
    bool at_end;      /* the peer's end of stream was received */
    bool is_finished; /* our own end of stream was sent */
};

/* Takes a connected descriptor over (also on failure: it is closed then). A negative uv code when it cannot be polled.
 */
int link_open(struct link *link, uv_loop_t *loop, int fd, void *owner, link_on_event on_event,
              link_on_closed on_closed) MUST_USE;

/* TCP_NODELAY and keep-alive as configured; harmless on a Unix socket. */
void link_tune(int fd, const struct conf *conf);

/* The peer has sent its end: it is asked now and then whether it is still there. */
void link_probe(struct link *link);
/* The peer is known to be gone, and nothing that is sent will be read. A peer that has only sent its end is not. */
bool link_is_lost(const struct link *link);

/* TLS from here on; takes it over. What was sent before stays in front. */
void link_secure(struct link *link, struct tls *tls);
/* The handshake is over and has not failed. */
bool link_is_secure(const struct link *link);

/* The first byte that is there, left where it is; -1 when there is none. */
int link_peek(const struct link *link);

/* One receive into a buffer of at least LINK_PLAIN_MIN. The number of bytes, 0 when none are for the caller, or a
 * negative errno: -EPROTO when TLS has failed (what comes after that is thrown away). at_end says that nothing will
 * come behind these bytes. */
ssize_t link_recv(struct link *link, uint8_t *buffer, size_t len) MUST_USE;

/* Sends what it can in one call and keeps a copy of the rest; drops it where the link is not open, or under TLS before
 * the handshake is over. 0 or a negative errno. */
int link_send(struct link *link, const struct sink *sink) MUST_USE;
/* Sends more of what was kept. 0 or a negative errno. */
int link_flush(struct link *link) MUST_USE;

/* Says which events are wanted from now on (LINK_READABLE, LINK_WRITABLE). A system call only where that changes. */
void link_want(struct link *link, unsigned events);

/* Sends our end of stream, once; the peer can still send. To be called again when link_unsent() is 0, if TLS's own end
 * had no room. */
void link_finish(struct link *link);
/* Closes, at once for the peer; on_closed comes later from the loop. Idempotent; nothing on a link that is not open. */
void link_close(struct link *link);

/* Says an error of these functions (a positive errno) in words. */
const char *link_why(const struct link *link, int error);
/* The pending error of the socket as a positive errno; 0 when there is none. */
int link_error(const struct link *link);

static inline size_t link_unsent(const struct link *link)
{
    return link->unsent.len - link->unsent_from;
}

static inline bool link_is_open(const struct link *link)
{
    return link->state == LINK_OPEN;
}

/* Nothing of it is known to the loop: its memory may go. */
static inline bool link_is_gone(const struct link *link)
{
    return link->state == LINK_UNUSED || link->state == LINK_CLOSED;
}

#endif
