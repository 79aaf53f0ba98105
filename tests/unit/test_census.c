/* test_census.c - clients are counted under their names, up to a limit, from several threads, and forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <pthread.h>
#include <stdatomic.h>

#include <cmocka.h>

#include "../../proxy/session/census.h"

static struct census_entry *enter(struct census *census, enum census_kind kind, const char *name, int max)
{
    bool is_out_of_memory = true;
    struct census_entry *entry = census_enter(census, kind, name, max, &is_out_of_memory);
    assert_false(is_out_of_memory);
    return entry;
}

/* One step a line: who comes or goes, under which limit, and whether there is room. */
static void names_are_counted_apart(void **state)
{
    static const struct {
        enum census_kind kind;
        const char *name;
        int max;
        bool is_admitted;
    } steps[] = {
        {CENSUS_DATABASE, "shop", 2, true},  {CENSUS_DATABASE, "shop", 2, true}, {CENSUS_DATABASE, "shop", 2, false},
        {CENSUS_DATABASE, "shop", 3, true},  /* the limit was raised */
        {CENSUS_DATABASE, "shop", 1, false}, /* ... and lowered below what is there */
        {CENSUS_DATABASE, "shop", 0, true},  {CENSUS_DATABASE, "SHOP", 1, true}, {CENSUS_DATABASE, "", 1, true},
        {CENSUS_DATABASE, "", 1, false},     {CENSUS_USER, "shop", 1, true},     {CENSUS_USER, "shop", 1, false},
    };
    struct census_entry *entries[sizeof steps / sizeof *steps];
    struct census *census = census_new();
    (void)state;
    assert_non_null(census);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        entries[i] = enter(census, steps[i].kind, steps[i].name, steps[i].max);
        assert_int_equal(entries[i] != NULL, steps[i].is_admitted);
    }
    census_leave(census, entries[0]);
    assert_null(enter(census, CENSUS_DATABASE, "shop", 3)); /* three of four are left */
    assert_non_null(entries[0] = enter(census, CENSUS_DATABASE, "shop", 4));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        census_leave(census, entries[i]);
    assert_non_null(entries[0] = enter(census, CENSUS_DATABASE, "shop", 1));
    census_leave(census, entries[0]);
    census_free(census);
}

/* More names than slots: chains are kept right while they grow and shrink from either end. */
static void many_names(void **state)
{
    enum { MANY = 5000 };
    static struct census_entry *entries[MANY];
    struct census *census = census_new();
    char name[16];
    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "u%d", i);
        assert_non_null(entries[i] = enter(census, CENSUS_USER, name, 1));
    }
    for (int i = 0; i < MANY; i += 2)
        census_leave(census, entries[i]);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "u%d", i);
        struct census_entry *again = enter(census, CENSUS_USER, name, 1);
        assert_int_equal(again != NULL, i % 2 == 0);
        census_leave(census, again);
    }
    census_free(census); /* with half of them still in it */
}

static void out_of_memory(void **state)
{
    struct census *census = census_new();
    bool is_out_of_memory;
    (void)state;
    struct census_entry *first = enter(census, CENSUS_USER, "a", 0);
    mem_fail_after(0);
    assert_null(census_enter(census, CENSUS_USER, "b", 0, &is_out_of_memory));
    assert_true(is_out_of_memory);
    mem_fail_after(0);
    struct census_entry *second = enter(census, CENSUS_USER, "a", 0); /* needs none */
    mem_fail_after(-1);
    census_leave(census, first);
    census_leave(census, second);
    census_free(census);
}

#define THREADS 4
#define ROUNDS 20000
#define PLACES 3

struct crowd {
    struct census *census;
    _Atomic int inside;
    _Atomic int most;
};

static void *come_and_go(void *argument)
{
    struct crowd *crowd = argument;
    for (int i = 0; i < ROUNDS; i++) {
        bool is_out_of_memory;
        struct census_entry *entry = census_enter(crowd->census, CENSUS_DATABASE, "one", PLACES, &is_out_of_memory);
        if (!entry)
            continue;
        int inside = ++crowd->inside;
        int most = crowd->most;
        while (inside > most && !atomic_compare_exchange_weak(&crowd->most, &most, inside))
            continue;
        --crowd->inside;
        census_leave(crowd->census, entry);
    }
    return NULL;
}

static void the_limit_holds_across_threads(void **state)
{
    struct crowd crowd = {.census = census_new()};
    pthread_t threads[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &crowd), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_in_range(crowd.most, 1, PLACES);
    struct census_entry *entry = enter(crowd.census, CENSUS_DATABASE, "one", 1); /* all have left */
    assert_non_null(entry);
    census_leave(crowd.census, entry);
    census_free(crowd.census);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_counted_apart),
        cmocka_unit_test(many_names),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(the_limit_holds_across_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
