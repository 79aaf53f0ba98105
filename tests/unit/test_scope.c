/* test_scope.c - what the names of a level mean, and which columns number the rows. */
#include "reading_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

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
        reading_start(&reading, sql);
        if (scope_find_name(&reading.scope, name_cases[i].qualifier, name_cases[i].name, &column) !=
            name_cases[i].found)
            fail_msg("FROM %s: %s", name_cases[i].from, name_cases[i].name);
        reading_finish(&reading);
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
        reading_start(&reading, sql);
        if (scope_attribute(&reading.scope, reading_find(&reading, cases[i].column))->is_window != cases[i].is_window)
            fail_msg("FROM %s: %s", cases[i].from, cases[i].column);
        reading_finish(&reading);
    }
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(windows_are_seen),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return fixture_run(tests);
}
