/* test_hostile.c - a server, a client, or both that send what nobody should: the session ends or goes on, and that is
 * all.
 *
 * Nothing is asserted but that it comes to an end without a crash, a leak (under the sanitizers) or an assertion, and
 * that a row's hidden columns never reach the client while the server keeps to the protocol. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "talk.h"

#define FEED "select id, body from posts order by id limit 2 /* pgseek */"
#define BOUND \
    "select id, body from posts where id > $1 order by id limit $2 /* pgseek cursor=$3 " \
    "deliver='status,notice,columns' */"

static const struct talk talks[] = {
    {.name = "untagged",
     .script = "P a select 1\nB x a\nD S a\nE x 1\nC S a\nS\nQ begin\nQ savepoint s\nQ rollback to s\nQ commit\nQ copy "
               "posts from stdin\nd x\nc\nF\nQ copy posts to stdout",
     .server = {.rows = 3}},
    {.name = "simple pages",
     .script = "Q " FEED "\nwait\nQ select id, body from posts order by id limit 2 /* pgseek cursor={next} */\nQ " FEED,
     .server = {.rows = 5}},
    {.name = "extended pages",
     .script =
         "P a " BOUND "\nD S a\nB x a 0 2 NULL\nD P x\nE x 1\nE x 0\nS\nwait\nB - a 0 2 {next} ; 1\nE - 0\nS\nP - " FEED
         "\nB - -\nE - 1\nC P -\nS",
     .server = {.rows = 5}},
    {.name = "variables",
     .script = "Q begin\nQ set pgseek.walk = 'b'\nQ savepoint s\nQ set local pgseek.walk = 'c'\nQ rollback to s\nQ "
               "show pgseek.walk\nQ rollback\nP - set pgseek.walk = 'x'\nB - -\nE - 0\nP - show pgseek.walk\nB - -\nE "
               "- 0\nS\nP b select set_config('pgseek.walk', $1, false)\nB - b abc\nE - 0\nS\nQ " FEED,
     .server = {.rows = 5}},
    {.name = "refusals",
     .script = "Q select 1 /* pgseek a=b */\nQ begin\nP - select 1 /* pgseek a=b */\nS\nQ rollback\nQ select id from "
               "posts order by id limit 2 /* pgseek cursor=zzz */\nP a " FEED
               "\nC S a\nB - a\nS\nQ deallocate all\nP a " FEED "\nB - a\nS",
     .server = {.rows = 5}},
    {.name = "run again",
     .script = "P a " FEED "\nB - a\nE - 0\nS\nwait\nQ " FEED,
     .server = {.rows = 5, .faults = {{.where = "SELECT 1 OPERATOR", .on = 'E', .sqlstate = "22012", .times = 2}}}},
    {.name = "failing groups",
     .script = "P a " FEED "\nS\nP - select 1/0\nB - -\nE - 0\nC S a\nS\nB - a\nE - 0\nS\nQ begin\nP b " FEED
               "\nB x b\nE x 1\nS\nQ select missing from missing\nE x 1\nS\nQ rollback",
     .server = {.rows = 5}},
};

static void run_seeds(bool front, bool back, uint64_t seeds)
{
    for (size_t i = 0; i < sizeof talks / sizeof *talks; i++) {
        for (uint64_t seed = 1; seed <= seeds; seed++) {
            struct talk_cut cut = {.is_prompt = seed % 2, .back_chunk = seed % 3 ? 0 : 11};
            struct talk_result result;
            cut.front_noise = front ? seed * 0x9e3779b97f4a7c15u : 0;
            cut.back_noise = back ? seed * 0xc2b2ae3d27d4eb4fu : 0;
            talk_run(&talks[i], &cut, &result);
            if (!back)
                assert_null(memmem(result.to_client.ptr, result.to_client.len, "pgseek_k1", 9));
            talk_result_fini(&result);
        }
    }
}

/* More by hand: PGSEEK_SEEDS=100000. */
static uint64_t seeds(void)
{
    const char *text = getenv("PGSEEK_SEEDS");
    return text ? strtoull(text, NULL, 10) : 300;
}

static void a_hostile_server(void **state)
{
    (void)state;
    run_seeds(false, true, seeds());
}

static void a_hostile_client(void **state)
{
    (void)state;
    run_seeds(true, false, seeds());
}

static void both(void **state)
{
    (void)state;
    run_seeds(true, true, seeds());
}

/* A spoilt stream cut at each of its bytes, and one that comes byte by byte. */
static void hostile_bytes_may_come_in_any_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof talks / sizeof *talks; i++)
        for (uint64_t seed = 1; seed <= 4; seed++)
            for (size_t at = 0; at < 1200; at++) {
                struct talk_cut cut = {.front_noise = seed % 2 ? 0 : seed * 0x9e3779b97f4a7c15u,
                                       .back_noise = seed * 0xc2b2ae3d27d4eb4fu,
                                       .front_at = at,
                                       .back_at = at,
                                       .back_chunk = at == 0,
                                       .front_chunk = at == 0};
                struct talk_result result;
                talk_run(&talks[i], &cut, &result);
                talk_result_fini(&result);
            }
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hostile_server),
        cmocka_unit_test(a_hostile_client),
        cmocka_unit_test(both),
        cmocka_unit_test(hostile_bytes_may_come_in_any_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return talk_main(run);
}
