/* flood.h - how many log lines strangers may cause: a budget for each kind of line.
 *
 * It knows kinds and times, and must not know clocks, files or texts. Not for threads: log.c has the lock. */
#ifndef FLOOD_H
#define FLOOD_H

#include <stdbool.h>
#include <stdint.h>

#include "log.h"

#define FLOOD_RATE 10   /* lines of a kind in a second, on average ... */
#define FLOOD_BURST 200 /* ... and at once */

/* All zero: nothing was written yet. */
struct flood {
    struct {
        int64_t paid_ms;   /* up to this moment the lines that were written are paid for */
        int64_t said_ms;   /* when it was said last how many were left out */
        uint64_t left_out; /* since then */
    } kinds[LOG_KINDS];
};

/* Whether a line may be written now. Otherwise it is counted. */
bool flood_admits(struct flood *flood, enum log_kind kind, int64_t now_ms);
/* A line was no stranger's after all: the next one is free. */
void flood_refund(struct flood *flood, enum log_kind kind);
/* How many lines were left out, if that is to be said now: at most once a second. 0: nothing to say. */
uint64_t flood_due(struct flood *flood, enum log_kind kind, int64_t now_ms);
/* Nothing is left to be said, now or later. */
bool flood_is_over(const struct flood *flood);

#endif
