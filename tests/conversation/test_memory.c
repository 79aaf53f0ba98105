/* test_memory.c - conversations in which the n-th allocation fails, for every n until one gets through.
 *
 * The session may end, with a FATAL if that can still be made; it must not crash, leak or give a client anything but
 * the beginning of what it would have been given. */
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

#define ONCE(text, message, state) \
    { \
        .where = text, .on = message, .sqlstate = state, .times = 1 \
    }

static const struct talk talks[] = {
    {.name = "untagged",
     .script = "P a select 1\nB x a\nD S a\nE x 1\nC S a\nS\nQ begin\nQ savepoint s\nQ rollback to s\nQ commit"},
    {.name = "simple pages",
     .script = "Q " FEED "\nwait\nQ select id, body from posts order by id limit 2 /* pgseek cursor={next} */",
     .server = {.rows = 5}},
    {.name = "extended pages",
     .script = "P a " BOUND "\nD S a\nB x a 0 2 NULL\nD P x\nE x 1\nE x 0\nS\nwait\nB - a 0 2 {next} ; 1\nE - 0\nS",
     .server = {.rows = 5}},
    {.name = "variables",
     .script = "start user=u|database=d|options=-c pgseek.walk=a\nwait\nQ begin\nQ set pgseek.walk = 'b'\nQ savepoint "
               "s\nQ set local pgseek.walk = 'c'\nQ rollback to s\nQ show pgseek.walk\nQ rollback\nP - set pgseek.walk "
               "= 'x'\nB - -\nE - 0\nP - show pgseek.walk\nB - -\nE - 0\nS\nP b select set_config('pgseek.walk', $1, "
               "false)\nB - b abc\nE - 0\nS\nQ " FEED,
     .server = {.rows = 5}},
    {.name = "refusals",
     .script = "Q select 1 /* pgseek a=b */\nQ begin\nP - select 1 /* pgseek a=b */\nS\nQ rollback\nQ select id from "
               "posts order by id limit 2 /* pgseek cursor=zzz */",
     .server = {.rows = 5}},
    {.name = "run again",
     .script = "P a " FEED "\nB - a\nE - 0\nS",
     .server = {.rows = 5, .faults = {ONCE("SELECT 1 OPERATOR", 'E', "22012")}}},
    {.name = "undone",
     .script = "P a " FEED "\nS\nwait\nP - select 1/0\nB - -\nE - 0\nC S a\nP b " FEED "\nS\nB - a\nE - 0\nS",
     .server = {.rows = 5}},
    {.name = "a probe",
     .script = "Q begin\nP - select id from posts order by id + 0 limit 2 /* pgseek */\nB - -\nE - 0\nS\nQ commit",
     .server = {.rows = 5}},
    {.name = "a refused probe",
     .script = "Q begin\nP - select id from posts order by id + 0 limit 2 /* pgseek */\nB - -\nE - 0\nS\nQ commit",
     .server = {.rows = 5, .faults = {ONCE("AS pgseek_k1", 'P', "42703")}}},
    {.name = "facts fail",
     .script = "Q begin\nP a " FEED "\nS\nB - a\nE - 0\nS",
     .server = {.rows = 5, .faults = {ONCE("unnest($3", 'E', "57014")}}},
};

/* How many bytes the two have in common at the start. */
static size_t common(struct span a, struct span b)
{
    size_t n = 0;
    while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n])
        n++;
    return n;
}

/* Whether the client has its messages up to a point and then at most a FATAL of ours, or was told that nothing could be
 * found out, or that its cursor could not be opened. */
static bool is_cut_short(const struct talk_result *result, const struct talk_result *whole)
{
    struct span got = buf_span(&result->to_client);
    if (common(got, buf_span(&whole->to_client)) == got.len)
        return true;
    return memmem(got.ptr, got.len, "C53200", 6) || memmem(got.ptr, got.len, "facts_failed", 12) ||
           memmem(got.ptr, got.len, "CPS002", 6);
}

static void fails_at_every_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof talks / sizeof *talks; i++) {
        const struct talk_cut cut = {.front_chunk = 50, .back_chunk = 200, .is_prompt = true};
        struct talk_result whole;
        bool got_through = false;
        talk_run(&talks[i], &cut, &whole);
        assert_int_equal(whole.end, TALK_OPEN);
        long n = 0;
        for (; !got_through; n++) {
            struct talk_result result;
            talk_run_failing(&talks[i], &cut, n, &result);
            got_through = !result.met_failure;
            if (!is_cut_short(&result, &whole)) {
                char *text = talk_text(&result);
                print_error("%s, allocation %ld: %s\n", talks[i].name, n, text);
                free(text);
                fail();
            }
            talk_result_fini(&result);
            assert_true(n < 20000);
        }
        talk_result_fini(&whole);
    }
}

static int run(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fails_at_every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return talk_main(run);
}
