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

/* Where a byte of the new text stood in the old one. False when it was not copied. */
bool splice_source(const struct splice_piece *pieces, size_t npieces, size_t offset, size_t *source);

#endif
