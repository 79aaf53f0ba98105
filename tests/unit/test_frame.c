/* test_frame.c - statements around a statement, and the arguments of EXECUTE as values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../parser/pgseek.h"

/* ---- frames ---- */

static const struct {
    const char *sql;
    enum pgseek_frame_kind kind;
    const char *inner; /* what the statement inside begins with */
    const char *name;
    int types;
    bool executes;
} frames[] = {
    {.sql = "", .kind = PGSEEK_FRAME_NONE},
    {.sql = "select 1", .kind = PGSEEK_FRAME_NONE},
    {.sql = "explain", .kind = PGSEEK_FRAME_NONE},
    {.sql = "explain;", .kind = PGSEEK_FRAME_NONE},
    {.sql = "explain analyze", .kind = PGSEEK_FRAME_NONE},
    {.sql = "explain (analyze", .kind = PGSEEK_FRAME_NONE},
    {.sql = "explain select 1", .kind = PGSEEK_FRAME_EXPLAIN, .inner = "select"},
    {.sql = " ;EXPLAIN /* a */ ANALYZE -- b\n VERBOSE SELECT", .kind = PGSEEK_FRAME_EXPLAIN, .inner = "SELECT"},
    {.sql = "explain (format json, x (y)) with a", .kind = PGSEEK_FRAME_EXPLAIN, .inner = "with"},
    {.sql = "explain (select 1)", .kind = PGSEEK_FRAME_EXPLAIN, .inner = "(select"},
    {.sql = "explain ((select 1))", .kind = PGSEEK_FRAME_EXPLAIN, .inner = "((select"},
    {.sql = "explain (values (1))", .kind = PGSEEK_FRAME_EXPLAIN, .inner = "(values"},
    {.sql = "explain (analyze) (select 1)", .kind = PGSEEK_FRAME_EXPLAIN, .inner = "(select"},
    {.sql = "explain (costs off) execute p", .kind = PGSEEK_FRAME_EXPLAIN, .inner = "execute", .executes = true},
    {.sql = "declare", .kind = PGSEEK_FRAME_NONE},
    {.sql = "declare c cursor for", .kind = PGSEEK_FRAME_NONE, .name = "c"},
    {.sql = "declare C cursor for select", .kind = PGSEEK_FRAME_DECLARE, .inner = "select", .name = "c"},
    {.sql = "declare \"for\" scroll cursor with hold for select 1 for update",
     .kind = PGSEEK_FRAME_DECLARE,
     .inner = "select 1 for",
     .name = "for"},
    {.sql = "prepare p as select", .kind = PGSEEK_FRAME_PREPARE, .inner = "select", .name = "p"},
    {.sql = "prepare \"P\" (int, numeric(5, 2), text) as select",
     .kind = PGSEEK_FRAME_PREPARE,
     .inner = "select",
     .name = "P",
     .types = 3},
    {.sql = "prepare p(int) select", .kind = PGSEEK_FRAME_NONE, .name = "p", .types = 1},
    {.sql = "prepare p(int", .kind = PGSEEK_FRAME_NONE, .name = "p", .types = 1},
    {.sql = "prepare transaction 'x'", .kind = PGSEEK_FRAME_NONE, .name = "transaction"},
    {.sql = "prepare p as", .kind = PGSEEK_FRAME_NONE, .name = "p"},
    {.sql = "explain /* open", .kind = PGSEEK_FRAME_NONE},
};

static void frames_of_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        struct pgseek_frame frame;
        const char *sql = frames[i].sql;
        print_message("%s\n", sql);
        pgseek_frame_read(sql, strlen(sql), &frame);
        assert_int_equal(frame.kind, frames[i].kind);
        assert_string_equal(frame.name, frames[i].name ? frames[i].name : "");
        assert_int_equal(frame.types, frames[i].types);
        assert_int_equal(frame.executes, frames[i].executes);
        assert_true(frame.inner <= strlen(sql));
        if (frames[i].inner)
            assert_memory_equal(sql + frame.inner, frames[i].inner, strlen(frames[i].inner));
    }
}

static void highest_params(void **state)
{
    (void)state;
    static const char sql[] = "select $2, '$9', \"$8\", $3 /* $7 */ -- $6";
    assert_int_equal(pgseek_highest_param(sql, sizeof sql - 1), 3);
    assert_int_equal(pgseek_highest_param("select 1", 8), 0);
}

/* ---- arguments ---- */

enum {
    BOOL = 16,
    INT8 = 20,
    INT2 = 21,
    INT4 = 23,
    TEXT = 25,
    DATE = 1082,
    FLOAT8 = 701,
    VARCHAR = 1043,
    NUMERIC = 1700
};

static const struct {
    const char *argument;
    uint32_t type;
    enum pgseek_argument is;
    const char *text;
} arguments[] = {
    {"1", INT4, PGSEEK_ARGUMENT_TEXT, "1"},
    {"+007", INT4, PGSEEK_ARGUMENT_TEXT, "7"},
    {"-1", INT2, PGSEEK_ARGUMENT_TEXT, "-1"},
    {"- 1", INT2, PGSEEK_ARGUMENT_TEXT, "-1"},
    {"(1)", INT4, PGSEEK_ARGUMENT_TEXT, "1"},
    {"40000", INT2, PGSEEK_ARGUMENT_BAD, NULL},
    {"9223372036854775808", INT8, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"9223372036854775808", NUMERIC, PGSEEK_ARGUMENT_TEXT, "9223372036854775808"},
    {"1", TEXT, PGSEEK_ARGUMENT_TEXT, "1"},
    {"1", BOOL, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"1.5", NUMERIC, PGSEEK_ARGUMENT_TEXT, "1.5"},
    {"1.5", INT4, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"1e3", INT4, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"1.50", TEXT, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"NULL", INT4, PGSEEK_ARGUMENT_NULL, NULL},
    {"NULL::text", INT4, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"'a''b'", TEXT, PGSEEK_ARGUMENT_TEXT, "a'b"},
    {"E'\\n'", TEXT, PGSEEK_ARGUMENT_TEXT, "\n"},
    {"$$it's$$", DATE, PGSEEK_ARGUMENT_TEXT, "it's"},
    {"B'1'", TEXT, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"'1'::int8", INT4, PGSEEK_ARGUMENT_TEXT, "1"},
    {"' 1'::int8", INT4, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"'x'::text", VARCHAR, PGSEEK_ARGUMENT_TEXT, "x"},
    {"'x'::varchar(1)", VARCHAR, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"'x'::other.text", TEXT, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"'{x}'::text[]", TEXT, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"date '2026-01-01'", DATE, PGSEEK_ARGUMENT_TEXT, "2026-01-01"},
    {"'2026-01-01'::date", TEXT, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"70000::int2", INT4, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"1::float8", FLOAT8, PGSEEK_ARGUMENT_TEXT, "1"},
    {"true", BOOL, PGSEEK_ARGUMENT_TEXT, "t"},
    {"false", TEXT, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"now()", DATE, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"1 + 1", INT4, PGSEEK_ARGUMENT_UNKNOWN, NULL},
    {"$1", INT4, PGSEEK_ARGUMENT_UNKNOWN, NULL},
};

static const struct pgseek_reading plainly = {.standard_strings = true, .ascii_safe_encoding = true};

static void arguments_of_types(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        static const char *const fronts[] = {"EXECUTE p(0, ", "EXPLAIN (ANALYZE) EXECUTE p (0, ",
                                             "EXPLAIN CREATE TABLE t AS EXECUTE p(0, "};
        for (size_t f = 0; f < sizeof fronts / sizeof *fronts; f++) {
            char sql[128];
            const char *text;
            enum pgseek_reason reason;
            int len = snprintf(sql, sizeof sql, "%s%s); -- x", fronts[f], arguments[i].argument);
            print_message("%s as %u\n", sql, arguments[i].type);
            struct pgseek_execute *execute = pgseek_execute_new(sql, (size_t)len, &plainly, &reason);
            assert_non_null(execute);
            assert_int_equal(pgseek_execute_count(execute), 2);
            assert_int_equal(pgseek_execute_argument(execute, 1, arguments[i].type, &text), arguments[i].is);
            if (arguments[i].is == PGSEEK_ARGUMENT_TEXT)
                assert_string_equal(text, arguments[i].text);
            pgseek_execute_free(execute);
        }
    }
}

static const struct {
    const char *sql;
    struct pgseek_reading reading;
    enum pgseek_reason reason;
} refused[] = {
    {"EXECUTE p(", {.standard_strings = true, .ascii_safe_encoding = true}, PGSEEK_REASON_SYNTAX},
    {"EXECUTE p; SELECT 1", {.standard_strings = true, .ascii_safe_encoding = true}, PGSEEK_REASON_EXECUTE},
    {"SELECT 1", {.standard_strings = true, .ascii_safe_encoding = true}, PGSEEK_REASON_EXECUTE},
    {"CREATE TABLE t AS SELECT 1", {.standard_strings = true, .ascii_safe_encoding = true}, PGSEEK_REASON_EXECUTE},
    {"EXECUTE p", {.ascii_safe_encoding = true}, PGSEEK_REASON_STRINGS},
    {"EXECUTE p", {.standard_strings = true}, PGSEEK_REASON_ENCODING},
};

static void texts_that_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        enum pgseek_reason reason;
        const char *sql = refused[i].sql;
        assert_null(pgseek_execute_new(sql, strlen(sql), &refused[i].reading, &reason));
        assert_int_equal(reason, refused[i].reason);
    }
}

/* ---- totals ---- */

static void numbers_in_answers(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        bool estimate;
        const char *number; /* NULL: none */
    } cases[] = {
        {"42", false, "42"},
        {"", false, NULL},
        {"x", false, NULL},
        {"[{\"Plan\": {\"Relation Name\": \"Plan Rows\", \"Plan Rows\": 7, \"Plans\": [{\"Plan Rows\": 9}]}}]", true,
         "7"},
        {"[{\"Plan\": {\"Alias\": \"\\\"Plan Rows\\\": 5\", \"Plan Rows\": 21.00}}]", true, "21"},
        {"[]", true, NULL},
        {"\"Plan Rows\": ", true, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *number = NULL;
        size_t len = pgseek_total_read(cases[i].answer, strlen(cases[i].answer), cases[i].estimate, &number);
        assert_int_equal(len, cases[i].number ? strlen(cases[i].number) : 0);
        if (cases[i].number)
            assert_memory_equal(number, cases[i].number, len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_of_texts),    cmocka_unit_test(highest_params),
        cmocka_unit_test(arguments_of_types), cmocka_unit_test(texts_that_are_refused),
        cmocka_unit_test(numbers_in_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
