/* talk_print.c - messages of a server in short form, so that a conversation's end can stand in a table.
 *
 *     1 2 3 n I s c        messages without a body          T(id,body)  D(1,b1)  C(SELECT 1)  Z(I)  E(42601)  N(25P01)
 *     t(20,25)             types of parameters               S(name=value)  R(0)  K  G  H  W  d(text)  v  V
 *     [first 2 more next]  the report of one page: action, rows, more, prev, and whether there is a next and prev
 * cursor no                   the single byte that declines an encryption */
#include "talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxy/protocol/wire.h"

struct printer {
    char *text;
    size_t len, cap;
    bool only_original;
    struct {
        bool is_open, has_more, has_prev, has_next, has_back;
        char action[64], rows[24];
    } page;
};

static void add(struct printer *out, const char *text)
{
    size_t len = strlen(text);
    if (out->len + len + 1 > out->cap) {
        out->cap = (out->len + len + 1) * 2;
        out->text = realloc(out->text, out->cap);
        if (!out->text)
            abort();
    }
    memcpy(out->text + out->len, text, len + 1);
    out->len += len;
}

/* Ends the report of a page that is being collected. */
static void close_page(struct printer *out)
{
    char line[160];
    if (!out->page.is_open)
        return;
    snprintf(line, sizeof line, "[%s%s%s%s%s%s%s] ", out->page.action, out->page.rows[0] ? " " : "", out->page.rows,
             out->page.has_more ? " more" : "", out->page.has_prev ? " prev" : "", out->page.has_next ? " next" : "",
             out->page.has_back ? " back" : "");
    memset(&out->page, 0, sizeof out->page);
    if (!out->only_original)
        add(out, line);
}

static void add_bytes(struct printer *out, struct span bytes)
{
    char text[64];
    size_t at = 0;
    if (bytes.len > 60) {
        add(out, "<token>");
        return;
    }
    for (size_t i = 0; i < bytes.len; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, bytes.ptr[i] < ' ' ? "\\%o" : "%c", bytes.ptr[i]);
    text[at] = '\0';
    add(out, text);
}

static void add_columns(struct printer *out, struct reader rd)
{
    struct wire_field field;
    uint16_t count = wire_field_count(&rd);
    add(out, "T(");
    for (uint16_t i = 0; i < count; i++) {
        wire_read_field(&rd, &field);
        add(out, i ? "," : "");
        add_bytes(out, field.name);
        if (field.format)
            add(out, ":1");
    }
    add(out, rd_done(&rd) ? ") " : "!malformed) ");
}

static void add_row(struct printer *out, struct reader rd)
{
    int32_t len = -1;
    const uint8_t *data = NULL;
    uint16_t count = rd_u16(&rd);
    add(out, "D(");
    for (uint16_t i = 0; i < count && wire_read_column(&rd, &len, &data); i++) {
        add(out, i ? "," : "");
        if (len < 0)
            add(out, "NULL");
        else
            add_bytes(out, span_of(data, (size_t)len));
    }
    add(out, rd_done(&rd) ? ") " : "!malformed) ");
}

static void add_params(struct printer *out, struct reader rd)
{
    char text[16];
    uint16_t count = rd_u16(&rd);
    add(out, "t(");
    for (uint16_t i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%s%u", i ? "," : "", rd_u32(&rd));
        add(out, text);
    }
    add(out, rd_done(&rd) ? ") " : "!malformed) ");
}

static void add_named(struct printer *out, const char *type, struct span text)
{
    add(out, type);
    add(out, "(");
    add_bytes(out, text);
    add(out, ") ");
}

/* A page's report comes as several values; other reports stand for themselves. */
static void add_status(struct printer *out, struct reader rd)
{
    struct span name = rd_cstr(&rd);
    struct span value = rd_cstr(&rd);
    bool is_on = span_equal_cstr(value, "on");
    if (!name.ptr || strncmp((const char *)name.ptr, "pgseek.", 7) != 0) {
        close_page(out);
        add_named(out, "S", name);
        return;
    }
    const char *what = (const char *)name.ptr + 7;
    if (out->page.is_open && strcmp(what, "next_cursor") == 0)
        close_page(out);
    out->page.is_open = true;
    if (strcmp(what, "has_more") == 0)
        out->page.has_more = is_on;
    if (strcmp(what, "has_prev") == 0)
        out->page.has_prev = is_on;
    if (strcmp(what, "next_cursor") == 0)
        out->page.has_next = value.len > 0;
    if (strcmp(what, "prev_cursor") == 0)
        out->page.has_back = value.len > 0;
    if (strcmp(what, "action") == 0)
        snprintf(out->page.action, sizeof out->page.action, "%s", (const char *)value.ptr);
    if (strcmp(what, "rows") == 0)
        snprintf(out->page.rows, sizeof out->page.rows, "%s", (const char *)value.ptr);
}

static void add_message(struct printer *out, uint8_t type, struct span body)
{
    struct reader rd = rd_init(body);
    struct span field = span_cstr("?");
    char letter[8];
    if (type == 'S') {
        add_status(out, rd);
        return;
    }
    close_page(out);
    snprintf(letter, sizeof letter, "%c", type);
    switch (type) {
    case 'T': add_columns(out, rd); return;
    case 'D': add_row(out, rd); return;
    case 't': add_params(out, rd); return;
    case 'C': add_named(out, letter, rd_cstr(&rd)); return;
    case 'Z': add_named(out, letter, body); return;
    case 'd': add_named(out, letter, body); return;
    case 'E':
    case 'N':
        if (!wire_error_field(body, 'C', &field))
            field = span_cstr("none");
        add_named(out, letter, field);
        return;
    default: add(out, letter); add(out, " ");
    }
}

char *talk_print(struct span bytes, size_t negotiations, bool only_original)
{
    struct printer out = {.only_original = only_original};
    add(&out, "");
    for (; negotiations && bytes.len && (bytes.ptr[0] == 'N' || bytes.ptr[0] == 'S'); negotiations--) {
        add(&out, bytes.ptr[0] == 'N' ? "no " : "yes ");
        bytes = span_of(bytes.ptr + 1, bytes.len - 1);
    }
    while (bytes.len >= WIRE_HEADER) {
        size_t len = (size_t)get_u32(bytes.ptr + 1) + 1;
        if (len < WIRE_HEADER || len > bytes.len)
            break;
        add_message(&out, bytes.ptr[0], span_of(bytes.ptr + WIRE_HEADER, len - WIRE_HEADER));
        bytes = span_of(bytes.ptr + len, bytes.len - len);
    }
    close_page(&out);
    if (bytes.len)
        add(&out, "!cut ");
    if (out.len)
        out.text[--out.len] = '\0';
    return out.text;
}

char *talk_status(struct span bytes, const char *name)
{
    char *value = strdup("");
    while (bytes.len >= WIRE_HEADER) {
        size_t len = (size_t)get_u32(bytes.ptr + 1) + 1;
        if (len > bytes.len || len < WIRE_HEADER)
            return value;
        struct reader rd = rd_init(span_of(bytes.ptr + WIRE_HEADER, len - WIRE_HEADER));
        if (bytes.ptr[0] == 'S' && span_equal_cstr(rd_cstr(&rd), name)) {
            free(value);
            value = strdup((const char *)rd_cstr(&rd).ptr);
        }
        bytes = span_of(bytes.ptr + len, bytes.len - len);
    }
    return value;
}
