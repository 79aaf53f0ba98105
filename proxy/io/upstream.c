/* upstream.c - resolves, connects and begins TLS, one address at a time.
 *
 *     next host ──▶ Unix socket or numeric address ─────────────▶ dial ──▶ negotiate ──▶ done
 *        ▲  └────▶ name ──▶ resolve ──▶ each address ──▶ dial ─────▲ │          │
 *        └──────────────── no address left ◀───────────────── failed ┘◀─────────┘
 *
 * Where TLS is only preferred and the handshake fails, the same address is dialled again without it. */
#include "upstream.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../admin/conf.h"
#include "../admin/log.h"
#include "../session/session.h"
#include "negotiate.h"
#include "tls.h"
#include "tls_mode.h"

#define UPSTREAM_WHY_BYTES 512
/* A Unix socket with a full queue refuses at once, where TCP would wait: we wait, too. */
#define UPSTREAM_RETRY_MS 10

struct upstream {
    uv_poll_t poll; /* of the address that is being dialled; `fd` tells whether it is in use */
    uv_getaddrinfo_t resolver;
    uv_timer_t pause; /* before a full Unix socket is tried again */
    uv_loop_t *loop;
    struct session_target target;
    struct upstream_setup setup;
    const struct conf_database *database;
    struct negotiation negotiation;
    struct server_address address; /* the present one */
    struct addrinfo *addresses;    /* what the resolver answered */
    const struct addrinfo *next_address;
    upstream_on_done on_done;
    void *owner;
    uint64_t deadline_ms; /* of the present address or look-up; 0: none */
    size_t host;          /* the host being tried */
    size_t last_host;
    int fd;
    bool is_negotiating; /* on `fd` */
    bool is_again;       /* the present address is dialled for the second time: in clear text */
    bool is_resolving;
    bool is_pausing;              /* the timer is known to the loop */
    bool is_polling;              /* the poll handle is known to the loop */
    bool is_over;                 /* done or cancelled: wait for the loop, then free */
    char why[UPSTREAM_WHY_BYTES]; /* what failed so far, for a person */
};

static void upstream_next_host(struct upstream *upstream);
static void upstream_dial_host(struct upstream *upstream);
static void upstream_next_address(struct upstream *upstream);
static void upstream_connect(struct upstream *upstream);

/* ---- the end ---- */

/* Frees once the loop holds neither a handle nor the request. */
static void upstream_release(struct upstream *upstream)
{
    if (!upstream->is_over || upstream->is_resolving || upstream->is_polling || upstream->is_pausing)
        return;
    negotiate_end(&upstream->negotiation);
    uv_freeaddrinfo(upstream->addresses);
    mem_free(upstream);
}

static void upstream_on_poll_closed(uv_handle_t *handle)
{
    struct upstream *upstream = handle->data;
    upstream->is_polling = false;
    if (upstream->is_over)
        upstream_release(upstream);
    else if (upstream->is_again)
        upstream_connect(upstream);
    else
        upstream_next_address(upstream);
}

static void upstream_on_pause_closed(uv_handle_t *handle)
{
    struct upstream *upstream = handle->data;
    upstream->is_pausing = false;
    if (upstream->is_over)
        upstream_release(upstream);
    else
        upstream_dial_host(upstream);
}

static void upstream_finish(struct upstream *upstream, int fd, const char *why)
{
    struct tls *tls = fd >= 0 ? negotiate_take(&upstream->negotiation) : NULL;
    upstream->is_over = true;
    upstream->on_done(
        upstream->owner,
        &(struct upstream_result){
            .fd = fd, .host_index = (int)upstream->host, .address = upstream->address, .tls = tls, .why = why});
    upstream_release(upstream);
}

void upstream_cancel(struct upstream *upstream)
{
    assert(!upstream->is_over);
    upstream->is_over = true;
    if (upstream->is_resolving)
        uv_cancel((uv_req_t *)&upstream->resolver); /* too late when it runs: its call-back then finds is_over */
    if (upstream->is_pausing && !uv_is_closing((uv_handle_t *)&upstream->pause))
        uv_close((uv_handle_t *)&upstream->pause, upstream_on_pause_closed);
    if (upstream->fd >= 0) {
        if (upstream->is_polling)
            uv_close((uv_handle_t *)&upstream->poll, upstream_on_poll_closed);
        close(upstream->fd);
        upstream->fd = -1;
    }
    upstream_release(upstream);
}

/* ---- what went wrong ---- */

static void upstream_explain(struct upstream *upstream, const char *reason)
{
    const char *host = upstream->database->hosts[upstream->host].host;
    int port = upstream->database->hosts[upstream->host].port;
    size_t used = strlen(upstream->why);
    char *at = upstream->why + used;
    size_t room = sizeof upstream->why - used;
    const char *comma = used > 0 ? "; " : "";
    if (host[0] == '/')
        snprintf(at, room, "%sserver socket \"%s/.s.PGSQL.%d\": %s", comma, host, port, reason);
    else
        snprintf(at, room, "%sserver at \"%s\", port %d: %s", comma, host, port, reason);
}

/* ---- one address ---- */

/* Closes what there is of the present attempt. True when the loop still holds its handle, and will call. */
static bool upstream_hang_up(struct upstream *upstream)
{
    if (upstream->fd >= 0)
        close(upstream->fd);
    upstream->fd = -1;
    upstream->is_negotiating = false;
    negotiate_end(&upstream->negotiation);
    if (upstream->is_polling)
        uv_close((uv_handle_t *)&upstream->poll, upstream_on_poll_closed);
    return upstream->is_polling;
}

/* The present address failed; goes on with the next one. */
static void upstream_dial_failed(struct upstream *upstream, const char *reason)
{
    upstream_explain(upstream, reason);
    upstream->is_again = false;
    if (!upstream_hang_up(upstream))
        upstream_next_address(upstream);
}

/* The same address in clear text. It is said, since somebody in between may want just that. */
static void upstream_dial_again(struct upstream *upstream)
{
    log_stranger(LOG_OF_RETRY, LOG_WARNING, "server at \"%s\", port %d: %s; going on in clear text (sslmode=prefer)",
                 upstream->database->hosts[upstream->host].host, upstream->database->hosts[upstream->host].port,
                 upstream->negotiation.why);
    upstream->is_again = true;
    if (!upstream_hang_up(upstream))
        upstream_connect(upstream);
}

static void upstream_done(struct upstream *upstream)
{
    int fd = upstream->fd;
    upstream->fd = -1;
    if (upstream->is_polling) /* out of the loop before its new owner puts the descriptor back into it */
        uv_close((uv_handle_t *)&upstream->poll, upstream_on_poll_closed);
    upstream_finish(upstream, fd, NULL);
}

/* How the present host is to be reached; `allow` and `prefer` turn round when the session says so. */
static enum conf_sslmode upstream_mode(const struct upstream *upstream)
{
    if (!upstream->setup.tls && upstream->target.tls != TARGET_WITH_TLS)
        return CONF_SSL_DISABLE;
    enum conf_sslmode mode = tls_mode_for_host(upstream->target.conf, upstream->database, upstream->host);
    if (upstream->target.tls == TARGET_WITH_TLS && mode < CONF_SSL_REQUIRE)
        return CONF_SSL_REQUIRE;
    if (mode == CONF_SSL_ALLOW || (mode == CONF_SSL_PREFER && upstream->target.tls == TARGET_WITHOUT_TLS))
        return CONF_SSL_DISABLE;
    return mode;
}

static void upstream_wait(struct upstream *upstream, int events);

static void upstream_negotiate(struct upstream *upstream)
{
    bool is_preferred = upstream_mode(upstream) == CONF_SSL_PREFER;
    switch (negotiate_step(&upstream->negotiation)) {
    case NEGOTIATE_READ: upstream_wait(upstream, UV_READABLE); return;
    case NEGOTIATE_WRITE: upstream_wait(upstream, UV_WRITABLE); return;
    case NEGOTIATE_SECURE: upstream_done(upstream); return;
    case NEGOTIATE_DECLINED:
        if (is_preferred)
            upstream_done(upstream);
        else
            upstream_dial_failed(upstream, "it does not offer TLS, which sslmode demands (server_tls_sslmode, or "
                                           "sslmode= of its [databases] line)");
        return;
    case NEGOTIATE_FAILED:
        if (is_preferred)
            upstream_dial_again(upstream);
        else
            upstream_dial_failed(upstream, upstream->negotiation.why);
        return;
    }
}

static bool upstream_is_direct(const struct upstream *upstream)
{
    struct conf_server_leg leg = conf_server_leg(upstream->target.conf, upstream->database);
    return leg.sslnegotiation == CONF_SSLNEGOTIATION_DIRECT;
}

static void upstream_connected(struct upstream *upstream)
{
    if (upstream->is_again || upstream_mode(upstream) == CONF_SSL_DISABLE) {
        upstream_done(upstream);
        return;
    }
    if (!upstream->setup.tls) { /* a cancel request, behind a reload */
        upstream_dial_failed(upstream, "its session has TLS, which its [databases] line has no more");
        return;
    }
    upstream->is_negotiating = true;
    negotiate_start(&upstream->negotiation, upstream->fd, upstream->setup.tls,
                    upstream->database->hosts[upstream->host].host, upstream_is_direct(upstream));
    upstream_negotiate(upstream);
}

static void upstream_on_ready(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    struct upstream *upstream = handle->data;
    if (upstream->is_over || upstream->fd < 0)
        return;
    if (upstream->is_negotiating) {
        upstream_negotiate(upstream);
        return;
    }
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(upstream->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error != 0) {
        upstream_dial_failed(upstream, strerror(error));
        return;
    }
    upstream_connected(upstream);
}

static void upstream_wait(struct upstream *upstream, int events)
{
    int rc = upstream->is_polling ? 0 : uv_poll_init(upstream->loop, &upstream->poll, upstream->fd);
    if (rc < 0) {
        upstream_dial_failed(upstream, uv_strerror(rc));
        return;
    }
    upstream->poll.data = upstream;
    upstream->is_polling = true;
    rc = uv_poll_start(&upstream->poll, events, upstream_on_ready);
    if (rc < 0)
        upstream_dial_failed(upstream, uv_strerror(rc));
}

static void upstream_set_deadline(struct upstream *upstream)
{
    uint64_t timeout_ms = upstream->setup.timeout_ms;
    upstream->deadline_ms = timeout_ms > 0 ? uv_now(upstream->loop) + timeout_ms : 0;
}

static void upstream_on_pause_over(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, upstream_on_pause_closed);
}

/* Tries the same host again in a moment, unless its time is up. */
static void upstream_pause(struct upstream *upstream)
{
    close(upstream->fd);
    upstream->fd = -1;
    if (upstream->deadline_ms > 0 && uv_now(upstream->loop) >= upstream->deadline_ms) {
        upstream_dial_failed(upstream, "its queue stays full");
        return;
    }
    int rc = uv_timer_init(upstream->loop, &upstream->pause);
    assert(rc == 0); /* a timer needs no resource */
    upstream->pause.data = upstream;
    upstream->is_pausing = true;
    rc = uv_timer_start(&upstream->pause, upstream_on_pause_over, UPSTREAM_RETRY_MS, 0);
    assert(rc == 0);
    (void)rc;
}

/* To the present address. */
static void upstream_connect(struct upstream *upstream)
{
    struct sockaddr_storage storage = {.ss_family = AF_UNSPEC};
    const struct sockaddr *address = (const struct sockaddr *)&storage;
    memcpy(&storage, upstream->address.bytes, upstream->address.len);
    upstream->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (upstream->fd < 0) {
        upstream_dial_failed(upstream, strerror(errno));
        return;
    }
    if (connect(upstream->fd, address, upstream->address.len) == 0)
        upstream_connected(upstream);
    else if (errno == EINPROGRESS || errno == EINTR)
        upstream_wait(upstream, UV_WRITABLE);
    else if (errno == EAGAIN && address->sa_family == AF_UNIX)
        upstream_pause(upstream);
    else
        upstream_dial_failed(upstream, strerror(errno));
}

static void upstream_dial(struct upstream *upstream, const void *address, socklen_t len)
{
    assert(len <= sizeof upstream->address.bytes);
    memcpy(upstream->address.bytes, address, len);
    upstream->address.len = (uint8_t)len;
    upstream->is_again = false;
    upstream_connect(upstream);
}

static void upstream_next_address(struct upstream *upstream)
{
    const struct addrinfo *address = upstream->next_address;
    if (!address) {
        upstream->host++;
        upstream_next_host(upstream);
        return;
    }
    upstream->next_address = address->ai_next;
    upstream_set_deadline(upstream);
    upstream_dial(upstream, address->ai_addr, address->ai_addrlen);
}

/* ---- one host ---- */

static void upstream_dial_unix(struct upstream *upstream, const char *directory, int port)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int len = snprintf(address.sun_path, sizeof address.sun_path, "%s/.s.PGSQL.%d", directory, port);
    if (len < 0 || (size_t)len >= sizeof address.sun_path)
        upstream_dial_failed(upstream, "the socket's path is too long");
    else
        upstream_dial(upstream, &address, sizeof address);
}

static void upstream_on_resolved(uv_getaddrinfo_t *resolver, int status, struct addrinfo *addresses)
{
    struct upstream *upstream = resolver->data;
    upstream->is_resolving = false;
    if (upstream->is_over) {
        uv_freeaddrinfo(addresses);
        upstream_release(upstream);
        return;
    }
    if (status < 0) {
        upstream_dial_failed(upstream, uv_strerror(status));
        return;
    }
    uv_freeaddrinfo(upstream->addresses);
    upstream->addresses = addresses;
    upstream->next_address = addresses;
    upstream_next_address(upstream);
}

static void upstream_resolve(struct upstream *upstream, const char *name, int port)
{
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    upstream->resolver.data = upstream;
    int rc = uv_getaddrinfo(upstream->loop, &upstream->resolver, upstream_on_resolved, name, service, &hints);
    upstream->is_resolving = rc == 0;
    if (rc < 0)
        upstream_dial_failed(upstream, uv_strerror(rc));
}

static void upstream_dial_host(struct upstream *upstream)
{
    const char *host = upstream->database->hosts[upstream->host].host;
    int port = upstream->database->hosts[upstream->host].port;
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;
    if (upstream->target.address.len > 0)
        upstream_dial(upstream, upstream->target.address.bytes, upstream->target.address.len);
    else if (host[0] == '/')
        upstream_dial_unix(upstream, host, port);
    else if (uv_ip4_addr(host, port, &ip4) == 0)
        upstream_dial(upstream, &ip4, sizeof ip4);
    else if (uv_ip6_addr(host, port, &ip6) == 0)
        upstream_dial(upstream, &ip6, sizeof ip6);
    else
        upstream_resolve(upstream, host, port);
}

static void upstream_next_host(struct upstream *upstream)
{
    if (upstream->host > upstream->last_host) {
        upstream->host = upstream->last_host;
        upstream_finish(upstream, -1, upstream->why);
        return;
    }
    upstream->next_address = NULL;
    upstream_set_deadline(upstream);
    upstream_dial_host(upstream);
}

/* ---- the outside ---- */

struct upstream *upstream_new(uv_loop_t *loop, const struct session_target *target, const struct upstream_setup *setup,
                              upstream_on_done on_done, void *owner)
{
    assert(target->host_index < (int)target->database->nhosts);
    struct upstream *upstream = mem_zalloc(sizeof *upstream);
    if (!upstream)
        return NULL;
    upstream->loop = loop;
    upstream->target = *target;
    upstream->setup = *setup;
    upstream->database = target->database;
    upstream->host = target->host_index < 0 ? 0 : (size_t)target->host_index;
    upstream->last_host = target->host_index < 0 ? target->database->nhosts - 1 : upstream->host;
    upstream->on_done = on_done;
    upstream->owner = owner;
    upstream->fd = -1;
    return upstream;
}

void upstream_start(struct upstream *upstream)
{
    upstream_next_host(upstream);
}

void upstream_tick(struct upstream *upstream)
{
    if (upstream->deadline_ms == 0 || uv_now(upstream->loop) < upstream->deadline_ms)
        return;
    if (upstream->is_pausing)
        return; /* it looks at the time itself */
    upstream->deadline_ms = 0;
    if (upstream->fd >= 0) {
        upstream_dial_failed(upstream, upstream->is_negotiating ? "timed out while beginning TLS" : "timed out");
        return;
    }
    if (!upstream->is_resolving)
        return; /* between two addresses: the loop is about to go on */
    /* A look-up that runs cannot be stopped: answer now, free when it comes back. */
    upstream_explain(upstream, "the name look-up timed out");
    uv_cancel((uv_req_t *)&upstream->resolver);
    upstream_finish(upstream, -1, upstream->why);
}
