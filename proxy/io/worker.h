/* worker.h - a loop with its own listeners and its own sessions, in a thread of its own or in the main one.
 *
 * It starts, hears orders and stops; it must not know why an order is given. Nothing of a worker is shared but what its
 * start names: the snapshot, the counters of clients, the session numbers and the cancel keys. */
#ifndef WORKER_H
#define WORKER_H

#include <uv.h>

#include "../protocol/bytes.h"

struct listener_set;
struct cancel_map;
struct census;
struct pair_counts;
struct snapshot;
struct worker;

/* What all workers share besides the snapshot. */
struct worker_shared {
    struct pair_counts *counts;
    struct cancel_map *cancels;
    struct census *census;
};

/* Orders that any thread may give; the later the stronger. */
enum worker_order {
    WORKER_DRAIN = 1, /* no new clients; idle sessions end now, the others when they become idle */
    WORKER_END = 2,   /* all sessions end now; their clients have a while to read why */
    WORKER_KILL = 4   /* all connections are closed at once */
};

/* `loop` is borrowed from a thread with a stack of PGSEEK_STACK_BYTES, or NULL: the worker will have a thread of its
 * own. `done` is signalled when it has ended. NULL after logging the reason. */
struct worker *worker_new(int index, uv_loop_t *loop, struct snapshot *snapshot, const struct worker_shared *shared,
                          uv_async_t *done) MUST_USE;
/* Begins to listen on the listeners of its index and the shared ones. False after logging the reason. */
bool worker_open(struct worker *worker, const struct listener_set *listeners) MUST_USE;
bool worker_start(struct worker *worker) MUST_USE;
/* Sessions that start from now on are served by this snapshot. */
void worker_reload(struct worker *worker, struct snapshot *snapshot);
void worker_tell(struct worker *worker, enum worker_order order);
bool worker_is_done(const struct worker *worker);
/* Waits for the end of its thread, if it has one. */
void worker_join(struct worker *worker);
/* Frees a worker that is joined; a borrowed loop must be closed before. */
void worker_free(struct worker *worker);

#endif
