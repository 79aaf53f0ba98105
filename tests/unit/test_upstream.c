/* test_upstream.c - hosts are tried in order, the last word names each that failed, a full socket is waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../proxy/admin/conf.h"
#include "../../proxy/io/upstream.h"
#include "../../proxy/session/session.h"

#define HOSTS_MAX 3

struct answer {
    int calls;
    int fd;
    int host;
    struct server_address address;
    char why[512];
};

/* A name of two machines, as DNS that goes round tells it: the other one each time. The loop's library calls this. */
#define ROUND_ROBIN "round.robin.test"
static const char *const machines[] = {"127.0.0.2", "127.0.0.3"};

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    static unsigned turn; /* one look-up at a time */
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    bool is_round = name && strcmp(name, ROUND_ROBIN) == 0;
    return real(is_round ? machines[turn++ % 2] : name, service, hints, out);
}

static char directory[] = "/tmp/pgseek-upstream-XXXXXX";
static const struct upstream_setup no_tls;

static void on_done(void *owner, const struct upstream_result *result)
{
    struct answer *answer = owner;
    answer->calls++;
    answer->fd = result->fd;
    answer->host = result->host_index;
    answer->address = result->address;
    assert_null(result->tls);
    snprintf(answer->why, sizeof answer->why, "%s", result->why ? result->why : "");
}

/* A port of this machine, or any that is free, listened on unless `closed`. */
static int make_port_at(const char *machine, int port, int *listener, bool closed)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t len = sizeof address;
    assert_int_equal(inet_pton(AF_INET, machine, &address.sin_addr), 1);
    *listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(*listener, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(*listener, (struct sockaddr *)&address, &len), 0);
    if (!closed)
        assert_int_equal(listen(*listener, 8), 0);
    return ntohs(address.sin_port);
}

static int make_port(int *listener, bool closed)
{
    return make_port_at("127.0.0.1", 0, listener, closed);
}

static struct answer connect_to_target(const struct session_target *target)
{
    struct answer answer = {.fd = -1};
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    upstream_start(upstream_new(&loop, target, &no_tls, on_done, &answer));
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0); /* nothing is left behind */
    assert_int_equal(answer.calls, 1);
    return answer;
}

static struct answer connect_to(const struct conf_database *database, int host_index)
{
    return connect_to_target(&(struct session_target){.database = database, .host_index = host_index});
}

static void hosts_are_tried_in_order(void **state)
{
    enum kind { OPEN, SHUT, NO_SOCKET, NO_NAME, BY_NAME };
    static const struct {
        enum kind hosts[HOSTS_MAX];
        size_t nhosts;
        int only;     /* host_index */
        int expected; /* the host that answers; -1: none */
    } cases[] = {
        {{OPEN}, 1, -1, 0},
        {{BY_NAME}, 1, -1, 0},
        {{SHUT}, 1, -1, -1},
        {{SHUT, OPEN}, 2, -1, 1},
        {{OPEN, SHUT}, 2, -1, 0},
        {{OPEN, SHUT}, 2, 1, -1}, /* a cancel request goes to its own host only */
        {{SHUT, OPEN}, 2, 1, 1},
        {{NO_SOCKET, NO_NAME, OPEN}, 3, -1, 2},
        {{NO_NAME, SHUT, NO_SOCKET}, 3, -1, -1},
        {{SHUT, SHUT, BY_NAME}, 3, -1, 2},
    };
    char address[] = "127.0.0.1", socket_path[] = "/nonexistent", no_name[] = "no.such.name.invalid",
         name[] = "localhost";
    char *const hosts[] = {
        [OPEN] = address, [SHUT] = address, [NO_SOCKET] = socket_path, [NO_NAME] = no_name, [BY_NAME] = name};
    int open_fd, shut_fd;
    int open_port = make_port(&open_fd, false), shut_port = make_port(&shut_fd, true);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct conf_database database = {.nhosts = cases[i].nhosts};
        for (size_t k = 0; k < database.nhosts; k++) {
            enum kind kind = cases[i].hosts[k];
            database.hosts[k].host = hosts[kind];
            database.hosts[k].port = kind == SHUT ? shut_port : open_port;
        }
        struct answer answer = connect_to(&database, cases[i].only);
        assert_int_equal(answer.fd >= 0, cases[i].expected >= 0);
        if (answer.fd < 0)
            continue;
        assert_int_equal(answer.host, cases[i].expected);
        close(answer.fd);
    }
    close(open_fd);
    close(shut_fd);
}

/* The last number of the address that the other end has; closes ours. */
static uint8_t machine_of(int fd)
{
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    assert_true(fd >= 0);
    assert_int_equal(getpeername(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    return (uint8_t)ntohl(address.sin_addr.s_addr);
}

/* A cancel request goes to the machine that its session is on, whatever the name stands for by then. */
static void a_known_address_is_the_only_one(void **state)
{
    char name[] = ROUND_ROBIN, gone[] = "no.such.name.invalid";
    struct conf_database database = {.nhosts = 1, .hosts = {{.host = name}}};
    int listeners[2];
    (void)state;
    int port = make_port_at(machines[0], 0, &listeners[0], false);
    assert_int_equal(make_port_at(machines[1], port, &listeners[1], false), port);
    database.hosts[0].port = port;
    for (int i = 0; i < 2; i++) { /* either machine */
        database.hosts[0].host = name;
        struct answer session = connect_to(&database, -1);
        uint8_t machine = machine_of(session.fd);
        for (int k = 0; k < 3; k++) {
            struct answer cancel = connect_to_target(
                &(struct session_target){.database = &database, .host_index = 0, .address = session.address});
            assert_int_equal(machine_of(cancel.fd), machine);
            database.hosts[0].host = gone; /* the name need not even be known any more */
        }
        database.hosts[0].host = name;
        assert_int_not_equal(machine_of(connect_to(&database, 0).fd), machine);
    }
    close(listeners[0]);
    close(listeners[1]);
}

static void the_last_word_names_all(void **state)
{
    char first[] = "127.0.0.1", second[] = "/nonexistent";
    struct conf_database database = {.nhosts = 2, .hosts = {{first, 1}, {second, 5432}}};
    (void)state;
    struct answer answer = connect_to(&database, -1);
    assert_non_null(strstr(answer.why, "\"127.0.0.1\", port 1: "));
    assert_non_null(strstr(answer.why, "; server socket \"/nonexistent/.s.PGSQL.5432\": "));
}

static void many_failures_are_cut_not_overrun(void **state)
{
    char long_name[] =
        "/a-directory-with-a-name-that-is-so-long-that-eight-of-them-do-not-fit-into-what-a-person-reads";
    struct conf_database database = {.nhosts = CONF_MAX_HOSTS};
    (void)state;
    for (size_t i = 0; i < CONF_MAX_HOSTS; i++) {
        database.hosts[i].host = long_name;
        database.hosts[i].port = 5432;
    }
    assert_true(strlen(connect_to(&database, -1).why) > 400);
}

/* A Unix socket whose queue is full: refused at once by the system, waited for by us. */
static void a_full_socket_is_waited_for(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct conf_database database = {.nhosts = 1, .hosts = {{directory, 5432}}};
    struct session_target target = {.database = &database, .host_index = -1};
    struct answer answer = {.fd = -1};
    uv_loop_t loop;
    int clients[8], nclients = 0;
    (void)state;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/.s.PGSQL.5432", directory);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 0), 0);
    do {
        assert_true(nclients < 8);
        clients[nclients] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    } while (connect(clients[nclients++], (const struct sockaddr *)&address, sizeof address) == 0);
    assert_int_equal(errno, EAGAIN);

    assert_int_equal(uv_loop_init(&loop), 0);
    struct upstream *upstream = upstream_new(&loop, &target, &no_tls, on_done, &answer);
    upstream_start(upstream);
    uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(answer.calls, 0);
    for (int i = 0; i < nclients - 1; i++)
        close(accept(listener, NULL, NULL));
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(answer.calls, 1);
    assert_true(answer.fd >= 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    close(answer.fd);
    for (int i = 0; i < nclients; i++)
        close(clients[i]);
    close(listener);
    unlink(address.sun_path);
}

static void cancelling_leaves_nothing(void **state)
{
    char first[] = "127.0.0.1", second[] = "localhost";
    char *const hosts[] = {first, second}; /* dialling, and looking up */
    int listener, port = make_port(&listener, false);
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct conf_database database = {.nhosts = 1, .hosts = {{hosts[i], port}}};
        struct session_target target = {.database = &database, .host_index = -1};
        struct answer answer = {.fd = -1};
        uv_loop_t loop;
        assert_int_equal(uv_loop_init(&loop), 0);
        const struct upstream_setup setup = {.timeout_ms = 1000};
        struct upstream *upstream = upstream_new(&loop, &target, &setup, on_done, &answer);
        upstream_start(upstream);
        if (answer.calls == 0) {
            upstream_cancel(upstream);
            uv_run(&loop, UV_RUN_DEFAULT);
            assert_int_equal(answer.calls, 0);
        } else {
            close(answer.fd); /* the connection was made at once */
        }
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
    }
    close(listener);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_tried_in_order),          cmocka_unit_test(the_last_word_names_all),
        cmocka_unit_test(many_failures_are_cut_not_overrun), cmocka_unit_test(a_full_socket_is_waited_for),
        cmocka_unit_test(cancelling_leaves_nothing),         cmocka_unit_test(a_known_address_is_the_only_one),
    };
    return cmocka_run_group_tests_name("upstream", tests, set_up, tear_down);
}
