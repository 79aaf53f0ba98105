/* test_search.c - tags in statements that pass by in parts: wherever they are cut, they are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/session/internal.h"

#define BLANKS "                                                                          \t\n\v\f\r"

static const struct {
    const char *text;
    bool is_tag;
} cases[] = {
    {"select 1 /* pgseek */ from t", true},
    {"select 1 /*pgseek*/", true},
    {"select 1 -- pgseek cursor=x", true},
    {"select 1 --pgseek", true},
    {"select 1 /*" BLANKS BLANKS BLANKS "pgseek cursor=$3 */", true},
    {"select 1 --" BLANKS BLANKS BLANKS "pgseek", true},
    {"/* a='b',pgseek='on' */", true},
    {"/* a='b',pgseek_cursor='on' */", true},
    {"/* is nothing but a pgseek */ select 1", false},
    {"select * from pgseek, pgsee, k", false},
    {"select 1 /" BLANKS "* pgseek", false},
    {"select 1 /* x" BLANKS "pgseek", false},
    {"select 1 - - pgseek", false},
    {"select a *" BLANKS "pgseek", false},
    {BLANKS BLANKS "pgseek", false},
    {"pgseek", false},
    {"", false},
};

static bool finds(const char *const *parts, const size_t *lengths, size_t count)
{
    struct search search = {.on = true};
    bool found = false;
    for (size_t i = 0; i < count; i++)
        found = found || (lengths[i] > 0 && search_finds_tag(&search, span_of(parts[i], lengths[i])));
    return found;
}

static void check_cuts(size_t which, size_t first, size_t second)
{
    const char *text = cases[which].text;
    const char *const parts[] = {text, text + first, text + second};
    const size_t lengths[] = {first, second - first, strlen(text) - second};
    if (finds(parts, lengths, 3) != cases[which].is_tag)
        fail_msg("\"%s\" cut at %zu and %zu", text, first, second);
}

static void a_tag_is_found_wherever_it_is_cut(void **state)
{
    (void)state;
    for (size_t which = 0; which < sizeof cases / sizeof *cases; which++)
        for (size_t first = 0; first <= strlen(cases[which].text); first++)
            for (size_t second = first; second <= strlen(cases[which].text); second++)
                check_cuts(which, first, second);
}

static void a_tag_is_found_byte_by_byte(void **state)
{
    (void)state;
    for (size_t which = 0; which < sizeof cases / sizeof *cases; which++) {
        struct search search = {.on = true};
        bool found = false;
        for (const char *at = cases[which].text; *at && !found; at++)
            found = search_finds_tag(&search, span_of(at, 1));
        if (found != cases[which].is_tag)
            fail_msg("\"%s\" byte by byte", cases[which].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tag_is_found_wherever_it_is_cut),
        cmocka_unit_test(a_tag_is_found_byte_by_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
