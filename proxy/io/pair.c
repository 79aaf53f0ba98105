/* pair.c - the driver: receive, feed the session, send what it made, ask what is next.
 *
 *     accept ──▶ starting ──(logged in)──▶ running ──(client's end)──▶ leaving
 *                   │                         │                           │
 *                   └──── SESSION_CLOSE ──────┴───────────────────────────┴──▶ closing ──(both links gone)──▶ freed
 *
 * Back-pressure is one rule: a side is read only while the other side has taken everything.
 *
 * Until a log-in is over its pair holds the snapshot that it began with: the session's settings, the certificates of
 * both links and the rules come from one configuration, whatever is reloaded meanwhile. */
#include "pair_internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../admin/conf.h"
#include "../admin/log.h"
#include "snapshot.h"
#include "tls.h"
#include "upstream.h"

/* A client that does not read its answers is not read either above this. */
#define PAIR_UNREAD_MAX ((size_t)256 * 1024)

/* The first byte of a TLS handshake; no packet of PostgreSQL's begins with it. */
#define PAIR_TLS_HANDSHAKE 0x16

/* ---- lists ---- */

static void pair_unlist(struct pair *pair)
{
    if (pair->prev)
        pair->prev->next = pair->next;
    else
        pair->list->first = pair->next;
    if (pair->next)
        pair->next->prev = pair->prev;
    pair->list->count--;
}

void pair_enlist(struct pair *pair, struct pair_list *list)
{
    if (pair->list)
        pair_unlist(pair);
    pair->list = list;
    pair->prev = NULL;
    pair->next = list->first;
    if (list->first)
        list->first->prev = pair;
    list->first = pair;
    list->count++;
    pair->env->on_change(pair->env);
}

static bool pair_is_closing(const struct pair *pair)
{
    return pair->list == &pair->env->closing;
}

static void pair_free(struct pair *pair)
{
    struct pair_env *env = pair->env;
    session_free(pair->session);
    snapshot_unref(pair->snapshot);
    pair_unlist(pair);
    mem_free(pair);
    env->on_change(env);
}

/* Clients are counted until their session is over: those that have only their last message to read take nobody's
 * place. */
static _Atomic int *pair_counter(const struct pair *pair)
{
    return pair->is_refused ? &pair->env->counts->refused : &pair->env->counts->clients;
}

static void pair_free_if_gone(struct pair *pair)
{
    if (pair_is_closing(pair) && !pair->upstream && link_is_gone(&pair->front) && link_is_gone(&pair->back))
        pair_free(pair);
}

void pair_on_link_closed(struct link *link)
{
    struct pair *pair = link->poll.data;
    if (pair_is_closing(pair)) {
        pair_free_if_gone(pair);
    } else if (link == &pair->back) { /* the server has refused, and is asked once more */
        pair->back = (struct link){0};
        pair_settle(pair);
    }
}

/* ---- closing ---- */

/* Sends what is left, says goodbye, and closes a link as soon as nothing is to be expected from it. The server's goes
 * first: it has nothing more to tell anybody. The client's end of stream is waited for: a close with bytes unread would
 * be a reset, and a reset can destroy the last message on its way. Above a bound it is not: strangers could keep
 * descriptors that nobody counts. */
static void pair_wind_down(struct pair *pair)
{
    bool lingers = !pair->front.at_end && pair->env->closing.count <= PAIR_LINGERING_MAX;
    if (link_unsent(&pair->back) == 0)
        link_close(&pair->back);
    if (link_unsent(&pair->front) == 0)
        (lingers ? link_finish : link_close)(&pair->front);
    link_want(&pair->back, LINK_WRITABLE);
    link_want(&pair->front,
              (pair->front.at_end ? 0u : LINK_READABLE) | (link_unsent(&pair->front) > 0 ? LINK_WRITABLE : 0u));
}

static void pair_close(struct pair *pair)
{
    if (pair->upstream) {
        upstream_cancel(pair->upstream);
        pair->upstream = NULL;
    }
    if (pair->lookup) {
        lookup_cancel(pair->lookup);
        pair->lookup = NULL;
    }
    atomic_fetch_sub_explicit(pair_counter(pair), 1, memory_order_relaxed);
    pair->deadline_ms = uv_now(pair->env->loop) + PAIR_LINGER_MS;
    pair_enlist(pair, &pair->env->closing);
    pair_wind_down(pair);
}

void pair_cut_off(struct pair *pair)
{
    link_close(&pair->front);
    link_close(&pair->back);
}

/* ---- sending ---- */

/* A link that is lost is closed before anything is sent: nothing of the session's last words is for it. */
static void pair_lose(struct pair *pair, enum side side, const char *why)
{
    session_lost(pair->session, side, why); /* `why` may be the link's own words */
    link_close(side == SIDE_FRONTEND ? &pair->front : &pair->back);
}

/* A message goes one way as a rule, so one of the two sinks is empty. */
static int pair_send_one(struct link *link, struct sink *sink)
{
    if (sink_is_empty(sink) && !sink_failed(sink))
        return 0;
    int rc = link_send(link, sink);
    sink_clear(sink);
    return rc;
}

/* Sends what the session has made. Losing a side can make it say a last word to the other, so once more after that. */
static void pair_send(struct pair *pair)
{
    struct session_env *made = &pair->env->session;
    for (;;) {
        int back = pair_send_one(&pair->back, &made->to_backend);
        int front = pair_send_one(&pair->front, &made->to_frontend);
        if (back == 0 && front == 0)
            return;
        if (back < 0)
            pair_lose(pair, SIDE_BACKEND, strerror(-back));
        if (front < 0)
            pair_lose(pair, SIDE_FRONTEND, strerror(-front));
    }
}

/* ---- connecting ---- */

static void pair_connected(struct pair *pair, const struct upstream_result *result)
{
    struct channel channel;
    link_tune(result->fd, pair->snapshot->conf);
    int rc = link_open(&pair->back, pair->env->loop, result->fd, pair, pair_on_event, pair_on_link_closed);
    if (rc < 0) {
        tls_free(result->tls);
        session_unreachable(pair->session, uv_strerror(rc));
        return;
    }
    if (result->tls) {
        link_secure(&pair->back, result->tls);
        tls_describe(result->tls, &channel);
    }
    session_connected(pair->session, result->host_index, &result->address, result->tls ? &channel : NULL);
}

static void pair_on_upstream(void *owner, const struct upstream_result *result)
{
    struct pair *pair = owner;
    pair->upstream = NULL;
    if (result->fd < 0)
        session_unreachable(pair->session, result->why);
    else
        pair_connected(pair, result);
    pair_settle(pair);
}

static void pair_connect(struct pair *pair)
{
    if (pair->upstream)
        return; /* under way */
    if (pair->back.state != LINK_UNUSED) {
        link_close(&pair->back); /* a second try: begins when this link is gone */
        return;
    }
    struct session_target target = session_target(pair->session);
    pair->is_cancel = target.is_cancel;
    if (pair->is_refused && !pair->is_cancel) {
        session_end(pair->session, "53300", "no more connections allowed (max_client_conn)");
        pair_settle(pair);
        return;
    }
    const struct upstream_setup setup = {.tls = snapshot_tls(pair->snapshot, target.database),
                                         .timeout_ms = (uint64_t)target.conf->server_connect_timeout * 1000};
    pair->upstream = upstream_new(pair->env->loop, &target, &setup, pair_on_upstream, pair);
    if (pair->upstream) {
        upstream_start(pair->upstream);
        return;
    }
    session_unreachable(pair->session, "out of memory");
    pair_settle(pair);
}

/* ---- TLS on the client's link ---- */

/* Begins the handshake, if that has not been done. False when the session has ended. */
static bool pair_secure(struct pair *pair, bool is_direct)
{
    if (pair->is_securing)
        return true;
    struct tls *tls = tls_accept(pair->snapshot->client_tls, is_direct);
    if (!tls) {
        session_lost(pair->session, SIDE_FRONTEND, "out of memory");
        return false;
    }
    link_secure(&pair->front, tls);
    pair->is_securing = true;
    return true;
}

/* The client's first byte: of a packet, or of TLS itself. */
static void pair_hear(struct pair *pair)
{
    int first = link_peek(&pair->front);
    pair->is_heard = first >= 0;
    if (first == PAIR_TLS_HANDSHAKE && session_begins_tls(pair->session))
        pair_secure(pair, true); /* or the session has ended */
}

static void pair_secured(struct pair *pair)
{
    struct channel channel;
    pair->is_securing = false;
    tls_describe(pair->front.tls, &channel);
    session_secured(pair->session, &channel);
}

/* ---- looking up ---- */

static void pair_on_lookup(void *owner, const struct session_looked_up *answer)
{
    struct pair *pair = owner;
    pair->lookup = NULL;
    session_secret(pair->session, answer);
    pair_settle(pair);
}

static void pair_look_up(struct pair *pair)
{
    if (pair->lookup)
        return; /* under way */
    static const struct session_looked_up none = {.failed =
                                                      "too many log-ins wait for their secrets, or no memory is left"};
    const struct session_target target = session_target(pair->session);
    pair->lookup = lookup_start(&pair->env->lookups, &target, session_user(pair->session),
                                session_dbname(pair->session), pair_on_lookup, pair);
    if (pair->lookup)
        return;
    session_secret(pair->session, &none);
    pair_settle(pair);
}

/* ---- what is next ---- */

static unsigned pair_wants(const struct pair *pair, enum side side)
{
    const struct link *own = side == SIDE_FRONTEND ? &pair->front : &pair->back;
    const struct link *peer = side == SIDE_FRONTEND ? &pair->back : &pair->front;
    unsigned wants = link_unsent(own) > 0 ? LINK_WRITABLE : 0;
    if (!own->at_end && link_unsent(peer) == 0 && link_unsent(own) <= PAIR_UNREAD_MAX &&
        session_reads(pair->session, side))
        wants |= LINK_READABLE;
    return wants;
}

void pair_leave(struct pair *pair)
{
    pair->is_half_closed = false;
    pair_lose(pair, SIDE_FRONTEND, "client closed the connection");
}

/* The client may be there no more: from now on it is looked after once a second. */
static void pair_watch(struct pair *pair)
{
    if (pair->list != &pair->env->running)
        return;
    link_probe(&pair->front);
    pair_enlist(pair, &pair->env->leaving);
}

/* The log-in is over. */
static void pair_run(struct pair *pair)
{
    pair->deadline_ms = 0;
    snapshot_unref(pair->snapshot);
    pair->snapshot = NULL;
    pair_enlist(pair, &pair->env->running);
    if (pair->front.hung_up)
        pair_watch(pair);
}

/* The client sends no more. Nothing owed: the session ends, once its answers are sent. Otherwise the server is told as
 * soon as it has all that the client said, answers it, and closes by itself, as it would without a proxy. */
static void pair_pass_end(struct pair *pair)
{
    bool is_owed = session_is_owed(pair->session);
    if (!is_owed && link_unsent(&pair->front) == 0) {
        pair_leave(pair);
        return;
    }
    if (is_owed && link_unsent(&pair->back) == 0 && !session_may_send(pair->session))
        link_finish(&pair->back);
    pair_watch(pair);
}

/* What is rare: a session that has logged in, is told to go, or whose client has sent its last. Whether the session
 * was changed by it. */
static bool pair_take_turn(struct pair *pair)
{
    struct pair_env *env = pair->env;
    if (pair->list == &env->starting && session_is_up(pair->session))
        pair_run(pair);
    if (pair->is_half_closed) {
        pair_pass_end(pair);
        return !link_is_open(&pair->front);
    }
    if (!env->is_draining || pair->is_cancel || (session_is_up(pair->session) && !session_is_idle(pair->session)))
        return false;
    session_end(pair->session, PAIR_SHUTDOWN_SQLSTATE, PAIR_SHUTDOWN_MESSAGE);
    return true;
}

/* After every call of a session function: sends, then does what the session says. */
void pair_settle(struct pair *pair)
{
    pair_send(pair);
    enum session_next next = session_next(pair->session);
    if (next != SESSION_CLOSE && pair_take_turn(pair)) {
        pair_send(pair);
        next = session_next(pair->session);
    }
    if (next == SESSION_CLOSE || !link_is_open(&pair->front)) {
        pair_close(pair);
        return;
    }
    if (next == SESSION_SECURE && !pair_secure(pair, false)) {
        pair_close(pair);
        return;
    }
    if (next == SESSION_CONNECT || next == SESSION_LOOK_UP) {
        (next == SESSION_CONNECT ? pair_connect : pair_look_up)(pair);
        if (pair_is_closing(pair))
            return;
    }
    link_want(&pair->front, pair_wants(pair, SIDE_FRONTEND));
    link_want(&pair->back, pair_wants(pair, SIDE_BACKEND));
}

/* ---- events ---- */

static void pair_receive(struct pair *pair, struct link *link)
{
    enum side side = link == &pair->front ? SIDE_FRONTEND : SIDE_BACKEND;
    if (!pair->is_heard && side == SIDE_FRONTEND)
        pair_hear(pair);
    ssize_t got = link_recv(link, pair->env->buffer, PAIR_BUFFER_BYTES);
    if (pair->is_securing && link_is_secure(&pair->front))
        pair_secured(pair);
    if (got > 0)
        session_feed(pair->session, side, span_of(pair->env->buffer, (size_t)got));
    if (got == -EPROTO && side == SIDE_FRONTEND)
        session_lost(pair->session, side, link_why(link, EPROTO)); /* the link stays until its alert is read */
    else if (got < 0)
        pair_lose(pair, side, link_why(link, (int)-got));
    else if (link->at_end && side == SIDE_FRONTEND)
        pair->is_half_closed = true;
    else if (link->at_end && session_next(pair->session) != SESSION_CONNECT) /* or it is asked once more */
        pair_lose(pair, side, "server closed the connection");
}

/* A link of a pair that is closing: send what is left, throw away what comes. */
static void pair_on_last_event(struct pair *pair, struct link *link, unsigned events)
{
    bool is_broken = (events & LINK_BROKEN) != 0;
    if ((events & LINK_WRITABLE) && link_flush(link) < 0)
        is_broken = true;
    if ((events & LINK_READABLE) && link_recv(link, pair->env->buffer, PAIR_BUFFER_BYTES) < 0)
        is_broken = true;
    if (is_broken)
        link_close(link);
    pair_wind_down(pair);
}

void pair_on_event(struct link *link, unsigned events)
{
    struct pair *pair = link->poll.data;
    if (pair_is_closing(pair)) {
        pair_on_last_event(pair, link, events);
        return;
    }
    enum side side = link == &pair->front ? SIDE_FRONTEND : SIDE_BACKEND;
    if (events & LINK_WRITABLE) {
        int rc = link_flush(link);
        if (rc < 0)
            pair_lose(pair, side, strerror(-rc));
    }
    if ((events & LINK_HUNG_UP) && side == SIDE_FRONTEND)
        pair_watch(pair);
    if ((events & LINK_READABLE) && link_is_open(link))
        pair_receive(pair, link);
    else if ((events & LINK_BROKEN) && link_is_open(link))
        pair_lose(pair, side, strerror(link_error(link)));
    pair_settle(pair);
}
