/* talk_script.c - the lines of a script, made into messages.
 *
 *     Q sql                          P name[:oid,oid] sql          "-" is the unnamed name
 *     B portal statement values ; formats   a value is text, NULL, i4=5 or i8=5 (binary); formats are 0 or 1
 *     D S name   D P name   C S name   C P name   E portal rows   S   H   F   X
 *     d text   c   f text   p password
 *     start name=value|name=value    ssl   gss   cancel   tls   raw hexadecimal   zeros type length */
#include "talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxy/protocol/wire.h"

/* A line that is being read, word by word. */
struct line {
    char text[4096];
    char *at;
};

static char *word(struct line *line)
{
    while (*line->at == ' ')
        line->at++;
    char *start = line->at;
    line->at += strcspn(line->at, " ");
    if (*line->at)
        *line->at++ = '\0';
    return start;
}

static const char *name_of(const char *word)
{
    return strcmp(word, "-") == 0 ? "" : word;
}

static void put_parse(struct line *line, struct buf *out)
{
    uint32_t oids[16];
    size_t count = 0;
    char *name = word(line);
    char *list = strchr(name, ':');
    if (list)
        *list++ = '\0';
    while (list && *list && count < 16) {
        oids[count++] = (uint32_t)strtoul(list, &list, 10);
        list += *list == ',';
    }
    wire_put_parse(out, name_of(name), span_cstr(line->at), oids, count);
}

/* One value of a Bind; its format code goes to *format. */
static void put_value(const char *value, uint16_t *format, struct buf *out)
{
    bool is_int = value[0] == 'i' && (value[1] == '4' || value[1] == '8') && value[2] == '=';
    *format = is_int;
    if (strcmp(value, "NULL") == 0) {
        buf_put_i32(out, -1);
    } else if (is_int && value[1] == '8') {
        buf_put_i32(out, 8);
        buf_put_u64(out, (uint64_t)strtoll(value + 3, NULL, 10));
    } else if (is_int) {
        buf_put_i32(out, 4);
        buf_put_i32(out, (int32_t)strtol(value + 3, NULL, 10));
    } else {
        const char *text = strcmp(value, "''") == 0 ? "" : value;
        buf_put_i32(out, (int32_t)strlen(text));
        buf_put_text(out, text);
    }
}

static void put_bind(struct line *line, struct buf *out)
{
    uint16_t formats[64];
    uint16_t count = 0;
    struct buf values = {0};
    size_t at = wire_open(out, 'B');
    buf_put_cstr(out, name_of(word(line)));
    buf_put_cstr(out, name_of(word(line)));
    backend_reserve(&values, 8192);
    for (char *value = word(line); *value && *value != ';'; value = word(line))
        put_value(value, &formats[count++], &values);
    buf_put_u16(out, count);
    for (size_t i = 0; i < count; i++)
        buf_put_u16(out, formats[i]);
    buf_put_u16(out, count);
    buf_put_span(out, buf_span(&values));
    buf_fini(&values);
    count = 0;
    for (char *format = word(line); *format; format = word(line))
        formats[count++] = (uint16_t)atoi(format);
    buf_put_u16(out, count);
    for (size_t i = 0; i < count; i++)
        buf_put_u16(out, formats[i]);
    wire_close(out, at);
}

static void put_startup(struct line *line, struct buf *out)
{
    size_t at = out->len;
    buf_put_u32(out, 0);
    buf_put_u32(out, line->text[5] == '3' ? 196610 : line->text[5] == '2' ? 131072 : 196608);
    for (char *pair = strtok(line->at, "|"); pair; pair = strtok(NULL, "|")) {
        char *value = strchr(pair, '=');
        *value++ = '\0';
        buf_put_cstr(out, pair);
        buf_put_cstr(out, value);
    }
    buf_put_u8(out, 0);
    set_u32(out->ptr + at, (uint32_t)(out->len - at));
}

static void put_packet(uint32_t code, struct buf *out)
{
    bool is_cancel = code == 80877102u;
    buf_put_u32(out, is_cancel ? 16 : 8);
    buf_put_u32(out, code);
    if (is_cancel)
        buf_put_u32(out, 4711);
    if (is_cancel)
        buf_put_u32(out, 0x04030201);
}

static void put_raw(const char *hex, struct buf *out)
{
    for (; hex[0] && hex[1]; hex += 2) {
        char byte[3] = {hex[0], hex[1], 0};
        buf_put_u8(out, (uint8_t)strtoul(byte, NULL, 16));
        while (hex[2] == ' ')
            hex++;
    }
}

static void put_text(char type, const char *text, bool with_nul, struct buf *out)
{
    size_t at = wire_open(out, type);
    buf_put_text(out, text);
    if (with_nul)
        buf_put_u8(out, 0);
    wire_close(out, at);
}

/* Replaces {next} and {prev}; the rest is copied. */
static void fill_in(const char *text, size_t len, const char *next, const char *prev, struct line *line)
{
    char *to = line->text;
    for (const char *end = text + len; text < end;) {
        bool is_next = strncmp(text, "{next}", 6) == 0;
        bool is_prev = strncmp(text, "{prev}", 6) == 0;
        if (!is_next && !is_prev) {
            *to++ = *text++;
            continue;
        }
        to += sprintf(to, "%.1500s", is_next ? next : prev);
        text += 6;
    }
    *to = '\0';
    line->at = line->text;
}

static bool put_word(const char *type, struct line *line, struct buf *out)
{
    if (strncmp(type, "start", 5) == 0)
        put_startup(line, out);
    else if (strcmp(type, "ssl") == 0)
        put_packet(80877103u, out);
    else if (strcmp(type, "gss") == 0)
        put_packet(80877104u, out);
    else if (strcmp(type, "cancel") == 0)
        put_packet(80877102u, out);
    else if (strcmp(type, "tls") == 0)
        buf_put_u8(out, 0x16);
    else if (strcmp(type, "raw") == 0)
        put_raw(line->at, out);
    else
        return false;
    return true;
}

/* `long type prefix`: a message of 40,000 bytes behind the prefix, blanks and then `x`. */
static void put_long(struct line *line, struct buf *out)
{
    char type = word(line)[0];
    size_t at = wire_open(out, type);
    if (type == 'P')
        buf_put_u8(out, 0);
    buf_put_text(out, "select 'x");
    for (size_t i = 0; i < 40000; i++)
        buf_put_u8(out, ' ');
    buf_put_text(out, "' ");
    buf_put_text(out, line->at);
    buf_put_u8(out, 0);
    if (type == 'P')
        buf_put_u16(out, 0);
    wire_close(out, at);
}

static void put_target(char type, struct line *line, struct buf *out)
{
    char kind = word(line)[0];
    wire_put_target(out, type, kind, span_cstr(name_of(word(line))));
}

static void put_execute(struct line *line, struct buf *out)
{
    const char *portal = name_of(word(line));
    wire_put_execute(out, span_cstr(portal), atoi(word(line)));
}

bool talk_encode(const char *text, size_t len, const char *next, const char *prev, struct buf *out)
{
    struct line line;
    fill_in(text, len, next, prev, &line);
    if (strcmp(line.text, "wait") == 0)
        return false;
    char *type = word(&line);
    if (strcmp(type, "long") == 0)
        put_long(&line, out);
    else if (!put_word(type, &line, out))
        switch (type[0]) {
        case 'Q': wire_put_query(out, line.at); break;
        case 'P': put_parse(&line, out); break;
        case 'B': put_bind(&line, out); break;
        case 'D':
        case 'C': put_target(type[0], &line, out); break;
        case 'E': put_execute(&line, out); break;
        case 'd': put_text('d', line.at, false, out); break;
        case 'f':
        case 'p': put_text(type[0], line.at, true, out); break;
        case 'F': put_text('F', "function", false, out); break;
        default: wire_put_empty(out, type[0]); break; /* S, H, X, c */
        }
    return true;
}
