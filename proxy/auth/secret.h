/* secret.h - what a server keeps instead of a password: a SCRAM-SHA-256 secret as PostgreSQL stores it.
 *
 * It knows the text form (pg_authid.rolpassword) and its limits, and must not know who it belongs to. A secret verifies
 * a client and cannot log in anywhere by itself. */
#ifndef SECRET_H
#define SECRET_H

#include "../protocol/bytes.h"

#define SCRAM_KEY 32u /* bytes of SHA-256 */
#define SECRET_SALT_MAX 256u
#define SECRET_ITERATIONS_MIN 1u
#define SECRET_ITERATIONS_MAX 10000000u /* a client would compute for longer than any login time-out */

struct secret {
    uint32_t iterations;
    size_t salt_len;
    uint8_t salt[SECRET_SALT_MAX];
    uint8_t stored_key[SCRAM_KEY];
    uint8_t server_key[SCRAM_KEY];
    bool is_mock; /* nobody's: every proof is refused, after the same work */
};

/* "SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>". False for anything else, md5 and plain text included. */
bool secret_read(struct span text, struct secret *out) MUST_USE;
/* Its parts, which the texts of an exchange carry in the same spelling: a count without sign or leading zeros, within
 * the limits; 1 to SECRET_SALT_MAX bytes; SCRAM_KEY bytes. */
bool secret_read_iterations(struct span text, uint32_t *iterations) MUST_USE;
bool secret_read_salt(struct span text, uint8_t salt[SECRET_SALT_MAX], size_t *len) MUST_USE;
bool secret_read_key(struct span text, uint8_t key[SCRAM_KEY]) MUST_USE;
/* Appends the text form. A growing buffer leaves copies in freed memory: give it room first where that matters. */
void secret_put(const struct secret *secret, struct buf *out);

/* For a user that does not exist: looks the same each time, so that nobody learns which users there are, for whoever
 * does not know the seed. Its count and its salt's length are PostgreSQL's defaults. False when the digest cannot be
 * made. */
bool secret_mock(const uint8_t seed[SCRAM_KEY], struct span user, struct secret *out) MUST_USE;
/* What a stranger sees of a secret before he has proved anything. */
struct secret_shape {
    uint32_t iterations; /* 0: unknown */
    size_t salt_len;
};

struct secret_shape secret_shape(const struct secret *secret);
/* Of the secrets that a server makes whose scram_iterations is this; all zero when it is no count. */
struct secret_shape secret_shape_usual(struct span iterations);
/* Gives a mock secret the shape of real ones, if it is known: where all users have 10,000 iterations, the one with
 * 4,096 is nobody. */
void secret_mock_like(struct secret *mock, struct secret_shape real);
void secret_wipe(struct secret *secret);

#endif
