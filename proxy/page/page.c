/* page.c - filters a page's rows and makes its cursors. */
#include "page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../protocol/wire.h"

#define OID_BOOL 16
#define OID_TEXT 25

struct page *page_new(void)
{
    struct page *page = mem_zalloc(sizeof *page);
    if (page) {
        page->refs = 1;
        page->limit = -1;
    }
    return page;
}

struct page *page_ref(struct page *page)
{
    if (page)
        page->refs++;
    return page;
}

void page_unref(struct page *page)
{
    if (!page || --page->refs > 0)
        return;
    planned_unref(page->planned);
    buf_fini(&page->first);
    buf_fini(&page->last);
    buf_fini(&page->held);
    buf_fini(&page->incoming);
    mem_free(page);
}

static bool adds_columns(const struct page *page)
{
    return page->deliver & PGSEEK_DELIVER_COLUMNS;
}

bool page_filters(const struct page *page)
{
    return page->nhidden > 0 || page->planned || adds_columns(page);
}

/* ---- RowDescription ---- */

static void put_field(struct buf *out, const char *name, uint32_t type_oid, uint16_t type_len, int format)
{
    buf_put_cstr(out, name);
    buf_put_u32(out, 0);
    buf_put_u16(out, 0);
    buf_put_u32(out, type_oid);
    buf_put_u16(out, type_len);
    buf_put_i32(out, -1);
    buf_put_u16(out, (uint16_t)format);
}

bool page_put_description(const struct page *page, struct span body, bool of_portal, struct buf *out)
{
    struct reader rd = rd_init(body);
    size_t count = wire_field_count(&rd);
    size_t hidden = of_portal ? page->nhidden : 0;
    if (rd.failed || count < hidden)
        return false;
    size_t visible = count - hidden;
    const uint8_t *fields = rd.at;
    struct wire_field field;
    for (size_t i = 0; i < visible; i++)
        wire_read_field(&rd, &field);
    if (rd.failed)
        return false;
    size_t at = wire_open(out, 'T');
    buf_put_u16(out, (uint16_t)(visible + (adds_columns(page) ? 2 : 0)));
    buf_put(out, fields, (size_t)(rd.at - fields));
    if (adds_columns(page)) {
        put_field(out, "pgseek_cursor", OID_TEXT, (uint16_t)-1, of_portal ? page->column_format[0] : 0);
        put_field(out, "pgseek_has_more", OID_BOOL, 1, of_portal ? page->column_format[1] : 0);
    }
    wire_close(out, at);
    return !out->failed;
}

/* ---- cursors ---- */

/* Fills a cursor's values from key columns in DataRow form. */
static bool cursor_from_keys(const struct page *page, struct span keys, struct cursor *cursor)
{
    struct reader rd = rd_init(keys);
    for (size_t i = 0; i < page->nkeys; i++) {
        struct cursor_value *value = &cursor->value[i];
        value->type_oid = pgseek_plan_key(page->planned->plan, i)->type_oid;
        if (!wire_read_column(&rd, &value->len, &value->data))
            return false;
    }
    cursor->nvalues = page->nkeys;
    return rd_done(&rd);
}

#define SURE_TO_FIT ((size_t)CURSOR_MAX_TOKEN / 2) /* keys of so few bytes fit; without a cursor, memory is missing */

static bool put_cursor(const struct page *page, const struct page_seal *seal, struct span keys,
                       enum cursor_direction direction, struct buf *out)
{
    struct cursor cursor = {.direction = direction, .issued = seal->now};
    memcpy(cursor.part, page->part, sizeof cursor.part);
    if (keys.len && !cursor_from_keys(page, keys, &cursor))
        return false;
    bool sealed = cursor_seal(seal->keyring, seal->sign, &cursor, out);
    out->failed |= !sealed && keys.len <= SURE_TO_FIT;
    return sealed;
}

/* ---- rows ---- */

/* Splits a row: where the visible columns end, and the keys behind them. False when it is too narrow or malformed. */
static bool split_row(const struct page *page, struct span body, size_t *visible, struct span *columns,
                      struct span *keys)
{
    struct reader rd = rd_init(body);
    size_t count = rd_u16(&rd);
    int32_t len;
    const uint8_t *data;
    if (rd.failed || count < page->nhidden)
        return false;
    *visible = count - page->nhidden;
    const uint8_t *start = rd.at;
    for (size_t i = 0; i < *visible; i++)
        if (!wire_read_column(&rd, &len, &data))
            return false;
    *columns = span_of(start, (size_t)(rd.at - start));
    start = rd.at;
    for (size_t i = 0; i < page->nhidden; i++) {
        if (i == page->nkeys)
            *keys = span_of(start, (size_t)(rd.at - start));
        if (!wire_read_column(&rd, &len, &data))
            return false;
    }
    if (page->nhidden == page->nkeys)
        *keys = span_of(start, (size_t)(rd.at - start));
    return rd_done(&rd);
}

static void set_flag(struct page *page, bool has_more)
{
    if (page->held.len)
        page->held.ptr[page->held_flag] =
            page->column_format[1] == 1 ? (uint8_t)has_more : (uint8_t)(has_more ? 't' : 'f');
}

static void flush_held(struct page *page, bool has_more, struct buf *out)
{
    set_flag(page, has_more);
    buf_put_span(out, buf_span(&page->held));
    out->failed |= page->held.failed;
    buf_clear(&page->held);
}

/* The two columns behind a row: its own cursor, and whether rows follow (filled in when it is known). */
static bool put_columns(struct page *page, const struct page_seal *seal, struct span keys, struct buf *out)
{
    if (!page->planned) {
        buf_put_i32(out, -1);
        buf_put_i32(out, -1);
        return true;
    }
    struct buf cursor = {0};
    bool fits = put_cursor(page, seal, keys, CURSOR_FORWARD, &cursor); /* else NULL: the key is too long for a cursor */
    buf_put_i32(out, fits ? (int32_t)cursor.len : -1);
    if (fits)
        buf_put_span(out, buf_span(&cursor));
    out->failed |= cursor.failed;
    buf_fini(&cursor);
    buf_put_i32(out, 1);
    page->held_flag = out->len;
    buf_put_u8(out, 0);
    return !out->failed;
}

bool page_put_row(struct page *page, const struct page_seal *seal, struct span body, struct buf *out)
{
    size_t visible;
    struct span columns;
    struct span keys = span_of(NULL, 0);
    if (!split_row(page, body, &visible, &columns, &keys))
        return false;
    if (page->planned && page->look_ahead && page->delivered == page->limit) {
        page->more_seen = true;
        page->run_swallowed = true;
        return true;
    }
    if (page->delivered++ == 0)
        buf_put_span(&page->first, keys);
    page->run++;
    buf_clear(&page->last);
    buf_put_span(&page->last, keys);
    bool held = adds_columns(page) && page->planned;
    if (held)
        flush_held(page, true, out);
    struct buf *to = held ? &page->held : out;
    size_t at = wire_open(to, 'D');
    buf_put_u16(to, (uint16_t)(visible + (adds_columns(page) ? 2 : 0)));
    buf_put_span(to, columns);
    if (adds_columns(page) && !put_columns(page, seal, keys, to))
        return false;
    wire_close(to, at);
    return !to->failed && !page->first.failed && !page->last.failed;
}

bool page_failed(const struct page *page)
{
    return page->first.failed || page->last.failed || page->held.failed;
}

void page_start_run(struct page *page)
{
    page->run = 0;
    page->run_swallowed = false;
}

bool page_end_run(struct page *page, bool complete, struct buf *out)
{
    bool to_client = complete || page->run_swallowed;
    if (page->held.len)
        flush_held(page, page->more_seen || !to_client, out);
    return to_client;
}

/* ---- report ---- */

static const char *const result_names[PAGE_RESULTS] = {
    [PAGE_NEXT_CURSOR] = "next_cursor",
    [PAGE_PREV_CURSOR] = "prev_cursor",
    [PAGE_HAS_MORE] = "has_more",
    [PAGE_HAS_PREV] = "has_prev",
    [PAGE_ROWS] = "rows",
    [PAGE_TOTAL] = "total",
    [PAGE_ACTION] = "action",
    [PAGE_ID] = "page_id",
};

const char *page_result_name(enum page_result result)
{
    return result_names[result];
}

bool page_result_find(const char *name, enum page_result *result)
{
    for (size_t i = 0; i < PAGE_RESULTS; i++) {
        if (strcmp(result_names[i], name) == 0) {
            *result = (enum page_result)i;
            return true;
        }
    }
    return false;
}

void page_report_fini(struct page_report *report)
{
    for (size_t i = 0; i < PAGE_RESULTS; i++)
        mem_free(report->value[i]);
    *report = (struct page_report){0};
}

/* Whether rows follow and precede, in display order. */
static void ends(const struct page *page, bool suspended, bool *has_more, bool *has_prev)
{
    bool full = page->planned && page->limit >= 0 && page->delivered >= page->limit;
    bool beyond = page->look_ahead ? page->more_seen : full && page->limit > 0;
    if (page->limit == 0) { /* no row was passed: the position stays what it was */
        *has_more = page->backward ? page->bounded : beyond;
        *has_prev = false;
        return;
    }
    *has_more = page->backward ? page->bounded : beyond;
    *has_prev = page->backward ? beyond : page->bounded;
    if (suspended && page->planned)
        *has_more = true;
}

/* What the next and the previous cursor are made of: the keys of a row; an empty span is the very start or end. */
static bool put_next(const struct page *page, const struct page_seal *seal, bool has_more, struct buf *out)
{
    if (page->delivered > 0)
        return !(has_more || page->tail) || put_cursor(page, seal, buf_span(&page->last), CURSOR_FORWARD, out);
    if (page->backward && page->limit != 0)
        return put_cursor(page, seal, span_of(NULL, 0), CURSOR_FORWARD, out);
    if (!has_more && !page->tail)
        return true;
    if (page->incoming.len == 0)
        return put_cursor(page, seal, span_of(NULL, 0), CURSOR_FORWARD, out);
    buf_put_span(out, buf_span(&page->incoming));
    return true;
}

static bool put_prev(const struct page *page, const struct page_seal *seal, bool has_prev, struct buf *out)
{
    if (!has_prev)
        return true;
    return put_cursor(page, seal, page->delivered > 0 ? buf_span(&page->first) : span_of(NULL, 0), CURSOR_BACKWARD,
                      out);
}

/* The text collected in buf; "" when it could not be made (a key that is too long for a cursor). */
static char *text_of(struct buf *buf, bool made)
{
    char *text = buf->failed ? NULL : mem_strndup((const char *)buf->ptr, made ? buf->len : 0);
    buf_fini(buf);
    return text;
}

static char *action_text(const struct page *page)
{
    static const char *const actions[] = {[PAGE_FIRST] = "first", [PAGE_KEYSET] = "keyset", [PAGE_OFFSET] = "offset"};
    struct buf text = {0};
    if (page->action == PAGE_PASS)
        buf_put_format(&text, "pass: %s", pgseek_reason_name(page->reason));
    else
        buf_put_text(&text, actions[page->action]);
    return text_of(&text, true);
}

static char *number_text(uint64_t number)
{
    struct buf text = {0};
    buf_put_format(&text, "%" PRIu64, number);
    return text_of(&text, true);
}

static char *switch_text(bool on)
{
    return mem_strndup(on ? "on" : "off", on ? 2 : 3);
}

bool page_report(const struct page *page, const struct page_seal *seal, bool suspended, struct page_report *report)
{
    bool has_more = false;
    bool has_prev = false;
    struct buf next = {0};
    struct buf prev = {0};
    bool next_ok = true;
    bool prev_ok = true;
    if (page->planned) {
        ends(page, suspended, &has_more, &has_prev);
        next_ok = put_next(page, seal, has_more, &next);
        prev_ok = put_prev(page, seal, has_prev, &prev);
    }
    *report = (struct page_report){
        .value = {
            [PAGE_NEXT_CURSOR] = text_of(&next, next_ok),
            [PAGE_PREV_CURSOR] = text_of(&prev, prev_ok),
            [PAGE_HAS_MORE] = switch_text(has_more),
            [PAGE_HAS_PREV] = switch_text(has_prev),
            [PAGE_ROWS] = page->planned ? number_text((uint64_t)page->delivered) : mem_strndup("", 0),
            [PAGE_TOTAL] = mem_strndup("", 0),
            [PAGE_ACTION] = action_text(page),
            [PAGE_ID] = number_text(page->id),
        }};
    for (size_t i = 0; i < PAGE_RESULTS; i++) {
        if (!report->value[i]) {
            page_report_fini(report);
            return false;
        }
    }
    return true;
}

/* The DETAIL of a notice: a JSON object. No value holds a character that JSON would escape. */
static void put_notice(const struct page_report *report, struct buf *out)
{
    struct buf json = {0};
    for (size_t i = 0; i < PAGE_RESULTS; i++)
        buf_put_format(&json, "%s\"%s\":\"%s\"", i ? "," : "{", result_names[i], report->value[i]);
    buf_put(&json, "}", 2);
    if (json.failed)
        out->failed = true;
    else
        wire_put_error(
            out, 'N',
            &(struct wire_error){
                .severity = "NOTICE", .sqlstate = "00000", .message = "pgseek page", .detail = (const char *)json.ptr});
    buf_fini(&json);
}

void page_put_report(const struct page *page, const struct page_report *report, struct buf *out)
{
    if (page->deliver & PGSEEK_DELIVER_STATUS) {
        for (size_t i = 0; i < PAGE_RESULTS; i++) {
            char name[32];
            if (i == PAGE_TOTAL && !*report->value[i])
                continue; /* only when it was asked for */
            snprintf(name, sizeof name, "pgseek.%s", result_names[i]);
            wire_put_status(out, name, report->value[i]);
        }
    }
    if (page->deliver & PGSEEK_DELIVER_NOTICE)
        put_notice(report, out);
    if (strcmp(report->value[PAGE_HAS_MORE], "on") == 0 && !*report->value[PAGE_NEXT_CURSOR])
        wire_put_error(out, 'N',
                       &(struct wire_error){.severity = "WARNING",
                                            .sqlstate = "54000",
                                            .message = "the sort key of the last row is too long for a cursor",
                                            .hint = "Order by shorter keys."});
}
