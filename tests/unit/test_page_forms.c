/* test_page_forms.c - pages whose rows are not the page's own: a level inside, an explained page, another description.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/protocol/wire.h"
#include "page_fixture.h"

enum { NO_KEY = -2 };

/* ---- rows around an inner level ---- */

static struct page *inner_page(unsigned deliver)
{
    struct page *page = page_fixture_new(deliver);
    page->rows = PGSEEK_ROWS_INNER;
    page->nhidden = 4; /* mark, number of rows, first key, last key */
    return page;
}

static void put_key(struct buf *row, int64_t key)
{
    buf_put_i32(row, key == NO_KEY ? -1 : 8);
    if (key != NO_KEY)
        buf_put_u64(row, (uint64_t)key);
}

/* A row; without a note it is not the client's. */
static void make_row(struct buf *row, const char *note, int64_t level_rows, int64_t first, int64_t last)
{
    buf_clear(row);
    buf_put_u16(row, 5);
    buf_put_i32(row, note ? (int32_t)strlen(note) : -1);
    buf_put_text(row, note ? note : "");
    put_key(row, note ? 1 : NO_KEY); /* whatever is not NULL */
    put_key(row, level_rows);
    put_key(row, first);
    put_key(row, last);
}

static bool put(struct page *page, const char *note, int64_t level_rows, int64_t first, int64_t last, struct buf *out)
{
    struct buf row = {0};
    struct page_seal seal = page_fixture_seal();
    make_row(&row, note, level_rows, first, last);
    bool ok = page_put_row(page, &seal, buf_span(&row), out);
    buf_fini(&row);
    return ok;
}

static int64_t key_or_none(const char *token, enum cursor_direction direction)
{
    return *token ? page_fixture_key(token, direction) : NO_KEY;
}

/* The level has two rows at most; the rows around it may be any number. */
static void a_level_has_its_own_ends(void **state)
{
    static const struct {
        const char *name;
        int outer;              /* rows of the client; 0: one comes that is not the client's */
        int64_t level;          /* rows of the level with the look-ahead */
        int64_t limit;          /* 2, or what is tried */
        bool backward, bounded; /* of the page */
        bool no_look_ahead, tail;
        const char *has_more, *has_prev;
        int64_t next, prev;
    } cases[] = {
        {"first, more", 5, 3, 2, .has_more = "on", .has_prev = "off", .next = 11, .prev = NO_KEY},
        {"first, all", 3, 2, 2, .has_more = "off", .has_prev = "off", .next = NO_KEY, .prev = NO_KEY},
        {"first, all, tail", 3, 2, 2, .tail = true, .has_more = "off", .has_prev = "off", .next = 11, .prev = NO_KEY},
        {"middle", 1, 3, 2, .bounded = true, .has_more = "on", .has_prev = "on", .next = 11, .prev = 10},
        {"the outside drops the whole page", 0, 3, 2, .bounded = true, .has_more = "on", .has_prev = "on", 11, 10},
        {"last", 2, 1, 2, .bounded = true, .has_more = "off", .has_prev = "on", .next = NO_KEY, .prev = 10},
        {"behind the last", 0, 0, 2, .bounded = true, .has_more = "off", .has_prev = "on", NO_KEY, -1},
        {"empty", 0, 0, 2, .has_more = "off", .has_prev = "off", .next = NO_KEY, .prev = NO_KEY},
        {"empty, tail", 0, 0, 2, .tail = true, .has_more = "off", .has_prev = "off", .next = -1, .prev = NO_KEY},
        {"back, more before", 4, 3, 2, .backward = true, .bounded = true, .has_more = "on", .has_prev = "on", 11, 10},
        {"back, at the start", 4, 2, 2, .backward = true, .bounded = true, .has_more = "on", .has_prev = "off", 11,
         NO_KEY},
        {"back, none", 0, 0, 2, .backward = true, .bounded = true, .has_more = "on", .has_prev = "off", -1, NO_KEY},
        {"last page, more before", 4, 3, 2, .backward = true, .has_more = "off", .has_prev = "on", NO_KEY, 10},
        {"no limit", 4, 9, -1, .no_look_ahead = true, .has_more = "off", .has_prev = "off", NO_KEY, NO_KEY},
        {"limit 0", 0, 1, 0, .has_more = "on", .has_prev = "off", .next = -1, .prev = NO_KEY},
        {"locked, full", 2, 2, 2, .no_look_ahead = true, .has_more = "on", .has_prev = "off", 11, NO_KEY},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct page *page = inner_page(PGSEEK_DELIVER_STATUS);
        struct page_seal seal = page_fixture_seal();
        struct page_report report;
        struct buf out = {0};
        int64_t first = cases[i].level ? 10 : NO_KEY;
        int64_t last = cases[i].level ? 11 : NO_KEY;
        page->limit = cases[i].limit;
        page->backward = cases[i].backward;
        page->bounded = cases[i].bounded;
        page->tail = cases[i].tail;
        page->look_ahead = !cases[i].no_look_ahead;
        for (int row = 0; row < cases[i].outer; row++)
            assert_true(put(page, "x", cases[i].level, first, last, &out));
        if (!cases[i].outer)
            assert_true(put(page, NULL, cases[i].level, first, last, &out));
        assert_int_equal(page->run, cases[i].outer);
        assert_int_equal(out.len > 0, cases[i].outer > 0);
        assert_true(page_end_run(page, true, &out));
        assert_true(page_report(page, &seal, false, &report));
        if (strcmp(report.value[PAGE_HAS_MORE], cases[i].has_more) != 0 ||
            strcmp(report.value[PAGE_HAS_PREV], cases[i].has_prev) != 0)
            fail_msg("%s: more %s, prev %s", cases[i].name, report.value[PAGE_HAS_MORE], report.value[PAGE_HAS_PREV]);
        int64_t next = key_or_none(report.value[PAGE_NEXT_CURSOR], CURSOR_FORWARD);
        int64_t prev = key_or_none(report.value[PAGE_PREV_CURSOR], CURSOR_BACKWARD);
        if (next != cases[i].next || prev != cases[i].prev)
            fail_msg("%s: next %d, prev %d", cases[i].name, (int)next, (int)prev);
        assert_int_equal(strtol(report.value[PAGE_ROWS], NULL, 10), cases[i].outer);
        page_report_fini(&report);
        page_unref(page);
        buf_fini(&out);
    }
}

/* The row that is not the client's is alone: whoever fetches it by one has fetched all. */
static void a_dropped_row_ends_the_run(void **state)
{
    struct page *page = inner_page(PGSEEK_DELIVER_STATUS);
    struct buf out = {0};
    (void)state;
    assert_true(put(page, NULL, 3, 10, 11, &out));
    assert_true(page_end_run(page, false, &out)); /* PortalSuspended: the client is told CommandComplete */
    assert_int_equal(page->run, 0);
    assert_int_equal(out.len, 0);
    page_unref(page);
    buf_fini(&out);
}

/* In the middle of the outer rows no position is told; the last run tells all. */
static void a_suspended_level_has_no_cursor(void **state)
{
    struct page *page = inner_page(PGSEEK_DELIVER_STATUS);
    struct page_seal seal = page_fixture_seal();
    struct page_report report;
    struct buf out = {0};
    (void)state;
    page->bounded = true;
    assert_true(put(page, "a", 2, 10, 11, &out));
    assert_false(page_end_run(page, false, &out));
    assert_true(page_report(page, &seal, true, &report));
    assert_string_equal(report.value[PAGE_HAS_MORE], "on");
    assert_string_equal(report.value[PAGE_ROWS], "1");
    assert_string_equal(report.value[PAGE_NEXT_CURSOR], "");
    assert_string_equal(report.value[PAGE_PREV_CURSOR], "");
    assert_false(report.is_too_long); /* nobody is warned */
    page_report_fini(&report);
    page_start_run(page);
    assert_true(put(page, "b", 2, 10, 11, &out));
    assert_true(page_end_run(page, true, &out));
    assert_true(page_report(page, &seal, false, &report));
    assert_string_equal(report.value[PAGE_HAS_MORE], "off");
    assert_string_equal(report.value[PAGE_ROWS], "2");
    assert_int_equal(page_fixture_key(report.value[PAGE_PREV_CURSOR], CURSOR_BACKWARD), 10);
    page_fixture_rows(&out, "a1 b1 ");
    page_report_fini(&report);
    page_unref(page);
    buf_fini(&out);
}

/* The last two columns of the nth row: a NULL cursor, and the flag. */
static char flag_behind_null(const struct buf *out, size_t nth)
{
    size_t at = 0;
    for (; nth > 0; nth--)
        at += get_u32(out->ptr + at + 1) + 1u;
    size_t end = at + get_u32(out->ptr + at + 1) + 1u;
    assert_int_equal(get_u32(out->ptr + end - 9), UINT32_MAX);
    assert_int_equal(get_u32(out->ptr + end - 5), 1);
    return (char)out->ptr[end - 1];
}

static void outer_rows_have_no_cursor_of_their_own(void **state)
{
    (void)state;
    for (int64_t level = 2; level <= 3; level++) {
        struct page *page = inner_page(PGSEEK_DELIVER_COLUMNS);
        struct buf out = {0};
        assert_true(put(page, "a", level, 10, 11, &out) && put(page, "b", level, 10, 11, &out));
        page_fixture_rows(&out, "a3 b3 "); /* not held: all is known from the first row on */
        for (size_t row = 0; row < 2; row++)
            assert_int_equal(flag_behind_null(&out, row), level > 2 ? 't' : 'f');
        page_unref(page);
        buf_fini(&out);
    }
}

static void bad_levels_are_refused(void **state)
{
    struct buf row = {0};
    struct buf out = {0};
    struct page_seal seal = page_fixture_seal();
    (void)state;
    make_row(&row, "note", 2, 10, 11);
    for (size_t len = 0; len < row.len; len++) {
        struct page *page = inner_page(PGSEEK_DELIVER_STATUS);
        uint8_t *cut = malloc(len ? len : 1);
        memcpy(cut, row.ptr, len);
        assert_false(page_put_row(page, &seal, span_of(cut, len), &out));
        free(cut);
        page_unref(page);
    }
    struct page *page = inner_page(PGSEEK_DELIVER_STATUS);
    assert_false(put(page, "note", -5, 10, 11, &out));     /* a negative number of rows */
    assert_false(put(page, "note", NO_KEY, 10, 11, &out)); /* NULL */
    assert_int_equal(out.len, 0);
    page_unref(page);
    buf_fini(&row);
    buf_fini(&out);
}

/* ---- rows that pass as they are ---- */

static void plain_rows_make_no_cursors(void **state)
{
    struct page *page = page_fixture_new(PGSEEK_DELIVER_STATUS);
    struct page_seal seal = page_fixture_seal();
    struct page_report report;
    (void)state;
    page->rows = PGSEEK_ROWS_PLAIN;
    page->nhidden = 0;
    page->action = PAGE_KEYSET;
    page->bounded = page->tail = true;
    assert_false(page_filters(page));
    assert_false(page_makes_cursors(page));
    assert_true(page_report(page, &seal, false, &report));
    assert_string_equal(report.value[PAGE_ACTION], "keyset");
    assert_string_equal(report.value[PAGE_HAS_MORE], "off");
    assert_string_equal(report.value[PAGE_HAS_PREV], "off");
    assert_string_equal(report.value[PAGE_NEXT_CURSOR], "");
    assert_string_equal(report.value[PAGE_PREV_CURSOR], "");
    assert_string_equal(report.value[PAGE_ROWS], "");
    page_report_fini(&report);
    page_unref(page);
}

/* deliver=columns was promised when the statement was described. */
static void plain_rows_have_the_columns_all_the_same(void **state)
{
    static const char row[] = "\0\1\0\0\0\4plan";
    struct page *page = page_fixture_new(PGSEEK_DELIVER_COLUMNS);
    struct page_seal seal = page_fixture_seal();
    struct buf out = {0};
    (void)state;
    page->rows = PGSEEK_ROWS_PLAIN;
    page->nhidden = 0;
    assert_true(page_put_row(page, &seal, span_of(row, sizeof row - 1), &out));
    page_fixture_rows(&out, "plan3 ");
    assert_memory_equal(out.ptr + out.len - 8, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    page_unref(page);
    buf_fini(&out);
}

/* ---- backward pages with columns ---- */

static void the_flag_tells_what_follows_in_display_order(void **state)
{
    static const char first[] = "\0\2\0\0\0\1a\0\0\0\10\0\0\0\0\0\0\0\1";
    static const char second[] = "\0\2\0\0\0\1b\0\0\0\10\0\0\0\0\0\0\0\2";
    (void)state;
    for (int bounded = 0; bounded < 2; bounded++) { /* rows before a cursor, and the last page */
        struct page *page = page_fixture_new(PGSEEK_DELIVER_COLUMNS);
        struct page_seal seal = page_fixture_seal();
        struct buf out = {0};
        page->backward = true;
        page->bounded = bounded;
        assert_true(page_put_row(page, &seal, span_of(first, sizeof first - 1), &out) &&
                    page_put_row(page, &seal, span_of(second, sizeof second - 1), &out) &&
                    page_put_row(page, &seal, span_of(first, sizeof first - 1), &out)); /* the look-ahead row */
        assert_true(page_end_run(page, true, &out));
        page_fixture_rows(&out, "a3 b3 ");
        assert_int_equal(out.ptr[get_u32(out.ptr + 1)], 't');
        assert_int_equal(out.ptr[out.len - 1], bounded ? 't' : 'f');
        page_unref(page);
        buf_fini(&out);
    }
}

/* ---- a text that is described otherwise ---- */

#define FIELD(name, table, attnum, type, typmod) name "\0\0\0" table "\0" attnum "\0\0\0" type "\xff\xff" typmod "\0\1"
#define NOTE FIELD("note", "\x40\0", "\3", "\x19", "\0\0\0\x7")
#define ANONYMOUS FIELD("c1", "\0\0", "\0", "\x19", "\0\0\0\x7")
#define HIDDEN FIELD("pgseek_k1", "\0\0", "\0", "\x14", "\xff\xff\xff\xff")

static void the_original_is_described(void **state)
{
    static const struct {
        const char *said;
        size_t said_len;
        size_t names; /* columns of the original */
        uint32_t type;
        bool ok;
    } cases[] = {
        {"\0\2" ANONYMOUS HIDDEN, sizeof "\0\2" ANONYMOUS HIDDEN - 1, 1, 25, true},
        {"\0\2" ANONYMOUS HIDDEN, sizeof "\0\2" ANONYMOUS HIDDEN - 1, 1, 1043, false}, /* another type */
        {"\0\2" ANONYMOUS HIDDEN, sizeof "\0\2" ANONYMOUS HIDDEN - 1, 0, 25, false},   /* more columns */
        {"\0\1" HIDDEN, sizeof "\0\1" HIDDEN - 1, 1, 25, false},                       /* fewer */
        {"\0\1" HIDDEN, sizeof "\0\1" HIDDEN - 1, 0, 25, true},                        /* SELECT FROM t */
        {"\0\2" ANONYMOUS HIDDEN, sizeof "\0\2" ANONYMOUS - 1, 1, 25, true},           /* ours is not looked at */
        {"\0\2" ANONYMOUS HIDDEN, sizeof "\0\2" ANONYMOUS - 5, 1, 25, false},          /* cut */
    };
    static const char wanted[] = "\0\1" NOTE;
    struct pgseek_shape shape = {.own_describe = true};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct page *page = page_fixture_new(PGSEEK_DELIVER_STATUS);
        struct pgseek_column column = {
            .name = mem_strndup("note", 4), .table_oid = 0x4000, .attnum = 3, .type_oid = cases[i].type};
        struct buf out = {0};
        page->shape = &shape;
        page->names.ncolumns = 1;
        page->names.columns = mem_zalloc(sizeof column);
        page->names.columns[0] = column;
        if (!cases[i].names) {
            description_fini(&page->names);
        }
        bool ok = page_put_description(page, span_of(cases[i].said, cases[i].said_len), true, &out);
        if (ok != cases[i].ok)
            fail_msg("case %zu: %d", i, ok);
        if (ok && cases[i].names)
            assert_true(
                span_equal(span_of(out.ptr + WIRE_HEADER, out.len - WIRE_HEADER), span_of(wanted, sizeof wanted - 1)));
        if (!ok)
            assert_int_equal(out.len, 0);
        buf_fini(&out);
        page_unref(page);
    }
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_level_has_its_own_ends),
        cmocka_unit_test(a_dropped_row_ends_the_run),
        cmocka_unit_test(a_suspended_level_has_no_cursor),
        cmocka_unit_test(outer_rows_have_no_cursor_of_their_own),
        cmocka_unit_test(bad_levels_are_refused),
        cmocka_unit_test(plain_rows_make_no_cursors),
        cmocka_unit_test(plain_rows_have_the_columns_all_the_same),
        cmocka_unit_test(the_flag_tells_what_follows_in_display_order),
        cmocka_unit_test(the_original_is_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return page_fixture_run(run);
}
