/* proof.h - which columns of a joined row follow from others, so that an order can be shown to be total.
 *
 * It knows keys, equalities, constants and outer joins, and must not know ORDER BY or directions. A column is known when
 * its value (NULL is one) follows from the columns assumed so far; a relation is known when its whole row does, or that
 * it is the NULLs of an outer join. */
#ifndef PARSER_PROOF_H
#define PARSER_PROOF_H

#include "scope.h"

struct proof {
    const struct scope *scope;
    size_t *base;    /* per relation: number of its first column */
    size_t ncolumns; /* of all relations */
    bool *known;     /* per column */
    bool *non_null;  /* per column: no row of the result has NULL there, by the statement or by the catalog */
    bool *own_non_null; /* the same before outer joins extend the relation */
    bool *by_statement; /* per column: the statement alone says so */
    struct scope_column (*equalities)[2];
    size_t nequalities;
    const struct scope_key **used; /* per relation: the key that made it known, or a mark that an outer join did */
};

/* Assumes nothing but the statement's constants. description (of the original's parameters) may be NULL. False when out
 * of memory. */
bool proof_make(struct proof *proof, const struct scope *scope,
                const struct pgseek_description *description) PGSEEK_MUST_USE;

/* Assumes a column and draws all conclusions. */
void proof_assume(struct proof *proof, struct scope_column column);
/* Every row of the FROM is told apart by what was assumed. */
bool proof_is_total(const struct proof *proof);
bool proof_is_known(const struct proof *proof, struct scope_column column);
bool proof_is_relation_known(const struct proof *proof, size_t relation);
/* No row of the result has NULL there. */
bool proof_is_non_null(const struct proof *proof, struct scope_column column);

/* The key whose missing columns are the best tie-breakers next; `preferred` is the relation that is made known first.
 * NULL with *denied set when only columns that the role may not read, or that cannot travel, would do; usable(column)
 * says which columns may be taken (NULL: all). */
const struct scope_key *proof_next_key(struct proof *proof, size_t preferred,
                                       bool (*usable)(const void *context, struct scope_column column),
                                       const void *context, size_t *relation, bool *denied);

/* All that the conclusions so far rest on, for the guard. NULL: nothing. */
const struct scope_rest *proof_rests(const struct proof *proof);

#endif
