/* cursor_seal.c - XAES-256-GCM and HMAC-SHA-256 on OpenSSL's primitives. */
#include "cursor_seal.h"

#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

/* Encrypts whole blocks with AES-256 alone, in place. */
static bool seal_blocks(const struct seal_key *key, uint8_t *blocks, int len)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int done = 0;
    bool ok = ctx && EVP_EncryptInit_ex(ctx, key->block, NULL, key->encrypt, NULL) == 1 &&
              EVP_CIPHER_CTX_set_padding(ctx, 0) == 1 && EVP_EncryptUpdate(ctx, blocks, &done, blocks, len) == 1 &&
              done == len;
    EVP_CIPHER_CTX_free(ctx);
    return ok;
}

/* Doubling in GF(2^128). */
static void seal_double(uint8_t block[SEAL_BLOCK])
{
    uint8_t carry = (uint8_t)(block[0] >> 7);
    for (size_t i = 0; i + 1 < SEAL_BLOCK; i++)
        block[i] = (uint8_t)(block[i] << 1 | block[i + 1] >> 7);
    block[SEAL_BLOCK - 1] = (uint8_t)(block[SEAL_BLOCK - 1] << 1 ^ (carry ? 0x87 : 0));
}

bool seal_key_init(struct seal_key *key, const uint8_t encrypt[SEAL_KEY], const uint8_t sign[SEAL_KEY])
{
    *key = (struct seal_key){.block = EVP_CIPHER_fetch(NULL, "AES-256-ECB", NULL),
                             .gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL)};
    memcpy(key->encrypt, encrypt, SEAL_KEY);
    memcpy(key->sign, sign, SEAL_KEY);
    /* CMAC's first subkey: the encrypted zero block, doubled. */
    bool ok = key->block && key->gcm && seal_blocks(key, key->subkey, SEAL_BLOCK);
    seal_double(key->subkey);
    return ok;
}

void seal_key_fini(struct seal_key *key)
{
    EVP_CIPHER_free(key->block);
    EVP_CIPHER_free(key->gcm);
    OPENSSL_cleanse(key, sizeof *key);
}

/* The key of one token: NIST SP 800-108 in counter mode with CMAC, over the nonce's first 12 bytes. */
static bool seal_derive(const struct seal_key *key, const uint8_t nonce[SEAL_NONCE], uint8_t derived[SEAL_KEY])
{
    for (uint8_t i = 0; i < SEAL_KEY / SEAL_BLOCK; i++) {
        uint8_t *block = derived + (size_t)i * SEAL_BLOCK;
        const uint8_t prefix[] = {0, (uint8_t)(i + 1), 'X', 0};
        memcpy(block, prefix, sizeof prefix);
        memcpy(block + sizeof prefix, nonce, SEAL_BLOCK - sizeof prefix);
        for (size_t j = 0; j < SEAL_BLOCK; j++)
            block[j] ^= key->subkey[j];
    }
    return seal_blocks(key, derived, SEAL_KEY);
}

/* A context that is keyed for one token and has seen its header. NULL when out of memory. */
static EVP_CIPHER_CTX *seal_begin(const struct seal_key *key, const uint8_t nonce[SEAL_NONCE], struct span header,
                                  int enc)
{
    uint8_t derived[SEAL_KEY];
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int done = 0;
    bool ok = ctx && seal_derive(key, nonce, derived) &&
              EVP_CipherInit_ex(ctx, key->gcm, NULL, derived, nonce + SEAL_NONCE / 2, enc) == 1 &&
              (header.len == 0 || EVP_CipherUpdate(ctx, NULL, &done, header.ptr, (int)header.len) == 1);
    OPENSSL_cleanse(derived, sizeof derived);
    if (ok)
        return ctx;
    EVP_CIPHER_CTX_free(ctx);
    return NULL;
}

bool seal_encrypt_nonce(const struct seal_key *key, const uint8_t nonce[SEAL_NONCE], struct span header,
                        struct span plain, uint8_t *sealed)
{
    EVP_CIPHER_CTX *ctx = seal_begin(key, nonce, header, 1);
    int done = 0;
    int rest = 0;
    bool ok = ctx && EVP_EncryptUpdate(ctx, sealed, &done, plain.ptr, (int)plain.len) == 1 &&
              EVP_EncryptFinal_ex(ctx, sealed + plain.len, &rest) == 1 &&
              EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG, sealed + plain.len) == 1;
    EVP_CIPHER_CTX_free(ctx);
    return ok;
}

bool seal_encrypt(const struct seal_key *key, struct span header, struct span plain, struct buf *out)
{
    uint8_t *room = buf_room(out, SEAL_NONCE + plain.len + SEAL_TAG);
    return room && RAND_bytes(room, SEAL_NONCE) == 1 && seal_encrypt_nonce(key, room, header, plain, room + SEAL_NONCE);
}

bool seal_decrypt(const struct seal_key *key, struct span header, struct span sealed, uint8_t *plain)
{
    if (sealed.len < SEAL_NONCE + SEAL_TAG)
        return false;
    const uint8_t *cipher = sealed.ptr + SEAL_NONCE;
    size_t len = sealed.len - SEAL_NONCE - SEAL_TAG;
    uint8_t tag[SEAL_TAG];
    memcpy(tag, cipher + len, SEAL_TAG); /* OpenSSL's parameter is not const */

    EVP_CIPHER_CTX *ctx = seal_begin(key, sealed.ptr, header, 0);
    int done = 0;
    int rest = 0;
    bool ok = ctx && EVP_DecryptUpdate(ctx, plain, &done, cipher, (int)len) == 1 &&
              EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG, tag) == 1 &&
              EVP_DecryptFinal_ex(ctx, plain + len, &rest) == 1;
    EVP_CIPHER_CTX_free(ctx);
    if (!ok)
        OPENSSL_cleanse(plain, len); /* unauthenticated bytes are nobody's to read */
    return ok;
}

bool seal_sign(const struct seal_key *key, struct span message, uint8_t mac[SEAL_MAC])
{
    unsigned len = 0;
    return HMAC(EVP_sha256(), key->sign, SEAL_KEY, message.ptr, message.len, mac, &len) && len == SEAL_MAC;
}

bool seal_verify(const struct seal_key *key, struct span message, const uint8_t mac[SEAL_MAC])
{
    uint8_t expected[SEAL_MAC];
    bool ok = seal_sign(key, message, expected) && CRYPTO_memcmp(expected, mac, SEAL_MAC) == 0;
    OPENSSL_cleanse(expected, sizeof expected);
    return ok;
}
