/* bytes.h - spans, growable buffers and the checked reader: all that touches raw bytes goes through here.
 *
 * It knows sizes and byte order and must not know what a message means. A span borrows, a buf owns; a reader and a buf
 * remember their first failure and stay harmless after it, so that callers check once, at the end. */
#ifndef BYTES_H
#define BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_USE __attribute__((warn_unused_result))

/* ---- memory: every allocation of the proxy goes through these, so that tests can make the n-th one fail ---- */

void *mem_alloc(size_t len) MUST_USE;              /* uninitialised; NULL when out of memory */
void *mem_zalloc(size_t len) MUST_USE;             /* zeroed */
void *mem_realloc(void *ptr, size_t len) MUST_USE; /* ptr stays valid when NULL is returned */
void *mem_dup(const void *ptr, size_t len) MUST_USE;
char *mem_strndup(const char *text, size_t len) MUST_USE; /* a NUL-terminated copy */
void mem_free(void *ptr);
/* For tests: the (n+1)-th allocation from now fails, once; -1 switches it off. Not for threads. */
void mem_fail_after(long n);

/* ---- span: borrowed bytes ---- */

struct span {
    const uint8_t *ptr;
    size_t len;
};

static inline struct span span_of(const void *ptr, size_t len)
{
    return (struct span){.ptr = ptr, .len = len};
}
struct span span_cstr(const char *text); /* without the NUL */
bool span_equal(struct span a, struct span b);
bool span_equal_cstr(struct span a, const char *text);
bool span_is_ascii(struct span text);
/* Takes what stands in front of the next line feed, and that with it; all the rest where there is none. */
struct span span_take_line(struct span *rest);
size_t span_hash(struct span bytes); /* FNV-1a, for tables that no stranger can fill */

/* ---- reader: takes fields out of a span, never beyond it ---- */

struct reader {
    const uint8_t *at;
    const uint8_t *end;
    bool failed; /* a field did not fit; everything read since is zero or empty */
};

struct reader rd_init(struct span bytes);
uint8_t rd_u8(struct reader *rd);
uint16_t rd_u16(struct reader *rd);
uint32_t rd_u32(struct reader *rd);
int32_t rd_i32(struct reader *rd);
struct span rd_bytes(struct reader *rd, size_t len);
/* A NUL-terminated string, returned without its NUL (which is there: the pointer may be used as a C string). */
struct span rd_cstr(struct reader *rd);
size_t rd_left(const struct reader *rd);
bool rd_done(const struct reader *rd); /* nothing failed and nothing is left */

/* ---- buf: owned, growing bytes ---- */

struct buf {
    uint8_t *ptr;
    size_t len;
    size_t cap;
    bool failed; /* out of memory: appends since then did nothing */
};

void buf_fini(struct buf *buf);                 /* frees; the buf is empty and usable again */
void buf_clear(struct buf *buf);                /* empties, keeps the memory, forgets a failure */
void buf_trim(struct buf *buf, size_t keep);    /* empties and gives memory above `keep` bytes back */
void buf_reserve(struct buf *buf, size_t len);  /* memory for len more bytes, in one step */
uint8_t *buf_room(struct buf *buf, size_t len); /* appends len bytes to be filled in; NULL when failed */
void buf_put(struct buf *buf, const void *ptr, size_t len);
void buf_put_span(struct buf *buf, struct span bytes);
void buf_put_u8(struct buf *buf, uint8_t value);
void buf_put_u16(struct buf *buf, uint16_t value);
void buf_put_u32(struct buf *buf, uint32_t value);
void buf_put_i32(struct buf *buf, int32_t value);
void buf_put_u64(struct buf *buf, uint64_t value);
void buf_put_cstr(struct buf *buf, const char *text); /* with its NUL */
void buf_put_text(struct buf *buf, const char *text); /* without */
void buf_put_format(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_consume(struct buf *buf, size_t len); /* drops len bytes from the front */
struct span buf_span(const struct buf *buf);

uint16_t get_u16(const uint8_t *p);
uint32_t get_u32(const uint8_t *p);
void set_u16(uint8_t *p, uint16_t value);
void set_u32(uint8_t *p, uint32_t value);

#endif
