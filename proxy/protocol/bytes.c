/* bytes.c - spans, growable buffers, the checked reader, and the one place that allocates. */
#include "bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long mem_countdown = -1; /* for tests only */

static bool mem_denied(void)
{
    return mem_countdown >= 0 && mem_countdown-- == 0;
}

void mem_fail_after(long n)
{
    mem_countdown = n;
}

void *mem_alloc(size_t len)
{
    return mem_denied() ? NULL : malloc(len ? len : 1);
}

void *mem_zalloc(size_t len)
{
    return mem_denied() ? NULL : calloc(1, len ? len : 1);
}

void *mem_realloc(void *ptr, size_t len)
{
    return mem_denied() ? NULL : realloc(ptr, len ? len : 1);
}

void *mem_dup(const void *ptr, size_t len)
{
    void *copy = mem_alloc(len);
    if (copy && len)
        memcpy(copy, ptr, len);
    return copy;
}

char *mem_strndup(const char *text, size_t len)
{
    char *copy = mem_alloc(len + 1);
    if (!copy)
        return NULL;
    if (len)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void mem_free(void *ptr)
{
    free(ptr);
}

/* ---- span ---- */

struct span span_cstr(const char *text)
{
    return span_of(text, strlen(text));
}

bool span_equal(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool span_equal_cstr(struct span a, const char *text)
{
    return span_equal(a, span_cstr(text));
}

bool span_is_ascii(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] & 0x80)
            return false;
    return true;
}

struct span span_take_line(struct span *rest)
{
    const uint8_t *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    size_t len = end ? (size_t)(end - rest->ptr) : rest->len;
    struct span line = span_of(rest->ptr, len);
    *rest = span_of(rest->ptr + len + (end ? 1 : 0), rest->len - len - (end ? 1 : 0));
    return line;
}

size_t span_hash(struct span bytes)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < bytes.len; i++)
        hash = (hash ^ bytes.ptr[i]) * 1099511628211u;
    return (size_t)(hash ^ hash >> 32);
}

/* ---- byte order ---- */

uint16_t get_u16(const uint8_t *p)
{
    return (uint16_t)((unsigned)p[0] << 8 | p[1]);
}

uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

void set_u16(uint8_t *p, uint16_t value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

void set_u32(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)(value >> 24);
    p[1] = (uint8_t)(value >> 16);
    p[2] = (uint8_t)(value >> 8);
    p[3] = (uint8_t)value;
}

/* ---- reader ---- */

struct reader rd_init(struct span bytes)
{
    static const uint8_t nothing[1];
    const uint8_t *at = bytes.ptr ? bytes.ptr : nothing; /* NULL takes part in no pointer arithmetic, not even + 0 */
    return (struct reader){.at = at, .end = at + bytes.len};
}

size_t rd_left(const struct reader *rd)
{
    return rd->failed ? 0 : (size_t)(rd->end - rd->at);
}

bool rd_done(const struct reader *rd)
{
    return !rd->failed && rd->at == rd->end;
}

struct span rd_bytes(struct reader *rd, size_t len)
{
    if (rd_left(rd) < len) {
        rd->failed = true;
        return span_of(NULL, 0);
    }
    struct span taken = span_of(rd->at, len);
    rd->at += len;
    return taken;
}

uint8_t rd_u8(struct reader *rd)
{
    struct span b = rd_bytes(rd, 1);
    return b.ptr ? b.ptr[0] : 0;
}

uint16_t rd_u16(struct reader *rd)
{
    struct span b = rd_bytes(rd, 2);
    return b.ptr ? get_u16(b.ptr) : 0;
}

uint32_t rd_u32(struct reader *rd)
{
    struct span b = rd_bytes(rd, 4);
    return b.ptr ? get_u32(b.ptr) : 0;
}

int32_t rd_i32(struct reader *rd)
{
    return (int32_t)rd_u32(rd);
}

struct span rd_cstr(struct reader *rd)
{
    const uint8_t *nul = rd_left(rd) ? memchr(rd->at, 0, rd_left(rd)) : NULL;
    if (!nul) {
        rd->failed = true;
        return span_of("", 0);
    }
    struct span text = span_of(rd->at, (size_t)(nul - rd->at));
    rd->at = nul + 1;
    return text;
}

/* ---- buf ---- */

void buf_fini(struct buf *buf)
{
    mem_free(buf->ptr);
    *buf = (struct buf){0};
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->failed = false;
}

void buf_trim(struct buf *buf, size_t keep)
{
    if (buf->cap > keep)
        buf_fini(buf);
    else
        buf_clear(buf);
}

uint8_t *buf_room(struct buf *buf, size_t len)
{
    if (buf->failed || len > SIZE_MAX / 2 - buf->len) {
        buf->failed = true;
        return NULL;
    }
    if (!buf->ptr || buf->len + len > buf->cap) {
        size_t cap = buf->cap ? buf->cap : 64;
        while (cap < buf->len + len)
            cap *= 2;
        uint8_t *grown = mem_realloc(buf->ptr, cap);
        if (!grown) {
            buf->failed = true;
            return NULL;
        }
        buf->ptr = grown;
        buf->cap = cap;
    }
    uint8_t *room = buf->ptr + buf->len;
    buf->len += len;
    return room;
}

void buf_reserve(struct buf *buf, size_t len)
{
    if (buf_room(buf, len))
        buf->len -= len;
}

void buf_put(struct buf *buf, const void *ptr, size_t len)
{
    if (len == 0)
        return;
    uint8_t *room = buf_room(buf, len);
    if (room)
        memcpy(room, ptr, len);
}

void buf_put_span(struct buf *buf, struct span bytes)
{
    buf_put(buf, bytes.ptr, bytes.len);
}

void buf_put_u8(struct buf *buf, uint8_t value)
{
    buf_put(buf, &value, 1);
}

void buf_put_u16(struct buf *buf, uint16_t value)
{
    uint8_t *room = buf_room(buf, 2);
    if (room)
        set_u16(room, value);
}

void buf_put_u32(struct buf *buf, uint32_t value)
{
    uint8_t *room = buf_room(buf, 4);
    if (room)
        set_u32(room, value);
}

void buf_put_i32(struct buf *buf, int32_t value)
{
    buf_put_u32(buf, (uint32_t)value);
}

void buf_put_u64(struct buf *buf, uint64_t value)
{
    buf_put_u32(buf, (uint32_t)(value >> 32));
    buf_put_u32(buf, (uint32_t)value);
}

void buf_put_cstr(struct buf *buf, const char *text)
{
    buf_put(buf, text, strlen(text) + 1);
}

void buf_put_text(struct buf *buf, const char *text)
{
    buf_put(buf, text, strlen(text));
}

void buf_put_format(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_list again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    uint8_t *room = len < 0 ? NULL : buf_room(buf, (size_t)len + 1);
    if (room) {
        vsnprintf((char *)room, (size_t)len + 1, format, again);
        buf->len--; /* the NUL is not part of the bytes */
    }
    va_end(again);
}

void buf_consume(struct buf *buf, size_t len)
{
    if (len >= buf->len) {
        buf->len = 0;
        return;
    }
    buf->len -= len;
    memmove(buf->ptr, buf->ptr + len, buf->len);
}

struct span buf_span(const struct buf *buf)
{
    return span_of(buf->ptr, buf->len);
}
