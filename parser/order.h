/* order.h - the sort keys of a page: what ORDER BY means, and the tie-breakers that make it total.
 *
 * It knows names, positions, expressions and proofs; it must not know how a key is written into a text. Keys behind a
 * total order sort nothing and are left out. */
#ifndef PARSER_ORDER_H
#define PARSER_ORDER_H

#include "outputs.h"
#include "proof.h"

struct order_key {
    bool is_column; /* a plain column of the scope ... */
    struct scope_column column;
    const PgQuery__Node *node; /* ... or an expression (a merged column, an opaque one): its tree ... */
    struct cut_range text;     /* ... and where it stands in the client's text: ORDER BY's item, or the select item's */
    size_t output;             /* QUERY_SET: the output column; else SIZE_MAX or the one that it is */
    const struct facts_type *type;
    const char *collation; /* identity; "" without one */
    bool descending;
    bool nulls_first;
    bool nullable;
    bool is_appended; /* a tie-breaker of ours */
    bool is_stable;   /* an expression that depends on settings */
    size_t relation;  /* whose index could serve it; nrelations: none or several */
    bool closes;      /* with the keys before it, the relation's row is known: it is a unique key at its end */
};

struct order {
    enum query_form form; /* the query's, or QUERY_GROUPED when the facts show an aggregate */
    struct order_key keys[PGSEEK_MAX_KEYS];
    size_t nkeys;
    struct proof proof;      /* after all keys: what made the order total */
    const char *tie_breaker; /* where appended keys come from, for people; "" when nothing was appended */
    bool is_trusted;         /* the order is total by key=, not by proof */
    bool has_position;       /* something counts output columns */
};

/* Reads ORDER BY, checks every key and appends what is missing. description is that of the level's own text. */
enum pgseek_reason order_make(struct order *order, const struct pgseek_query *query, const struct scope *scope,
                              const struct pgseek_description *description, const char *key_option) PGSEEK_MUST_USE;

#endif
