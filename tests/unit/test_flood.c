/* test_flood.c - a kind of line has a burst and a rate; what is above is counted and said once a second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../proxy/admin/flood.h"

#define START 1000000

/* How many of `tries` lines at one moment are written. */
static int written(struct flood *flood, enum log_kind kind, int64_t now_ms, int tries)
{
    int count = 0;
    for (int i = 0; i < tries; i++)
        count += flood_admits(flood, kind, now_ms);
    return count;
}

static void a_burst_then_a_rate(void **state)
{
    static const struct {
        int64_t after_ms;
        int tries;
        int written;
    } steps[] = {
        {0, 1000, FLOOD_BURST},
        {0, 10, 0},
        {1000 / FLOOD_RATE - 1, 10, 0},
        {1000 / FLOOD_RATE, 10, 1},
        {1000 + 1000 / FLOOD_RATE, 1000, FLOOD_RATE},
        {100000, 1000, FLOOD_BURST}, /* after a pause: no more than at first */
        {99000, 10, 0},              /* a clock that goes back gives nothing away */
    };
    struct flood flood = {0};
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        assert_int_equal(written(&flood, LOG_OF_END, START + steps[i].after_ms, steps[i].tries), steps[i].written);
    assert_int_equal(written(&flood, LOG_OF_DROP, START, 1000), FLOOD_BURST); /* each kind has its own */
}

static void what_was_left_out_is_said_once(void **state)
{
    struct flood flood = {0};
    (void)state;
    assert_true(flood_is_over(&flood));
    written(&flood, LOG_OF_ATTEMPT, START, FLOOD_BURST);
    assert_true(flood_is_over(&flood));
    written(&flood, LOG_OF_ATTEMPT, START, 7);
    assert_false(flood_is_over(&flood));
    assert_int_equal(flood_due(&flood, LOG_OF_ATTEMPT, START), 7);
    assert_int_equal(flood_due(&flood, LOG_OF_END, START), 0);
    assert_true(flood_is_over(&flood));
    written(&flood, LOG_OF_ATTEMPT, START + 1, 5);
    assert_int_equal(flood_due(&flood, LOG_OF_ATTEMPT, START + 999), 0); /* too early */
    assert_false(flood_is_over(&flood));
    assert_int_equal(flood_due(&flood, LOG_OF_ATTEMPT, START + 1000), 5);
    assert_int_equal(flood_due(&flood, LOG_OF_ATTEMPT, START + 9000), 0);
}

/* Whoever logs in gives the place of his line back: a busy site does not lose any. */
static void who_logs_in_costs_nothing(void **state)
{
    struct flood flood = {0};
    (void)state;
    for (int i = 0; i < 100 * FLOOD_BURST; i++) {
        assert_true(flood_admits(&flood, LOG_OF_ATTEMPT, START));
        flood_refund(&flood, LOG_OF_ATTEMPT);
    }
    flood_refund(&flood, LOG_OF_ATTEMPT); /* of a line that was left out */
    assert_in_range(written(&flood, LOG_OF_ATTEMPT, START + 1000, 1000), FLOOD_BURST, FLOOD_BURST + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_then_a_rate),
        cmocka_unit_test(what_was_left_out_is_said_once),
        cmocka_unit_test(who_logs_in_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
