/* scram_key.h - what both sides of an exchange compute: signatures, the hash of a key, nonces.
 *
 * It must not know what is compared with what. Functions fail only without memory or randomness. */
#ifndef SCRAM_KEY_H
#define SCRAM_KEY_H

#include "secret.h"

#define SCRAM_KEY_NONCE 24u /* characters of a nonce of ours, as many as PostgreSQL's */

/* ClientSignature or ServerSignature: HMAC over the whole exchange, which RFC 5802 calls AuthMessage. */
bool scram_key_sign(const uint8_t key[SCRAM_KEY], struct span exchange, uint8_t signature[SCRAM_KEY]) MUST_USE;
/* ClientProof from ClientKey and ClientSignature, or the key from the proof. */
void scram_key_xor(const uint8_t a[SCRAM_KEY], const uint8_t b[SCRAM_KEY], uint8_t out[SCRAM_KEY]);
/* StoredKey from ClientKey. */
bool scram_key_hash(const uint8_t key[SCRAM_KEY], uint8_t out[SCRAM_KEY]) MUST_USE;
bool scram_key_nonce(uint8_t nonce[SCRAM_KEY_NONCE]) MUST_USE;

#endif
