/* target.h - what fuzz targets share: how a broken property is reported, a clock that stands, what a sink holds.
 *
 * It must not know any target's property. */
#ifndef TARGET_H
#define TARGET_H

#include <stdlib.h>

#include "../../proxy/protocol/sink.h"

static inline void require(bool is_true)
{
    if (!is_true)
        abort();
}

static inline int64_t fixed_clock(void *clock)
{
    (void)clock;
    return 1800000000;
}

/* Moves what a session has made to the end of a buffer. */
static inline void collect(struct sink *sink, struct buf *to)
{
    struct iovec iov[SINK_PIECES];
    size_t count = sink_iovec(sink, iov);
    for (size_t i = 0; i < count; i++)
        buf_put(to, iov[i].iov_base, iov[i].iov_len);
    sink_clear(sink);
}

#endif
