/* lookup.h - users' secrets asked for while their clients wait: few at a time, the others in order.
 *
 * It knows the loop and its thread pool, where the asking blocks (lookup_ask.h), and which connections are kept between
 * two questions; it must not know clients. Strangers can make it ask, so what runs, what waits and what is kept is
 * bounded. */
#ifndef LOOKUP_H
#define LOOKUP_H

#include <uv.h>

#include "../protocol/bytes.h"

struct conf;
struct lookup;
struct lookup_conn;
struct session_looked_up;
struct session_target;

/* Each occupies a thread of the pool, which name look-ups need, too. */
#define LOOKUP_RUNNING_MAX 2
#define LOOKUP_WAITING_MAX 64
/* Connections that wait for the next question, and how long each does. */
#define LOOKUP_KEPT_MAX 2
#define LOOKUP_KEPT_MS 60000
/* The same in the client's own database, where auth_dbname is not set: DROP DATABASE waits five seconds for others to
 * go, and then fails. */
#define LOOKUP_KEPT_OWN_MS 3000

/* A worker's. All zero at first. */
struct lookup_queue {
    uv_loop_t *loop;
    uv_timer_t timer;            /* until the first of those kept has waited long enough */
    const struct conf *conf;     /* in force; NULL: nothing is kept */
    struct lookup *first, *last; /* those that wait */
    unsigned waiting;
    unsigned running;
    unsigned nkept;
    struct lookup_kept {
        struct lookup_conn *conn;
        uint64_t until_ms;
    } kept[LOOKUP_KEPT_MAX]; /* the one that has waited longest first */
};

int lookup_queue_init(struct lookup_queue *queue, uv_loop_t *loop) MUST_USE;
/* The settings that new questions will come with, or NULL when none will: connections made by others are closed. They
 * must live until the next call. */
void lookup_queue_serve(struct lookup_queue *queue, const struct conf *conf);
/* Closes the connections that are kept, and the handle. Questions that run end later. */
void lookup_queue_close(struct lookup_queue *queue);

/* As session_secret(). The lookup is gone when it is called; the secret is wiped behind it. */
typedef void (*lookup_on_done)(void *owner, const struct session_looked_up *answer);

/* Asks the hosts of the target; `user` and `dbname` are copied. NULL when out of memory or when too
 * many wait; else `on_done` is called from the loop, once, unless it is cancelled first. */
struct lookup *lookup_start(struct lookup_queue *queue, const struct session_target *target, const char *user,
                            const char *dbname, lookup_on_done on_done, void *owner) MUST_USE;
/* Nobody waits for it any more. */
void lookup_cancel(struct lookup *lookup);

#endif
