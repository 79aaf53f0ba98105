/* test_tls.c - two ends of TLS that talk to each other, cut everywhere, and what each failure says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tls_fixture.h"

static struct tls_context *plain_server;
static struct tls_context *plain_client;

static int setup(void **state)
{
    tls_fixture_setup(state);
    plain_server = tls_fixture_clients(tls_fixture_plain, NULL);
    plain_client = tls_fixture_server(tls_fixture_plain, "*", NULL);
    return 0;
}

static int teardown(void **state)
{
    tls_context_free(plain_server);
    tls_context_free(plain_client);
    return tls_fixture_teardown(state);
}

static void assert_got(struct buf *got, const char *expected)
{
    assert_true(span_equal_cstr(buf_span(got), expected));
    buf_clear(got);
}

/* ---- talking ---- */

static void talks_at_every_step(void **state)
{
    static const size_t steps[] = {1, 2, 3, 5, 7, 64, 100, 1000, SIZE_MAX};
    static const char *versions[] = {"tlsv1.2", "tlsv1.3"};
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps * 2; i++) {
        struct tls_talk talk;
        char setting[64];
        snprintf(setting, sizeof setting, "client_tls_protocols = %s", versions[i % 2]);
        struct tls_context *server = tls_fixture_server_role("server", setting);
        tls_talk_begin(&talk, server, plain_client, "db1", i % 4 < 2);
        tls_context_free(server);
        tls_talk_run(&talk, steps[i / 2]);
        tls_talk_say(&talk, true, "question");
        tls_talk_run(&talk, steps[i / 2]);
        assert_got(&talk.server_got, "question");
        tls_talk_say(&talk, false, "answer");
        tls_talk_run(&talk, steps[i / 2]);
        assert_got(&talk.client_got, "answer");
        tls_talk_end(&talk);
    }
}

/* Whatever arrives in one piece is consumed in one call, the first plaintext with the handshake's end included. */
static void the_handshakes_end_may_bring_plaintext(void **state)
{
    struct tls_talk talk;
    (void)state;
    tls_talk_begin(&talk, plain_server, plain_client, "db1", false);
    tls_talk_deliver(&talk, SIZE_MAX); /* ClientHello */
    tls_talk_deliver(&talk, SIZE_MAX); /* the server's flight */
    assert_int_equal(tls_state(talk.client), TLS_OPEN);
    assert_int_equal(tls_state(talk.server), TLS_HANDSHAKE);
    tls_talk_say(&talk, true, "at once");
    tls_talk_deliver(&talk, SIZE_MAX);
    assert_int_equal(tls_state(talk.server), TLS_OPEN);
    assert_got(&talk.server_got, "at once");
    tls_talk_end(&talk);
}

/* Records that a stream of bytes holds, and whether each but the last is full. */
static size_t count_records(struct span cipher)
{
    size_t count = 0;
    for (; cipher.len > 0; count++) {
        assert_true(cipher.len >= 5);
        size_t len = 5 + get_u16(cipher.ptr + 3);
        assert_true(len <= cipher.len);
        cipher = span_of(cipher.ptr + len, cipher.len - len);
    }
    return count;
}

static void pieces_share_records(void **state)
{
    static const struct {
        size_t pieces[6]; /* ended by 0 */
        size_t records;
    } cases[] = {
        {{1}, 1},        {{1, 1, 1, 1, 1}, 1}, {{5, 16379}, 1},    {{16384}, 1},        {{16385}, 2},
        {{5, 16384}, 2}, {{16384, 16384}, 2},  {{16383, 1, 1}, 2}, {{5, 100000, 7}, 7}, {{65536, 1}, 5},
        {{1000000}, 62},
    };
    (void)state;
    uint8_t *bytes = mem_alloc(1100000);
    for (size_t i = 0; i < 1100000; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tls_talk talk;
        struct iovec pieces[6];
        size_t count = 0;
        size_t len = 0;
        for (; cases[i].pieces[count]; count++) {
            pieces[count] = (struct iovec){.iov_base = bytes + len, .iov_len = cases[i].pieces[count]};
            len += cases[i].pieces[count];
        }
        tls_talk_begin(&talk, plain_server, plain_client, "db1", false);
        tls_talk_run(&talk, SIZE_MAX);
        assert_true(tls_write(talk.server, pieces, count, &talk.to_client));
        assert_int_equal(count_records(buf_span(&talk.to_client)), cases[i].records);
        tls_talk_run(&talk, i % 2 ? 4099 : SIZE_MAX);
        assert_true(span_equal(buf_span(&talk.client_got), span_of(bytes, len)));
        tls_talk_end(&talk);
    }
    mem_free(bytes);
}

static void nothing_is_written_for_nothing(void **state)
{
    struct tls_talk talk;
    struct iovec empty = {.iov_base = NULL, .iov_len = 0};
    (void)state;
    tls_talk_begin(&talk, plain_server, plain_client, "db1", false);
    assert_false(tls_write(talk.server, &empty, 1, &talk.to_client)); /* too early */
    tls_talk_run(&talk, SIZE_MAX);
    assert_true(tls_write(talk.server, &empty, 1, &talk.to_client));
    assert_true(tls_write(talk.server, NULL, 0, &talk.to_client));
    assert_int_equal(talk.to_client.len, 0);
    assert_int_equal(tls_output(talk.server)->len, 0);
    assert_null(tls_output(talk.server)->ptr);
    tls_talk_end(&talk);
}

/* ---- endings ---- */

static void goodbyes_are_said_once(void **state)
{
    struct tls_talk talk;
    struct iovec late = {.iov_base = NULL, .iov_len = 0};
    (void)state;
    tls_talk_begin(&talk, plain_server, plain_client, "db1", false);
    tls_talk_run(&talk, SIZE_MAX);
    tls_talk_say(&talk, true, "last");
    tls_finish(talk.client);
    size_t len = tls_output(talk.client)->len;
    assert_true(len > 0);
    tls_finish(talk.client);
    assert_int_equal(tls_output(talk.client)->len, len);
    assert_false(tls_write(talk.client, &late, 1, &talk.to_server));
    tls_talk_run(&talk, SIZE_MAX);
    assert_got(&talk.server_got, "last");
    assert_int_equal(tls_state(talk.server), TLS_ENDED);
    tls_talk_say(&talk, false, "answer"); /* who has ended is still owed it */
    tls_talk_run(&talk, SIZE_MAX);
    assert_got(&talk.client_got, "answer");
    tls_finish(talk.server);
    tls_talk_run(&talk, SIZE_MAX);
    assert_int_equal(tls_state(talk.client), TLS_ENDED);
    tls_talk_end(&talk);
}

static void nothing_counts_behind_the_end(void **state)
{
    struct tls_talk talk;
    (void)state;
    tls_talk_begin(&talk, plain_server, plain_client, "db1", false);
    tls_talk_run(&talk, SIZE_MAX);
    tls_finish(talk.client);
    buf_put_span(&talk.to_server, buf_span(tls_output(talk.client)));
    buf_fini(tls_output(talk.client));
    buf_put_text(&talk.to_server, "and some clear text");
    tls_talk_run(&talk, SIZE_MAX);
    assert_int_equal(tls_state(talk.server), TLS_ENDED);
    assert_int_equal(talk.server_got.len, 0);
    tls_talk_end(&talk);
}

/* ---- failures ---- */

static void strangers_are_understood(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *why;
    } cases[] = {
        {"GET / HTTP/1.1\r\n\r\n", 18, "http request"},
        {"PUT / HTTP/1.1\r\n\r\n", 18, "http request"},
        {"CONNECT x:1 HTTP/1.1\r\n\r\n", 24, "http proxy request"},
        {"\0\0\0\x08\x04\xd2\x16\x2f\0\0\0", 11, "wrong version number: what came is not TLS"},
        {"Q\0\0\0\x0dSELECT 1;", 14, "wrong version number: what came is not TLS"},
        {"\x16\x03\x01\xff\xff", 5, "packet length too long"},
        {"\x16\x03\x01\0\4\1\0\0\0", 9, "length too short"},
        {"\x16\x03\x01\0\4\2\0\0\0", 9, "unexpected message"},
        {"\x15\x03\x01\0\2\2\x30", 7, "unexpected message"},
        {"\x15\x03\x01\0\2\1\0", 7, "unexpected message"},
        {"\x17\x03\x03\0\1\0", 6, "unexpected message"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t step = 1; step <= cases[i].len; step += cases[i].len - 1) {
            struct tls_talk talk;
            tls_talk_begin(&talk, plain_server, plain_client, "db1", false);
            buf_fini(tls_output(talk.client));
            buf_put(&talk.to_server, cases[i].text, cases[i].len);
            while (talk.to_server.len > 0)
                tls_talk_deliver(&talk, step);
            assert_int_equal(tls_state(talk.server), TLS_FAILED);
            assert_string_equal(tls_why(talk.server), cases[i].why);
            assert_int_equal(talk.server_got.len, 0);
            tls_talk_end(&talk);
        }
}

/* A byte of a record is changed on the way, each one in turn: nothing of the record is believed. */
static void no_altered_byte_is_believed(void **state)
{
    static const char text[] = "an important question";
    (void)state;
    for (size_t at = 0; at < 5 + sizeof text - 1 + 17; at++) {
        struct tls_talk talk;
        tls_talk_begin(&talk, plain_server, plain_client, "db1", false);
        tls_talk_run(&talk, SIZE_MAX);
        tls_talk_say(&talk, true, text);
        assert_int_equal(talk.to_server.len, 5 + sizeof text - 1 + 17);
        talk.to_server.ptr[at] ^= 0x40;
        memset(buf_room(&talk.to_server, TLS_RECORD_MAX), 'x', TLS_RECORD_MAX); /* whatever length it claims now */
        tls_talk_run(&talk, SIZE_MAX);
        assert_int_equal(talk.server_got.len, 0);
        assert_int_equal(tls_state(talk.server), TLS_FAILED);
        assert_string_not_equal(tls_why(talk.server), "");
        /* the same for ever: nothing that comes later brings it back to life */
        buf_put_text(&talk.to_server, "more");
        tls_talk_run(&talk, SIZE_MAX);
        assert_int_equal(talk.server_got.len, 0);
        tls_talk_end(&talk);
    }
}

/* What was whole and good before counts, however the bytes were cut. */
static void good_records_before_a_bad_one_count(void **state)
{
    (void)state;
    for (size_t step = 1; step <= 100; step += 99) {
        struct tls_talk talk;
        tls_talk_begin(&talk, plain_server, plain_client, "db1", false);
        tls_talk_run(&talk, SIZE_MAX);
        tls_talk_say(&talk, true, "good");
        buf_put_text(&talk.to_server, "\x17\x03\x03");
        buf_put_u16(&talk.to_server, 20);
        buf_put_text(&talk.to_server, "nobody made this one");
        tls_talk_run(&talk, step);
        assert_got(&talk.server_got, "good");
        assert_int_equal(tls_state(talk.server), TLS_FAILED);
        assert_string_equal(tls_why(talk.server), "decryption failed or bad record mac");
        tls_talk_end(&talk);
    }
}

/* Each allocation of ours fails in turn; what OpenSSL allocates is its own. */
static void memory_may_run_out(void **state)
{
    bool ok = false;
    (void)state;
    for (long n = 0; !ok; n++) {
        struct buf cipher = {0};
        struct iovec piece = {.iov_base = (char[]){"x"}, .iov_len = 1};
        uint8_t plain[8192 + TLS_RECORD_MAX];
        mem_fail_after(n);
        struct tls *client = tls_connect(plain_client, "db1", false);
        struct tls *server = client ? tls_accept(plain_server, false) : NULL;
        for (int i = 0; server && i < 4; i++) {
            struct tls *from = i % 2 ? server : client;
            struct tls *to = i % 2 ? client : server;
            size_t got = tls_read(to, buf_span(tls_output(from)), plain, sizeof plain);
            assert_int_equal(got, 0);
            buf_fini(tls_output(from));
        }
        ok = server && tls_write(client, &piece, 1, &cipher);
        mem_fail_after(-1);
        if (client && tls_state(client) == TLS_FAILED)
            assert_true(strcmp(tls_why(client), "out of memory") == 0 || tls_state(server) == TLS_FAILED);
        tls_free(client);
        tls_free(server);
        buf_fini(&cipher);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(talks_at_every_step),
        cmocka_unit_test(the_handshakes_end_may_bring_plaintext),
        cmocka_unit_test(pieces_share_records),
        cmocka_unit_test(nothing_is_written_for_nothing),
        cmocka_unit_test(goodbyes_are_said_once),
        cmocka_unit_test(nothing_counts_behind_the_end),
        cmocka_unit_test(strangers_are_understood),
        cmocka_unit_test(no_altered_byte_is_believed),
        cmocka_unit_test(good_records_before_a_bad_one_count),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
