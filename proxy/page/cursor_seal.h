/* cursor_seal.h - the two ways to protect a token's payload: encrypted and authenticated, or authenticated only.
 *
 * It is the only place that calls ciphers, and must not know what a payload holds. Encryption is XAES-256-GCM:
 * AES-256-GCM under a key derived anew from the first half of a random 192-bit nonce. With plain AES-256-GCM a key is
 * good for 2^32 random nonces, which a busy proxy that gives each row a cursor spends in a day. */
#ifndef CURSOR_SEAL_H
#define CURSOR_SEAL_H

#include "../protocol/bytes.h"

#define SEAL_KEY 32
#define SEAL_BLOCK 16
#define SEAL_NONCE 24
#define SEAL_TAG 16
#define SEAL_MAC 32

/* What is kept ready for one key. Immutable once made, so threads may share it. */
struct seal_key {
    uint8_t encrypt[SEAL_KEY];
    uint8_t subkey[SEAL_BLOCK]; /* CMAC's, of `encrypt` */
    uint8_t sign[SEAL_KEY];
    struct evp_cipher_st *block; /* the ciphers, looked up once: a look-up costs as much as a token */
    struct evp_cipher_st *gcm;
};

/* False when memory is missing; seal_key_fini() is to be called either way. */
bool seal_key_init(struct seal_key *key, const uint8_t encrypt[SEAL_KEY], const uint8_t sign[SEAL_KEY]) MUST_USE;
void seal_key_fini(struct seal_key *key); /* wipes; harmless on an all-zero key */

/* Appends nonce, ciphertext and tag. `header` is authenticated with them. False when memory or randomness is missing.
 */
bool seal_encrypt(const struct seal_key *key, struct span header, struct span plain, struct buf *out) MUST_USE;
/* The inverse: `plain` has room for sealed.len - SEAL_NONCE - SEAL_TAG bytes. False when anything was altered. */
bool seal_decrypt(const struct seal_key *key, struct span header, struct span sealed, uint8_t *plain) MUST_USE;

/* HMAC-SHA-256. */
bool seal_sign(const struct seal_key *key, struct span message, uint8_t mac[SEAL_MAC]) MUST_USE;
/* Compares in constant time. */
bool seal_verify(const struct seal_key *key, struct span message, const uint8_t mac[SEAL_MAC]) MUST_USE;

/* For the test against published vectors: encryption under a given nonce. */
bool seal_encrypt_nonce(const struct seal_key *key, const uint8_t nonce[SEAL_NONCE], struct span header,
                        struct span plain, uint8_t *sealed) MUST_USE;

#endif
