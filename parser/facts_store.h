/* facts_store.h - how facts are kept: shared by what asks (facts.c) and what reads the answers (facts_row.c).
 *
 * What the parser asks for is a list per kind: its first `answered` items are known, the others are the question. It
 * must not be seen outside these two files. */
#ifndef PARSER_FACTS_STORE_H
#define PARSER_FACTS_STORE_H

#include "facts.h"

/* A plain array that doubles. */
struct list {
    void *items;
    size_t count;
    size_t room;
};

/* What is wanted: a name, or the oid of a type. */
struct wanted {
    const char *schema; /* NULL: none is written */
    const char *name;
    uint32_t oid;
};

enum { WANTED_RELATION, WANTED_FUNCTION, WANTED_TYPE, WANTED_COLLATION, WANTED_KINDS };

/* A type as it was declared or asked for; of a domain the base type is told. */
struct known_type {
    uint32_t oid;
    const struct facts_type *base;
};

/* A text that is, or was, to be described. */
struct probe {
    struct probe *next;
    const char *sql;
    size_t len;
    const struct pgseek_description *description; /* NULL: not yet, or the server refused the text */
    bool is_answered;
};

struct pgseek_facts {
    struct arena arena;
    struct {
        struct list list; /* of struct wanted */
        size_t answered;
    } wanted[WANTED_KINDS];
    struct probe *probes; /* the newest first */
    struct list relations, columns, uniques, functions, types, collations;
    bool has_foreign_operators;
    bool has_ascii_trails; /* the query's: bytes beyond ASCII cannot be quoted ... */
    bool is_unreadable;    /* ... and some have come */
    bool failed;           /* out of memory: it asks for ever, and takes no answer */
};

/* Room for one more item, zeroed. NULL, and failed, when out of memory. */
void *facts_append(struct pgseek_facts *facts, struct list *list, size_t item_bytes);
bool facts_failed(const struct pgseek_facts *facts);
/* A type that has been told already. */
const struct facts_type *facts_find_type(const struct pgseek_facts *facts, uint32_t oid);

#endif
