/* test_pair.c - the driver between two sockets: when it reads, when it does not, and how connections end. */
#include "pair_bench.h"

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

static void what_waits_goes_before_the_clients_end(void **state)
{
    struct bench *bench = *state;
    struct session *session = connect_both(bench);
    session->may_send = true;
    say(bench->client, "question");
    assert_int_equal(shutdown(bench->client, SHUT_WR), 0);
    expect_text(bench, bench->server, "question");
    expect_nothing(bench, bench->server); /* no end yet: there may be more to send */
    say(bench->server, "facts");
    expect_text(bench, bench->client, "facts");
    expect_nothing(bench, bench->server);
    session->may_send = false;
    say(bench->server, "answer");
    expect_text(bench, bench->client, "answer");
    expect_end(bench, bench->server);
    session->is_idle = true;
    say(bench->server, "last");
    expect_text(bench, bench->client, "last");
    expect_end(bench, bench->client);
    expect_gone(bench);
}

static void a_slow_reader_that_sends_no_more_gets_all(void **state)
{
    struct bench *bench = *state;
    struct session *session = connect_both(bench);
    flood(bench, bench->server);
    session->is_idle = true; /* what came was all */
    size_t fed = session->fed[SIDE_BACKEND];
    assert_int_equal(shutdown(bench->client, SHUT_WR), 0);
    for (int i = 0; i < 20; i++)
        turn(bench);
    assert_int_equal(session->fed[SIDE_BACKEND], fed);
    assert_int_equal(drain(bench, bench->client, fed), fed);
    expect_end(bench, bench->client);
    expect_gone(bench);
}

/* A server that says nothing, and does not even close, holds no place of a client that is gone. */
static void a_client_that_is_gone_is_not_waited_for(void **state)
{
    struct bench *bench = *state;
    struct session *session = connect_both(bench); /* not idle */
    say(bench->client, "question");
    session->may_send = true; /* while it says so the server is given time */
    close_client(bench);
    expect_text(bench, bench->server, "question");
    for (int i = 0; i < TURNS && bench->env.leaving.count == 0; i++)
        turn(bench);
    pair_tick(&bench->env);
    assert_int_equal(bench->env.leaving.count, 1);
    session->may_send = false;
    pair_tick(&bench->env);
    expect_end(bench, bench->server);
    expect_gone(bench);
}

/* The same where it cannot even be read, since something of it waits: then time is all there is. */
static void a_client_that_is_gone_unheard(void **state)
{
    struct bench *bench = *state;
    struct session *session = connect_both(bench);
    session->reads[SIDE_FRONTEND] = false;
    say(bench->server, "x");
    expect_text(bench, bench->client, "x");
    say(bench->client, "unread");
    close_client(bench);
    for (int i = 0; i < TURNS && bench->env.leaving.count == 0; i++)
        turn(bench);
    assert_int_equal(bench->env.leaving.count, 1);
    pair_tick(&bench->env);
    assert_int_equal(session->lost[SIDE_FRONTEND], 0);
    bench->loop.time += 11000; /* milliseconds: PAIR_LEGACY_MS and one more second */
    pair_tick(&bench->env);
    expect_end(bench, bench->server);
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

static void few_are_waited_for_at_their_end(void **state)
{
    struct bench *bench = *state;
    int clients[PAIR_LINGERING_MAX + 10];
    const size_t count = sizeof clients / sizeof *clients;
    bench->conf.max_client_conn = (int)count;
    for (size_t i = 0; i < count; i++)
        clients[i] = arrive(bench);
    pair_end_all(&bench->env);
    for (size_t i = 0; i < count; i++) {
        expect_text(bench, clients[i], "57P01");
        expect_end(bench, clients[i]);
    }
    assert_int_equal(bench->env.closing.count, PAIR_LINGERING_MAX);
    for (size_t i = 0; i < count; i++)
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
        TEST(what_waits_goes_before_the_clients_end),
        TEST(a_slow_reader_that_sends_no_more_gets_all),
        TEST(a_client_that_is_gone_is_not_waited_for),
        TEST(a_client_that_is_gone_unheard),
        TEST(the_last_words_outlive_the_server),
        TEST(a_server_that_refuses_is_told),
        TEST(one_too_many_is_told_why),
        TEST(far_too_many_are_cut_off),
        TEST(few_are_waited_for_at_their_end),
        TEST(draining_ends_the_idle_and_waits_for_the_busy),
        TEST(a_client_that_vanishes_while_connecting),
        TEST(memory_can_run_out_at_the_door),
#undef TEST
    };
    return cmocka_run_group_tests_name("pair", tests, NULL, NULL);
}
