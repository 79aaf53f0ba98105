/* test_source.c - derived tables: their keys, by the grouping, DISTINCT or set operation that makes their rows. */
#include "reading_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

        reading_start(&reading, source_cases[i].sql);
        describe_keys(&reading.derived, found, sizeof found);
        if (strcmp(found, source_cases[i].expected) != 0)
            fail_msg("%s\n   %s\n   instead of %s", source_cases[i].sql, found, source_cases[i].expected);
        reading_finish(&reading);
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
    reading_start(&reading, sql.ptr);
    assert_int_equal(reading.derived.nkeys, 0);
    reading_finish(&reading);
    text_fini(&sql);
    text_puts(&sql, "SELECT id FROM a");
    for (int i = 0; i < 900; i++)
        text_puts(&sql, " UNION SELECT id FROM a");
    reading_start(&reading, sql.ptr);
    assert_true(reading.derived.is_opaque);
    reading_finish(&reading);
    text_fini(&sql);
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(derived_tables_have_keys),
        cmocka_unit_test(work_is_bounded),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return fixture_run(tests);
}
