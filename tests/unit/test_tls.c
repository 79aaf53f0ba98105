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

static void talks_at_every_step(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 2, 3, 5, 7, 64, 100, 1000, 100000};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct tls_talk talk;
        tls_talk_begin(&talk, plain_server, plain_client, "db1", i % 2);
        tls_talk_run(&talk, steps[i]);
        assert_int_equal(tls_state(talk.client), TLS_OPEN);
        assert_int_equal(tls_state(talk.server), TLS_OPEN);
        tls_talk_say(&talk, true, "question");
        tls_talk_run(&talk, steps[i]);
        assert_got(&talk.server_got, "question");
        tls_talk_say(&talk, false, "answer");
        tls_talk_run(&talk, steps[i]);
        assert_got(&talk.client_got, "answer");
        assert_string_equal(tls_why(talk.client), "");
        tls_talk_end(&talk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(talks_at_every_step),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
