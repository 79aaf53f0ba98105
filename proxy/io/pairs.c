/* pairs.c - all pairs of a worker: taken in, timed, told to go. */
#include "pair_internal.h"

#include <unistd.h>

#include "../admin/conf.h"
#include "../admin/log.h"
#include "snapshot.h"
#include "upstream.h"

/* While the process stops, a client that has read it all and only does not hang up has less than PAIR_LINGER_MS. */
#define PAIR_LINGER_STOP_MS 1000

/* ---- the life of a pair ---- */

/* Counts one more, if that stays within the bound. */
static bool pair_count_up(_Atomic int *count, int max)
{
    if (atomic_fetch_add_explicit(count, 1, memory_order_relaxed) < max)
        return true;
    atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
    return false;
}

static struct pair *pair_new(struct pair_env *env, int fd, const struct session_peer *peer)
{
    uint64_t id = atomic_fetch_add_explicit(&env->counts->last_id, 1, memory_order_relaxed) + 1;
    struct pair *pair = mem_zalloc(sizeof *pair);
    struct session *session = pair ? session_new(&env->session, peer, id) : NULL;
    if (!session) {
        mem_free(pair);
        close(fd);
        return NULL;
    }
    pair->env = env;
    pair->session = session;
    pair->snapshot = snapshot_ref(env->snapshot);
    if (link_open(&pair->front, env->loop, fd, pair, pair_on_event, pair_on_link_closed) == 0)
        return pair;
    session_free(session);
    snapshot_unref(pair->snapshot);
    mem_free(pair);
    return NULL;
}

void pair_accept(struct pair_env *env, int fd, const struct session_peer *peer)
{
    const struct conf *conf = env->snapshot->conf;
    bool is_counted = pair_count_up(&env->counts->clients, conf->max_client_conn);
    if (!is_counted && !pair_count_up(&env->counts->refused, PAIR_REFUSED_MAX)) {
        log_stranger(LOG_OF_DROP, LOG_WARNING, "%s: connection dropped: far too many clients (max_client_conn)",
                     peer->name);
        close(fd);
        return;
    }
    struct pair *pair = pair_new(env, fd, peer);
    if (!pair) {
        log_stranger(LOG_OF_DROP, LOG_WARNING, "%s: connection dropped: out of memory", peer->name);
        atomic_fetch_sub_explicit(is_counted ? &env->counts->clients : &env->counts->refused, 1, memory_order_relaxed);
        return;
    }
    pair->is_refused = !is_counted;
    if (conf->client_login_timeout > 0)
        pair->deadline_ms = uv_now(env->loop) + (uint64_t)conf->client_login_timeout * 1000;
    link_tune(fd, conf);
    pair_enlist(pair, &env->starting);
    pair_settle(pair);
}

/* ---- all pairs of a worker ---- */

/* Calls `act` on each pair of a list. A pair may leave the list in the call, but no other may. */
static void pair_for_each(struct pair_list *list, void (*act)(struct pair *pair))
{
    for (struct pair *pair = list->first, *next; pair; pair = next) {
        next = pair->next;
        act(pair);
    }
}

static void pair_check_login(struct pair *pair)
{
    if (pair->deadline_ms > 0 && uv_now(pair->env->loop) >= pair->deadline_ms) {
        session_end(pair->session, "08P01", "client_login_timeout");
        pair_settle(pair);
    } else if (pair->upstream) {
        upstream_tick(pair->upstream);
    }
}

/* A client that is gone ends its session, as soon as the server has all that it said or has had the time to take it. So
 * a server that says nothing keeps nobody's place. */
static void pair_check_leaving(struct pair *pair)
{
    uint64_t now_ms = uv_now(pair->env->loop);
    if (!link_is_lost(&pair->front))
        return;
    if (pair->deadline_ms == 0)
        pair->deadline_ms = now_ms + PAIR_LEGACY_MS;
    bool has_said_all = pair->front.at_end && link_unsent(&pair->back) == 0 && !session_may_send(pair->session);
    if (!has_said_all && now_ms < pair->deadline_ms)
        return;
    pair_leave(pair);
    pair_settle(pair);
}

static void pair_check_last_words(struct pair *pair)
{
    bool only_lingers = pair->env->is_draining && link_unsent(&pair->front) == 0;
    uint64_t spared = only_lingers ? PAIR_LINGER_MS - PAIR_LINGER_STOP_MS : 0;
    if (uv_now(pair->env->loop) + spared >= pair->deadline_ms)
        pair_cut_off(pair);
}

void pair_tick(struct pair_env *env)
{
    pair_for_each(&env->starting, pair_check_login);
    pair_for_each(&env->leaving, pair_check_leaving);
    pair_for_each(&env->closing, pair_check_last_words);
}

void pair_drain(struct pair_env *env)
{
    env->is_draining = true;
    pair_for_each(&env->starting, pair_settle);
    pair_for_each(&env->running, pair_settle);
    pair_for_each(&env->leaving, pair_settle);
}

static void pair_end(struct pair *pair)
{
    session_end(pair->session, PAIR_SHUTDOWN_SQLSTATE, PAIR_SHUTDOWN_MESSAGE);
    pair_settle(pair);
}

void pair_end_all(struct pair_env *env)
{
    env->is_draining = true;
    pair_for_each(&env->starting, pair_end);
    pair_for_each(&env->running, pair_end);
    pair_for_each(&env->leaving, pair_end);
}

void pair_kill_all(struct pair_env *env)
{
    pair_end_all(env);
    pair_for_each(&env->closing, pair_cut_off);
}
