/* source.h - a sub-select, CTE or view as a relation: its columns and the keys that its own proof gives.
 *
 * It knows scopes and proofs, one level down, and must not know the level that reads it. */
#ifndef PARSER_SOURCE_H
#define PARSER_SOURCE_H

#include "proof.h"

/* An output column of a sub-select. */
struct source_output {
    const char *name;    /* NULL: an implicit one */
    PgQuery__Node *node; /* NULL: it came out of a star */
    bool is_column;      /* a plain column of the sub-select's scope */
    struct scope_column column;
};

/* A sub-select that is no set operation. */
struct source {
    const PgQuery__SelectStmt *select;
    struct scope scope;
    struct proof proof; /* nothing assumed */
    struct source_output *outputs;
    size_t noutputs;
    size_t ncertain; /* outputs before the first star over something opaque */
};

/* Fills in attributes, keys, is_opaque, has_window and why; the caller has set the names that it is known by. False
 * when out of memory. */
bool source_make(struct scope_relation *relation, const struct scope *outer, const PgQuery__SelectStmt *select,
                 const PgQuery__WithClause *const *with, size_t nwith) PGSEEK_MUST_USE;

/* candidate.c: the keys of a sub-select, as positions of its outputs; at most SOURCE_MAX_KEYS. */
#define SOURCE_MAX_KEYS 8
bool source_find_keys(struct scope_relation *relation, struct source *source) PGSEEK_MUST_USE;

/* A key of all columns of the relation: of DISTINCT and set operations. */
bool source_key_of_all(struct scope_relation *relation, struct arena *arena, const char *name) PGSEEK_MUST_USE;

#endif
