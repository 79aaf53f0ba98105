/* secret.c - the text form of a SCRAM secret, strictly, and secrets of nobody. */
#include "secret.h"

#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "../protocol/base64.h"

#define SECRET_PREFIX "SCRAM-SHA-256$"
#define SECRET_MOCK_ITERATIONS 4096u /* PostgreSQL's defaults */
#define SECRET_MOCK_SALT 16u

/* ---- parts ---- */

bool secret_read_iterations(struct span text, uint32_t *iterations)
{
    uint32_t value = 0;
    if (text.len == 0 || text.len > 8 || text.ptr[0] == '0')
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        value = value * 10 + (uint32_t)(text.ptr[i] - '0');
    }
    *iterations = value;
    return value >= SECRET_ITERATIONS_MIN && value <= SECRET_ITERATIONS_MAX;
}

bool secret_read_salt(struct span text, uint8_t salt[SECRET_SALT_MAX], size_t *len)
{
    uint8_t bytes[(SECRET_SALT_MAX + 2) / 3 * 3]; /* what base64 may decode to before the length is known */
    *len = 0;
    if (text.len > base64_len(SECRET_SALT_MAX) || !base64_get(text, bytes, len) || *len == 0 || *len > SECRET_SALT_MAX)
        return false;
    memcpy(salt, bytes, *len);
    return true;
}

bool secret_read_key(struct span text, uint8_t key[SCRAM_KEY])
{
    uint8_t bytes[(SCRAM_KEY + 2) / 3 * 3];
    size_t len = 0;
    bool ok = text.len == base64_len(SCRAM_KEY) && base64_get(text, bytes, &len) && len == SCRAM_KEY;
    if (ok)
        memcpy(key, bytes, SCRAM_KEY);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return ok;
}

/* ---- the whole ---- */

/* Takes what stands in front of `end`, and it. */
static bool secret_take(struct span *rest, char end, struct span *part)
{
    const uint8_t *at = rest->len ? memchr(rest->ptr, end, rest->len) : NULL;
    if (!at)
        return false;
    *part = span_of(rest->ptr, (size_t)(at - rest->ptr));
    *rest = span_of(at + 1, rest->len - part->len - 1);
    return true;
}

bool secret_read(struct span text, struct secret *out)
{
    size_t prefix = sizeof SECRET_PREFIX - 1;
    struct span iterations;
    struct span salt;
    struct span stored;
    *out = (struct secret){0};
    if (text.len < prefix || memcmp(text.ptr, SECRET_PREFIX, prefix) != 0)
        return false;
    struct span rest = span_of(text.ptr + prefix, text.len - prefix);
    bool ok = secret_take(&rest, ':', &iterations) && secret_take(&rest, '$', &salt) &&
              secret_take(&rest, ':', &stored) && secret_read_iterations(iterations, &out->iterations) &&
              secret_read_salt(salt, out->salt, &out->salt_len) && secret_read_key(stored, out->stored_key) &&
              secret_read_key(rest, out->server_key);
    if (!ok)
        secret_wipe(out);
    return ok;
}

void secret_put(const struct secret *secret, struct buf *out)
{
    buf_put_format(out, SECRET_PREFIX "%u:", (unsigned)secret->iterations);
    base64_put(span_of(secret->salt, secret->salt_len), out);
    buf_put_u8(out, '$');
    base64_put(span_of(secret->stored_key, SCRAM_KEY), out);
    buf_put_u8(out, ':');
    base64_put(span_of(secret->server_key, SCRAM_KEY), out);
}

void secret_wipe(struct secret *secret)
{
    OPENSSL_cleanse(secret, sizeof *secret);
}

/* ---- nobody's ---- */

/* All that a mock secret is made of, block after block, from a key of this user's own. */
static bool secret_mock_block(const uint8_t key[SCRAM_KEY], uint8_t number, uint8_t out[SCRAM_KEY])
{
    unsigned len = 0;
    return HMAC(EVP_sha256(), key, SCRAM_KEY, &number, 1, out, &len) && len == SCRAM_KEY;
}

bool secret_mock(const uint8_t seed[SCRAM_KEY], struct span user, struct secret *out)
{
    uint8_t key[SCRAM_KEY];
    unsigned len = 0;
    uint8_t blocks = SECRET_SALT_MAX / SCRAM_KEY;
    *out = (struct secret){.is_mock = true, .iterations = SECRET_MOCK_ITERATIONS, .salt_len = SECRET_MOCK_SALT};
    bool ok = HMAC(EVP_sha256(), seed, SCRAM_KEY, user.len ? user.ptr : seed, user.len, key, &len) && len == SCRAM_KEY;
    for (uint8_t i = 0; ok && i < blocks; i++)
        ok = secret_mock_block(key, i, out->salt + (size_t)i * SCRAM_KEY);
    ok = ok && secret_mock_block(key, blocks, out->stored_key) &&
         secret_mock_block(key, (uint8_t)(blocks + 1), out->server_key);
    OPENSSL_cleanse(key, sizeof key);
    return ok;
}

struct secret_shape secret_shape(const struct secret *secret)
{
    return (struct secret_shape){.iterations = secret->iterations, .salt_len = secret->salt_len};
}

struct secret_shape secret_shape_usual(struct span iterations)
{
    struct secret_shape shape = {.salt_len = SECRET_MOCK_SALT};
    return secret_read_iterations(iterations, &shape.iterations) ? shape : (struct secret_shape){0};
}

void secret_mock_like(struct secret *mock, struct secret_shape real)
{
    if (real.iterations == 0)
        return;
    mock->iterations = real.iterations;
    mock->salt_len = real.salt_len;
}
