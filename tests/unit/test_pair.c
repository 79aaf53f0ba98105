/* test_pair.c - the driver between two sockets, with a session of our own that only notes what it is told.
 *
 * The session below forwards what it is fed; what it says next is set by the test. So the tests see the driver alone:
 * when it reads, when it does not, and how connections end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../proxy/admin/conf.h"
#include "../../proxy/admin/log.h"
#include "../../proxy/io/pair.h"

#define TURNS 2000 /* of the loop, before a test gives up waiting */

/* ---- the session ---- */

struct session {
    struct session_env *env;
    enum session_next next;
    bool is_up, is_idle;
    bool reads[2];
    int ended, unreachable, connected;
    int lost[2];
    size_t fed[2];
    char why[128];
};

static struct session *last; /* the one made last */
static int living;
static struct conf_database database = {.nhosts = 1};

struct session *session_new(struct session_env *env, const struct session_peer *peer, uint64_t id)
{
    (void)peer;
    (void)id;
    last = calloc(1, sizeof *last);
    last->env = env;
    last->next = SESSION_GO;
    last->reads[SIDE_FRONTEND] = last->reads[SIDE_BACKEND] = true;
    living++;
    return last;
}

void session_free(struct session *session)
{
    living--;
    free(session);
}

void session_feed(struct session *session, enum side from, struct span bytes)
{
    session->fed[from] += bytes.len;
    if (from == SIDE_BACKEND)
        sink_borrow(&session->env->to_frontend, bytes);
    else if (session->connected)
        sink_borrow(&session->env->to_backend, bytes);
    else
        session->next = SESSION_CONNECT;
}

void session_connected(struct session *session, int host_index, const struct channel *channel)
{
    (void)channel;
    assert_int_equal(host_index, 0);
    session->connected++;
    session->is_up = true;
    session->next = SESSION_GO;
    sink_copy(&session->env->to_backend, span_cstr("hello"));
}

void session_unreachable(struct session *session, const char *why)
{
    snprintf(session->why, sizeof session->why, "%s", why);
    session->unreachable++;
    sink_copy(&session->env->to_frontend, span_cstr("unreachable"));
    session->next = SESSION_CLOSE;
}

void session_lost(struct session *session, enum side side, const char *why)
{
    snprintf(session->why, sizeof session->why, "%s", why);
    session->lost[side]++;
    if (side == SIDE_BACKEND)
        sink_copy(&session->env->to_frontend, span_cstr("lost"));
    session->next = SESSION_CLOSE;
}

void session_end(struct session *session, const char *sqlstate, const char *message)
{
    (void)message;
    session->ended++;
    sink_copy(&session->env->to_frontend, span_cstr(sqlstate));
    session->next = SESSION_CLOSE;
}

enum session_next session_next(const struct session *session)
{
    return session->next;
}

struct session_target session_target(const struct session *session)
{
    (void)session;
    return (struct session_target){.database = &database, .host_index = -1};
}

bool session_reads(const struct session *session, enum side side)
{
    return session->reads[side];
}

bool session_is_up(const struct session *session)
{
    return session->is_up;
}

bool session_is_idle(const struct session *session)
{
    return session->is_idle;
}

/* ---- the bench ---- */

struct bench {
    uv_loop_t loop;
    struct pair_env env;
    struct pair_counts counts;
    struct conf conf;
    uint8_t buffer[PAIR_BUFFER_BYTES];
    int listener; /* the server's */
    int client;   /* the client's end; -1 once closed */
    int server;   /* the server's end; -1 until accepted */
};

static char loopback[] = "127.0.0.1";

static void on_change(struct pair_env *env)
{
    (void)env;
}

static int listen_somewhere(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    log_threshold = (enum log_level)(LOG_FATAL + 1);
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    bench->conf = (struct conf){.max_client_conn = 10};
    bench->env.session.conf = &bench->conf;
    bench->env.loop = &bench->loop;
    bench->env.buffer = bench->buffer;
    bench->env.counts = &bench->counts;
    bench->env.on_change = on_change;
    bench->client = bench->server = -1;
    database.hosts[0].host = loopback;
    bench->listener = listen_somewhere(&database.hosts[0].port);
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;
    pair_kill_all(&bench->env);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    assert_int_equal(living, 0);
    assert_int_equal(bench->counts.clients, 0);
    assert_int_equal(bench->counts.refused, 0);
    int descriptors[] = {bench->client, bench->server, bench->listener};
    for (int i = 0; i < 3; i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
    sink_fini(&bench->env.session.to_frontend);
    sink_fini(&bench->env.session.to_backend);
    free(bench);
    return 0;
}

static void turn(struct bench *bench)
{
    uv_run(&bench->loop, UV_RUN_NOWAIT);
}

/* A client arrives; the proxy's end of a socket pair is what an accept would have given. */
static int arrive(struct bench *bench)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    pair_accept(&bench->env, ends[1], &(struct session_peer){.name = "test"});
    return ends[0];
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Turns the loop until `text` has arrived. */
static void expect_text(struct bench *bench, int fd, const char *text)
{
    char got[64] = {0};
    size_t len = 0;
    for (int i = 0; i < TURNS && len < strlen(text); i++) {
        turn(bench);
        ssize_t more = recv(fd, got + len, strlen(text) - len, 0);
        len += more > 0 ? (size_t)more : 0;
    }
    assert_string_equal(got, text);
}

static void expect_end(struct bench *bench, int fd)
{
    char byte;
    ssize_t got = -1;
    for (int i = 0; i < TURNS && got < 0; i++) {
        turn(bench);
        got = recv(fd, &byte, 1, 0);
        if (got < 0)
            assert_int_equal(errno, EAGAIN);
    }
    assert_int_equal(got, 0);
}

static void expect_nothing(struct bench *bench, int fd)
{
    char byte;
    for (int i = 0; i < 20; i++)
        turn(bench);
    assert_int_equal(recv(fd, &byte, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
}

static void accept_server(struct bench *bench)
{
    for (int i = 0; i < TURNS && bench->server < 0; i++) {
        turn(bench);
        bench->server = accept4(bench->listener, NULL, NULL, SOCK_NONBLOCK);
    }
    assert_true(bench->server >= 0);
}

/* A client whose server connection is up. */
static struct session *connect_both(struct bench *bench)
{
    bench->client = arrive(bench);
    say(bench->client, "go");
    accept_server(bench);
    expect_text(bench, bench->server, "hello");
    assert_int_equal(bench->env.running.count, 1);
    return last;
}

static void expect_gone(struct bench *bench)
{
    for (int i = 0; i < TURNS && living > 0; i++)
        turn(bench);
    assert_int_equal(living, 0);
    assert_int_equal(bench->env.closing.count, 0);
}

static void close_client(struct bench *bench)
{
    close(bench->client);
    bench->client = -1;
}

static void close_server(struct bench *bench)
{
    close(bench->server);
    bench->server = -1;
}

/* Fills a stream until nobody takes any more. The number of bytes that went in. */
static size_t flood(struct bench *bench, int fd)
{
    static const char chunk[65536];
    size_t total = 0;
    for (int refused = 0; refused < 50;) {
        ssize_t sent = send(fd, chunk, sizeof chunk, MSG_NOSIGNAL);
        turn(bench);
        refused = sent < 0 ? refused + 1 : 0;
        total += sent > 0 ? (size_t)sent : 0;
        assert_true(total < (size_t)256 * 1024 * 1024);
    }
    return total;
}

static size_t drain(struct bench *bench, int fd, size_t until)
{
    static char chunk[65536];
    size_t total = 0;
    for (int idle = 0; idle < TURNS && total < until;) {
        ssize_t got = recv(fd, chunk, sizeof chunk, 0);
        turn(bench);
        idle = got < 0 ? idle + 1 : 0;
        total += got > 0 ? (size_t)got : 0;
    }
    return total;
}

/* ---- the tests ---- */

static void bytes_go_both_ways(void **state)
{
    struct bench *bench = *state;
    connect_both(bench);
    say(bench->client, "question");
    expect_text(bench, bench->server, "question");
    say(bench->server, "answer");
    expect_text(bench, bench->client, "answer");
}

static void nothing_is_read_while_held(void **state)
{
    struct bench *bench = *state;
    struct session *session = connect_both(bench);
    session->reads[SIDE_FRONTEND] = false;
    say(bench->server, "x"); /* any event: the driver asks again */
    expect_text(bench, bench->client, "x");
    say(bench->client, "held");
    expect_nothing(bench, bench->server);
    session->reads[SIDE_FRONTEND] = true;
    say(bench->server, "y");
    expect_text(bench, bench->client, "y");
    expect_text(bench, bench->server, "held");
}

static void a_slow_client_stops_its_server(void **state)
{
    struct bench *bench = *state;
    struct session *session = connect_both(bench);
    size_t sent = flood(bench, bench->server);
    assert_true(session->fed[SIDE_BACKEND] < sent); /* the rest waits in the kernel */
    say(bench->client, "still heard");
    expect_text(bench, bench->server, "still heard");
    assert_int_equal(drain(bench, bench->client, sent), sent);
    assert_int_equal(session->fed[SIDE_BACKEND], sent);
}

static void a_slow_server_stops_its_client(void **state)
{
    struct bench *bench = *state;
    struct session *session = connect_both(bench);
    size_t sent = flood(bench, bench->client);
    assert_true(session->fed[SIDE_FRONTEND] < sent);
    assert_int_equal(drain(bench, bench->server, sent), sent);
}

static void an_idle_client_that_leaves_ends_it(void **state)
{
    struct bench *bench = *state;
    struct session *session = connect_both(bench);
    session->is_idle = true;
    close_client(bench);
    expect_end(bench, bench->server);
    expect_gone(bench);
}

static void a_client_that_is_owed_an_answer_gets_it(void **state)
{
    struct bench *bench = *state;
    connect_both(bench); /* not idle */
    say(bench->client, "question");
    assert_int_equal(shutdown(bench->client, SHUT_WR), 0);
    expect_text(bench, bench->server, "question");
    expect_end(bench, bench->server); /* the server learns it, as it would without us */
    say(bench->server, "answer");
    expect_text(bench, bench->client, "answer");
    close_server(bench);
    expect_text(bench, bench->client, "lost");
    expect_end(bench, bench->client);
    close_client(bench);
    expect_gone(bench);
}

static void the_last_words_outlive_the_server(void **state)
{
    struct bench *bench = *state;
    connect_both(bench);
    say(bench->client, "unread by anybody");
    say(bench->server, "fatal ");
    expect_text(bench, bench->client, "fatal ");
    close_server(bench); /* with bytes unread: a reset */
    expect_text(bench, bench->client, "lost");
    say(bench->client, "late bytes must not reset what is on its way");
    expect_end(bench, bench->client);
    close_client(bench);
    expect_gone(bench);
}

static void a_server_that_refuses_is_told(void **state)
{
    struct bench *bench = *state;
    close(bench->listener);
    bench->listener = -1;
    bench->client = arrive(bench);
    say(bench->client, "go");
    expect_text(bench, bench->client, "unreachable");
    assert_non_null(strstr(last->why, "Connection refused"));
    expect_end(bench, bench->client);
    close_client(bench);
    expect_gone(bench);
}

static void one_too_many_is_told_why(void **state)
{
    struct bench *bench = *state;
    bench->conf.max_client_conn = 1;
    connect_both(bench);
    int refused = arrive(bench);
    assert_int_equal(bench->counts.clients, 1);
    assert_int_equal(bench->counts.refused, 1);
    expect_nothing(bench, refused); /* not before its startup packet: libpq would not show it */
    say(refused, "go");
    expect_text(bench, refused, "53300");
    expect_end(bench, refused);
    assert_int_equal(bench->counts.refused, 0);
    close(refused);
}

static void far_too_many_are_cut_off(void **state)
{
    struct bench *bench = *state;
    int clients[PAIR_REFUSED_MAX + 2];
    bench->conf.max_client_conn = 1;
    for (int i = 0; i < PAIR_REFUSED_MAX + 2; i++)
        clients[i] = arrive(bench);
    assert_int_equal(living, PAIR_REFUSED_MAX + 1);
    expect_end(bench, clients[PAIR_REFUSED_MAX + 1]);
    for (int i = 0; i < PAIR_REFUSED_MAX + 2; i++)
        close(clients[i]);
    expect_gone(bench);
}

static void draining_ends_the_idle_and_waits_for_the_busy(void **state)
{
    struct bench *bench = *state;
    struct session *busy = connect_both(bench);
    int idle = arrive(bench);
    last->is_idle = true;
    pair_drain(&bench->env);
    expect_text(bench, idle, "57P01");
    expect_end(bench, idle);
    close(idle);
    assert_int_equal(busy->ended, 0);
    busy->is_idle = true;
    say(bench->server, "done ");
    expect_text(bench, bench->client, "done 57P01");
    expect_end(bench, bench->client);
    close_client(bench);
    expect_gone(bench);
}

static void a_client_that_vanishes_while_connecting(void **state)
{
    struct bench *bench = *state;
    bench->client = arrive(bench);
    say(bench->client, "go");
    close_client(bench);
    for (int i = 0; i < TURNS && living > 0; i++)
        turn(bench);
    pair_kill_all(&bench->env);
    expect_gone(bench);
}

static void memory_can_run_out_at_the_door(void **state)
{
    struct bench *bench = *state;
    mem_fail_after(0);
    int client = arrive(bench);
    mem_fail_after(-1);
    expect_end(bench, client);
    assert_int_equal(bench->counts.clients, 0);
    close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(bytes_go_both_ways),
        TEST(nothing_is_read_while_held),
        TEST(a_slow_client_stops_its_server),
        TEST(a_slow_server_stops_its_client),
        TEST(an_idle_client_that_leaves_ends_it),
        TEST(a_client_that_is_owed_an_answer_gets_it),
        TEST(the_last_words_outlive_the_server),
        TEST(a_server_that_refuses_is_told),
        TEST(one_too_many_is_told_why),
        TEST(far_too_many_are_cut_off),
        TEST(draining_ends_the_idle_and_waits_for_the_busy),
        TEST(a_client_that_vanishes_while_connecting),
        TEST(memory_can_run_out_at_the_door),
#undef TEST
    };
    return cmocka_run_group_tests_name("pair", tests, NULL, NULL);
}
