/* catalog.h - side queries: how they are asked on the client's own server connection, and what their rows said.
 *
 * It composes messages and collects answers, and must not know when they are sent or to whose group they belong. The
 * statements are the parser's; they run under a reserved name and are closed at once. */
#ifndef CATALOG_H
#define CATALOG_H

#include "planned.h"

/* Of facts, in all rounds; a server that sends more is not believed. */
#define CATALOG_MAX_ROWS 20000
#define CATALOG_MAX_BYTES (8u << 20)

struct catalog {
    struct context context;
    struct pgseek_facts *facts;
    struct description description; /* of the statement */
    struct description probe;       /* of the text that the facts want described ... */
    bool is_probe_described;        /* ... unless the server refused it */
    size_t nrows, nbytes;           /* of facts */
    bool failed;                    /* an answer was malformed, too large, or did not fit in memory */
};

void catalog_fini(struct catalog *catalog);
/* Empty, with the facts of a query (NULL: none are wanted). */
bool catalog_start(struct catalog *catalog, const struct pgseek_query *query) MUST_USE;

/* Appends C P B E C C for the context statement, and for what the facts ask for now. `name` is the reserved name. */
void catalog_put_context(struct buf *out, const char *name);
void catalog_put_facts(struct buf *out, const char *name, const struct pgseek_facts *facts);
/* The same for a command without parameters and rows. */
void catalog_put_command(struct buf *out, const char *name, const char *sql);
/* How many replies each of them gets, in order: 3 1 2 (D...C) 3 3. */

/* One DataRow body of an answer. */
void catalog_context_row(struct catalog *catalog, struct span body);
void catalog_facts_row(struct catalog *catalog, struct span body);
/* All answers of a round are in: the facts take them. */
void catalog_answered(struct catalog *catalog);

#endif
