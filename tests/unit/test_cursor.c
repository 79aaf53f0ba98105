/* test_cursor.c - tokens: what is sealed comes back, and nothing else opens.
 *
 * How long they are good is in test_cursor_age.c, what makes each one unlike all others in test_cursor_nonces.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/protocol/base64.h"
#include "cursor_fixture.h"

static void assert_cursor_equal(const struct cursor *a, const struct cursor *b)
{
    assert_int_equal(a->direction, b->direction);
    assert_true(a->issued == b->issued);
    assert_memory_equal(a->part, b->part, sizeof a->part);
    assert_int_equal(a->nvalues, b->nvalues);
    for (size_t i = 0; i < a->nvalues; i++) {
        assert_int_equal(a->value[i].type_oid, b->value[i].type_oid);
        assert_int_equal(a->value[i].len, b->value[i].len);
        if (a->value[i].len > 0)
            assert_memory_equal(a->value[i].data, b->value[i].data, (size_t)a->value[i].len);
    }
}

static void assert_opens(const struct keyring *keyring, struct span token, const struct cursor *expected)
{
    struct cursor opened;
    struct pgseek_error error;
    assert_true(cursor_open(keyring, token, NOW, DAY, &opened, &error));
    assert_cursor_equal(&opened, expected);
    cursor_fini(&opened);
}

static struct pgseek_error assert_refused(const struct keyring *keyring, struct span token, enum pgseek_code code)
{
    struct cursor opened;
    struct pgseek_error error;
    if (cursor_open(keyring, token, NOW, DAY, &opened, &error))
        fail_msg("the token was opened: %.*s", (int)token.len, (const char *)token.ptr);
    assert_int_equal(error.code, code);
    assert_true(error.message[0] && strlen(error.message) <= 49); /* "pgseek PS002: " and it are one identifier */
    assert_true(error.hint[0]);
    assert_null(opened.owned);
    return error;
}

static void values_come_back(void **state)
{
    struct keyring *keyring = cursor_keys(KEY_ONE);
    struct cursor none = cursor_of_feed();
    struct cursor nulls = cursor_of_feed();
    struct cursor most = cursor_of_feed();
    (void)state;
    none.nvalues = 0;
    nulls.nvalues = 3;
    nulls.direction = CURSOR_BACKWARD;
    nulls.value[0] = (struct cursor_value){.type_oid = 25, .len = -1};
    nulls.value[1] = (struct cursor_value){.type_oid = 25, .len = 0, .data = cursor_bytes};
    nulls.value[2] = (struct cursor_value){.type_oid = UINT32_MAX, .len = 1, .data = cursor_bytes};
    most.issued = INT64_MAX;
    most.nvalues = PGSEEK_MAX_KEYS;
    for (size_t i = 0; i < PGSEEK_MAX_KEYS; i++)
        most.value[i] = (struct cursor_value){.type_oid = (uint32_t)i, .len = (int32_t)(i * 5), .data = cursor_bytes};
    const struct cursor *const cursors[] = {&none, &nulls, &most};
    for (size_t i = 0; i < 3; i++) {
        for (int sign = 0; sign < 2; sign++) {
            struct buf token = cursor_sealed(keyring, sign, cursors[i]);
            assert_opens(keyring, buf_span(&token), cursors[i]);
            buf_fini(&token);
        }
    }
    keyring_free(keyring);
}

/* NULL and empty are different positions. */
static void null_is_not_empty(void **state)
{
    struct keyring *keyring = cursor_keys(KEY_ONE);
    struct cursor cursor = cursor_of_feed();
    struct cursor opened;
    struct pgseek_error error;
    (void)state;
    cursor.value[0] = (struct cursor_value){.type_oid = 25, .len = -1};
    cursor.value[1] = (struct cursor_value){.type_oid = 25, .len = 0};
    struct buf token = cursor_sealed(keyring, false, &cursor);
    assert_true(cursor_open(keyring, buf_span(&token), NOW, DAY, &opened, &error));
    assert_null(opened.value[0].data);
    assert_non_null(opened.value[1].data);
    cursor_fini(&opened);
    buf_fini(&token);
    keyring_free(keyring);
}

static void encryption_hides_and_signing_shows(void **state)
{
    struct keyring *keyring = cursor_keys(KEY_ONE);
    struct cursor cursor = cursor_of_feed();
    static const char secret[] = "a sort key that must not leak";
    (void)state;
    cursor.value[0] = (struct cursor_value){.type_oid = 25, .len = sizeof secret, .data = (const uint8_t *)secret};
    for (int sign = 0; sign < 2; sign++) {
        uint8_t bytes[CURSOR_MAX_TOKEN];
        size_t len;
        struct buf token = cursor_sealed(keyring, sign, &cursor);
        assert_true(base64url_get(buf_span(&token), bytes, &len));
        assert_int_equal(memmem(bytes, len, secret, sizeof secret) != NULL, sign);
        buf_fini(&token);
    }
    keyring_free(keyring);
}

static void every_flipped_bit_is_refused(void **state)
{
    struct keyring *keyring = cursor_keys(KEY_ONE KEY_TWO);
    struct cursor cursor = cursor_of_feed();
    (void)state;
    for (int sign = 0; sign < 2; sign++) {
        struct buf token = cursor_sealed(keyring, sign, &cursor);
        for (size_t bit = 0; bit < token.len * 8; bit++) {
            struct cursor opened;
            struct pgseek_error error;
            token.ptr[bit / 8] ^= (uint8_t)(1 << bit % 8);
            if (cursor_open(keyring, buf_span(&token), NOW, DAY, &opened, &error))
                fail_msg("bit %zu of the characters does not matter", bit);
            assert_true(error.code == PGSEEK_PS001 || error.code == PGSEEK_PS002);
            token.ptr[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        assert_opens(keyring, buf_span(&token), &cursor);
        buf_fini(&token);
    }
    keyring_free(keyring);
}

/* Flips that the alphabet cannot hide: bits of the bytes behind the characters. */
static void every_flipped_byte_bit_is_refused(void **state)
{
    struct keyring *keyring = cursor_keys(KEY_ONE KEY_TWO);
    struct cursor cursor = cursor_of_feed();
    (void)state;
    for (int sign = 0; sign < 2; sign++) {
        uint8_t bytes[CURSOR_MAX_TOKEN];
        size_t len;
        struct buf token = cursor_sealed(keyring, sign, &cursor);
        assert_true(base64url_get(buf_span(&token), bytes, &len));
        for (size_t bit = 0; bit < len * 8; bit++) {
            struct cursor opened;
            struct pgseek_error error;
            struct buf forged = {0};
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            base64url_put(span_of(bytes, len), &forged);
            if (cursor_open(keyring, buf_span(&forged), NOW, DAY, &opened, &error))
                fail_msg("bit %zu of the bytes does not matter", bit);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            buf_fini(&forged);
        }
        buf_fini(&token);
    }
    keyring_free(keyring);
}

static void every_other_character_is_refused(void **state)
{
    struct keyring *keyring = cursor_keys(KEY_ONE);
    struct cursor cursor = cursor_of_feed();
    struct buf token = cursor_sealed(keyring, false, &cursor);
    (void)state;
    for (size_t i = 0; i < token.len; i++) {
        uint8_t right = token.ptr[i];
        for (unsigned c = 0; c < 256; c++) {
            struct cursor opened;
            struct pgseek_error error;
            token.ptr[i] = (uint8_t)c;
            if (c != right && cursor_open(keyring, buf_span(&token), NOW, DAY, &opened, &error))
                fail_msg("character %zu may also be %u", i, c);
        }
        token.ptr[i] = right;
    }
    buf_fini(&token);
    keyring_free(keyring);
}

static void every_other_length_is_refused(void **state)
{
    struct keyring *keyring = cursor_keys(KEY_ONE);
    struct cursor cursor = cursor_of_feed();
    (void)state;
    for (int sign = 0; sign < 2; sign++) {
        struct buf token = cursor_sealed(keyring, sign, &cursor);
        size_t whole = token.len;
        for (size_t len = 0; len < whole; len++) {
            struct cursor opened;
            struct pgseek_error error;
            assert_false(cursor_open(keyring, span_of(token.ptr, len), NOW, DAY, &opened, &error));
            assert_true(error.code == PGSEEK_PS001 || error.code == PGSEEK_PS002);
        }
        for (unsigned more = 1; more <= 12; more++) {
            struct cursor opened;
            struct pgseek_error error;
            buf_put_u8(&token, 'A');
            assert_false(cursor_open(keyring, buf_span(&token), NOW, DAY, &opened, &error));
        }
        buf_fini(&token);
    }
    keyring_free(keyring);
}

/* A payload or a seal of one kind presented as the other. */
static void kinds_are_not_exchanged(void **state)
{
    struct keyring *keyring = cursor_keys(KEY_ONE);
    struct cursor cursor = cursor_of_feed();
    (void)state;
    for (int sign = 0; sign < 2; sign++) {
        uint8_t bytes[CURSOR_MAX_TOKEN];
        size_t len;
        struct buf token = cursor_sealed(keyring, sign, &cursor);
        assert_true(base64url_get(buf_span(&token), bytes, &len));
        bytes[1 + KEYRING_ID] ^= 2;
        buf_clear(&token);
        base64url_put(span_of(bytes, len), &token);
        assert_refused(keyring, buf_span(&token), PGSEEK_PS002);
        buf_fini(&token);
    }
    keyring_free(keyring);
}

/* Whatever is malformed, and however: the same bytes are answered. */
static void malformed_tokens_all_look_alike(void **state)
{
    static const char *const cases[] = {
        "",     "A",        "AAAAA",    "AQAAAAAA",  "not a token", "AAAA====",
        "ab+/", "AgAAAAEA", "AQAAAAEE", "AQAAAAEAB", "\xc3\xa9",
    };
    struct keyring *keyring = cursor_keys(KEY_ONE);
    (void)state;
    struct pgseek_error first = assert_refused(keyring, span_cstr(cases[0]), PGSEEK_PS001);
    for (size_t i = 1; i < sizeof cases / sizeof cases[0]; i++) {
        struct pgseek_error error = assert_refused(keyring, span_cstr(cases[i]), PGSEEK_PS001);
        if (memcmp(&error, &first, sizeof error) != 0)
            fail_msg("\"%s\": %s", cases[i], error.detail);
    }
    char *longest = test_malloc(1 << 20);
    memset(longest, 'A', 1 << 20);
    static const size_t lengths[] = {CURSOR_MAX_TOKEN, CURSOR_MAX_TOKEN + 1, 1 << 20}; /* the first is of version 0 */
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct pgseek_error error = assert_refused(keyring, span_of(longest, lengths[i]), PGSEEK_PS001);
        assert_memory_equal(&error, &first, sizeof error);
    }
    test_free(longest);
    keyring_free(keyring);
}

/* A payload that only a holder of the key can have written, and that is none of ours, is malformed like any other. */
static void sealed_nonsense_is_malformed_like_any_other(void **state)
{
    static const size_t lengths[] = {8 + CURSOR_PARTS * CURSOR_DIGEST + 1, 200, 1000};
    struct keyring *keyring = cursor_keys(KEY_ONE);
    struct pgseek_error first = assert_refused(keyring, span_cstr("A"), PGSEEK_PS001);
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint8_t payload[1000];
        struct buf sealed = {0};
        struct buf token = {0};
        memset(payload, 0xee, sizeof payload); /* 238 values */
        buf_put_u8(&sealed, 1);
        buf_put(&sealed, keyring_first(keyring)->id, KEYRING_ID);
        buf_put_u8(&sealed, 0);
        struct span header = span_of("\1\0\0\0\1\0", 6);
        assert_true(seal_encrypt(&keyring_first(keyring)->seal, header, span_of(payload, lengths[i]), &sealed));
        base64url_put(buf_span(&sealed), &token);
        struct pgseek_error error = assert_refused(keyring, buf_span(&token), PGSEEK_PS001);
        assert_memory_equal(&error, &first, sizeof error);
        buf_fini(&sealed);
        buf_fini(&token);
    }
    keyring_free(keyring);
}

/* A holder cannot tell an unknown key from an altered token. */
static void untrusted_tokens_all_look_alike(void **state)
{
    struct keyring *one = cursor_keys(KEY_ONE);
    struct keyring *two = cursor_keys(KEY_TWO);
    struct keyring *impostor = cursor_keys(KEY_IMPOSTOR);
    struct cursor cursor = cursor_of_feed();
    (void)state;
    for (int sign = 0; sign < 2; sign++) {
        struct buf token = cursor_sealed(one, sign, &cursor);
        struct pgseek_error unknown = assert_refused(two, buf_span(&token), PGSEEK_PS002);
        struct pgseek_error wrong = assert_refused(impostor, buf_span(&token), PGSEEK_PS002);
        token.ptr[token.len / 2] = token.ptr[token.len / 2] == 'A' ? 'B' : 'A'; /* another character of the alphabet */
        struct pgseek_error altered = assert_refused(one, buf_span(&token), PGSEEK_PS002);
        assert_memory_equal(&unknown, &wrong, sizeof unknown);
        assert_memory_equal(&unknown, &altered, sizeof unknown);
        assert_string_equal(unknown.detail, "It was not sealed with a key that this proxy knows.");
        buf_fini(&token);
    }
    keyring_free(one);
    keyring_free(two);
    keyring_free(impostor);
}

static void rotation_loses_nothing(void **state)
{
    struct keyring *old = cursor_keys(KEY_ONE);
    struct keyring *both = cursor_keys(KEY_TWO KEY_ONE);
    struct keyring *rotated = cursor_keys(KEY_TWO);
    struct cursor cursor = cursor_of_feed();
    struct buf before = cursor_sealed(old, false, &cursor);
    struct buf after = cursor_sealed(both, false, &cursor);
    (void)state;
    assert_opens(both, buf_span(&before), &cursor);
    assert_opens(both, buf_span(&after), &cursor);
    assert_opens(rotated, buf_span(&after), &cursor);
    assert_refused(rotated, buf_span(&before), PGSEEK_PS002);
    assert_refused(old, buf_span(&after), PGSEEK_PS002);
    buf_fini(&before);
    buf_fini(&after);
    keyring_free(old);
    keyring_free(both);
    keyring_free(rotated);
}

/* The longest value that still fits is sealed and opened, one byte more is refused and leaves the buffer alone. */
static void size_has_an_end(void **state)
{
    struct keyring *keyring = cursor_keys(KEY_ONE);
    struct cursor cursor = cursor_of_feed();
    (void)state;
    cursor.nvalues = 1;
    for (int sign = 0; sign < 2; sign++) {
        struct buf token = {0};
        int32_t len = 0;
        for (;; len++) {
            buf_clear(&token);
            cursor.value[0] = (struct cursor_value){.type_oid = 17, .len = len, .data = cursor_bytes};
            if (!cursor_seal(keyring, sign, &cursor, &token))
                break;
            assert_true(token.len <= CURSOR_MAX_TOKEN);
        }
        assert_in_range(len, 1300, 1500);
        assert_int_equal(token.len, 0);
        cursor.value[0].len = len - 1;
        assert_true(cursor_seal(keyring, sign, &cursor, &token));
        assert_in_range(token.len, CURSOR_MAX_TOKEN - 16, CURSOR_MAX_TOKEN);
        assert_opens(keyring, buf_span(&token), &cursor);
        buf_fini(&token);
    }
    struct buf token = {0};
    cursor.value[0].len = INT32_MAX;
    assert_false(cursor_seal(keyring, false, &cursor, &token));
    keyring_free(keyring);
}

static void memory_may_run_out(void **state)
{
    struct keyring *keyring = cursor_keys(KEY_ONE);
    struct cursor cursor = cursor_of_feed();
    struct buf token = cursor_sealed(keyring, false, &cursor);
    (void)state;
    bool ok = false;
    for (long n = 0; !ok; n++) {
        struct buf again = {0};
        mem_fail_after(n);
        ok = cursor_seal(keyring, n % 2, &cursor, &again);
        mem_fail_after(-1);
        assert_true(ok || again.len == 0);
        buf_fini(&again);
        assert_true(n < 100);
    }
    ok = false;
    for (long n = 0; !ok; n++) {
        struct cursor opened;
        struct pgseek_error error;
        mem_fail_after(n);
        ok = cursor_open(keyring, buf_span(&token), NOW, DAY, &opened, &error);
        mem_fail_after(-1);
        cursor_fini(&opened);
        assert_true(n < 100);
    }
    buf_fini(&token);
    keyring_free(keyring);
}

static void digests_know_where_chunks_end(void **state)
{
    uint8_t ab_c[CURSOR_DIGEST];
    uint8_t a_bc[CURSOR_DIGEST];
    uint8_t again[CURSOR_DIGEST];
    uint8_t none[CURSOR_DIGEST];
    uint8_t empty[CURSOR_DIGEST];
    (void)state;
    assert_true(cursor_digest((struct span[]){span_cstr("ab"), span_cstr("c")}, 2, ab_c));
    assert_true(cursor_digest((struct span[]){span_cstr("a"), span_cstr("bc")}, 2, a_bc));
    assert_true(cursor_digest((struct span[]){span_cstr("ab"), span_cstr("c")}, 2, again));
    assert_true(cursor_digest(NULL, 0, none));
    assert_true(cursor_digest((struct span[]){span_of(NULL, 0)}, 1, empty));
    assert_true(cursor_part_equal(ab_c, again));
    assert_false(cursor_part_equal(ab_c, a_bc));
    assert_false(cursor_part_equal(none, empty));
    /* SHA-256 of nothing begins with these bytes. */
    assert_memory_equal(none, "\xe3\xb0\xc4\x42\x98\xfc\x1c\x14\x9a\xfb\xf4\xc8\x99\x6f\xb9\x24", CURSOR_DIGEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_back),
        cmocka_unit_test(null_is_not_empty),
        cmocka_unit_test(encryption_hides_and_signing_shows),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(every_flipped_byte_bit_is_refused),
        cmocka_unit_test(every_other_character_is_refused),
        cmocka_unit_test(every_other_length_is_refused),
        cmocka_unit_test(kinds_are_not_exchanged),
        cmocka_unit_test(malformed_tokens_all_look_alike),
        cmocka_unit_test(sealed_nonsense_is_malformed_like_any_other),
        cmocka_unit_test(untrusted_tokens_all_look_alike),
        cmocka_unit_test(rotation_loses_nothing),
        cmocka_unit_test(size_has_an_end),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(digests_know_where_chunks_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
