/* plan.h - everything about one page that does not depend on a cursor: keys, cuts, contract, what the guard watches.
 *
 * It holds copies only, so that it outlives the query and the facts it was made from; it must not know any values. */
#ifndef PARSER_PLAN_H
#define PARSER_PLAN_H

#include "cut.h"
#include "order.h"
#include "predicate.h"
#include "probe.h"

/* What the hidden columns are called; a statement that uses such names itself is not rewritten. */
#define PLAN_KEY_NAME PROBE_KEY_NAME
#define PLAN_ROW_NAME "pgseek_r"

struct plan_key {
    struct pgseek_key is; /* expr: as it is written into the select list and the predicate: the client's own text of it,
                           * alias.column for what pgseek appends, c<n> for an output column under QUERY_SET */
    struct facts_operator operators[FACTS_OPERATORS];
    const char *cast; /* to the base type, quoted: where operators do not look through a domain; else NULL */
    bool is_spelled;  /* its expr means the same in ORDER BY, where a bare name would be an output column */
    bool is_appended; /* a tie-breaker of ours: the client's ORDER BY does not have it */
    size_t relation;  /* of the level's FROM; keys of two relations never share an index */
    bool closes;      /* with the keys before it its relation's row is known: the tie group behind it is small */
};

/* A relation whose name must still mean the same. */
struct plan_relation {
    const char *written; /* quoted, schema in front if one was written */
    const char *resolved_schema;
    const char *resolved_name;
    uint32_t oid;          /* 0: there was no such relation (a CTE's name) */
    const char *rule_xmin; /* of a view: must still be the same; NULL: no view */
    bool must_be_childless;
    const char *layout; /* its columns as the guard writes them: number, type, collation and name; NULL: no matter */
};

/* A unique index that the proof used. */
struct plan_index {
    uint32_t oid;
    uint32_t relation_oid;
    const char *attnums;
};

/* A column that must still be of that name, type and collation, and NOT NULL. */
struct plan_column {
    uint32_t relation_oid;
    int attnum;
    const char *name; /* the catalog's */
    uint32_t type_oid;
    uint32_t collation_oid;
    bool must_be_not_null;
};

/* A function outside pg_catalog that the statement, or a view of it, calls. */
struct plan_function {
    const char *name;
    const char *version; /* by FACTS_VERSION_SQL */
};

/* What the order of a key rests on: a collation's version, or the labels of an enum. */
struct plan_identity {
    uint32_t oid;
    const char *text; /* by FACTS_IDENTITY_SQL, FACTS_LABELS_SQL */
};

/* A bare * in the level's select list. */
enum plan_star {
    PLAN_STAR_NONE,
    PLAN_STAR_LAST, /* the last select item is the only one: columns of another relation come last by themselves */
    PLAN_STAR_AMONG
};

struct pgseek_plan {
    struct arena arena;
    const char *sql;
    size_t len;
    enum pgseek_verb verb;
    enum query_form form;
    struct cut cut;
    bool has_targets;         /* the select list is not empty */
    struct query_bytes core;  /* of the level */
    struct query_bytes frame; /* the query's: the whole statement with the level taken out; len 0 for a plain SELECT */
    size_t level_ordinal;     /* the query's */
    bool is_inner;
    const char **level_names; /* inner levels: the level's own output columns, in order */
    size_t nlevel_names;
    size_t noutputs; /* columns of the level */
    struct cut_range
        order_rest;     /* QUERY_DISTINCT_ON: what ORDER BY has behind the keys, from behind the last key's item */
    bool has_volatile;  /* some part may give other rows each time it is run (of operators and casts nothing is known):
                         * the branches of a UNION would not see the same ones */
    bool reads_outside; /* an inner level that reads from the statement's WITH clause */
    struct query_bytes contract;
    bool is_ascii; /* so are the text and the names in the contract */
    int *filter_params;
    size_t nfilter_params;
    struct plan_key *keys;
    size_t nkeys;
    bool is_partitioned; /* the first key's table is, by the first key */
    bool depends_on_settings;
    bool is_locking;
    enum plan_star star;
    enum pgseek_number_kind limit_kind;
    int64_t limit; /* of a literal one */
    uint32_t *param_oids;
    size_t nparams;
    struct plan_relation *relations; /* first those that the statement names, in the order of its text ... */
    size_t nrelations;
    size_t nnames; /* ... so many of them */
    struct plan_index *indexes;
    size_t nindexes;
    struct plan_column *columns;
    size_t ncolumns;
    struct plan_identity *collations; /* of all that the statement sees, when a key may have one */
    size_t ncollations;
    struct plan_identity *enums; /* of keys */
    size_t nenums;
    struct plan_function *functions;
    size_t nfunctions;
    const char *summary;
};

/* watch.c: what the guard is to look at. False when out of memory. */
bool plan_watch(struct pgseek_plan *plan, const struct pgseek_query *query, const struct scope *scope,
                const struct order *order) PGSEEK_MUST_USE;

/* contract.c: the bytes that a cursor is bound to. False when out of memory. */
bool plan_make_contract(struct pgseek_plan *plan, const struct pgseek_query *query) PGSEEK_MUST_USE;

#endif
