/* page.c - filters a page's rows and makes its cursors. */
#include "page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../protocol/wire.h"

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
    planned_shape_unref(page->origin);
    planned_unref(page->planned);
    description_fini(&page->names);
    buf_fini(&page->first);
    buf_fini(&page->last);
    buf_fini(&page->held);
    buf_fini(&page->incoming);
    buf_fini(&page->total);
    buf_fini(&page->gathered);
    mem_free(page);
}

bool page_adds_columns(const struct page *page)
{
    return page->deliver & PGSEEK_DELIVER_COLUMNS;
}

bool page_makes_cursors(const struct page *page)
{
    return page->planned && page->rows != PGSEEK_ROWS_PLAIN;
}

bool page_filters(const struct page *page)
{
    return page_makes_cursors(page) || page_adds_columns(page) || page->gathers;
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

/* ---- where the page stands ---- */

/* Whether rows follow and precede, in display order. */
static void ends(const struct page *page, bool suspended, bool *has_more, bool *has_prev)
{
    bool full = page_makes_cursors(page) && page->limit >= 0 && page->passed >= page->limit;
    bool beyond = page->look_ahead ? page->more_seen : full && page->limit > 0;
    *has_more = page->backward ? page->bounded : beyond;
    *has_prev = page->backward ? beyond : page->bounded;
    if (page->limit == 0) /* no row was passed: the position stays what it was */
        *has_prev = false;
    else if (suspended && page_makes_cursors(page))
        *has_more = true;
    *has_more &= page_makes_cursors(page);
    *has_prev &= page_makes_cursors(page);
}

static void keep(struct buf *to, struct span keys)
{
    buf_clear(to);
    buf_put_span(to, keys);
}

/* ---- rows: what they say of the page ---- */

/* A row of the server's: the client's columns, ours, and the keys that are the row's own. */
struct row {
    size_t visible;
    struct span columns, hidden, keys;
    bool is_shown;
};

static bool take_columns(struct reader *rd, size_t count, struct span *out)
{
    const uint8_t *start = rd->at;
    int32_t len;
    const uint8_t *data;
    for (size_t i = 0; i < count; i++)
        if (!wire_read_column(rd, &len, &data))
            return false;
    *out = span_of(start, (size_t)(rd->at - start));
    return true;
}

/* False when it is too narrow or malformed. */
static bool split_row(const struct page *page, struct span body, struct row *row)
{
    struct reader rd = rd_init(body);
    size_t count = rd_u16(&rd);
    if (rd.failed || count < page->nhidden)
        return false;
    *row = (struct row){.visible = count - page->nhidden};
    return take_columns(&rd, row->visible, &row->columns) && take_columns(&rd, page->nhidden, &row->hidden) &&
           rd_done(&rd);
}

/* A row of the page itself: the one behind LIMIT only shows that there is more. */
static bool note_page_row(struct page *page, struct row *row)
{
    struct reader rd = rd_init(row->hidden);
    if (!take_columns(&rd, page->nkeys, &row->keys))
        return false;
    row->is_shown = !(page->look_ahead && page->passed == page->limit);
    if (!row->is_shown) {
        page->more_seen = true;
        return true;
    }
    if (page->passed++ == 0)
        keep(&page->first, row->keys);
    keep(&page->last, row->keys);
    return true;
}

/* What all rows around an inner level say of it: how many rows it has with the look-ahead, and the keys of its ends. */
static bool note_level(struct page *page, struct reader *rd)
{
    int32_t len;
    const uint8_t *data;
    struct span first;
    struct span last;
    if (!wire_read_column(rd, &len, &data) || len != 8 || data[0] & 0x80 || !take_columns(rd, page->nkeys, &first) ||
        !take_columns(rd, page->nkeys, &last))
        return false;
    if (page->level_known)
        return true;
    int64_t rows = (int64_t)((uint64_t)get_u32(data) << 32 | get_u32(data + 4));
    page->level_known = true;
    page->more_seen = page->look_ahead && rows > page->limit;
    page->passed = page->limit >= 0 && rows > page->limit ? page->limit : rows;
    if (page->passed > 0) {
        keep(&page->first, first);
        keep(&page->last, last);
    }
    return true;
}

/* A row around an inner level; one comes even where the outside has none, and has no mark then. */
static bool note_inner_row(struct page *page, struct row *row)
{
    struct reader rd = rd_init(row->hidden);
    int32_t mark;
    const uint8_t *data;
    if (!wire_read_column(&rd, &mark, &data))
        return false;
    row->is_shown = mark >= 0;
    return note_level(page, &rd) && rd_done(&rd);
}

static bool note_row(struct page *page, struct row *row)
{
    row->is_shown = true;
    if (!page_makes_cursors(page))
        return true;
    return page->rows == PGSEEK_ROWS_INNER ? note_inner_row(page, row) : note_page_row(page, row);
}

/* ---- rows: what the client sees ---- */

static void put_flag(const struct page *page, bool on, struct buf *out)
{
    buf_put_i32(out, 1);
    buf_put_u8(out, page->column_format[1] == 1 ? (uint8_t)on : (uint8_t)(on ? 't' : 'f'));
}

static void flush_held(struct page *page, bool has_more, struct buf *out)
{
    if (page->held.len) { /* its last bytes are the flag */
        page->held.len -= 5;
        put_flag(page, has_more, &page->held);
    }
    buf_put_span(out, buf_span(&page->held));
    out->failed |= page->held.failed;
    buf_clear(&page->held);
}

/* The row's own cursor; NULL where the key is too long for one, and where the row is not one of the page's. */
static void put_own_cursor(const struct page *page, const struct page_seal *seal, struct span keys, struct buf *out)
{
    struct buf cursor = {0};
    bool fits = page->rows == PGSEEK_ROWS_PAGE && put_cursor(page, seal, keys, CURSOR_FORWARD, &cursor);
    buf_put_i32(out, fits ? (int32_t)cursor.len : -1);
    if (fits)
        buf_put_span(out, buf_span(&cursor));
    out->failed |= cursor.failed;
    buf_fini(&cursor);
}

/* The two columns behind a row: its own cursor, and whether rows follow (filled in when it is known). */
static void put_columns(struct page *page, const struct page_seal *seal, struct span keys, struct buf *out)
{
    bool has_more;
    bool has_prev;
    if (!page_makes_cursors(page)) {
        buf_put_i32(out, -1);
        buf_put_i32(out, -1);
        return;
    }
    put_own_cursor(page, seal, keys, out);
    ends(page, false, &has_more, &has_prev);
    put_flag(page, has_more, out);
}

/* The last row of the page is held until it is known whether another follows. Around an inner level all is known. */
static bool holds_rows(const struct page *page)
{
    return page_adds_columns(page) && page_makes_cursors(page) && page->rows == PGSEEK_ROWS_PAGE;
}

bool page_put_row(struct page *page, const struct page_seal *seal, struct span body, struct buf *out)
{
    struct row row;
    if (!split_row(page, body, &row) || !note_row(page, &row))
        return false;
    if (!row.is_shown) {
        page->run_swallowed = true;
        return true;
    }
    page->delivered++;
    page->run++;
    bool held = holds_rows(page);
    if (held)
        flush_held(page, true, out);
    struct buf *to = held ? &page->held : out;
    size_t at = wire_open(to, 'D');
    buf_put_u16(to, (uint16_t)(row.visible + (page_adds_columns(page) ? 2 : 0)));
    buf_put_span(to, row.columns);
    if (page_adds_columns(page))
        put_columns(page, seal, row.keys, to);
    wire_close(to, at);
    return !to->failed && !page->first.failed && !page->last.failed;
}

bool page_failed(const struct page *page)
{
    return page->first.failed || page->last.failed || page->held.failed || page->gathered.failed;
}

void page_start_run(struct page *page)
{
    page->run = 0;
    page->run_swallowed = false;
}

bool page_end_run(struct page *page, bool complete, struct buf *out)
{
    bool to_client = complete || page->run_swallowed;
    bool has_more;
    bool has_prev;
    ends(page, !to_client, &has_more, &has_prev);
    if (page->held.len)
        flush_held(page, has_more, out);
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

/* What the next and the previous cursor are made of: the keys of a row; an empty span is the very start or end. */
static bool put_next(const struct page *page, const struct page_seal *seal, bool has_more, struct buf *out)
{
    if (page->passed > 0)
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
    return put_cursor(page, seal, page->passed > 0 ? buf_span(&page->first) : span_of(NULL, 0), CURSOR_BACKWARD, out);
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
    bool has_more;
    bool has_prev;
    struct buf next = {0};
    struct buf prev = {0};
    bool next_ok = true;
    bool prev_ok = true;
    ends(page, suspended, &has_more, &has_prev);
    /* In the middle of the rows around an inner level there is no position that would not lose some of them. */
    if (page_makes_cursors(page) && !(suspended && page->rows == PGSEEK_ROWS_INNER)) {
        next_ok = put_next(page, seal, has_more, &next);
        prev_ok = put_prev(page, seal, has_prev, &prev);
    }
    *report = (struct page_report){
        .has_total = page->asks_total,
        .is_too_long = has_more && !next_ok,
        .value = {
            [PAGE_NEXT_CURSOR] = text_of(&next, next_ok),
            [PAGE_PREV_CURSOR] = text_of(&prev, prev_ok),
            [PAGE_HAS_MORE] = switch_text(has_more),
            [PAGE_HAS_PREV] = switch_text(has_prev),
            [PAGE_ROWS] = page_makes_cursors(page) ? number_text((uint64_t)page->delivered) : mem_strndup("", 0),
            [PAGE_TOTAL] = mem_strndup((const char *)page->total.ptr, page->total.len),
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
            if (i == PAGE_TOTAL && !page->asks_total && !page->retracts_total)
                continue;
            snprintf(name, sizeof name, "pgseek.%s", result_names[i]);
            wire_put_status(out, name, report->value[i]);
        }
    }
    if (page->deliver & PGSEEK_DELIVER_NOTICE)
        put_notice(report, out);
    if (report->is_too_long)
        wire_put_error(out, 'N',
                       &(struct wire_error){.severity = "WARNING",
                                            .sqlstate = "54000",
                                            .message = "the sort key of the last row is too long for a cursor",
                                            .hint = "Order by shorter keys."});
}
