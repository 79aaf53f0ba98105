/* test_predicate.c - the condition for "after this row": its text for each kind of order.
 *
 * That the texts mean the right rows is shown on a real server by tests/e2e/shape_walk.c, over every combination. */
#include "../../parser/predicate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct facts_operator builtin[FACTS_OPERATORS] = {
    {"pg_catalog", "<"}, {"pg_catalog", "<="}, {"pg_catalog", "="}, {"pg_catalog", ">="}, {"pg_catalog", ">"}};
static const struct facts_operator foreign[FACTS_OPERATORS] = {
    {"my \"x\"", "#<#"}, {"my \"x\"", "#<=#"}, {"my \"x\"", "="}, {"my \"x\"", "#>=#"}, {"my \"x\"", "#>#"}};

/* One letter per key: a A (ascending, descending), n N (nullable, NULLs last), f F (nullable, NULLs first), z y (the
 * same as n and f with a NULL value), c (another operator), r (of the second relation). */
static size_t make_keys(const char *letters, struct predicate_key *keys)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    size_t count = strlen(letters);

    for (size_t i = 0; i < count; i++) {
        char letter = letters[i];
        keys[i] = (struct predicate_key){
            .expr = names[i],
            .operators = letter == 'c' ? foreign : builtin,
            .relation = letter == 'r',
            .param = (unsigned)i + 1,
            .descending = letter == 'A' || letter == 'N' || letter == 'F',
            .nullable = strchr("nNfFzy", letter) != NULL,
            .nulls_first = strchr("fFy", letter) != NULL,
            .value_is_null = letter == 'z' || letter == 'y',
        };
    }
    return count;
}

struct predicate_case {
    const char *keys;
    bool leading_bound;
    const char *text; /* OPERATOR(pg_catalog.x) is written as x */
};

static const struct predicate_case cases[] = {
    {"a", false, "a > $1"},
    {"A", false, "a < $1"},
    {"a", true, "a > $1"},
    {"aaa", false, "(a, b, c) > ($1, $2, $3)"},
    {"AA", false, "(a, b) < ($1, $2)"},
    {"aa", true, "a >= $1 AND (a, b) > ($1, $2)"},
    /* keys of two relations: a bound for the first one's, and then either */
    {"aar", false, "(a, b) >= ($1, $2) AND CASE WHEN (a, b) > ($1, $2) THEN true ELSE c > $3 END"},
    {"ar", false, "a >= $1 AND CASE WHEN a > $1 THEN true ELSE b > $2 END"},
    {"aar", true, "a >= $1 AND (a, b) >= ($1, $2) AND CASE WHEN (a, b) > ($1, $2) THEN true ELSE c > $3 END"},
    /* mixed directions: a bound on the leading run, then a branch each */
    {"aA", false, "a >= $1 AND CASE WHEN a > $1 THEN true ELSE b < $2 END"},
    {"aaA", false, "(a, b) >= ($1, $2) AND CASE WHEN (a, b) > ($1, $2) THEN true ELSE c < $3 END"},
    {"aaA", true, "a >= $1 AND (a, b) >= ($1, $2) AND CASE WHEN (a, b) > ($1, $2) THEN true ELSE c < $3 END"},
    {"AaA", false, "a <= $1 AND CASE WHEN a < $1 THEN true WHEN b > $2 THEN true ELSE b = $2 AND c < $3 END"},
    /* another operator ends the run */
    {"ca", false, "a # $1 AND CASE WHEN a ## $1 THEN true ELSE b > $2 END"},
    /* nullable, NULLs last: the block of NULLs lies behind, and no bound may cut it off */
    {"na", false, "((a, b) > ($1, $2) OR a IS NULL)"},
    {"an", false, "a >= $1 AND CASE WHEN b IS NULL THEN true ELSE (a, b) > ($1, $2) END"},
    {"nA", false, "(a = $1 AND b < $2 OR a > $1 OR a IS NULL)"},
    {"za", false, "a IS NULL AND b > $2"},
    {"z", false, "FALSE"},
    {"az", false, "a > $1"},
    /* nullable, NULLs first: they are behind us, or all others lie ahead */
    {"fa", false, "(a, b) > ($1, $2)"},
    {"ya", false, "(a IS NULL AND b > $2 OR a IS NOT NULL)"},
    {"y", false, "a IS NOT NULL"},
    {"ay", false, "a >= $1 AND CASE WHEN a > $1 THEN true ELSE b IS NOT NULL END"},
};

/* Takes OPERATOR(pg_catalog.x) as x and the foreign ones as # for the bound and ## for what is after. */
static void shorten(const char *sql, char *out)
{
    while (*sql) {
        static const struct {
            const char *from;
            const char *to;
        } words[] = {
            {"OPERATOR(pg_catalog.", ""},
            {"OPERATOR(\"my \"\"x\"\"\".#>=#)", "#"},
            {"OPERATOR(\"my \"\"x\"\"\".#>#)", "##"},
            {"OPERATOR(\"my \"\"x\"\"\".=)", "="},
        };
        bool replaced = false;

        for (size_t i = 0; i < sizeof words / sizeof *words && !replaced; i++) {
            if (strncmp(sql, words[i].from, strlen(words[i].from)) != 0)
                continue;
            sql += strlen(words[i].from);
            for (const char *to = words[i].to; *to; to++)
                *out++ = *to;
            for (; i == 0 && *sql != ')'; sql++)
                *out++ = *sql;
            sql += i == 0;
            replaced = true;
        }
        if (!replaced)
            *out++ = *sql++;
    }
    *out = '\0';
}

static void texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct predicate_key keys[4];
        struct text text = {0};
        char found[1024];

        size_t count = make_keys(cases[i].keys, keys);
        predicate_write(&text, keys, count, cases[i].leading_bound);
        assert_false(text.failed);
        shorten(text.ptr, found);
        if (strcmp(found, cases[i].text) != 0)
            fail_msg("%s: %s", cases[i].keys, found);
        text_fini(&text);
    }
}

static void reversing_turns_direction_and_nulls(void **state)
{
    struct predicate_key keys[4];
    struct text text = {0};
    char found[1024];

    (void)state;
    size_t count = make_keys("fA", keys);
    predicate_reverse(keys, count);
    predicate_write(&text, keys, count, false);
    shorten(text.ptr, found);
    assert_string_equal(found, "(a = $1 AND b > $2 OR a < $1 OR a IS NULL)");
    predicate_reverse(keys, count);
    assert_true(keys[0].nulls_first && !keys[0].descending && keys[1].descending);
    text_fini(&text);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(reversing_turns_direction_and_nulls),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}
