/* sorting.h - the part of a cursor's contract that says in which order its keys stand.
 *
 * It is made of four marks, so that a cursor that does not fit can be told what has changed; it must not know how
 * cursors are sealed or statements run. */
#ifndef SORTING_H
#define SORTING_H

#include "cursor.h"

struct context;

/* Four marks of four bytes each. A token is sealed, so they need not withstand anybody: they notice a change. */
enum sorting_mark {
    SORTING_KEYS,     /* digest: types and directions */
    SORTING_NULLS,    /* no digest: a bit for each nullable key, and one for each that has its NULLs first */
    SORTING_LABELS,   /* digest: collations with their versions, labels of enums */
    SORTING_SETTINGS, /* digest: client_encoding where a key is text */
    SORTING_MARKS
};
#define SORTING_MARK (CURSOR_DIGEST / SORTING_MARKS)

/* The plan's part of the contract. False when out of memory. */
bool sorting_digest(const struct pgseek_plan *plan, const struct context *context, uint8_t out[CURSOR_DIGEST]) MUST_USE;

/* Whether a cursor's position can be sought in the plan's order; if not, `detail` says in a sentence what has changed.
 * The same keys stand in the same order whether they may be NULL or not, so a key that has become NOT NULL is no
 * obstacle unless the cursor holds a NULL there. */
bool sorting_fits(const struct pgseek_plan *plan, const struct context *context, const uint8_t part[CURSOR_DIGEST],
                  const struct cursor *cursor, char *detail, size_t size) MUST_USE;

#endif
