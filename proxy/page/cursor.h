/* cursor.h - the token: a position in an order, sealed, and the contract that it is bound to.
 *
 * It knows the token's layout and its cryptography and must not know SQL, sessions or clocks. Every length is checked
 * before it is used; a token that fails tells its holder one public sentence per code. */
#ifndef CURSOR_H
#define CURSOR_H

#include "../../parser/pgseek.h"
#include "../protocol/bytes.h"
#include "keyring.h"

#define CURSOR_MAX_TOKEN 2048 /* characters */
#define CURSOR_DIGEST 16      /* bytes of each part of the contract */

/* The parts of the contract, so that a mismatch can be named. */
enum cursor_part {
    CURSOR_QUERY,  /* the statement's tree and resolved relations */
    CURSOR_SORT,   /* key types, collations with version, enum labels, encoding of text keys */
    CURSOR_WHO,    /* database and user */
    CURSOR_FILTER, /* values of the parameters: a digest made by the server */
    CURSOR_SCOPE,  /* values of the scope settings: a digest made by the server */
    CURSOR_PARTS
};

enum cursor_direction { CURSOR_FORWARD, CURSOR_BACKWARD };

struct cursor_value {
    uint32_t type_oid;
    int32_t len; /* -1: NULL */
    const uint8_t *data;
};

struct cursor {
    enum cursor_direction direction;
    int64_t issued; /* seconds since 1970 */
    uint8_t part[CURSOR_PARTS][CURSOR_DIGEST];
    size_t nvalues;
    struct cursor_value value[PGSEEK_MAX_KEYS];
    uint8_t *owned; /* opened tokens: the memory that the values point into */
};

/* ---- seal and open ---- */

/* Appends the token's characters (base64url, no padding, no NUL). False when it would be longer than CURSOR_MAX_TOKEN,
 * or when memory or randomness is missing; `out` is then as it was. `sign` leaves the payload readable. */
bool cursor_seal(const struct keyring *keyring, bool sign, const struct cursor *cursor, struct buf *out) MUST_USE;

/* Opens a token, sealed in either way. False with PS001, PS002 or PS003 in *error, and nothing in *cursor to release:
 * one text for each code. `now` and `ttl` in seconds; ttl 0 never expires. A token from the future is taken: clocks
 * differ and step back. */
bool cursor_open(const struct keyring *keyring, struct span token, int64_t now, int64_t ttl, struct cursor *cursor,
                 struct pgseek_error *error) MUST_USE;
void cursor_fini(struct cursor *cursor);

/* The first CURSOR_DIGEST bytes of SHA-256 over the chunks, each preceded by its length. */
bool cursor_digest(const struct span *chunks, size_t nchunks, uint8_t out[CURSOR_DIGEST]) MUST_USE;

/* Compares two parts in constant time. */
bool cursor_part_equal(const uint8_t *a, const uint8_t *b);

#endif
