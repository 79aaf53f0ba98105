/* base64url.h - bytes as characters that need no quoting in SQL, URLs or comments, without padding.
 *
 * It must not know what the bytes mean. Decoding is strict: every byte string has exactly one spelling. */
#ifndef BASE64URL_H
#define BASE64URL_H

#include "../protocol/bytes.h"

/* Characters for `len` bytes. */
size_t base64url_len(size_t len);
void base64url_put(struct span bytes, struct buf *out);

/* Decodes into `out`, which has room for text.len * 3 / 4 bytes. False when a character is not of the alphabet, the
 * length is impossible or spare bits are set. */
bool base64url_get(struct span text, uint8_t *out, size_t *len) MUST_USE;

#endif
