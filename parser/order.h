/* order.h - the sort keys of a page: what ORDER BY means, and the tie-breakers that make it total.
 *
 * It knows names, positions, expressions and proofs; it must not know how a key is written into a text. Keys behind a
 * total order sort nothing and are left out. */
#ifndef PARSER_ORDER_H
#define PARSER_ORDER_H

#include "expression.h"
#include "outputs.h"

struct order_key {
    bool is_column; /* a plain column of the scope ... */
    struct scope_column column;
    PgQuery__Node
        *node; /* ... or an expression (a merged column, an opaque one): its tree; NULL: `written` says it ... */
    struct cut_range text; /* ... and where it stands in the client's text: ORDER BY's item, or the select item's */
    const char *written;   /* what is in no text of the client's: a column that came out of a star, or of key= */
    size_t output;         /* QUERY_SET: the output column; else SIZE_MAX or the one that it is */
    const struct facts_type *type;
    const char *collation; /* identity; "" without one */
    bool descending;
    bool nulls_first;
    bool nullable;
    bool is_appended; /* a tie-breaker of ours */
    bool is_stable;   /* an expression that depends on settings */
    size_t relation;  /* whose index could serve it; nrelations: none or several */
    bool closes;      /* with the keys before it, the relation's row is known: it is a unique key at its end */
    const struct scope_column *uses; /* columns of the level that it is made of */
    size_t nuses;
    bool is_loose; /* more stands behind it than those columns: a sub-select, a set operation's arm */
};

/* What tells the rows of a level apart. */
enum order_total {
    ORDER_ROWS,    /* the rows of FROM: a proof */
    ORDER_GROUPS,  /* GROUP BY's items */
    ORDER_OUTPUTS, /* DISTINCT, UNION ...: all output columns */
    ORDER_ON,      /* DISTINCT ON's items */
    ORDER_NOTHING  /* UNION ALL, VALUES: only key= can say */
};

struct order {
    /* what it is made from */
    const struct pgseek_query *query;
    const struct scope *scope;
    const struct pgseek_description *description; /* of the level's own text */
    struct outputs outputs;
    enum order_total total;
    struct order_key *groups; /* of GROUP BY or DISTINCT ON */
    size_t ngroups;
    /* what it is */
    enum query_form form; /* the query's, or QUERY_GROUPED when the facts show an aggregate */
    struct order_key keys[PGSEEK_MAX_KEYS];
    size_t nkeys;
    struct proof proof;      /* after all keys: what made the order total */
    const char *tie_breaker; /* where appended keys come from, for people; "" when nothing was appended */
    struct cut_range rest;   /* DISTINCT ON: what ORDER BY has behind the keys, from behind the last key's item */
    bool is_trusted;         /* the order is total by key=, not by proof */
    struct order_key first;  /* ORDER BY's first item that sorts: a page has at least one key */
    bool has_first;
    bool has_position; /* something counts output columns */
};

/* Reads ORDER BY, checks every key and appends what is missing. description is that of the level's own text. What this
 * gives is to be believed only when the facts are not asking. */
enum pgseek_reason order_make(struct order *order, const struct pgseek_query *query, const struct scope *scope,
                              const struct pgseek_description *description, const char *key_option) PGSEEK_MUST_USE;

/* How the level's rows spell the key; lives in the scope's arena. */
const char *order_text(const struct order *order, const struct order_key *key);
/* Whether that means the same in ORDER BY: a bare name there is an output column first. */
bool order_is_spelled(const struct order *order, const struct order_key *key);

/* ---- for order's own files ---- */

/* An item of ORDER BY, DISTINCT ON or GROUP BY: *sorts is false for a constant, which sorts nothing. */
enum pgseek_reason order_item(struct order *order, PgQuery__Node *node, struct cut_range text, bool input_first,
                              struct order_key *key, bool *sorts) PGSEEK_MUST_USE;
/* The output column as a key. */
enum pgseek_reason order_output(const struct order *order, size_t index, struct order_key *key,
                                bool *sorts) PGSEEK_MUST_USE;
bool order_same_key(const struct order_key *a, const struct order_key *b);
bool order_has_key(const struct order *order, const struct order_key *key);
/* Adds a key, unless it sorts nothing behind those that are there. */
enum pgseek_reason order_add(struct order *order, struct order_key key) PGSEEK_MUST_USE;
/* Asks for the types that are still unknown and checks all. */
enum pgseek_reason order_resolve_types(struct order *order) PGSEEK_MUST_USE;
/* Whether columns of the type can be sorted and carried. */
bool order_type_travels(const struct facts_type *type);

#endif
