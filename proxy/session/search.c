/* search.c - a tag in a statement that is too large to be kept, found while its parts pass by.
 *
 * It sees each part once, wherever they are cut, and remembers a few bytes. It must not know messages. */
#include "internal.h"

#include <string.h>

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The end of the text without its blanks. */
static size_t strip(struct span text, size_t end)
{
    while (end > 0 && is_blank(text.ptr[end - 1]))
        end--;
    return end;
}

static bool opens(uint8_t first, uint8_t second)
{
    return (first == '/' && second == '*') || (first == '-' && second == '-');
}

/* Whether nothing but blanks stands between the beginning of a comment and here; `before` is in front of the text. */
static bool follows_opening(struct span text, size_t at, struct span before)
{
    size_t end = strip(text, at);
    if (end >= 2)
        return opens(text.ptr[end - 2], text.ptr[end - 1]);
    if (end == 1)
        return before.len > 0 && opens(before.ptr[before.len - 1], text.ptr[0]);
    return before.len > 0 && follows_opening(before, before.len, span_of("", 0));
}

/* The first word of a comment, or one of our keys in one. */
static bool looks_like_tag(struct span text, size_t at, struct span before)
{
    bool is_key = at + 7 <= text.len && (text.ptr[at + 6] == '_' || text.ptr[at + 6] == '=');
    return is_key || follows_opening(text, at, before);
}

static bool has_tag(struct span text, struct span before)
{
    const uint8_t *at = text.ptr;
    while ((at = memmem(at, (size_t)(text.ptr + text.len - at), "pgseek", 6)) != NULL) {
        if (looks_like_tag(text, (size_t)(at - text.ptr), before))
            return true;
        at++;
    }
    return false;
}

/* Keeps the end of the text, and whether it follows the opening of a comment. */
static void keep(struct search *search, struct span text, struct span before)
{
    uint8_t tail[sizeof search->tail];
    size_t len = text.len < sizeof tail ? text.len : sizeof tail;
    memcpy(tail, text.ptr + text.len - len, len);
    if (text.len > SEARCH_KEPT && follows_opening(text, text.len - SEARCH_KEPT, before)) {
        len = sizeof tail;
        memcpy(tail, "/*", 2);
        memcpy(tail + 2, text.ptr + text.len - SEARCH_KEPT, SEARCH_KEPT);
    }
    memcpy(search->tail, tail, len);
    search->len = len;
}

bool search_finds_tag(struct search *search, struct span part)
{
    uint8_t joined[2 * sizeof search->tail];
    struct span before = span_of(search->tail, search->len);
    size_t head = part.len < sizeof search->tail ? part.len : sizeof search->tail;
    memcpy(joined, search->tail, search->len);
    memcpy(joined + search->len, part.ptr, head);
    struct span seam = span_of(joined, search->len + head);
    if (has_tag(seam, span_of("", 0)) || has_tag(part, before))
        return true;
    if (part.len > head)
        keep(search, part, before);
    else
        keep(search, seam, span_of("", 0));
    return false;
}
