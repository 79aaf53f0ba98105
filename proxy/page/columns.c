/* columns.c - a page's columns as the client is to see them described.
 *
 * It leaves out the hidden ones, adds those of deliver=columns, and gives a text that is described otherwise than the
 * original the original's names; it must not know rows. */
#include "page.h"

#include "../protocol/wire.h"

#define OID_BOOL 16
#define OID_TEXT 25

static void put_field(struct buf *out, const struct wire_field *field)
{
    buf_put_span(out, field->name);
    buf_put_u8(out, 0);
    buf_put_u32(out, field->table_oid);
    buf_put_u16(out, field->attnum);
    buf_put_u32(out, field->type_oid);
    buf_put_u16(out, field->type_len);
    buf_put_i32(out, field->typmod);
    buf_put_u16(out, field->format);
}

static void put_added(struct buf *out, const char *name, uint32_t type_oid, uint16_t type_len, int format)
{
    put_field(out, &(struct wire_field){.name = span_cstr(name),
                                        .type_oid = type_oid,
                                        .type_len = type_len,
                                        .typmod = -1,
                                        .format = (uint16_t)format});
}

/* The columns of the page's text under the names of the original's. */
static bool put_renamed(const struct description *names, struct reader *rd, size_t count, struct buf *out)
{
    if (count != names->ncolumns)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct pgseek_column *column = &names->columns[i];
        struct wire_field field;
        wire_read_field(rd, &field);
        if (rd->failed || field.type_oid != column->type_oid)
            return false;
        field.name = span_cstr(column->name);
        field.table_oid = column->table_oid;
        field.attnum = (uint16_t)column->attnum;
        put_field(out, &field);
    }
    return true;
}

static bool put_as_they_are(struct reader *rd, size_t count, struct buf *out)
{
    const uint8_t *fields = rd->at;
    struct wire_field field;
    for (size_t i = 0; i < count; i++)
        wire_read_field(rd, &field);
    if (!rd->failed)
        buf_put(out, fields, (size_t)(rd->at - fields));
    return !rd->failed;
}

bool page_put_description(const struct page *page, struct span body, bool of_portal, struct buf *out)
{
    struct reader rd = rd_init(body);
    size_t count = wire_field_count(&rd);
    size_t hidden = of_portal ? page->nhidden : 0;
    if (rd.failed || count < hidden)
        return false;
    size_t visible = count - hidden;
    bool renamed = of_portal && page_makes_cursors(page) && page->shape && page->shape->own_describe;
    size_t before = out->len;
    size_t at = wire_open(out, 'T');
    buf_put_u16(out, (uint16_t)(visible + (page_adds_columns(page) ? 2 : 0)));
    bool ok = renamed ? put_renamed(&page->names, &rd, visible, out) : put_as_they_are(&rd, visible, out);
    if (!ok) {
        out->len = before; /* nothing of it may be sent */
        return false;
    }
    if (page_adds_columns(page)) {
        put_added(out, "pgseek_cursor", OID_TEXT, (uint16_t)-1, of_portal ? page->column_format[0] : 0);
        put_added(out, "pgseek_has_more", OID_BOOL, 1, of_portal ? page->column_format[1] : 0);
    }
    wire_close(out, at);
    return !out->failed;
}
