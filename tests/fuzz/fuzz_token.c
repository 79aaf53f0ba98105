/* fuzz_token.c - opening a cursor: no input crashes it, and what opens is exactly what would be sealed.
 *
 * The first byte selects how the rest is used, since no fuzzer guesses a seal: as a token, or as the bytes inside a
 * seal that is genuine. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxy/protocol/base64.h"
#include "../../proxy/page/cursor.h"
#include "../../proxy/page/cursor_seal.h"
#include "target.h"

#define NOW 1800000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_same(const struct cursor *a, const struct cursor *b)
{
    bool same = a->direction == b->direction && a->issued == b->issued && a->nvalues == b->nvalues &&
                memcmp(a->part, b->part, sizeof a->part) == 0;
    for (size_t i = 0; same && i < a->nvalues; i++) {
        const struct cursor_value *x = &a->value[i];
        const struct cursor_value *y = &b->value[i];
        same = x->type_oid == y->type_oid && x->len == y->len &&
               (x->len <= 0 || memcmp(x->data, y->data, (size_t)x->len) == 0);
    }
    return same;
}

/* Opened cursors may be sealed in either way and open as themselves. A signed one gets the same token again: there is
 * one token for a position. */
static void check_reseal(const struct keyring *keyring, struct span token, const struct cursor *cursor, bool was_signed)
{
    for (int sign = 0; sign < 2; sign++) {
        struct buf again = {0};
        struct cursor reopened;
        struct pgseek_error error;
        if (!cursor_seal(keyring, sign, cursor, &again)) {
            buf_fini(&again); /* encrypted tokens hold a little less than signed ones */
            continue;
        }
        require(cursor_open(keyring, buf_span(&again), NOW, 0, &reopened, &error));
        require(is_same(cursor, &reopened));
        require(!(sign && was_signed) || span_equal(buf_span(&again), token));
        cursor_fini(&reopened);
        buf_fini(&again);
    }
}

static void check_open(const struct keyring *keyring, struct span token, bool was_signed)
{
    struct cursor cursor;
    struct pgseek_error error;
    if (cursor_open(keyring, token, NOW, 0, &cursor, &error)) {
        require(cursor.nvalues <= PGSEEK_MAX_KEYS && token.len <= CURSOR_MAX_TOKEN);
        check_reseal(keyring, token, &cursor, was_signed);
        cursor_fini(&cursor);
    } else {
        require(error.message[0] != '\0' && cursor.owned == NULL);
    }
}

/* A text that decodes is the only spelling of its bytes. */
static void check_spelling(struct span text)
{
    struct buf again = {0};
    size_t len;
    uint8_t *bytes = malloc(text.len + 1);
    if (bytes && base64url_get(text, bytes, &len)) {
        base64url_put(span_of(bytes, len), &again);
        require(span_equal(buf_span(&again), text));
    }
    free(bytes);
    buf_fini(&again);
}

/* A genuine seal around arbitrary flags and payload. */
static void check_payload(const struct keyring *keyring, const uint8_t *data, size_t size, bool sign)
{
    const struct keyring_key *key = keyring_first(keyring);
    struct buf bytes = {0};
    struct buf token = {0};
    uint8_t mac[SEAL_MAC];
    if (size < 2)
        return;
    buf_put_u8(&bytes, data[0]);
    buf_put(&bytes, key->id, KEYRING_ID);
    buf_put_u8(&bytes, data[1]);
    uint8_t header[1 + KEYRING_ID + 1];
    memcpy(header, bytes.ptr, sizeof header);
    if (sign) {
        buf_put(&bytes, data + 2, size - 2);
        require(seal_sign(&key->seal, buf_span(&bytes), mac));
        buf_put(&bytes, mac, sizeof mac);
    } else {
        require(seal_encrypt(&key->seal, span_of(header, sizeof header), span_of(data + 2, size - 2), &bytes));
    }
    base64url_put(buf_span(&bytes), &token);
    check_open(keyring, buf_span(&token), sign);
    buf_fini(&bytes);
    buf_fini(&token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct keyring *keyring = keyring_ephemeral();
    struct span rest = span_of(data + 1, size - 1);
    require(keyring != NULL);
    check_spelling(rest);
    if (data[0] % 3 == 0)
        check_open(keyring, rest, false);
    else
        check_payload(keyring, rest.ptr, rest.len, data[0] % 3 == 1);
    keyring_free(keyring);
    return 0;
}
