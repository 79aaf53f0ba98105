/* sink.c - collects the pieces that one peer is to be sent. */
#include "sink.h"

void sink_fini(struct sink *sink)
{
    buf_fini(&sink->made);
    sink->count = 0;
}

void sink_clear(struct sink *sink)
{
    sink->count = 0;
    buf_trim(&sink->made, (size_t)64 * 1024);
}

bool sink_is_empty(const struct sink *sink)
{
    return sink->count == 0;
}

bool sink_failed(const struct sink *sink)
{
    return sink->made.failed;
}

size_t sink_len(const struct sink *sink)
{
    size_t len = 0;
    for (size_t i = 0; i < sink->count; i++)
        len += sink->piece[i].len;
    return len;
}

/* Every piece becomes a made one: a sink with too many pieces is one copy, never a second send. */
static void sink_melt(struct sink *sink)
{
    struct buf whole = {0};
    for (size_t i = 0; i < sink->count; i++) {
        const uint8_t *from = sink->piece[i].ptr ? sink->piece[i].ptr : sink->made.ptr + sink->piece[i].offset;
        buf_put(&whole, from, sink->piece[i].len);
    }
    whole.failed |= sink->made.failed;
    buf_fini(&sink->made);
    sink->made = whole;
    sink->piece[0].ptr = NULL;
    sink->piece[0].offset = 0;
    sink->piece[0].len = whole.len;
    sink->count = whole.len > 0 ? 1 : 0; /* nothing is left when memory ran out at once */
}

static void sink_add(struct sink *sink, const uint8_t *ptr, size_t offset, size_t len)
{
    if (sink->count == SINK_PIECES)
        sink_melt(sink);
    sink->piece[sink->count].ptr = ptr;
    sink->piece[sink->count].offset = offset;
    sink->piece[sink->count].len = len;
    sink->count++;
}

void sink_borrow(struct sink *sink, struct span bytes)
{
    if (bytes.len == 0)
        return;
    if (sink->count > 0 && sink->piece[sink->count - 1].ptr &&
        sink->piece[sink->count - 1].ptr + sink->piece[sink->count - 1].len == bytes.ptr) {
        sink->piece[sink->count - 1].len += bytes.len;
        return;
    }
    sink_add(sink, bytes.ptr, 0, bytes.len);
}

/* Bytes of `made` that no piece covers yet start here. */
static size_t sink_covered(const struct sink *sink)
{
    for (size_t i = sink->count; i > 0; i--)
        if (!sink->piece[i - 1].ptr)
            return sink->piece[i - 1].offset + sink->piece[i - 1].len;
    return 0;
}

struct buf *sink_make(struct sink *sink)
{
    if (sink->count == SINK_PIECES)
        sink_melt(sink);
    return &sink->made;
}

void sink_made(struct sink *sink)
{
    size_t from = sink_covered(sink);
    size_t len = sink->made.len - from;
    if (len == 0)
        return;
    if (sink->count > 0 && !sink->piece[sink->count - 1].ptr) {
        sink->piece[sink->count - 1].len += len;
        return;
    }
    sink_add(sink, NULL, from, len);
}

void sink_copy(struct sink *sink, struct span bytes)
{
    buf_put_span(sink_make(sink), bytes);
    sink_made(sink);
}

size_t sink_iovec(const struct sink *sink, struct iovec *iov)
{
    for (size_t i = 0; i < sink->count; i++) {
        const uint8_t *from = sink->piece[i].ptr ? sink->piece[i].ptr : sink->made.ptr + sink->piece[i].offset;
        iov[i].iov_base = (void *)(uintptr_t)from;
        iov[i].iov_len = sink->piece[i].len;
    }
    return sink->count;
}
