/* test_cursor_seal.c - the ciphers against published vectors: XAES-256-GCM of C2SP, HMAC-SHA-256 of RFC 4231. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/page/cursor_seal.h"

#define NONCE "ABCDEFGHIJKLMNOPQRSTUVWX"
#define PLAIN "XAES-256-GCM"

/* A key of equal bytes for both uses. */
static struct seal_key make_key(int byte)
{
    struct seal_key key;
    uint8_t bytes[SEAL_KEY];
    memset(bytes, byte, sizeof bytes);
    assert_true(seal_key_init(&key, bytes, bytes));
    return key;
}

static void assert_hex(const uint8_t *bytes, size_t len, const char *hex)
{
    char text[256];
    for (size_t i = 0; i < len; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    assert_string_equal(text, hex);
}

/* In the first vector CMAC's doubling has no carry, in the second it has one. */
static void published_vectors(void **state)
{
    static const struct {
        int key;
        const char *header;
        const char *sealed;
    } vectors[] = {
        {1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
        {3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        struct seal_key key = make_key(vectors[i].key);
        uint8_t sealed[sizeof PLAIN - 1 + SEAL_TAG];
        assert_true(
            seal_encrypt_nonce(&key, (const uint8_t *)NONCE, span_cstr(vectors[i].header), span_cstr(PLAIN), sealed));
        assert_hex(sealed, sizeof sealed, vectors[i].sealed);
        seal_key_fini(&key);
    }
}

static void hmac_vector(void **state)
{
    /* RFC 4231, case 2: HMAC pads short keys with zeros, so the RFC's key "Jefe" may be written with them. */
    static const uint8_t jefe[SEAL_KEY] = "Jefe";
    struct seal_key key;
    uint8_t mac[SEAL_MAC];
    (void)state;
    assert_true(seal_key_init(&key, jefe, jefe));
    assert_true(seal_sign(&key, span_cstr("what do ya want for nothing?"), mac));
    assert_hex(mac, sizeof mac, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    assert_true(seal_verify(&key, span_cstr("what do ya want for nothing?"), mac));
    mac[31] ^= 1;
    assert_false(seal_verify(&key, span_cstr("what do ya want for nothing?"), mac));
    seal_key_fini(&key);
}

static void nonces_are_not_repeated(void **state)
{
    struct seal_key key = make_key(7);
    struct buf one = {0};
    struct buf two = {0};
    (void)state;
    assert_true(seal_encrypt(&key, span_cstr("h"), span_cstr(PLAIN), &one));
    assert_true(seal_encrypt(&key, span_cstr("h"), span_cstr(PLAIN), &two));
    assert_int_equal(one.len, SEAL_NONCE + strlen(PLAIN) + SEAL_TAG);
    assert_memory_not_equal(one.ptr, two.ptr, SEAL_NONCE);
    assert_memory_not_equal(one.ptr + SEAL_NONCE, two.ptr + SEAL_NONCE, strlen(PLAIN));
    buf_fini(&one);
    buf_fini(&two);
    seal_key_fini(&key);
}

/* Bytes that did not authenticate must not be left for anybody to read. */
static void failure_leaves_nothing(void **state)
{
    struct seal_key key = make_key(7);
    uint8_t plain[sizeof PLAIN];
    uint8_t zeros[sizeof PLAIN] = {0};
    struct buf sealed = {0};
    (void)state;
    assert_true(seal_encrypt(&key, span_cstr("h"), span_cstr(PLAIN), &sealed));
    assert_true(seal_decrypt(&key, span_cstr("h"), buf_span(&sealed), plain));
    assert_memory_equal(plain, PLAIN, strlen(PLAIN));
    assert_false(seal_decrypt(&key, span_cstr("H"), buf_span(&sealed), plain));
    assert_memory_equal(plain, zeros, strlen(PLAIN));
    assert_false(seal_decrypt(&key, span_cstr("h"), span_of(sealed.ptr, SEAL_NONCE + SEAL_TAG - 1), plain));
    buf_fini(&sealed);
    seal_key_fini(&key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(hmac_vector),
        cmocka_unit_test(nonces_are_not_repeated),
        cmocka_unit_test(failure_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
