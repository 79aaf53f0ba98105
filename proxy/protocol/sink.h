/* sink.h - what is to be sent to one peer next: pieces of the read buffer and bytes made on the way, in order.
 *
 * A sink lives in the worker for the length of one event and must not know links or sessions; whoever filled it sends
 * its pieces with one call and clears it. Borrowed pieces die with the read buffer. */
#ifndef SINK_H
#define SINK_H

#include <sys/uio.h>

#include "bytes.h"

#define SINK_PIECES 64

struct sink {
    struct {
        const uint8_t *ptr; /* NULL: the piece is at `offset` of `made` */
        size_t offset;
        size_t len;
    } piece[SINK_PIECES];
    size_t count;
    struct buf made;
};

void sink_fini(struct sink *sink);
void sink_clear(struct sink *sink);
bool sink_is_empty(const struct sink *sink);
bool sink_failed(const struct sink *sink); /* out of memory: the peer must be dropped */
/* Borrows; neighbouring runs melt into one piece. */
void sink_borrow(struct sink *sink, struct span bytes);
/* The buffer to append made bytes to; call sink_made() when done. */
struct buf *sink_make(struct sink *sink);
void sink_made(struct sink *sink);
void sink_copy(struct sink *sink, struct span bytes);
/* The pieces as iovecs; at most SINK_PIECES. Valid until the sink or the read buffer changes. */
size_t sink_iovec(const struct sink *sink, struct iovec *iov);
size_t sink_len(const struct sink *sink);

#endif
