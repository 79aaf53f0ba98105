/* base64url.c - the strict codec of RFC 4648 section 5, without padding. */
#include "base64url.h"

static const char base64url_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t base64url_len(size_t len)
{
    return len / 3 * 4 + (len % 3 ? len % 3 + 1 : 0);
}

void base64url_put(struct span bytes, struct buf *out)
{
    uint8_t *room = buf_room(out, base64url_len(bytes.len));
    if (!room)
        return;
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        bits = bits << 8 | bytes.ptr[i];
        for (held += 8; held >= 6; held -= 6)
            *room++ = (uint8_t)base64url_alphabet[bits >> (held - 6) & 63];
    }
    if (held > 0)
        *room = (uint8_t)base64url_alphabet[bits << (6 - held) & 63];
}

/* -1 for a character that is not of the alphabet. */
static int base64url_value(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

bool base64url_get(struct span text, uint8_t *out, size_t *len)
{
    *len = 0;
    if (text.len % 4 == 1)
        return false;
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < text.len; i++) {
        int value = base64url_value(text.ptr[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        out[(*len)++] = (uint8_t)(bits >> held);
    }
    /* Spare bits must be zero, else one token would have several spellings. */
    return (bits & ((1u << held) - 1)) == 0;
}
