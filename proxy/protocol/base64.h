/* base64.h - bytes as characters: base64 with padding, as SCRAM has it, and base64url without, as tokens have it.
 *
 * It must not know what the bytes mean. Decoding is strict: every byte string has exactly one spelling. */
#ifndef BASE64_H
#define BASE64_H

#include "bytes.h"

/* RFC 4648 section 4, padded. The first is the number of characters for `len` bytes; `out` of a decoder has room for
 * text.len * 3 / 4 bytes. False when a character is not of the alphabet, the length is impossible or spare bits are
 * set. */
size_t base64_len(size_t len);
void base64_put(struct span bytes, struct buf *out);
bool base64_get(struct span text, uint8_t *out, size_t *len) MUST_USE;

/* RFC 4648 section 5, without padding: nothing in it needs quoting in SQL, URLs or comments. */
size_t base64url_len(size_t len);
void base64url_put(struct span bytes, struct buf *out);
bool base64url_get(struct span text, uint8_t *out, size_t *len) MUST_USE;

#endif
