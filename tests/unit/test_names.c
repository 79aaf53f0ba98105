/* test_names.c - a map of names keeps one reference to each object, through growth, replacement and removal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../proxy/session/names.h"

#define MANY 300

struct thing {
    struct object object;
    int *alive;
};

static void thing_free(struct object *object)
{
    struct thing *thing = (struct thing *)object;
    --*thing->alive;
    free(thing);
}

static struct object *thing_new(int *alive)
{
    struct thing *thing = calloc(1, sizeof *thing);
    assert_non_null(thing);
    thing->object = (struct object){.refs = 1, .free = thing_free};
    thing->alive = alive;
    ++*alive;
    return &thing->object;
}

static struct span name_of(int i, char name[16])
{
    name[0] = '\0'; /* the first is the unnamed one */
    if (i)
        snprintf(name, 16, "s%d", i);
    return span_cstr(name);
}

static void names_come_and_go(void **state)
{
    struct names names = {0};
    struct object *object[MANY];
    char name[16];
    int alive = 0;
    (void)state;
    assert_null(names_get(&names, span_cstr("")));
    for (int i = 0; i < MANY; i++) {
        object[i] = thing_new(&alive);
        assert_true(names_put(&names, name_of(i, name), object[i], NULL));
    }
    assert_int_equal(names.count, MANY);
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(names_get(&names, name_of(i, name)), object[i]);
    assert_null(names_get(&names, span_cstr("s300")));
    assert_null(names_get(&names, span_of("s1\0x", 4)));
    for (int i = 0; i < MANY; i += 2)
        assert_true(names_put(&names, name_of(i, name), NULL, NULL));
    assert_int_equal(alive, MANY / 2);
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(names_get(&names, name_of(i, name)), i % 2 ? object[i] : NULL);
    names_fini(&names);
    assert_int_equal(alive, 0);
}

/* The reference of what was there before goes to whoever asks for it. */
static void what_was_there_is_handed_over(void **state)
{
    struct names names = {0};
    struct object *before;
    int alive = 0;
    struct object *first = thing_new(&alive);
    struct object *second = thing_new(&alive);
    (void)state;
    assert_true(names_put(&names, span_cstr("a"), first, &before));
    assert_null(before);
    assert_true(names_put(&names, span_cstr("a"), second, &before));
    assert_ptr_equal(before, first);
    assert_int_equal(names.count, 1);
    object_unref(before);
    assert_int_equal(alive, 1);
    assert_true(names_put(&names, span_cstr("a"), NULL, &before));
    assert_ptr_equal(before, second);
    assert_int_equal(names.count, 0);
    assert_true(names_put(&names, span_cstr("a"), NULL, &before));
    assert_null(before);
    object_unref(object_ref(second));
    object_unref(second);
    object_unref(object_ref(NULL));
    assert_int_equal(alive, 0);
    names_fini(&names);
}

static void count_one(void *arg, struct span name, struct object *object)
{
    size_t *sum = arg;
    assert_non_null(object);
    *sum += 1 + name.len;
}

static void each_is_visited_once(void **state)
{
    struct names names = {0};
    size_t sum = 0;
    int alive = 0;
    (void)state;
    names_each(&names, count_one, &sum);
    assert_int_equal(sum, 0);
    assert_true(names_put(&names, span_cstr(""), thing_new(&alive), NULL));
    assert_true(names_put(&names, span_cstr("ab"), thing_new(&alive), NULL));
    names_each(&names, count_one, &sum);
    assert_int_equal(sum, 4);
    names_clear(&names);
    assert_int_equal(alive, 0);
    assert_int_equal(names.count, 0);
    assert_true(names_put(&names, span_cstr("x"), thing_new(&alive), NULL));
    names_fini(&names);
    assert_int_equal(alive, 0);
}

/* When memory is missing nothing has changed, and the reference stays with the caller. */
static void memory_may_run_out(void **state)
{
    (void)state;
    for (long n = 0, done = 0; !done; n++) {
        struct names names = {0};
        char name[16];
        int alive = 0;
        int i = 0;
        mem_fail_after(n);
        for (; i < 40; i++) {
            struct object *object = thing_new(&alive);
            if (names_put(&names, name_of(i, name), object, NULL))
                continue;
            object_unref(object);
            break;
        }
        mem_fail_after(-1);
        assert_int_equal(names.count, i);
        assert_int_equal(alive, i);
        done = i == 40;
        names_fini(&names);
        assert_int_equal(alive, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_come_and_go),
        cmocka_unit_test(what_was_there_is_handed_over),
        cmocka_unit_test(each_is_visited_once),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
