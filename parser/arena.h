/* arena.h - memory that goes in one piece: an arena for trees and plans, and a text that grows.
 *
 * It knows sizes and must not know what is stored. Both remember their first failure and stay harmless after it, so
 * that builders check once, at the end. */
#ifndef PARSER_ARENA_H
#define PARSER_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- arena: all-zero is an empty one ---- */

struct arena_block;

struct arena {
    struct arena_block *newest;
    size_t total_bytes; /* asked for so far */
    bool failed;        /* out of memory, or above ARENA_MAX_BYTES: something has come back NULL since */
};

/* More than any statement within the lexer's limits needs: a bound for our own mistakes. */
#define ARENA_MAX_BYTES ((size_t)64 * 1024 * 1024)

/* Zeroed memory that lives as long as the arena, aligned for any type. NULL when failed. */
void *arena_alloc(struct arena *arena, size_t len);
/* The same for an array; the product is checked. */
void *arena_array(struct arena *arena, size_t count, size_t item_bytes);
/* A NUL-terminated copy of len bytes. NULL when failed. */
char *arena_strndup(struct arena *arena, const char *text, size_t len);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_format(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Frees everything; the arena is empty and usable again. */
void arena_fini(struct arena *arena);

/* ---- text: a string that grows; all-zero is an empty one ---- */

struct text {
    char *ptr; /* NUL-terminated, or NULL while nothing was put */
    size_t len;
    size_t cap;
    bool failed; /* out of memory: what was put since is missing */
};

void text_put(struct text *text, const char *bytes, size_t len);
void text_puts(struct text *text, const char *string);
void text_putc(struct text *text, char c);
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vformat(struct text *text, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
bool text_is_ascii(const char *bytes, size_t len);
/* Puts a name in double quotes, inner quotes doubled: what any identifier may be written as. */
void text_put_ident(struct text *text, const char *name);
/* Hands the string over, to be freed with free(); NULL when failed. The text is empty afterwards. */
char *text_take(struct text *text);
void text_fini(struct text *text);

#endif
