/* scram_key.c - SHA-256 and its HMAC, by OpenSSL. */
#include "scram_key.h"

#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "../protocol/base64.h"

bool scram_key_sign(const uint8_t key[SCRAM_KEY], struct span exchange, uint8_t signature[SCRAM_KEY])
{
    unsigned len = 0;
    return HMAC(EVP_sha256(), key, SCRAM_KEY, exchange.ptr, exchange.len, signature, &len) && len == SCRAM_KEY;
}

void scram_key_xor(const uint8_t a[SCRAM_KEY], const uint8_t b[SCRAM_KEY], uint8_t out[SCRAM_KEY])
{
    for (size_t i = 0; i < SCRAM_KEY; i++)
        out[i] = a[i] ^ b[i];
}

bool scram_key_hash(const uint8_t key[SCRAM_KEY], uint8_t out[SCRAM_KEY])
{
    unsigned len = 0;
    return EVP_Digest(key, SCRAM_KEY, out, &len, EVP_sha256(), NULL) == 1 && len == SCRAM_KEY;
}

bool scram_key_nonce(uint8_t nonce[SCRAM_KEY_NONCE])
{
    uint8_t bytes[SCRAM_KEY_NONCE / 4 * 3];
    struct buf text = {0};
    bool ok = RAND_bytes(bytes, sizeof bytes) == 1;
    if (ok)
        base64_put(span_of(bytes, sizeof bytes), &text);
    ok = ok && !text.failed && text.len == SCRAM_KEY_NONCE;
    if (ok)
        memcpy(nonce, text.ptr, SCRAM_KEY_NONCE);
    buf_fini(&text);
    return ok;
}
