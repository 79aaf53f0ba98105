/* test_planned.c - planned statements: what is made once from a plan, and the cache that keeps the last used ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/page/planned.h"
#include "fixture.h"

static char on[] = "on", utf8[] = "UTF8", latin[] = "LATIN1", path[] = "public", user[] = "u", database[] = "d",
            temp[] = "0", locale[] = "UTC";

static struct context context_of(char *encoding)
{
    return (struct context){{[PGSEEK_CTX_SEARCH_PATH] = path,
                             [PGSEEK_CTX_USER] = user,
                             [PGSEEK_CTX_DATABASE] = database,
                             [PGSEEK_CTX_STRINGS] = on,
                             [PGSEEK_CTX_ENCODING] = encoding,
                             [PGSEEK_CTX_TEMP] = temp,
                             [PGSEEK_CTX_LOCALE] = locale}};
}

/* A description with owned names, as a session has it. */
static void describe(struct description *description, const char *const *names, size_t count)
{
    *description = (struct description){.columns = mem_zalloc(count * sizeof *description->columns)};
    assert_non_null(description->columns);
    for (; description->ncolumns < count; description->ncolumns++) {
        struct pgseek_column *column = &description->columns[description->ncolumns];
        column->name = mem_strndup(names[description->ncolumns], strlen(names[description->ncolumns]));
        column->type_oid = 20;
        column->typmod = -1;
        assert_non_null(column->name);
    }
}

/* Makes it in as many rounds as the facts want. */
static struct planned *make(const struct plan_source *source, enum pgseek_reason *reason)
{
    struct planned *planned = planned_new(source, reason);
    while (!planned && *reason == PGSEEK_REASON_MORE) {
        assert_non_null(*source->query); /* nothing is taken */
        fixture_answer(fixture_shop, source->facts);
        planned = planned_new(source, reason);
    }
    return planned;
}

static struct planned *plan(const char *sql, char *encoding)
{
    static const char *const names[] = {"id"};
    enum pgseek_reason reason;
    struct context context = context_of(encoding);
    struct description description;
    struct pgseek_query *query = fixture_query(sql, &reason);
    assert_non_null(query);
    struct pgseek_facts *facts = fixture_facts(fixture_shop, query);
    describe(&description, names, 1);
    const struct plan_source source = {
        .query = &query, .description = &description, .facts = facts, .context = &context};
    struct planned *planned = make(&source, &reason);
    assert_null(query); /* taken */
    assert_null(description.columns);
    pgseek_facts_free(facts);
    return planned;
}

#define MUCH ((size_t)64 << 20)

#define BY_ID "SELECT id FROM booking ORDER BY id LIMIT 2"

static void a_plan_has_all_that_is_made_once(void **state)
{
    struct planned *planned = plan(BY_ID, utf8);
    struct pgseek_shape_key first = {.seek = PGSEEK_SEEK_FIRST, .look_ahead = true};
    struct pgseek_shape_key after = {.seek = PGSEEK_SEEK_AFTER, .look_ahead = true};
    enum pgseek_reason reason;
    (void)state;
    assert_non_null(planned);
    assert_non_null(planned->plan);
    assert_int_equal(planned->reason, PGSEEK_REASON_NONE);
    assert_non_null(strstr(planned->guard, "OPERATOR(pg_catalog./)"));
    struct planned_shape *shape = planned_shape(planned, &first, &reason);
    assert_non_null(shape);
    struct planned_shape *again = planned_shape(planned, &first, &reason);
    struct planned_shape *other = planned_shape(planned, &after, &reason);
    assert_ptr_equal(again, shape);
    assert_ptr_not_equal(other, shape);
    planned_shape_unref(again);
    planned_shape_unref(other);
    planned_unref(planned_ref(planned));
    planned_unref(planned);
    assert_non_null(strstr(shape->shape->sql, "pgseek_k1")); /* outlives its plan */
    planned_shape_unref(shape);
    planned_shape_unref(NULL);
}

static bool is_listed(const struct planned *planned, const struct planned_shape *shape)
{
    for (const struct planned_shape *at = planned->shapes; at; at = at->next)
        if (at == shape)
            return true;
    return false;
}

static void use(struct planned *planned, uint32_t null_mask)
{
    enum pgseek_reason reason;
    struct pgseek_shape_key key = {.seek = PGSEEK_SEEK_AFTER, .null_mask = null_mask};
    struct planned_shape *shape = planned_shape(planned, &key, &reason);
    assert_non_null(shape);
    assert_ptr_equal(planned->shapes, shape);
    planned_shape_unref(shape);
}

/* Somebody walks through all masks: the plan keeps the last used shapes, and who holds one keeps it. */
static void shapes_are_bounded(void **state)
{
    struct planned *planned = plan("SELECT id FROM booking ORDER BY title, id LIMIT 2", utf8);
    enum pgseek_reason reason;
    struct pgseek_shape_key key = {.seek = PGSEEK_SEEK_FIRST};
    (void)state;
    struct planned_shape *held = planned_shape(planned, &key, &reason);
    for (uint32_t mask = 0; mask < PLANNED_MAX_SHAPES - 1; mask++)
        use(planned, mask << 2);
    assert_true(is_listed(planned, held) && !held->is_dropped);
    use(planned, 0); /* used again: the newest, and none is dropped for it */
    assert_true(is_listed(planned, held));
    use(planned, 1u << 15);
    assert_true(!is_listed(planned, held) && held->is_dropped);
    for (uint32_t mask = 0; mask < 200; mask++) {
        use(planned, mask << 2);
        use(planned, 0);
    }
    size_t count = 0;
    for (const struct planned_shape *at = planned->shapes; at; at = at->next)
        count++;
    assert_int_equal(count, PLANNED_MAX_SHAPES);
    assert_non_null(strstr(held->shape->sql, "ORDER BY"));
    planned_shape_unref(held);
    planned_unref(planned);
}

static void a_reason_is_kept_like_a_plan(void **state)
{
    struct planned *planned = plan("SELECT id FROM booking ORDER BY random() LIMIT 2", utf8);
    (void)state;
    assert_non_null(planned);
    assert_null(planned->plan);
    assert_int_not_equal(planned->reason, PGSEEK_REASON_NONE);
    planned_unref(planned);
}

/* What a cursor is bound to: the statement, the order, and the encoding where a key is text. */
static void parts_tell_statements_apart(void **state)
{
    static const struct {
        const char *a, *b;
        char *encoding;
        bool same_query, same_sort;
    } cases[] = {
        {BY_ID, BY_ID, utf8, true, true},
        {BY_ID, BY_ID, latin, true, true},
        {BY_ID, "SELECT id FROM booking ORDER BY id LIMIT 7", utf8, true, true},
        {BY_ID, "SELECT id FROM booking ORDER BY id DESC LIMIT 2", utf8, false, false},
        {BY_ID, "SELECT id FROM booking WHERE venue_id = 1 ORDER BY id LIMIT 2", utf8, false, true},
        {"SELECT id FROM booking ORDER BY title, id LIMIT 2", "SELECT id FROM booking ORDER BY title, id LIMIT 2",
         latin, true, false},
        /* the same bytes are other characters */
        {"SELECT id FROM booking WHERE title = '\303\251' ORDER BY id LIMIT 2",
         "SELECT id FROM booking WHERE title = '\303\251' ORDER BY id LIMIT 2", latin, false, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct planned *a = plan(cases[i].a, utf8);
        struct planned *b = plan(cases[i].b, cases[i].encoding);
        assert_true(a && b && a->plan && b->plan);
        assert_int_equal(cursor_part_equal(a->query_part, b->query_part), cases[i].same_query);
        assert_int_equal(cursor_part_equal(a->sort_part, b->sort_part), cases[i].same_sort);
        planned_unref(a);
        planned_unref(b);
    }
}

/* ---- cache ---- */

static void make_key(struct buf *key, int i)
{
    char sql[32];
    struct context context = context_of(utf8);
    snprintf(sql, sizeof sql, "select %d", i);
    plan_cache_key(key, &context, NULL, NULL, 0, span_cstr(sql));
    assert_false(key->failed);
}

static struct planned *blank(void)
{
    struct planned *planned = mem_zalloc(sizeof *planned);
    assert_non_null(planned);
    planned->refs = 1;
    return planned;
}

static bool is_kept(struct plan_cache *cache, int i)
{
    struct buf key = {0};
    make_key(&key, i);
    struct planned *planned = plan_cache_find(cache, buf_span(&key));
    planned_unref(planned);
    buf_fini(&key);
    return planned != NULL;
}

static void put(struct plan_cache *cache, int i)
{
    struct buf key = {0};
    struct planned *planned = blank();
    make_key(&key, i);
    plan_cache_put(cache, planned, buf_span(&key));
    planned_unref(planned);
    buf_fini(&key);
}

static void the_last_used_ones_stay(void **state)
{
    struct plan_cache *cache = plan_cache_new(3, MUCH);
    (void)state;
    for (int i = 0; i < 3; i++)
        put(cache, i);
    assert_true(is_kept(cache, 0)); /* used: 1 is the oldest now */
    put(cache, 3);
    assert_true(is_kept(cache, 0) && !is_kept(cache, 1) && is_kept(cache, 2) && is_kept(cache, 3));
    for (int i = 10; i < 300; i++)
        put(cache, i);
    assert_true(is_kept(cache, 299) && is_kept(cache, 298) && is_kept(cache, 297) && !is_kept(cache, 296));
    plan_cache_free(cache);
    plan_cache_free(NULL);
}

static void a_second_plan_takes_the_place_of_the_first(void **state)
{
    struct plan_cache *cache = plan_cache_new(3, MUCH);
    struct buf key = {0};
    struct planned *first = blank();
    struct planned *second = blank();
    (void)state;
    make_key(&key, 1);
    plan_cache_put(cache, first, buf_span(&key));
    plan_cache_put(cache, second, buf_span(&key));
    struct planned *found = plan_cache_find(cache, buf_span(&key));
    assert_ptr_equal(found, second);
    planned_unref(found);
    plan_cache_drop(cache, first); /* not there any more: nothing happens */
    assert_true(is_kept(cache, 1));
    plan_cache_drop(cache, second);
    plan_cache_drop(cache, second);
    assert_false(is_kept(cache, 1));
    assert_int_equal(first->refs, 1);
    planned_unref(first);
    planned_unref(second);
    buf_fini(&key);
    plan_cache_free(cache);
}

static void a_cache_of_none_keeps_none(void **state)
{
    struct plan_cache *cache = plan_cache_new(0, MUCH);
    (void)state;
    put(cache, 1);
    assert_false(is_kept(cache, 1));
    plan_cache_free(cache);
}

/* A statement with a list of so many numbers. */
static struct planned *large(size_t numbers)
{
    static char sql[65536];
    char *at = sql + snprintf(sql, sizeof sql, "SELECT id FROM booking WHERE id IN (0");
    for (size_t i = 0; i < numbers; i++)
        at += snprintf(at, 8, ", %zu", i % 1000);
    snprintf(at, 64, ") ORDER BY id LIMIT 2");
    return plan(sql, utf8);
}

static struct planned *put_large(struct plan_cache *cache, int i, size_t numbers)
{
    struct buf key = {0};
    struct planned *planned = large(numbers);
    make_key(&key, i);
    plan_cache_put(cache, planned, buf_span(&key));
    buf_fini(&key);
    return planned;
}

/* Large statements: fewer of them stay than their number alone would let, and one that grows makes others go. */
static void their_memory_is_bounded(void **state)
{
    struct plan_cache *cache = plan_cache_new(1000, (size_t)1 << 20);
    struct planned *small = put_large(cache, 0, 1);
    (void)state;
    assert_true(small->bytes > 1000 && small->bytes < 32768);
    for (int i = 1; i < 20; i++)
        planned_unref(put_large(cache, i, 1000));
    assert_false(is_kept(cache, 0)); /* the plan itself lives on: this test holds it */
    assert_int_equal(small->bytes, 0);
    assert_true(is_kept(cache, 19) && !is_kept(cache, 1));
    planned_unref(small);
    for (int i = 20; i < 60; i++)
        put(cache, i);
    assert_true(is_kept(cache, 59) && is_kept(cache, 20) && is_kept(cache, 19));

    struct planned *grows = put_large(cache, 100, 1000);
    size_t before = grows->bytes;
    for (uint32_t mask = 0; mask < PLANNED_MAX_SHAPES; mask++)
        use(grows, mask << 2);
    assert_true(grows->bytes > before + PLANNED_MAX_SHAPES * 4000);
    assert_false(is_kept(cache, 19));
    assert_true(is_kept(cache, 100));
    planned_unref(grows);

    struct planned *huge = put_large(cache, 101, 3900); /* more than all that there is: kept by nobody but its user */
    for (uint32_t mask = 0; mask < PLANNED_MAX_SHAPES; mask++)
        use(huge, mask << 2);
    assert_false(is_kept(cache, 101));
    assert_int_equal(huge->refs, 1);
    planned_unref(huge);
    plan_cache_free(cache);
}

/* Whatever changes what a plan means is part of the key. */
static void keys_differ(void **state)
{
    static const uint32_t oids[] = {20, 23};
    struct context utf = context_of(utf8);
    struct context other = context_of(latin);
    struct buf key[6] = {{0}};
    (void)state;
    plan_cache_key(&key[0], &utf, NULL, NULL, 0, span_cstr("select 1"));
    plan_cache_key(&key[1], &other, NULL, NULL, 0, span_cstr("select 1"));
    plan_cache_key(&key[2], &utf, "id", NULL, 0, span_cstr("select 1"));
    plan_cache_key(&key[3], &utf, NULL, oids, 1, span_cstr("select 1"));
    plan_cache_key(&key[4], &utf, NULL, oids, 2, span_cstr("select 1"));
    plan_cache_key(&key[5], &utf, NULL, NULL, 0, span_cstr("select 2"));
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < 6; j++)
            assert_int_equal(span_equal(buf_span(&key[i]), buf_span(&key[j])), i == j);
    for (size_t i = 0; i < 6; i++)
        buf_fini(&key[i]);
}

static void memory_may_run_out(void **state)
{
    bool done = false;
    (void)state;
    for (long n = 0; !done; n++) {
        static const char *const names[] = {"id"};
        enum pgseek_reason reason = PGSEEK_REASON_NONE;
        struct context context = context_of(utf8);
        struct description description;
        struct pgseek_query *query = fixture_query(BY_ID, &reason);
        struct pgseek_facts *facts = fixture_facts(fixture_shop, query);
        describe(&description, names, 1);
        mem_fail_after(n);
        const struct plan_source source = {
            .query = &query, .description = &description, .facts = facts, .context = &context};
        struct planned *planned = make(&source, &reason);
        mem_fail_after(-1);
        done = planned && planned->plan;
        planned_unref(planned);
        pgseek_query_free(query);
        description_fini(&description);
        pgseek_facts_free(facts);
        assert_true(n < 100);
    }
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_has_all_that_is_made_once),
        cmocka_unit_test(shapes_are_bounded),
        cmocka_unit_test(a_reason_is_kept_like_a_plan),
        cmocka_unit_test(parts_tell_statements_apart),
        cmocka_unit_test(the_last_used_ones_stay),
        cmocka_unit_test(a_second_plan_takes_the_place_of_the_first),
        cmocka_unit_test(a_cache_of_none_keeps_none),
        cmocka_unit_test(their_memory_is_bounded),
        cmocka_unit_test(keys_differ),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return fixture_run(run);
}
