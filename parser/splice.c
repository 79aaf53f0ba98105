/* splice.c - a text made of pieces of another one: what was copied remembers where it came from.
 *
 * See splice.h. */
#include "splice.h"

void splice_copy(struct splice *splice, size_t start, size_t end)
{
    if (start >= end)
        return;
    if (splice->npieces == SPLICE_MAX_PIECES) {
        splice->text.failed = true;
        return;
    }
    splice->piece[splice->npieces++] =
        (struct splice_piece){.start = splice->text.len, .len = end - start, .source = start};
    text_put(&splice->text, splice->source + start, end - start);
}

bool splice_source(const struct splice_piece *pieces, size_t npieces, size_t offset, size_t *source)
{
    for (size_t i = 0; i < npieces; i++) {
        if (offset < pieces[i].start || offset - pieces[i].start >= pieces[i].len)
            continue;
        *source = pieces[i].source + (offset - pieces[i].start);
        return true;
    }
    return false;
}
