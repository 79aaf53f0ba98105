/* stats.c - names and help of the counters, and the sum over workers. */
#include "stats.h"

#include <assert.h>
#include <stddef.h>

static const struct {
    const char *name;
    const char *help;
} stats_table[STATS_COUNT] = {
#define X(id, name, help) [STATS_##id] = {name, help},
    STATS_COUNTERS(X)
#undef X
};

const char *stats_name(enum stats_counter counter)
{
    assert(counter < STATS_COUNT);
    return stats_table[counter].name;
}

const char *stats_help(enum stats_counter counter)
{
    assert(counter < STATS_COUNT);
    return stats_table[counter].help;
}

static void stats_sum_row(_Atomic uint64_t *sum, const _Atomic uint64_t *one, size_t count)
{
    for (size_t i = 0; i < count; i++)
        atomic_fetch_add_explicit(&sum[i], atomic_load_explicit(&one[i], memory_order_relaxed), memory_order_relaxed);
}

void stats_sum(struct stats *sum, const struct stats *one)
{
    stats_sum_row(sum->counter, one->counter, STATS_COUNT);
    stats_sum_row(sum->passed, one->passed, PGSEEK_REASON_COUNT);
    stats_sum_row(sum->rejected, one->rejected, PGSEEK_CODE_COUNT);
}
