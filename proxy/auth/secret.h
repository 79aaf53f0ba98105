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
/* For a user that does not exist: looks the same each time, so that nobody learns which users there are. `seed` is this
 * process's own. False when the digest cannot be made. */
bool secret_mock(const uint8_t seed[SCRAM_KEY], struct span user, struct secret *out) MUST_USE;
void secret_wipe(struct secret *secret);

#endif
