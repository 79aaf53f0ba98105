/* test_listener.c - addresses are bound once per worker, nobody's port or socket file is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../proxy/admin/conf.h"
#include "../../proxy/admin/log.h"
#include "../../proxy/io/listener.h"

static char directory[] = "/tmp/pgseek-listener-XXXXXX";
static char nothing[] = "";
static char loopback[] = "127.0.0.1";

/* A port that was free a moment ago. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static struct conf make_conf(char *addresses, char *unix_directory)
{
    return (struct conf){
        .listen_addr = addresses,
        .listen_port = free_port(),
        .unix_socket_dir = unix_directory,
        .unix_socket_mode = 0640,
        .listen_backlog = 8,
        .workers = 1,
    };
}

static struct sockaddr_un socket_address(const struct conf *conf)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/.s.PGSQL.%d", directory, conf->listen_port);
    return address;
}

static int dial_tcp(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void each_worker_has_its_socket(void **state)
{
    (void)state;
    struct conf conf = make_conf(loopback, nothing);
    struct listener_set set;
    conf.workers = 3;
    assert_true(listener_open_all(&set, &conf));
    assert_int_equal(set.count, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(set.listeners[i].worker, i);
    listener_close_all(&set);
    assert_int_equal(set.count, 0);
}

static void a_port_in_use_is_refused(void **state)
{
    (void)state;
    struct conf conf = make_conf(loopback, nothing);
    struct listener_set first, second;
    conf.workers = 2; /* shared ports must not hide a second process */
    assert_true(listener_open_all(&first, &conf));
    assert_false(listener_open_all(&second, &conf));
    assert_int_equal(second.count, 0);
    listener_close_all(&first);
    assert_true(listener_open_all(&second, &conf));
    listener_close_all(&second);
}

static void clients_are_accepted_and_named(void **state)
{
    (void)state;
    struct conf conf = make_conf(loopback, nothing);
    struct listener_set set;
    struct listener_peer peer;
    assert_true(listener_open_all(&set, &conf));
    assert_int_equal(listener_accept(&set.listeners[0], &peer), -EAGAIN);
    int client = dial_tcp(conf.listen_port);
    int fd = listener_accept(&set.listeners[0], &peer);
    assert_true(fd >= 0);
    assert_int_equal(strncmp(peer.name, "127.0.0.1:", 10), 0);
    assert_int_equal(peer.from.family, ADDRESS_IP4);
    assert_memory_equal(peer.from.bytes, "\x7f\0\0\1", 4);
    assert_memory_equal(peer.to.bytes, "\x7f\0\0\1", 4);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    close(fd);
    close(client);
    listener_close_all(&set);
}

static void lists_of_addresses(void **state)
{
    static const struct {
        const char *addresses;
        bool opens;
    } cases[] = {
        {"127.0.0.1,127.0.0.2", true},    {" 127.0.0.1 , 127.0.0.3 ", true}, {"", false}, {" , ", false},
        {"127.0.0.1,203.0.113.1", false},                                 /* not ours: all or nothing */
        {"no.such.name.invalid", false},  {"127.0.0.1,127.0.0.1", false}, /* twice */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char addresses[64];
        struct listener_set set;
        snprintf(addresses, sizeof addresses, "%s", cases[i].addresses);
        struct conf conf = make_conf(addresses, nothing);
        assert_int_equal(listener_open_all(&set, &conf), cases[i].opens);
        assert_int_equal(set.count, cases[i].opens ? 2 : 0);
        listener_close_all(&set);
    }
}

static void the_unix_socket_has_its_mode(void **state)
{
    (void)state;
    struct conf conf = make_conf(nothing, directory);
    struct sockaddr_un address = socket_address(&conf);
    struct listener_set set;
    struct stat file;
    struct listener_peer peer;
    conf.workers = 2;
    assert_true(listener_open_all(&set, &conf));
    assert_int_equal(set.count, 1);
    assert_int_equal(set.listeners[0].worker, LISTENER_SHARED);
    assert_int_equal(stat(address.sun_path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0640);
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(client, (const struct sockaddr *)&address, sizeof address), 0);
    int fd = listener_accept(&set.listeners[0], &peer);
    assert_true(fd >= 0);
    assert_string_equal(peer.name, "unix");
    assert_int_equal(peer.from.family, ADDRESS_UNIX);
    close(fd);
    close(client);
    listener_close_all(&set);
    assert_int_equal(stat(address.sun_path, &file), -1);
}

static void a_socket_left_by_the_dead_is_replaced(void **state)
{
    (void)state;
    struct conf conf = make_conf(nothing, directory);
    struct sockaddr_un address = socket_address(&conf);
    struct listener_set set;
    int dead = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(dead, (const struct sockaddr *)&address, sizeof address), 0);
    close(dead);
    assert_true(listener_open_all(&set, &conf));
    listener_close_all(&set);
}

static void a_socket_of_the_living_is_kept(void **state)
{
    (void)state;
    struct conf conf = make_conf(nothing, directory);
    struct sockaddr_un address = socket_address(&conf);
    struct listener_set set;
    int living = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(living, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(living, 1), 0);
    assert_false(listener_open_all(&set, &conf));
    assert_int_equal(access(address.sun_path, F_OK), 0);
    close(living);
    unlink(address.sun_path);
}

static void a_file_that_is_no_socket_is_kept(void **state)
{
    (void)state;
    struct conf conf = make_conf(nothing, directory);
    struct sockaddr_un address = socket_address(&conf);
    struct listener_set set;
    close(open(address.sun_path, O_CREAT | O_WRONLY, 0600));
    assert_false(listener_open_all(&set, &conf));
    assert_int_equal(access(address.sun_path, F_OK), 0);
    unlink(address.sun_path);
}

static void anothers_socket_file_survives_our_end(void **state)
{
    (void)state;
    struct conf conf = make_conf(nothing, directory);
    struct sockaddr_un address = socket_address(&conf);
    struct listener_set set;
    assert_true(listener_open_all(&set, &conf));
    /* The new file is made before ours goes, so that it cannot get the same inode. */
    char other[sizeof address.sun_path + 8];
    snprintf(other, sizeof other, "%s.other", address.sun_path);
    close(open(other, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(rename(other, address.sun_path), 0);
    listener_close_all(&set);
    assert_int_equal(access(address.sun_path, F_OK), 0);
    unlink(address.sun_path);
}

static void a_missing_directory_is_a_warning(void **state)
{
    (void)state;
    char missing[] = "/nonexistent/pgseek";
    struct conf conf = make_conf(loopback, missing);
    struct listener_set set;
    assert_true(listener_open_all(&set, &conf));
    assert_int_equal(set.count, 1);
    listener_close_all(&set);
}

/* A process that drains lets the next one have its addresses. */
static void a_stopped_listener_refuses(void **state)
{
    (void)state;
    struct conf conf = make_conf(loopback, directory);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)conf.listen_port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct listener_set first;
    struct listener_set second;
    struct listener_peer peer;
    assert_true(listener_open_all(&first, &conf));
    for (size_t i = 0; i < first.count; i++) {
        listener_stop(&first.listeners[i]);
        listener_stop(&first.listeners[i]);
        assert_true(listener_accept(&first.listeners[i], &peer) < 0);
    }
    int client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(client, (const struct sockaddr *)&address, sizeof address), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(client);
    assert_true(listener_open_all(&second, &conf));
    listener_close_all(&first);
    client = dial_tcp(conf.listen_port);
    close(client);
    listener_close_all(&second);
}

static int set_up(void **state)
{
    (void)state;
    log_threshold = (enum log_level)(LOG_FATAL + 1);
    return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(directory); /* fails when a test has left a file */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_worker_has_its_socket),
        cmocka_unit_test(a_port_in_use_is_refused),
        cmocka_unit_test(clients_are_accepted_and_named),
        cmocka_unit_test(lists_of_addresses),
        cmocka_unit_test(the_unix_socket_has_its_mode),
        cmocka_unit_test(a_socket_left_by_the_dead_is_replaced),
        cmocka_unit_test(a_socket_of_the_living_is_kept),
        cmocka_unit_test(a_file_that_is_no_socket_is_kept),
        cmocka_unit_test(anothers_socket_file_survives_our_end),
        cmocka_unit_test(a_missing_directory_is_a_warning),
        cmocka_unit_test(a_stopped_listener_refuses),
    };
    return cmocka_run_group_tests_name("listener", tests, set_up, tear_down);
}
