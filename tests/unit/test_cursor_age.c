/* test_cursor_age.c - how long a token is good, by clocks that jump. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cursor_fixture.h"

/* Whether a token of that age opens at `now`; `error` says why not. */
static bool opens(struct keyring *keyring, int64_t issued, int64_t now, int64_t ttl, struct pgseek_error *error)
{
    struct cursor cursor = cursor_of_feed();
    struct cursor opened;
    cursor.issued = issued;
    struct buf token = cursor_sealed(keyring, false, &cursor);
    bool ok = cursor_open(keyring, buf_span(&token), now, ttl, &opened, error);
    cursor_fini(&opened);
    buf_fini(&token);
    return ok;
}

static void age_is_checked(void **state)
{
    static const struct {
        int64_t issued;
        int64_t ttl;
        bool opens;
    } cases[] = {
        {NOW, DAY, true},          {NOW - DAY, DAY, true}, {NOW - DAY - 1, DAY, false}, {NOW - DAY - 1, 0, true},
        {NOW + 10 * DAY, 1, true}, {0, 0, true},           {INT64_MIN, 1, false},       {INT64_MAX, 1, true},
    };
    struct keyring *keyring = cursor_keys(KEY_ONE);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pgseek_error error;
        assert_int_equal(opens(keyring, cases[i].issued, NOW, cases[i].ttl, &error), cases[i].opens);
        if (!cases[i].opens) {
            assert_int_equal(error.code, PGSEEK_PS003);
            assert_non_null(strstr(error.hint, "first page"));
        }
    }
    keyring_free(keyring);
}

/* Tokens of expired age are told so whatever their age, and only where they are genuine. */
static void expired_tokens_all_look_alike(void **state)
{
    struct keyring *keyring = cursor_keys(KEY_ONE);
    struct cursor cursor = cursor_of_feed();
    struct cursor opened;
    struct pgseek_error first = {0};
    static const int64_t issued[] = {NOW - DAY - 1, NOW - 1000 * DAY, 0, -1, INT64_MIN};
    (void)state;
    for (size_t i = 0; i < sizeof issued / sizeof issued[0]; i++) {
        struct pgseek_error error;
        cursor.issued = issued[i];
        struct buf token = cursor_sealed(keyring, i % 2, &cursor);
        assert_false(cursor_open(keyring, buf_span(&token), NOW, DAY, &opened, &error));
        assert_int_equal(error.code, PGSEEK_PS003);
        if (i == 0)
            first = error;
        assert_memory_equal(&error, &first, sizeof error);
        token.ptr[token.len - 4] ^= 1; /* another character of the alphabet, or none of it */
        assert_false(cursor_open(keyring, buf_span(&token), NOW, DAY, &opened, &error));
        assert_int_not_equal(error.code, PGSEEK_PS003);
        buf_fini(&token);
    }
    keyring_free(keyring);
}

/* One walk while the clock jumps: `now` at the seal, then at the opening. */
static void the_clock_may_jump(void **state)
{
    static const struct {
        int64_t sealed, opened;
        bool opens;
    } cases[] = {
        {NOW, NOW, true},
        {NOW, NOW + DAY, true},
        {NOW, NOW + DAY + 1, false},
        {NOW, NOW - 1, true},
        {NOW, NOW - 400 * DAY, true},
        {NOW, 0, true},
        {NOW, -DAY, true},
        {NOW + 400 * DAY, NOW, true},
        {0, DAY, true},
        {0, DAY + 1, false},
        {-DAY, 0, true},
        {-DAY - 1, 0, false},
        {INT64_MAX, NOW, true},
        {NOW, INT64_MAX, false},
    };
    struct keyring *keyring = cursor_keys(KEY_ONE);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pgseek_error error;
        if (opens(keyring, cases[i].sealed, cases[i].opened, DAY, &error) != cases[i].opens)
            fail_msg("sealed at %lld, opened at %lld", (long long)cases[i].sealed, (long long)cases[i].opened);
    }
    keyring_free(keyring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(age_is_checked),
        cmocka_unit_test(expired_tokens_all_look_alike),
        cmocka_unit_test(the_clock_may_jump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
