/* test_skim.c - the flat pass sees comments and literals where the server's scanner sees them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../parser/skim.h"

static const struct {
    const char *sql;
    const char *items; /* a letter and the text of each, joined by bars */
} splits[] = {
    {"a-- b\nc", "wa|l-- b|wc"},
    {"a-- b\rc", "wa|l-- b|wc"},
    {"/* /* */ -- */ x", "b/* /* */ -- */|wx"},
    {"/*/ */*/", "b/*/ */|o*/"},
    {"a+--b\n1", "wa|o+|l--b|n1"},
    {"*/**/", "o*|b/**/"},
    {"'a''b' 'c'", "s'a''b'|s'c'"},
    {"'a\\' -- '", "s'a\\'|l-- '"},
    {"E'a\\' -- '", "sE'a\\' -- '"},
    {"xE'a\\' -- '", "wxE|s'a\\'|l-- '"},
    {"e'a' --c\n '\\' -- '", "se'a' --c\n '\\' -- '"},
    {"'a' -- b\n 'c'", "s'a' -- b\n 'c'"},
    {"'a' -- b\nc", "s'a'|l-- b|wc"},
    {"$$ -- $$ $a$ $b$ $a$", "s$$ -- $$|s$a$ $b$ $a$"},
    {"a$b$ c$b$", "wa$b$|wc$b$"},
    {"$1$x$--$x$", "p$1|s$x$--$x$"},
    {"\"a\"\"--\" x", "m\"a\"\"--\"|wx"},
    {"U&'\\' U&\"a\" u &'x'", "sU&'\\'|mU&\"a\"|wu|o&|s'x'"},
    {"1.5 1..2 1.e", "n1.5|n1|k.|k.|n2|n1.|we"},
    {"a[1]::b;", "wa|k[|n1|k]|k:|k:|wb|k;"},
    {"'open", "!'open"},
    {"/* open", "!/* open"},
    {"\"open", "!\"open"},
    {"$a$ open $b$", "!$a$ open $b$"},
    {"E'\\", "!E'\\"},
};

static void items_are_where_they_are(void **state)
{
    static const char letters[] = {
        [SKIM_BROKEN] = '!',   [SKIM_LINE_COMMENT] = 'l', [SKIM_BLOCK_COMMENT] = 'b', [SKIM_WORD] = 'w',
        [SKIM_NAME] = 'm',     [SKIM_STRING] = 's',       [SKIM_NUMBER] = 'n',        [SKIM_PARAM] = 'p',
        [SKIM_OPERATOR] = 'o', [SKIM_MARK] = 'k'};
    (void)state;
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        struct skim skim = skim_init(splits[i].sql, strlen(splits[i].sql));
        struct skim_item item;
        struct text joined = {0};
        while (skim_next(&skim, &item) != SKIM_END) {
            text_puts(&joined, joined.len ? "|" : "");
            text_putc(&joined, letters[item.kind]);
            text_put(&joined, item.start, (size_t)(item.end - item.start));
        }
        assert_string_equal(joined.ptr, splits[i].items);
        text_fini(&joined);
    }
}

static const struct {
    const char *sql;
    const char *value; /* NULL: no text, or a bad escape */
} literals[] = {
    {"''", ""},
    {"'a''b'", "a'b"},
    {"'a'\n  'b'", "ab"},
    {"'a' -- ' \n 'b'", "ab"},
    {"'a\\n'", "a\\n"},
    {"E'a\\n\\'\\\\\\x41\\101\\u00e9\\q'", "a\n'\\AA\303\251q"},
    {"E'\\U0001F600'", "\360\237\230\200"},
    {"E'\\u12'", NULL},
    {"E'\\000'", NULL},
    {"E'\\ud800'", NULL},
    {"U&'d\\0061\\+000062\\\\'", "dab\\"},
    {"U&'\\zzzz'", NULL},
    {"$$a'b$$", "a'b"},
    {"$x$a$$b$x$", "a$$b"},
    {"N'n'", "n"},
    {"B'1'", NULL},
    {"x'1f'", NULL},
    {"word", NULL},
};

static void literals_are_decoded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
        struct skim skim = skim_init(literals[i].sql, strlen(literals[i].sql));
        struct skim_item item;
        struct text value = {0};
        skim_next(&skim, &item);
        bool is_text = skim_string(&item, &value);
        assert_int_equal(is_text, literals[i].value != NULL);
        if (is_text)
            assert_string_equal(value.ptr ? value.ptr : "", literals[i].value);
        text_fini(&value);
    }
}

static void parameters_are_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        int n;
    } params[] = {{"$1", 1}, {"$65535", 65535}, {"$65536", 0}, {"$99999999999999999999", 0}, {"$0", 0}, {"1", 0}};
    for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
        struct skim skim = skim_init(params[i].sql, strlen(params[i].sql));
        struct skim_item item;
        skim_next(&skim, &item);
        assert_int_equal(skim_param(&item), params[i].n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_where_they_are),
        cmocka_unit_test(literals_are_decoded),
        cmocka_unit_test(parameters_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
