/* probe.h - texts that the server is to describe, to learn names and types that only it knows.
 *
 * It knows cuts and must not know what the answers are for. */
#ifndef PARSER_PROBE_H
#define PARSER_PROBE_H

#include "query.h"

/* What the hidden columns are called: this and a number from 1. A statement that uses such names is not rewritten. */
#define PROBE_KEY_NAME "pgseek_k"

/* Appends the level's text without ORDER BY, LIMIT and locks, behind the WITH clause that it sees, with the expressions
 * as hidden columns behind its own; a set operation has room for none. False when out of memory. */
bool probe_make(struct text *out, const struct pgseek_query *query, const char *const *exprs,
                size_t nexprs) PGSEEK_MUST_USE;

#endif
