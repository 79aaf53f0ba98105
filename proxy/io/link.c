/* link.c - readiness from the loop, bytes by hand: half the price of a stream layer, and the place of TLS. */
#include "link.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../admin/conf.h"

/* What a record adds to its contents, at most; an estimate would do. */
#define LINK_RECORD_COST ((size_t)64)

/* A closed TCP connection looks like one whose peer only sends no more; the peer's system tells them apart when it is
 * asked, a minute behind the close as a rule. */
#define LINK_PROBE_IDLE_S 10
#define LINK_PROBE_INTERVAL_S 10
#define LINK_PROBE_COUNT 6

/* ---- the seam: only these touch the socket's bytes; TLS stands between them and the caller ---- */

static ssize_t link_raw_recv(const struct link *link, uint8_t *buffer, size_t len)
{
    ssize_t got;
    do
        got = recv(link->fd, buffer, len, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

static ssize_t link_raw_send(const struct link *link, struct iovec *pieces, size_t npieces)
{
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = npieces};
    ssize_t sent;
    do
        sent = npieces == 1 ? send(link->fd, pieces->iov_base, pieces->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL)
                            : sendmsg(link->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

int link_peek(const struct link *link)
{
    uint8_t byte;
    ssize_t got;
    do
        got = recv(link->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    while (got < 0 && errno == EINTR);
    return got == 1 ? byte : -1;
}

/* ---- TLS ---- */

/* What TLS itself has to say goes behind what is waiting, and in front of all that comes. */
static int link_put_output(struct link *link)
{
    struct buf *output = tls_output(link->tls);
    if (output->len == 0)
        return output->failed ? -ENOMEM : 0;
    buf_put_span(&link->unsent, buf_span(output));
    bool is_lost = output->failed || link->unsent.failed;
    buf_fini(output);
    return is_lost ? -ENOMEM : link_flush(link);
}

void link_secure(struct link *link, struct tls *tls)
{
    assert(link_is_open(link) && !link->tls);
    link->tls = tls;
}

bool link_is_secure(const struct link *link)
{
    return link->tls && (tls_state(link->tls) == TLS_OPEN || tls_state(link->tls) == TLS_ENDED);
}

/* An end without close_notify is an end: what PostgreSQL's messages lack, their lengths tell. */
static ssize_t link_recv_tls(struct link *link, uint8_t *buffer, size_t len)
{
    uint8_t cipher[LINK_CIPHER_BYTES];
    ssize_t got = link_raw_recv(link, cipher, sizeof cipher);
    link->at_end |= got == 0;
    if (got <= 0)
        return got == -EAGAIN ? 0 : got;
    if (tls_state(link->tls) == TLS_FAILED || tls_state(link->tls) == TLS_ENDED)
        return 0;
    size_t plain = tls_read(link->tls, span_of(cipher, (size_t)got), buffer, len);
    int rc = link_put_output(link);
    link->at_end |= tls_state(link->tls) == TLS_ENDED;
    if (tls_state(link->tls) == TLS_FAILED)
        return -EPROTO;
    return rc < 0 ? rc : (ssize_t)plain;
}

static int link_send_tls(struct link *link, const struct iovec *pieces, size_t npieces, size_t len)
{
    if (!link_is_secure(link))
        return 0;
    buf_reserve(&link->unsent, len + LINK_RECORD_COST * (npieces + len / 16384));
    if (!tls_write(link->tls, pieces, npieces, &link->unsent))
        return link->unsent.failed || tls_state(link->tls) == TLS_FAILED ? -ENOMEM : -EPIPE;
    if (link_unsent(link) > LINK_UNSENT_MAX)
        return -ENOBUFS;
    return link_flush(link);
}

/* ---- opening and closing ---- */

int link_open(struct link *link, uv_loop_t *loop, int fd, void *owner, link_on_event on_event, link_on_closed on_closed)
{
    assert(link->state == LINK_UNUSED);
    int rc = uv_poll_init(loop, &link->poll, fd);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    link->poll.data = owner;
    link->fd = fd;
    link->on_event = on_event;
    link->on_closed = on_closed;
    link->state = LINK_OPEN;
    return 0;
}

static void link_set(int fd, int level, int option, int value)
{
    /* A refusal (a Unix socket, a bound of the system) costs speed or a late notice, never correctness. */
    if (setsockopt(fd, level, option, &value, sizeof value) < 0)
        return;
}

void link_tune(int fd, const struct conf *conf)
{
    link_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (!conf->tcp_keepalive)
        return;
    link_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    if (conf->tcp_keepidle > 0)
        link_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, conf->tcp_keepidle);
    if (conf->tcp_keepintvl > 0)
        link_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, conf->tcp_keepintvl);
    if (conf->tcp_keepcnt > 0)
        link_set(fd, IPPROTO_TCP, TCP_KEEPCNT, conf->tcp_keepcnt);
}

void link_probe(struct link *link)
{
    if (!link_is_open(link))
        return;
    link_set(link->fd, IPPROTO_TCP, TCP_KEEPIDLE, LINK_PROBE_IDLE_S);
    link_set(link->fd, IPPROTO_TCP, TCP_KEEPINTVL, LINK_PROBE_INTERVAL_S);
    link_set(link->fd, IPPROTO_TCP, TCP_KEEPCNT, LINK_PROBE_COUNT);
    link_set(link->fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

bool link_is_lost(const struct link *link)
{
    struct pollfd file = {.fd = link->fd};
    return link_is_open(link) && poll(&file, 1, 0) > 0 && (file.revents & (POLLERR | POLLHUP));
}

void link_finish(struct link *link)
{
    if (!link_is_open(link) || link->is_finished)
        return;
    if (link->tls) {
        tls_finish(link->tls);
        if (link_put_output(link) == 0 && link_unsent(link) > 0)
            return;
    }
    link->is_finished = true;
    if (shutdown(link->fd, SHUT_WR) < 0)
        return; /* the peer has gone already: the next receive says so */
}

static void link_on_handle_closed(uv_handle_t *handle)
{
    struct link *link = (struct link *)handle; /* poll is the first member */
    link->state = LINK_CLOSED;
    link->on_closed(link);
}

void link_close(struct link *link)
{
    if (!link_is_open(link))
        return;
    if (link->tls && link_unsent(link) == 0) { /* inside a record there is no room for a goodbye */
        tls_finish(link->tls);
        if (link_put_output(link) < 0)
            buf_clear(&link->unsent); /* nor is anybody there to hear it */
    }
    tls_free(link->tls);
    link->tls = NULL;
    link->state = LINK_CLOSING;
    buf_fini(&link->unsent);
    link->unsent_from = 0;
    /* uv_close takes the descriptor out of the loop at once, so closing it here lets the peer know at once, too. */
    uv_close((uv_handle_t *)&link->poll, link_on_handle_closed);
    close(link->fd);
}

const char *link_why(const struct link *link, int error)
{
    bool is_tls = error == EPROTO && link->tls && tls_state(link->tls) == TLS_FAILED;
    return is_tls ? tls_why(link->tls) : strerror(error);
}

int link_error(const struct link *link)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        return errno;
    return error;
}

/* ---- bytes ---- */

ssize_t link_recv(struct link *link, uint8_t *buffer, size_t len)
{
    if (link->tls)
        return link_recv_tls(link, buffer, len);
    ssize_t got = link_raw_recv(link, buffer, len);
    if (got > 0)
        return got;
    if (got == -EAGAIN)
        return 0;
    if (got == 0)
        link->at_end = true;
    return got;
}

/* Keeps what the pieces hold behind the first `sent` bytes. */
static int link_keep(struct link *link, const struct iovec *pieces, size_t npieces, size_t sent)
{
    for (size_t i = 0; i < npieces; i++) {
        size_t skip = sent < pieces[i].iov_len ? sent : pieces[i].iov_len;
        sent -= skip;
        if (skip < pieces[i].iov_len)
            buf_put(&link->unsent, (const uint8_t *)pieces[i].iov_base + skip, pieces[i].iov_len - skip);
    }
    if (link->unsent.failed)
        return -ENOMEM;
    return link_unsent(link) > LINK_UNSENT_MAX ? -ENOBUFS : 0;
}

int link_send(struct link *link, const struct sink *sink)
{
    if (!link_is_open(link))
        return 0;
    if (sink_failed(sink))
        return -ENOMEM;
    if (sink_is_empty(sink))
        return 0;
    struct iovec pieces[SINK_PIECES];
    size_t npieces = sink_iovec(sink, pieces);
    if (link->tls)
        return link_send_tls(link, pieces, npieces, sink_len(sink));
    if (link_unsent(link) > 0) /* order: nothing overtakes what is waiting */
        return link_keep(link, pieces, npieces, 0);
    ssize_t sent = link_raw_send(link, pieces, npieces);
    if (sent == -EAGAIN)
        sent = 0;
    if (sent < 0)
        return (int)sent;
    if (npieces == 1 && (size_t)sent == pieces->iov_len)
        return 0; /* nearly always */
    return link_keep(link, pieces, npieces, (size_t)sent);
}

int link_flush(struct link *link)
{
    if (!link_is_open(link) || link_unsent(link) == 0)
        return 0;
    struct iovec rest = {.iov_base = link->unsent.ptr + link->unsent_from, .iov_len = link_unsent(link)};
    ssize_t sent = link_raw_send(link, &rest, 1);
    if (sent < 0)
        return sent == -EAGAIN ? 0 : (int)sent;
    link->unsent_from += (size_t)sent;
    if (link_unsent(link) == 0) {
        buf_fini(&link->unsent); /* memory only while something is refused */
        link->unsent_from = 0;
    }
    return 0;
}

/* ---- readiness ---- */

static void link_on_poll(uv_poll_t *handle, int status, int uv_events)
{
    struct link *link = (struct link *)handle; /* poll is the first member */
    if (!link_is_open(link))
        return;
    unsigned wanted = link->events;
    unsigned events = 0;
    if (status < 0) { /* libuv has stopped the handle: link_want() must start it anew */
        link->events = 0;
        events |= LINK_BROKEN;
        if (wanted & LINK_READABLE) /* bytes that came before the error are still there to be read */
            events |= LINK_READABLE;
    }
    if (uv_events & UV_READABLE)
        events |= LINK_READABLE;
    if (uv_events & UV_WRITABLE)
        events |= LINK_WRITABLE;
    if ((uv_events & UV_DISCONNECT) && !(events & LINK_READABLE)) {
        link->hung_up = true;
        events |= LINK_HUNG_UP;
    }
    link->on_event(link, events);
}

void link_want(struct link *link, unsigned events)
{
    if (!link_is_open(link))
        return;
    if (!(events & LINK_READABLE) && !link->hung_up && !link->at_end)
        events |= LINK_HUNG_UP;
    if (events == link->events)
        return;
    link->events = (uint8_t)events;
    int uv_events = 0;
    if (events & LINK_READABLE)
        uv_events |= UV_READABLE;
    if (events & LINK_WRITABLE)
        uv_events |= UV_WRITABLE;
    if (events & LINK_HUNG_UP)
        uv_events |= UV_DISCONNECT;
    /* With no events uv_poll_start only stops; it fails on closing handles alone, and this one is open. */
    int rc = uv_poll_start(&link->poll, uv_events, link_on_poll);
    assert(rc == 0);
    (void)rc;
}
