/* test_query.c - a statement without a catalog: what it mentions, how it may be read, and its reasons.
 *
 * The reasons of many more statements are in tests/golden/cases. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct pgseek_query *must_query(const char *sql)
{
    enum pgseek_reason reason;
    struct pgseek_query *query = fixture_query(sql, &reason);

    if (!query)
        fail_msg("%s: %s", sql, pgseek_reason_name(reason));
    return query;
}

static void relations_are_listed_once_per_spelling(void **state)
{
    struct pgseek_query *query =
        must_query("SELECT a.id, (SELECT max(x) FROM other) FROM booking a JOIN public.booking b ON a.id = b.id, "
                   "\"Big\" WHERE EXISTS (SELECT 1 FROM booking) ORDER BY a.id LIMIT 3");
    static const char *const names[][2] = {{NULL, "other"}, {NULL, "booking"}, {"public", "booking"}, {NULL, "Big"}};

    (void)state;
    assert_int_equal(pgseek_query_relation_count(query), 4);
    for (size_t i = 0; i < 4; i++) {
        bool found = false;
        for (size_t j = 0; j < 4; j++) {
            const char *schema = pgseek_query_relation_schema(query, j);
            bool same_schema = names[i][0] ? schema && !strcmp(schema, names[i][0]) : !schema;
            found |= same_schema && !strcmp(pgseek_query_relation_name(query, j), names[i][1]);
        }
        assert_true(found);
    }
    pgseek_query_free(query);
}

static void functions_are_listed_by_their_last_name(void **state)
{
    struct pgseek_query *query = must_query(
        "SELECT lower(note), pg_catalog.upper(lower(note)) FROM booking WHERE evil.check(id) ORDER BY id LIMIT 3");
    bool found = false;

    (void)state;
    assert_int_equal(pgseek_query_function_count(query), 3);
    for (size_t i = 0; i < 3; i++)
        found |= !strcmp(pgseek_query_function_name(query, i), "check");
    assert_true(found);
    pgseek_query_free(query);
}

static void parameters_are_counted(void **state)
{
    struct pgseek_query *query =
        must_query("SELECT id FROM booking WHERE venue_id = $2 AND '$9' <> note ORDER BY id LIMIT $4 -- $12");

    (void)state;
    assert_int_equal(pgseek_query_param_count(query), 4);
    assert_true(pgseek_query_uses_param(query, 2));
    assert_true(pgseek_query_uses_param(query, 4));
    assert_false(pgseek_query_uses_param(query, 1));
    assert_false(pgseek_query_uses_param(query, 9));
    pgseek_query_free(query);
}

static enum pgseek_reason reason_of(const char *sql, size_t len, bool standard_strings, bool safe_encoding)
{
    const struct pgseek_reading reading = {.standard_strings = standard_strings, .ascii_safe_encoding = safe_encoding};
    enum pgseek_reason reason = PGSEEK_REASON_NONE;
    struct pgseek_query *query = pgseek_query_new(sql, len, &reading, &reason);

    assert_int_equal(query != NULL, reason == PGSEEK_REASON_NONE);
    pgseek_query_free(query);
    return reason;
}

static void reading_decides(void **state)
{
    static const char ascii[] = "SELECT id FROM booking ORDER BY id LIMIT 3";
    static const char accents[] = "SELECT id FROM booking WHERE note = '\303\251' ORDER BY id LIMIT 3";

    (void)state;
    assert_int_equal(reason_of(ascii, strlen(ascii), true, true), PGSEEK_REASON_NONE);
    assert_int_equal(reason_of(ascii, strlen(ascii), false, true), PGSEEK_REASON_STRINGS);
    assert_int_equal(reason_of(ascii, strlen(ascii), true, false), PGSEEK_REASON_NONE);
    assert_int_equal(reason_of(accents, strlen(accents), true, true), PGSEEK_REASON_NONE);
    assert_int_equal(reason_of(accents, strlen(accents), true, false), PGSEEK_REASON_ENCODING);
    /* Whether the server folds an unquoted \303\204 depends on its encoding; a quoted one it leaves alone. */
    static const char unquoted[] = "SELECT \303\204 FROM booking ORDER BY id LIMIT 3";
    static const char quoted[] = "SELECT \"\303\204\" FROM booking ORDER BY id LIMIT 3";
    assert_int_equal(reason_of(unquoted, strlen(unquoted), true, true), PGSEEK_REASON_ENCODING);
    assert_int_equal(reason_of(quoted, strlen(quoted), true, true), PGSEEK_REASON_NONE);
    /* Names are cut at 63 bytes: here by the client's encoding, at the server by its own. */
#define THIRTY \
    "\303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204" \
    "\303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204" \
    "\303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204"
    static const char longest[] = "SELECT \"" THIRTY "abc\" FROM booking ORDER BY id LIMIT 3";
    static const char longer[] = "SELECT \"" THIRTY "abcd\" FROM booking ORDER BY id LIMIT 3";
    static const char escaped[] =
        "SELECT U&\"\\00c4\\00c4\\00c4\\00c4\\00c4\\00c4\\00c4\\00c4\\00c4\\00c4\\00c4\\00c4\\00c4\\00c4\" "
        "FROM booking ORDER BY id LIMIT 3";
    assert_int_equal(reason_of(longest, strlen(longest), true, true), PGSEEK_REASON_NONE);
    assert_int_equal(reason_of(longer, strlen(longer), true, true), PGSEEK_REASON_ENCODING);
    assert_int_equal(reason_of(escaped, strlen(escaped), true, true), PGSEEK_REASON_ENCODING);
    /* The length counts, not a NUL: a NUL inside is no text, and what follows the length is not read. */
    assert_int_equal(reason_of("SELECT id FROM booking ORDER BY id LIMIT 3\0x", strlen(ascii) + 2, true, true),
                     PGSEEK_REASON_SYNTAX);
    assert_int_equal(reason_of("SELECT id FROM booking ORDER BY id LIMIT 3 nonsense", strlen(ascii), true, true),
                     PGSEEK_REASON_NONE);
    assert_int_equal(reason_of("", 0, true, true), PGSEEK_REASON_EMPTY);
}

/* Whatever prefix of a statement is given, the answer is a query or a reason. */
static void every_prefix_has_an_answer(void **state)
{
    static const char sql[] = "SELECT b.*, lower(\"note\") AS \"from\" FROM public.booking b JOIN seat s USING (id) "
                              "WHERE (b.x, $1) > ('a', E'\\'') OR note = $$;$$ /* c */ ORDER BY b.placed_at DESC, 2 "
                              "LIMIT 3 * $2 OFFSET 4 ROWS FOR UPDATE OF b; -- end";

    (void)state;
    for (size_t len = 0; len <= strlen(sql); len++) {
        char *copy = malloc(len ? len : 1); /* the sanitizer watches its end */
        memcpy(copy, sql, len);
        reason_of(copy, len, true, true);
        free(copy);
    }
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(relations_are_listed_once_per_spelling),
        cmocka_unit_test(functions_are_listed_by_their_last_name),
        cmocka_unit_test(parameters_are_counted),
        cmocka_unit_test(reading_decides),
        cmocka_unit_test(every_prefix_has_an_answer),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return fixture_run(tests);
}
