/* test_contract.c - what a cursor is bound to: which statements share a contract, and which do not. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct pair {
    const char *a;
    const char *b;
};

static const struct pair same[] = {
    {"SELECT id FROM booking ORDER BY id LIMIT 3", "select ID from BOOKING order by ID limit 3"},
    {"SELECT id FROM booking ORDER BY id LIMIT 3", "SELECT \"id\" FROM booking ORDER BY id LIMIT 3"},
    {"SELECT id FROM booking ORDER BY id LIMIT 3", "/* x */ SELECT  id\nFROM booking -- y\nORDER BY id LIMIT 3;"},
    {"SELECT id FROM booking ORDER BY id LIMIT 3", "SELECT id FROM booking ORDER BY id FETCH FIRST 20 ROWS ONLY"},
    {"SELECT id FROM booking ORDER BY id LIMIT 3 OFFSET 9", "SELECT id FROM booking ORDER BY id OFFSET 6 LIMIT 3"},
    {"SELECT id FROM booking ORDER BY id LIMIT 3", "SELECT id FROM booking ORDER BY id LIMIT $1 OFFSET $2"},
    {"SELECT id FROM booking ORDER BY id LIMIT 3", "SELECT id FROM booking ORDER BY id ASC LIMIT 3"},
    {"SELECT id FROM booking ORDER BY id LIMIT 3", "SELECT id FROM booking ORDER BY id NULLS LAST LIMIT 3"},
    {"SELECT id FROM booking ORDER BY id DESC LIMIT 3", "SELECT id FROM booking ORDER BY id DESC NULLS FIRST LIMIT 3"},
    {"SELECT id::int FROM booking ORDER BY title LIMIT 3",
     "SELECT CAST(id AS integer) FROM booking ORDER BY title LIMIT 3"},
    {"SELECT id FROM booking WHERE note <> 'a' ORDER BY id LIMIT 3",
     "SELECT id FROM booking WHERE (note != E'a') ORDER BY id LIMIT 3"},
    {"SELECT id FROM booking WHERE note = $$a$$ ORDER BY id LIMIT 3",
     "SELECT id FROM booking WHERE note = U&'\\0061' ORDER BY id LIMIT 3"},
    {"SELECT b.id FROM booking b JOIN seat s ON true ORDER BY b.id, s.id LIMIT 3",
     "SELECT b.id FROM booking AS b INNER JOIN seat AS s ON true ORDER BY b.id, s.id LIMIT 3"},
    /* parameters count by their first use, those of LIMIT and OFFSET not at all */
    {"SELECT id FROM booking WHERE venue_id = $1 ORDER BY id LIMIT $2",
     "SELECT id FROM booking WHERE venue_id = $3 ORDER BY id LIMIT $1 OFFSET $2"},
};

static const struct pair different[] = {
    {"SELECT id FROM booking WHERE venue_id = 1 ORDER BY id LIMIT 3",
     "SELECT id FROM booking WHERE venue_id = 2 ORDER BY id LIMIT 3"},
    {"SELECT id FROM booking WHERE venue_id = 1 ORDER BY id LIMIT 3",
     "SELECT id FROM booking WHERE venue_id = $1 ORDER BY id LIMIT 3"},
    {"SELECT id, title FROM booking ORDER BY 1 LIMIT 3", "SELECT id, title FROM booking ORDER BY 2 LIMIT 3"},
    {"SELECT id, title FROM booking ORDER BY id LIMIT 3", "SELECT title, id FROM booking ORDER BY id LIMIT 3"},
    {"SELECT id FROM booking ORDER BY id LIMIT 3", "SELECT id FROM booking ORDER BY id DESC LIMIT 3"},
    {"SELECT id FROM booking ORDER BY id LIMIT 3", "SELECT id FROM booking ORDER BY id NULLS FIRST LIMIT 3"},
    {"SELECT id FROM booking ORDER BY id LIMIT 3", "SELECT id FROM seat ORDER BY id LIMIT 3"},
    {"SELECT id FROM booking ORDER BY id LIMIT 3", "SELECT id AS x FROM booking ORDER BY id LIMIT 3"},
    {"SELECT id FROM booking ORDER BY id LIMIT 3", "SELECT id FROM booking b ORDER BY id LIMIT 3"},
    {"SELECT id FROM booking ORDER BY id LIMIT 3", "SELECT id FROM booking ORDER BY id LIMIT 3 FOR UPDATE"},
    {"SELECT id FROM booking ORDER BY id LIMIT 3 FOR SHARE", "SELECT id FROM booking ORDER BY id LIMIT 3 FOR UPDATE"},
    {"SELECT id FROM booking WHERE venue_id IN (1, 2) ORDER BY id LIMIT 3",
     "SELECT id FROM booking WHERE venue_id IN (1, 2, 3) ORDER BY id LIMIT 3"},
    {"SELECT id FROM booking WHERE venue_id = $1 AND title = $2 ORDER BY id LIMIT 3",
     "SELECT id FROM booking WHERE title = $1 AND venue_id = $2 ORDER BY id LIMIT 3"},
    {"SELECT id FROM booking WHERE venue_id = $1 AND id > $1 ORDER BY id LIMIT 3",
     "SELECT id FROM booking WHERE venue_id = $1 AND id > $2 ORDER BY id LIMIT 3"},
    {"SELECT id FROM booking WHERE 1.0 = 1 ORDER BY id LIMIT 3",
     "SELECT id FROM booking WHERE 1.00 = 1 ORDER BY id LIMIT 3"},
    {"SELECT id FROM booking WHERE true ORDER BY id LIMIT 3", "SELECT id FROM booking WHERE false ORDER BY id LIMIT 3"},
    {"SELECT id FROM booking WHERE venue_id = -1 ORDER BY id LIMIT 3",
     "SELECT id FROM booking WHERE venue_id = 1 ORDER BY id LIMIT 3"},
    {"SELECT note::varchar(3), id FROM booking ORDER BY id LIMIT 3",
     "SELECT note::varchar(4), id FROM booking ORDER BY id LIMIT 3"},
    {"SELECT id FROM booking WHERE EXISTS (SELECT 1 FROM seat LIMIT 1) ORDER BY id LIMIT 3",
     "SELECT id FROM booking WHERE EXISTS (SELECT 1 FROM seat LIMIT 2) ORDER BY id LIMIT 3"},
};

static struct pgseek_plan *must_plan(const char *schema, const char *sql)
{
    enum pgseek_reason reason;
    struct pgseek_plan *plan = fixture_plan(schema, sql, NULL, NULL, &reason);

    if (!plan)
        fail_msg("%s: %s", sql, pgseek_reason_name(reason));
    return plan;
}

static bool plans_agree(const struct pgseek_plan *a, const struct pgseek_plan *b)
{
    size_t alen;
    size_t blen;
    const uint8_t *abytes = pgseek_plan_contract(a, &alen);
    const uint8_t *bbytes = pgseek_plan_contract(b, &blen);

    return alen == blen && !memcmp(abytes, bbytes, alen);
}

static bool agree(const struct pair *pair)
{
    struct pgseek_plan *a = must_plan(fixture_shop, pair->a);
    struct pgseek_plan *b = must_plan(fixture_shop, pair->b);
    bool equal = plans_agree(a, b);

    pgseek_plan_free(a);
    pgseek_plan_free(b);
    return equal;
}

static void spelling_does_not_matter(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (!agree(&same[i]))
            fail_msg("%s\n   %s", same[i].a, same[i].b);
}

static void meaning_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof different / sizeof *different; i++)
        if (agree(&different[i]))
            fail_msg("%s\n   %s", different[i].a, different[i].b);
}

/* The same text over another table, as another search_path gives it. */
static void names_are_resolved(void **state)
{
    static const char sql[] = "SELECT id FROM booking ORDER BY id LIMIT 3";
    static const char elsewhere[] = "table public.booking\n  id int8 notnull\n  primary booking_pkey (id)\n";
    struct pgseek_plan *a = must_plan(fixture_shop, sql);
    struct pgseek_plan *b = must_plan(elsewhere, sql);
    struct pgseek_plan *c = must_plan(fixture_shop, "SELECT id FROM public.booking ORDER BY id LIMIT 3");

    (void)state;
    /* An oid or another column is no other contract; the spelling of the name is a part of the tree. */
    assert_true(plans_agree(a, b));
    assert_false(plans_agree(a, c));
    pgseek_plan_free(a);
    pgseek_plan_free(b);
    pgseek_plan_free(c);
}

static void filter_parameters_come_by_first_use(void **state)
{
    struct pgseek_plan *plan = must_plan(
        fixture_shop, "SELECT $5::int AS x, id FROM booking WHERE venue_id = $3 AND title = $1 AND venue_id < $3 "
                      "ORDER BY id LIMIT $2 OFFSET $4");

    (void)state;
    assert_int_equal(pgseek_plan_filter_count(plan), 3);
    assert_int_equal(pgseek_plan_filter_param(plan, 0), 5);
    assert_int_equal(pgseek_plan_filter_param(plan, 1), 3);
    assert_int_equal(pgseek_plan_filter_param(plan, 2), 1);
    pgseek_plan_free(plan);
}

/* The parameter that carries the cursor differs on every page. */
static void cursor_parameter_is_no_filter(void **state)
{
    static const char sql[] =
        "SELECT id FROM booking WHERE venue_id = $1 AND coalesce($2, '') IS NOT NULL ORDER BY id LIMIT 3";
    const struct pgseek_reading reading = {.standard_strings = true, .ascii_safe_encoding = true, .cursor_param = 2};
    enum pgseek_reason reason;
    struct pgseek_query *query = pgseek_query_new(sql, strlen(sql), &reading, &reason);
    struct pgseek_plan *plan = fixture_plan_of(fixture_shop, query, NULL, NULL, NULL, &reason);

    (void)state;
    assert_non_null(plan);
    assert_int_equal(pgseek_plan_filter_count(plan), 1);
    assert_int_equal(pgseek_plan_filter_param(plan, 0), 1);
    pgseek_plan_free(plan);
    pgseek_query_free(query);
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(spelling_does_not_matter),
        cmocka_unit_test(meaning_does),
        cmocka_unit_test(names_are_resolved),
        cmocka_unit_test(filter_parameters_come_by_first_use),
        cmocka_unit_test(cursor_parameter_is_no_filter),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return fixture_run(tests);
}
