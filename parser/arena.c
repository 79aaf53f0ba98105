/* arena.c - memory that goes in one piece, and a text that grows.
 *
 * It knows sizes and must not know what is stored; every allocation of parser/ itself is made here. */
#include "arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)8 * 1024)
#define ALIGNMENT _Alignof(max_align_t)

struct arena_block {
    struct arena_block *older;
    size_t used;
    size_t size;
    max_align_t bytes[];
};

/* ---- arena ---- */

static void *arena_fail(struct arena *arena)
{
    arena->failed = true;
    return NULL;
}

static struct arena_block *arena_grow(struct arena *arena, size_t len)
{
    size_t size = len > BLOCK_BYTES ? len : BLOCK_BYTES;
    struct arena_block *block = calloc(1, sizeof *block + size);
    if (!block)
        return NULL;
    block->size = size;
    block->older = arena->newest;
    arena->newest = block;
    return block;
}

void *arena_alloc(struct arena *arena, size_t len)
{
    if (arena->failed || len > ARENA_MAX_BYTES)
        return arena_fail(arena);
    size_t padded = (len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (padded > ARENA_MAX_BYTES - arena->total_bytes)
        return arena_fail(arena);

    struct arena_block *block = arena->newest;
    if (!block || block->size - block->used < padded)
        block = arena_grow(arena, padded);
    if (!block)
        return arena_fail(arena);
    void *memory = (char *)block->bytes + block->used;
    block->used += padded;
    arena->total_bytes += padded;
    return memory;
}

void *arena_array(struct arena *arena, size_t count, size_t item_bytes)
{
    if (item_bytes && count > ARENA_MAX_BYTES / item_bytes)
        return arena_fail(arena);
    return arena_alloc(arena, count * item_bytes);
}

char *arena_strndup(struct arena *arena, const char *text, size_t len)
{
    if (len >= ARENA_MAX_BYTES)
        return arena_fail(arena);
    char *copy = arena_alloc(arena, len + 1);
    if (copy && len)
        memcpy(copy, text, len);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

char *arena_format(struct arena *arena, const char *format, ...)
{
    struct text text = {0};
    va_list args;
    va_start(args, format);
    text_vformat(&text, format, args);
    va_end(args);
    char *copy = text.failed ? arena_fail(arena) : arena_strndup(arena, text.ptr, text.len);
    text_fini(&text);
    return copy;
}

void arena_fini(struct arena *arena)
{
    while (arena->newest) {
        struct arena_block *older = arena->newest->older;
        free(arena->newest);
        arena->newest = older;
    }
    *arena = (struct arena){0};
}

/* ---- text ---- */

/* Makes room for len more bytes and a NUL. */
static bool text_reserve(struct text *text, size_t len)
{
    if (text->failed || len > SIZE_MAX / 4 - text->len) {
        text->failed = true;
        return false;
    }
    size_t cap = text->cap ? text->cap : 64;
    while (cap < text->len + len + 1)
        cap *= 2;
    if (text->ptr && cap == text->cap)
        return true;
    char *grown = realloc(text->ptr, cap);
    if (!grown) {
        text->failed = true;
        return false;
    }
    text->ptr = grown;
    text->cap = cap;
    return true;
}

void text_put(struct text *text, const char *bytes, size_t len)
{
    if (!text_reserve(text, len))
        return;
    if (len)
        memcpy(text->ptr + text->len, bytes, len);
    text->len += len;
    text->ptr[text->len] = '\0';
}

void text_puts(struct text *text, const char *string)
{
    text_put(text, string, strlen(string));
}

void text_putc(struct text *text, char c)
{
    text_put(text, &c, 1);
}

void text_vformat(struct text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    if (len >= 0 && text_reserve(text, (size_t)len)) {
        vsnprintf(text->ptr + text->len, (size_t)len + 1, format, again);
        text->len += (size_t)len;
    }
    text->failed |= len < 0;
    va_end(again);
}

void text_format(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_vformat(text, format, args);
    va_end(args);
}

bool text_is_ascii(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)bytes[i] >= 0x80)
            return false;
    return true;
}

void text_put_ident(struct text *text, const char *name)
{
    text_putc(text, '"');
    for (const char *at = name; *at; at++) {
        if (*at == '"')
            text_putc(text, '"');
        text_putc(text, *at);
    }
    text_putc(text, '"');
}

char *text_take(struct text *text)
{
    if (!text->ptr && !text->failed)
        text_put(text, "", 0);
    char *taken = NULL;
    if (!text->failed) {
        taken = text->ptr;
        text->ptr = NULL;
    }
    text_fini(text);
    return taken;
}

void text_fini(struct text *text)
{
    free(text->ptr);
    *text = (struct text){0};
}
