/* test_sink.c - pieces leave in the order they came, borrowed or made, however many there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/protocol/sink.h"

static void assert_sends(const struct sink *sink, const char *expected, size_t pieces)
{
    struct iovec iov[SINK_PIECES];
    size_t count = sink_iovec(sink, iov);
    size_t at = 0;
    assert_int_equal(count, pieces);
    assert_int_equal(sink_len(sink), strlen(expected));
    for (size_t i = 0; i < count; i++) {
        assert_true(iov[i].iov_len > 0);
        assert_memory_equal(iov[i].iov_base, expected + at, iov[i].iov_len);
        at += iov[i].iov_len;
    }
    assert_int_equal(at, strlen(expected));
    assert_int_equal(sink_is_empty(sink), expected[0] == '\0');
}

static void neighbours_melt(void **state)
{
    static const char input[] = "0123456789";
    struct sink sink = {0};
    (void)state;
    assert_sends(&sink, "", 0);
    sink_borrow(&sink, span_of(input, 3));
    sink_borrow(&sink, span_of(input + 3, 2));
    assert_sends(&sink, "01234", 1);
    sink_borrow(&sink, span_of(input + 6, 2));
    assert_sends(&sink, "0123467", 2);
    sink_borrow(&sink, span_of(input, 0));
    assert_sends(&sink, "0123467", 2);
    sink_copy(&sink, span_cstr("ab"));
    sink_copy(&sink, span_cstr("cd"));
    assert_sends(&sink, "0123467abcd", 3);
    sink_borrow(&sink, span_of(input + 8, 2));
    sink_copy(&sink, span_cstr("ef"));
    assert_sends(&sink, "0123467abcd89ef", 5);
    sink_clear(&sink);
    assert_sends(&sink, "", 0);
    sink_fini(&sink);
}

static void made_bytes_are_taken_when_done(void **state)
{
    struct sink sink = {0};
    (void)state;
    assert_int_equal(sink_make(&sink)->len, 0);
    sink_made(&sink); /* nothing was made */
    assert_sends(&sink, "", 0);
    struct buf *made = sink_make(&sink);
    buf_put_text(made, "x");
    buf_put_text(made, "y");
    sink_made(&sink);
    sink_made(&sink); /* and nothing since */
    assert_sends(&sink, "xy", 1);
    sink_borrow(&sink, span_cstr("-"));
    buf_put_text(sink_make(&sink), "z");
    sink_made(&sink);
    assert_sends(&sink, "xy-z", 3);
    sink_fini(&sink);
    assert_sends(&sink, "", 0);
}

/* The buffer moves while it grows: pieces made before it moved must not point into freed memory. */
static void made_bytes_may_move(void **state)
{
    struct sink sink = {0};
    char expected[20001];
    (void)state;
    for (size_t i = 0; i < 20; i++) {
        memset(expected + i * 1000, 'a' + (int)i, 999);
        expected[i * 1000 + 999] = '|';
        sink_copy(&sink, span_of(expected + i * 1000, 999));
        sink_borrow(&sink, span_cstr("|"));
    }
    expected[20000] = '\0';
    assert_sends(&sink, expected, 40);
    sink_fini(&sink);
}

/* Alternating pieces, one more than there is room for each time: the order stays, the count stays bounded. */
static void too_many_pieces_become_one(void **state)
{
    static const char input[] = "abcdefghijklmnopqrstuvwxyz";
    (void)state;
    for (size_t pieces = SINK_PIECES - 2; pieces < 4 * SINK_PIECES; pieces++) {
        struct sink sink = {0};
        struct iovec iov[SINK_PIECES];
        char expected[4 * SINK_PIECES + 1] = "";
        char sent[sizeof expected] = "";
        for (size_t i = 0; i < pieces; i++) {
            const char *from = &input[i * 2 % 26];
            if (i % 3)
                sink_borrow(&sink, span_of(from, 1));
            else
                sink_copy(&sink, span_of(from, 1));
            strncat(expected, from, 1);
        }
        size_t count = sink_iovec(&sink, iov);
        assert_in_range(count, 1, SINK_PIECES);
        for (size_t i = 0; i < count; i++)
            strncat(sent, iov[i].iov_base, iov[i].iov_len);
        assert_string_equal(sent, expected);
        assert_false(sink_failed(&sink));
        sink_fini(&sink);
    }
}

/* When memory runs out at any point, the sink says so. It may then hold less, but never anything wrong. */
static void memory_may_run_out(void **state)
{
    static const char input[] = "0123456789";
    bool ok = false;
    (void)state;
    for (long n = 0; !ok; n++) {
        struct sink sink = {0};
        struct iovec iov[SINK_PIECES];
        mem_fail_after(n);
        for (size_t i = 0; i < 3 * SINK_PIECES; i++) {
            sink_borrow(&sink, span_of(input + i * 3 % 10, 1));
            sink_copy(&sink, span_cstr("made"));
        }
        mem_fail_after(-1);
        ok = !sink_failed(&sink);
        assert_in_range(sink_iovec(&sink, iov), 0, SINK_PIECES);
        sink_clear(&sink);
        assert_false(sink_failed(&sink));
        assert_true(sink_is_empty(&sink));
        sink_fini(&sink);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_melt),     cmocka_unit_test(made_bytes_are_taken_when_done),
        cmocka_unit_test(made_bytes_may_move), cmocka_unit_test(too_many_pieces_become_one),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
