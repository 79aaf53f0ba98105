/* cursor.c - the token's layout, written and read back strictly: a cursor has one payload, a payload one spelling.
 *
 *     version u8 | key id 4 | flags u8 | sealed payload        in base64url
 *     encrypted: nonce 24 | ciphertext | tag 16                the six bytes before are authenticated with it
 *     signed:    payload | HMAC-SHA-256 over all before it
 *     payload:   issued i64 | contract parts | nvalues u8 | { type OID u32 | length i32, -1 NULL | bytes } ...
 *
 * The header says how it was sealed, not the configuration: changing cursor_protection must not kill cursors. */
#include "cursor.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "../admin/log.h"
#include "../protocol/base64.h"
#include "cursor_seal.h"

enum { CURSOR_VERSION = 1, CURSOR_FLAG_BACKWARD = 1, CURSOR_FLAG_SIGNED = 2 };

#define CURSOR_HEADER (1 + KEYRING_ID + 1)
#define CURSOR_FIXED (8 + CURSOR_PARTS * CURSOR_DIGEST + 1) /* bytes of a payload without values */
#define CURSOR_MAX_BYTES (CURSOR_MAX_TOKEN * 3 / 4)

struct cursor_header {
    uint8_t version;
    uint8_t key_id[KEYRING_ID];
    uint8_t flags;
};

/* ---- seal ---- */

/* False when the values cannot fit a token; nothing was written then. */
static bool cursor_fits(const struct cursor *cursor)
{
    size_t len = CURSOR_HEADER + SEAL_NONCE + CURSOR_FIXED + SEAL_TAG;
    for (size_t i = 0; i < cursor->nvalues; i++) {
        int32_t value_len = cursor->value[i].len;
        assert(value_len >= -1);
        len += 8;
        if (value_len > CURSOR_MAX_BYTES)
            return false;
        len += value_len > 0 ? (size_t)value_len : 0;
    }
    return base64url_len(len) <= CURSOR_MAX_TOKEN;
}

static void cursor_put_header(const struct keyring_key *key, uint8_t flags, struct buf *out)
{
    buf_put_u8(out, CURSOR_VERSION);
    buf_put(out, key->id, KEYRING_ID);
    buf_put_u8(out, flags);
}

static void cursor_put_payload(const struct cursor *cursor, struct buf *out)
{
    buf_put_u64(out, (uint64_t)cursor->issued);
    buf_put(out, cursor->part, sizeof cursor->part);
    buf_put_u8(out, (uint8_t)cursor->nvalues);
    for (size_t i = 0; i < cursor->nvalues; i++) {
        const struct cursor_value *value = &cursor->value[i];
        buf_put_u32(out, value->type_oid);
        buf_put_i32(out, value->len);
        buf_put(out, value->data, value->len > 0 ? (size_t)value->len : 0);
    }
}

static bool cursor_seal_encrypted(const struct keyring_key *key, struct span payload, struct buf *token)
{
    uint8_t header[CURSOR_HEADER];
    assert(token->len == CURSOR_HEADER);
    memcpy(header, token->ptr, sizeof header); /* the buffer may move */
    return seal_encrypt(&key->seal, span_of(header, sizeof header), payload, token);
}

static bool cursor_seal_signed(const struct keyring_key *key, struct span payload, struct buf *token)
{
    uint8_t mac[SEAL_MAC];
    buf_put_span(token, payload);
    if (token->failed || !seal_sign(&key->seal, buf_span(token), mac))
        return false;
    buf_put(token, mac, sizeof mac);
    return true;
}

bool cursor_seal(const struct keyring *keyring, bool sign, const struct cursor *cursor, struct buf *out)
{
    assert(cursor->nvalues <= PGSEEK_MAX_KEYS);
    if (!cursor_fits(cursor))
        return false;
    const struct keyring_key *key = keyring_first(keyring);
    unsigned flags =
        (cursor->direction == CURSOR_BACKWARD ? CURSOR_FLAG_BACKWARD : 0u) | (sign ? CURSOR_FLAG_SIGNED : 0u);
    struct buf payload = {0};
    struct buf token = {0};
    cursor_put_payload(cursor, &payload);
    cursor_put_header(key, (uint8_t)flags, &token);
    bool ok = !payload.failed && !token.failed &&
              (sign ? cursor_seal_signed : cursor_seal_encrypted)(key, buf_span(&payload), &token) && !token.failed &&
              base64url_len(token.len) <= CURSOR_MAX_TOKEN;
    if (ok)
        base64url_put(buf_span(&token), out);
    buf_fini(&payload);
    buf_fini(&token);
    return ok && !out->failed;
}

/* ---- open ---- */

static bool cursor_fault(struct pgseek_error *error, enum pgseek_code code, const char *message, const char *hint)
{
    memset(error, 0, sizeof *error);
    error->code = code;
    snprintf(error->message, sizeof error->message, "%s", message);
    snprintf(error->hint, sizeof error->hint, "%s", hint);
    return false;
}

/* One public text for whatever is malformed; the log may say more. */
static bool cursor_malformed(struct pgseek_error *error, const char *why)
{
    log_at(LOG_DEBUG, "cursor refused: %s", why);
    (void)cursor_fault(error, PGSEEK_PS001, "cursor is malformed", "Hand the cursor back exactly as it was received.");
    snprintf(error->detail, sizeof error->detail,
             "A cursor is made of at most %d of the characters A-Z, a-z, 0-9, \"-\" and \"_\", and this one is not one "
             "that this pgseek could have written.",
             CURSOR_MAX_TOKEN);
    return false;
}

/* One answer for every way to fail: a holder must not learn which keys exist. The log may say more. */
static bool cursor_untrusted(struct pgseek_error *error, const struct cursor_header *header, const char *why)
{
    log_at(LOG_DEBUG, "cursor refused: key %02x%02x%02x%02x %s", header->key_id[0], header->key_id[1],
           header->key_id[2], header->key_id[3], why);
    (void)cursor_fault(error, PGSEEK_PS002, "cursor was altered or its key is unknown",
                       "Start again from the first page.");
    snprintf(error->detail, sizeof error->detail, "It was not sealed with a key that this proxy knows.");
    return false;
}

/* `bytes` has room for CURSOR_MAX_BYTES. */
static bool cursor_decode(struct span token, uint8_t *bytes, size_t *len, struct pgseek_error *error)
{
    if (token.len > CURSOR_MAX_TOKEN)
        return cursor_malformed(error, "it is too long");
    if (!base64url_get(token, bytes, len))
        return cursor_malformed(error, "it is not base64url in its one spelling");
    return true;
}

static bool cursor_read_header(struct reader *rd, struct cursor_header *header, struct pgseek_error *error)
{
    header->version = rd_u8(rd);
    struct span id = rd_bytes(rd, KEYRING_ID);
    header->flags = rd_u8(rd);
    size_t around = header->flags & CURSOR_FLAG_SIGNED ? SEAL_MAC : SEAL_NONCE + SEAL_TAG;
    if (rd->failed)
        return cursor_malformed(error, "it is too short");
    if (header->version != CURSOR_VERSION)
        return cursor_malformed(error, "it is of another version");
    if (header->flags & ~(unsigned)(CURSOR_FLAG_BACKWARD | CURSOR_FLAG_SIGNED))
        return cursor_malformed(error, "it has unknown flags");
    if (rd_left(rd) < around + CURSOR_FIXED)
        return cursor_malformed(error, "it is too short");
    memcpy(header->key_id, id.ptr, KEYRING_ID);
    return true;
}

/* Verifies and, where it is encrypted, decrypts what follows the header. NULL with *error; the payload is the caller's
 * to free. Its length is known to be possible. A token of an unknown key is tried with one that cannot fit, so that it
 * takes no less time than an altered one. */
static uint8_t *cursor_unseal(const struct keyring *keyring, struct span bytes, const struct cursor_header *header,
                              size_t *len, struct pgseek_error *error)
{
    bool is_signed = header->flags & CURSOR_FLAG_SIGNED;
    const struct keyring_key *known = keyring_find(keyring, header->key_id);
    const struct keyring_key *key = known ? known : keyring_first(keyring);
    struct span head = span_of(bytes.ptr, CURSOR_HEADER);
    struct span sealed = span_of(bytes.ptr + CURSOR_HEADER, bytes.len - CURSOR_HEADER);
    *len = sealed.len - (is_signed ? SEAL_MAC : SEAL_NONCE + SEAL_TAG);
    uint8_t *payload = mem_alloc(*len);
    if (!payload) {
        cursor_untrusted(error, header, "could not be tried: out of memory");
        return NULL;
    }
    bool ok = is_signed ? seal_verify(&key->seal, span_of(bytes.ptr, CURSOR_HEADER + *len), sealed.ptr + *len)
                        : seal_decrypt(&key->seal, head, sealed, payload);
    if (!ok || !known) {
        cursor_untrusted(error, header, known ? "is known, but the token was altered" : "is not in the key file");
        mem_free(payload);
        return NULL;
    }
    if (is_signed)
        memcpy(payload, sealed.ptr, *len);
    return payload;
}

static void cursor_read_value(struct reader *rd, struct cursor_value *value)
{
    value->type_oid = rd_u32(rd);
    value->len = rd_i32(rd);
    value->data = NULL;
    if (value->len < -1)
        rd->failed = true;
    else if (value->len >= 0)
        value->data = rd_bytes(rd, (size_t)value->len).ptr;
}

/* The payload is authentic, yet an older or newer pgseek may have sealed it: it is read as strictly as any input. */
static bool cursor_read_payload(struct span payload, struct cursor *cursor)
{
    struct reader rd = rd_init(payload);
    uint64_t high = rd_u32(&rd);
    cursor->issued = (int64_t)(high << 32 | rd_u32(&rd));
    for (size_t i = 0; i < CURSOR_PARTS; i++) {
        struct span part = rd_bytes(&rd, CURSOR_DIGEST);
        if (part.ptr)
            memcpy(cursor->part[i], part.ptr, CURSOR_DIGEST);
    }
    cursor->nvalues = rd_u8(&rd);
    if (cursor->nvalues > PGSEEK_MAX_KEYS)
        return false;
    for (size_t i = 0; i < cursor->nvalues; i++)
        cursor_read_value(&rd, &cursor->value[i]);
    return rd_done(&rd);
}

static bool cursor_check_age(const struct cursor *cursor, int64_t now, int64_t ttl, struct pgseek_error *error)
{
    if (ttl <= 0 || cursor->issued >= now - ttl)
        return true;
    cursor_fault(error, PGSEEK_PS003, "cursor has expired", "Start again from the first page.");
    snprintf(error->detail, sizeof error->detail, "Cursors are good for %lld seconds (cursor_ttl).", (long long)ttl);
    return false;
}

bool cursor_open(const struct keyring *keyring, struct span token, int64_t now, int64_t ttl, struct cursor *cursor,
                 struct pgseek_error *error)
{
    uint8_t bytes[CURSOR_MAX_BYTES];
    struct cursor_header header = {0};
    size_t len = 0;
    *cursor = (struct cursor){0};
    if (!cursor_decode(token, bytes, &len, error))
        return false;
    struct reader rd = rd_init(span_of(bytes, len));
    if (!cursor_read_header(&rd, &header, error))
        return false;
    size_t payload_len = 0;
    cursor->owned = cursor_unseal(keyring, span_of(bytes, len), &header, &payload_len, error);
    if (!cursor->owned)
        return false;
    cursor->direction = header.flags & CURSOR_FLAG_BACKWARD ? CURSOR_BACKWARD : CURSOR_FORWARD;
    bool ok = cursor_read_payload(span_of(cursor->owned, payload_len), cursor)
                  ? cursor_check_age(cursor, now, ttl, error)
                  : cursor_malformed(error, "its payload is not one that this pgseek writes");
    if (!ok)
        cursor_fini(cursor);
    return ok;
}

void cursor_fini(struct cursor *cursor)
{
    mem_free(cursor->owned);
    *cursor = (struct cursor){0};
}

/* ---- digests ---- */

bool cursor_digest(const struct span *chunks, size_t nchunks, uint8_t out[CURSOR_DIGEST])
{
    uint8_t whole[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; ok && i < nchunks; i++) {
        /* With its length before it, no byte can move from one chunk to the next unnoticed. */
        uint8_t prefix[8];
        set_u32(prefix, (uint32_t)((uint64_t)chunks[i].len >> 32));
        set_u32(prefix + 4, (uint32_t)chunks[i].len);
        ok = EVP_DigestUpdate(ctx, prefix, sizeof prefix) == 1 &&
             EVP_DigestUpdate(ctx, chunks[i].ptr, chunks[i].len) == 1;
    }
    ok = ok && EVP_DigestFinal_ex(ctx, whole, NULL) == 1;
    if (ok)
        memcpy(out, whole, CURSOR_DIGEST);
    EVP_MD_CTX_free(ctx);
    return ok;
}

bool cursor_part_equal(const uint8_t *a, const uint8_t *b)
{
    return CRYPTO_memcmp(a, b, CURSOR_DIGEST) == 0;
}
