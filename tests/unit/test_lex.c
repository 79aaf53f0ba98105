/* test_lex.c - tokens have the ranges that the text shows, and texts beyond the limits are refused before anyone
 * parses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../parser/lex.h"

/* The tokens of a text, joined by bars. */
struct split {
    const char *sql;
    const char *tokens;
    size_t nstatements;
};

static const struct split splits[] = {
    {"", "", 0},
    {" ;; ", ";|;", 0},
    {"select 1", "select|1", 1},
    {"SELECT 1; /* x */", "SELECT|1|;|/* x */", 1},
    {"SELECT 1; select 2", "SELECT|1|;|select|2", 2},
    {"/* a /* b */ c */ -- d\nx", "/* a /* b */ c */|-- d|x", 1},
    {"$1::text", "$1|::|text", 1},
    {"'a'\n 'b' 'c'", "'a'\n 'b'|'c'", 1},
    {"$x$ ' $x$", "$x$ ' $x$", 1},
    {"E'\\'' N'n' B'1'", "E'\\''|N|'n'|B'1'", 1},
    {"\"a\"\"b\"", "\"a\"\"b\"", 1},
    {"a>=1", "a|>=|1", 1},
    /* The scanner's own end of these is wrong. */
    {"U&'d\\0061t' x", "U&'d\\0061t'|x", 1},
    {"U&\"x\"/**/, U&\"y\" ", "U&\"x\"|/**/|,|U&\"y\"", 1},
    {"u&'a'\n'b' uescape '!'", "u&'a'\n'b'|uescape|'!'", 1},
    {"\303\251 '\303\251' x", "\303\251|'\303\251'|x", 1},
};

static void tokens_have_their_ranges(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        struct lex lex;
        struct text joined = {0};
        assert_int_equal(lex_init(&lex, splits[i].sql, strlen(splits[i].sql)), LEX_OK);
        text_puts(&joined, "");
        for (size_t t = 0; t < lex.ntokens; t++) {
            text_puts(&joined, t ? "|" : "");
            text_put(&joined, lex.sql + lex.tokens[t].start, lex.tokens[t].end - lex.tokens[t].start);
        }
        assert_string_equal(joined.ptr, splits[i].tokens);
        assert_int_equal(lex.nstatements, splits[i].nstatements);
        text_fini(&joined);
        lex_fini(&lex);
    }
}

static void depths_and_statements_are_numbered(void **state)
{
    (void)state;
    static const char sql[] = "select (a[1]) ; x";
    static const uint32_t depths[] = {0, 0, 1, 1, 2, 1, 0, 0, 0};
    struct lex lex;
    assert_int_equal(lex_init(&lex, sql, strlen(sql)), LEX_OK);
    assert_int_equal(lex.ntokens, sizeof depths / sizeof *depths);
    for (size_t i = 0; i < lex.ntokens; i++)
        assert_int_equal(lex.tokens[i].depth, depths[i]);
    assert_int_equal(lex.tokens[7].statement, 0);
    assert_int_equal(lex.tokens[8].statement, 1);
    lex_fini(&lex);
}

/* A text made of a repeated piece. */
struct limit {
    const char *head;
    const char *piece;
    size_t times;
    const char *tail;
    enum lex_result result;
};

static const struct limit limits[] = {
    {"", "'", 1, "", LEX_SYNTAX},
    {"", "/*", 1, "", LEX_SYNTAX},
    {"", "\"", 1, "", LEX_SYNTAX},
    {"", "a ", PGSEEK_MAX_TOKENS, "", LEX_OK},
    {"", "a ", PGSEEK_MAX_TOKENS + 1, "", LEX_TOO_LARGE},
    {"", "(", PGSEEK_MAX_NESTING, "", LEX_OK},
    {"", "(", PGSEEK_MAX_NESTING + 1, "", LEX_TOO_LARGE},
    {"", "([", PGSEEK_MAX_NESTING / 2, "(", LEX_TOO_LARGE},
    {"", ")", PGSEEK_MAX_NESTING + 1, "", LEX_OK},
    {"'", "x", LEX_MAX_BYTES - 2, "'", LEX_OK},
    {"'", "x", LEX_MAX_BYTES - 1, "'", LEX_TOO_LARGE},
    /* Texts on which the scanner alone takes minutes. */
    {"", "+", 500000, "", LEX_TOO_LARGE},
    {"", "+-", 250000, "", LEX_TOO_LARGE},
    {"", "/*", 250000, "", LEX_TOO_LARGE},
    {"", "/**/", 125000, "", LEX_TOO_LARGE},
    {"select ", "+", 100, "1", LEX_OK},
    {"/*", "*", 5000, "*/", LEX_OK},
};

static void limits_are_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct text sql = {0};
        struct lex lex;
        text_puts(&sql, limits[i].head);
        for (size_t n = 0; n < limits[i].times; n++)
            text_puts(&sql, limits[i].piece);
        text_puts(&sql, limits[i].tail);
        assert_false(sql.failed);
        enum lex_result result = lex_init(&lex, sql.ptr, sql.len);
        if (result != limits[i].result)
            fail_msg("case %zu: result %d, not %d", i, (int)result, (int)limits[i].result);
        assert_true(result == LEX_OK || lex.ntokens == 0);
        lex_fini(&lex);
        text_fini(&sql);
    }
}

static void a_nul_is_no_sql(void **state)
{
    (void)state;
    struct lex lex;
    assert_int_equal(lex_init(&lex, "select\0 1", 9), LEX_SYNTAX);
    lex_fini(&lex);
}

static const struct {
    const char *sql;
    const char *name;
} names[] = {
    {"Abc", "abc"},
    {"\"Abc\"", "Abc"},
    {"\"a\"\"b\"", "a\"b"},
    {"SELECT", "select"},
    {"\303\211t\303\211", "\303\211t\303\211"}, /* only ASCII is folded */
    {"U&\"a\"", ""},
    {"'a'", ""},
    {"7", ""},
    {"abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdef",
     "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabc"},
    /* 62 letters and one of two bytes: cut in front of it */
    {"abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijab\303\251",
     "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijab"},
    {"\"abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijab\303\251\"",
     "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijab"},
};

static void names_are_folded_as_the_server_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct lex lex;
        char name[LEX_NAME_BYTES + 1];
        assert_int_equal(lex_init(&lex, names[i].sql, strlen(names[i].sql)), LEX_OK);
        assert_int_equal(lex_name(&lex, 0, name), names[i].name[0] != '\0');
        assert_string_equal(name, names[i].name);
        lex_fini(&lex);
    }
}

static void words_are_found_in_any_case(void **state)
{
    (void)state;
    static const char sql[] = "/* x */ SeLeCt \"select\" selects";
    struct lex lex;
    assert_int_equal(lex_init(&lex, sql, strlen(sql)), LEX_OK);
    assert_int_equal(lex_skip(&lex, 0), 1);
    assert_true(lex_is_word(&lex, 1, "select"));
    assert_true(lex.tokens[1].is_reserved);
    assert_false(lex_is_word(&lex, 2, "select"));
    assert_false(lex_is_word(&lex, 3, "select"));
    assert_false(lex_is_word(&lex, 4, "select"));
    lex_fini(&lex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_have_their_ranges),
        cmocka_unit_test(depths_and_statements_are_numbered),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(a_nul_is_no_sql),
        cmocka_unit_test(names_are_folded_as_the_server_does),
        cmocka_unit_test(words_are_found_in_any_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
