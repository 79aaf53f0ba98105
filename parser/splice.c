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

/* Whether the text is well-formed enough as UTF-8 to count its characters; else every byte is one. */
static bool is_utf8(const char *text, size_t len)
{
    size_t owed = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool continues = (c & 0xC0) == 0x80;

        if (continues != (owed > 0))
            return false;
        owed = continues ? owed - 1 : c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;
    }
    return owed == 0;
}

static bool starts_character(const char *text, size_t i, bool utf8)
{
    return !utf8 || ((unsigned char)text[i] & 0xC0) != 0x80;
}

int splice_position(const struct splice_map *map, int position)
{
    bool utf8 = is_utf8(map->source, map->source_len);
    size_t offset = 0;
    size_t source;
    int count = 0;

    while (offset < map->len) {
        count += starts_character(map->text, offset, utf8);
        if (count == position)
            break;
        offset++;
    }
    if (position < 1 || !splice_source(map->pieces, map->npieces, offset, &source))
        return 0;
    count = 0;
    for (size_t i = 0; i <= source; i++)
        count += starts_character(map->source, i, utf8);
    return count;
}
