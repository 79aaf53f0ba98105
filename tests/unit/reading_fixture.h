/* reading_fixture.h - one statement read as a level and as a derived table, over a schema that has a bit of everything.
 *
 * Unlike fixture.h it knows the parser's inner headers: it hands out scopes and proofs themselves. */
#ifndef READING_FIXTURE_H
#define READING_FIXTURE_H

#include "../../parser/source.h"
#include "fixture.h"

struct reading {
    struct pgseek_query *asker; /* whose facts these are; any statement will do */
    struct pgseek_facts *facts;
    PgQuery__ParseResult *parsed;
    PgQuery__SelectStmt nothing; /* a level that reads nothing: what a derived table stands in */
    struct arena arena;
    struct scope scope;
    struct proof proof;
    struct scope outer;
    struct scope_relation derived;
};

/* Reads in as many rounds of facts as it takes. */
void reading_start(struct reading *reading, const char *sql);
void reading_finish(struct reading *reading);
/* The column that "qualifier.name" means. */
struct scope_column reading_find(const struct reading *reading, const char *dotted);

#endif
