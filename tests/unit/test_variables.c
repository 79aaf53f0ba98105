/* test_variables.c - the variables follow PostgreSQL's transactions: each case is a list of events and what is then in
 * force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/session/variables.h"

#define OPTION PGSEEK_OPT_WALK

/* Events by their letter, each with a value or name behind it where one is needed:
 *     =x set  .x set local  - reset  ~ reset all  ! startup value    b begin  c commit  r rollback  C R and chain
 *     sx savepoint  tx rollback to  ex release  u unfollowed  I settled idle  T settled in a block  f failed */
static struct variables *apply(struct variables *state, char event, const char *text, bool *failed)
{
    switch (event) {
    case '=': return variables_set(state, OPTION, text, false, failed);
    case '.': return variables_set(state, OPTION, text, true, failed);
    case '-': return variables_set(state, OPTION, NULL, false, failed);
    case '~': return variables_reset_all(state, failed);
    case '!': return variables_start(state, OPTION, text, failed);
    case 'b': return variables_begin(state, failed);
    case 'c': return variables_commit(state, false, failed);
    case 'r': return variables_rollback(state, false, failed);
    case 'C': return variables_commit(state, true, failed);
    case 'R': return variables_rollback(state, true, failed);
    case 's': return variables_savepoint(state, text, failed);
    case 't': return variables_rollback_to(state, text, failed);
    case 'e': return variables_release(state, text, failed);
    case 'u': return variables_unfollowed(state, failed);
    case 'I': return variables_settle(state, 'I', failed);
    case 'T': return variables_settle(state, 'T', failed);
    case 'f': return variables_fail(state, failed);
    default: fail_msg("no event %c", event); return state;
    }
}

static struct variables *play(const char *events, bool *failed)
{
    struct variables *state = NULL;
    for (; *events; events++) {
        char text[2] = "";
        if (*events == ' ')
            continue;
        if (strchr("=.!ste", *events))
            text[0] = events[1];
        state = apply(state, *events, text, failed);
        events += text[0] != '\0';
    }
    return state;
}

static const struct {
    const char *events;
    const char *value; /* NULL: none in force */
    bool is_uncertain;
} cases[] = {
    {"", NULL, false},
    /* outside a block */
    {"=aI", "a", false},
    {"=a=bI", "b", false},
    {".a", "a", false},
    {".aI", NULL, false},
    {"=aI.b", "b", false},
    {"=aI.bI", "a", false},
    {"=af", NULL, false},
    {"=aI=bf", "a", false},
    {"=aI=bfI", "a", false},
    {"=aI-I", NULL, false},
    {"!x", "x", false},
    {"!x=aI", "a", false},
    {"!x=aI-I", "x", false},
    {"!x=aI~I", "x", false},
    {"!x.a~I", "x", false},
    /* blocks */
    {"bT=aTcI", "a", false},
    {"bT=aTrI", NULL, false},
    {"=aIbT=bTrI", "a", false},
    {"=aIbT=bT=cTrI", "a", false},
    {"bT.aT", "a", false},
    {"bT.aTcI", NULL, false},
    {"bT=aT.bTcI", "a", false},
    {"bT.aT=bTcI", "b", false},
    {"bT.aT=bT", "b", false},
    {"bTf", NULL, false},
    {"bT=aTf", "a", false},
    {"bbT=aTrI", NULL, false},
    {"=ab=bTrI", NULL, false}, /* begun in an implicit transaction: all of it is the block's */
    {"=abTcI", "a", false},
    {"=aIbT~TrI", "a", false},
    {"bT=aTC=bTrI", "a", false},
    {"bT=aTR=bTcI", "b", false},
    {"bT=aTRT", NULL, false},
    {"rI", NULL, false},
    {"cI", NULL, false},
    {"=aIrI", "a", false},
    /* savepoints */
    {"bT=aTsxT=bTtxT", "a", false},
    {"bT=aTsxT=bTtxT=cTtxTcI", "a", false},
    {"bT=aTsxT=bTexTcI", "b", false},
    {"bT=aTsxT=bTsxT=cTtxT", "b", false},
    {"bT=aTsxT=bTsxT=cTtxTexTtxT", "a", false},
    {"bT=aTsxT=bTsyT=cTtxT", "a", false},
    {"bT=aTsxT=bTsyT=cTexTcI", "c", false},
    {"bTsxT.aTtxTcI", NULL, false},
    {"bT=aTsxT=bTrI", NULL, false},
    {"bT=aTtzT", "a", true}, /* a savepoint that nobody saw */
    /* what cannot be followed */
    {"bT=aTu", "a", true},
    {"bT=aTuTcI", "a", true},
    {"bT=aTuTrI", NULL, false},
    {"bT=aTuT=bT", "b", false},
    {"bTuT=aTtxT", "a", true},
    {"=aIbTuTcI", "a", false},
};

static void check(size_t i)
{
    bool failed = false;
    struct variables *state = play(cases[i].events, &failed);
    const char *value = variables_get(state, OPTION);
    assert_false(failed);
    if (!value != !cases[i].value || (value && strcmp(value, cases[i].value) != 0))
        fail_msg("%s: %s, not %s", cases[i].events, value ? value : "none", cases[i].value ? cases[i].value : "none");
    if (variables_uncertain(state, OPTION) != cases[i].is_uncertain)
        fail_msg("%s: %s", cases[i].events, cases[i].is_uncertain ? "certain" : "uncertain");
    variables_unref(state);
}

static void values_follow_transactions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(i);
}

/* A state never changes: undoing is going back to a pointer. */
static void states_are_immutable(void **state)
{
    bool failed = false;
    struct variables *before = variables_set(NULL, OPTION, "a", false, &failed);
    struct variables *after = variables_set(variables_ref(before), OPTION, "b", false, &failed);
    (void)state;
    assert_string_equal(variables_get(before, OPTION), "a");
    assert_string_equal(variables_get(after, OPTION), "b");
    variables_unref(after);
    assert_string_equal(variables_get(before, OPTION), "a");
    variables_unref(before);
    assert_false(failed);
}

static void a_spent_cursor_comes_back_with_its_transaction(void **state)
{
    bool failed = false;
    struct variables *v = variables_set(NULL, PGSEEK_OPT_CURSOR, "tok", false, &failed);
    (void)state;
    v = variables_settle(v, 'I', &failed);
    v = variables_begin(v, &failed);
    v = variables_spend_cursor(v, false, &failed);
    assert_string_equal(variables_get(v, PGSEEK_OPT_CURSOR), "");
    v = variables_rollback(v, false, &failed);
    assert_string_equal(variables_get(v, PGSEEK_OPT_CURSOR), "tok");
    v = variables_begin(v, &failed);
    v = variables_savepoint(v, "s", &failed);
    v = variables_spend_cursor(v, true, &failed); /* rejected: it never comes back */
    v = variables_rollback_to(v, "s", &failed);
    assert_null(variables_get(v, PGSEEK_OPT_CURSOR));
    v = variables_rollback(v, false, &failed);
    assert_null(variables_get(v, PGSEEK_OPT_CURSOR));
    variables_unref(v);
    assert_false(failed);
}

static void transactions_matter_once_a_value_was_set(void **state)
{
    bool failed = false;
    struct variables *v = variables_begin(NULL, &failed);
    (void)state;
    assert_false(variables_matter(NULL));
    assert_false(variables_matter(v));
    assert_true(variables_in_block(v));
    v = variables_set(v, OPTION, "a", true, &failed);
    assert_true(variables_matter(v));
    struct variables *other = variables_set(NULL, PGSEEK_OPT_KEY, "id", false, &failed);
    v = variables_doubt(v, other, &failed);
    assert_true(variables_uncertain(v, OPTION));
    assert_true(variables_uncertain(v, PGSEEK_OPT_KEY));
    assert_false(variables_uncertain(v, PGSEEK_OPT_TAIL));
    variables_unref(other);
    variables_unref(v);
    assert_false(failed);
}

/* Deep savepoints are freed without recursion. */
static void savepoints_may_be_many(void **state)
{
    bool failed = false;
    struct variables *v = variables_begin(NULL, &failed);
    (void)state;
    for (int i = 0; i < 20000; i++) {
        v = variables_set(v, OPTION, i % 2 ? "a" : "b", false, &failed);
        v = variables_savepoint(v, "s", &failed);
    }
    v = variables_rollback_to(v, "s", &failed);
    assert_string_equal(variables_get(v, OPTION), "a");
    v = variables_commit(v, false, &failed);
    variables_unref(v);
    assert_false(failed);
}

/* When memory is missing the state is as it was, and *failed says so. */
static void memory_may_run_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool failed = true;
        for (long n = 0; failed; n++) {
            failed = false;
            mem_fail_after(n);
            struct variables *v = play(cases[i].events, &failed);
            mem_fail_after(-1);
            variables_unref(v);
            assert_true(n < 1000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_follow_transactions),
        cmocka_unit_test(states_are_immutable),
        cmocka_unit_test(a_spent_cursor_comes_back_with_its_transaction),
        cmocka_unit_test(transactions_matter_once_a_value_was_set),
        cmocka_unit_test(savepoints_may_be_many),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
