/* test_guard.c - the guard's text: what it watches, and what it hashes.
 *
 * That it passes and fails as it should is shown on a real server by tests/e2e/shape_walk.c. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *must_guard(const char *schema, const char *sql, const char *columns, const char *params,
                        const char *const *scope, size_t nscope)
{
    struct fixture_description description;
    enum pgseek_reason reason;
    struct pgseek_plan *plan =
        fixture_plan(schema, sql, NULL, fixture_describe(&description, columns, params), &reason);

    if (!plan)
        fail_msg("%s: %s", sql, pgseek_reason_name(reason));
    char *guard = pgseek_guard_new(plan, scope, nscope);
    pgseek_plan_free(plan);
    assert_non_null(guard);
    return guard;
}

static size_t count(const char *text, const char *word)
{
    size_t found = 0;

    while ((text = strstr(text, word)) != NULL) {
        found++;
        text += strlen(word);
    }
    return found;
}

static void it_watches_what_the_proof_used(void **state)
{
    char *guard =
        must_guard(fixture_shop,
                   "SELECT b.id FROM booking b JOIN seat s ON s.booking_id = b.id WHERE EXISTS (SELECT 1 FROM "
                   "public.seat) ORDER BY b.placed_at LIMIT 3",
                   NULL, NULL, NULL, 0);

    (void)state;
    assert_int_equal(count(guard, "to_regclass('\"booking\"')"), 1);
    assert_int_equal(count(guard, "to_regclass('\"seat\"')"), 1);
    assert_int_equal(count(guard, "to_regclass('\"public\".\"seat\"')"), 1);
    /* one question for each catalog */
    assert_int_equal(count(guard, "pg_inherits"), 1);
    assert_int_equal(count(guard, "pg_index i"), 1);
    assert_int_equal(count(guard, "pg_attribute a"), 1);
    assert_int_equal(count(guard, "i.indexrelid OPERATOR(pg_catalog.=) "), 3);
    /* placed_at, both ids, and the column that is compared with b.id; it and b.id are NOT NULL by the join already */
    assert_int_equal(count(guard, "a.attname OPERATOR(pg_catalog.=)"), 4);
    assert_int_equal(count(guard, "attnotnull"), 2);
    assert_int_equal(count(guard, "client_encoding"), 0);
    free(guard);
}

static void a_position_pins_what_it_counts(void **state)
{
    static const struct {
        const char *sql;
        size_t layouts;
    } cases[] = {
        {"SELECT * FROM booking ORDER BY 1 LIMIT 3", 1},
        {"SELECT s.*, b.id FROM booking b JOIN seat s ON s.booking_id = b.id ORDER BY 1 LIMIT 3", 2},
        {"SELECT id, title FROM booking ORDER BY 1 LIMIT 3", 0},
        {"SELECT * FROM booking ORDER BY id LIMIT 3", 0},
        {"SELECT id FROM (SELECT DISTINCT * FROM booking) q ORDER BY id LIMIT 3", 1},
        {"SELECT id FROM (SELECT DISTINCT id FROM booking) q ORDER BY id LIMIT 3", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *guard = must_guard(fixture_shop, cases[i].sql, NULL, NULL, NULL, 0);
        assert_int_equal(count(guard, "string_agg"), cases[i].layouts);
        free(guard);
    }
}

static void a_text_key_pins_the_encoding(void **state)
{
    char *guard = must_guard(fixture_shop, "SELECT id FROM booking ORDER BY title LIMIT 3", NULL, NULL, NULL, 0);

    (void)state;
    assert_int_equal(count(guard, "current_setting('client_encoding') OPERATOR(pg_catalog.=) $3::"), 1);
    free(guard);
}

static void filters_are_hashed_by_value(void **state)
{
    static const char schema[] = "table public.t\n  id int4 notnull\n  m mood notnull\n  primary t_pkey (id)\n";
    char *guard = must_guard(schema, "SELECT id FROM t WHERE m = $2 AND id > $1 ORDER BY id LIMIT $3", "id",
                             "int4, mood, int8", NULL, 0);

    (void)state;
    assert_int_equal(count(guard, "record_send(ROW(pg_catalog.convert_to(pg_catalog.format('%L', $2), "
                                  "pg_catalog.getdatabaseencoding()), $1))"),
                     1);
    assert_int_equal(count(guard, "$2::"), 0); /* a cast may be somebody's own */
    /* ours follow the client's three: search_path, user, encoding, locale, filter, scope */
    assert_int_equal(count(guard, "$8::pg_catalog.bytea IS NULL"), 1);
    assert_int_equal(count(guard, "$9::pg_catalog.bytea IS NULL"), 1);
    free(guard);
}

static void long_filters_are_hashed_in_rows(void **state)
{
    char sql[32 * 1024] = "SELECT id FROM booking WHERE id IN (";
    size_t len = strlen(sql);

    (void)state;
    for (int i = 1; i <= 2500; i++)
        len += (size_t)snprintf(sql + len, sizeof sql - len, "%s$%d", i > 1 ? "," : "", i);
    snprintf(sql + len, sizeof sql - len, ") ORDER BY id LIMIT 3");
    char *guard = must_guard(fixture_shop, sql, NULL, NULL, NULL, 0);
    assert_int_equal(count(guard, "record_send(ROW("), 3);
    assert_int_equal(count(guard, "$2500"), 1);
    free(guard);
}

static void scope_names_are_quoted(void **state)
{
    static const char *const scope[] = {"app.tenant_id", "it's"};
    char *guard = must_guard(fixture_shop, "SELECT id FROM booking ORDER BY id LIMIT 3", NULL, NULL, scope, 2);

    (void)state;
    assert_int_equal(count(guard, "concat('app.tenant_id', '=', pg_catalog.current_setting('app.tenant_id', true))"),
                     1);
    assert_int_equal(count(guard, "concat('it''s', '=', pg_catalog.current_setting('it''s', true))"), 1);
    free(guard);
}

static void names_are_quoted_twice(void **state)
{
    static const char schema[] = "table public.o'x\n  id int4 notnull\n  primary t_pkey (id)\n";
    char *guard = must_guard(schema, "SELECT id FROM \"o'x\" ORDER BY id LIMIT 3", NULL, NULL, NULL, 0);

    (void)state;
    assert_int_equal(count(guard, "to_regclass('\"o''x\"')"), 1);
    free(guard);
}

/* Whatever standard_conforming_strings is when the guard runs, a name does not end its literal. */
static void backslashes_are_read_in_one_way(void **state)
{
    static const char schema[] = "table public.o\\'x\n  id int4 notnull\n  primary t_pkey (id)\n";
    char *guard = must_guard(schema, "SELECT id FROM \"o\\'x\" ORDER BY id LIMIT 3", NULL, NULL, NULL, 0);

    (void)state;
    assert_int_equal(count(guard, "to_regclass(E'\"o\\\\''x\"')"), 1);
    free(guard);
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(it_watches_what_the_proof_used),  cmocka_unit_test(a_position_pins_what_it_counts),
        cmocka_unit_test(a_text_key_pins_the_encoding),    cmocka_unit_test(filters_are_hashed_by_value),
        cmocka_unit_test(long_filters_are_hashed_in_rows), cmocka_unit_test(scope_names_are_quoted),
        cmocka_unit_test(names_are_quoted_twice),          cmocka_unit_test(backslashes_are_read_in_one_way),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return fixture_run(tests);
}
