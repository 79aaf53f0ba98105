/* test_order_forms.c - the keys of every form of level: expressions, groups, DISTINCT, set operations, windows, and
 * what the server has to be asked for them.
 *
 * What joins and unique indexes prove is in test_order.c, the texts that come of it in tests/golden/cases. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char schema[] = "table public.t\n"
                             "  id int8 notnull\n"
                             "  name text notnull\n"
                             "  note text\n"
                             "  at timestamptz notnull\n"
                             "  n numeric notnull\n"
                             "  j json\n"
                             "  w text notnull ci\n"
                             "  primary t_pkey (id)\n"
                             "table public.c\n"
                             "  id int8 notnull\n"
                             "  t_id int8\n"
                             "  v int4\n"
                             "  primary c_pkey (id)\n"
                             "view public.v AS SELECT t.id, t.name, now() - t.at AS age FROM t\n"
                             "  id int8\n"
                             "  name text\n"
                             "  age timestamptz\n"
                             "view public.opaque\n"
                             "  id int8\n"
                             "  name text\n"
                             "function lower i\n"
                             "function count i aggregate\n"
                             "function max i aggregate\n"
                             "function row_number i\n"
                             "function date_trunc s\n"
                             "function now s\n"
                             "function age s\n"
                             "function random v\n"
                             "function gen i set\n"
                             "function unnest i set\n"
                             "function mine v user\n";

struct form_case {
    const char *sql;      /* with ORDER BY; LIMIT is added */
    const char *columns;  /* of the description; NULL: none */
    const char *probes;   /* what the server says to the texts that it is asked to describe */
    const char *key;      /* key= */
    const char *expected; /* the keys, or the reason */
};

static const struct form_case cases[] = {
    /* expressions: by output name, by position, of the input */
    {"SELECT lower(name) AS name FROM t ORDER BY name", "name text", NULL, NULL,
     "lower(name), id (tie-breaker: t_pkey)"},
    {"SELECT lower(name) AS x, id FROM t ORDER BY 1 DESC", "x text, id int8", NULL, NULL,
     "lower(name) DESC, id DESC (tie-breaker: t_pkey)"},
    {"SELECT lower(name) AS name FROM t ORDER BY name || 'x'", "name text", "name text, k1 text", NULL,
     "name || 'x', id (tie-breaker: t_pkey)"},
    {"SELECT id FROM t ORDER BY lower(name), id", "id int8", "id int8, k1 text", NULL, "lower(name), id"},
    {"SELECT id FROM t ORDER BY coalesce(note, '') NULLS FIRST, id", "id int8", "id int8, k1 text", NULL,
     "coalesce(note, ''), id"},
    {"SELECT id FROM t ORDER BY coalesce(note, NULL) NULLS FIRST, id", "id int8", "id int8, k1 text", NULL,
     "coalesce(note, NULL) NULLS FIRST, id"},
    {"SELECT id FROM t ORDER BY note IS NULL DESC NULLS LAST, id", "id int8", "id int8, k1 bool", NULL,
     "note IS NULL DESC, id"},
    {"SELECT id FROM t ORDER BY\n lower(\tname), id", "id int8", "id int8, k1 text", NULL, "lower( name), id"},
    {"SELECT id FROM t ORDER BY j->>'a', id", "id int8", "id int8, k1 text", NULL, "j->>'a', id"},
    {"SELECT id FROM t ORDER BY j, id", "id int8", NULL, NULL, "key_type"},
    {"SELECT id FROM t ORDER BY lower(name), lower(name), id", "id int8", "id int8, k1 text", NULL, "lower(name), id"},
    /* two outputs of a name: one thing or another */
    {"SELECT id AS x, id AS x FROM t ORDER BY x", "x int8, x int8", NULL, NULL, "id"},
    {"SELECT id + 1 AS x, id + 1 AS x, id FROM t ORDER BY x", "x int8, x int8, id int8", NULL, NULL,
     "id + 1, id (tie-breaker: t_pkey)"},
    {"SELECT id + 1 AS x, id + 2 AS x FROM t ORDER BY x", "x int8, x int8", NULL, NULL, "order_ambiguous"},
    /* what sorts nothing, and what stands behind a total order */
    {"SELECT id FROM t ORDER BY $1, id", "id int8", NULL, NULL, "id"},
    {"SELECT id, $1::text AS x FROM t ORDER BY x, id", "id int8, x text", NULL, NULL, "id"},
    {"SELECT id FROM t ORDER BY $1", "id int8", NULL, NULL, "order_constant"},
    {"SELECT id FROM t ORDER BY id, j, random()", "id int8", NULL, NULL, "volatile"},
    {"SELECT id FROM t ORDER BY id DESC, lower(note), name", "id int8", NULL, NULL, "id DESC"},
    {"SELECT id FROM t WHERE id = 7 ORDER BY name", "id int8", NULL, NULL, "name"},
    /* a deterministic collation tells a column's values apart */
    {"SELECT id FROM t ORDER BY name COLLATE \"C\", id", "id int8", "id int8, k1 text", NULL, "name COLLATE \"C\", id"},
    /* clocks and chance */
    {"SELECT id FROM t ORDER BY now() - at, id", "id int8", NULL, NULL, "clock_key"},
    {"SELECT id FROM t ORDER BY age(at), id", "id int8", NULL, NULL, "clock_key"},
    {"SELECT id FROM t ORDER BY at > 'now'::timestamptz, id", "id int8", NULL, NULL, "clock_key"},
    {"SELECT id FROM t ORDER BY random()", "id int8", NULL, NULL, "volatile"},
    {"SELECT id FROM (SELECT id, random() AS r FROM t) q ORDER BY r, id", "id int8", NULL, NULL, "volatile"},
    {"WITH q AS (SELECT id, now() - at AS r FROM t) SELECT id FROM q ORDER BY r, id", "id int8", NULL, NULL,
     "clock_key"},
    {"SELECT id FROM v ORDER BY age, id", "id int8", NULL, NULL, "clock_key"},
    {"SELECT id FROM v ORDER BY name", "id int8", NULL, NULL, "name, id (tie-breaker: t_pkey)"},
    {"SELECT id FROM t WHERE at < now() ORDER BY at", "id int8", NULL, NULL, "at, id (tie-breaker: t_pkey)"},
    /* positions are no values */
    {"SELECT id, row_number() OVER (ORDER BY at) AS r FROM t ORDER BY r", "id int8, r int8", NULL, NULL, "window_key"},
    {"SELECT id FROM (SELECT id, row_number() OVER () AS r FROM t) q ORDER BY r", "id int8", NULL, NULL, "window_key"},
    {"SELECT id, row_number() OVER (ORDER BY at) FROM t ORDER BY at", "id int8, row_number int8", NULL, NULL,
     "at, id (tie-breaker: t_pkey)"},
    {"SELECT id, unnest('{1}'::int[]) FROM t ORDER BY id", "id int8, unnest int4", NULL, NULL, "set_returning"},
    /* groups: columns by the proof, expressions by their spelling */
    {"SELECT name, count(*) FROM t GROUP BY name ORDER BY name", "name text, count int8", NULL, NULL, "name"},
    {"SELECT name, count(*) FROM t GROUP BY name ORDER BY count(*) DESC", "name text, count int8",
     "name text, count int8, k1 int8", NULL, "count(*) DESC, name DESC (tie-breaker: GROUP BY)"},
    {"SELECT name, count(*) FROM t GROUP BY 1 ORDER BY 2 DESC", "name text, count int8", NULL, NULL,
     "count(*) DESC, name DESC (tie-breaker: GROUP BY)"},
    {"SELECT id, name FROM t GROUP BY id ORDER BY name", "id int8, name text", NULL, NULL,
     "name, id (tie-breaker: GROUP BY)"},
    {"SELECT id, name FROM t GROUP BY id, name ORDER BY id", "id int8, name text", NULL, NULL, "id"},
    {"SELECT lower(name) AS name FROM t GROUP BY name ORDER BY name", "name text", NULL, NULL,
     "lower(name), name (tie-breaker: GROUP BY)"},
    {"SELECT lower(name) AS x FROM t GROUP BY lower(name) ORDER BY x", "x text", NULL, NULL, "lower(name)"},
    {"SELECT date_trunc('day', at) AS d, count(*) FROM t GROUP BY d ORDER BY count(*)", "d timestamptz, count int8",
     "d timestamptz, count int8, k1 int8", NULL, "count(*), date_trunc('day', at) (tie-breaker: GROUP BY)"},
    {"SELECT id, lower(name) FROM t GROUP BY id, lower(name) ORDER BY id", "id int8, lower text", NULL, NULL, "id"},
    {"SELECT w, lower(w) FROM t GROUP BY w, lower(w) ORDER BY w", "w text, lower text", "w text, lower text, k1 text",
     NULL, "w, lower(w) (tie-breaker: GROUP BY)"},
    {"SELECT n, n::text AS x FROM t GROUP BY n, n::text ORDER BY n", "n numeric, x text", "n numeric, x text, k1 text",
     NULL, "n, n::text (tie-breaker: GROUP BY)"},
    {"SELECT count(*) FROM t ORDER BY 1", "count int8", NULL, NULL, "one_row"},
    {"SELECT max(id) FROM t HAVING count(*) > 1 ORDER BY 1", "max int8", NULL, NULL, "one_row"},
    /* DISTINCT: the list is the key; what follows from the rest is not needed */
    {"SELECT DISTINCT name, note FROM t ORDER BY note DESC", "name text, note text", NULL, NULL,
     "note DESC, name DESC (tie-breaker: DISTINCT)"},
    {"SELECT DISTINCT t.id, t.name FROM t JOIN c ON c.t_id = t.id ORDER BY t.id", "id int8, name text", NULL, NULL,
     "t.id"},
    {"SELECT DISTINCT name, id + 1 AS x FROM t ORDER BY x", "name text, x int8", NULL, NULL,
     "id + 1, name (tie-breaker: DISTINCT)"},
    {"SELECT DISTINCT name, j FROM t ORDER BY name", "name text, j json", NULL, NULL, "key_type"},
    {"SELECT DISTINCT w, lower(w) AS l FROM t ORDER BY w", "w text, l text", NULL, NULL,
     "w, lower(w) (tie-breaker: DISTINCT)"},
    {"SELECT DISTINCT name, count(*) FROM t GROUP BY name, note ORDER BY name", "name text, count int8", NULL, NULL,
     "name, count(*) (tie-breaker: DISTINCT)"},
    /* DISTINCT ON: its items in ORDER BY's order */
    {"SELECT DISTINCT ON (name, note) id FROM t ORDER BY note DESC, name, at", "id int8", NULL, NULL,
     "note DESC, name"},
    {"SELECT DISTINCT ON (name, note) id FROM t ORDER BY note DESC", "id int8", NULL, NULL,
     "note DESC, name DESC (tie-breaker: DISTINCT ON)"},
    {"SELECT DISTINCT ON (lower(name)) id FROM t ORDER BY lower(name), at", "id int8", "id int8, k1 text", NULL,
     "lower(name)"},
    {"SELECT DISTINCT ON (name) count(*) FROM t GROUP BY name ORDER BY name", "count int8", NULL, NULL, "distinct_on"},
    /* set operations, VALUES, TABLE */
    {"SELECT id, name FROM t UNION SELECT id, note FROM t ORDER BY name DESC", "id int8, name text", NULL, NULL,
     "name DESC, id DESC (tie-breaker: all columns)"},
    {"SELECT id FROM t UNION ALL SELECT id FROM c ORDER BY id", "id int8", NULL, NULL, "no_total_order"},
    {"SELECT id FROM t UNION ALL SELECT id FROM c ORDER BY id", "id int8", NULL, "id", "id (tie-breaker: key=)"},
    {"SELECT id, name FROM t UNION ALL SELECT id, note FROM t ORDER BY 2", "id int8, name text", NULL, "id",
     "name, id (tie-breaker: key=)"},
    {"SELECT id FROM t UNION SELECT id FROM c ORDER BY id + 1", "id int8", NULL, NULL, "order_expression"},
    {"SELECT id, j::text FROM t EXCEPT ALL SELECT id, note FROM t ORDER BY 1", "id int8, j text", NULL, NULL,
     "no_total_order"},
    {"VALUES (1, 'a'), (2, 'b') ORDER BY 2", "column1 int4, column2 text", NULL, "column1",
     "column2, column1 (tie-breaker: key=)"},
    {"TABLE c ORDER BY v", "id int8, t_id int8, v int4", NULL, NULL, "v, id (tie-breaker: c_pkey)"},
    /* key=: what the catalog cannot tell */
    {"SELECT id FROM opaque ORDER BY name", "id int8", NULL, NULL, "relation_kind"},
    {"SELECT id FROM opaque ORDER BY name", "id int8", NULL, "id", "name, id (tie-breaker: key=)"},
    {"SELECT * FROM gen() AS g(x, y) ORDER BY y", "x int8, y text", NULL, NULL, "from_function"},
    {"SELECT id FROM opaque ORDER BY name", "id int8", NULL, "nothing", "key_column"},
    {"SELECT id FROM opaque ORDER BY name", "id int8", NULL, "opaque.id", "name, id (tie-breaker: key=)"},
    /* outer joins: the far side may be NULL */
    {"SELECT t.id FROM t LEFT JOIN c ON c.t_id = t.id ORDER BY t.name", "id int8", NULL, NULL,
     "t.name, t.id, c.id (tie-breaker: t_pkey, c_pkey)"},
    {"SELECT c.id FROM c LEFT JOIN t ON c.t_id = t.id ORDER BY t.name, c.id", "id int8", NULL, NULL, "t.name, c.id"},
};

static const char *answer(const struct form_case *test, char *out, size_t room)
{
    struct fixture_description description;
    enum pgseek_reason reason;
    char text[1024];

    snprintf(text, sizeof text, "%s LIMIT 3", test->sql);
    struct pgseek_query *query = fixture_query(text, &reason);
    struct pgseek_plan *plan =
        query ? fixture_plan_of(schema, query, test->key,
                                fixture_describe(&description, test->columns, strchr(test->sql, '$') ? "text" : NULL),
                                test->probes, &reason)
              : NULL;
    snprintf(out, room, "%s", plan ? pgseek_plan_summary(plan) : pgseek_reason_name(reason));
    pgseek_plan_free(plan);
    pgseek_query_free(query);
    return out;
}

static void every_form_has_its_keys(void **state)
{
    char found[1024];
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!strcmp(answer(&cases[i], found, sizeof found), cases[i].expected))
            continue;
        print_error("%s\n   %s\n   instead of %s\n", cases[i].sql, found, cases[i].expected);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* Whether TimeZone and its like belong to the contract. */
static void settings_matter_to_stable_keys(void **state)
{
    static const struct {
        const char *sql, *probes;
        bool depends;
    } stable[] = {
        {"SELECT id FROM t ORDER BY at, id LIMIT 3", NULL, false},
        {"SELECT id FROM t ORDER BY lower(name), id LIMIT 3", "id int8, k1 text", false},
        {"SELECT id FROM t ORDER BY id + 1, id LIMIT 3", "id int8, k1 int8", false},
        {"SELECT id FROM t ORDER BY date_trunc('day', at), id LIMIT 3", "id int8, k1 timestamptz", true},
        {"SELECT id FROM t ORDER BY at::date, id LIMIT 3", "id int8, k1 date", true},
        {"SELECT id FROM (SELECT id, at::date AS d FROM t) q ORDER BY d, id LIMIT 3", "id int8, k1 date", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof stable / sizeof *stable; i++) {
        struct fixture_description description;
        enum pgseek_reason reason;
        struct pgseek_query *query = fixture_query(stable[i].sql, &reason);
        struct pgseek_plan *plan = fixture_plan_of(schema, query, NULL, fixture_describe(&description, "id int8", NULL),
                                                   stable[i].probes, &reason);
        assert_int_equal(reason, PGSEEK_REASON_NONE);
        assert_int_equal(pgseek_plan_depends_on_settings(plan), stable[i].depends);
        pgseek_plan_free(plan);
        pgseek_query_free(query);
    }
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(every_form_has_its_keys),
        cmocka_unit_test(settings_matter_to_stable_keys),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return fixture_run(tests);
}
