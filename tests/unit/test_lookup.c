/* test_lookup.c - look-ups that cannot be answered, that nobody waits for any more, and that are too many.
 *
 * The servers here refuse or are silent; what others answer is tests/e2e/test_lookup.py's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../proxy/admin/conf.h"
#include "../../proxy/io/lookup.h"
#include "../../proxy/session/session.h"

struct bench {
    uv_loop_t loop;
    struct lookup_queue queue;
    struct conf *conf;
    struct session_target target;
    int listener;
    int answers;
    bool has_failed;
};

/* A socket that connections wait at for ever, or, closed, a port that refuses them. */
static int listen_somewhere(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static int set_up(void **state)
{
    int port;
    struct bench *bench = calloc(1, sizeof *bench);
    bench->listener = listen_somewhere(&port);
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    assert_int_equal(lookup_queue_init(&bench->queue, &bench->loop), 0);
    bench->conf = conf_default("127.0.0.1", port);
    assert_non_null(bench->conf);
    mem_free(bench->conf->auth_user);
    bench->conf->auth_user = mem_strndup("asker", 5);
    lookup_queue_serve(&bench->queue, bench->conf);
    bench->target = (struct session_target){.conf = bench->conf, .database = bench->conf->databases, .host_index = -1};
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    lookup_queue_close(&bench->queue);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    assert_int_equal(bench->queue.running, 0);
    assert_int_equal(bench->queue.waiting, 0);
    assert_null(bench->queue.first);
    if (bench->listener >= 0)
        close(bench->listener);
    conf_unref(bench->conf);
    free(bench);
    return 0;
}

static void on_done(void *owner, const struct session_looked_up *answer)
{
    struct bench *bench = owner;
    assert_null(answer->secret);
    bench->answers++;
    bench->has_failed = answer->failed != NULL;
}

static struct lookup *start(struct bench *bench)
{
    return lookup_start(&bench->queue, &bench->target, "alice", "d", on_done, bench);
}

static void a_server_that_refuses_is_a_failure(void **state)
{
    struct bench *bench = *state;
    close(bench->listener);
    bench->listener = -1;
    assert_non_null(start(bench));
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(bench->answers, 1);
    assert_true(bench->has_failed);
}

/* Running or waiting, the owner is never heard of again, and those behind move up. */
static void nobody_waits_any_more(void **state)
{
    struct bench *bench = *state;
    struct lookup *lookups[LOOKUP_RUNNING_MAX + 3];
    size_t count = sizeof lookups / sizeof *lookups;
    for (size_t i = 0; i < count; i++) {
        lookups[i] = start(bench);
        assert_non_null(lookups[i]);
    }
    assert_int_equal(bench->queue.running, LOOKUP_RUNNING_MAX);
    assert_int_equal(bench->queue.waiting, 3);
    lookup_cancel(lookups[count - 2]); /* in the middle of those that wait, then the last, then the first */
    lookup_cancel(lookups[count - 1]);
    assert_int_equal(bench->queue.waiting, 1);
    for (size_t i = 0; i < count - 2; i++)
        lookup_cancel(lookups[i]);
    assert_int_equal(bench->queue.waiting, 0);
    assert_int_equal(bench->queue.running, LOOKUP_RUNNING_MAX); /* until their threads have seen it */
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(bench->answers, 0);
}

static void too_many_are_refused(void **state)
{
    struct bench *bench = *state;
    struct lookup *lookups[LOOKUP_RUNNING_MAX + LOOKUP_WAITING_MAX];
    size_t count = sizeof lookups / sizeof *lookups;
    for (size_t i = 0; i < count; i++) {
        lookups[i] = start(bench);
        assert_non_null(lookups[i]);
    }
    assert_null(start(bench));
    lookup_cancel(lookups[count - 1]);
    lookups[count - 1] = start(bench); /* one has gone, so there is room for one */
    assert_non_null(lookups[count - 1]);
    for (size_t i = 0; i < count; i++)
        lookup_cancel(lookups[i]);
}

static void no_memory_is_a_refusal(void **state)
{
    struct bench *bench = *state;
    mem_fail_after(0);
    struct lookup *lookup = start(bench);
    mem_fail_after(-1);
    assert_null(lookup);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_server_that_refuses_is_a_failure),
        TEST(nobody_waits_any_more),
        TEST(too_many_are_refused),
        TEST(no_memory_is_a_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
