/* page_fixture.c - makes pages for tests and reads what they put out. */
#include "page_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/protocol/wire.h"
#include "fixture.h"

static char on[] = "on", utf8[] = "UTF8", path[] = "public", user[] = "u", database[] = "d", temp[] = "0";

static struct keyring *keyring;

struct page_seal page_fixture_seal(void)
{
    return (struct page_seal){.keyring = keyring, .sign = true, .now = PAGE_FIXTURE_NOW};
}

static struct planned *plan(void)
{
    enum pgseek_reason reason;
    struct context context = {{[PGSEEK_CTX_SEARCH_PATH] = path,
                               [PGSEEK_CTX_USER] = user,
                               [PGSEEK_CTX_DATABASE] = database,
                               [PGSEEK_CTX_STRINGS] = on,
                               [PGSEEK_CTX_ENCODING] = utf8,
                               [PGSEEK_CTX_TEMP] = temp,
                               [PGSEEK_CTX_LOCALE] = temp}};
    struct description description = {.columns = mem_zalloc(sizeof *description.columns), .ncolumns = 1};
    struct pgseek_query *query = fixture_query("SELECT note FROM booking ORDER BY id LIMIT 2", &reason);
    assert_non_null(query);
    struct pgseek_facts *facts = fixture_facts(fixture_shop, query);
    description.columns[0].name = mem_strndup("note", 4);
    description.columns[0].type_oid = 25;
    const struct plan_source source = {
        .query = &query, .description = &description, .facts = facts, .context = &context};
    struct planned *planned = planned_new(&source, &reason);
    while (!planned && reason == PGSEEK_REASON_MORE) {
        fixture_answer(fixture_shop, facts);
        planned = planned_new(&source, &reason);
    }
    pgseek_facts_free(facts);
    assert_true(planned && planned->plan);
    return planned;
}

struct page *page_fixture_new(unsigned deliver)
{
    struct page *page = page_new();
    assert_non_null(page);
    page->planned = plan();
    page->deliver = deliver;
    page->limit = 2;
    page->look_ahead = true;
    page->nhidden = page->nkeys = 1;
    page->id = 7;
    return page;
}

void page_fixture_rows(const struct buf *out, const char *wanted)
{
    char text[128] = "";
    for (size_t at = 0; at < out->len; at += get_u32(out->ptr + at + 1) + 1u) {
        int32_t len;
        const uint8_t *data;
        struct reader rd = rd_init(span_of(out->ptr + at + WIRE_HEADER, get_u32(out->ptr + at + 1) - 4));
        unsigned columns = rd_u16(&rd);
        assert_int_equal(out->ptr[at], 'D');
        assert_true(wire_read_column(&rd, &len, &data));
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s%u ", (int)len, (const char *)data, columns);
    }
    assert_string_equal(text, wanted);
}

int64_t page_fixture_key(const char *token, enum cursor_direction direction)
{
    struct cursor cursor;
    struct pgseek_error error;
    assert_true(cursor_open(keyring, span_cstr(token), PAGE_FIXTURE_NOW, 0, &cursor, &error));
    assert_int_equal(cursor.direction, direction);
    assert_int_equal(cursor.issued, PAGE_FIXTURE_NOW);
    int64_t key = cursor.nvalues ? (int64_t)get_u32(cursor.value[0].data + 4) : -1;
    cursor_fini(&cursor);
    return key;
}

int page_fixture_run(int (*tests)(void))
{
    keyring = keyring_ephemeral();
    int failed = fixture_run(tests);
    keyring_free(keyring);
    return failed;
}
