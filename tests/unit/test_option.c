/* test_option.c - option names and values are decoded, and mistakes get a helpful error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../parser/option.h"

static struct pgseek_settings settings;
static struct pgseek_error error;

static bool put(enum pgseek_option option, const char *value, bool may_param)
{
    pgseek_settings_init(&settings);
    return pgseek_settings_put(&settings, option, value, may_param, &error);
}

static void names_are_found_in_any_case(void **state)
{
    (void)state;
    enum pgseek_option option = PGSEEK_OPT_COUNT;
    for (unsigned i = 0; i < PGSEEK_OPT_COUNT; i++) {
        const char *name = pgseek_option_name((enum pgseek_option)i);
        assert_true(pgseek_option_find(name, strlen(name), &option));
        assert_int_equal(option, i);
        assert_true(strlen(pgseek_option_help((enum pgseek_option)i)) > 10);
    }
    assert_true(pgseek_option_find("CuRsOr", 6, &option));
    assert_int_equal(option, PGSEEK_OPT_CURSOR);
    assert_false(pgseek_option_find("cursors", 7, &option));
    assert_false(pgseek_option_find("curso", 5, &option));
    assert_false(pgseek_option_find("", 0, &option));
}

static void defaults_are_the_documented_ones(void **state)
{
    (void)state;
    pgseek_settings_init(&settings);
    assert_int_equal(settings.given, 0);
    assert_int_equal(settings.cursor_kind, PGSEEK_CURSOR_NONE);
    assert_int_equal(settings.page, PGSEEK_PAGE_FIRST);
    assert_int_equal(settings.total, PGSEEK_TOTAL_NONE);
    assert_int_equal(settings.mode, PGSEEK_MODE_REWRITE);
    assert_int_equal(settings.deliver, PGSEEK_DELIVER_STATUS);
    assert_false(settings.strict || settings.tail || settings.paginate);
}

static const struct {
    const char *value;
    bool may_param;
    bool is_good;
    enum pgseek_cursor_kind kind;
    int param;
} cursors[] = {
    {"", true, true, PGSEEK_CURSOR_NONE, 0},
    {"", false, true, PGSEEK_CURSOR_NONE, 0},
    {"null", true, true, PGSEEK_CURSOR_NONE, 0},
    {"NULL", true, true, PGSEEK_CURSOR_NONE, 0},
    {"NULL", false, true, PGSEEK_CURSOR_TEXT, 0},
    {"nulls", true, true, PGSEEK_CURSOR_TEXT, 0},
    {"AbC-_", true, true, PGSEEK_CURSOR_TEXT, 0},
    {"$1", true, true, PGSEEK_CURSOR_PARAM, 1},
    {"$65535", true, true, PGSEEK_CURSOR_PARAM, 65535},
    {"$1", false, true, PGSEEK_CURSOR_TEXT, 0},
    {"$0", true, false, PGSEEK_CURSOR_NONE, 0},
    {"$65536", true, false, PGSEEK_CURSOR_NONE, 0},
    {"$99999999999999999999", true, false, PGSEEK_CURSOR_NONE, 0},
    {"$", true, false, PGSEEK_CURSOR_NONE, 0},
    {"$1x", true, false, PGSEEK_CURSOR_NONE, 0},
    {"$-1", true, false, PGSEEK_CURSOR_NONE, 0},
};

static void cursors_are_decoded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cursors / sizeof *cursors; i++) {
        bool is_good = put(PGSEEK_OPT_CURSOR, cursors[i].value, cursors[i].may_param);
        if (is_good != cursors[i].is_good || settings.cursor_kind != cursors[i].kind)
            fail_msg("%s: %d, kind %d", cursors[i].value, is_good, (int)settings.cursor_kind);
        assert_int_equal(settings.cursor_param, cursors[i].param);
        if (cursors[i].kind == PGSEEK_CURSOR_TEXT)
            assert_string_equal(settings.cursor, cursors[i].value);
        else
            assert_null(settings.cursor);
        assert_int_equal(settings.given, is_good ? 1u << PGSEEK_OPT_CURSOR : 0);
    }
}

static const struct {
    enum pgseek_option option;
    const char *value;
    bool is_good;
} values[] = {
    {PGSEEK_OPT_PAGE, "first", true},
    {PGSEEK_OPT_PAGE, "LAST", true},
    {PGSEEK_OPT_PAGE, "", false},
    {PGSEEK_OPT_PAGE, "2", false},
    {PGSEEK_OPT_TOTAL, "exact", true},
    {PGSEEK_OPT_TOTAL, "exac", false},
    {PGSEEK_OPT_MODE, "observe", true},
    {PGSEEK_OPT_MODE, "on", false},
    {PGSEEK_OPT_STRICT, "on", true},
    {PGSEEK_OPT_STRICT, "No", true},
    {PGSEEK_OPT_STRICT, "1", true},
    {PGSEEK_OPT_STRICT, "2", false},
    {PGSEEK_OPT_STRICT, "", false},
    {PGSEEK_OPT_TAIL, "yes", true},
    {PGSEEK_OPT_TAIL, "y", false},
    {PGSEEK_OPT_PAGINATE, "true", true},
    {PGSEEK_OPT_DELIVER, "notice", true},
    {PGSEEK_OPT_DELIVER, "status+columns", true},
    {PGSEEK_OPT_DELIVER, "", false},
    {PGSEEK_OPT_DELIVER, "+", false},
    {PGSEEK_OPT_DELIVER, "statu", false},
    {PGSEEK_OPT_DELIVER, "status+mail", false},
    {PGSEEK_OPT_KEY, "id", true},
    {PGSEEK_OPT_KEY, "", true},
    {PGSEEK_OPT_WALK, "", true},
    {PGSEEK_OPT_WALK, "a", true},
    {PGSEEK_OPT_WALK, "0123456789012345678901234567890123456789012345678901234567890123", true},
    {PGSEEK_OPT_WALK, "01234567890123456789012345678901234567890123456789012345678901234", false},
};

static void values_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        bool is_good = put(values[i].option, values[i].value, false);
        if (is_good != values[i].is_good)
            fail_msg("%s=%s: %d", pgseek_option_name(values[i].option), values[i].value, is_good);
        if (is_good)
            continue;
        struct pgseek_settings untouched;
        pgseek_settings_init(&untouched);
        assert_memory_equal(&settings, &untouched, sizeof untouched);
        assert_int_equal(error.code, PGSEEK_PS000);
        assert_non_null(strstr(error.detail, pgseek_option_name(values[i].option)));
        assert_true(error.message[0] && error.hint[0]);
    }
}

static void deliver_is_a_set(void **state)
{
    (void)state;
    assert_true(put(PGSEEK_OPT_DELIVER, "columns", false));
    assert_int_equal(settings.deliver, PGSEEK_DELIVER_COLUMNS);
    assert_true(put(PGSEEK_OPT_DELIVER, " status, notice|columns,", false));
    assert_int_equal(settings.deliver, PGSEEK_DELIVER_STATUS | PGSEEK_DELIVER_NOTICE | PGSEEK_DELIVER_COLUMNS);
}

static void an_overlay_changes_what_it_was_given(void **state)
{
    (void)state;
    struct pgseek_settings over;
    pgseek_settings_init(&over);
    pgseek_settings_init(&settings);
    assert_true(pgseek_settings_put(&settings, PGSEEK_OPT_CURSOR, "abc", false, &error));
    assert_true(pgseek_settings_put(&settings, PGSEEK_OPT_STRICT, "on", false, &error));
    assert_true(pgseek_settings_put(&over, PGSEEK_OPT_CURSOR, "", false, &error));
    assert_true(pgseek_settings_put(&over, PGSEEK_OPT_WALK, "w", false, &error));
    pgseek_settings_overlay(&settings, &over);
    assert_int_equal(settings.cursor_kind, PGSEEK_CURSOR_NONE); /* an empty cursor hides the one below */
    assert_true(settings.strict);
    assert_string_equal(settings.walk, "w");
    assert_int_equal(settings.given, 1u << PGSEEK_OPT_CURSOR | 1u << PGSEEK_OPT_STRICT | 1u << PGSEEK_OPT_WALK);
}

static const struct {
    const char *name;
    const char *nearest; /* NULL: none */
} misspelt[] = {
    {"curser", "cursor"},
    {"cusror", "cursor"},
    {"CURSR", "cursor"},
    {"pages", "page"},
    {"totl", "total"},
    {"delivery", "deliver"},
    {"kee", "key"},
    {"x", NULL},
    {"limit", NULL},
    {"strct", "strict"},
    {"averyveryverylongname", NULL},
};

static void misspelt_names_get_the_nearest(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof misspelt / sizeof *misspelt; i++) {
        char hint[64] = "The options are";
        assert_false(option_unknown(&error, misspelt[i].name, strlen(misspelt[i].name)));
        if (misspelt[i].nearest)
            snprintf(hint, sizeof hint, "Did you mean \"%s\"?", misspelt[i].nearest);
        if (!strstr(error.hint, hint))
            fail_msg("%s: %s", misspelt[i].name, error.hint);
        assert_non_null(strstr(error.detail, misspelt[i].name));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_in_any_case),
        cmocka_unit_test(defaults_are_the_documented_ones),
        cmocka_unit_test(cursors_are_decoded),
        cmocka_unit_test(values_are_checked),
        cmocka_unit_test(deliver_is_a_set),
        cmocka_unit_test(an_overlay_changes_what_it_was_given),
        cmocka_unit_test(misspelt_names_get_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
