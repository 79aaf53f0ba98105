/* test_page.c - rows and descriptions as the client is to see them, and the cursors and the report at a page's end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/protocol/wire.h"
#include "fixture.h"
#include "page_fixture.h"

/* The body of a row: a text and a key. */
static void make_row(struct buf *row, const char *note, int64_t key)
{
    buf_clear(row);
    buf_put_u16(row, 2);
    buf_put_i32(row, (int32_t)strlen(note));
    buf_put_text(row, note);
    buf_put_i32(row, 8);
    buf_put_u64(row, (uint64_t)key);
}

static bool put(struct page *page, const char *note, int64_t key, struct buf *out)
{
    struct buf row = {0};
    struct page_seal with = page_fixture_seal();
    make_row(&row, note, key);
    bool ok = page_put_row(page, &with, buf_span(&row), out);
    buf_fini(&row);
    return ok;
}

/* ---- rows ---- */

static void the_look_ahead_row_is_swallowed(void **state)
{
    struct page *page = page_fixture_new(PGSEEK_DELIVER_STATUS);
    struct buf out = {0};
    struct page_report report;
    struct page_seal with = page_fixture_seal();
    (void)state;
    assert_true(put(page, "a", 1, &out) && put(page, "b", 2, &out) && put(page, "c", 3, &out));
    page_fixture_rows(&out, "a1 b1 ");
    assert_true(page_end_run(page, true, &out));
    assert_int_equal(page->run, 2);
    assert_true(page_report(page, &with, false, &report));
    assert_string_equal(report.value[PAGE_HAS_MORE], "on");
    assert_string_equal(report.value[PAGE_HAS_PREV], "off");
    assert_string_equal(report.value[PAGE_ROWS], "2");
    assert_string_equal(report.value[PAGE_ACTION], "first");
    assert_string_equal(report.value[PAGE_ID], "7");
    assert_string_equal(report.value[PAGE_PREV_CURSOR], "");
    assert_int_equal(page_fixture_key(report.value[PAGE_NEXT_CURSOR], CURSOR_FORWARD), 2);
    page_report_fini(&report);
    page_unref(page);
    buf_fini(&out);
}

/* Ways to end: which cursors and switches the report has. */
static void reports(void **state)
{
    static const struct {
        const char *name;
        int rows;
        bool backward, bounded, tail, suspended;
        const char *has_more, *has_prev;
        int64_t next, prev; /* the key in the cursor; -1: start or end; -2: no cursor */
    } cases[] = {
        {"first, full, more", 3, false, false, false, false, "on", "off", 2, -2},
        {"first, exactly full", 2, false, false, false, false, "off", "off", -2, -2},
        {"first, none", 0, false, false, false, false, "off", "off", -2, -2},
        {"middle", 3, false, true, false, false, "on", "on", 2, 1},
        {"last", 1, false, true, false, false, "off", "on", -2, 1},
        {"last, tail", 1, false, true, true, false, "off", "on", 1, 1},
        {"behind the last", 0, false, true, false, false, "off", "on", -2, -1},
        {"first, none, tail", 0, false, false, true, false, "off", "off", -1, -2},
        {"stopped early", 1, false, false, false, true, "on", "off", 1, -2},
        {"back, more before", 3, true, true, false, false, "on", "on", 2, 1},
        {"back, at the start", 2, true, true, false, false, "on", "off", 2, -2},
        {"last page, more before", 3, true, false, false, false, "off", "on", -2, 1},
        {"last page, all", 2, true, false, false, false, "off", "off", -2, -2},
        {"back, none", 0, true, true, false, false, "on", "off", -1, -2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct page *page = page_fixture_new(PGSEEK_DELIVER_STATUS);
        struct page_seal with = page_fixture_seal();
        struct page_report report;
        struct buf out = {0};
        page->backward = cases[i].backward;
        page->bounded = cases[i].bounded;
        page->tail = cases[i].tail;
        for (int row = 1; row <= cases[i].rows; row++)
            assert_true(put(page, "x", row, &out));
        page_end_run(page, !cases[i].suspended, &out);
        assert_true(page_report(page, &with, cases[i].suspended, &report));
        const char *next = report.value[PAGE_NEXT_CURSOR];
        const char *prev = report.value[PAGE_PREV_CURSOR];
        if (strcmp(report.value[PAGE_HAS_MORE], cases[i].has_more) != 0 ||
            strcmp(report.value[PAGE_HAS_PREV], cases[i].has_prev) != 0)
            fail_msg("%s: more %s, prev %s", cases[i].name, report.value[PAGE_HAS_MORE], report.value[PAGE_HAS_PREV]);
        int64_t next_key = *next ? page_fixture_key(next, CURSOR_FORWARD) : -2;
        int64_t prev_key = *prev ? page_fixture_key(prev, CURSOR_BACKWARD) : -2;
        if (next_key != cases[i].next || prev_key != cases[i].prev)
            fail_msg("%s: next %d, prev %d", cases[i].name, (int)next_key, (int)prev_key);
        page_report_fini(&report);
        buf_fini(&out);
        page_unref(page);
    }
}

/* Rows of each Execute are counted apart; whoever swallows the look-ahead row is told CommandComplete. */
static void runs(void **state)
{
    struct page *page = page_fixture_new(PGSEEK_DELIVER_STATUS);
    struct buf out = {0};
    (void)state;
    assert_true(put(page, "a", 1, &out));
    assert_false(page_end_run(page, false, &out));
    assert_int_equal(page->run, 1);
    page_start_run(page);
    assert_true(put(page, "b", 2, &out));
    assert_false(page_end_run(page, false, &out));
    page_start_run(page);
    assert_true(put(page, "c", 3, &out));
    assert_int_equal(page->run, 0);
    assert_true(page_end_run(page, false, &out)); /* the server stopped behind the look-ahead row */
    page_fixture_rows(&out, "a1 b1 ");
    page_unref(page);
    buf_fini(&out);
}

static void without_look_ahead_all_rows_are_seen(void **state)
{
    struct page *page = page_fixture_new(PGSEEK_DELIVER_STATUS);
    struct page_report report;
    struct page_seal with = page_fixture_seal();
    struct buf out = {0};
    (void)state;
    page->look_ahead = false; /* FOR UPDATE */
    assert_true(put(page, "a", 1, &out) && put(page, "b", 2, &out));
    page_fixture_rows(&out, "a1 b1 ");
    assert_true(page_report(page, &with, false, &report));
    assert_string_equal(report.value[PAGE_HAS_MORE], "on"); /* full: there may be more */
    page_report_fini(&report);
    page_unref(page);
    buf_fini(&out);
}

/* ---- columns ---- */

static char flag_of(const struct buf *out, size_t nth)
{
    size_t at = 0;
    for (; nth > 0; nth--)
        at += get_u32(out->ptr + at + 1) + 1u;
    return (char)out->ptr[at + get_u32(out->ptr + at + 1)];
}

static void each_row_has_its_cursor(void **state)
{
    struct page *page = page_fixture_new(PGSEEK_DELIVER_COLUMNS);
    struct buf out = {0};
    char token[CURSOR_MAX_TOKEN + 1] = "";
    int32_t len;
    const uint8_t *data;
    (void)state;
    assert_true(put(page, "a", 1, &out));
    assert_int_equal(out.len, 0); /* held until it is known whether another follows */
    assert_true(put(page, "b", 2, &out));
    page_fixture_rows(&out, "a3 ");
    assert_true(put(page, "c", 3, &out));
    assert_true(page_end_run(page, true, &out));
    page_fixture_rows(&out, "a3 b3 ");
    assert_int_equal(flag_of(&out, 0), 't');
    assert_int_equal(flag_of(&out, 1), 't');
    struct reader rd = rd_init(span_of(out.ptr + WIRE_HEADER + 2, out.len - WIRE_HEADER - 2));
    assert_true(wire_read_column(&rd, &len, &data) && wire_read_column(&rd, &len, &data));
    memcpy(token, data, (size_t)len);
    assert_int_equal(page_fixture_key(token, CURSOR_FORWARD), 1);
    page_unref(page);
    buf_fini(&out);
}

static void the_last_row_says_so(void **state)
{
    (void)state;
    for (int format = 0; format < 2; format++) {
        struct page *page = page_fixture_new(PGSEEK_DELIVER_COLUMNS);
        struct buf out = {0};
        page->column_format[1] = format;
        assert_true(put(page, "a", 1, &out) && put(page, "b", 2, &out));
        assert_true(page_end_run(page, true, &out));
        assert_int_equal(flag_of(&out, 0), format ? 1 : 't');
        assert_int_equal(flag_of(&out, 1), format ? 0 : 'f');
        page_unref(page);
        buf_fini(&out);
    }
}

/* ---- descriptions ---- */

#define FIELD(name) name "\0\0\0\x40\0\0\1\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"

static void descriptions_lose_what_is_hidden(void **state)
{
    static const char two[] = "\0\2" FIELD("note") FIELD("pgseek_k1");
    static const char one[] = "\0\1" FIELD("note");
    struct page *page = page_fixture_new(PGSEEK_DELIVER_STATUS);
    struct buf out = {0};
    (void)state;
    assert_true(page_put_description(page, span_of(two, sizeof two - 1), true, &out));
    assert_true(span_equal(span_of(out.ptr + WIRE_HEADER, out.len - WIRE_HEADER), span_of(one, sizeof one - 1)));
    buf_clear(&out);
    assert_true(page_put_description(page, span_of(one, sizeof one - 1), false, &out)); /* of the statement: as it is */
    assert_true(span_equal(span_of(out.ptr + WIRE_HEADER, out.len - WIRE_HEADER), span_of(one, sizeof one - 1)));
    page->deliver = PGSEEK_DELIVER_COLUMNS;
    buf_clear(&out);
    assert_true(page_put_description(page, span_of(two, sizeof two - 1), true, &out));
    assert_int_equal(get_u16(out.ptr + WIRE_HEADER), 3);
    assert_non_null(memmem(out.ptr, out.len, "pgseek_has_more", 16));
    assert_null(memmem(out.ptr, out.len, "pgseek_k1", 9));
    for (size_t len = 0; len < 23; len++)
        assert_false(page_put_description(page, span_of(two, len), true, &out));
    assert_false(page_put_description(page, span_of("\0\0", 2), true, &out));
    page_unref(page);
    buf_fini(&out);
}

/* ---- what does not fit ---- */

static void rows_that_do_not_fit_are_refused(void **state)
{
    struct buf row = {0};
    struct buf out = {0};
    struct page_seal with = page_fixture_seal();
    (void)state;
    make_row(&row, "note", 5);
    for (size_t len = 0; len < row.len; len++) {
        struct page *page = page_fixture_new(PGSEEK_DELIVER_STATUS);
        uint8_t *cut = malloc(len ? len : 1);
        memcpy(cut, row.ptr, len);
        assert_false(page_put_row(page, &with, span_of(cut, len), &out));
        free(cut);
        page_unref(page);
    }
    struct page *page = page_fixture_new(PGSEEK_DELIVER_STATUS);
    buf_put_u8(&row, 0);
    assert_false(page_put_row(page, &with, buf_span(&row), &out));
    assert_false(page_put_row(page, &with, span_of("\0\0", 2), &out));
    page_unref(page);
    buf_fini(&row);
    buf_fini(&out);
}

/* ---- report ---- */

static void results_have_names(void **state)
{
    enum page_result found;
    (void)state;
    for (unsigned i = 0; i < PAGE_RESULTS; i++) {
        assert_true(page_result_find(page_result_name((enum page_result)i), &found));
        assert_int_equal(found, i);
    }
    assert_false(page_result_find("cursor", &found));
    assert_false(page_result_find("", &found));
}

static void delivery_is_as_asked(void **state)
{
    static const struct {
        unsigned deliver;
        const char *types; /* of the messages that the report makes */
    } cases[] = {
        {PGSEEK_DELIVER_STATUS, "SSSSSSS"}, /* total is left out */
        {PGSEEK_DELIVER_NOTICE, "N"},
        {PGSEEK_DELIVER_STATUS | PGSEEK_DELIVER_NOTICE, "SSSSSSSN"},
        {PGSEEK_DELIVER_COLUMNS, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct page *page = page_fixture_new(cases[i].deliver);
        struct page_seal with = page_fixture_seal();
        struct page_report report;
        struct buf out = {0};
        char types[16] = "";
        size_t n = 0;
        assert_true(page_report(page, &with, false, &report));
        page_put_report(page, &report, &out);
        for (size_t at = 0; at < out.len; at += get_u32(out.ptr + at + 1) + 1u)
            types[n++] = (char)out.ptr[at];
        assert_string_equal(types, cases[i].types);
        page_report_fini(&report);
        page_unref(page);
        buf_fini(&out);
    }
}

/* A key that no cursor can hold: the page is right, and a warning says that it cannot be continued. */
static void a_key_may_be_too_long(void **state)
{
    struct page *page = page_fixture_new(PGSEEK_DELIVER_STATUS);
    struct page_seal with = page_fixture_seal();
    struct page_report report;
    struct buf row = {0};
    struct buf out = {0};
    (void)state;
    for (int i = 0; i < 3; i++) {
        buf_clear(&row);
        buf_put_u16(&row, 2);
        buf_put_i32(&row, -1);
        buf_put_i32(&row, 5000);
        memset(buf_room(&row, 5000), 'k', 5000);
        assert_true(page_put_row(page, &with, buf_span(&row), &out));
    }
    buf_clear(&out);
    assert_true(page_report(page, &with, false, &report));
    assert_string_equal(report.value[PAGE_HAS_MORE], "on");
    assert_string_equal(report.value[PAGE_NEXT_CURSOR], "");
    page_put_report(page, &report, &out);
    assert_non_null(memmem(out.ptr, out.len, "C54000", 7));
    page_report_fini(&report);
    page_unref(page);
    buf_fini(&row);
    buf_fini(&out);
}

static void a_pass_has_only_a_reason(void **state)
{
    struct page *page = page_new();
    struct page_seal with = page_fixture_seal();
    struct page_report report;
    (void)state;
    page->action = PAGE_PASS;
    page->reason = PGSEEK_REASON_NO_ORDER;
    assert_false(page_filters(page));
    assert_true(page_report(page, &with, false, &report));
    assert_string_equal(report.value[PAGE_ACTION], "pass: no_order");
    assert_string_equal(report.value[PAGE_NEXT_CURSOR], "");
    assert_string_equal(report.value[PAGE_ROWS], "");
    page_report_fini(&report);
    page_unref(page);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_look_ahead_row_is_swallowed),
        cmocka_unit_test(reports),
        cmocka_unit_test(runs),
        cmocka_unit_test(without_look_ahead_all_rows_are_seen),
        cmocka_unit_test(each_row_has_its_cursor),
        cmocka_unit_test(the_last_row_says_so),
        cmocka_unit_test(descriptions_lose_what_is_hidden),
        cmocka_unit_test(rows_that_do_not_fit_are_refused),
        cmocka_unit_test(results_have_names),
        cmocka_unit_test(delivery_is_as_asked),
        cmocka_unit_test(a_key_may_be_too_long),
        cmocka_unit_test(a_pass_has_only_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return page_fixture_run(run);
}
