/* scope.h - what the names of a level mean: the relations of its FROM, their columns, and what is known of every row.
 *
 * It joins the tree with the facts, through joins of all kinds, derived tables, CTEs and views; it must not know ORDER
 * BY or the text. What it cannot see through is opaque: less is known then, and nothing is wrong. */
#ifndef PARSER_SCOPE_H
#define PARSER_SCOPE_H

#include "facts.h"
#include "query.h"

/* A column: which relation of the scope, which of its columns. */
struct scope_column {
    size_t relation;
    size_t column;
};

/* What a proof has rested on: the guard watches it. With neither index nor column it is the relation itself: a view's
 * rule. In any case a table that had no children must have none. */
struct scope_rest {
    const struct scope_rest *next;
    const struct facts_relation *relation;
    const struct facts_unique *unique;
    const struct facts_column *column; /* of that name, type and collation ... */
    bool must_be_not_null;             /* ... and NOT NULL */
};

struct scope_attribute {
    const char *name;                 /* NULL: an implicit output name, whose rules nobody should write again */
    const struct facts_column *facts; /* of the table or view whose column it passes on; NULL: an expression's value */
    const struct facts_relation *relation; /* that table or view */
    bool not_null;                         /* in the relation itself, before outer joins extend it ... */
    const struct scope_rest *rests;        /* ... and what that rests on */
    bool is_window;                        /* it depends on a window function, at any depth */
    bool is_computed;                      /* it is, or may be, more than a stored column at any depth */
};

/* Columns whose values tell the relation's own rows apart. */
struct scope_key {
    const size_t *columns;
    size_t ncolumns;     /* 0: there is at most one row */
    bool nulls_distinct; /* a unique index's usual rule: rows with a NULL in it are not told apart */
    bool is_primary;
    const char *name;               /* for people: the index's, or what makes it unique */
    const struct scope_rest *rests; /* the index and its columns, or all that a derived table's own proof used */
};

struct scope_relation {
    const char *qualifier; /* the alias, else the relation's own name; "" when nothing can name it */
    const char *schema;    /* what may stand in front of the qualifier: of tables without an alias; else NULL */
    const struct facts_relation *facts; /* of a table, view ...; NULL: derived */
    const struct scope_attribute *attributes;
    size_t nattributes;
    size_t ncertain; /* how many attributes are surely its first columns */
    bool is_opaque;  /* it may have more columns than these */
    bool has_window; /* some column, maybe one that is not among these, depends on a window function */
    const struct scope_key *keys;
    size_t nkeys;
    bool is_lateral;        /* its keys hold for one row of what stands before it */
    bool is_null_extended;  /* by an outer join around it */
    enum pgseek_reason why; /* when it has no keys: what a DBA should read */
};

/* What a bare name or a star of the level shows. */
struct scope_visible {
    const char *name; /* NULL: an implicit one */
    bool is_column;   /* false: a merged column that is no column of either side: of FULL JOIN, of two types */
    struct scope_column column; /* merged: the one that gives the value */
};

/* An outer join: relations are numbered in the order of the text, so each side is a range of them. */
struct scope_join {
    bool is_full;
    bool is_right; /* the left side is the one that is extended by NULLs */
    size_t first, middle, end;
    const PgQuery__Node **conjuncts; /* of ON; their names mean relations of [first, end) */
    size_t nconjuncts;
    struct scope_column (*merged)[2]; /* of USING and NATURAL */
    size_t nmerged;
};

struct scope_conjunct {
    const PgQuery__Node *node;
    bool is_extended; /* of an inner join inside the NULL-extended side of another: equalities hold, constants do not */
    size_t first, end; /* the relations that its names can mean: those of its join, or all */
};

/* What may still be spent on a statement, at all depths together: no statement makes unbounded work. When it is used up
 * less is known. */
struct scope_budget {
    size_t relations; /* to be read */
    size_t steps;     /* of proofs */
};

struct scope {
    struct pgseek_facts *facts;
    struct arena *arena;
    const struct pgseek_query *query;
    const struct pgseek_description *description; /* of the original statement: its parameters; may be NULL */
    const struct scope *around; /* the level that it stands in, read so far; NULL: none whose names it could mean */
    const PgQuery__WithClause *const *with; /* whose names are seen, the innermost first */
    size_t nwith;
    struct scope_budget *budget;
    unsigned depth;
    struct scope_relation *relations;
    size_t nrelations;
    struct scope_visible *visible;
    size_t nvisible;
    bool star_is_known;    /* visible is all that `*` gives, in that order */
    bool names_are_known;  /* a bare name that is not visible is no column of this level */
    bool has_hidden_names; /* a qualifier that is not found may still be one: the alias of a USING */
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
                              struct pgseek_facts *facts, const struct pgseek_description *description) PGSEEK_MUST_USE;
/* The same one level down. PGSEEK_REASON_TOO_LARGE: too deep, or too much has been read already. */
enum pgseek_reason scope_make_within(struct scope *scope, const struct scope *outer, const PgQuery__SelectStmt *level,
                                     const PgQuery__WithClause *const *with, size_t nwith) PGSEEK_MUST_USE;

enum scope_found {
    SCOPE_FOUND,
    SCOPE_MISSING, /* nothing here has that name */
    SCOPE_AMBIGUOUS,
    SCOPE_OPAQUE /* it may be a column of something opaque, or a merged column of a FULL JOIN */
};
/* What a column reference (no `*`) means as an input column. */
enum scope_found scope_find(const struct scope *scope, const PgQuery__ColumnRef *column, struct scope_column *out);
/* The same for names: qualifier is NULL for a bare name. */
enum scope_found scope_find_name(const struct scope *scope, const char *qualifier, const char *name,
                                 struct scope_column *out);
/* The list and all of `more`, each once. Copies: lists are shared. */
const struct scope_rest *scope_rests_join(struct arena *arena, const struct scope_rest *list,
                                          const struct scope_rest *more);

/* The relation of that alias or name; nrelations when there is none, or more than one. */
size_t scope_find_relation(const struct scope *scope, const char *schema, const char *qualifier);

/* Why something that the scope does not know by name may be no key: it may be the number of a window function, or what
 * was too deep to be looked into. PGSEEK_REASON_NONE: it may be one. */
enum pgseek_reason scope_hides_window(const struct scope *scope);

static inline const struct scope_attribute *scope_attribute(const struct scope *scope, struct scope_column column)
{
    return &scope->relations[column.relation].attributes[column.column];
}
static inline bool scope_same(struct scope_column a, struct scope_column b)
{
    return a.relation == b.relation && a.column == b.column;
}

#endif
