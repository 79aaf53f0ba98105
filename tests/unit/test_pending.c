/* test_pending.c - the queue of expected replies keeps its order while it grows, wraps and loses entries in the middle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../proxy/session/pending.h"

static void push(struct pending_queue *queue, enum pending_kind kind, enum pending_role role)
{
    struct pending *entry = pending_push(queue, kind, role);
    assert_non_null(entry);
    assert_int_equal(entry->kind, kind);
    assert_int_equal(entry->role, role);
    assert_null(entry->follow);
}

static void first_in_first_out(void **state)
{
    struct pending_queue queue = {0};
    unsigned in = 0;
    unsigned out = 0;
    (void)state;
    assert_null(pending_head(&queue));
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < round % 7 + 1; i++, in++)
            push(&queue, (enum pending_kind)(in % PENDING_KINDS), (enum pending_role)(in % 5));
        for (int i = 0; i < round % 5 && queue.count; i++, out++) {
            assert_int_equal(pending_head(&queue)->kind, out % PENDING_KINDS);
            assert_int_equal(pending_head(&queue)->role, out % 5);
            pending_pop(&queue);
        }
        assert_int_equal(queue.count, in - out);
    }
    for (uint32_t i = 0; i < queue.count; i++)
        assert_int_equal(pending_at(&queue, i)->kind, (out + i) % PENDING_KINDS);
    while (queue.count)
        pending_pop(&queue);
    assert_int_equal(queue.readies, 0);
    pending_shrink(&queue);
    assert_int_equal(queue.cap, 0);
    pending_fini(&queue);
}

static void groups_are_counted(void **state)
{
    static const enum pending_kind ends[] = {PENDING_STARTUP, PENDING_SYNC, PENDING_QUERY, PENDING_FUNCTION};
    struct pending_queue queue = {0};
    size_t found = 0;
    (void)state;
    for (unsigned kind = 0; kind < PENDING_KINDS; kind++) {
        found += pending_ends_group((enum pending_kind)kind);
        push(&queue, (enum pending_kind)kind, ROLE_CLIENT);
    }
    assert_int_equal(found, sizeof ends / sizeof *ends);
    assert_int_equal(queue.readies, found);
    for (size_t i = 0; i < found; i++)
        assert_true(pending_ends_group(ends[i]));
    pending_remove(&queue, PENDING_SYNC);
    assert_int_equal(queue.readies, found - 1);
    pending_remove(&queue, PENDING_PARSE);
    assert_int_equal(queue.readies, found - 1);
    pending_fini(&queue);
}

static void entries_in_the_middle_go(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < 20; turn++) {
        for (uint32_t gone = 0; gone < 10; gone++) {
            struct pending_queue queue = {0};
            for (uint32_t i = 0; i < turn; i++) { /* the ring starts elsewhere */
                push(&queue, PENDING_PARSE, ROLE_CLIENT);
                pending_pop(&queue);
            }
            for (unsigned i = 0; i < 10; i++)
                push(&queue, PENDING_EXECUTE, (enum pending_role)i);
            pending_remove(&queue, gone);
            assert_int_equal(queue.count, 9);
            for (uint32_t i = 0; i < 9; i++)
                assert_int_equal(pending_at(&queue, i)->role, i < gone ? i : i + 1);
            pending_fini(&queue);
        }
    }
}

static void memory_may_run_out(void **state)
{
    struct pending_queue queue = {0};
    (void)state;
    mem_fail_after(1);
    unsigned pushed = 0;
    while (pending_push(&queue, PENDING_BIND, ROLE_CLIENT))
        pushed++;
    mem_fail_after(-1);
    assert_int_equal(pushed, queue.cap);
    assert_int_equal(queue.count, pushed);
    push(&queue, PENDING_SYNC, ROLE_CLIENT);
    assert_int_equal(pending_at(&queue, pushed)->kind, PENDING_SYNC);
    pending_fini(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_in_first_out),
        cmocka_unit_test(groups_are_counted),
        cmocka_unit_test(entries_in_the_middle_go),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
