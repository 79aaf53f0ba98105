/* test_number.c - LIMIT and OFFSET: kinds and values. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { INT8 = 20, INT2 = 21, INT4 = 23, TEXT = 25, NUMERIC = 1700, FLOAT8 = 701 };

static struct pgseek_query *limit_query(const char *limit, enum pgseek_reason *reason)
{
    char sql[256];

    snprintf(sql, sizeof sql, "SELECT id FROM booking ORDER BY id LIMIT %s", limit);
    return fixture_query(sql, reason);
}

static void literals_are_known(void **state)
{
    static const struct {
        const char *limit;
        int64_t value;
    } cases[] = {
        {"20", 20},
        {"0", 0},
        {"-1", -1},
        {"(5)", 5},
        {"5 + 3 * 2", 11},
        {"7 / 2", 3},
        {"-7 / 2", -3},
        {"- -3", 3},
        {"+4", 4},
        {"2.5", 3},
        {"2.4999", 2},
        {"-2.5", -3},
        {".5", 1},
        {"20.", 20},
        {"'7'", 7},
        {"' +7 '", 7},
        {"'7'::int", 7},
        {"2.5::int", 3},
        {"CAST(9 AS bigint)", 9},
        {"9::smallint + 1", 10},
        {"9223372036854775807", INT64_MAX},
        {"3000000000 + 1", 3000000001},
        {"3 OPERATOR(pg_catalog.+) 4", 7},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum pgseek_reason reason;
        struct pgseek_query *query = limit_query(cases[i].limit, &reason);
        int64_t value = 0;

        if (!query)
            fail_msg("LIMIT %s: %s", cases[i].limit, pgseek_reason_name(reason));
        assert_int_equal(pgseek_query_number_kind(query, PGSEEK_LIMIT), PGSEEK_NUMBER_LITERAL);
        assert_int_equal(pgseek_query_number(query, PGSEEK_LIMIT, NULL, 0, &value), PGSEEK_EVAL_NUMBER);
        if (value != cases[i].value)
            fail_msg("LIMIT %s: %lld", cases[i].limit, (long long)value);
        pgseek_query_free(query);
    }
}

static void what_is_beyond_is_refused(void **state)
{
    static const char *const limits[] = {
        "(SELECT 3)",
        "length('abc')",
        "1e3",
        "2147483647 + 1",
        "9223372036854775808",
        "2.5 * 2",
        "'7' + 1",
        "'x'",
        "2.5::numeric",
        "3::float8",
        "1 / 0",
        "32767::int2 + 1::int2",
        "$1::text",
        "5 % 3",
        "$1 + 1.5",
        "3 OPERATOR(evil.+) 4",
        "-(-9223372036854775808)",
        "'0x10'",
    };
    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        enum pgseek_reason reason = PGSEEK_REASON_NONE;
        struct pgseek_query *query = limit_query(limits[i], &reason);

        if (query)
            fail_msg("LIMIT %s is taken", limits[i]);
        assert_int_equal(reason, PGSEEK_REASON_LIMIT_EXPRESSION);
    }
}

static void no_limit_has_two_spellings(void **state)
{
    static const char *const limits[] = {"NULL", "ALL", "NULL::int", "NULL + 1"};

    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        enum pgseek_reason reason;
        struct pgseek_query *query = limit_query(limits[i], &reason);
        int64_t value;

        assert_non_null(query);
        assert_int_equal(pgseek_query_number_kind(query, PGSEEK_LIMIT), PGSEEK_NUMBER_NULL);
        assert_int_equal(pgseek_query_number(query, PGSEEK_LIMIT, NULL, 0, &value), PGSEEK_EVAL_NONE);
        pgseek_query_free(query);
    }
}

#define BYTES(text) sizeof text - 1, (const uint8_t *)(text)
#define NULL_VALUE -1, NULL

static void parameters_are_read(void **state)
{
    static const struct {
        const char *limit;
        struct pgseek_value params[2];
        enum pgseek_eval eval;
        int64_t value;
    } cases[] = {
        {"$1", {{INT8, 0, BYTES("20")}}, PGSEEK_EVAL_NUMBER, 20},
        {"$1", {{INT8, 1, BYTES("\0\0\0\0\0\0\0\24")}}, PGSEEK_EVAL_NUMBER, 20},
        {"$1", {{INT8, 1, BYTES("\377\377\377\377\377\377\377\376")}}, PGSEEK_EVAL_NUMBER, -2},
        {"$1", {{INT4, 1, BYTES("\0\0\1\0")}}, PGSEEK_EVAL_NUMBER, 256},
        {"$1", {{INT4, 1, BYTES("\377\377\377\377")}}, PGSEEK_EVAL_NUMBER, -1},
        {"$1", {{INT2, 1, BYTES("\1\2")}}, PGSEEK_EVAL_NUMBER, 258},
        {"$1", {{INT4, 1, BYTES("\0\0\0\0\0\0\0\24")}}, PGSEEK_EVAL_FAILED, 0},
        {"$1", {{INT8, 1, BYTES("\0\0\0\24")}}, PGSEEK_EVAL_FAILED, 0},
        {"$1", {{INT8, 0, BYTES("")}}, PGSEEK_EVAL_FAILED, 0},
        {"$1", {{INT8, 0, BYTES("-")}}, PGSEEK_EVAL_FAILED, 0},
        {"$1", {{INT8, 0, BYTES("2_0")}}, PGSEEK_EVAL_FAILED, 0},
        {"$1", {{INT8, 0, BYTES("9223372036854775808")}}, PGSEEK_EVAL_FAILED, 0},
        {"$1", {{INT8, 0, BYTES("-9223372036854775808")}}, PGSEEK_EVAL_NUMBER, INT64_MIN},
        {"$1", {{INT4, 0, BYTES("2147483648")}}, PGSEEK_EVAL_FAILED, 0},
        {"$1", {{INT8, 0, NULL_VALUE}}, PGSEEK_EVAL_NONE, 0},
        {"$1", {{FLOAT8, 0, BYTES("2.5")}}, PGSEEK_EVAL_FAILED, 0},
        {"$1", {{NUMERIC, 0, BYTES("2.5")}}, PGSEEK_EVAL_NUMBER, 3},
        {"$1", {{NUMERIC, 0, BYTES("NaN")}}, PGSEEK_EVAL_FAILED, 0},
        {"$1", {{NUMERIC, 1, BYTES("\0\1")}}, PGSEEK_EVAL_FAILED, 0},
        {"$1::INTEGER", {{INT4, 0, BYTES("5")}}, PGSEEK_EVAL_NUMBER, 5},
        {"$1::int", {{TEXT, 1, BYTES("12")}}, PGSEEK_EVAL_NUMBER, 12},
        {"$1::int", {{INT8, 0, BYTES("3000000000")}}, PGSEEK_EVAL_FAILED, 0},
        {"$1 + 1", {{INT4, 0, BYTES("5")}}, PGSEEK_EVAL_NUMBER, 6},
        {"$1 + 1", {{INT4, 0, BYTES("2147483647")}}, PGSEEK_EVAL_FAILED, 0},
        {"($2 - 1) * $1", {{INT4, 0, BYTES("20")}, {INT4, 0, BYTES("3")}}, PGSEEK_EVAL_NUMBER, 40},
        {"$2 - 1", {{INT4, 0, BYTES("20")}, {INT4, 0, NULL_VALUE}}, PGSEEK_EVAL_NONE, 0},
        {"7 / $1", {{INT4, 0, BYTES("0")}}, PGSEEK_EVAL_FAILED, 0},
        {"$3", {{INT4, 0, BYTES("5")}}, PGSEEK_EVAL_FAILED, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum pgseek_reason reason;
        struct pgseek_query *query = limit_query(cases[i].limit, &reason);
        int64_t value = 0;

        assert_non_null(query);
        assert_int_equal(pgseek_query_number_kind(query, PGSEEK_LIMIT), PGSEEK_NUMBER_PARAMS);
        enum pgseek_eval eval = pgseek_query_number(query, PGSEEK_LIMIT, cases[i].params, 2, &value);
        if (eval != cases[i].eval || value != cases[i].value)
            fail_msg("case %zu, LIMIT %s: %d %lld", i, cases[i].limit, eval, (long long)value);
        pgseek_query_free(query);
    }
}

static void clauses_come_in_any_spelling(void **state)
{
    static const struct {
        const char *tail;
        int64_t limit;
        int64_t offset; /* -1: none */
    } cases[] = {
        {"LIMIT 3 OFFSET 4", 3, 4},
        {"OFFSET 4 LIMIT 3", 3, 4},
        {"OFFSET 4 ROWS FETCH NEXT 3 ROWS ONLY", 3, 4},
        {"FETCH FIRST ROW ONLY", 1, -1},
        {"FETCH FIRST (2+1) ROWS ONLY OFFSET 4", 3, 4},
        {"LIMIT 3", 3, -1},
        {"LIMIT 3 FOR UPDATE", 3, -1},
        {"FOR UPDATE OF booking LIMIT 3 OFFSET 4 ROW", 3, 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sql[256];
        enum pgseek_reason reason;
        int64_t limit = 0;
        int64_t offset = -1;

        snprintf(sql, sizeof sql, "SELECT id FROM booking ORDER BY id %s", cases[i].tail);
        struct pgseek_query *query = fixture_query(sql, &reason);
        assert_non_null(query);
        pgseek_query_number(query, PGSEEK_LIMIT, NULL, 0, &limit);
        pgseek_query_number(query, PGSEEK_OFFSET, NULL, 0, &offset);
        assert_int_equal(limit, cases[i].limit);
        assert_int_equal(offset, cases[i].offset);
        pgseek_query_free(query);
    }
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(literals_are_known),           cmocka_unit_test(what_is_beyond_is_refused),
        cmocka_unit_test(no_limit_has_two_spellings),   cmocka_unit_test(parameters_are_read),
        cmocka_unit_test(clauses_come_in_any_spelling),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return fixture_run(tests);
}
