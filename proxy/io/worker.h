/* worker.h - a thread with its own loop, its own listeners and its own sessions.
 *
 * It starts, hears orders and stops; it must not know why an order is given. Nothing of a worker is shared but what its
 * start names: the snapshot, the client counter, the session numbers and the cancel keys. */
#ifndef WORKER_H
#define WORKER_H

#include <uv.h>

#include "../protocol/bytes.h"

struct listener_set;
struct cancel_map;
struct pair_counts;
struct snapshot;
struct worker;

/* What all workers share besides the snapshot. */
struct worker_shared {
    struct pair_counts *counts;
    struct cancel_map *cancels;
};

/* Orders that any thread may give; the later the stronger. */
enum worker_order {
    WORKER_DRAIN = 1, /* no new clients; idle sessions end now, the others when they become idle */
    WORKER_END = 2,   /* all sessions end now; their clients have a while to read why */
    WORKER_KILL = 4   /* all connections are closed at once */
};

/* Makes a worker that accepts from the listeners of `index` and the shared ones, and counts with all others. `done` is
 * signalled when its thread is about to end. NULL after logging the reason. */
struct worker *worker_new(int index, struct snapshot *snapshot, const struct listener_set *listeners,
                          const struct worker_shared *shared, uv_async_t *done) MUST_USE;
bool worker_start(struct worker *worker) MUST_USE;
/* Sessions that start from now on are served by this snapshot. */
void worker_reload(struct worker *worker, struct snapshot *snapshot);
void worker_tell(struct worker *worker, enum worker_order order);
bool worker_is_done(const struct worker *worker);
/* Waits for the thread's end, then frees. A worker that was never started is only freed. */
void worker_free(struct worker *worker);

#endif
