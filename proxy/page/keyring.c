/* keyring.c - keys in memory of their own, and the lookups over them. The key file is keyring_file.c's. */
#include "keyring.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "../protocol/vault.h"
#include "keyring_file.h"

struct keyring {
    _Atomic int refs;
    size_t count;
    struct keyring_key key[KEYRING_MAX_KEYS];
    uint8_t common[KEYRING_SECRET];
};

static struct keyring *keyring_new(void)
{
    struct keyring *keyring = vault_new(sizeof *keyring);
    if (keyring)
        atomic_init(&keyring->refs, 1);
    return keyring;
}

struct keyring *keyring_ref(struct keyring *keyring)
{
    atomic_fetch_add_explicit(&keyring->refs, 1, memory_order_relaxed);
    return keyring;
}

void keyring_free(struct keyring *keyring)
{
    if (!keyring || atomic_fetch_sub_explicit(&keyring->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < keyring->count; i++)
        seal_key_fini(&keyring->key[i].seal);
    vault_free(keyring);
}

/* HKDF-Expand (RFC 5869) for one block: the secret is uniform already, so there is nothing to extract. */
static bool keyring_derive(const uint8_t secret[KEYRING_SECRET], const char *label, uint8_t out[KEYRING_SECRET])
{
    uint8_t info[64];
    size_t len = strlen(label);
    unsigned made = 0;
    assert(len < sizeof info);
    memcpy(info, label, len);
    info[len] = 1;
    return HMAC(EVP_sha256(), secret, KEYRING_SECRET, info, len + 1, out, &made) && made == KEYRING_SECRET;
}

static bool keyring_add(struct keyring *keyring, const struct keyring_line *line)
{
    assert(keyring->count < KEYRING_MAX_KEYS);
    struct keyring_key *key = &keyring->key[keyring->count++];
    uint8_t encrypt[SEAL_KEY];
    uint8_t sign[SEAL_KEY];
    memcpy(key->id, line->id, KEYRING_ID);
    bool ok = keyring_derive(line->secret, "pgseek cursor encrypt v1", encrypt) &&
              keyring_derive(line->secret, "pgseek cursor sign v1", sign) && seal_key_init(&key->seal, encrypt, sign);
    OPENSSL_cleanse(encrypt, sizeof encrypt);
    OPENSSL_cleanse(sign, sizeof sign);
    return ok;
}

/* NULL when memory is missing; `line` may be NULL then. */
static struct keyring *keyring_of_lines(const struct keyring_line *line, size_t count)
{
    struct keyring *keyring = line ? keyring_new() : NULL;
    bool ok = keyring != NULL;
    for (size_t i = 0; ok && i < count; i++)
        ok = keyring_add(keyring, &line[i]);
    ok = ok && keyring_derive(line[count - 1].secret, "pgseek common v1", keyring->common);
    if (ok)
        return keyring;
    keyring_free(keyring);
    return NULL;
}

struct keyring *keyring_ephemeral(void)
{
    struct keyring_line *line = vault_new(sizeof *line);
    struct keyring *keyring = line && keyring_line_random(line) ? keyring_of_lines(line, 1) : NULL;
    vault_free(line);
    return keyring;
}

struct keyring *keyring_load(const char *path, struct pgseek_error *error)
{
    struct keyring_line *line = vault_new(KEYRING_MAX_KEYS * sizeof *line);
    struct keyring *keyring = NULL;
    size_t count = 0;
    if (!line || keyring_file_read(path, line, &count, error)) {
        keyring = keyring_of_lines(line, count);
        if (!keyring)
            keyring_fault(error, "key file \"%.150s\": out of memory", path);
    }
    vault_free(line);
    return keyring;
}

size_t keyring_count(const struct keyring *keyring)
{
    return keyring->count;
}

const struct keyring_key *keyring_first(const struct keyring *keyring)
{
    return &keyring->key[0];
}

const uint8_t *keyring_common(const struct keyring *keyring)
{
    return keyring->common;
}

const struct keyring_key *keyring_find(const struct keyring *keyring, const uint8_t id[KEYRING_ID])
{
    for (size_t i = 0; i < keyring->count; i++)
        if (memcmp(keyring->key[i].id, id, KEYRING_ID) == 0)
            return &keyring->key[i];
    return NULL;
}
