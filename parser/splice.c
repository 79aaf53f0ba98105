/* splice.c - a text made of pieces of another one: what was copied remembers where it came from.
 *
 * See splice.h. */
#include "splice.h"

#include <stdlib.h>

static bool make_room(struct splice *splice)
{
    if (splice->npieces < splice->room)
        return true;
    size_t room = splice->room ? splice->room * 2 : 16;
    struct splice_piece *pieces = realloc(splice->pieces, room * sizeof *pieces);

    if (!pieces)
        return false;
    splice->pieces = pieces;
    splice->room = room;
    return true;
}

void splice_copy(struct splice *splice, size_t start, size_t end)
{
    if (start >= end)
        return;
    if (!make_room(splice)) {
        splice->text.failed = true;
        return;
    }
    splice->pieces[splice->npieces++] =
        (struct splice_piece){.start = splice->text.len, .len = end - start, .source = start};
    text_put(&splice->text, splice->source + start, end - start);
}

void splice_fini(struct splice *splice)
{
    text_fini(&splice->text);
    free(splice->pieces);
    splice->pieces = NULL;
    splice->npieces = splice->room = 0;
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
