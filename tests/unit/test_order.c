/* test_order.c - the proof that an order is total: counter-examples of rules that look right, and what is appended.
 *
 * How names and positions are read is in tests/golden/cases (order_*). */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char schema[] = "table public.big\n"
                             "  k int8 notnull\n"
                             "  v int4 notnull\n"
                             "  primary big_pkey (k)\n"
                             "table public.a\n"
                             "  id int4 notnull\n"
                             "  f float8 notnull\n"
                             "  k int4 notnull\n"
                             "  n int8\n"
                             "  w varchar notnull\n"
                             "  primary a_pkey (id)\n"
                             "table public.maybe\n"
                             "  x int4\n"
                             "  y int4 notnull\n"
                             "  unique maybe_key (x)\n"
                             "table public.once\n"
                             "  x int4\n"
                             "  y int4 notnull\n"
                             "  unique once_key (x, y) nnd\n"
                             "table public.word\n"
                             "  w text notnull ci\n"
                             "  u text notnull\n"
                             "  v text notnull\n"
                             "  primary word_pkey (w)\n"
                             "table public.unsorted\n"
                             "  x int4 notnull\n"
                             "  primary unsorted_pkey (x) unsorted\n"
                             "table public.tenant\n"
                             "  org uuid notnull\n"
                             "  no int4 notnull\n"
                             "  code varchar notnull\n"
                             "  ref int8\n"
                             "  primary tenant_pkey (org, no)\n"
                             "  unique tenant_code (code)\n"
                             "  unique tenant_ref (org, ref)\n"
                             "table public.child\n"
                             "  org uuid notnull\n"
                             "  no int4 notnull\n"
                             "  line int4 notnull\n"
                             "  primary child_pkey (org, no, line)\n";

struct order_case {
    const char *sql;      /* with ORDER BY; LIMIT is added */
    const char *params;   /* types; NULL: no description */
    const char *expected; /* the keys, or the reason */
};

static const struct order_case cases[] = {
    /* a nullable unique index is no key: two rows may have NULL ... */
    {"SELECT y FROM maybe ORDER BY y", NULL, "no_total_order"},
    /* ... unless NULLs are not distinct, or the statement rules them out */
    {"SELECT y FROM maybe WHERE x IS NOT NULL ORDER BY y", NULL, "y, x (tie-breaker: maybe_key)"},
    {"SELECT y FROM maybe WHERE x = 3 ORDER BY y", NULL, "y"},
    {"SELECT y FROM maybe WHERE x = 3 OR y = 4 ORDER BY y", NULL, "no_total_order"},
    {"SELECT y FROM maybe WHERE NOT (x = 3) ORDER BY y", NULL, "no_total_order"},
    /* with NULLS NOT DISTINCT it is a key, but a nullable one */
    {"SELECT y FROM once ORDER BY y", NULL, "y, x (tie-breaker: once_key)"},
    {"SELECT y FROM once WHERE x = 1 ORDER BY y", NULL, "y"},
    /* what an index holds equal must be what the order holds equal */
    {"SELECT x FROM unsorted ORDER BY x", NULL, "no_total_order"},
    /* columns that equal a constant drop out */
    {"SELECT no FROM tenant WHERE org = $1 ORDER BY no DESC", "uuid", "no DESC"},
    {"SELECT no FROM tenant WHERE $1 = org ORDER BY code", "uuid", "code"},
    {"SELECT no FROM tenant WHERE org = '6ecd8c99-4036-403d-bf84-cf8400f67836' ORDER BY ref", NULL,
     "ref, no (tie-breaker: tenant_pkey)"},
    {"SELECT no FROM tenant WHERE org = $1::uuid ORDER BY no", NULL, "no"},
    {"SELECT no FROM tenant WHERE org = $1::text ORDER BY no", NULL, "no, org (tie-breaker: tenant_pkey)"},
    {"SELECT no FROM tenant WHERE org > $1 ORDER BY no", "uuid", "no, org (tie-breaker: tenant_pkey)"},
    {"SELECT no FROM tenant WHERE org IN ($1) ORDER BY no", "uuid", "no, org (tie-breaker: tenant_pkey)"},
    /* a parameter of another type may cast the column, and then fits several values */
    {"SELECT v FROM big WHERE k = $1 ORDER BY v", "int4", "v"},
    {"SELECT v FROM big WHERE k = $1 ORDER BY v", "float8", "v, k (tie-breaker: big_pkey)"},
    {"SELECT v FROM big WHERE k = 1.5e0 ORDER BY v", NULL, "v, k (tie-breaker: big_pkey)"},
    /* an operator of another schema is not known to be equality */
    {"SELECT v FROM big WHERE k OPERATOR(pg_catalog.=) 1 ORDER BY v", NULL, "v"},
    {"SELECT v FROM big WHERE k OPERATOR(evil.=) 1 ORDER BY v", NULL, "v, k (tie-breaker: big_pkey)"},
    /* two words are equal under a collation that ignores case */
    {"SELECT u FROM word WHERE w = 'a' ORDER BY u", NULL, "u, w (tie-breaker: word_pkey)"},
    {"SELECT u FROM word WHERE w = 'a' COLLATE \"C\" ORDER BY u", NULL, "u, w (tie-breaker: word_pkey)"},
    /* joins: the whole key of the other side, compared with the same type */
    {"SELECT a.id FROM a JOIN big ON big.k = a.k ORDER BY a.id", NULL, "a.id"},
    {"SELECT a.id FROM a JOIN big ON big.k = a.n ORDER BY a.id", NULL, "a.id"},
    {"SELECT a.id FROM a JOIN big ON big.k = a.f ORDER BY a.id", NULL, "a.id, big.k (tie-breaker: big_pkey)"},
    {"SELECT a.id FROM a JOIN big ON big.k = a.k + 0 ORDER BY a.id", NULL, "a.id, big.k (tie-breaker: big_pkey)"},
    {"SELECT a.id FROM a JOIN big ON big.k = a.k OR a.id = 1 ORDER BY a.id", NULL,
     "a.id, big.k (tie-breaker: big_pkey)"},
    {"SELECT a.id FROM a, word WHERE word.w = a.w ORDER BY a.id", NULL, "a.id, word.w (tie-breaker: word_pkey)"},
    {"SELECT c.line FROM child c JOIN tenant t ON t.org = c.org ORDER BY c.line", NULL,
     "c.line, c.org, c.no, t.no (tie-breaker: child_pkey, tenant_pkey)"},
    {"SELECT c.line FROM child c JOIN tenant t ON t.org = c.org AND t.no = c.no ORDER BY t.code", NULL,
     "t.code, c.line (tie-breaker: child_pkey)"},
    {"SELECT c.line FROM child c JOIN tenant t USING (org, no) WHERE org = $1 AND no = $2 ORDER BY line", "uuid, int4",
     "c.line"},
    {"SELECT c.line FROM child c, tenant t WHERE t.org = c.org AND t.no = c.no AND t.org = $1 AND t.no = 7 ORDER BY 1",
     "uuid", "c.line"},
    /* an equality inside a sub-select says nothing about this level */
    {"SELECT v FROM big WHERE EXISTS (SELECT 1 FROM a WHERE a.id = 3 AND big.k = 1) ORDER BY v", NULL,
     "v, k (tie-breaker: big_pkey)"},
};

static const char *answer(const char *facts, const char *sql, const char *params, char *out, size_t room)
{
    struct fixture_description description;
    enum pgseek_reason reason;
    char text[1024];

    snprintf(text, sizeof text, "%s LIMIT 3", sql);
    struct pgseek_plan *plan =
        fixture_plan(facts, text, NULL, fixture_describe(&description, params ? "column" : NULL, params), &reason);
    snprintf(out, room, "%s", plan ? pgseek_plan_summary(plan) : pgseek_reason_name(reason));
    pgseek_plan_free(plan);
    return out;
}

static void keys_are_proven(void **state)
{
    char found[1024];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(answer(schema, cases[i].sql, cases[i].params, found, sizeof found), cases[i].expected) != 0)
            fail_msg("%s\n   %s\n   instead of %s", cases[i].sql, found, cases[i].expected);
}

/* With an operator = in front of pg_catalog's, an unqualified one proves nothing. */
static void foreign_operators_prove_nothing(void **state)
{
    char facts[4096];
    char found[1024];

    (void)state;
    snprintf(facts, sizeof facts, "%sforeign_operators\n", schema);
    answer(facts, "SELECT v FROM big WHERE k = 1 ORDER BY v", NULL, found, sizeof found);
    assert_string_equal(found, "v, k (tie-breaker: big_pkey)");
    answer(facts, "SELECT v FROM big WHERE k OPERATOR(pg_catalog.=) 1 ORDER BY v", NULL, found, sizeof found);
    assert_string_equal(found, "v");
    answer(facts, "SELECT c.line FROM child c JOIN tenant t USING (org, no) ORDER BY line", NULL, found, sizeof found);
    assert_string_equal(found, "c.line, c.org, c.no, t.code (tie-breaker: child_pkey, tenant_code)");
}

static void arithmetic_needs_known_operators(void **state)
{
    static const char *const limits[] = {"1 + 1", "1 OPERATOR(pg_catalog.+) 1", "1"};
    char facts[4096];

    (void)state;
    snprintf(facts, sizeof facts, "%sforeign_operators\n", schema);
    for (size_t i = 0; i < 3; i++) {
        char sql[256];
        enum pgseek_reason reason;

        snprintf(sql, sizeof sql, "SELECT k FROM big ORDER BY k LIMIT %s", limits[i]);
        struct pgseek_plan *plan = fixture_plan(facts, sql, NULL, NULL, &reason);
        assert_int_equal(reason, i ? PGSEEK_REASON_NONE : PGSEEK_REASON_LIMIT_EXPRESSION);
        pgseek_plan_free(plan);
    }
}

static void description_must_fit(void **state)
{
    static const struct {
        const char *columns;
        enum pgseek_reason reason;
    } cases_of_columns[] = {
        {"id, title", PGSEEK_REASON_NONE}, {"id", PGSEEK_REASON_STAR}, {"id, title, x", PGSEEK_REASON_STAR}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct fixture_description description;
        enum pgseek_reason reason;
        struct pgseek_plan *plan =
            fixture_plan(fixture_shop, "SELECT id, title FROM booking ORDER BY 1 LIMIT 3", NULL,
                         fixture_describe(&description, cases_of_columns[i].columns, NULL), &reason);
        assert_int_equal(reason, cases_of_columns[i].reason);
        pgseek_plan_free(plan);
    }
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(keys_are_proven),
        cmocka_unit_test(foreign_operators_prove_nothing),
        cmocka_unit_test(arithmetic_needs_known_operators),
        cmocka_unit_test(description_must_fit),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return fixture_run(tests);
}
