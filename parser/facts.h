/* facts.h - what the catalog says about the relations and functions of a statement.
 *
 * It knows the rows of the facts statement (facts_sql.c) and must not know the statement that they were asked for. */
#ifndef PARSER_FACTS_H
#define PARSER_FACTS_H

#include "arena.h"
#include "pgseek.h"

/* An operator of a default btree operator class; name is NULL when there is none. */
struct facts_operator {
    const char *schema;
    const char *name;
};

/* The strategies of a btree, in their order. */
enum facts_strategy { FACTS_LESS, FACTS_LESS_EQUAL, FACTS_EQUAL, FACTS_GREATER_EQUAL, FACTS_GREATER, FACTS_OPERATORS };

struct facts_column {
    uint32_t relation_ord; /* which relation of the question, from 1 */
    int attnum;
    const char *name;
    uint32_t type_oid; /* as declared, a domain maybe */
    bool not_null;     /* and can be trusted */
    bool may_select;
    uint32_t collation_oid; /* 0: the type has none */
    bool deterministic;     /* the collation is, or there is none */
    const char *collation;  /* its name, provider and version; "" without one */
    uint32_t base_oid;      /* the type behind domains */
    char type_kind;         /* typtype of it: b, c, e, m, p, r */
    bool has_binary;        /* it can be sent and received in binary */
    const char *type_name;  /* schema.name of it */
    struct facts_operator operator[FACTS_OPERATORS];
    const char *labels; /* of an enum, in order; "" otherwise */
};

/* A unique index that is valid, immediate, without predicate and expressions. */
struct facts_unique {
    uint32_t relation_ord;
    uint32_t index_oid;
    const char *name;
    int *attnums;
    size_t nattnums;
    const char *attnums_text; /* the same, with blanks between */
    bool is_primary;
    bool nulls_not_distinct;
    bool is_sort_unique; /* what it holds to be equal, the default order does too */
};

struct facts_relation {
    uint32_t ord;
    uint32_t oid;
    const char *schema;
    const char *name;
    char kind; /* relkind: r, p, v, m, f */
    bool has_children;
    bool may_use;    /* USAGE on the schema */
    bool may_select; /* SELECT on the whole table */
};

struct facts_function {
    const char *name;
    char volatility; /* worst of all functions of that name: i, s, v */
    bool returns_set;
    bool is_aggregate;
};

struct pgseek_facts {
    struct arena arena;
    struct facts_relation *relations;
    size_t nrelations;
    size_t relation_room;
    struct facts_column *columns; /* those of one relation stand together, by attnum */
    size_t ncolumns;
    size_t column_room;
    struct facts_unique *uniques;
    size_t nuniques;
    size_t unique_room;
    struct facts_function *functions;
    size_t nfunctions;
    size_t function_room;
    /* Some =, +, -, * or / over built-in types is found by the search_path before pg_catalog's. */
    bool has_foreign_operators;
};

/* The relation that the question's ord-th name (from 1) means; NULL when it means none. */
const struct facts_relation *facts_relation(const struct pgseek_facts *facts, size_t ord);
/* Its columns in the order of the table; NULL and 0 when there are none. */
const struct facts_column *facts_columns(const struct pgseek_facts *facts, size_t ord, size_t *count);
const struct facts_function *facts_function(const struct pgseek_facts *facts, const char *name);

#endif
