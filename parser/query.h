/* query.h - one statement, understood without a catalog: its tree, its cuts, and what it mentions.
 *
 * It knows the text and nothing else; what the names in it mean is for scope and order to say. Immutable once made. */
#ifndef PARSER_QUERY_H
#define PARSER_QUERY_H

#include "arena.h"
#include "cut.h"
#include "lex.h"
#include "number.h"
#include "tree.h"

/* A relation as it is written, anywhere in the statement; each spelling once. */
struct query_relation {
    const char *schema; /* NULL when none is written */
    const char *name;
};

/* A function as it is written; each name once, with the worst of its places. */
struct query_function {
    const char *name;
    bool in_output; /* called for each row that is fetched: in the select list or in ORDER BY, at any depth */
    bool at_level;  /* the same, but not inside a sub-select */
};

/* Bytes that stand for a tree. */
struct query_bytes {
    uint8_t *ptr;
    size_t len;
};

/* How a predicate can be added to the level, as far as its tree tells. */
enum query_form {
    QUERY_PLAIN,       /* in WHERE */
    QUERY_GROUPED,     /* GROUP BY, HAVING: in HAVING (an aggregate without them: order.c finds it by the facts) */
    QUERY_DISTINCT,    /* SELECT DISTINCT: in WHERE; keys are output columns */
    QUERY_DISTINCT_ON, /* in WHERE; keys are the ON expressions, the rest of ORDER BY stays as it is */
    QUERY_WINDOW,      /* window functions: outside of a wrap, over hidden columns that the core itself selects */
    QUERY_SET          /* UNION, INTERSECT, EXCEPT, VALUES, TABLE: outside of a wrap, over the output columns */
};

struct pgseek_query {
    struct arena arena;
    struct lex lex;
    PgQuery__ParseResult *parsed;
    enum pgseek_verb verb;                /* by the text, or by what the caller says that stands around it */
    bool is_framed;                       /* EXPLAIN or DECLARE stands in the text itself */
    const PgQuery__SelectStmt *statement; /* in parsed: the whole SELECT */
    const PgQuery__SelectStmt *level;     /* in it: the SELECT that owns LIMIT */
    bool is_inner;                        /* the level is not the whole statement */
    bool reads_outside;                   /* an inner level that reads from the statement's WITH clause */
    size_t level_ordinal;                 /* how many SELECTs a walk over the tree meets before the level */
    enum query_form form;
    /* WITH clauses whose names the level sees, its own first. Of a clause in which the level itself stands, without
     * RECURSIVE, only what comes before: a copy that is cut off there. */
    const PgQuery__WithClause **with;
    size_t nwith;
    struct cut cut;
    struct number limit;
    struct number offset;
    struct query_relation *relations;
    size_t nrelations;
    struct query_function *functions;
    size_t nfunctions;
    int param_count;
    bool has_ascii_trails;   /* as pgseek_reading has it */
    int cursor_param;        /* n of the $n that carries the cursor; 0: none */
    struct query_bytes core; /* the level without order, limit, offset and places: what a rewrite must keep */
    struct query_bytes
        frame; /* the whole statement with the level taken out; a plain SELECT that is its own level: none */
    struct query_bytes contract; /* the statement as a cursor is bound to it, without the meaning of names */
    int *filter_params;          /* n of $n by first use in the contract's tree */
    size_t nfilter_params;
};

/* mention.c: fills in relations, functions and param_count. */
enum pgseek_reason query_collect_mentions(struct pgseek_query *query) PGSEEK_MUST_USE;

/* essence.c: the trees as bytes. */

/* Fills in core, frame, contract and filter_params. False when out of memory. */
bool query_make_essence(struct pgseek_query *query) PGSEEK_MUST_USE;

/* The bytes that two levels share when they differ in nothing but order, limit, offset and places in the text.
 * Consumes the level's own such parts. False when out of memory. */
bool query_core(PgQuery__SelectStmt *level, struct query_bytes *core) PGSEEK_MUST_USE;

/* The bytes of a whole statement whose level was taken out; consumes its places. False when out of memory. */
bool query_frame(PgQuery__Node *statement, struct query_bytes *frame) PGSEEK_MUST_USE;

#endif
