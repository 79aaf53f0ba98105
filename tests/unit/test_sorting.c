/* test_sorting.c - the marks of an order: which changes a cursor survives, and what is said of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/page/planned.h"
#include "../../proxy/page/sorting.h"
#include "fixture.h"

static char utf8[] = "UTF8", latin[] = "LATIN1";

static const struct context utf8_context = {{[PGSEEK_CTX_ENCODING] = utf8}};
static const struct context latin_context = {{[PGSEEK_CTX_ENCODING] = latin}};

static struct pgseek_plan *plan(const char *order)
{
    char sql[128];
    enum pgseek_reason reason;
    struct fixture_description description;
    snprintf(sql, sizeof sql, "SELECT id FROM booking ORDER BY %s LIMIT 2", order);
    struct pgseek_plan *made = fixture_plan(fixture_shop, sql, NULL, fixture_describe(&description, "id", ""), &reason);
    assert_non_null(made);
    return made;
}

/* The plan's own key, to be changed as a change of the catalog would. */
static struct pgseek_key *key_of(const struct pgseek_plan *plan, size_t i)
{
    return (struct pgseek_key *)(uintptr_t)pgseek_plan_key(plan, i);
}

enum change {
    NO_CHANGE,
    BECAME_NULLABLE,
    BECAME_NOT_NULL,
    NULLS_MOVED,
    OTHER_TYPE,
    OTHER_DIRECTION,
    OTHER_COLUMN,
    OTHER_COLLATION,
    OTHER_ENCODING,
    FEWER_KEYS
};

/* The cursor of a row of (title, id) as the plan was; `is_null`: title is NULL. */
static struct cursor cursor_of(const struct pgseek_plan *plan, bool is_null, bool is_end)
{
    struct cursor cursor = {0};
    assert_true(sorting_digest(plan, &utf8_context, cursor.part[CURSOR_SORT]));
    cursor.nvalues = is_end ? 0 : 2;
    cursor.value[0] = (struct cursor_value){.type_oid = key_of(plan, 0)->type_oid, .len = is_null ? -1 : 1};
    cursor.value[1] = (struct cursor_value){.type_oid = key_of(plan, 1)->type_oid, .len = 8};
    return cursor;
}

static void apply(struct pgseek_plan *plan, enum change change, struct cursor *cursor)
{
    struct pgseek_key *title = key_of(plan, 0);
    title->nullable |= change == BECAME_NULLABLE;
    title->nullable &= change != BECAME_NOT_NULL;
    title->nulls_first ^= change == NULLS_MOVED;
    title->descending ^= change == OTHER_DIRECTION;
    if (change == OTHER_TYPE) {
        title->type_oid = 20;
        title->type_name = "pg_catalog.int8";
    }
    if (change == OTHER_COLUMN)
        title->column = "\"booking\".\"subtitle\"";
    if (change == OTHER_COLLATION)
        title->identity = "fr_FR c 2.37";
    if (change == FEWER_KEYS)
        cursor->nvalues = 1;
}

static void changes_are_told(void **state)
{
    static const struct {
        enum change change;
        bool was_nullable, is_null, is_end;
        const char *detail; /* NULL: the cursor still fits */
    } cases[] = {
        {NO_CHANGE, false, false, false, NULL},
        {NO_CHANGE, false, false, true, NULL},
        {NO_CHANGE, true, false, false, NULL},
        {NO_CHANGE, true, true, false, NULL},
        {NO_CHANGE, false, true, false,
         "Sort key 1, \"booking\".\"title\", is NOT NULL now, and the cursor holds a NULL."},
        {BECAME_NULLABLE, false, false, false, "Sort key 1, \"booking\".\"title\", may be NULL now, and was NOT NULL."},
        {BECAME_NOT_NULL, true, false, false, NULL},
        {BECAME_NOT_NULL, true, false, true, NULL},
        {BECAME_NOT_NULL, true, true, false,
         "Sort key 1, \"booking\".\"title\", is NOT NULL now, and the cursor holds a NULL."},
        {NULLS_MOVED, true, false, false, "Sort key 1, \"booking\".\"title\", has its NULLs at the other end now."},
        {NULLS_MOVED, false, false, false, NULL},
        {OTHER_TYPE, false, false, false,
         "Sort key 1, \"booking\".\"title\", is of type pg_catalog.int8 now, and was of another."},
        {OTHER_TYPE, false, false, true, "The sort keys, their types or directions have changed."},
        {OTHER_COLUMN, false, false, false, "The sort keys, their types or directions have changed."},
        {OTHER_DIRECTION, false, false, false, "The sort keys, their types or directions have changed."},
        {OTHER_COLLATION, false, false, false,
         "The collation of a sort key, its version, the labels of an enum, or a function in a key have changed."},
        {OTHER_ENCODING, false, false, false,
         "client_encoding is LATIN1 now, and was another when the cursor was made: a sort key is text."},
        {FEWER_KEYS, false, false, false, "It holds 1 sort keys, and the statement has 2 now."},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pgseek_plan *made = plan("title, id");
        const struct context *now = cases[i].change == OTHER_ENCODING ? &latin_context : &utf8_context;
        uint8_t part[CURSOR_DIGEST];
        char detail[512] = "";
        key_of(made, 0)->nullable = cases[i].was_nullable;
        struct cursor cursor = cursor_of(made, cases[i].is_null, cases[i].is_end);
        apply(made, cases[i].change, &cursor);
        assert_true(sorting_digest(made, now, part));
        bool fits = sorting_fits(made, now, part, &cursor, detail, sizeof detail);
        if (fits != (cases[i].detail == NULL))
            fail_msg("case %zu: %d, %s", i, fits, detail);
        if (!fits)
            assert_string_equal(detail, cases[i].detail);
        pgseek_plan_free(made);
    }
}

/* Without a text key the encoding is nothing to the cursor. */
static void numbers_have_no_encoding(void **state)
{
    struct pgseek_plan *made = plan("id");
    uint8_t a[CURSOR_DIGEST];
    uint8_t b[CURSOR_DIGEST];
    (void)state;
    assert_true(sorting_digest(made, &utf8_context, a) && sorting_digest(made, &latin_context, b));
    assert_memory_equal(a, b, CURSOR_DIGEST);
    pgseek_plan_free(made);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_told),
        cmocka_unit_test(numbers_have_no_encoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return fixture_run(run);
}
