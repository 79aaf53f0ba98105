/* number.h - LIMIT and OFFSET: what they are, and their value.
 *
 * It computes as PostgreSQL would, or says that it cannot; it must not know where the clause stands or what the value
 * is good for. */
#ifndef PARSER_NUMBER_H
#define PARSER_NUMBER_H

#include "tree.h"

/* One of the two clauses. */
struct number {
    enum pgseek_number_kind kind;
    const PgQuery__Node *node; /* in the query's tree; NULL when absent */
    bool has_operator;         /* arithmetic with operators that are looked up in the search_path */
};

/* Looks at a clause's expression (NULL: absent). False when it is beyond what number_value() can compute. */
bool number_make(struct number *number, const PgQuery__Node *node) PGSEEK_MUST_USE;

enum pgseek_eval number_value(const struct number *number, const struct pgseek_value *params, size_t nparams,
                              int64_t *out);

#endif
