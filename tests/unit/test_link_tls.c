/* test_link_tls.c - a link under TLS: records cut anywhere, a peer that reads slowly, ends that are told and ends that
 * are not, and what is no TLS at all. */
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
#include "tls_fixture.h"

#define BULK_BYTES ((size_t)4 * 1024 * 1024) /* more than a socket takes in one go */
#define BUFFER_BYTES LINK_PLAIN_MIN

static struct tls_context *for_clients;
static struct tls_context *for_servers;

struct bench {
    uv_loop_t loop;
    struct link link;
    struct tls *peer; /* the other end of TLS ... */
    int fd;           /* ... and of the connection; -1 once closed */
    struct buf got;   /* by the peer, in clear text */
    int closes;
};

static void on_event(struct link *link, unsigned events)
{
    (void)link, (void)events;
}

static void on_closed(struct link *link)
{
    struct bench *bench = link->poll.data;
    bench->closes++;
}

static int set_up_all(void **state)
{
    tls_fixture_setup(state);
    for_clients = tls_fixture_clients(tls_fixture_plain, NULL);
    for_servers = tls_fixture_server(tls_fixture_plain, "*", NULL);
    return 0;
}

static int tear_down_all(void **state)
{
    tls_context_free(for_clients);
    tls_context_free(for_servers);
    return tls_fixture_teardown(state);
}

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    int ends[2];
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(link_open(&bench->link, &bench->loop, ends[0], bench, on_event, on_closed), 0);
    bench->fd = ends[1];
    struct tls *tls = tls_accept(for_clients, false);
    assert_non_null(tls);
    link_secure(&bench->link, tls);
    bench->peer = tls_connect(for_servers, "db1", false);
    assert_non_null(bench->peer);
    *state = bench;
    return 0;
}

static void close_peer(struct bench *bench)
{
    close(bench->fd);
    bench->fd = -1;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;
    link_close(&bench->link);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(bench->closes, 1);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    if (bench->fd >= 0)
        close(bench->fd);
    tls_free(bench->peer);
    buf_fini(&bench->got);
    free(bench);
    return 0;
}

/* ---- the peer ---- */

static void put_raw(struct bench *bench, const void *bytes, size_t len)
{
    assert_int_equal(send(bench->fd, bytes, len, MSG_NOSIGNAL), len);
}

/* What its TLS has to say. */
static void put_output(struct bench *bench)
{
    struct buf *output = tls_output(bench->peer);
    if (output->len > 0)
        put_raw(bench, output->ptr, output->len);
    buf_fini(output);
}

static void say(struct bench *bench, const char *text, struct buf *cipher)
{
    struct iovec piece = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
    assert_true(tls_write(bench->peer, &piece, 1, cipher));
}

/* Reads what has come, decrypted to bench->got. The number of bytes of ciphertext. */
static size_t hear(struct bench *bench)
{
    static uint8_t cipher[16384], plain[16384 + TLS_RECORD_MAX];
    size_t total = 0;
    ssize_t len;
    while ((len = recv(bench->fd, cipher, sizeof cipher, 0)) > 0) {
        total += (size_t)len;
        buf_put(&bench->got, plain, tls_read(bench->peer, span_of(cipher, (size_t)len), plain, sizeof plain));
    }
    return total;
}

static ssize_t receive(struct bench *bench, uint8_t *buffer)
{
    return link_recv(&bench->link, buffer, BUFFER_BYTES);
}

static void shake(struct bench *bench)
{
    uint8_t buffer[BUFFER_BYTES];
    for (int i = 0; i < 10 && (!link_is_secure(&bench->link) || tls_state(bench->peer) != TLS_OPEN); i++) {
        put_output(bench);
        assert_int_equal(receive(bench, buffer), 0);
        hear(bench);
    }
    assert_true(link_is_secure(&bench->link));
    assert_int_equal(tls_state(bench->peer), TLS_OPEN);
}

static void send_text(struct bench *bench, const char *text, int expected)
{
    struct sink sink = {0};
    sink_borrow(&sink, span_cstr(text));
    assert_int_equal(link_send(&bench->link, &sink), expected);
    sink_fini(&sink);
}

/* ---- the tests ---- */

static void records_may_be_cut_anywhere(void **state)
{
    struct bench *bench = *state;
    uint8_t buffer[BUFFER_BYTES];
    struct buf cipher = {0}, plain = {0};
    size_t len = 1;
    shake(bench);
    for (size_t step = 1; step <= len; step++) {
        buf_clear(&cipher);
        buf_clear(&plain);
        say(bench, "one ", &cipher); /* each time anew: records are counted */
        say(bench, "two ", &cipher);
        say(bench, "three", &cipher);
        len = cipher.len;
        for (size_t at = 0; at < cipher.len; at += step) {
            put_raw(bench, cipher.ptr + at, cipher.len - at < step ? cipher.len - at : step);
            ssize_t got = receive(bench, buffer);
            assert_true(got >= 0);
            buf_put(&plain, buffer, (size_t)got);
        }
        assert_true(span_equal_cstr(buf_span(&plain), "one two three"));
    }
    assert_null(bench->link.unsent.ptr); /* an idle link owns no buffer */
    assert_null(tls_output(bench->link.tls)->ptr);
    buf_fini(&cipher);
    buf_fini(&plain);
}

static uint8_t stream_byte(size_t at)
{
    return (uint8_t)(at * 31 + at / 251);
}

static void refused_bytes_keep_their_order(void **state)
{
    struct bench *bench = *state;
    uint8_t *stream = malloc(BULK_BYTES);
    struct sink sink = {0};
    size_t half = BULK_BYTES / 2;
    shake(bench);
    for (size_t i = 0; i < BULK_BYTES; i++)
        stream[i] = stream_byte(i);
    sink_borrow(&sink, span_of(stream, 100));
    sink_copy(&sink, span_of(stream + 100, 50));
    sink_borrow(&sink, span_of(stream + 150, half - 150));
    assert_int_equal(link_send(&bench->link, &sink), 0);
    assert_true(link_unsent(&bench->link) > 0);
    sink_clear(&sink);
    sink_borrow(&sink, span_of(stream + half, BULK_BYTES - half)); /* must not overtake */
    assert_int_equal(link_send(&bench->link, &sink), 0);
    assert_true(link_unsent(&bench->link) >= BULK_BYTES - half);
    while (link_unsent(&bench->link) > 0) {
        assert_true(hear(bench) > 0);
        assert_int_equal(link_flush(&bench->link), 0);
    }
    hear(bench);
    assert_int_equal(bench->got.len, BULK_BYTES);
    assert_memory_equal(bench->got.ptr, stream, BULK_BYTES);
    assert_null(bench->link.unsent.ptr);
    sink_fini(&sink);
    free(stream);
}

static void the_end_may_come_with_the_last_bytes(void **state)
{
    struct bench *bench = *state;
    uint8_t buffer[BUFFER_BYTES];
    struct buf cipher = {0};
    shake(bench);
    say(bench, "bye", &cipher);
    tls_finish(bench->peer);
    buf_put_span(&cipher, buf_span(tls_output(bench->peer)));
    buf_fini(tls_output(bench->peer));
    put_raw(bench, cipher.ptr, cipher.len);
    assert_int_equal(receive(bench, buffer), 3);
    assert_memory_equal(buffer, "bye", 3);
    assert_true(bench->link.at_end);
    send_text(bench, "an answer that is owed", 0);
    hear(bench);
    assert_true(span_equal_cstr(buf_span(&bench->got), "an answer that is owed"));
    buf_fini(&cipher);
}

static void an_end_without_a_word_is_an_end(void **state)
{
    struct bench *bench = *state;
    uint8_t buffer[BUFFER_BYTES];
    shake(bench);
    close_peer(bench);
    assert_int_equal(receive(bench, buffer), 0);
    assert_true(bench->link.at_end);
}

static void an_end_in_the_handshake_is_an_end(void **state)
{
    struct bench *bench = *state;
    uint8_t buffer[BUFFER_BYTES];
    put_raw(bench, tls_output(bench->peer)->ptr, 20);
    close_peer(bench);
    assert_int_equal(receive(bench, buffer), 0);
    assert_false(bench->link.at_end);
    assert_int_equal(receive(bench, buffer), 0);
    assert_true(bench->link.at_end);
    assert_false(link_is_secure(&bench->link));
}

static void finishing_says_so_under_tls(void **state)
{
    struct bench *bench = *state;
    char byte;
    shake(bench);
    link_finish(&bench->link);
    link_finish(&bench->link);
    hear(bench);
    assert_int_equal(tls_state(bench->peer), TLS_ENDED);
    assert_int_equal(recv(bench->fd, &byte, 1, 0), 0);
    send_text(bench, "too late", -EPIPE);
}

/* A stream that is stuffed: the end waits for its turn. */
static void finishing_waits_for_room(void **state)
{
    struct bench *bench = *state;
    static uint8_t zeros[BULK_BYTES];
    struct sink sink = {0};
    shake(bench);
    sink_borrow(&sink, span_of(zeros, sizeof zeros));
    assert_int_equal(link_send(&bench->link, &sink), 0);
    link_finish(&bench->link);
    assert_false(bench->link.is_finished);
    while (link_unsent(&bench->link) > 0) {
        hear(bench);
        assert_int_equal(link_flush(&bench->link), 0);
    }
    link_finish(&bench->link);
    hear(bench);
    assert_int_equal(bench->got.len, BULK_BYTES);
    assert_int_equal(tls_state(bench->peer), TLS_ENDED);
    sink_fini(&sink);
}

static void closing_says_so_under_tls(void **state)
{
    struct bench *bench = *state;
    shake(bench);
    link_close(&bench->link);
    hear(bench);
    assert_int_equal(tls_state(bench->peer), TLS_ENDED);
}

static void a_spoilt_record_is_an_error(void **state)
{
    struct bench *bench = *state;
    uint8_t buffer[BUFFER_BYTES];
    struct buf cipher = {0};
    shake(bench);
    say(bench, "text", &cipher);
    cipher.ptr[cipher.len - 1] ^= 1;
    put_raw(bench, cipher.ptr, cipher.len);
    assert_int_equal(receive(bench, buffer), -EPROTO);
    assert_string_not_equal(link_why(&bench->link, EPROTO), strerror(EPROTO));
    hear(bench);
    assert_int_equal(tls_state(bench->peer), TLS_FAILED); /* it was told by an alert */
    put_raw(bench, "more", 4);
    assert_int_equal(receive(bench, buffer), 0); /* thrown away */
    send_text(bench, "nobody can be answered any more", 0);
    assert_int_equal(hear(bench), 0);
    buf_fini(&cipher);
}

static void clear_text_is_an_error(void **state)
{
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {
        {"GET / HTTP/1.1\r\n\r\n", "http request"},
        {"\0\0\0\x20\0\3\0\0user\0postgres\0", "not TLS"},
    };
    struct bench *bench = *state;
    uint8_t buffer[BUFFER_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tls *tls = tls_accept(for_clients, false);
        tls_free(bench->link.tls);
        bench->link.tls = tls;
        put_raw(bench, cases[i].text, 18);
        assert_int_equal(receive(bench, buffer), -EPROTO);
        if (!strstr(link_why(&bench->link, EPROTO), cases[i].why))
            fail_msg("%s", link_why(&bench->link, EPROTO));
    }
}

/* Nothing of ours is in clear text, and nothing stands in front of the handshake. */
static void nothing_is_said_before_the_handshake(void **state)
{
    struct bench *bench = *state;
    send_text(bench, "an error in clear text", 0);
    assert_int_equal(link_unsent(&bench->link), 0);
    assert_int_equal(hear(bench), 0);
    shake(bench);
    send_text(bench, "said", 0);
    hear(bench);
    assert_true(span_equal_cstr(buf_span(&bench->got), "said"));
}

static void memory_that_is_missing_is_an_error(void **state)
{
    struct bench *bench = *state;
    static uint8_t zeros[100000];
    struct sink sink = {0};
    shake(bench);
    sink_borrow(&sink, span_of(zeros, sizeof zeros));
    mem_fail_after(0);
    assert_int_equal(link_send(&bench->link, &sink), -ENOMEM);
    mem_fail_after(-1);
    sink_fini(&sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(records_may_be_cut_anywhere),
        TEST(refused_bytes_keep_their_order),
        TEST(the_end_may_come_with_the_last_bytes),
        TEST(an_end_without_a_word_is_an_end),
        TEST(an_end_in_the_handshake_is_an_end),
        TEST(finishing_says_so_under_tls),
        TEST(finishing_waits_for_room),
        TEST(closing_says_so_under_tls),
        TEST(a_spoilt_record_is_an_error),
        TEST(clear_text_is_an_error),
        TEST(nothing_is_said_before_the_handshake),
        TEST(memory_that_is_missing_is_an_error),
#undef TEST
    };
    return cmocka_run_group_tests_name("link under TLS", tests, set_up_all, tear_down_all);
}
