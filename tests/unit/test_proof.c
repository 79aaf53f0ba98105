/* test_proof.c - what is known of joined rows and of derived tables: each rule beside the rule that looks right.
 *
 * It looks into scopes and proofs themselves; how an order uses them is in test_order.c. Random statements against a
 * server are in tests/e2e/test_claims.py. */
#include "../../parser/source.h"
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char schema[] = "table public.a\n"
                             "  id int4 notnull\n"
                             "  b_id int4\n"
                             "  f float8\n"
                             "  w text notnull\n"
                             "  primary a_pkey (id)\n"
                             "table public.b\n"
                             "  id int4 notnull\n"
                             "  u int8 notnull\n"
                             "  n int4\n"
                             "  primary b_pkey (id)\n"
                             "  unique b_u (u)\n"
                             "table public.c\n"
                             "  x int4 notnull\n"
                             "  y int4 notnull\n"
                             "  z int4\n"
                             "  primary c_pkey (x, y)\n"
                             "table public.maybe\n"
                             "  x int4\n"
                             "  y int4 notnull\n"
                             "  unique maybe_x (x)\n"
                             "table public.once\n"
                             "  x int4\n"
                             "  unique once_x (x) nnd\n"
                             "table public.bag\n"
                             "  v int4 notnull\n"
                             "  g int4\n"
                             "table public.word\n"
                             "  w text notnull ci\n"
                             "  primary word_pkey (w)\n"
                             "parent public.par\n"
                             "  id int4 notnull\n"
                             "  primary par_pkey (id)\n"
                             "partitioned public.part BY 1\n"
                             "  id int4 notnull\n"
                             "  primary part_pkey (id)\n"
                             "matview public.mat\n"
                             "  id int4\n"
                             "  unique mat_id (id)\n"
                             "view public.plain AS SELECT a.id, b.u FROM a LEFT JOIN b ON b.id = a.b_id\n"
                             "  id int4\n"
                             "  u int8\n"
                             "view public.numbered AS SELECT a.id, row_number() OVER () AS no FROM a\n"
                             "  id int4\n"
                             "  no int8\n"
                             "view public.secret\n"
                             "  id int4\n"
                             "function count i aggregate\n"
                             "function sum i aggregate\n"
                             "function row_number i\n"
                             "function lower i\n"
                             "function random v\n"
                             "function mine i set user\n"
                             "function unnest i set\n";

/* ---- reading a statement as a level and as a derived table ---- */

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

static void read_once(struct reading *reading)
{
    const PgQuery__SelectStmt *select = reading->parsed->stmts[0]->stmt->select_stmt;
    const PgQuery__WithClause *with[] = {select->with_clause};

    arena_fini(&reading->arena);
    reading->derived = (struct scope_relation){.qualifier = "q"};
    assert_int_equal(
        scope_make(&reading->outer, &reading->arena, reading->asker, &reading->nothing, NULL, 0, reading->facts, NULL),
        PGSEEK_REASON_NONE);
    assert_true(source_make(&reading->derived, &reading->outer, select, NULL, 0));
    assert_int_equal(scope_make(&reading->scope, &reading->arena, reading->asker, select, with, with[0] != NULL,
                                reading->facts, NULL),
                     PGSEEK_REASON_NONE);
    assert_true(proof_make(&reading->proof, &reading->scope, NULL));
}

static void start(struct reading *reading, const char *sql)
{
    enum pgseek_reason reason;

    *reading = (struct reading){.asker = fixture_query("SELECT id FROM a ORDER BY id LIMIT 1", &reason)};
    assert_non_null(reading->asker);
    pg_query__select_stmt__init(&reading->nothing);
    reading->facts = fixture_facts(schema, reading->asker);
    if (tree_parse(sql, &reading->parsed) != TREE_OK)
        fail_msg("does not parse: %s", sql);
    read_once(reading);
    while (facts_is_asking(reading->facts)) {
        fixture_answer(schema, reading->facts);
        read_once(reading);
    }
    assert_false(reading->arena.failed);
}

static void finish(struct reading *reading)
{
    arena_fini(&reading->arena);
    tree_free(reading->parsed);
    pgseek_facts_free(reading->facts);
    pgseek_query_free(reading->asker);
}

static struct scope_column find(const struct reading *reading, const char *dotted)
{
    struct scope_column column = {0, 0};
    char qualifier[32];
    char name[32];

    if (sscanf(dotted, "%31[^.].%31s", qualifier, name) != 2 ||
        scope_find_name(&reading->scope, qualifier, name, &column) != SCOPE_FOUND)
        fail_msg("no column %s", dotted);
    return column;
}

/* ---- proofs over FROM ---- */

struct total_case {
    const char *from;
    const char *assumed;  /* alias.column with blanks between */
    const char *expected; /* the tie-breakers that are missing; "none" when nothing makes it total */
};

static const struct total_case proof_cases[] = {
    /* one relation */
    {"a", "", "a.id"},
    {"a", "a.id", ""},
    {"bag", "", "none"},
    {"b", "b.u", ""},
    {"maybe", "maybe.x", "none"},
    {"maybe WHERE x IS NOT NULL", "maybe.x", ""},
    {"once", "once.x", ""},
    {"c WHERE x = 1", "", "c.y"},
    {"a WHERE id = 1", "", ""},
    {"a WHERE id = 1 OR true", "", "a.id"},
    {"par", "", "none"},
    {"ONLY par", "", "par.id"},
    {"part", "", "part.id"},
    {"mat", "", "none"},
    {"word WHERE w = 'a'", "", "word.w"},
    {"a TABLESAMPLE SYSTEM (50)", "", "none"},
    {"a TABLESAMPLE SYSTEM (50) REPEATABLE (1)", "", "a.id"},
    /* inner joins */
    {"a, b", "", "a.id b.id"},
    {"a JOIN b ON b.id = a.b_id", "", "a.id"},
    {"a CROSS JOIN b WHERE b.u = a.b_id", "", "a.id"},
    {"a JOIN b ON b.id = a.f", "", "a.id b.id"},
    {"a JOIN c ON c.x = a.id", "", "c.x c.y"},
    {"a JOIN c ON c.x = a.id", "a.id", "c.y"},
    {"a JOIN b USING (id)", "b.u", ""},
    {"a NATURAL JOIN b", "b.u", ""},
    {"a JOIN maybe ON maybe.x = a.b_id", "a.id", ""},
    {"a JOIN word ON word.w = a.w", "a.id", "word.w"},
    /* LEFT: the right side's key alone does not tell rows without a partner apart */
    {"a LEFT JOIN b ON b.id = a.b_id", "", "a.id"},
    {"a LEFT JOIN b ON b.id = a.b_id", "b.id", "a.id"},
    {"a LEFT JOIN b ON b.id = a.id", "b.id", "a.id"},
    {"a LEFT JOIN b ON b.n = a.b_id", "a.id", "b.id"},
    {"a LEFT JOIN bag ON bag.v = a.id", "a.id", "none"},
    {"a LEFT JOIN b ON b.id = 3", "a.id", ""},
    {"a LEFT JOIN b ON b.id = a.id AND a.w = 'x'", "a.id", ""},
    {"a LEFT JOIN b ON b.id = a.id OR a.w = 'x'", "a.id", "b.id"},
    {"a LEFT JOIN c ON c.x = a.id AND c.y = 1", "a.id", ""},
    {"a LEFT JOIN c ON c.x = a.id", "a.id", "c.y"},
    {"a LEFT JOIN maybe ON maybe.x = a.b_id", "a.id", ""},
    {"a LEFT JOIN once ON true", "a.id", "once.x"},
    /* what ON says of the kept side is not so of all its rows */
    {"a LEFT JOIN b ON a.id = 1 AND b.id = 2", "", "a.id"},
    {"maybe LEFT JOIN b ON maybe.x = b.id", "maybe.x", "none"},
    /* a constant in WHERE pins, in ON of the extended side only for rows with a partner */
    {"a LEFT JOIN b ON b.u = a.id WHERE b.id = 3", "", "a.id"},
    {"b LEFT JOIN c ON c.x = b.id WHERE c.x = 1 AND c.y = 2", "", "b.id"},
    {"b LEFT JOIN (a JOIN c ON c.x = a.id AND a.id = 1 AND c.y = 2) ON true", "b.id", ""},
    {"b LEFT JOIN (a JOIN c ON c.x = a.id AND a.id = 1 AND c.y = 2) ON true", "", "b.id"},
    /* RIGHT mirrors */
    {"b RIGHT JOIN a ON b.id = a.b_id", "", "a.id"},
    {"b RIGHT JOIN a ON b.id = a.b_id", "b.id", "a.id"},
    /* FULL: no reduction, and one side must show that it is there */
    {"a FULL JOIN b ON b.id = a.id", "a.id", "b.id"},
    {"a FULL JOIN b ON b.id = a.id", "", "a.id b.id"},
    {"once o FULL JOIN once p ON o.x = p.x", "o.x p.x", "none"},
    {"a FULL JOIN once ON a.b_id = once.x", "a.id", "once.x"},
    {"a FULL JOIN maybe ON a.b_id = maybe.x", "a.id", "none"},
    /* chains */
    {"a LEFT JOIN b ON b.id = a.b_id LEFT JOIN c ON c.x = b.n AND c.y = a.id", "a.id", ""},
    {"a LEFT JOIN (b LEFT JOIN c ON c.x = b.id AND c.y = 1) ON b.id = a.b_id", "a.id", ""},
    {"a LEFT JOIN (b JOIN c ON c.x = b.id) ON b.id = a.b_id", "a.id", "c.y"},
    {"a LEFT JOIN b ON b.id = a.b_id JOIN c ON c.x = b.id AND c.y = b.n", "c.x c.y", "a.id"},
    {"(a FULL JOIN b ON a.id = b.id) LEFT JOIN c ON c.x = a.id AND c.y = b.id", "a.id b.id", ""},
    /* a condition of ON means the relations of its join: this b_id is not the other a's */
    {"a x, a y JOIN b ON b.id = y.b_id", "x.id", "y.id"},
    /* LATERAL holds for one row of what stands before it */
    {"a, LATERAL (SELECT b.id FROM b WHERE b.n = a.id) q", "q.id", "a.id"},
    {"a, LATERAL (SELECT b.id FROM b WHERE b.n = a.id) q", "a.id", "q.id"},
    {"a, LATERAL (SELECT b.id FROM b WHERE b.n = a.b_id LIMIT 1) q WHERE a.id = q.id", "", "a.id"},
    {"a LEFT JOIN LATERAL (SELECT b.id FROM b WHERE b.n = a.id LIMIT 1) q ON true", "a.id", ""},
    {"a, LATERAL (SELECT b.u FROM b WHERE b.id = a.b_id) q", "a.id", ""},
    {"a, LATERAL (SELECT b.u FROM b WHERE b.id = a.f) q", "a.id", "q.u"},
    {"a LEFT JOIN LATERAL (SELECT p.n + 1 AS m FROM (SELECT b.* FROM b WHERE a.b_id = b.id) p) q ON true", "a.id", ""},
    /* this a is another one, whose columns are its own */
    {"a, LATERAL (SELECT b.n AS m FROM b, (SELECT x AS id FROM c) a WHERE b.id = a.id) q", "a.id", "none"},
    {"c a, LATERAL (WITH w AS (SELECT v FROM bag WHERE v = a.x) SELECT v FROM w) q", "a.x a.y", "none"},
    {"a, LATERAL (VALUES (1), (a.id)) v(x)", "a.id", "none"},
    /* functions */
    {"unnest('{1,2}'::int[]) WITH ORDINALITY AS f", "", "f.ordinality"},
    {"unnest('{1,2}'::int[]) AS f(x)", "", "none"},
    {"unnest('{1,2}'::int[]) WITH ORDINALITY AS f(x, n)", "", "f.n"},
    {"unnest('{1,2}'::pair[]) WITH ORDINALITY AS f(x, n)", "", "none"}, /* n may be the pair's second */
    {"unnest(ARRAY['a', NULL]) WITH ORDINALITY AS f(x, n)", "", "f.n"},
    {"unnest(ARRAY[ROW(1, 2)]) WITH ORDINALITY AS f(x, n)", "", "none"},
    {"mine(1) WITH ORDINALITY AS f(x, n)", "", "none"},
    {"a, unnest('{1,2}'::int[]) WITH ORDINALITY AS f", "f.ordinality", "a.id"},
    /* a join with an alias of its own hides its tables */
    {"(a JOIN b ON b.id = a.b_id) AS j(p)", "", "j.p"},
    /* views, CTEs and derived tables */
    {"plain", "", "plain.id"},
    {"secret", "", "none"},
    {"plain LEFT JOIN b ON b.u = plain.u", "plain.id", ""},
    {"(SELECT id, u FROM b) q", "q.u", ""},
    {"(SELECT id FROM b) q(k)", "", "q.k"},
    {"(SELECT g, count(*) AS n FROM bag GROUP BY g) q", "", "q.g"},
    {"(SELECT g FROM bag UNION ALL SELECT v FROM bag) q", "", "none"},
    {"(SELECT g FROM bag UNION SELECT v FROM bag) q", "", "q.g"},
    {"(VALUES (1), (1)) q(x)", "q.x", "none"},
    {"a, (SELECT count(*) AS n FROM bag) q", "", "a.id"},
};

/* The tie-breakers that a proof asks for, one after the other. */
static void ask(struct reading *reading, char *out, size_t room)
{
    struct proof *proof = &reading->proof;

    *out = '\0';
    while (!proof_is_total(proof)) {
        size_t relation;
        bool denied;
        const struct scope_key *key = proof_next_key(proof, reading->scope.nrelations, NULL, NULL, &relation, &denied);

        for (size_t i = 0; key && i < key->ncolumns; i++) {
            struct scope_column column = {relation, key->columns[i]};
            size_t len = strlen(out);

            if (proof_is_known(proof, column))
                continue;
            snprintf(out + len, room - len, "%s%s.%s", len ? " " : "", reading->scope.relations[relation].qualifier,
                     scope_attribute(&reading->scope, column)->name);
            proof_assume(proof, column);
        }
        if (!key) {
            snprintf(out, room, "none");
            return;
        }
    }
}

static void rows_are_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof proof_cases / sizeof *proof_cases; i++) {
        struct reading reading;
        char sql[512];
        char found[512];
        char assumed[128];

        snprintf(sql, sizeof sql, "SELECT 1 FROM %s", proof_cases[i].from);
        snprintf(assumed, sizeof assumed, "%s", proof_cases[i].assumed);
        start(&reading, sql);
        for (char *word = strtok(assumed, " "); word; word = strtok(NULL, " "))
            proof_assume(&reading.proof, find(&reading, word));
        ask(&reading, found, sizeof found);
        if (strcmp(found, proof_cases[i].expected) != 0)
            fail_msg("FROM %s with %s\n   asks for %s\n   instead of %s", proof_cases[i].from, proof_cases[i].assumed,
                     found, proof_cases[i].expected);
        finish(&reading);
    }
}

/* ---- single columns ---- */

struct column_case {
    const char *from;
    const char *assumed;
    const char *column;
    bool is_known;
};

static const struct column_case column_cases[] = {
    {"a", "a.id", "a.w", true},
    {"a", "a.w", "a.id", false},
    {"a JOIN b ON b.id = a.b_id", "a.b_id", "b.u", true},
    {"a JOIN b ON b.id = a.b_id", "b.u", "a.b_id", true},
    {"a JOIN b ON b.id = a.b_id", "b.u", "a.id", false},
    {"a WHERE b_id = 1", "", "a.b_id", true},
    /* 3, or NULL without a partner */
    {"a LEFT JOIN b ON b.id = 3", "", "b.id", false},
    {"a LEFT JOIN b ON b.id = 3", "a.id", "b.u", true},
    {"a LEFT JOIN b ON b.id = a.b_id", "a.b_id", "b.id", false},
    {"a LEFT JOIN b ON b.id = a.b_id", "b.id", "a.b_id", false},
    {"b LEFT JOIN (a JOIN c ON c.x = a.id) ON true", "a.id", "c.x", true},
};

static void columns_follow(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof column_cases / sizeof *column_cases; i++) {
        struct reading reading;
        char sql[512];

        snprintf(sql, sizeof sql, "SELECT 1 FROM %s", column_cases[i].from);
        start(&reading, sql);
        if (*column_cases[i].assumed)
            proof_assume(&reading.proof, find(&reading, column_cases[i].assumed));
        if (proof_is_known(&reading.proof, find(&reading, column_cases[i].column)) != column_cases[i].is_known)
            fail_msg("FROM %s with %s: %s", column_cases[i].from, column_cases[i].assumed, column_cases[i].column);
        finish(&reading);
    }
}

/* ---- NULL ---- */

struct null_case {
    const char *from;
    const char *column;
    bool non_null;
};

static const struct null_case null_cases[] = {
    {"a", "a.id", true},
    {"a", "a.b_id", false},
    {"a WHERE b_id IS NOT NULL", "a.b_id", true},
    {"a WHERE b_id = 1", "a.b_id", true},
    {"a WHERE b_id = 1 OR id = 1", "a.b_id", false},
    {"a JOIN b ON b.id = a.b_id", "a.b_id", true},
    {"a LEFT JOIN b ON b.id = a.b_id", "a.b_id", false},
    {"a LEFT JOIN b ON b.id = a.b_id", "b.id", false},
    {"a LEFT JOIN b ON b.id = a.b_id", "a.id", true},
    {"a LEFT JOIN b ON b.id = a.b_id WHERE b.id = 3", "b.id", true},
    {"a LEFT JOIN b ON b.id = a.b_id WHERE b.id = 3", "b.u", false},
    {"a RIGHT JOIN b ON b.id = a.b_id", "a.id", false},
    {"a FULL JOIN b ON b.id = a.b_id", "a.id", false},
    {"a LEFT JOIN (b JOIN c ON c.z = b.n) ON true", "c.z", false},
    {"(a LEFT JOIN b ON b.id = a.b_id) JOIN c ON c.x = b.id", "b.id", true},
    {"par", "par.id", false},
    {"ONLY par", "par.id", true},
    {"plain", "plain.id", true},
    {"plain", "plain.u", false},
    {"secret", "secret.id", false},
    {"(SELECT id, coalesce(n, 0) AS n, count(*) AS k, sum(u) AS s FROM b GROUP BY id) q", "q.n", true},
    {"(SELECT id, coalesce(n, 0) AS n, count(*) AS k, sum(u) AS s FROM b GROUP BY id) q", "q.k", true},
    {"(SELECT id, coalesce(n, 0) AS n, count(*) AS k, sum(u) AS s FROM b GROUP BY id) q", "q.s", false},
    {"(SELECT id FROM b GROUP BY ROLLUP (id)) q", "q.id", false},
    {"(SELECT id FROM a UNION SELECT id FROM b) q", "q.id", true},
    {"(SELECT id FROM a UNION SELECT n FROM b) q", "q.id", false},
    {"(SELECT id FROM a EXCEPT SELECT n FROM b) q", "q.id", true},
};

static void nulls_are_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof null_cases / sizeof *null_cases; i++) {
        struct reading reading;
        char sql[512];

        snprintf(sql, sizeof sql, "SELECT 1 FROM %s", null_cases[i].from);
        start(&reading, sql);
        if (proof_is_non_null(&reading.proof, find(&reading, null_cases[i].column)) != null_cases[i].non_null)
            fail_msg("FROM %s: %s", null_cases[i].from, null_cases[i].column);
        finish(&reading);
    }
}

/* ---- keys of derived tables ---- */

struct source_case {
    const char *sql;
    const char *expected; /* keys by their columns' positions; or the reason why there is none */
};

static const struct source_case source_cases[] = {
    {"SELECT id, w FROM a", "(1)"},
    {"SELECT w FROM a", "no_total_order"},
    {"SELECT u, id FROM b", "(2) (1)"},
    {"SELECT id AS x, id AS y FROM a", "(1)"},
    {"SELECT -id FROM a", "no_total_order"},
    {"SELECT * FROM c", "(1 2)"},
    {"SELECT y FROM c WHERE x = 1", "(1)"},
    {"SELECT a.id, b.id FROM a JOIN b ON b.id = a.b_id", "(1)"},
    {"SELECT b.id, c.y FROM b JOIN c ON c.x = b.id", "(1 2)"},
    {"SELECT a.id, b.id FROM a FULL JOIN b ON b.id = a.id", "(1 2)"},
    {"SELECT id FROM par", "inheritance"},
    /* in ON, z is no column of c: it belongs to a level around this one */
    {"SELECT c.x, c.y, b.id FROM c, a JOIN b ON a.id = z", "no_total_order"},
    /* grouping */
    {"SELECT g, count(*) FROM bag GROUP BY g", "(1)"},
    {"SELECT g FROM bag GROUP BY g, v", "no_total_order"},
    {"SELECT g, v FROM bag GROUP BY 1, 2", "(1 2)"},
    {"SELECT v + 1 AS k, count(*) FROM bag GROUP BY v + 1", "(1)"},
    {"SELECT v + 1 AS k, count(*) FROM bag GROUP BY v + 2", "no_total_order"},
    {"SELECT v + 1 AS k, count(*) FROM bag GROUP BY k", "(1)"},
    /* GROUP BY means the input column first: v, not the output of that name */
    {"SELECT g AS v, count(*) FROM bag GROUP BY v, g", "no_total_order"},
    {"SELECT a.id, a.w FROM a JOIN bag ON bag.v = a.id GROUP BY a.id, a.w", "(1)"},
    {"SELECT g FROM bag WHERE v = 1 GROUP BY g, v", "(1)"},
    {"SELECT g, v FROM bag GROUP BY GROUPING SETS ((g), (v))", "grouping_sets"},
    {"SELECT random() AS r, count(*) FROM bag GROUP BY r", "(1)"},
    {"SELECT random() AS r, count(*) FROM bag GROUP BY random()", "no_total_order"},
    /* one row */
    {"SELECT count(*) FROM bag", "()"},
    {"SELECT sum(v) FROM bag", "()"},
    {"SELECT sum(v) OVER () FROM bag", "no_total_order"},
    {"SELECT 1 FROM bag HAVING true", "()"},
    {"SELECT v FROM bag LIMIT 1", "()"},
    {"SELECT v FROM bag FETCH FIRST ROW ONLY", "()"},
    {"SELECT v FROM bag ORDER BY v FETCH FIRST ROW WITH TIES", "no_total_order"},
    {"SELECT v FROM bag LIMIT 2", "no_total_order"},
    {"SELECT 1", "()"},
    /* DISTINCT */
    {"SELECT DISTINCT g, v FROM bag", "(1 2)"},
    {"SELECT DISTINCT id, w FROM a", "(1)"},
    {"SELECT DISTINCT g + 1, v FROM bag", "(1 2)"},
    {"SELECT DISTINCT random(), v FROM bag", "no_total_order"},
    {"SELECT DISTINCT ON (g) g, v FROM bag", "(1)"},
    {"SELECT DISTINCT ON (g) v FROM bag", "no_total_order"},
    {"SELECT DISTINCT ON (g + 1) g + 1 AS k, v FROM bag", "(1)"},
    /* sets */
    {"SELECT g, v FROM bag UNION SELECT v, g FROM bag", "(1 2)"},
    {"SELECT g FROM bag UNION ALL SELECT v FROM bag", "no_total_order"},
    {"SELECT g FROM bag INTERSECT SELECT v FROM bag", "(1)"},
    {"SELECT g FROM bag EXCEPT ALL SELECT v FROM bag", "no_total_order"},
    {"VALUES (1), (1)", "from_function"},
    {"VALUES (1), (2) LIMIT 1", "()"},
    /* functions that return sets multiply rows */
    {"SELECT id, unnest('{1,2}'::int[]) FROM a", "set_returning"},
    {"SELECT id FROM a ORDER BY unnest('{1,2}'::int[])", "set_returning"},
    {"SELECT id, a.unnest FROM a", "set_returning"},
    {"SELECT id, a.lower, a.ctid FROM a", "(1)"},
    /* WITH */
    {"WITH q AS (SELECT id FROM a) SELECT * FROM q", "(1)"},
    {"WITH q(k) AS MATERIALIZED (SELECT id FROM a) SELECT k FROM q", "(1)"},
    {"WITH a AS (SELECT v FROM bag) SELECT * FROM a", "no_total_order"},
    {"WITH a AS (SELECT id FROM a) SELECT * FROM a", "(1)"},
    {"WITH q AS (SELECT id FROM a), r AS (SELECT * FROM q) SELECT * FROM r", "(1)"},
    {"WITH r AS (SELECT id FROM a), a AS (SELECT v FROM bag) SELECT * FROM r", "(1)"},
    {"WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q) SELECT n FROM q", "no_total_order"},
    {"WITH RECURSIVE q(n) AS (SELECT 1 UNION SELECT n + 1 FROM q) SELECT n FROM q", "(1)"},
    {"WITH RECURSIVE a AS (SELECT id FROM a) SELECT * FROM a", "no_total_order"},
    {"WITH q AS (SELECT id FROM a) SELECT * FROM (WITH q AS (SELECT v FROM bag) SELECT * FROM q) s", "no_total_order"},
    {"SELECT q.id FROM plain q", "(1)"},
};

static void describe_keys(const struct scope_relation *derived, char *out, size_t room)
{
    size_t len = 0;

    snprintf(out, room, "%s", pgseek_reason_name(derived->why));
    for (size_t i = 0; i < derived->nkeys; i++) {
        const struct scope_key *key = &derived->keys[i];

        len += (size_t)snprintf(out + len, room - len, "%s(", i ? " " : "");
        for (size_t j = 0; j < key->ncolumns; j++)
            len += (size_t)snprintf(out + len, room - len, "%s%zu", j ? " " : "", key->columns[j] + 1);
        len += (size_t)snprintf(out + len, room - len, ")");
    }
}

static void derived_tables_have_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof source_cases / sizeof *source_cases; i++) {
        struct reading reading;
        char found[512];

        start(&reading, source_cases[i].sql);
        describe_keys(&reading.derived, found, sizeof found);
        if (strcmp(found, source_cases[i].expected) != 0)
            fail_msg("%s\n   %s\n   instead of %s", source_cases[i].sql, found, source_cases[i].expected);
        finish(&reading);
    }
}

/* ---- names ---- */

struct name_case {
    const char *from;
    const char *qualifier; /* NULL: a bare name */
    const char *name;
    enum scope_found found;
};

static const struct name_case name_cases[] = {
    {"a JOIN b ON true", NULL, "id", SCOPE_AMBIGUOUS},
    {"a JOIN b ON true", NULL, "u", SCOPE_FOUND},
    {"a JOIN b USING (id)", NULL, "id", SCOPE_FOUND},
    {"a LEFT JOIN b USING (id)", NULL, "id", SCOPE_FOUND},
    {"a FULL JOIN b USING (id)", NULL, "id", SCOPE_OPAQUE},
    {"b JOIN once ON true JOIN (SELECT u AS x FROM b) q USING (x)", NULL, "x", SCOPE_OPAQUE}, /* two types */
    {"a NATURAL JOIN b", "b", "id", SCOPE_FOUND},
    {"a x", "a", "id", SCOPE_MISSING},
    {"a x(k)", "x", "id", SCOPE_MISSING},
    {"a x(k)", "x", "w", SCOPE_FOUND},
    {"a", NULL, "ctid", SCOPE_MISSING},
    {"(SELECT id, n + 1 FROM b) q", "q", "id", SCOPE_FOUND},
    {"(SELECT id, n + 1 FROM b) q", "q", "x", SCOPE_OPAQUE}, /* perhaps the second one's name */
    {"(SELECT id, n + 1 FROM b) q(a, b)", "q", "x", SCOPE_MISSING},
    {"unnest('{1}'::int[]) AS f", "f", "f", SCOPE_OPAQUE},
    {"unnest('{1}'::int[]) AS f, a", NULL, "id", SCOPE_FOUND},
    {"unnest('{1}'::int[]) AS f, a", NULL, "nope", SCOPE_OPAQUE},
    {"a JOIN b USING (id) AS j", "j", "id", SCOPE_OPAQUE},
    {"(a JOIN b USING (id)) AS j", "a", "id", SCOPE_MISSING},
    {"(a JOIN b USING (id)) AS j", "j", "id", SCOPE_FOUND},
    {"(SELECT f.*, a.id FROM a, unnest('{1}'::int[]) AS f) q(x)", "q", "id", SCOPE_OPAQUE},
    {"nowhere", "nowhere", "id", SCOPE_OPAQUE},
};

static void names_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof name_cases / sizeof *name_cases; i++) {
        struct reading reading;
        struct scope_column column;
        char sql[512];

        snprintf(sql, sizeof sql, "SELECT 1 FROM %s", name_cases[i].from);
        start(&reading, sql);
        if (scope_find_name(&reading.scope, name_cases[i].qualifier, name_cases[i].name, &column) !=
            name_cases[i].found)
            fail_msg("FROM %s: %s", name_cases[i].from, name_cases[i].name);
        finish(&reading);
    }
}

static void windows_are_seen(void **state)
{
    static const struct {
        const char *from;
        const char *column;
        bool is_window;
    } cases[] = {
        {"(SELECT id, row_number() OVER () AS no FROM a) q", "q.no", true},
        {"(SELECT id, row_number() OVER () AS no FROM a) q", "q.id", false},
        {"(SELECT no + 1 AS k FROM (SELECT row_number() OVER () AS no FROM a) p) q", "q.k", true},
        {"(WITH RECURSIVE r(a, b) AS (SELECT id, id FROM a UNION SELECT b, a + 1 FROM r) SELECT * FROM r) q", "q.a",
         false},
        {"(WITH RECURSIVE r(a, b) AS (SELECT id, no FROM numbered UNION SELECT b, a FROM r) SELECT * FROM r) q", "q.a",
         true},
        {"(WITH RECURSIVE r AS (SELECT id, no FROM numbered) SELECT * FROM r) q", "q.id", false},
        {"numbered", "numbered.no", true},
        {"numbered", "numbered.id", false},
        {"(SELECT id FROM a UNION SELECT no FROM numbered) q", "q.id", true},
        {"(WITH w AS (SELECT row_number() OVER () AS no FROM a) SELECT (SELECT max(no) FROM w) AS k) q", "q.k", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reading reading;
        char sql[512];

        snprintf(sql, sizeof sql, "SELECT 1 FROM %s", cases[i].from);
        start(&reading, sql);
        if (scope_attribute(&reading.scope, find(&reading, cases[i].column))->is_window != cases[i].is_window)
            fail_msg("FROM %s: %s", cases[i].from, cases[i].column);
        finish(&reading);
    }
}

/* ---- what it rests on ---- */

static void rests_are_complete(void **state)
{
    static const struct {
        const char *from;
        const char *expected; /* what must be watched, in any order */
    } cases[] = {
        {"a", "index a_pkey, column a.id, not null a.id"},
        {"maybe WHERE x = 1", "index maybe_x, column maybe.x"},
        {"a JOIN b ON b.id = a.b_id", "index a_pkey, not null a.id, index b_pkey, column b.id, column a.b_id"},
        {"a LEFT JOIN b ON b.id = a.b_id", "index a_pkey, not null a.id, index b_pkey, column b.id, column a.b_id"},
        {"plain", "view plain, index a_pkey, not null a.id, index b_pkey, column a.b_id"},
        {"a, LATERAL (SELECT b.u FROM b WHERE b.id = a.b_id) q", "index b_pkey, column b.id, column a.b_id"},
        {"(SELECT x, y FROM c) q", "index c_pkey, not null c.x, not null c.y"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reading reading;
        char sql[512];
        char found[512];
        char expected[512];
        char all[2048] = ",";

        snprintf(sql, sizeof sql, "SELECT 1 FROM %s", cases[i].from);
        start(&reading, sql);
        ask(&reading, found, sizeof found);
        for (const struct scope_rest *rest = proof_rests(&reading.proof); rest; rest = rest->next) {
            size_t len = strlen(all);
            const char *relation = rest->relation->name;

            if (rest->unique)
                snprintf(all + len, sizeof all - len, " index %s,", rest->unique->name);
            else if (rest->column)
                snprintf(all + len, sizeof all - len, " %s %s.%s,", rest->must_be_not_null ? "not null" : "column",
                         relation, rest->column->name);
            else
                snprintf(all + len, sizeof all - len, " view %s,", relation);
        }
        snprintf(expected, sizeof expected, "%s", cases[i].expected);
        for (char *item = strtok(expected, ","); item; item = strtok(NULL, ",")) {
            char wanted[128];

            snprintf(wanted, sizeof wanted, ", %s,", item + (*item == ' '));
            if (!strstr(all, wanted))
                fail_msg("FROM %s: %s is not in %s", cases[i].from, wanted, all);
        }
        finish(&reading);
    }
}

/* ---- no statement makes unbounded work ---- */

static void work_is_bounded(void **state)
{
    struct reading reading;
    struct text sql = {0};

    (void)state;
    text_puts(&sql, "WITH w0 AS (SELECT id FROM a)");
    for (int i = 1; i <= 40; i++)
        text_format(&sql, ", w%d AS (SELECT x.id FROM w%d x, w%d y)", i, i - 1, i - 1);
    text_puts(&sql, " SELECT id FROM w40");
    start(&reading, sql.ptr);
    assert_int_equal(reading.derived.nkeys, 0);
    finish(&reading);
    text_fini(&sql);
    text_puts(&sql, "SELECT id FROM a");
    for (int i = 0; i < 900; i++)
        text_puts(&sql, " UNION SELECT id FROM a");
    start(&reading, sql.ptr);
    assert_true(reading.derived.is_opaque);
    finish(&reading);
    text_fini(&sql);
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(rows_are_told_apart), cmocka_unit_test(columns_follow),
        cmocka_unit_test(nulls_are_known),     cmocka_unit_test(derived_tables_have_keys),
        cmocka_unit_test(names_are_found),     cmocka_unit_test(windows_are_seen),
        cmocka_unit_test(rests_are_complete),  cmocka_unit_test(work_is_bounded),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return fixture_run(tests);
}
