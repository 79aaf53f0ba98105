/* test_stats.c - the counter table is complete, and sums are sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/admin/stats.h"

static void every_counter_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STATS_COUNT; i++) {
        const char *name = stats_name((enum stats_counter)i);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
        assert_true(strlen(name) > 6 && strcmp(name + strlen(name) - 6, "_total") == 0);
        assert_true(strlen(stats_help((enum stats_counter)i)) > 0);
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(name, stats_name((enum stats_counter)j));
    }
}

static void sums_are_over_all_workers(void **state)
{
    static struct stats worker[3];
    static struct stats sum;
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned n = 0; n <= i; n++)
            stats_add(&worker[i], STATS_CLIENTS);
        stats_pass(&worker[i], (enum pgseek_reason)(PGSEEK_REASON_COUNT - 1));
        stats_reject(&worker[i], PGSEEK_PS006);
    }
    stats_add(NULL, STATS_CLIENTS);
    stats_pass(NULL, (enum pgseek_reason)0);
    stats_reject(NULL, PGSEEK_PS000);
    for (unsigned i = 0; i < 3; i++)
        stats_sum(&sum, &worker[i]);
    assert_int_equal(sum.counter[STATS_CLIENTS], 6);
    assert_int_equal(sum.counter[STATS_PASSES], 3);
    assert_int_equal(sum.counter[STATS_REJECTS], 3);
    assert_int_equal(sum.passed[PGSEEK_REASON_COUNT - 1], 3);
    assert_int_equal(sum.passed[0], 0);
    assert_int_equal(sum.rejected[PGSEEK_PS006], 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_counter_has_a_name_of_its_own),
        cmocka_unit_test(sums_are_over_all_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
