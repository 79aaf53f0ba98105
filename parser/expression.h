/* expression.h - what an expression of a level depends on: columns, settings, the clock; and whether it may be NULL.
 *
 * It knows scopes and proofs and must not know why it is asked. What it cannot see through counts as the worst. */
#ifndef PARSER_EXPRESSION_H
#define PARSER_EXPRESSION_H

#include "proof.h"

struct expression {
    struct scope_column *columns; /* of the level, in the order of their first use */
    size_t ncolumns;
    bool is_plain; /* no more than the columns above stand behind it: no sub-select, nothing opaque */
    bool is_nullable;
    bool is_stable;             /* its value may depend on settings */
    bool is_computed;           /* it depends on what a sub-select, CTE or view computes */
    enum pgseek_reason refused; /* a system column, a window function, the clock ...; else NONE */
    size_t relation;            /* all columns are of this one; nrelations: none, or of several */
    const char *collations;     /* the identities of all that take part, the database's default first */
};

/* False when out of memory. */
bool expression_read(struct expression *out, PgQuery__Node *node, const struct scope *scope,
                     const struct proof *proof) PGSEEK_MUST_USE;

/* The identities of the collations of all columns of the statement: for values whose own is not known. */
const char *expression_all_collations(const struct scope *scope);

/* A column under a deterministic COLLATE: what sorts by it tells the column's values apart. */
bool expression_is_collated(const PgQuery__Node *node, const struct scope *scope, struct scope_column *column);

#endif
