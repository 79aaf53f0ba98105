/* test_catalog.c - side queries are whole messages under the reserved name, and their answers are believed only when
 * they fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/page/catalog.h"
#include "../../proxy/protocol/wire.h"
#include "fixture.h"

/* The types of the messages in `buf`, in order; each must be whole. */
static void types_of(const struct buf *buf, char *types, size_t size)
{
    size_t n = 0;
    for (size_t at = 0; at < buf->len; at += get_u32(buf->ptr + at + 1) + 1u) {
        assert_true(at + WIRE_HEADER <= buf->len && n + 1 < size);
        types[n++] = (char)buf->ptr[at];
    }
    types[n] = '\0';
}

static struct span message(const struct buf *buf, char type)
{
    for (size_t at = 0; at < buf->len; at += get_u32(buf->ptr + at + 1) + 1u)
        if (buf->ptr[at] == (uint8_t)type)
            return span_of(buf->ptr + at + WIRE_HEADER, get_u32(buf->ptr + at + 1) - 4);
    return span_of(NULL, 0);
}

static void the_context_is_asked(void **state)
{
    struct buf out = {0};
    struct wire_parse parse;
    struct wire_bind bind;
    char types[16];
    (void)state;
    catalog_put_context(&out, "pgseek_x");
    types_of(&out, types, sizeof types);
    assert_string_equal(types, "CPBECC");
    assert_true(wire_read_parse(message(&out, 'P'), &parse));
    assert_true(span_equal_cstr(parse.name, "pgseek_x") && span_equal_cstr(parse.sql, pgseek_context_sql));
    assert_int_equal(parse.noids, 0);
    assert_true(wire_read_bind(message(&out, 'B'), &bind));
    assert_int_equal(bind.nparams, 0);
    buf_fini(&out);
}

static void facts_are_asked_for_every_relation(void **state)
{
    static const char *const wanted[PGSEEK_ASKED_LISTS] = {
        "{\"shop\",\"\"}", "{\"booking\",\"a\\\"b\\\\c\"}", "{\"lower\"}", "{}", "{}", "{}"};
    enum pgseek_reason reason;
    struct pgseek_query *query =
        fixture_query("SELECT lower(note) FROM shop.booking, \"a\"\"b\\c\" ORDER BY id LIMIT 1", &reason);
    struct buf out = {0};
    struct wire_parse parse;
    struct wire_bind bind;
    struct wire_param param[PGSEEK_ASKED_LISTS];
    char types[16];
    (void)state;
    assert_non_null(query);
    struct pgseek_facts *facts = pgseek_facts_new(query);
    assert_non_null(facts);
    catalog_put_facts(&out, "pgseek_x", facts);
    types_of(&out, types, sizeof types);
    assert_string_equal(types, "CPBECC");
    assert_true(wire_read_parse(message(&out, 'P'), &parse) && span_equal_cstr(parse.sql, pgseek_facts_sql));
    assert_int_equal(parse.noids, PGSEEK_ASKED_LISTS);
    assert_true(wire_read_bind(message(&out, 'B'), &bind) && bind.nparams == PGSEEK_ASKED_LISTS);
    assert_true(wire_bind_params(&bind, param));
    for (size_t i = 0; i < PGSEEK_ASKED_LISTS; i++)
        assert_true(span_equal_cstr(span_of(param[i].data, (size_t)param[i].len), wanted[i]));
    buf_fini(&out);
    pgseek_facts_free(facts);
    pgseek_query_free(query);
}

/* ---- answers ---- */

static void put_row(struct buf *row, const char *const *texts, size_t count)
{
    buf_clear(row);
    buf_put_u16(row, (uint16_t)count);
    for (size_t i = 0; i < count; i++) {
        buf_put_i32(row, texts[i] ? (int32_t)strlen(texts[i]) : -1);
        if (texts[i])
            buf_put_text(row, texts[i]);
    }
}

static const char *const context_row[] = {"public", "u", NULL, "on", "", "0", "UTC"};
static const char *const facts_row[] = {"R", "1", "16384", NULL, "posts", "{public,r,false,true,true,NULL,NULL,NULL}"};

static struct pgseek_query *posts(void)
{
    enum pgseek_reason reason;
    struct pgseek_query *query = fixture_query("SELECT id FROM posts ORDER BY id LIMIT 1", &reason);
    assert_non_null(query);
    return query;
}

/* What has been answered is not asked again. */
static void a_round_asks_only_what_is_new(void **state)
{
    struct pgseek_query *query = posts();
    struct catalog catalog = {0};
    (void)state;
    assert_true(catalog_start(&catalog, query));
    assert_int_equal(pgseek_facts_asked_count(catalog.facts, PGSEEK_ASKED_RELATION), 1);
    catalog_answered(&catalog);
    assert_int_equal(pgseek_facts_asked_count(catalog.facts, PGSEEK_ASKED_RELATION), 0);
    assert_false(catalog.failed);
    catalog_fini(&catalog);
    pgseek_query_free(query);
}

static void a_context_is_taken(void **state)
{
    struct catalog catalog = {0};
    struct buf row = {0};
    (void)state;
    assert_true(catalog_start(&catalog, NULL));
    put_row(&row, context_row, PGSEEK_CTX_COUNT);
    for (int i = 0; i < 2; i++) { /* a second one takes the place of the first */
        catalog_context_row(&catalog, buf_span(&row));
        assert_false(catalog.failed);
        assert_string_equal(catalog.context.value[PGSEEK_CTX_USER], "u");
        assert_string_equal(catalog.context.value[PGSEEK_CTX_DATABASE], "");
        assert_true(context_is_known(&catalog.context));
    }
    catalog_fini(&catalog);
    assert_null(catalog.facts);
    buf_fini(&row);
}

static void rows_that_do_not_fit_are_not_believed(void **state)
{
    struct buf row = {0};
    struct catalog catalog = {0};
    struct pgseek_query *query = posts();
    (void)state;
    put_row(&row, context_row, PGSEEK_CTX_COUNT);
    for (size_t len = 0; len < row.len; len++) {
        assert_true(catalog_start(&catalog, query));
        catalog_context_row(&catalog, span_of(row.ptr, len));
        assert_true(catalog.failed);
    }
    put_row(&row, facts_row, PGSEEK_FACTS_COLUMNS);
    for (size_t len = 0; len < row.len; len++) {
        assert_true(catalog_start(&catalog, query));
        catalog_facts_row(&catalog, span_of(row.ptr, len));
        assert_true(catalog.failed);
    }
    put_row(&row, facts_row, PGSEEK_FACTS_COLUMNS - 1);
    assert_true(catalog_start(&catalog, query));
    catalog_facts_row(&catalog, buf_span(&row));
    assert_true(catalog.failed);
    catalog_fini(&catalog);
    pgseek_query_free(query);
    buf_fini(&row);
}

/* Whether so many rows of facts are taken, and one more is not. */
static void expect_limit(const char *const *texts, size_t count)
{
    struct buf row = {0};
    struct catalog catalog = {0};
    struct pgseek_query *query = posts();
    put_row(&row, texts, PGSEEK_FACTS_COLUMNS);
    assert_true(catalog_start(&catalog, query));
    for (size_t i = 0; i < count; i++)
        catalog_facts_row(&catalog, buf_span(&row));
    assert_false(catalog.failed);
    catalog_facts_row(&catalog, buf_span(&row));
    assert_true(catalog.failed);
    catalog_fini(&catalog);
    pgseek_query_free(query);
    buf_fini(&row);
}

static void too_many_rows_are_not_believed(void **state)
{
    (void)state;
    expect_limit(facts_row, CATALOG_MAX_ROWS);
}

/* A server may make each row as long as a reply can be. */
static void too_many_bytes_are_not_believed(void **state)
{
    static char name[CATALOG_MAX_BYTES / 8];
    const char *texts[PGSEEK_FACTS_COLUMNS];
    (void)state;
    memset(name, 'x', sizeof name - 1);
    memcpy(texts, facts_row, sizeof texts);
    texts[4] = name;
    expect_limit(texts, 7);
}

static void memory_may_run_out(void **state)
{
    struct buf row = {0};
    struct pgseek_query *query = posts();
    bool done = false;
    (void)state;
    put_row(&row, context_row, PGSEEK_CTX_COUNT);
    for (long n = 0; !done; n++) {
        struct catalog catalog = {0};
        mem_fail_after(n);
        if (catalog_start(&catalog, query))
            catalog_context_row(&catalog, buf_span(&row));
        mem_fail_after(-1);
        done = catalog.facts && !catalog.failed && context_is_known(&catalog.context);
        catalog_fini(&catalog);
        assert_true(n < 20);
    }
    pgseek_query_free(query);
    buf_fini(&row);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_context_is_asked),
        cmocka_unit_test(facts_are_asked_for_every_relation),
        cmocka_unit_test(a_round_asks_only_what_is_new),
        cmocka_unit_test(a_context_is_taken),
        cmocka_unit_test(rows_that_do_not_fit_are_not_believed),
        cmocka_unit_test(too_many_rows_are_not_believed),
        cmocka_unit_test(too_many_bytes_are_not_believed),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return fixture_run(run);
}
