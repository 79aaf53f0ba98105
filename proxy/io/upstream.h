/* upstream.h - the way to a server: the hosts of a [databases] line, tried in order until one accepts, with TLS where
 * it is to be.
 *
 * It knows names, addresses, connecting and sslmode, and must not know what is said on the connection. One attempt
 * lives as one object; it calls back exactly once, unless it is cancelled first. */
#ifndef UPSTREAM_H
#define UPSTREAM_H

#include <stdint.h>
#include <uv.h>

#include "../protocol/address.h"
#include "../protocol/bytes.h"

struct conf;
struct session_target;
struct tls;
struct tls_context;
struct upstream;

struct upstream_result {
    int fd;                        /* connected to that host of the target; -1: to none */
    int host_index;                /* of the target's hosts */
    struct server_address address; /* of that host; set where fd >= 0 */
    struct tls *tls;               /* on the connection; NULL: in clear text. This and fd are the callee's */
    const char *why;               /* fd < 0: what failed, for a person */
};

/* The upstream is gone when it is called. */
typedef void (*upstream_on_done)(void *owner, const struct upstream_result *result);

struct upstream_setup {
    struct tls_context *tls; /* the line's; NULL: none of its hosts is reached with TLS */
    uint64_t timeout_ms; /* bounds each address, TLS included, and each name look-up; 0: the system's own time-out */
};

/* NULL when out of memory. The target's settings and what the setup names must live until the call-back or the cancel.
 */
struct upstream *upstream_new(uv_loop_t *loop, const struct session_target *target, const struct upstream_setup *setup,
                              upstream_on_done on_done, void *owner) MUST_USE;
/* Begins; the call-back may come before this returns. */
void upstream_start(struct upstream *upstream);
/* Gives up without a call-back. */
void upstream_cancel(struct upstream *upstream);
/* To be called about once a second: ends an attempt that has taken too long. */
void upstream_tick(struct upstream *upstream);

#endif
