/* worker.c - what one loop does: accepts, ticks, obeys. */
#include "worker.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../parser/pgseek.h"
#include "../admin/conf.h"
#include "../admin/log.h"
#include "../admin/stats.h"
#include "../page/planned.h"
#include "listener.h"
#include "pair.h"
#include "snapshot.h"

/* Time-outs are in seconds, so one timer for all of a worker's sessions is exact enough; it runs only while needed. */
#define WORKER_TICK_MS 1000
/* Clients taken in one go, so that a storm of new ones does not starve those that are there. */
#define WORKER_ACCEPT_BATCH 32

struct acceptor {
    uv_poll_t poll; /* poll.data: the worker */
    const struct listener *listener;
    bool is_paused; /* out of descriptors or memory: tried again at the next tick */
};

struct worker {
    uv_thread_t thread;
    uv_loop_t own_loop;
    uv_loop_t *loop; /* own_loop, or the main thread's */
    uv_async_t wake;
    uv_timer_t tick;
    struct pair_env env;
    struct snapshot *snapshot; /* in force */
    struct stats stats;
    struct acceptor *acceptors;
    size_t nacceptors;
    uv_async_t *done;
    _Atomic(struct snapshot *) next_snapshot; /* handed over by worker_reload(), or NULL */
    _Atomic unsigned orders;                  /* bits of enum worker_order */
    _Atomic bool is_done;
    unsigned obeyed;
    int index;
    bool is_started;
    bool is_closing; /* the loop has nothing left to do but to close its handles */
    uint8_t buffer[PAIR_BUFFER_BYTES];
};

static int64_t worker_now(void *clock)
{
    (void)clock;
    return (int64_t)time(NULL);
}

/* ---- the tick ---- */

static bool worker_is_accepting(const struct worker *worker)
{
    return worker->obeyed == 0;
}

/* Nothing accepted any more and nobody left: the handles go, so uv_run() returns from a loop of our own. */
static void worker_end_if_empty(struct worker *worker)
{
    const struct pair_env *env = &worker->env;
    if (worker_is_accepting(worker) || worker->is_closing)
        return;
    if (env->starting.count + env->running.count + env->leaving.count + env->closing.count > 0)
        return;
    worker->is_closing = true;
    for (size_t i = 0; i < worker->nacceptors; i++)
        uv_close((uv_handle_t *)&worker->acceptors[i].poll, NULL);
    uv_close((uv_handle_t *)&worker->wake, NULL);
    uv_close((uv_handle_t *)&worker->tick, NULL);
    lookup_queue_close(&worker->env.lookups);
    atomic_store(&worker->is_done, true);
    uv_async_send(worker->done);
}

static void worker_resume_acceptors(struct worker *worker);

static bool worker_has_paused(const struct worker *worker)
{
    for (size_t i = 0; i < worker->nacceptors; i++)
        if (worker->acceptors[i].is_paused)
            return true;
    return false;
}

static bool worker_needs_tick(const struct pair_env *env)
{
    return env->starting.count + env->leaving.count + env->closing.count > 0;
}

static void worker_on_tick(uv_timer_t *timer)
{
    struct worker *worker = timer->data;
    pair_tick(&worker->env);
    if (worker_is_accepting(worker))
        worker_resume_acceptors(worker);
    bool has_said_all = log_catch_up();
    if (!worker_needs_tick(&worker->env) && !worker_has_paused(worker) && has_said_all)
        uv_timer_stop(timer);
}

static void worker_need_tick(struct worker *worker)
{
    if (worker->is_closing || uv_is_active((uv_handle_t *)&worker->tick))
        return;
    int rc = uv_timer_start(&worker->tick, worker_on_tick, WORKER_TICK_MS, WORKER_TICK_MS);
    assert(rc == 0); /* fails on a closing handle only */
    (void)rc;
}

static void worker_on_change(struct pair_env *env)
{
    struct worker *worker = env->session.clock;
    if (worker_needs_tick(env))
        worker_need_tick(worker);
    worker_end_if_empty(worker);
}

/* ---- accepting ---- */

static void worker_pause_acceptor(struct worker *worker, struct acceptor *acceptor, int error)
{
    if (!acceptor->is_paused)
        log_at(LOG_WARNING, "could not accept on %s, trying again in a second: %s", acceptor->listener->name,
               strerror(error));
    acceptor->is_paused = true;
    uv_poll_stop(&acceptor->poll);
    worker_need_tick(worker);
}

static void worker_on_client(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    struct worker *worker = handle->data;
    struct acceptor *acceptor = (struct acceptor *)handle; /* poll is the first member */
    for (int i = 0; i < WORKER_ACCEPT_BATCH; i++) {
        struct listener_peer peer;
        int fd = listener_accept(acceptor->listener, &peer);
        if (fd >= 0) {
            pair_accept(&worker->env, fd, &(struct session_peer){.name = peer.name, .from = peer.from, .to = peer.to});
            continue;
        }
        if (fd == -EINVAL) /* another worker has stopped the shared one; our own order is on its way */
            uv_poll_stop(&acceptor->poll);
        else if (fd != -EAGAIN)
            worker_pause_acceptor(worker, acceptor, -fd);
        return;
    }
}

static bool worker_start_acceptor(struct acceptor *acceptor)
{
    int rc = uv_poll_start(&acceptor->poll, UV_READABLE, worker_on_client);
    acceptor->is_paused = rc < 0;
    return rc == 0;
}

static void worker_resume_acceptors(struct worker *worker)
{
    for (size_t i = 0; i < worker->nacceptors; i++)
        if (worker->acceptors[i].is_paused && !worker_start_acceptor(&worker->acceptors[i]))
            log_at(LOG_ERROR, "%s does not accept", worker->acceptors[i].listener->name);
}

static void worker_stop_accepting(struct worker *worker)
{
    for (size_t i = 0; i < worker->nacceptors; i++) {
        uv_poll_stop(&worker->acceptors[i].poll);
        listener_stop(worker->acceptors[i].listener);
    }
}

/* ---- orders ---- */

static void worker_take_snapshot(struct worker *worker, struct snapshot *snapshot)
{
    snapshot_unref(worker->snapshot);
    worker->snapshot = snapshot;
    worker->env.snapshot = snapshot;
    worker->env.session.conf = snapshot->conf;
    worker->env.session.has_tls = snapshot->client_tls != NULL;
    worker->env.session.keyring = snapshot->keyring;
    worker->env.session.credentials = snapshot->credentials;
    lookup_queue_serve(&worker->env.lookups, snapshot->conf);
}

static void worker_obey(struct worker *worker, enum worker_order order, void (*act)(struct pair_env *env))
{
    if (worker->obeyed == 0)
        worker_stop_accepting(worker);
    worker->obeyed |= order;
    lookup_queue_serve(&worker->env.lookups, NULL);
    act(&worker->env);
}

static void worker_on_wake(uv_async_t *wake)
{
    struct worker *worker = wake->data;
    struct snapshot *snapshot = atomic_exchange(&worker->next_snapshot, NULL);
    if (snapshot)
        worker_take_snapshot(worker, snapshot);
    unsigned fresh = atomic_load(&worker->orders) & ~worker->obeyed;
    if (fresh & WORKER_DRAIN)
        worker_obey(worker, WORKER_DRAIN, pair_drain);
    if (fresh & WORKER_END)
        worker_obey(worker, WORKER_END, pair_end_all);
    if (fresh & WORKER_KILL)
        worker_obey(worker, WORKER_KILL, pair_kill_all);
    worker_end_if_empty(worker);
}

void worker_reload(struct worker *worker, struct snapshot *snapshot)
{
    snapshot_unref(atomic_exchange(&worker->next_snapshot, snapshot_ref(snapshot)));
    uv_async_send(&worker->wake);
}

void worker_tell(struct worker *worker, enum worker_order order)
{
    atomic_fetch_or(&worker->orders, (unsigned)order);
    if (!worker_is_done(worker))
        uv_async_send(&worker->wake);
}

bool worker_is_done(const struct worker *worker)
{
    return atomic_load(&worker->is_done);
}

/* ---- the thread ---- */

static void worker_main(void *argument)
{
    struct worker *worker = argument;
    int busy = uv_run(worker->loop, UV_RUN_DEFAULT);
    assert(busy == 0);
    (void)busy;
}

static bool worker_has_own_loop(const struct worker *worker)
{
    return worker->loop == &worker->own_loop;
}

bool worker_start(struct worker *worker)
{
    if (!worker_has_own_loop(worker))
        return true; /* it begins when its loop runs */
    const uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE, .stack_size = PGSEEK_STACK_BYTES};
    int rc = uv_thread_create_ex(&worker->thread, &options, worker_main, worker);
    worker->is_started = rc == 0;
    if (rc < 0)
        log_at(LOG_FATAL, "could not start worker %d: %s", worker->index, uv_strerror(rc));
    return worker->is_started;
}

/* ---- making and freeing ---- */

static int worker_open_acceptors(struct worker *worker, const struct listener_set *listeners)
{
    worker->acceptors = mem_zalloc(listeners->count * sizeof *worker->acceptors);
    if (!worker->acceptors)
        return UV_ENOMEM;
    for (size_t i = 0; i < listeners->count; i++) {
        const struct listener *listener = &listeners->listeners[i];
        if (listener->worker != worker->index && listener->worker != LISTENER_SHARED)
            continue;
        struct acceptor *acceptor = &worker->acceptors[worker->nacceptors];
        int rc = uv_poll_init(worker->loop, &acceptor->poll, listener->fd);
        if (rc < 0)
            return rc;
        acceptor->poll.data = worker;
        acceptor->listener = listener;
        worker->nacceptors++;
        if (!worker_start_acceptor(acceptor))
            return UV_EINVAL;
    }
    return 0;
}

static int worker_open_loop(struct worker *worker, const struct listener_set *listeners)
{
    int rc = uv_async_init(worker->loop, &worker->wake, worker_on_wake);
    if (rc == 0)
        rc = uv_timer_init(worker->loop, &worker->tick);
    if (rc == 0)
        rc = lookup_queue_init(&worker->env.lookups, worker->loop);
    worker->wake.data = worker;
    worker->tick.data = worker;
    return rc < 0 ? rc : worker_open_acceptors(worker, listeners);
}

struct worker *worker_new(int index, uv_loop_t *loop, struct snapshot *snapshot, const struct worker_shared *shared,
                          uv_async_t *done)
{
    struct worker *worker = mem_zalloc(sizeof *worker);
    if (!worker || (!loop && uv_loop_init(&worker->own_loop) < 0)) {
        log_at(LOG_FATAL, "could not make worker %d: out of memory or descriptors", index);
        mem_free(worker);
        return NULL;
    }
    worker->index = index;
    worker->loop = loop ? loop : &worker->own_loop;
    worker->done = done;
    worker->env.loop = worker->loop;
    worker->env.buffer = worker->buffer;
    worker->env.counts = shared->counts;
    worker->env.session.cancels = shared->cancels;
    worker->env.session.census = shared->census;
    worker->env.on_change = worker_on_change;
    worker->env.session.now = worker_now;
    worker->env.session.clock = worker;
    worker->env.session.stats = &worker->stats;
    worker_take_snapshot(worker, snapshot_ref(snapshot));
    return worker;
}

bool worker_open(struct worker *worker, const struct listener_set *listeners)
{
    worker->env.session.plans = plan_cache_new((size_t)worker->snapshot->conf->plan_cache_size,
                                               (size_t)worker->snapshot->conf->plan_cache_memory);
    int rc = worker->env.session.plans ? worker_open_loop(worker, listeners) : UV_ENOMEM;
    if (rc < 0)
        log_at(LOG_FATAL, "could not make worker %d: %s", worker->index, uv_strerror(rc));
    return rc == 0;
}

static void worker_close_handle(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void worker_join(struct worker *worker)
{
    if (worker->is_started)
        uv_thread_join(&worker->thread);
    worker->is_started = false;
    if (!worker_has_own_loop(worker))
        return;
    uv_walk(worker->loop, worker_close_handle, NULL); /* those of a worker that never ran */
    uv_run(worker->loop, UV_RUN_DEFAULT);
    uv_loop_close(worker->loop);
}

void worker_free(struct worker *worker)
{
    plan_cache_free(worker->env.session.plans);
    sink_fini(&worker->env.session.to_frontend);
    sink_fini(&worker->env.session.to_backend);
    snapshot_unref(atomic_exchange(&worker->next_snapshot, NULL));
    snapshot_unref(worker->snapshot);
    mem_free(worker->acceptors);
    mem_free(worker);
}
