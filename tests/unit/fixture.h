/* fixture.h - facts and plans without a server: a schema is told in a few lines of text.
 *
 * It makes the rows that the facts statement would give, so that the parser's own reader takes them. One thing a line:
 *
 *     table public.booking              view, matview, foreign, partitioned, parent (has children) are tables too
 *     view public.v AS SELECT ...       and a view may have its definition
 *     partitioned public.p BY 2 3       and a partitioned table the columns of its key, by number
 *       id int8 notnull                 column: name, type, then any of notnull, noselect, ci (nondeterministic)
 *       primary booking_pkey (id)       unique indexes: primary or unique, a name, columns, then any of
 *       unique u (venue_id, no) nnd     nnd (NULLS NOT DISTINCT), unsorted (its equality is not the order's)
 *     function random v                 volatility i, s, v; then any of set, aggregate, user
 *     foreign_operators                 an operator in front of pg_catalog's
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "../../parser/pgseek.h"

/* The shop that most tests use. */
extern const char fixture_shop[];

/* The oid of a type by the name that fixtures use; 0 when there is none. */
uint32_t fixture_type(const char *name);

/* Facts of the query's relations and functions under search_path = public. Dies on a mistake in the schema. */
struct pgseek_facts *fixture_facts(const char *schema, const struct pgseek_query *query);

/* Answers what the facts ask for now, except a text to describe: that is refused unless it was described before. */
void fixture_answer(const char *schema, struct pgseek_facts *facts);

/* What the server would describe: names of columns, each with a type behind it or not, and types of parameters,
 * separated by commas; NULL columns: no description at all. */
struct fixture_description {
    struct pgseek_description description;
    struct pgseek_column columns[64];
    uint32_t params[64];
    char names[64][64];
};
const struct pgseek_description *fixture_describe(struct fixture_description *out, const char *columns,
                                                  const char *params);

/* The query with everything that a session with the best settings would say. */
struct pgseek_query *fixture_query(const char *sql, enum pgseek_reason *reason);
/* Plans in rounds. `probes` are the columns of the texts that will be asked to be described, in their order, with
 * semicolons between; NULL: every one is refused. */
struct pgseek_plan *fixture_plan_of(const char *schema, const struct pgseek_query *query, const char *key,
                                    const struct pgseek_description *description, const char *probes,
                                    enum pgseek_reason *reason);
struct pgseek_plan *fixture_plan(const char *schema, const char *sql, const char *key,
                                 const struct pgseek_description *description, enum pgseek_reason *reason);

/* Runs a test's main on a stack that may parse; returns its result. */
int fixture_run(int (*tests)(void));

#endif
