/* test_secret.c - secrets as PostgreSQL stores them, everything that is none, and secrets of nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/auth/secret.h"

#define SALT "W22ZaJ0SNY7soEsUEjb6gQ=="
#define STORED "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
#define SERVER "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
#define SECRET "SCRAM-SHA-256$4096:" SALT "$" STORED ":" SERVER /* of "pencil" */

/* Four characters of salt are three bytes. */
#define SALT_48 "QUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJD"
#define SALT_240 SALT_48 SALT_48 SALT_48 SALT_48 SALT_48

static void good_secrets_are_read_and_written(void **state)
{
    static const struct {
        const char *text;
        uint32_t iterations;
        size_t salt_len;
    } cases[] = {
        {SECRET, 4096, 16},
        {"SCRAM-SHA-256$1:" SALT "$" STORED ":" SERVER, 1, 16},
        {"SCRAM-SHA-256$10000000:" SALT "$" STORED ":" SERVER, 10000000, 16},
        {"SCRAM-SHA-256$4096:QQ==$" STORED ":" SERVER, 4096, 1},
        {"SCRAM-SHA-256$4096:" SALT_240 "QUJDQUJDQUJDQUJDQUJDQQ==$" STORED ":" SERVER, 4096, 256},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct secret secret;
        struct buf again = {0};
        if (!secret_read(span_cstr(cases[i].text), &secret))
            fail_msg("refused: %s", cases[i].text);
        assert_int_equal(secret.iterations, cases[i].iterations);
        assert_int_equal(secret.salt_len, cases[i].salt_len);
        assert_false(secret.is_mock);
        secret_put(&secret, &again);
        assert_true(span_equal_cstr(buf_span(&again), cases[i].text));
        buf_fini(&again);
    }
}

static void all_else_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "pencil",
        "md55f4dcc3b5aa765d61d8327deb882cf99",
        "SCRAM-SHA-256",
        "SCRAM-SHA-256$",
        "scram-sha-256$4096:" SALT "$" STORED ":" SERVER,
        "SCRAM-SHA-1$4096:" SALT "$" STORED ":" SERVER,
        " " SECRET,
        SECRET " ",
        SECRET "\n",
        SECRET ":" SERVER,
        SECRET "$",
        "SCRAM-SHA-256$0:" SALT "$" STORED ":" SERVER,
        "SCRAM-SHA-256$04096:" SALT "$" STORED ":" SERVER,
        "SCRAM-SHA-256$-1:" SALT "$" STORED ":" SERVER,
        "SCRAM-SHA-256$+4096:" SALT "$" STORED ":" SERVER,
        "SCRAM-SHA-256$4096 :" SALT "$" STORED ":" SERVER,
        "SCRAM-SHA-256$10000001:" SALT "$" STORED ":" SERVER,
        "SCRAM-SHA-256$1000000000:" SALT "$" STORED ":" SERVER,
        "SCRAM-SHA-256$4294967297:" SALT "$" STORED ":" SERVER,
        "SCRAM-SHA-256$18446744073709555712:" SALT "$" STORED ":" SERVER,
        "SCRAM-SHA-256$0x1000:" SALT "$" STORED ":" SERVER,
        "SCRAM-SHA-256$:" SALT "$" STORED ":" SERVER,
        "SCRAM-SHA-256$4096:$" STORED ":" SERVER,
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ=$" STORED ":" SERVER,
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gR==$" STORED ":" SERVER, /* a spare bit */
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$$" STORED ":" SERVER,
        "SCRAM-SHA-256$4096:" SALT_240 "QUJDQUJDQUJDQUJDQUJDQUI=$" STORED ":" SERVER, /* 257 bytes */
        "SCRAM-SHA-256$4096:" SALT_240 SALT_48 "$" STORED ":" SERVER,
        "SCRAM-SHA-256$4096:" SALT "$" STORED,
        "SCRAM-SHA-256$4096:" SALT "$" STORED ":",
        "SCRAM-SHA-256$4096:" SALT "$:" SERVER,
        "SCRAM-SHA-256$4096:" SALT "$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4g==:" SERVER,     /* 31 bytes */
        "SCRAM-SHA-256$4096:" SALT "$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qZB:" SERVER,     /* 33 bytes */
        "SCRAM-SHA-256$4096:" SALT "$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qZ=:" SERVER,     /* a spare bit */
        "SCRAM-SHA-256$4096:" SALT "$" STORED ":wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2d-=",  /* alphabet */
        "SCRAM-SHA-256$4096:" SALT "$" STORED ":wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dUA=", /* length */
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        static const struct secret nothing;
        struct secret secret;
        if (secret_read(span_cstr(bad[i]), &secret))
            fail_msg("taken: \"%s\"", bad[i]);
        assert_memory_equal(&secret, &nothing, sizeof secret);
    }
    struct secret secret;
    assert_false(secret_read(span_of(NULL, 0), &secret));
    assert_false(secret_read(span_of(SECRET, sizeof SECRET), &secret)); /* its NUL */
    for (size_t i = 0; i < strlen(SECRET); i++)
        assert_false(secret_read(span_of(SECRET, i), &secret));
}

static void nobodys_secret_is_always_the_same(void **state)
{
    static const uint8_t seed[SCRAM_KEY] = {1};
    static const uint8_t other_seed[SCRAM_KEY] = {2};
    struct secret first;
    struct secret second;
    (void)state;
    assert_true(secret_mock(seed, span_cstr("ann"), &first));
    assert_true(secret_mock(seed, span_cstr("ann"), &second));
    assert_memory_equal(&first, &second, sizeof first);
    assert_true(first.is_mock);
    assert_int_equal(first.iterations, 4096);
    assert_int_equal(first.salt_len, 16);

    assert_true(secret_mock(seed, span_cstr("bob"), &second));
    assert_memory_not_equal(first.salt, second.salt, 16);
    assert_true(secret_mock(other_seed, span_cstr("ann"), &second));
    assert_memory_not_equal(first.salt, second.salt, 16);
    assert_true(secret_mock(seed, span_of(NULL, 0), &second));
    assert_memory_not_equal(first.salt, second.salt, 16);
    assert_memory_not_equal(first.stored_key, first.server_key, SCRAM_KEY);
}

static void nobodys_secret_looks_like_the_others(void **state)
{
    static const uint8_t seed[SCRAM_KEY] = {1};
    struct secret real;
    struct secret mock;
    struct secret plain;
    (void)state;
    assert_true(secret_read(span_cstr("SCRAM-SHA-256$10000:" SALT_48 "$" STORED ":" SERVER), &real));
    assert_true(secret_mock(seed, span_cstr("ann"), &plain));
    mock = plain;
    secret_mock_like(&mock, (struct secret_shape){0});
    assert_memory_equal(&mock, &plain, sizeof mock);
    secret_mock_like(&mock, secret_shape(&real));
    assert_true(mock.is_mock);
    assert_int_equal(mock.iterations, 10000);
    assert_int_equal(mock.salt_len, 48);
    assert_memory_equal(mock.salt, plain.salt, SECRET_SALT_MAX);
    assert_memory_not_equal(mock.salt, real.salt, 48);
    assert_memory_not_equal(mock.salt, mock.salt + SCRAM_KEY, 16); /* no block comes twice */
}

/* Whatever a server says its scram_iterations are. */
static void servers_say_what_is_usual(void **state)
{
    static const char *const nonsense[] = {"", "0", "-1", "1e3", "10000001", "99999999999999999999"};
    struct secret_shape usual = secret_shape_usual(span_cstr("12345"));
    (void)state;
    assert_int_equal(usual.iterations, 12345);
    assert_int_equal(usual.salt_len, 16);
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++)
        assert_int_equal(secret_shape_usual(span_cstr(nonsense[i])).iterations, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_secrets_are_read_and_written), cmocka_unit_test(all_else_is_refused),
        cmocka_unit_test(nobodys_secret_is_always_the_same), cmocka_unit_test(nobodys_secret_looks_like_the_others),
        cmocka_unit_test(servers_say_what_is_usual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
