/* base64.c - the strict codec of RFC 4648, in both alphabets. */
#include "base64.h"

static const char base64_plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char base64_url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void base64_encode(const char *alphabet, struct span bytes, uint8_t *room)
{
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        bits = bits << 8 | bytes.ptr[i];
        for (held += 8; held >= 6; held -= 6)
            *room++ = (uint8_t)alphabet[bits >> (held - 6) & 63];
    }
    if (held > 0)
        *room = (uint8_t)alphabet[bits << (6 - held) & 63];
}

/* -1 for a character that is not of the alphabet. */
static int base64_value(const char *alphabet, uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == alphabet[62] ? 62 : c == alphabet[63] ? 63 : -1;
}

static bool base64_decode(const char *alphabet, struct span text, uint8_t *out, size_t *len)
{
    *len = 0;
    if (text.len % 4 == 1)
        return false;
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < text.len; i++) {
        int value = base64_value(alphabet, text.ptr[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        out[(*len)++] = (uint8_t)(bits >> held);
    }
    /* Spare bits must be zero, else one byte string would have several spellings. */
    return (bits & ((1u << held) - 1)) == 0;
}

/* ---- with padding ---- */

size_t base64_len(size_t len)
{
    return len / 3 * 4 + (len % 3 ? 4 : 0);
}

void base64_put(struct span bytes, struct buf *out)
{
    uint8_t *room = buf_room(out, base64_len(bytes.len));
    if (!room)
        return;
    base64_encode(base64_plain, bytes, room);
    for (size_t missing = (3 - bytes.len % 3) % 3; missing > 0; missing--)
        room[base64_len(bytes.len) - missing] = '=';
}

bool base64_get(struct span text, uint8_t *out, size_t *len)
{
    *len = 0;
    if (text.len % 4 != 0)
        return false;
    for (int i = 0; i < 2 && text.len > 0 && text.ptr[text.len - 1] == '='; i++)
        text.len--;
    return base64_decode(base64_plain, text, out, len);
}

/* ---- without ---- */

size_t base64url_len(size_t len)
{
    return len / 3 * 4 + (len % 3 ? len % 3 + 1 : 0);
}

void base64url_put(struct span bytes, struct buf *out)
{
    uint8_t *room = buf_room(out, base64url_len(bytes.len));
    if (room)
        base64_encode(base64_url, bytes, room);
}

bool base64url_get(struct span text, uint8_t *out, size_t *len)
{
    return base64_decode(base64_url, text, out, len);
}
