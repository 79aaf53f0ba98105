/* noise.c - damage by a small generator of random numbers. */
#include "noise.h"

#include <string.h>

#include "../../proxy/protocol/wire.h"

/* One message in so many is spoilt. */
#define SPARED 12

static uint32_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (uint32_t)(*seed >> 16);
}

static const char types[] = "123tTnDCIsEZSNAGHWdcVKRv"
                            "QPBDECSHXFdcfp";

/* Bodies that have broken readers: counts that nothing follows, texts without an end, rows with too few columns. */
static const struct {
    const char *bytes;
    size_t len;
} bodies[] = {
    {"", 0},
    {"I", 1},
    {"T", 1},
    {"?", 1},
    {"\xff\xff", 2},
    {"\0\0", 2},
    {"\0\1\0\0\0\1x", 7},
    {"\0\1\xff\xff\xff\xfe", 6},
    {"\0\1\x7f\xff\xff\xff", 6},
    {"\0\2\0\0\0\0\0\0\0\0", 10},
    {"SELECT 99", 10},
    {"SELECT", 6},
    {"C22012\0", 8},
    {"C26000", 6},
    {"P99999999999999999999\0", 23},
    {"SERROR\0C42703\0M\0\0", 17},
    {"a\0b\0", 4},
    {"pgseek.next_cursor\0x", 21},
    {"client_encoding\0SJIS", 21},
    {"standard_conforming_strings\0off", 32},
    {"\0\0\0\0\0\0\0\0", 8},
};

static void put_invented(uint64_t *seed, struct buf *out)
{
    size_t body = next(seed) % (sizeof bodies / sizeof *bodies);
    size_t at = wire_open(out, types[next(seed) % (sizeof types - 1)]);
    buf_put(out, bodies[body].bytes, bodies[body].len);
    wire_close(out, at);
}

/* Changes a message that has been copied to the end of `out`. */
static void spoil(uint64_t *seed, struct buf *out, size_t start)
{
    size_t len = out->len - start;
    uint8_t *message = out->ptr + start;
    switch (next(seed) % 6) {
    case 0: message[0] = (uint8_t)types[next(seed) % (sizeof types - 1)]; break;
    case 1: set_u32(message + 1, next(seed) % 3 ? (uint32_t)len - 2 + next(seed) % 3 : next(seed)); break;
    case 2: message[next(seed) % len] ^= (uint8_t)(1u << next(seed) % 8); break;
    case 3: message[next(seed) % len] = (uint8_t)next(seed); break;
    case 4: /* shorter, and it says so */
        out->len -= len > WIRE_HEADER ? next(seed) % (len - WIRE_HEADER) : 0;
        set_u32(message + 1, (uint32_t)(out->len - start - 1));
        break;
    default: out->len = start; break; /* dropped */
    }
}

void noise_put(uint64_t *seed, struct span messages, struct buf *out)
{
    while (messages.len >= WIRE_HEADER) {
        size_t len = (size_t)get_u32(messages.ptr + 1) + 1;
        len = len < WIRE_HEADER || len > messages.len ? messages.len : len;
        size_t start = out->len;
        buf_put(out, messages.ptr, len);
        if (next(seed) % SPARED == 0)
            spoil(seed, out, start);
        if (next(seed) % (4 * SPARED) == 0)
            put_invented(seed, out);
        if (next(seed) % (4 * SPARED) == 0)
            buf_put(out, messages.ptr, len);
        messages = span_of(messages.ptr + len, messages.len - len);
    }
    buf_put_span(out, messages);
}
