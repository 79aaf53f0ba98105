/* level.h - which SELECT of a statement is the page: the one that owns ORDER BY and LIMIT.
 *
 * It knows sub-selects of FROM and WITH and must not know texts or catalogs. LIMIT in a LATERAL, correlated, scalar, IN
 * or EXISTS sub-select makes no page. */
#ifndef PARSER_LEVEL_H
#define PARSER_LEVEL_H

#include "arena.h"
#include "tree.h"

struct level {
    PgQuery__SelectStmt *select;
    const PgQuery__WithClause **with; /* whose names it sees, its own first; cut off at the CTE that it is in */
    size_t nwith;
    int cte_location; /* of the CTE of the statement's own WITH clause that it is in; -1: none */
    bool is_carried; /* nothing but the statement's own WITH clause lies between, so it can move to that clause's end */
    bool is_recursive; /* it is part of a recursive CTE, or its names are */
};

/* More than anybody writes; what goes beyond counts as several. */
#define LEVEL_MAX 16

struct levels {
    struct level item[LEVEL_MAX];
    size_t count;        /* levels below the statement: sub-selects with ORDER BY and LIMIT */
    bool has_unordered;  /* a sub-select has LIMIT without ORDER BY */
    bool has_correlated; /* a LATERAL sub-select has both: a page for each row outside */
    bool has_too_many;
};

/* Finds the levels below the statement. False when out of memory. */
bool levels_find(struct levels *levels, struct arena *arena, PgQuery__SelectStmt *statement) PGSEEK_MUST_USE;

/* Whether the level reads a table that is called like a CTE of the clause, at any depth. */
bool level_reads(PgQuery__SelectStmt *level, const PgQuery__WithClause *with);
/* The first token of the level's first output expression; -1 when the tree does not know one. */
int level_location(const PgQuery__SelectStmt *select);
/* How many SELECTs a walk over root meets before this one; and back. */
size_t level_ordinal(ProtobufCMessage *root, const PgQuery__SelectStmt *select);
PgQuery__SelectStmt *level_by_ordinal(ProtobufCMessage *root, size_t ordinal);

/* Takes the level's contents out and leaves an empty SELECT in its place. NULL when out of memory; to be freed with
 * pg_query__select_stmt__free_unpacked(). */
PgQuery__SelectStmt *level_take(PgQuery__SelectStmt *level) PGSEEK_MUST_USE;

#endif
