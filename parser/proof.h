/* proof.h - which columns of a joined row follow from others, so that an order can be shown to be total.
 *
 * It knows keys, equalities, constants and outer joins, and must not know ORDER BY or directions. A column is known
 * when its value (NULL is one) follows from the columns assumed so far; a relation is known when its whole row does, or
 * that it is the NULLs of an outer join. */
#ifndef PARSER_PROOF_H
#define PARSER_PROOF_H

#include "scope.h"

/* What is known in one case: always, or when an outer join has found a row for a kept side that is known. Each case
 * knows what the case around it knows, about the relations of [first, end), and more. */
struct proof_case {
    const struct scope_join *join; /* NULL: always */
    size_t around;                 /* the case around it */
    size_t first, end;             /* the relations it is about: the side that the join may extend */
    size_t kept_first, kept_end;   /* the other side, all of it known */
    size_t first_column;
    size_t ncolumns;
    bool *known;                   /* per column, from first_column */
    const struct scope_key **used; /* per relation, from first: the key that made it known, or a mark for a join */
    struct scope_column (*equalities)[2]; /* of the join's own condition */
    size_t nequalities;
};

struct proof {
    const struct scope *scope;
    size_t *base;       /* per relation: number of its first column */
    size_t ncolumns;    /* of all relations */
    bool *non_null;     /* per column: no row of the result has NULL there, by the statement or by the catalog */
    bool *own_non_null; /* the same before outer joins extend the relation */
    bool *by_statement; /* per column: the statement alone says so of the latter */
    bool *is_compared;  /* per column: something rests on its type and collation */
    struct scope_column (*equalities)[2];
    size_t nequalities;
    const struct scope_rest *around_rests; /* columns of levels around this one that were compared */
    struct proof_case *cases;              /* the first is `always` */
    size_t ncases;
    /* All cases' marks in one piece each, so that a trial can be undone. */
    bool *known;
    size_t nknown;
    const struct scope_key **used;
    size_t nused;
    bool *known_at_first; /* as proof_make left them */
    const struct scope_key **used_at_first;
    bool *known_before; /* before a trial */
    const struct scope_key **used_before;
};

/* Assumes nothing but the statement's constants. description (of the original's parameters) may be NULL: then $n is
 * taken to have the type it is compared with. False when out of memory. */
bool proof_make(struct proof *proof, const struct scope *scope,
                const struct pgseek_description *description) PGSEEK_MUST_USE;
/* Forgets what was assumed. */
void proof_reset(struct proof *proof);

/* What is assumed between the two is forgotten; one trial at a time. */
void proof_try(const struct proof *proof);
void proof_undo(struct proof *proof);

/* Assumes a column and draws all conclusions. */
void proof_assume(struct proof *proof, struct scope_column column);
/* Every row of the FROM is told apart by what was assumed. */
bool proof_is_total(const struct proof *proof);
bool proof_is_known(const struct proof *proof, struct scope_column column);
bool proof_is_relation_known(const struct proof *proof, size_t relation);
/* No row of the result has NULL there. */
bool proof_is_non_null(const struct proof *proof, struct scope_column column);

/* tie_breaker.c: the key whose missing columns are the best tie-breakers next; `preferred` is the relation that is made
 * known first. NULL with *denied set when only columns that the role may not read, or that cannot travel, would do;
 * usable(column) says which columns may be taken (NULL: all). */
const struct scope_key *proof_next_key(struct proof *proof, size_t preferred,
                                       bool (*usable)(const void *context, struct scope_column column),
                                       const void *context, size_t *relation, bool *denied);

/* All that the conclusions so far rest on, for the guard. NULL: nothing. */
const struct scope_rest *proof_rests(const struct proof *proof);
/* What proof_is_non_null rests on for one column. */
const struct scope_rest *proof_non_null_rests(const struct proof *proof, struct scope_column column);

/* equality.c: what the conditions of the scope say, before any conclusion is drawn. */
void proof_read_conditions(struct proof *proof, const struct pgseek_description *description);

/* ---- small questions that several files ask ---- */

/* Whether the key holds for all rows: the usual unique index says nothing about rows with a NULL in it. */
bool proof_key_holds(const struct proof *proof, size_t relation, const struct scope_key *key);

static inline size_t proof_column_id(const struct proof *proof, struct scope_column column)
{
    return proof->base[column.relation] + column.column;
}

static inline bool proof_column_is_own_non_null(const struct proof *proof, struct scope_column column)
{
    return proof->own_non_null[proof_column_id(proof, column)];
}

/* Whether a join may extend the relations of [first, end) by NULLs. */
static inline bool proof_join_extends(const struct scope_join *join, size_t first, size_t end)
{
    bool in_left = first >= join->first && end <= join->middle;
    bool in_right = first >= join->middle && end <= join->end;

    return join->is_full ? in_left || in_right : join->is_right ? in_left : in_right;
}

#endif
