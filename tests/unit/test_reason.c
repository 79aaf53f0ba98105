/* test_reason.c - every reason and every code has a usable name and text, and no two share one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../parser/pgseek.h"

static void names_are_labels_and_differ(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PGSEEK_REASON_COUNT; i++) {
        const char *name = pgseek_reason_name((enum pgseek_reason)i);
        assert_true(strlen(name) > 0 && strlen(name) < 32);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(name, pgseek_reason_name((enum pgseek_reason)j));
    }
}

static void texts_are_sentences(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PGSEEK_REASON_COUNT; i++) {
        const char *why = pgseek_reason_why((enum pgseek_reason)i);
        const char *hint = pgseek_reason_hint((enum pgseek_reason)i);
        assert_true(strlen(why) > 10 && strlen(why) < sizeof((struct pgseek_error *)0)->detail);
        assert_int_equal(why[strlen(why) - 1], '.');
        assert_true(strlen(hint) < sizeof((struct pgseek_error *)0)->hint);
        if (*hint)
            assert_non_null(strchr(".)", hint[strlen(hint) - 1]));
    }
}

static void none_is_zero(void **state)
{
    (void)state;
    assert_int_equal(PGSEEK_REASON_NONE, 0);
    assert_string_equal(pgseek_reason_name(PGSEEK_REASON_NO_ORDER), "no_order");
}

static void codes_are_of_class_ps(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PGSEEK_CODE_COUNT; i++) {
        const char *sqlstate = pgseek_code_sqlstate((enum pgseek_code)i);
        assert_int_equal(strlen(sqlstate), 5);
        assert_memory_equal(sqlstate, "PS00", 4);
        assert_int_equal(sqlstate[4], (int)('0' + i));
        assert_true(strlen(pgseek_code_meaning((enum pgseek_code)i)) > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_labels_and_differ),
        cmocka_unit_test(texts_are_sentences),
        cmocka_unit_test(none_is_zero),
        cmocka_unit_test(codes_are_of_class_ps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
