/* facts.h - what the catalog says about the relations, types, functions and collations of a statement.
 *
 * It knows the rows of the facts statement (facts_sql.c) and keeps the question: what the parser wanted to know and
 * nobody has answered yet. It must not know the statement that the facts are for. */
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

/* A base type: domains are resolved by the server. */
struct facts_type {
    uint32_t oid;     /* of the base type */
    char kind;        /* typtype: b, c, e, m, p, r */
    bool has_binary;  /* it can be sent and received in binary */
    const char *name; /* schema.name */
    struct facts_operator operator[FACTS_OPERATORS];
    const char *labels; /* of an enum, in order; "" otherwise */
};

struct facts_collation {
    const char *schema; /* as asked for; NULL when none was written */
    const char *name;
    uint32_t oid;
    bool deterministic;
    const char *identity; /* name, provider and version */
};

struct facts_column {
    uint32_t relation_ord; /* which relation of the question, from 1 */
    int attnum;
    const char *name;
    uint32_t type_oid; /* as declared, a domain maybe */
    bool not_null;     /* and can be trusted, for the relation's own rows: with children, FROM ONLY */
    bool may_select;
    uint32_t collation_oid;        /* 0: the type has none */
    bool deterministic;            /* the collation is, or there is none */
    const char *collation;         /* its name, provider and version; "" without one */
    const struct facts_type *type; /* of the base type; NULL: not known */
};

/* A unique index that is valid, immediate, without predicate and expressions; of a table with children: FROM ONLY. */
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
    char kind;              /* relkind: r, p, v, m, f */
    bool has_children;      /* by inheritance */
    bool may_use;           /* USAGE on the schema */
    bool may_select;        /* SELECT on the whole table */
    const char *definition; /* of a view: its SELECT, as the server writes it under the session's search_path */
    const char *rule_xmin;  /* of a view: changes when the view is replaced */
    int *partition_attnums; /* of a partitioned table: its key's columns (0: an expression) */
    size_t npartition_attnums;
};

struct facts_function {
    const char *name;
    char volatility; /* worst of all functions of that name: i, s, v */
    bool returns_set;
    bool is_aggregate;      /* one of them, at least */
    bool is_only_aggregate; /* all of them */
    bool is_builtin;        /* all of them are pg_catalog's */
    const char *version;    /* of those that are not: another one when one is replaced; NULL: there are none */
};

/* ---- asking: each gives what is known, or NULL. What nobody has asked the server yet becomes part of the question;
 * then facts_is_asking() and the plan is to be made again when the answers are in. ---- */

/* The relation that the name means, and which question it was (its columns are found by it). NULL and !facts_is_asking:
 * there is no such relation. */
const struct facts_relation *facts_ask_relation(struct pgseek_facts *facts, const char *schema, const char *name,
                                                size_t *ord);
const struct facts_function *facts_ask_function(struct pgseek_facts *facts, const char *name);
const struct facts_type *facts_ask_type(struct pgseek_facts *facts, uint32_t oid); /* of a domain: its base type */
const struct facts_collation *facts_ask_collation(struct pgseek_facts *facts, const char *schema, const char *name);
/* The server's description of a text whose parameters are those of the original statement, same numbers and types. It
 * may be asked for several texts, one per round. Lives with the facts. */
const struct pgseek_description *facts_ask_description(struct pgseek_facts *facts, const char *sql, size_t len);
bool facts_is_asking(const struct pgseek_facts *facts);

/* What stable expressions depend on beside their arguments, as one text: for the context and for the guard. */
#define FACTS_LOCALE_SQL \
    "pg_catalog.concat_ws('/', pg_catalog.current_setting('TimeZone'), pg_catalog.current_setting('DateStyle'), " \
    "pg_catalog.current_setting('IntervalStyle'), pg_catalog.current_setting('lc_monetary'), " \
    "pg_catalog.current_setting('lc_numeric'), pg_catalog.current_setting('lc_time'), " \
    "pg_catalog.current_setting('extra_float_digits'), pg_catalog.current_setting('bytea_output'), " \
    "pg_catalog.current_setting('default_text_search_config'))"

/* What a replaced function changes: an aggregate over its rows `p` of pg_proc. Of what it calls itself nothing is seen.
 */
#define FACTS_VERSION_SQL \
    "pg_catalog.string_agg(pg_catalog.hashtextextended(pg_catalog.concat_ws(' ', p.provolatile, p.prosrc, p.probin, " \
    "pg_catalog.to_jsonb(p) OPERATOR(pg_catalog.->>) 'prosqlbody') COLLATE pg_catalog.\"C\", 0)::pg_catalog.text, " \
    "' ' ORDER BY p.oid) FILTER (WHERE p.pronamespace OPERATOR(pg_catalog.<>) 11::pg_catalog.oid)"

/* What makes the order of a collation, a row `k` of pg_collation; and of an enum, an aggregate over its rows `g` of
 * pg_enum. 100 is the database's default. */
#define FACTS_IDENTITY_SQL \
    "pg_catalog.concat(k.collname, ' ', k.collprovider, ' ', CASE WHEN k.oid OPERATOR(pg_catalog.=) " \
    "100::pg_catalog.oid THEN (SELECT pg_catalog.concat(b.datcollate, ' ', " \
    "j.db OPERATOR(pg_catalog.->>) 'datlocprovider', ' ', COALESCE(j.db OPERATOR(pg_catalog.->>) 'datlocale', " \
    "j.db OPERATOR(pg_catalog.->>) 'daticulocale'), ' ', j.db OPERATOR(pg_catalog.->>) 'datcollversion') " \
    "FROM pg_catalog.pg_database b, LATERAL (SELECT pg_catalog.to_jsonb(b)) j(db) " \
    "WHERE b.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()) ELSE k.collversion END)"
#define FACTS_LABELS_SQL "pg_catalog.array_agg(g.enumlabel ORDER BY g.enumsortorder)::pg_catalog.text"

/* The collations of all columns and COLLATE clauses that are known, each once; NULL when out of memory. */
struct facts_collation *facts_collations(const struct pgseek_facts *facts, struct arena *arena, size_t *count);
/* All functions that are known. */
const struct facts_function *facts_functions(const struct pgseek_facts *facts, size_t *count);

/* The columns of the ord-th relation in the order of the table; NULL and 0 when there are none. */
const struct facts_column *facts_columns(const struct pgseek_facts *facts, size_t ord, size_t *count);
const struct facts_unique *facts_uniques(const struct pgseek_facts *facts, size_t ord, size_t *count);

/* The relation of that number: the one that a column's relation_ord means; NULL: there is none. Pointers into the facts
 * hold until the next answer is taken. */
const struct facts_relation *facts_relation(const struct pgseek_facts *facts, size_t ord);

/* Some comparison or arithmetic operator over built-in types is found by the search_path before pg_catalog's. */
bool facts_has_foreign_operators(const struct pgseek_facts *facts);
/* The names of a description are the catalog's words too. */
void facts_note_names(struct pgseek_facts *facts, const struct pgseek_description *description);
/* Nothing has come that the client_encoding makes unsafe to quote. */
bool facts_are_readable(const struct pgseek_facts *facts);

#endif
