/* order.h - the sort keys of a page: what ORDER BY means, and the tie-breakers that make it total.
 *
 * It knows names, positions and proofs; it must not know how a key is written into a text. */
#ifndef PARSER_ORDER_H
#define PARSER_ORDER_H

#include "proof.h"

struct order_key {
    struct scope_column column;
    bool descending;
    bool is_appended; /* a tie-breaker of ours */
};

struct order {
    struct order_key keys[PGSEEK_MAX_KEYS];
    size_t nkeys;
    struct proof proof;      /* after all keys: what made the order total */
    const char *tie_breaker; /* where appended keys come from, for people; "" when nothing was appended */
    bool is_trusted;         /* the order is total by key=, not by proof */
    bool has_position;       /* ORDER BY counts output columns */
};

/* Reads ORDER BY, checks every key and appends what is missing. description may be NULL. */
enum pgseek_reason order_make(struct order *order, const struct pgseek_query *query, const struct scope *scope,
                              const struct pgseek_description *description, const char *key_option) PGSEEK_MUST_USE;

#endif
