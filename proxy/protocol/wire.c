/* wire.c - decodes and builds the messages of protocol 3. */
#include "wire.h"

#include <string.h>

/* ---- frontend ---- */

bool wire_read_parse(struct span body, struct wire_parse *out)
{
    struct reader rd = rd_init(body);
    out->name = rd_cstr(&rd);
    out->sql = rd_cstr(&rd);
    out->noids = rd_u16(&rd);
    out->oids = rd_bytes(&rd, (size_t)out->noids * 4).ptr;
    return rd_done(&rd);
}

static void skip_values(struct reader *rd, uint16_t count)
{
    int32_t len;
    const uint8_t *data;
    while (count-- && wire_read_column(rd, &len, &data))
        ;
}

bool wire_read_bind(struct span body, struct wire_bind *out)
{
    struct reader rd = rd_init(body);
    out->portal = rd_cstr(&rd);
    out->statement = rd_cstr(&rd);
    out->nformats = rd_u16(&rd);
    out->formats = rd_bytes(&rd, (size_t)out->nformats * 2).ptr;
    out->nparams = rd_u16(&rd);
    const uint8_t *first = rd.at;
    skip_values(&rd, out->nparams);
    out->params = rd.failed ? span_of(NULL, 0) : span_of(first, (size_t)(rd.at - first));
    out->nresults = rd_u16(&rd);
    out->results = rd_bytes(&rd, (size_t)out->nresults * 2).ptr;
    return rd_done(&rd);
}

bool wire_peek_bind(struct span head, struct span *portal, struct span *statement)
{
    struct reader rd = rd_init(head);
    *portal = rd_cstr(&rd);
    *statement = rd_cstr(&rd);
    return !rd.failed;
}

bool wire_bind_params(const struct wire_bind *bind, struct wire_param *out)
{
    if (bind->nformats > 1 && bind->nformats != bind->nparams)
        return false;
    struct reader rd = rd_init(bind->params);
    for (size_t i = 0; i < bind->nparams; i++) {
        size_t at = bind->nformats == 1 ? 0 : i;
        out[i].format = bind->nformats ? get_u16(bind->formats + at * 2) : 0;
        if (!wire_read_column(&rd, &out[i].len, &out[i].data))
            return false;
    }
    return true;
}

bool wire_read_target(struct span body, struct wire_target *out)
{
    struct reader rd = rd_init(body);
    out->kind = rd_u8(&rd);
    out->name = rd_cstr(&rd);
    return rd_done(&rd);
}

bool wire_read_execute(struct span body, struct wire_execute *out)
{
    struct reader rd = rd_init(body);
    out->portal = rd_cstr(&rd);
    out->max_rows = rd_i32(&rd);
    return rd_done(&rd);
}

bool wire_read_query(struct span body, struct span *sql)
{
    struct reader rd = rd_init(body);
    *sql = rd_cstr(&rd);
    return rd_done(&rd);
}

/* ---- backend ---- */

uint16_t wire_field_count(struct reader *rd)
{
    return rd_u16(rd);
}

void wire_read_field(struct reader *rd, struct wire_field *out)
{
    out->name = rd_cstr(rd);
    out->table_oid = rd_u32(rd);
    out->attnum = rd_u16(rd);
    out->type_oid = rd_u32(rd);
    out->type_len = rd_u16(rd);
    out->typmod = rd_i32(rd);
    out->format = rd_u16(rd);
}

bool wire_read_column(struct reader *rd, int32_t *len, const uint8_t **data)
{
    *len = rd_i32(rd);
    *data = NULL;
    if (rd->failed || *len < -1) {
        rd->failed = true;
        return false;
    }
    if (*len > 0)
        *data = rd_bytes(rd, (size_t)*len).ptr;
    return !rd->failed;
}

bool wire_error_field(struct span body, char letter, struct span *value)
{
    struct reader rd = rd_init(body);
    for (uint8_t at = rd_u8(&rd); at != 0 && !rd.failed; at = rd_u8(&rd)) {
        *value = rd_cstr(&rd);
        if (at == (uint8_t)letter)
            return !rd.failed;
    }
    return false;
}

/* ---- building ---- */

size_t wire_open(struct buf *buf, char type)
{
    buf_put_u8(buf, (uint8_t)type);
    size_t at = buf->len;
    buf_put_u32(buf, 0);
    return at;
}

void wire_close(struct buf *buf, size_t at)
{
    if (!buf->failed)
        set_u32(buf->ptr + at, (uint32_t)(buf->len - at));
}

void wire_put_parse(struct buf *buf, const char *name, struct span sql, const uint32_t *oids, size_t noids)
{
    size_t at = wire_open(buf, 'P');
    buf_put_cstr(buf, name);
    buf_put_span(buf, sql);
    buf_put_u8(buf, 0);
    buf_put_u16(buf, (uint16_t)noids);
    for (size_t i = 0; i < noids; i++)
        buf_put_u32(buf, oids[i]);
    wire_close(buf, at);
}

void wire_put_target(struct buf *buf, char type, char kind, struct span name)
{
    size_t at = wire_open(buf, type);
    buf_put_u8(buf, (uint8_t)kind);
    buf_put_span(buf, name);
    buf_put_u8(buf, 0);
    wire_close(buf, at);
}

void wire_put_execute(struct buf *buf, struct span portal, int32_t max_rows)
{
    size_t at = wire_open(buf, 'E');
    buf_put_span(buf, portal);
    buf_put_u8(buf, 0);
    buf_put_i32(buf, max_rows);
    wire_close(buf, at);
}

void wire_put_empty(struct buf *buf, char type)
{
    wire_close(buf, wire_open(buf, type));
}

void wire_put_ready(struct buf *buf, uint8_t status)
{
    size_t at = wire_open(buf, 'Z');
    buf_put_u8(buf, status);
    wire_close(buf, at);
}

static void put_string_message(struct buf *buf, char type, const char *text)
{
    size_t at = wire_open(buf, type);
    buf_put_cstr(buf, text);
    wire_close(buf, at);
}

void wire_put_command(struct buf *buf, const char *tag)
{
    put_string_message(buf, 'C', tag);
}

void wire_put_query(struct buf *buf, const char *sql)
{
    put_string_message(buf, 'Q', sql);
}

void wire_put_status(struct buf *buf, const char *name, const char *value)
{
    size_t at = wire_open(buf, 'S');
    buf_put_cstr(buf, name);
    buf_put_cstr(buf, value);
    wire_close(buf, at);
}

void wire_put_text_description(struct buf *buf, const char *name)
{
    size_t at = wire_open(buf, 'T');
    buf_put_u16(buf, 1);
    buf_put_cstr(buf, name);
    buf_put_u32(buf, 0);            /* no table */
    buf_put_u16(buf, 0);            /* no column */
    buf_put_u32(buf, 25);           /* text */
    buf_put_u16(buf, (uint16_t)-1); /* varlena */
    buf_put_i32(buf, -1);           /* no modifier */
    buf_put_u16(buf, 0);            /* text format */
    wire_close(buf, at);
}

void wire_put_text_row(struct buf *buf, const char *value)
{
    size_t at = wire_open(buf, 'D');
    buf_put_u16(buf, 1);
    if (value) {
        buf_put_i32(buf, (int32_t)strlen(value));
        buf_put_text(buf, value);
    } else {
        buf_put_i32(buf, -1);
    }
    wire_close(buf, at);
}

static void put_error_field(struct buf *buf, char letter, const char *value)
{
    if (!value || !*value)
        return;
    buf_put_u8(buf, (uint8_t)letter);
    buf_put_cstr(buf, value);
}

void wire_put_error(struct buf *buf, char type, const struct wire_error *error)
{
    size_t at = wire_open(buf, type);
    put_error_field(buf, 'S', error->severity);
    put_error_field(buf, 'V', error->severity);
    put_error_field(buf, 'C', error->sqlstate);
    put_error_field(buf, 'M', error->message);
    put_error_field(buf, 'D', error->detail);
    put_error_field(buf, 'H', error->hint);
    buf_put_u8(buf, 0);
    wire_close(buf, at);
}
