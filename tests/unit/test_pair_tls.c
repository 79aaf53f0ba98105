/* test_pair_tls.c - the driver with TLS on its links: how it begins, fails and ends, and what is never said in clear
 * text. */
#include "pair_bench.h"

/* ---- a peer under TLS ---- */

struct peer {
    struct bench *bench;
    int fd;
    struct tls *tls;
};

static void peer_send(struct peer *peer, const void *bytes, size_t len)
{
    if (len > 0)
        assert_int_equal(send(peer->fd, bytes, len, MSG_NOSIGNAL), len);
}

/* Turns the loop; what has come from the proxy is decrypted and appended to `got`. */
static void peer_turn(struct peer *peer, struct buf *got)
{
    static uint8_t cipher[16384], plain[16384 + TLS_RECORD_MAX];
    struct buf *output = tls_output(peer->tls);
    peer_send(peer, output->ptr, output->len);
    buf_fini(output);
    turn(peer->bench);
    ssize_t len = recv(peer->fd, cipher, sizeof cipher, 0);
    if (len > 0)
        buf_put(got, plain, tls_read(peer->tls, span_of(cipher, (size_t)len), plain, sizeof plain));
}

static void peer_until(struct peer *peer, enum tls_state state)
{
    struct buf got = {0};
    for (int i = 0; i < TURNS && tls_state(peer->tls) != state; i++)
        peer_turn(peer, &got);
    peer_turn(peer, &got); /* the last flight */
    assert_int_equal(tls_state(peer->tls), state);
    assert_int_equal(got.len, 0);
}

static void peer_says(struct peer *peer, const char *text)
{
    struct buf cipher = {0};
    struct iovec piece = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
    assert_true(tls_write(peer->tls, &piece, 1, &cipher));
    peer_send(peer, cipher.ptr, cipher.len);
    buf_fini(&cipher);
}

static void peer_hears(struct peer *peer, const char *text)
{
    struct buf got = {0};
    for (int i = 0; i < TURNS && got.len < strlen(text); i++)
        peer_turn(peer, &got);
    if (!span_equal_cstr(buf_span(&got), text))
        fail_msg("%s, not %.*s; TLS: %s, session: %s", text, (int)got.len, got.ptr ? (const char *)got.ptr : "",
                 tls_why(peer->tls), last->why);
    buf_fini(&got);
}

/* A client that has asked for TLS, and been answered. */
static struct peer secure_client(struct bench *bench, bool is_direct)
{
    struct peer peer = {.bench = bench, .fd = arrive(bench), .tls = tls_connect(server_tls, "db1", is_direct)};
    assert_non_null(peer.tls);
    bench->client = peer.fd;
    if (!is_direct) {
        say(peer.fd, "ssl");
        expect_text(bench, peer.fd, "S");
    }
    return peer;
}

/* ---- the tests ---- */

static void tls_begins_behind_its_answer(void **state)
{
    struct bench *bench = *state;
    for (int is_direct = 0; is_direct < 2; is_direct++) {
        struct peer peer = secure_client(bench, is_direct);
        struct session *session = last;
        peer_until(&peer, TLS_OPEN);
        assert_true(session->is_tls[SIDE_FRONTEND]);
        assert_int_equal(session->fed[SIDE_FRONTEND], is_direct ? 0 : 3); /* no ciphertext */
        peer_says(&peer, "go");
        accept_server(bench);
        expect_text(bench, bench->server, "hello");
        say(bench->server, "answer");
        peer_hears(&peer, "answer");
        session->is_idle = true;
        tls_finish(peer.tls); /* says goodbye, and stays */
        peer_turn(&peer, &(struct buf){0});
        expect_end(bench, bench->server);
        peer_until(&peer, TLS_ENDED);
        close_client(bench);
        close_server(bench);
        expect_gone(bench);
        tls_free(peer.tls);
    }
}

static void direct_tls_may_be_refused(void **state)
{
    struct bench *bench = *state;
    bench->client = arrive(bench);
    last->refuses_tls = true;
    say(bench->client, "\x16\x03\x01");
    expect_end(bench, bench->client);
    assert_int_equal(last->fed[SIDE_FRONTEND], 0);
    close_client(bench);
    expect_gone(bench);
}

/* Only the first byte of a connection can begin it. */
static void tls_in_the_middle_is_no_tls(void **state)
{
    struct bench *bench = *state;
    struct session *session = connect_both(bench);
    say(bench->client, "\x16\x03\x01");
    expect_text(bench, bench->server, "\x16\x03\x01");
    assert_int_equal(session->next, SESSION_GO);
}

static void a_failed_handshake_is_told_and_logged(void **state)
{
    struct bench *bench = *state;
    struct peer peer = secure_client(bench, false);
    char alert[16];
    struct session *session = last;
    peer_send(&peer, "\x16\x03\x01\0\4\1\0\0\0", 9); /* a ClientHello with nothing in it */
    ssize_t got = -1;
    for (int i = 0; i < TURNS && got < 0; i++) {
        turn(bench);
        got = recv(peer.fd, alert, sizeof alert, 0);
    }
    assert_int_equal(got, 7); /* a TLS alert, in clear text, and nothing else */
    assert_int_equal(alert[0], 21);
    assert_int_equal(session->lost[SIDE_FRONTEND], 1);
    assert_string_not_equal(session->why, "");
    expect_end(bench, peer.fd);
    close_client(bench);
    expect_gone(bench);
    tls_free(peer.tls);
}

static void a_client_may_leave_in_the_handshake(void **state)
{
    struct bench *bench = *state;
    struct peer peer = secure_client(bench, false);
    peer_send(&peer, tls_output(peer.tls)->ptr, 30);
    turn(bench);
    close_client(bench);
    expect_gone(bench);
    tls_free(peer.tls);
}

static void a_shutdown_in_the_handshake_says_nothing_in_clear_text(void **state)
{
    struct bench *bench = *state;
    struct peer peer = secure_client(bench, false);
    pair_end_all(&bench->env);
    expect_end(bench, peer.fd);
    close_client(bench);
    expect_gone(bench);
    tls_free(peer.tls);
}

static void a_server_may_be_asked_twice(void **state)
{
    struct bench *bench = *state;
    bench->client = arrive(bench);
    struct session *session = last;
    session->stays_down = true;
    say(bench->client, "go");
    accept_server(bench);
    expect_text(bench, bench->server, "hello");
    say(bench->server, "refused");
    int first = bench->server;
    bench->server = -1;
    accept_server(bench);
    expect_text(bench, bench->server, "hello");
    assert_int_equal(session->connected, 2);
    expect_end(bench, first);
    close(first);
    say(bench->server, "answer");
    expect_text(bench, bench->client, "answer");
}

/* A whole conversation with a server that speaks TLS, and a client that does. */
static void both_links_may_be_encrypted(void **state)
{
    struct bench *bench = *state;
    struct peer client = secure_client(bench, true);
    char request[8];
    bench->conf.server_tls.sslmode = CONF_SSL_REQUIRE;
    peer_until(&client, TLS_OPEN);
    peer_says(&client, "go");
    accept_server(bench);
    for (size_t got = 0; got < sizeof request;) {
        turn(bench);
        ssize_t more = recv(bench->server, request + got, sizeof request - got, 0);
        got += more > 0 ? (size_t)more : 0;
    }
    say(bench->server, "S");
    struct peer server = {.bench = bench, .fd = bench->server, .tls = tls_accept(client_tls, false)};
    peer_hears(&server, "hello");
    assert_true(last->is_tls[SIDE_BACKEND]);
    peer_says(&client, "question");
    peer_hears(&server, "question");
    peer_says(&server, "answer");
    peer_hears(&client, "answer");
    tls_finish(server.tls);
    peer_turn(&server, &(struct buf){0});
    peer_hears(&client, "lost");
    peer_until(&client, TLS_ENDED);
    close_client(bench);
    expect_gone(bench);
    tls_free(client.tls);
    tls_free(server.tls);
}

static int set_up_all(void **state)
{
    tls_fixture_setup(state);
    client_tls = tls_fixture_clients(tls_fixture_plain, NULL);
    server_tls = tls_fixture_server("[pgseek]\nserver_tls_sslmode = require\n[databases]\n* = host=db1\n", "*", NULL);
    return 0;
}

static int tear_down_all(void **state)
{
    tls_context_free(client_tls);
    tls_context_free(server_tls);
    return tls_fixture_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(tls_begins_behind_its_answer),        TEST(direct_tls_may_be_refused),
        TEST(tls_in_the_middle_is_no_tls),         TEST(a_failed_handshake_is_told_and_logged),
        TEST(a_client_may_leave_in_the_handshake), TEST(a_shutdown_in_the_handshake_says_nothing_in_clear_text),
        TEST(a_server_may_be_asked_twice),         TEST(both_links_may_be_encrypted),
#undef TEST
    };
    return cmocka_run_group_tests_name("pair under TLS", tests, set_up_all, tear_down_all);
}
