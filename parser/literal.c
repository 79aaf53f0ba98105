/* literal.c - what a string literal stands for.
 *
 * It decodes the bytes of one item of skim.h, by the rules of the quotes that it is written in; it must not know what
 * the value is for. */
#include "skim.h"

#include <string.h>

/* ---- escapes ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = skim_fold(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads up to max digits of a base that is a power of two; returns how many there were. */
static size_t read_digits(const char *at, const char *end, size_t max, int base, uint32_t *value)
{
    size_t n = 0;
    *value = 0;
    for (; n < max && at + n < end; n++) {
        int digit = hex_digit(at[n]);
        if (digit < 0 || digit >= base)
            break;
        *value = *value * (uint32_t)base + (uint32_t)digit;
    }
    return n;
}

/* Appends a code point as UTF-8; false for none, for half a surrogate pair, and beyond Unicode. */
static bool put_code_point(struct text *value, uint32_t code)
{
    if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return false;
    if (code < 0x80) {
        text_putc(value, (char)code);
        return true;
    }
    int trail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t leads[] = {0, 0xC0, 0xE0, 0xF0};
    text_putc(value, (char)(leads[trail] | code >> (6 * trail)));
    while (trail-- > 0)
        text_putc(value, (char)(0x80 | (code >> (6 * trail) & 0x3F)));
    return true;
}

/* One escape of E''; *at stands behind the backslash and is moved behind the escape. */
static bool put_backslash_escape(struct text *value, const char **at, const char *end)
{
    static const char letters[] = "bfnrtv";
    static const char controls[] = "\b\f\n\r\t\v";
    uint32_t code = 0;
    char c = *(*at)++;
    if (c == 'u' || c == 'U') {
        size_t want = c == 'u' ? 4 : 8;
        size_t got = read_digits(*at, end, want, 16, &code);
        *at += got;
        return got == want && put_code_point(value, code);
    }
    size_t digits = c == 'x' ? read_digits(*at, end, 2, 16, &code) : 0;
    if (c >= '0' && c <= '7')
        digits = read_digits(--*at, end, 3, 8, &code);
    if (digits) {
        *at += digits;
        text_putc(value, (char)(code & 0xFF));
        return (code & 0xFF) != 0;
    }
    const char *letter = strchr(letters, c);
    text_putc(value, letter && c ? controls[letter - letters] : c);
    return c != '\0';
}

/* One escape of U&''; *at stands behind the backslash. */
static bool put_unicode_escape(struct text *value, const char **at, const char *end)
{
    if (*at < end && **at == '\\') {
        text_putc(value, *(*at)++);
        return true;
    }
    bool is_long = *at < end && **at == '+';
    *at += is_long;
    uint32_t code = 0;
    size_t want = is_long ? 6 : 4;
    size_t got = read_digits(*at, end, want, 16, &code);
    *at += got;
    return got == want && put_code_point(value, code);
}

/* ---- quotes ---- */

/* Behind a closing quote: moves to the next opening one, of a continuation, or to the end. */
static const char *next_segment(const char *at, const char *end)
{
    while (at < end && *at != '\'') {
        if (end - at >= 2 && at[0] == '-' && at[1] == '-')
            while (at < end && *at != '\n' && *at != '\r')
                at++;
        else
            at++;
    }
    return at;
}

/* `at` is the opening quote; the item is known to be closed. */
static bool put_quoted(struct text *value, const char *at, const char *end, char prefix)
{
    bool is_good = true;
    at++;
    while (at < end && is_good) {
        if (*at == '\'' && end - at >= 2 && at[1] == '\'') {
            text_putc(value, '\'');
            at += 2;
        } else if (*at == '\'') {
            at = next_segment(at + 1, end);
            at += at < end;
        } else if (*at == '\\' && (prefix == 'e' || prefix == 'u')) {
            at++;
            is_good = prefix == 'e' ? put_backslash_escape(value, &at, end) : put_unicode_escape(value, &at, end);
        } else {
            text_putc(value, *at++);
        }
    }
    return is_good;
}

bool skim_string(const struct skim_item *item, struct text *value)
{
    if (item->kind != SKIM_STRING)
        return false;
    const char *at = item->start;
    if (*at == '$') {
        const char *body = (const char *)memchr(at + 1, '$', (size_t)(item->end - at - 1)) + 1;
        text_put(value, body, (size_t)(item->end - body) - (size_t)(body - at));
        return true;
    }
    const char *quote = memchr(at, '\'', (size_t)(item->end - at));
    char prefix = quote == at ? '\'' : skim_fold(*at);
    if (prefix == 'b' || prefix == 'x')
        return false;
    return put_quoted(value, quote, item->end, prefix);
}
