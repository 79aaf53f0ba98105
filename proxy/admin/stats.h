/* stats.h - the counters: one table, read by metrics, console and documents.
 *
 * Each worker owns one struct stats and alone writes to it, with relaxed atomics; readers sum over all. It must not
 * know what is counted beyond its name and help. Functions that count take NULL for "nobody counts". */
#ifndef STATS_H
#define STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include "../../parser/pgseek.h"

/* id, name, help */
#define STATS_COUNTERS(X) \
    X(CLIENTS, "client_connections_total", "client connections accepted") \
    X(LOGINS, "logins_total", "sessions that reached their first ReadyForQuery") \
    X(LOGIN_FAILURES, "login_failures_total", "sessions that ended before it") \
    X(CANCELS, "cancel_requests_total", "cancel requests forwarded") \
    X(PROTOCOL_ERRORS, "protocol_violations_total", "sessions ended for a protocol violation of either side") \
    X(TAGGED, "tagged_total", "tagged statements that were bound or queried") \
    X(REWRITES, "rewrites_total", "pages that were rewritten") \
    X(PASSES, "passes_total", "tagged statements that were passed untouched") \
    X(REJECTS, "rejects_total", "tagged statements that were rejected") \
    X(SIDE_QUERIES, "side_queries_total", "round trips made for facts") \
    X(GUARD_MISMATCHES, "guard_mismatches_total", "pages whose guard found the facts changed") \
    X(RETRIES, "page_retries_total", "pages that were run again with fresh facts") \
    X(PLAN_HITS, "plan_cache_hits_total", "tagged statements whose plan was known") \
    X(PLAN_MISSES, "plan_cache_misses_total", "tagged statements that had to be planned")

enum stats_counter {
#define X(id, name, help) STATS_##id,
    STATS_COUNTERS(X)
#undef X
        STATS_COUNT
};

struct stats {
    _Atomic uint64_t counter[STATS_COUNT];
    _Atomic uint64_t passed[PGSEEK_REASON_COUNT]; /* by reason */
    _Atomic uint64_t rejected[PGSEEK_CODE_COUNT]; /* by code */
};

static inline void stats_add(struct stats *stats, enum stats_counter counter)
{
    if (stats)
        atomic_fetch_add_explicit(&stats->counter[counter], 1, memory_order_relaxed);
}

/* A tagged statement that was passed, or rejected: the total and the counter of its reason or code. */
static inline void stats_pass(struct stats *stats, enum pgseek_reason reason)
{
    stats_add(stats, STATS_PASSES);
    if (stats)
        atomic_fetch_add_explicit(&stats->passed[reason], 1, memory_order_relaxed);
}

static inline void stats_reject(struct stats *stats, enum pgseek_code code)
{
    stats_add(stats, STATS_REJECTS);
    if (stats)
        atomic_fetch_add_explicit(&stats->rejected[code], 1, memory_order_relaxed);
}

const char *stats_name(enum stats_counter counter);
const char *stats_help(enum stats_counter counter);

/* Adds one worker's counters to a sum that nobody else writes to. */
void stats_sum(struct stats *sum, const struct stats *one);

#endif
