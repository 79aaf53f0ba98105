/* upstream.h - the way to a server: the hosts of a [databases] line, tried in order until one accepts.
 *
 * It knows names, addresses and connecting, and must not know what is said on the connection. One attempt lives as one
 * object; it calls back exactly once, unless it is cancelled first. */
#ifndef UPSTREAM_H
#define UPSTREAM_H

#include <stdint.h>
#include <uv.h>

#include "../protocol/bytes.h"

struct session_target;
struct upstream;

/* fd >= 0: connected to that host of the target; the descriptor is the callee's. fd < 0: `why` tells what failed, for
 * a person. The upstream is gone when it is called. */
typedef void (*upstream_on_done)(void *owner, int fd, int host_index, const char *why);

/* `timeout_ms` bounds each address, and each name look-up; 0: the system's own time-out. NULL when out of memory. The
 * target's database must live until the call-back or the cancel. */
struct upstream *upstream_new(uv_loop_t *loop, const struct session_target *target, uint64_t timeout_ms,
                              upstream_on_done on_done, void *owner) MUST_USE;
/* Begins; the call-back may come before this returns. */
void upstream_start(struct upstream *upstream);
/* Gives up without a call-back. */
void upstream_cancel(struct upstream *upstream);
/* To be called about once a second: ends an attempt that has taken too long. */
void upstream_tick(struct upstream *upstream);

#endif
