/* test_base64.c - both codecs against known texts, and that a byte string has one spelling only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/protocol/base64.h"

static const struct {
    const char *bytes;
    size_t len;
    const char *text;
    const char *padded;
} known[] = {
    {"", 0, "", ""},
    {"f", 1, "Zg", "Zg=="},
    {"fo", 2, "Zm8", "Zm8="},
    {"foo", 3, "Zm9v", "Zm9v"},
    {"foob", 4, "Zm9vYg", "Zm9vYg=="},
    {"fooba", 5, "Zm9vYmE", "Zm9vYmE="},
    {"foobar", 6, "Zm9vYmFy", "Zm9vYmFy"},
    {"\xff\xff\xff", 3, "____", "////"},
    {"\xfb\xef\xbe", 3, "----", "++++"},
    {"\x00\x10\x83", 3, "ABCD", "ABCD"},
};

static void known_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct buf text = {0};
        uint8_t bytes[16];
        size_t len = 99;
        base64url_put(span_of(known[i].bytes, known[i].len), &text);
        assert_int_equal(text.len, strlen(known[i].text));
        assert_true(span_equal_cstr(buf_span(&text), known[i].text));
        assert_true(base64url_get(buf_span(&text), bytes, &len));
        assert_true(span_equal(span_of(bytes, len), span_of(known[i].bytes, known[i].len)));

        buf_clear(&text);
        base64_put(span_of(known[i].bytes, known[i].len), &text);
        assert_int_equal(text.len, base64_len(known[i].len));
        assert_true(span_equal_cstr(buf_span(&text), known[i].padded));
        assert_true(base64_get(buf_span(&text), bytes, &len));
        assert_true(span_equal(span_of(bytes, len), span_of(known[i].bytes, known[i].len)));
        buf_fini(&text);
    }
}

static void other_spellings_are_refused(void **state)
{
    static const char *const bad[] = {
        "A", "AAAAA", "Zh", "Zm9", "Zg==", "Zg=", "Zm9v\n", " Zm9v", "Zm+v", "Zm/v", "Zm\xc3v", "Zm9vYm", "Zm9.",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t bytes[16];
        size_t len;
        if (base64url_get(span_cstr(bad[i]), bytes, &len))
            fail_msg("\"%s\" was decoded", bad[i]);
    }
    uint8_t bytes[16];
    size_t len;
    assert_false(base64url_get(span_of("Zm\0v", 4), bytes, &len));
}

static void other_paddings_are_refused(void **state)
{
    static const char *const bad[] = {
        "A",      "Zg",       "Zg=",      "Zm8",  "Zm8==", "Zh==",   "Zm9=", "Z===",     "====",      "=",
        "Zg==Zg", "Zg==Zg==", "Zm9vZ=g=", "Zm-v", "Zm_v",  "Zm9v\n", " Zm9", "Zm9v====", "Zm9vYmE==", "Zm\xc3v",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t bytes[16];
        size_t len;
        if (base64_get(span_cstr(bad[i]), bytes, &len))
            fail_msg("\"%s\" was decoded", bad[i]);
    }
}

/* Every text of three characters that decodes is the encoding of what it decodes to. */
static void decoding_is_injective(void **state)
{
    (void)state;
    unsigned decoded = 0;
    for (unsigned i = 0; i < 128 * 128; i++) {
        const uint8_t text[] = {'Q', (uint8_t)(i / 128), (uint8_t)(i % 128)};
        uint8_t bytes[4];
        size_t len;
        struct buf again = {0};
        if (!base64url_get(span_of(text, sizeof text), bytes, &len))
            continue;
        decoded++;
        base64url_put(span_of(bytes, len), &again);
        assert_true(span_equal(buf_span(&again), span_of(text, sizeof text)));
        buf_fini(&again);
    }
    assert_int_equal(decoded, 64 * 16); /* the last of three characters has two spare bits */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts),
        cmocka_unit_test(other_spellings_are_refused),
        cmocka_unit_test(other_paddings_are_refused),
        cmocka_unit_test(decoding_is_injective),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
