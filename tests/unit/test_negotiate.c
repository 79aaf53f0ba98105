/* test_negotiate.c - a server that answers SSLRequest in every way there is, and what is made of it: by the negotiation
 * alone, cut at every byte, and by the way to a server with its modes and second tries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../proxy/admin/log.h"
#include "../../proxy/io/negotiate.h"
#include "../../proxy/io/upstream.h"
#include "../../proxy/session/session.h"
#include "tls_fixture.h"

static struct tls_context *for_clients; /* the server's role */
static struct tls_context *for_servers; /* ours */

static const char server_settings[] = "[pgseek]\nserver_tls_sslmode = require\nserver_tls_ca_file = %/ca.crt\n"
                                      "[databases]\n* = host=db1\n";

static int set_up_all(void **state)
{
    log_threshold = (enum log_level)(LOG_FATAL + 1);
    tls_fixture_setup(state);
    for_clients = tls_fixture_clients(tls_fixture_plain, NULL);
    for_servers = tls_fixture_server(server_settings, "*", NULL);
    return 0;
}

static int tear_down_all(void **state)
{
    tls_context_free(for_clients);
    tls_context_free(for_servers);
    return tls_fixture_teardown(state);
}

static const uint8_t ssl_request[] = {0, 0, 0, 8, 4, 210, 22, 47};

/* ---- the negotiation alone ---- */

struct wire {
    struct negotiation negotiation;
    struct tls *server;
    int ours, theirs;
};

static void open_wire(struct wire *wire, bool is_direct)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    *wire = (struct wire){.ours = ends[0], .theirs = ends[1], .server = tls_accept(for_clients, is_direct)};
    assert_non_null(wire->server);
    negotiate_start(&wire->negotiation, wire->ours, for_servers, "db1", is_direct);
}

static void close_wire(struct wire *wire)
{
    negotiate_end(&wire->negotiation);
    tls_free(wire->server);
    close(wire->ours);
    if (wire->theirs >= 0)
        close(wire->theirs);
}

static void expect_request(const struct wire *wire)
{
    uint8_t got[sizeof ssl_request + 1];
    assert_int_equal(recv(wire->theirs, got, sizeof got, 0), sizeof ssl_request);
    assert_memory_equal(got, ssl_request, sizeof ssl_request);
}

/* Lets the server read all that came, and sends what it says to that, `step` bytes at a time. */
static enum negotiate_result serve(struct wire *wire, size_t step)
{
    uint8_t cipher[8192], plain[8192 + TLS_RECORD_MAX];
    enum negotiate_result result = NEGOTIATE_READ;
    ssize_t got = recv(wire->theirs, cipher, sizeof cipher, 0);
    if (got > 0)
        assert_int_equal(tls_read(wire->server, span_of(cipher, (size_t)got), plain, sizeof plain), 0);
    struct buf *output = tls_output(wire->server);
    for (size_t at = 0; at < output->len && result == NEGOTIATE_READ; at += step) {
        size_t len = output->len - at < step ? output->len - at : step;
        assert_int_equal(send(wire->theirs, output->ptr + at, len, 0), len);
        result = negotiate_step(&wire->negotiation);
    }
    buf_fini(output);
    return result;
}

static void a_handshake_may_be_cut_anywhere(void **state)
{
    static const size_t steps[] = {1, 2, 3, 7, 100, 100000};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof steps / sizeof *steps; i++) {
        bool is_direct = i % 2;
        struct wire wire;
        open_wire(&wire, is_direct);
        enum negotiate_result result = negotiate_step(&wire.negotiation);
        assert_int_equal(result, NEGOTIATE_READ);
        if (!is_direct) {
            expect_request(&wire);
            assert_int_equal(send(wire.theirs, "S", 1, 0), 1);
            assert_int_equal(negotiate_step(&wire.negotiation), NEGOTIATE_READ);
        }
        for (int turn = 0; turn < 4 && result == NEGOTIATE_READ; turn++)
            result = serve(&wire, steps[i / 2]);
        assert_int_equal(result, NEGOTIATE_SECURE);
        struct tls *tls = negotiate_take(&wire.negotiation);
        assert_int_equal(tls_state(tls), TLS_OPEN);
        serve(&wire, 100000); /* reads our last flight */
        assert_int_equal(tls_state(wire.server), TLS_OPEN);
        tls_free(tls);
        close_wire(&wire);
    }
}

/* What is behind the S is not read with it: it stays in the kernel, and is ciphertext or nothing. */
static void only_one_byte_is_read(void **state)
{
    struct wire wire;
    char left[64];
    (void)state;
    open_wire(&wire, false);
    assert_int_equal(negotiate_step(&wire.negotiation), NEGOTIATE_READ);
    assert_int_equal(send(wire.theirs, "NRinjected", 10, 0), 10);
    assert_int_equal(negotiate_step(&wire.negotiation), NEGOTIATE_DECLINED);
    assert_int_equal(recv(wire.ours, left, sizeof left, 0), 9);
    close_wire(&wire);
}

static void other_answers_fail(void **state)
{
    static const struct {
        const char *answer;
        const char *why;
    } cases[] = {
        {"SR\0\0\0\x08\0\0\0\0", "TLS: "},    /* injected in front of the handshake */
        {"S\x15\x03\x03\0\2\2\x28", "TLS: "}, /* an alert: handshake failure */
        {"E\0\0\0\x10SFATAL\0MHi!\0\0", "with an error"},
        {"R\0\0\0\x08\0\0\0\0", "neither S nor N"},
        {"s", "neither S nor N"},
        {"\x16\3\1\0\1\0", "neither S nor N"},
        {"", "closed the connection when it was asked"},
        {"S", "closed the connection in the TLS handshake"},
        {"S\x16\x03\x03", "closed the connection in the TLS handshake"},
    };
    static const size_t lens[] = {10, 8, 17, 9, 1, 6, 0, 1, 4};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        struct wire wire;
        const char *answer = cases[i / 2].answer;
        size_t len = lens[i / 2];
        enum negotiate_result result = NEGOTIATE_READ;
        open_wire(&wire, false);
        assert_int_equal(negotiate_step(&wire.negotiation), NEGOTIATE_READ);
        for (size_t at = 0; at < len && result == NEGOTIATE_READ; at += i % 2 ? 1 : len) {
            assert_int_equal(send(wire.theirs, answer + at, i % 2 ? 1 : len, 0), i % 2 ? 1 : len);
            result = negotiate_step(&wire.negotiation);
        }
        close(wire.theirs);
        wire.theirs = -1;
        if (result == NEGOTIATE_READ)
            result = negotiate_step(&wire.negotiation);
        assert_int_equal(result, NEGOTIATE_FAILED);
        if (!strstr(wire.negotiation.why, cases[i / 2].why))
            fail_msg("%zu: %s", i / 2, wire.negotiation.why);
        close_wire(&wire);
    }
}

static void memory_runs_out_anywhere(void **state)
{
    (void)state;
    for (long n = 0; n < 8; n++) {
        struct wire wire;
        enum negotiate_result result = NEGOTIATE_READ;
        open_wire(&wire, true);
        negotiate_end(&wire.negotiation);
        mem_fail_after(n);
        negotiate_start(&wire.negotiation, wire.ours, for_servers, "db1", true);
        result = negotiate_step(&wire.negotiation);
        for (int turn = 0; turn < 4 && result == NEGOTIATE_READ; turn++)
            result = serve(&wire, 100000);
        mem_fail_after(-1);
        assert_true(result == NEGOTIATE_SECURE || result == NEGOTIATE_FAILED || result == NEGOTIATE_READ);
        close_wire(&wire);
    }
}

/* ---- the way to a server ---- */

/* What a server in a thread of its own does with each connection, in order: a letter for each.
 *   t  answers S and makes TLS     n  answers N         e  answers with an ErrorResponse
 *   x  answers S and garbage       c  closes at once    d  makes TLS at once    p  answers nothing, takes clear text */
struct scripted {
    int listener;
    const char *script;
};

static void shake_hands(int fd, bool is_direct)
{
    uint8_t cipher[8192], plain[8192 + TLS_RECORD_MAX];
    struct tls *tls = tls_accept(for_clients, is_direct);
    while (tls && tls_state(tls) == TLS_HANDSHAKE) {
        ssize_t got = recv(fd, cipher, sizeof cipher, 0);
        if (got <= 0)
            break;
        size_t said = tls_read(tls, span_of(cipher, (size_t)got), plain, sizeof plain);
        struct buf *output = tls_output(tls);
        if (said > 0 || (output->len > 0 && send(fd, output->ptr, output->len, MSG_NOSIGNAL) < 0))
            break;
        buf_fini(output);
    }
    tls_free(tls);
}

static void say_raw(int fd, const char *bytes, size_t len)
{
    if (send(fd, bytes, len, MSG_NOSIGNAL) < 0)
        perror("scripted server");
}

static void serve_one(int fd, char how)
{
    switch (how) {
    case 't':
        say_raw(fd, "S", 1);
        shake_hands(fd, false);
        break;
    case 'd': shake_hands(fd, true); break;
    case 'n': say_raw(fd, "N", 1); break;
    case 'e': say_raw(fd, "E\0\0\0\5\0", 6); break;
    case 'x': say_raw(fd, "Sgarbage", 8); break;
    default: break;
    }
}

static void *serve_all(void *argument)
{
    struct scripted *scripted = argument;
    for (size_t i = 0; scripted->script[i]; i++) {
        int fd = accept(scripted->listener, NULL, NULL);
        char first = 0;
        ssize_t got = 1;
        if (scripted->script[i] != 'c')
            got = recv(fd, &first, 1, MSG_PEEK | (scripted->script[i] == 'p' ? MSG_DONTWAIT : 0));
        if (got == 1 && first == 0) {
            char request[8];
            got = recv(fd, request, sizeof request, MSG_WAITALL);
        }
        serve_one(fd, scripted->script[i]);
        char rest[256];
        while (scripted->script[i] != 'c' && recv(fd, rest, sizeof rest, 0) > 0)
            ;
        close(fd);
    }
    return NULL;
}

static int listen_somewhere(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

struct answer {
    int calls, fd, host;
    bool is_tls;
    char why[512];
};

static void on_done(void *owner, const struct upstream_result *result)
{
    struct answer *answer = owner;
    answer->calls++;
    answer->fd = result->fd;
    answer->host = result->host_index;
    answer->is_tls = result->tls != NULL;
    snprintf(answer->why, sizeof answer->why, "%s", result->why ? result->why : "");
    tls_free(result->tls);
    if (result->fd >= 0)
        close(result->fd);
}

static void on_tick(uv_timer_t *timer)
{
    if (((struct answer *)timer->data)->calls > 0)
        uv_close((uv_handle_t *)timer, NULL);
}

static struct answer run_upstream(const struct session_target *target)
{
    struct answer answer = {.fd = -1};
    struct upstream_setup setup = {.tls = for_servers};
    uv_loop_t loop;
    uv_timer_t timer = {.data = &answer};
    assert_int_equal(uv_loop_init(&loop), 0);
    uv_timer_init(&loop, &timer);
    uv_timer_start(&timer, on_tick, 1, 1);
    upstream_start(upstream_new(&loop, target, &setup, on_done, &answer));
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(answer.calls, 1);
    return answer;
}

#define AS_IS TARGET_AS_CONFIGURED

static void every_mode_meets_every_server(void **state)
{
    enum result { TLS, PLAIN, NONE };
    static const struct {
        const char *mode;
        const char *script; /* of the connections that are made */
        int tls;            /* of the target */
        enum result expected;
        const char *why;
    } cases[] = {
        {"disable", "p", AS_IS, PLAIN, ""},
        {"allow", "p", AS_IS, PLAIN, ""},
        {"allow", "t", TARGET_WITH_TLS, TLS, ""},
        {"allow", "n", TARGET_WITH_TLS, NONE, "does not offer TLS"},
        {"prefer", "t", AS_IS, TLS, ""},
        {"prefer", "n", AS_IS, PLAIN, ""},
        {"prefer", "ep", AS_IS, PLAIN, ""},
        {"prefer", "xp", AS_IS, PLAIN, ""},
        {"prefer", "cp", AS_IS, PLAIN, ""},
        {"prefer", "p", TARGET_WITHOUT_TLS, PLAIN, ""},
        {"prefer", "t", TARGET_WITH_TLS, TLS, ""},
        {"prefer", "n", TARGET_WITH_TLS, NONE, "does not offer TLS"},
        {"require", "t", AS_IS, TLS, ""},
        {"require", "n", AS_IS, NONE, "does not offer TLS, which sslmode demands"},
        {"require", "e", AS_IS, NONE, "with an error"},
        {"require", "x", AS_IS, NONE, "TLS: "},
        {"require", "c", AS_IS, NONE, "closed the connection"},
        {"require", "t", TARGET_WITHOUT_TLS, TLS, ""}, /* nobody talks us out of it */
        {"direct", "d", AS_IS, TLS, ""},
        {"direct", "x", AS_IS, NONE, "TLS: "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scripted scripted = {.script = cases[i].script};
        pthread_t thread;
        int port;
        bool is_direct = strcmp(cases[i].mode, "direct") == 0;
        scripted.listener = listen_somewhere(&port);
        struct conf *conf = conf_default("127.0.0.1", port);
        static const char *const modes[] = {"disable", "allow", "prefer", "require"};
        conf->server_tls.sslmode = CONF_SSL_REQUIRE;
        for (int mode = 0; mode < 4; mode++)
            if (strcmp(cases[i].mode, modes[mode]) == 0)
                conf->server_tls.sslmode = (enum conf_sslmode)mode;
        conf->server_tls_sslnegotiation = is_direct ? CONF_SSLNEGOTIATION_DIRECT : CONF_SSLNEGOTIATION_POSTGRES;
        assert_int_equal(pthread_create(&thread, NULL, serve_all, &scripted), 0);
        struct session_target target = {.conf = conf, .database = conf->databases, .host_index = -1};
        target.tls = (unsigned)cases[i].tls;
        struct answer answer = run_upstream(&target);
        pthread_join(thread, NULL);
        if ((answer.fd < 0 ? NONE : answer.is_tls ? TLS : PLAIN) != cases[i].expected)
            fail_msg("%zu: fd %d tls %d %s", i, answer.fd, answer.is_tls, answer.why);
        if (!strstr(answer.why, cases[i].why))
            fail_msg("%zu: %s", i, answer.why);
        close(scripted.listener);
        conf_unref(conf);
    }
}

/* A host that cannot be reached as it must be is one that cannot be reached. */
static void the_next_host_is_tried(void **state)
{
    static char loopback[] = "127.0.0.1";
    struct scripted scripted[2] = {{.script = "n"}, {.script = "t"}};
    pthread_t threads[2];
    struct conf_database database = {.nhosts = 2, .sslmode = CONF_SSL_REQUIRE};
    struct conf *conf = conf_default("127.0.0.1", 1);
    (void)state;
    for (int i = 0; i < 2; i++) {
        scripted[i].listener = listen_somewhere(&database.hosts[i].port);
        database.hosts[i].host = loopback;
        assert_int_equal(pthread_create(&threads[i], NULL, serve_all, &scripted[i]), 0);
    }
    struct answer answer =
        run_upstream(&(struct session_target){.conf = conf, .database = &database, .host_index = -1});
    assert_true(answer.fd >= 0 && answer.is_tls);
    assert_int_equal(answer.host, 1);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        close(scripted[i].listener);
    }
    conf_unref(conf);
}

/* A cancel request of a session with TLS, behind a reload that took TLS away: its key never goes in clear text. */
static void without_its_context_it_is_not_reached(void **state)
{
    int port;
    int listener = listen_somewhere(&port);
    struct conf *conf = conf_default("127.0.0.1", port);
    struct answer answer = {.fd = -1};
    uv_loop_t loop;
    (void)state;
    struct session_target target = {
        .conf = conf, .database = conf->databases, .host_index = 0, .is_cancel = true, .tls = TARGET_WITH_TLS};
    assert_int_equal(uv_loop_init(&loop), 0);
    upstream_start(upstream_new(&loop, &target, &(struct upstream_setup){.tls = NULL}, on_done, &answer));
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(answer.calls, 1);
    assert_int_equal(answer.fd, -1);
    assert_non_null(strstr(answer.why, "has no more"));
    close(listener);
    conf_unref(conf);
}

/* The server takes the connection and says nothing: the time of the address is up, TLS included. */
static void silence_is_bounded(void **state)
{
    struct answer answer = {.fd = -1};
    uv_loop_t loop;
    int port;
    int listener = listen_somewhere(&port);
    struct conf *conf = conf_default("127.0.0.1", port);
    (void)state;
    conf->server_tls.sslmode = CONF_SSL_REQUIRE;
    struct upstream_setup setup = {.tls = for_servers, .timeout_ms = 20};
    struct session_target target = {.conf = conf, .database = conf->databases, .host_index = -1};
    assert_int_equal(uv_loop_init(&loop), 0);
    struct upstream *upstream = upstream_new(&loop, &target, &setup, on_done, &answer);
    upstream_start(upstream);
    while (answer.calls == 0) {
        uv_run(&loop, UV_RUN_NOWAIT);
        if (answer.calls == 0)
            upstream_tick(upstream);
    }
    assert_non_null(strstr(answer.why, "timed out while beginning TLS"));
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    close(listener);
    conf_unref(conf);
}

static void cancelling_in_the_handshake_leaves_nothing(void **state)
{
    struct answer answer = {.fd = -1};
    uv_loop_t loop;
    int port;
    int listener = listen_somewhere(&port);
    struct conf *conf = conf_default("127.0.0.1", port);
    (void)state;
    conf->server_tls.sslmode = CONF_SSL_REQUIRE;
    struct upstream_setup setup = {.tls = for_servers};
    struct session_target target = {.conf = conf, .database = conf->databases, .host_index = -1};
    assert_int_equal(uv_loop_init(&loop), 0);
    struct upstream *upstream = upstream_new(&loop, &target, &setup, on_done, &answer);
    upstream_start(upstream);
    int fd = accept(listener, NULL, NULL);
    char request[8];
    for (size_t got = 0; got < sizeof request;) {
        uv_run(&loop, UV_RUN_NOWAIT);
        ssize_t more = recv(fd, request + got, sizeof request - got, MSG_DONTWAIT);
        got += more > 0 ? (size_t)more : 0;
    }
    say_raw(fd, "S", 1);
    for (ssize_t got = -1; got <= 0; got = recv(fd, request, 1, MSG_DONTWAIT))
        uv_run(&loop, UV_RUN_NOWAIT);
    upstream_cancel(upstream);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(answer.calls, 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    close(fd);
    close(listener);
    conf_unref(conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handshake_may_be_cut_anywhere),
        cmocka_unit_test(only_one_byte_is_read),
        cmocka_unit_test(other_answers_fail),
        cmocka_unit_test(memory_runs_out_anywhere),
        cmocka_unit_test(every_mode_meets_every_server),
        cmocka_unit_test(the_next_host_is_tried),
        cmocka_unit_test(without_its_context_it_is_not_reached),
        cmocka_unit_test(silence_is_bounded),
        cmocka_unit_test(cancelling_in_the_handshake_leaves_nothing),
    };
    return cmocka_run_group_tests_name("negotiate", tests, set_up_all, tear_down_all);
}
