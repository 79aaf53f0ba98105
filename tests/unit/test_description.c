/* test_description.c - what the server says of a statement is copied whole or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/page/description.h"

#define FIELD(name, oid) name "\0\0\0\x40\0\0\3\0\0\0" oid "\xff\xff\xff\xff\xff\xff\0\0"

static const char params[] = "\0\2\0\0\0\x14\0\0\0\x19";
static const char columns[] = "\0\2" FIELD("id", "\x14") FIELD("", "\x19");

static void both_parts_are_copied(void **state)
{
    struct description description = {0};
    (void)state;
    assert_true(description_read_params(&description, span_of(params, sizeof params - 1)));
    assert_true(description_read_columns(&description, span_of(columns, sizeof columns - 1)));
    struct pgseek_description view = description_view(&description);
    assert_int_equal(view.nparams, 2);
    assert_int_equal(view.param_oids[0], 20);
    assert_int_equal(view.param_oids[1], 25);
    assert_int_equal(view.ncolumns, 2);
    assert_string_equal(view.columns[0].name, "id");
    assert_string_equal(view.columns[1].name, "");
    assert_int_equal(view.columns[0].table_oid, 16384);
    assert_int_equal(view.columns[0].attnum, 3);
    assert_int_equal(view.columns[1].type_oid, 25);
    assert_int_equal(view.columns[1].typmod, -1);
    description_fini(&description);
}

static void a_second_reading_replaces_the_first(void **state)
{
    struct description description = {0};
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_true(description_read_params(&description, span_of(params, sizeof params - 1)));
        assert_true(description_read_columns(&description, span_of(columns, sizeof columns - 1)));
    }
    assert_true(description_read_params(&description, span_of("\0\0", 2)));
    assert_true(description_read_columns(&description, span_of("\0\0", 2)));
    assert_int_equal(description_view(&description).nparams, 0);
    assert_int_equal(description_view(&description).ncolumns, 0);
    description_fini(&description);
}

/* Every beginning, anything behind the end, and counts that nothing follows. */
static void what_is_malformed_is_refused(void **state)
{
    struct description description = {0};
    (void)state;
    for (size_t len = 0; len < sizeof params - 1; len++)
        assert_false(description_read_params(&description, span_of(params, len)));
    for (size_t len = 0; len < sizeof columns - 1; len++)
        assert_false(description_read_columns(&description, span_of(columns, len)));
    assert_false(description_read_params(&description, span_of(params, sizeof params)));
    assert_false(description_read_columns(&description, span_of(columns, sizeof columns)));
    assert_false(description_read_params(&description, span_of("\xff\xff\0\0\0\1", 6)));
    assert_false(description_read_columns(&description, span_of("\xff\xff\0\0\0\1", 6)));
    description_fini(&description);
}

static void memory_may_run_out(void **state)
{
    bool done = false;
    (void)state;
    for (long n = 0; !done; n++) {
        struct description description = {0};
        mem_fail_after(n);
        done = description_read_params(&description, span_of(params, sizeof params - 1)) &&
               description_read_columns(&description, span_of(columns, sizeof columns - 1));
        mem_fail_after(-1);
        description_fini(&description);
        assert_true(n < 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_parts_are_copied),
        cmocka_unit_test(a_second_reading_replaces_the_first),
        cmocka_unit_test(what_is_malformed_is_refused),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
