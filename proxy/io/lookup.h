/* lookup.h - users' secrets asked for while their clients wait: few at a time, the others in order.
 *
 * It knows the loop and its thread pool, where the asking blocks (lookup_ask.h); it must not know clients. Strangers
 * can make it ask, so both what runs and what waits is bounded. */
#ifndef LOOKUP_H
#define LOOKUP_H

#include <uv.h>

#include "../protocol/bytes.h"

struct secret;
struct session_target;
struct lookup;

/* Each occupies a thread of the pool, which name look-ups need, too. */
#define LOOKUP_RUNNING_MAX 2
#define LOOKUP_WAITING_MAX 64

/* A worker's. All zero but `loop` at first. */
struct lookup_queue {
    uv_loop_t *loop;
    struct lookup *first, *last; /* those that wait */
    unsigned waiting;
    unsigned running;
};

/* As session_secret(). The lookup is gone when it is called; the secret is wiped behind it. */
typedef void (*lookup_on_done)(void *owner, const struct secret *secret, const char *none, const char *failed);

/* Asks the hosts of the target; `user` and `dbname` are copied. NULL when out of memory or when too
 * many wait; else `on_done` is called from the loop, once, unless it is cancelled first. */
struct lookup *lookup_start(struct lookup_queue *queue, const struct session_target *target, const char *user,
                            const char *dbname, lookup_on_done on_done, void *owner) MUST_USE;
/* Nobody waits for it any more. */
void lookup_cancel(struct lookup *lookup);

#endif
