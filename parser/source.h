/* source.h - a sub-select, CTE or view as a relation: its columns and the keys that its own proof gives.
 *
 * It knows scopes and proofs, one level down, and must not know the level that reads it. */
#ifndef PARSER_SOURCE_H
#define PARSER_SOURCE_H

#include "scope.h"

/* Fills in attributes, keys, is_opaque and why; the caller has set the names that it is known by. Column aliases rename
 * a prefix. depth bounds views of views. False when out of memory. */
bool source_make(struct scope_relation *relation, struct scope *scope, const PgQuery__SelectStmt *select,
                 const PgQuery__WithClause *const *with, size_t nwith, const PgQuery__Alias *alias,
                 unsigned depth) PGSEEK_MUST_USE;

#endif
