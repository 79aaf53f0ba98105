/* flood.c - each line costs a fixed time; a kind may be in debt for FLOOD_BURST lines. */
#include "flood.h"

#define FLOOD_COST_MS (1000 / FLOOD_RATE)
#define FLOOD_SAY_MS 1000

bool flood_admits(struct flood *flood, enum log_kind kind, int64_t now_ms)
{
    int64_t *paid_ms = &flood->kinds[kind].paid_ms;
    if (*paid_ms < now_ms)
        *paid_ms = now_ms;
    if (*paid_ms - now_ms > (int64_t)(FLOOD_BURST - 1) * FLOOD_COST_MS) {
        flood->kinds[kind].left_out++;
        return false;
    }
    *paid_ms += FLOOD_COST_MS;
    return true;
}

void flood_refund(struct flood *flood, enum log_kind kind)
{
    flood->kinds[kind].paid_ms -= FLOOD_COST_MS;
}

uint64_t flood_due(struct flood *flood, enum log_kind kind, int64_t now_ms)
{
    uint64_t left_out = flood->kinds[kind].left_out;
    if (left_out == 0 || now_ms - flood->kinds[kind].said_ms < FLOOD_SAY_MS)
        return 0;
    flood->kinds[kind].left_out = 0;
    flood->kinds[kind].said_ms = now_ms;
    return left_out;
}

bool flood_is_over(const struct flood *flood)
{
    for (int kind = 0; kind < LOG_KINDS; kind++)
        if (flood->kinds[kind].left_out > 0)
            return false;
    return true;
}
