/* test_link.c - a link over a socket pair: what is refused is kept in order, the ends and breaks of the peer are told.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../proxy/io/link.h"

#define BULK_BYTES ((size_t)4 * 1024 * 1024) /* more than a socket takes in one go */

struct bench {
    uv_loop_t loop;
    struct link link;
    int peer;        /* the other end's descriptor, blocking; -1 once closed */
    unsigned events; /* all that were reported */
    int calls;
    int closes;
};

static void on_event(struct link *link, unsigned events)
{
    struct bench *bench = link->poll.data;
    bench->events |= events;
    bench->calls++;
}

static void on_closed(struct link *link)
{
    struct bench *bench = link->poll.data;
    bench->closes++;
}

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    int ends[2];
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(link_open(&bench->link, &bench->loop, ends[0], bench, on_event, on_closed), 0);
    bench->peer = ends[1];
    *state = bench;
    return 0;
}

static void close_peer(struct bench *bench)
{
    close(bench->peer);
    bench->peer = -1;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;
    if (bench->peer >= 0)
        close(bench->peer);
    link_close(&bench->link);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(bench->closes, 1);
    assert_true(link_is_gone(&bench->link));
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    free(bench);
    return 0;
}

static unsigned run_once(struct bench *bench)
{
    bench->events = 0;
    bench->calls = 0;
    uv_run(&bench->loop, UV_RUN_NOWAIT);
    return bench->events;
}

static void send_text(struct bench *bench, const char *text)
{
    struct sink sink = {0};
    sink_borrow(&sink, span_cstr(text));
    assert_int_equal(link_send(&bench->link, &sink), 0);
    sink_fini(&sink);
}

/* The n-th byte of a stream that never repeats within a few megabytes of shift. */
static uint8_t stream_byte(size_t at)
{
    return (uint8_t)(at * 31 + at / 251);
}

static uint8_t *make_stream(size_t len)
{
    uint8_t *bytes = malloc(len);
    for (size_t i = 0; i < len; i++)
        bytes[i] = stream_byte(i);
    return bytes;
}

/* Reads what the peer can have now without waiting, and checks that the stream goes on at *at. */
static void peer_reads(struct bench *bench, size_t *at)
{
    static uint8_t chunk[65536];
    ssize_t got;
    while ((got = recv(bench->peer, chunk, sizeof chunk, MSG_DONTWAIT)) > 0)
        for (ssize_t i = 0; i < got; i++)
            assert_int_equal(chunk[i], stream_byte((*at)++));
}

static void pieces_are_one_stream(void **state)
{
    struct bench *bench = *state;
    struct sink sink = {0};
    char got[16] = {0};
    sink_borrow(&sink, span_cstr("one "));
    sink_copy(&sink, span_cstr("two "));
    sink_borrow(&sink, span_cstr("three"));
    assert_int_equal(link_send(&bench->link, &sink), 0);
    assert_int_equal(link_unsent(&bench->link), 0);
    assert_int_equal(recv(bench->peer, got, sizeof got, MSG_DONTWAIT), 13);
    assert_string_equal(got, "one two three");
    sink_fini(&sink);
}

static void refused_bytes_keep_their_order(void **state)
{
    struct bench *bench = *state;
    uint8_t *stream = make_stream(BULK_BYTES);
    struct sink sink = {0};
    size_t half = BULK_BYTES / 2;
    size_t at = 0;
    sink_borrow(&sink, span_of(stream, 100)); /* three pieces: the rest begins inside one of them */
    sink_copy(&sink, span_of(stream + 100, 50));
    sink_borrow(&sink, span_of(stream + 150, half - 150));
    assert_int_equal(link_send(&bench->link, &sink), 0);
    assert_true(link_unsent(&bench->link) > 0);
    sink_clear(&sink);
    sink_borrow(&sink, span_of(stream + half, BULK_BYTES - half)); /* must not overtake */
    assert_int_equal(link_send(&bench->link, &sink), 0);
    assert_true(link_unsent(&bench->link) >= BULK_BYTES - half);
    while (at < BULK_BYTES) {
        peer_reads(bench, &at);
        link_want(&bench->link, LINK_WRITABLE);
        if (link_unsent(&bench->link) > 0)
            assert_true(run_once(bench) & LINK_WRITABLE);
        assert_int_equal(link_flush(&bench->link), 0);
    }
    assert_int_equal(at, BULK_BYTES);
    assert_int_equal(link_unsent(&bench->link), 0);
    assert_null(bench->link.unsent.ptr); /* memory only while something is refused */
    sink_fini(&sink);
    free(stream);
}

static void memory_that_is_missing_is_an_error(void **state)
{
    struct bench *bench = *state;
    uint8_t *stream = make_stream(BULK_BYTES);
    struct sink sink = {0};
    sink_borrow(&sink, span_of(stream, BULK_BYTES));
    mem_fail_after(0);
    assert_int_equal(link_send(&bench->link, &sink), -ENOMEM);
    mem_fail_after(-1);
    sink_fini(&sink);
    free(stream);
}

static void bytes_are_received(void **state)
{
    struct bench *bench = *state;
    uint8_t buffer[16];
    assert_int_equal(link_recv(&bench->link, buffer, sizeof buffer), 0);
    assert_false(bench->link.at_end);
    link_want(&bench->link, LINK_READABLE);
    assert_int_equal(run_once(bench), 0);
    assert_int_equal(send(bench->peer, "hello", 5, 0), 5);
    assert_int_equal(run_once(bench), LINK_READABLE);
    assert_int_equal(link_recv(&bench->link, buffer, sizeof buffer), 5);
    assert_memory_equal(buffer, "hello", 5);
    assert_int_equal(run_once(bench), 0);
}

static void the_end_comes_behind_the_last_bytes(void **state)
{
    struct bench *bench = *state;
    uint8_t buffer[16];
    assert_int_equal(send(bench->peer, "bye", 3, 0), 3);
    close_peer(bench);
    link_want(&bench->link, LINK_READABLE);
    assert_true(run_once(bench) & LINK_READABLE);
    assert_int_equal(link_recv(&bench->link, buffer, sizeof buffer), 3);
    assert_false(bench->link.at_end);
    assert_int_equal(link_recv(&bench->link, buffer, sizeof buffer), 0);
    assert_true(bench->link.at_end);
}

/* A link that is not read says once that its peer sends no more, and does not keep the loop spinning. */
static void a_hang_up_is_told_once(void **state)
{
    struct bench *bench = *state;
    link_want(&bench->link, 0);
    assert_int_equal(run_once(bench), 0);
    assert_int_equal(shutdown(bench->peer, SHUT_WR), 0);
    assert_int_equal(run_once(bench), LINK_HUNG_UP);
    link_want(&bench->link, 0);
    assert_int_equal(run_once(bench), 0);
    send_text(bench, "still here"); /* the other direction is open */
    link_want(&bench->link, LINK_READABLE);
    assert_int_equal(run_once(bench), LINK_READABLE);
}

static void a_reset_is_an_error(void **state)
{
    struct bench *bench = *state;
    uint8_t buffer[16];
    send_text(bench, "unread");
    close_peer(bench); /* with bytes unread: a reset */
    link_want(&bench->link, LINK_READABLE);
    assert_true(run_once(bench) & LINK_READABLE);
    assert_int_equal(link_recv(&bench->link, buffer, sizeof buffer), -ECONNRESET);
    struct sink sink = {0};
    sink_borrow(&sink, span_cstr("x"));
    assert_int_equal(link_send(&bench->link, &sink), -EPIPE);
    sink_fini(&sink);
}

static void finishing_tells_the_peer_once(void **state)
{
    struct bench *bench = *state;
    char got[8];
    link_finish(&bench->link);
    link_finish(&bench->link);
    assert_int_equal(recv(bench->peer, got, sizeof got, MSG_DONTWAIT), 0);
    assert_int_equal(send(bench->peer, "yet", 3, 0), 3);
    assert_int_equal(link_recv(&bench->link, (uint8_t *)got, sizeof got), 3);
}

static void closing_is_idempotent(void **state)
{
    struct bench *bench = *state;
    char got[8];
    link_want(&bench->link, LINK_READABLE);
    link_close(&bench->link);
    link_close(&bench->link);
    assert_false(link_is_open(&bench->link));
    assert_int_equal(recv(bench->peer, got, sizeof got, MSG_DONTWAIT), 0); /* at once, not from the loop */
    assert_int_equal(bench->closes, 0);
    send_text(bench, "dropped");
    link_want(&bench->link, LINK_READABLE);
    assert_int_equal(run_once(bench), 0);
    assert_int_equal(bench->closes, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(pieces_are_one_stream),
        TEST(refused_bytes_keep_their_order),
        TEST(memory_that_is_missing_is_an_error),
        TEST(bytes_are_received),
        TEST(the_end_comes_behind_the_last_bytes),
        TEST(a_hang_up_is_told_once),
        TEST(a_reset_is_an_error),
        TEST(finishing_tells_the_peer_once),
        TEST(closing_is_idempotent),
#undef TEST
    };
    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
