/* relation.h - one item of FROM that is no plain join, as a relation: a table, view, CTE, sub-select, function.
 *
 * It knows what each kind of item promises about its columns and keys; it must not know how items are joined. */
#ifndef PARSER_RELATION_H
#define PARSER_RELATION_H

#include "scope.h"

/* Whether the node is a join that is read as one: without an alias of its own. */
bool relation_is_join(const PgQuery__Node *node);

/* Reads the item. What it cannot see through is opaque. False when out of memory. */
bool relation_make(struct scope_relation *relation, const struct scope *scope,
                   const PgQuery__Node *node) PGSEEK_MUST_USE;

/* relation_function.c: a function, without its alias. False when out of memory. */
bool relation_read_function(struct scope_relation *relation, const struct scope *scope,
                            const PgQuery__RangeFunction *item) PGSEEK_MUST_USE;

#endif
