/* scope.h - what the names of a level mean: the relations of its FROM, their columns, and what is known of every row.
 *
 * It joins the tree with the facts, through joins of all kinds, derived tables, CTEs and views; it must not know ORDER BY
 * or the text. What it cannot see through is opaque: less is known then, and nothing is wrong. */
#ifndef PARSER_SCOPE_H
#define PARSER_SCOPE_H

#include "facts.h"
#include "query.h"

/* A column: which relation of the scope, which of its columns. */
struct scope_column {
    size_t relation;
    size_t column;
};

struct scope_attribute {
    const char *name;                 /* NULL: an implicit output name, whose rules nobody should write again */
    const struct facts_column *facts; /* of the table or view whose column it passes on; NULL: an expression's value */
    bool not_null;                    /* in the relation itself, before outer joins extend it */
    bool is_window;                   /* it depends on a window function, at any depth */
    bool is_computed;                 /* it is, or may be, more than a stored column at any depth */
};

/* What a proof has rested on: the guard watches it. */
struct scope_rest {
    const struct scope_rest *next;
    const struct facts_relation *relation;
    const struct facts_unique *unique; /* NULL: the column */
    const struct facts_column *column; /* of that name, type and collation ... */
    bool must_be_not_null;             /* ... and NOT NULL */
};

/* Columns whose values tell the relation's own rows apart. */
struct scope_key {
    const size_t *columns;
    size_t ncolumns; /* 0: there is at most one row */
    bool nulls_distinct; /* a unique index's usual rule: rows with a NULL in it are not told apart */
    bool is_primary;
    const char *name; /* for people: the index's, or what makes it unique */
    const struct scope_rest *rests; /* the index itself, or all that a derived table's own proof used */
};

struct scope_relation {
    const char *qualifier; /* the alias, else the relation's own name; "" when nothing can name it */
    const char *schema;    /* what may stand in front of the qualifier: of tables without an alias; else NULL */
    const struct facts_relation *facts; /* of a table, view ...; NULL: derived */
    const struct scope_attribute *attributes;
    size_t nattributes;
    bool is_opaque; /* it may have more columns than these, or of other names */
    const struct scope_key *keys;
    size_t nkeys;
    bool is_lateral;          /* its keys hold for one row of what stands before it */
    bool is_null_extended;    /* by an outer join around it */
    enum pgseek_reason why;   /* when it has no keys: what a DBA should read */
};

/* What a bare name or a star of the level shows. */
struct scope_visible {
    const char *name;
    bool is_column; /* false: the merged column of a FULL JOIN USING, which is no column of either side */
    struct scope_column column; /* merged: the left side's */
};

/* An outer join: relations are numbered in the order of the text, so each side is a range of them. */
struct scope_join {
    bool is_full;
    bool is_right; /* the left side is the one that is extended by NULLs */
    size_t first, middle, end;
    const PgQuery__Node **conjuncts; /* of ON */
    size_t nconjuncts;
    struct scope_column (*merged)[2]; /* of USING and NATURAL */
    size_t nmerged;
};

struct scope_conjunct {
    const PgQuery__Node *node;
    bool is_extended; /* of an inner join inside the NULL-extended side of another: equalities hold, constants do not */
};

struct scope {
    struct pgseek_facts *facts;
    struct arena *arena;
    const struct pgseek_query *query;
    struct scope_relation *relations;
    size_t nrelations;
    struct scope_visible *visible;
    size_t nvisible;
    bool star_is_known; /* visible is all that `*` gives, in that order */
    /* Conditions that hold for every row of the result, or for every row that is not NULL-extended there. */
    struct scope_conjunct *conjuncts;
    size_t nconjuncts;
    /* Columns that USING and NATURAL equate in inner joins. */
    struct scope_column (*merged)[2];
    size_t nmerged;
    struct scope_join *joins;
    size_t njoins;
};

/* The scope of a level (of the query's own, of a derived table's ...). `with` are the WITH clauses whose names it sees,
 * its own first. PGSEEK_REASON_NONE also when something is opaque. */
enum pgseek_reason scope_make(struct scope *scope, struct arena *arena, const struct pgseek_query *query,
                              const PgQuery__SelectStmt *level, const PgQuery__WithClause *const *with, size_t nwith,
                              struct pgseek_facts *facts) PGSEEK_MUST_USE;

enum scope_found {
    SCOPE_FOUND,
    SCOPE_MISSING,   /* nothing here has that name */
    SCOPE_AMBIGUOUS,
    SCOPE_OPAQUE     /* it may be a column of something opaque, or a merged column of a FULL JOIN */
};
/* What a column reference (no `*`) means as an input column. */
enum scope_found scope_find(const struct scope *scope, const PgQuery__ColumnRef *column, struct scope_column *out);
/* The same for names: qualifier is NULL for a bare name. */
enum scope_found scope_find_name(const struct scope *scope, const char *qualifier, const char *name,
                                 struct scope_column *out);
/* The relation of that alias or name; nrelations when there is none, or more than one. */
size_t scope_find_relation(const struct scope *scope, const char *schema, const char *qualifier);

static inline const struct scope_attribute *scope_attribute(const struct scope *scope, struct scope_column column)
{
    return &scope->relations[column.relation].attributes[column.column];
}
static inline bool scope_same(struct scope_column a, struct scope_column b)
{
    return a.relation == b.relation && a.column == b.column;
}

#endif
