/* predicate.h - the condition for "after this row", written as SQL.
 *
 * It knows keys, their order, their NULLs and operators, and must not know where the condition will stand. Backward is
 * forward with every direction and every null placement turned round. */
#ifndef PARSER_PREDICATE_H
#define PARSER_PREDICATE_H

#include "arena.h"
#include "facts.h"

struct predicate_key {
    const char *expr;                       /* how the statement's rows spell it */
    const struct facts_operator *operators; /* of its btree, by enum facts_strategy */
    size_t relation;                        /* keys of two relations never share an index */
    unsigned param;                         /* n of the $n that holds the boundary's value */
    bool descending;
    bool nulls_first;
    bool nullable;
    bool value_is_null;
};

/* Writes the condition. leading_bound adds a comparison of the first key alone, which is what partition pruning
 * understands. nkeys is at least 1. When no row can follow the boundary, the condition is FALSE. */
void predicate_write(struct text *out, const struct predicate_key *keys, size_t nkeys, bool leading_bound);

/* The same condition as disjoint branches: each is one seek in an index, or a block of NULLs. At most
 * PREDICATE_MAX_BRANCHES are worth a UNION; nkeys of one direction, operator and relation and no NULLs give one. */
#define PREDICATE_MAX_BRANCHES 8
size_t predicate_branch_count(const struct predicate_key *keys, size_t nkeys);
void predicate_write_branch(struct text *out, const struct predicate_key *keys, size_t nkeys, size_t branch,
                            bool leading_bound);

/* How many keys from the left bound the whole condition: (k1, ...) >= (v1, ...) holds for every row that follows. */
size_t predicate_bound_length(const struct predicate_key *keys, size_t nkeys);

/* The keys of the opposite way. */
void predicate_reverse(struct predicate_key *keys, size_t nkeys);

#endif
