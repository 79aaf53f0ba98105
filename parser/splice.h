/* splice.h - a text made of pieces of another one: what was copied remembers where it came from.
 *
 * It knows offsets and must not know SQL. Positions that point into copied text can be mapped back. */
#ifndef PARSER_SPLICE_H
#define PARSER_SPLICE_H

#include "arena.h"

struct splice_piece {
    size_t start; /* in the new text */
    size_t len;
    size_t source; /* in the old one */
};

struct splice {
    const char *source;
    struct text text;
    struct splice_piece *pieces; /* owned */
    size_t npieces;
    size_t room;
};

/* Copies source[start, end). */
void splice_copy(struct splice *splice, size_t start, size_t end);
void splice_fini(struct splice *splice);

/* Two texts and what the new one has of the old one. */
struct splice_map {
    const char *source;
    size_t source_len;
    const char *text;
    size_t len;
    const struct splice_piece *pieces;
    size_t npieces;
};

/* Where a character of the new text (from 1, in characters) stood in the old one; 0 when it was not copied. */
int splice_position(const struct splice_map *map, int position);

/* Where a byte of the new text stood in the old one. False when it was not copied. */
bool splice_source(const struct splice_piece *pieces, size_t npieces, size_t offset, size_t *source);

#endif
