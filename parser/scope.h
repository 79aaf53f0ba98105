/* scope.h - what the names of a level mean: the relations of its FROM, their columns, and what is known of every row.
 *
 * It joins the tree with the facts, for inner joins of tables; it must not know ORDER BY or the text. */
#ifndef PARSER_SCOPE_H
#define PARSER_SCOPE_H

#include "facts.h"
#include "query.h"

/* A column: which relation of the scope, which of its columns. */
struct scope_column {
    size_t relation;
    size_t column;
};

struct scope_relation {
    const PgQuery__RangeVar *var;
    const char *qualifier; /* the alias, else the relation's own name */
    const struct facts_relation *facts;
    const struct facts_column *columns;
    const char **names; /* of the columns, as an alias list may have renamed them */
    size_t ncolumns;
};

struct scope_equality {
    struct scope_column a;
    struct scope_column b;
};

struct scope {
    const struct pgseek_facts *facts;
    struct arena *arena;
    struct scope_relation *relations;
    size_t nrelations;
    /* The columns that `*` gives, in that order; a bare name means one of them. */
    struct scope_column *visible;
    const char **visible_names;
    size_t nvisible;
    /* Conditions that hold for every row of the result: the conjuncts of WHERE and of the joins' ON. */
    const PgQuery__Node **conjuncts;
    size_t nconjuncts;
    /* Columns that JOIN USING equates. */
    struct scope_equality *merged;
    size_t nmerged;
};

enum pgseek_reason scope_make(struct scope *scope, struct arena *arena, const struct pgseek_query *query,
                              const struct pgseek_facts *facts) PGSEEK_MUST_USE;

enum scope_found { SCOPE_FOUND, SCOPE_MISSING, SCOPE_AMBIGUOUS };
/* What a column reference (no `*`) means as an input column. */
enum scope_found scope_find(const struct scope *scope, const PgQuery__ColumnRef *column, struct scope_column *out);
/* The same for names: qualifier is NULL for a bare name. */
enum scope_found scope_find_name(const struct scope *scope, const char *qualifier, const char *name,
                                 struct scope_column *out);
/* The relation of that alias or name; nrelations when there is none, or more than one. */
size_t scope_find_relation(const struct scope *scope, const char *schema, const char *qualifier);

const struct facts_column *scope_facts(const struct scope *scope, struct scope_column column);
static inline bool scope_same(struct scope_column a, struct scope_column b)
{
    return a.relation == b.relation && a.column == b.column;
}

#endif
