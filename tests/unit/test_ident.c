/* test_ident.c - name maps in; complaints and decisions out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/auth/ident.h"

static struct ident *read_text(const char *text, char **complaints)
{
    size_t size;
    FILE *out = open_memstream(complaints, &size);
    assert_non_null(out);
    struct ident *ident = ident_read(span_cstr(text), "ident", out);
    fclose(out);
    return ident;
}

static struct ident *load(const char *text)
{
    char *complaints;
    struct ident *ident = read_text(text, &complaints);
    if (!ident)
        fail_msg("%s\n%s", text, complaints);
    assert_string_equal(complaints, "");
    free(complaints);
    return ident;
}

static const char maps[] = "# map  name                       user\n"
                           "plain  anna                       web\n"
                           "plain  \"Bob of X\"               bob\n"
                           "plain  \"all\"                    \"all\"\n"
                           "mail   /^([a-z]+)@example\\.com$  \\1\n"
                           "mail   /^(.*)@b\\.example$        b_\\1_x\n"
                           "any    \"/^admin-[0-9]{1,3}$\"      all\n"
                           "loose  /xyz                       web\n"
                           "odd    \"/^a,b (c)?d$\"           \\1\n"
                           "odd    /^g(e)?$                   \\1\n"
                           "sub    \"/^([^,]+),(.*)$\"          \\1\n"
                           "set    /^[[:alpha:]_.-]+$         web\n";

static const struct {
    const char *map;
    const char *name;
    const char *user;
    bool is_allowed;
} decisions[] = {
    {NULL, "web", "web", true},
    {NULL, "web", "Web", false},
    {NULL, "web", "webx", false},
    {NULL, "", "", false},
    {NULL, "", "web", false},
    {NULL, "web", "", false},
    {"plain", "anna", "web", true},
    {"plain", "anna", "anna", false}, /* with a map only the map counts */
    {"plain", "Anna", "web", false},
    {"plain", "Bob of X", "bob", true},
    {"plain", "all", "all", true},
    {"plain", "all", "web", false},
    {"plain", "", "web", false},
    {"none", "anna", "web", false},
    {"mail", "anna@example.com", "anna", true},
    {"mail", "anna@example.com", "bob", false},
    {"mail", "anna@example.com", "anna ", false},
    {"mail", "anna@example.com", "ann", false},
    {"mail", "annaXexample.com", "anna", false},
    {"mail", "anna@example.com.evil", "anna", false},
    {"mail", "x.anna@example.com", "anna", false},
    {"mail", "c@b.example", "b_c_x", true},
    {"mail", "c@b.example", "b_c_", false},
    {"mail", "c@b.example", "c", false},
    {"mail", "@b.example", "b__x", true},
    {"any", "admin-7", "postgres", true},
    {"any", "admin-7777", "postgres", false},
    {"any", "admin-", "postgres", false},
    {"loose", "wxyz!", "web", true}, /* nothing anchors it: as in PostgreSQL */
    {"odd", "a,b cd", "c", true},
    {"odd", "a,b d", "c", false},
    {"odd", "a,b d", "", false},
    {"odd", "ge", "e", true},
    {"odd", "g", "e", false},
    {"sub", "x,y", "x", true},
    {"sub", "x,y", "y", false},
    {"sub", "x,y,z", "x", true},
    {"sub", "x,y,z", "x,y", false},
    {"set", "a.b-c_d", "web", true},
    {"set", "a b", "web", false},
};

static void maps_decide_who_may_be_whom(void **state)
{
    (void)state;
    struct ident *ident = load(maps);
    for (size_t i = 0; i < sizeof decisions / sizeof decisions[0]; i++)
        if (ident_allows(ident, decisions[i].map, decisions[i].name, decisions[i].user) != decisions[i].is_allowed)
            fail_msg("case %zu: %s -> %s", i, decisions[i].name, decisions[i].user);
    assert_true(ident_has_map(ident, "plain"));
    assert_false(ident_has_map(ident, "Plain"));
    assert_false(ident_has_map(ident, ""));
    ident_free(ident);
}

static void without_a_file_there_are_no_maps(void **state)
{
    (void)state;
    assert_true(ident_allows(NULL, NULL, "web", "web"));
    assert_false(ident_allows(NULL, "plain", "web", "web"));
    struct ident *ident = load("# an empty file is no fault\n");
    assert_false(ident_allows(ident, "plain", "web", "web"));
    ident_free(ident);
}

static void long_names_are_nobody(void **state)
{
    (void)state;
    char name[300];
    struct ident *ident = load("m /^0*$ all\n");
    for (int len = 250; len < 260; len++) {
        snprintf(name, sizeof name, "%0*d", len, 0);
        assert_int_equal(ident_allows(ident, "m", name, "web"), len <= 255);
    }
    for (int len = 60; len < 70; len++) {
        snprintf(name, sizeof name, "%0*d", len, 0);
        assert_int_equal(ident_allows(ident, "m", "0", name), len <= 63); /* the server would cut it */
        assert_int_equal(ident_allows(NULL, NULL, name, name), len <= 63);
    }
    ident_free(ident);
}

#define THREE ":1: a line is three words: map, name of the certificate, user; quote one with a comma or a blank in it\n"
#define PATTERN(text) ":1: the regular expression \"" text "\" "
#define ESCAPE "has a backslash before a letter, digit or the like: write [0-9] for \\d\n"
#define PLAIN ":1: what \\1 stands for must be plain: no | and no repeated group in its regular expression\n"
#define COUNT "has a \"{\" that begins no count of 0 to 255 such as {2,5}: write [{] for the character\n"

static const struct {
    const char *text;
    const char *complaint;
} bad[] = {
    {"m", THREE},
    {"m n", THREE},
    {"m n u x", THREE},
    {"m n u,v", THREE},
    {"m \"\" u", THREE},
    {"\"\" n u", THREE},
    {"m n \"", ":1: a quote is not closed\n"},
    {"m n +staff", ":1: who is a member of a role only the server knows: write a line for each user\n"},
    {"m n /^u", ":1: a user cannot be a regular expression: write a line for each user\n"},
    {"m n \\1", ":1: \\1 stands for the first group of a regular expression, and there is none\n"},
    {"m /n \\1", ":1: \\1 stands for the first group of a regular expression, and there is none\n"},
    {"m /(n) \\2", ":1: of backslashes a user can hold one \\1\n"},
    {"m /(n) \\1\\1", ":1: of backslashes a user can hold one \\1\n"},
    {"m /(n)|x \\1", PLAIN},
    {"m /(n)*x \\1", PLAIN},
    {"m /(n)(x)+ \\1", PLAIN},
    {"m n a234567890123456789012345678901234567890123456789012345678901234",
     ":1: the user is longer than the name of a user can be\n"},
    {"m / u", PATTERN("") "is empty\n"},
    {"m /( u", PATTERN("(") "has a group that is not closed\n"},
    {"m /a) u", PATTERN("a)") "closes a group that is not open\n"},
    {"m /[a u", PATTERN("[a") "has a bracket that is not closed\n"},
    {"m /[]a u", PATTERN("[]a") "has a bracket that is not closed\n"},
    {"m /[[:alpha:] u", PATTERN("[[:alpha:]") "has a bracket that is not closed\n"},
    {"m /[[:alpha]] u", PATTERN("[[:alpha]]") "has a character class that does not end in \":]\"\n"},
    {"m /[[:nothing:]] u", PATTERN("[[:nothing:]]") "does not compile: Invalid character class name\n"},
    {"m /[b-a] u", PATTERN("[b-a]") "does not compile: Invalid range end\n"},
    {"m /[[.a.]] u", PATTERN("[[.a.]]") "has a collating element in brackets\n"},
    {"m /[a\\]] u", PATTERN("[a\\]]") "has a backslash in brackets, which means itself in some dialects only\n"},
    {"m /[\xc3\xa9] u", PATTERN("[\xc3\xa9]") "has a character beyond ASCII in brackets\n"},
    {"m /\xc3\xa9+ u", PATTERN("\xc3\xa9+") "repeats a character beyond ASCII: put it into parentheses\n"},
    {"m /^\\d+$ u", PATTERN("^\\d+$") ESCAPE},
    {"m /(a)\\1 u", PATTERN("(a)\\1") ESCAPE},
    {"m /a\\ u", PATTERN("a\\") ESCAPE},
    {"m /a\\<b u", PATTERN("a\\<b") ESCAPE},
    {"m /(?:a) u", PATTERN("(?:a)") "has a \"(?\", which only some dialects know\n"},
    {"m /^(.*?)@ u", PATTERN("^(.*?)@") "has two quantifiers in a row\n"},
    {"m /a{2}{3} u", PATTERN("a{2}{3}") "has two quantifiers in a row\n"},
    {"m /***=a u", PATTERN("***=a") "repeats nothing\n"},
    {"m /^* u", PATTERN("^*") "repeats nothing\n"},
    {"m /(|+) u", PATTERN("(|+)") "repeats nothing\n"},
    {"m /(a){9} u", PATTERN("(a){9}") "counts a group: only single characters and brackets can be counted\n"},
    {"m \"/a{256}\" u", PATTERN("a{256}") COUNT},
    {"m \"/a{3,2}\" u", PATTERN("a{3,2}") COUNT},
    {"m \"/a{,2}\" u", PATTERN("a{,2}") COUNT},
    {"m \"/a{x}\" u", PATTERN("a{x}") COUNT},
    {"m \"/a{-1}\" u", PATTERN("a{-1}") COUNT},
    {"m \"/a{99999999999999999999}\" u", PATTERN("a{99999999999999999999}") COUNT},
    {"m \"/a{1\" u", PATTERN("a{1") COUNT},
};

static void every_fault_is_explained(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char expected[512];
        char *complaints;
        struct ident *ident = read_text(bad[i].text, &complaints);
        snprintf(expected, sizeof expected, "ident%s", bad[i].complaint);
        if (ident || strcmp(complaints, expected) != 0)
            fail_msg("%s\ncomplained: %s\nexpected:   %s", bad[i].text, complaints, expected);
        free(complaints);
    }
}

static void patterns_that_are_taken(void **state)
{
    static const struct {
        const char *pattern;
        const char *name;
        bool is_found;
    } cases[] = {
        {"\"m\" \"/^a{2}$\" all", "aa", true},
        {"m \"/^a{2,}$\" all", "a", false},
        {"m \"/^a{2,3}$\" all", "aaa", true},
        {"m \"/^[{]a[}]$\" all", "{a}", true},
        {"m /^a\\{$ all", "a{", true},
        {"m /^[]x^-]+$ all", "-]^x", true},
        {"m /^[^]x]+$ all", "]", false},
        {"m \"/^(\xc3\xa9)+$\" all", "\xc3\xa9\xc3\xa9", true},
        {"m /^a$|^b$ all", "b", true},
        {"m /^()$ all", "a", false},
        {"m /^([0-9]|[a-f])*$ all", "09af", true},
        {"m \"/^O=x\\, y/\" all", "O=x, y/", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ident *ident = load(cases[i].pattern);
        if (ident_allows(ident, "m", cases[i].name, "web") != cases[i].is_found)
            fail_msg("%s: %s", cases[i].pattern, cases[i].name);
        ident_free(ident);
    }
}

static void failed_allocations_leave_nothing_behind(void **state)
{
    (void)state;
    struct ident *ident = NULL;
    long n = 0;
    for (; !ident; n++) {
        char *complaints;
        mem_fail_after(n);
        ident = read_text(maps, &complaints);
        mem_fail_after(-1);
        if (!ident)
            assert_non_null(strstr(complaints, "out of memory"));
        free(complaints);
    }
    assert_true(n > 12);
    ident_free(ident);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_decide_who_may_be_whom), cmocka_unit_test(without_a_file_there_are_no_maps),
        cmocka_unit_test(long_names_are_nobody),       cmocka_unit_test(every_fault_is_explained),
        cmocka_unit_test(patterns_that_are_taken),     cmocka_unit_test(failed_allocations_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
