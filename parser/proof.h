/* proof.h - which columns of a joined row follow from others, so that an order can be shown to be total.
 *
 * It knows unique indexes, equalities and constants of inner joins, and must not know ORDER BY or directions. A column
 * is known when its value follows from the columns assumed so far; a relation is known when its whole row does. */
#ifndef PARSER_PROOF_H
#define PARSER_PROOF_H

#include "scope.h"

struct proof {
    const struct scope *scope;
    size_t *base;       /* per relation: number of its first column */
    size_t ncolumns;    /* of all relations */
    bool *known;        /* per column */
    bool *non_null;     /* per column: no row of the result has NULL there, by the statement or by the catalog */
    bool *by_statement; /* per column: the statement alone says so */
    struct scope_equality *equalities;
    size_t nequalities;
    const struct facts_unique **used; /* per relation: the index that made it known */
};

/* Assumes nothing but the statement's constants. description may be NULL. False when out of memory. */
bool proof_make(struct proof *proof, const struct scope *scope,
                const struct pgseek_description *description) PGSEEK_MUST_USE;

/* Assumes a column and draws all conclusions. */
void proof_assume(struct proof *proof, struct scope_column column);
bool proof_is_total(const struct proof *proof);
bool proof_is_non_null(const struct proof *proof, struct scope_column column);

/* The unique index whose missing columns are the best tie-breakers next; `preferred` is the relation that is made
 * known first. NULL with *denied set when only columns that the role may not read, or that cannot travel, would do. */
const struct facts_unique *proof_next_key(struct proof *proof, size_t preferred, size_t *relation, bool *denied);
bool proof_is_known(const struct proof *proof, struct scope_column column);

/* The relation's column of that attnum; false when there is none. */
bool proof_column(const struct scope *scope, size_t relation, int attnum, struct scope_column *out);

#endif
