/* pair_bench.h - a driver between two sockets, with a session of our own that only notes what it is told.
 *
 * The session below forwards what it is fed; what it says next is set by the test. So the tests see the driver alone:
 * when it reads, when it does not, and how connections end. It is code, since each of its two programs has to define
 * the session for itself. */
#ifndef PAIR_BENCH_H
#define PAIR_BENCH_H

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
#include "../../proxy/io/snapshot.h"
#include "tls_fixture.h"

#define TURNS 200000 /* of the loop, before a test gives up waiting: on a busy machine the kernel takes its time */

/* ---- the session ---- */

struct session {
    struct session_env *env;
    enum session_next next;
    bool is_up, is_idle;
    bool reads[2];
    bool is_tls[2];
    bool refuses_tls;
    bool may_send;   /* something of the client's waits */
    bool stays_down; /* the log-in is not over when the server is connected */
    int ended, unreachable, connected;
    int lost[2];
    size_t fed[2];
    char why[128];
};

static struct session *last; /* the one made last */
static int living;
static struct conf_database database = {.nhosts = 1};
static struct tls_context *client_tls; /* of our clients' links, and of the servers of the tests ... */
static struct tls_context *server_tls; /* ... and of `database`'s */

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

static inline void ask_for_tls(struct session *session)
{
    sink_copy(&session->env->to_frontend, span_cstr("S"));
    session->next = SESSION_SECURE;
}

void session_feed(struct session *session, enum side from, struct span bytes)
{
    if (session->next == SESSION_CLOSE)
        return;
    session->fed[from] += bytes.len;
    if (from == SIDE_BACKEND && span_equal_cstr(bytes, "refused"))
        session->next = SESSION_CONNECT; /* and once more */
    else if (from == SIDE_BACKEND)
        sink_borrow(&session->env->to_frontend, bytes);
    else if (session->connected)
        sink_borrow(&session->env->to_backend, bytes);
    else if (span_equal_cstr(bytes, "ssl"))
        ask_for_tls(session);
    else
        session->next = SESSION_CONNECT;
}

void session_connected(struct session *session, int host_index, const struct server_address *address,
                       const struct channel *channel)
{
    (void)address;
    session->is_tls[SIDE_BACKEND] = channel != NULL;
    assert_int_equal(host_index, 0);
    session->connected++;
    session->is_up = !session->stays_down;
    session->next = SESSION_GO;
    sink_copy(&session->env->to_backend, span_cstr("hello"));
}

bool session_begins_tls(struct session *session)
{
    session->next = session->refuses_tls ? SESSION_CLOSE : SESSION_SECURE;
    return !session->refuses_tls;
}

void session_secured(struct session *session, const struct channel *channel)
{
    assert_int_equal(session->next, SESSION_SECURE);
    session->is_tls[SIDE_FRONTEND] = channel->version[0] != '\0';
    session->next = SESSION_GO;
}

void session_unreachable(struct session *session, const char *why)
{
    snprintf(session->why, sizeof session->why, "%s", why);
    session->unreachable++;
    sink_copy(&session->env->to_frontend, span_cstr("unreachable"));
    session->next = SESSION_CLOSE;
}

/* No test looks a secret up: test_lookup.c does. */
void session_secret(struct session *session, const struct session_looked_up *answer)
{
    (void)session, (void)answer;
}

const char *session_user(const struct session *session)
{
    (void)session;
    return "user";
}

const char *session_dbname(const struct session *session)
{
    (void)session;
    return "database";
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
    return (struct session_target){.conf = session->env->conf, .database = &database, .host_index = -1};
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

bool session_is_owed(const struct session *session)
{
    return session->is_up && !session->is_idle;
}

bool session_may_send(const struct session *session)
{
    return session->may_send;
}

/* ---- the bench ---- */

struct bench {
    uv_loop_t loop;
    struct pair_env env;
    struct pair_counts counts;
    struct conf conf;
    struct snapshot snapshot;
    uint8_t buffer[PAIR_BUFFER_BYTES];
    int listener; /* the server's */
    int client;   /* the client's end; -1 once closed */
    int server;   /* the server's end; -1 until accepted */
};

static char loopback[] = "127.0.0.1";

static inline void on_change(struct pair_env *env)
{
    (void)env;
}

static inline int listen_somewhere(int *port)
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

static inline int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    log_threshold = (enum log_level)(LOG_FATAL + 1);
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    static char none[] = "";
    bench->conf =
        (struct conf){.max_client_conn = 10, .server_tls = {.ca_file = none, .cert_file = none, .key_file = none}};
    database.sslmode = CONF_SSL_INHERIT;
    bench->conf.databases = &database;
    bench->conf.ndatabases = 1;
    bench->snapshot =
        (struct snapshot){.refs = 1, .conf = &bench->conf, .client_tls = client_tls, .server_tls = &server_tls};
    bench->env.session.conf = &bench->conf;
    bench->env.snapshot = &bench->snapshot;
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

static inline int tear_down(void **state)
{
    struct bench *bench = *state;
    pair_kill_all(&bench->env);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    assert_int_equal(living, 0);
    assert_int_equal(bench->counts.clients, 0);
    assert_int_equal(bench->counts.refused, 0);
    assert_int_equal(bench->snapshot.refs, 1); /* nobody holds it any more */
    int descriptors[] = {bench->client, bench->server, bench->listener};
    for (int i = 0; i < 3; i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
    sink_fini(&bench->env.session.to_frontend);
    sink_fini(&bench->env.session.to_backend);
    free(bench);
    return 0;
}

static inline void turn(struct bench *bench)
{
    uv_run(&bench->loop, UV_RUN_NOWAIT);
}

/* A client arrives; the proxy's end of a socket pair is what an accept would have given. */
static inline int arrive(struct bench *bench)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    pair_accept(&bench->env, ends[1], &(struct session_peer){.name = "test"});
    return ends[0];
}

static inline void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Turns the loop until `text` has arrived. */
static inline void expect_text(struct bench *bench, int fd, const char *text)
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

static inline void expect_end(struct bench *bench, int fd)
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

static inline void expect_nothing(struct bench *bench, int fd)
{
    char byte;
    for (int i = 0; i < 20; i++)
        turn(bench);
    assert_int_equal(recv(fd, &byte, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
}

static inline void accept_server(struct bench *bench)
{
    for (int i = 0; i < TURNS && bench->server < 0; i++) {
        turn(bench);
        bench->server = accept4(bench->listener, NULL, NULL, SOCK_NONBLOCK);
    }
    assert_true(bench->server >= 0);
}

/* A client whose server connection is up. */
static inline struct session *connect_both(struct bench *bench)
{
    bench->client = arrive(bench);
    say(bench->client, "go");
    accept_server(bench);
    expect_text(bench, bench->server, "hello");
    assert_int_equal(bench->env.running.count, 1);
    return last;
}

static inline void expect_gone(struct bench *bench)
{
    for (int i = 0; i < TURNS && living > 0; i++)
        turn(bench);
    assert_int_equal(living, 0);
    assert_int_equal(bench->env.closing.count, 0);
}

static inline void close_client(struct bench *bench)
{
    close(bench->client);
    bench->client = -1;
}

static inline void close_server(struct bench *bench)
{
    close(bench->server);
    bench->server = -1;
}

/* Fills a stream until nobody takes any more. The number of bytes that went in. */
static inline size_t flood(struct bench *bench, int fd)
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

static inline size_t drain(struct bench *bench, int fd, size_t until)
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

#endif
