/* fuzz_sasl.c - SCRAM with peers that lie: nobody is let in, or believed, without the key.
 *
 * The first byte selects: our server against arbitrary texts of a client, our client against arbitrary texts of a
 * server (texts are cut at 0x1e), the readers of single texts, or both sides with one of their five messages changed on
 * its way. Nonces are constant, so that a finding can be run again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxy/auth/scram_key.h"
#include "../../proxy/auth/scram_text.h"
#include "../../proxy/protocol/base64.h"
#include "target.h"

#define NONCE_OURS "fyko+d2lbbFgONRv9qkxdawL"
#define NONCE_THEIRS "3rfcNHYJY1ZVvWVs7jQ+x/8A"
#define SEPARATOR 0x1e

enum { OFFER, FIRST, CHALLENGE, FINAL, SIGNATURE, MESSAGES };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t certificate[SCRAM_KEY] = "what the channel is bound to";
static const uint8_t client_key[SCRAM_KEY] = "nobody but a client knows this";

/* The secret that belongs to client_key. */
static struct secret secret_make(void)
{
    struct secret secret = {.iterations = 4096, .salt_len = 16, .salt = "salt of 16 bytes"};
    require(scram_key_hash(client_key, secret.stored_key));
    memcpy(secret.server_key, "and this is what a server knows", SCRAM_KEY);
    return secret;
}

static struct span take_text(struct span *rest)
{
    const uint8_t *end = rest->len ? memchr(rest->ptr, SEPARATOR, rest->len) : NULL;
    size_t len = end ? (size_t)(end - rest->ptr) : rest->len;
    struct span text = span_of(rest->ptr, len);
    *rest = span_of(rest->ptr + len + (end ? 1 : 0), rest->len - len - (end ? 1 : 0));
    return text;
}

static bool starts_with(struct span text, struct span front)
{
    return text.len >= front.len && span_equal(span_of(text.ptr, front.len), front);
}

/* ---- single texts ---- */

static bool is_inside(struct span part, struct span whole)
{
    return part.len == 0 || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

static void check_first(struct span text)
{
    struct scram_client_first first;
    if (scram_text_client_first(text, &first))
        return;
    require(text.len <= SCRAM_MESSAGE_MAX && first.header.ptr == text.ptr);
    require(first.header.len + first.bare.len == text.len && first.bare.ptr == text.ptr + first.header.len);
    require(is_inside(first.nonce, first.bare) && first.nonce.len > 0 && is_inside(first.binding, first.header));
    require((first.flag == 'p') == (first.binding.len > 0));
}

static void check_challenge(struct span text)
{
    struct scram_server_first first;
    if (scram_text_server_first(text, &first))
        return;
    require(is_inside(first.nonce, text) && first.nonce.len > 0 && first.nonce.len <= SCRAM_NONCE_MAX);
    require(first.salt_len > 0 && first.salt_len <= SECRET_SALT_MAX);
    require(first.iterations >= SECRET_ITERATIONS_MIN && first.iterations <= SECRET_ITERATIONS_MAX);
}

/* There is one spelling of a proof, so a text is its parts. */
static void check_final(struct span text)
{
    struct scram_client_final final;
    struct buf again = {0};
    if (scram_text_client_final(text, &final))
        return;
    buf_put_span(&again, final.without_proof);
    buf_put_text(&again, ",p=");
    base64_put(span_of(final.proof, SCRAM_KEY), &again);
    require(span_equal(buf_span(&again), text));
    require(is_inside(final.nonce, final.without_proof) && is_inside(final.binding, final.without_proof));
    buf_fini(&again);
}

static void check_secret(struct span text)
{
    struct secret secret;
    struct buf again = {0};
    if (!secret_read(text, &secret))
        return;
    secret_put(&secret, &again);
    require(span_equal(buf_span(&again), text) && !secret.is_mock);
    buf_fini(&again);
}

static void check_texts(struct span text)
{
    struct scram_server_final final;
    check_first(text);
    check_challenge(text);
    check_final(text);
    check_secret(text);
    if (!scram_text_server_final(text, &final))
        require(text.ptr[0] == (final.is_error ? 'e' : 'v'));
}

/* ---- one side against a stranger ---- */

static void check_server(struct span rest, bool is_bound, bool is_plus)
{
    struct secret secret = secret_make();
    struct scram_server *server = scram_server_new(&secret, span_of(certificate, is_bound ? sizeof certificate : 0));
    struct span first = take_text(&rest);
    struct span final = take_text(&rest);
    struct buf out = {0};
    uint8_t key[SCRAM_KEY];
    const char *why;
    require(server != NULL);
    enum scram_result result = scram_server_first_nonce(server, span_cstr(is_plus ? SCRAM_PLUS : SCRAM_PLAIN), first,
                                                        span_cstr(NONCE_THEIRS), &out, &why);
    require((result == SCRAM_OK) == (why == NULL) && (result == SCRAM_OK) == (out.len > 0));
    if (result == SCRAM_OK) {
        struct scram_server_first said;
        struct scram_client_first heard;
        require(!scram_text_server_first(buf_span(&out), &said) && !scram_text_client_first(first, &heard));
        require(starts_with(said.nonce, heard.nonce) && said.iterations == secret.iterations);
        require(is_plus == (heard.flag == 'p') && !(heard.flag == 'y' && is_bound));
    }
    buf_clear(&out);
    require(scram_server_final(server, final, &out, key, &why) != SCRAM_OK && why && out.len == 0);
    static const uint8_t zeros[SCRAM_KEY];
    require(memcmp(key, zeros, SCRAM_KEY) == 0);
    buf_fini(&out);
    scram_server_free(server);
}

static void check_client(struct span rest, bool is_bound, bool is_offered)
{
    struct secret secret = secret_make();
    struct scram_client *client =
        scram_client_new(&secret, client_key, span_of(certificate, is_bound ? sizeof certificate : 0));
    struct span offer = is_offered
                            ? span_of(SCRAM_PLUS "\0" SCRAM_PLAIN "\0", sizeof SCRAM_PLUS + sizeof SCRAM_PLAIN + 1)
                            : take_text(&rest);
    struct span challenge = take_text(&rest);
    struct span signature = take_text(&rest);
    struct buf out = {0};
    const char *mechanism;
    const char *why;
    require(client != NULL);
    enum scram_result result = scram_client_first_nonce(client, offer, span_cstr(NONCE_OURS), &mechanism, &out, &why);
    require((result == SCRAM_OK) == (why == NULL) && (result == SCRAM_OK) == (mechanism != NULL));
    require(!is_offered || result == SCRAM_OK);
    if (result == SCRAM_OK)
        check_first(buf_span(&out));
    buf_clear(&out);
    result = scram_client_final(client, challenge, &out, &why);
    require((result == SCRAM_OK) == (why == NULL) && (result == SCRAM_OK) == (out.len > 0));
    if (result == SCRAM_OK) {
        struct scram_client_final said;
        require(out.len <= SCRAM_MESSAGE_MAX && !scram_text_client_final(buf_span(&out), &said));
        require(starts_with(said.nonce, span_cstr(NONCE_OURS)));
    }
    require(scram_client_verify(client, signature, &why) != SCRAM_OK && why);
    buf_fini(&out);
    scram_client_free(client);
}

/* ---- both sides, and somebody between them ---- */

struct meddler {
    int message;
    enum { MASK, REPLACE, INSERT, CUT, KINDS } how;
    size_t at;
    struct span bytes;
    bool has_changed;
};

/* The message as it arrives. */
static struct span pass(struct meddler *meddler, int message, const struct buf *sent, struct buf *changed)
{
    buf_clear(changed);
    if (message != meddler->message || sent->len == 0)
        return buf_span(sent);
    size_t at = meddler->at % sent->len;
    size_t covered = meddler->bytes.len < sent->len - at ? meddler->bytes.len : sent->len - at;
    buf_put(changed, sent->ptr, at);
    switch (meddler->how) {
    case MASK:
        for (size_t i = 0; i < covered; i++)
            buf_put_u8(changed, sent->ptr[at + i] ^ meddler->bytes.ptr[i]);
        buf_put(changed, sent->ptr + at + covered, sent->len - at - covered);
        break;
    case REPLACE:
        buf_put_span(changed, meddler->bytes);
        buf_put(changed, sent->ptr + at + covered, sent->len - at - covered);
        break;
    case INSERT:
        buf_put_span(changed, meddler->bytes);
        buf_put(changed, sent->ptr + at, sent->len - at);
        break;
    default: /* the rest is cut off, something else may follow */ buf_put_span(changed, meddler->bytes); break;
    }
    meddler->has_changed = !span_equal(buf_span(changed), buf_span(sent));
    return buf_span(changed);
}

/* Up to which message all went well. */
static int talk(struct scram_server *server, struct scram_client *client, struct meddler *meddler, bool is_bound,
                const char **mechanism)
{
    struct buf sent = {0};
    struct buf reply = {0};
    struct buf changed = {0};
    uint8_t key[SCRAM_KEY];
    const char *why;
    int reached = OFFER;
    if (is_bound)
        buf_put_cstr(&sent, SCRAM_PLUS);
    buf_put(&sent, SCRAM_PLAIN "\0", sizeof SCRAM_PLAIN "\0");
    if (scram_client_first_nonce(client, pass(meddler, OFFER, &sent, &changed), span_cstr(NONCE_OURS), mechanism,
                                 &reply, &why) != SCRAM_OK)
        goto out;
    buf_clear(&sent);
    reached = FIRST;
    if (scram_server_first_nonce(server, span_cstr(*mechanism), pass(meddler, FIRST, &reply, &changed),
                                 span_cstr(NONCE_THEIRS), &sent, &why) != SCRAM_OK)
        goto out;
    buf_clear(&reply);
    reached = CHALLENGE;
    if (scram_client_final(client, pass(meddler, CHALLENGE, &sent, &changed), &reply, &why) != SCRAM_OK)
        goto out;
    buf_clear(&sent);
    reached = FINAL;
    if (scram_server_final(server, pass(meddler, FINAL, &reply, &changed), &sent, key, &why) != SCRAM_OK)
        goto out;
    require(memcmp(key, client_key, SCRAM_KEY) == 0);
    reached = SIGNATURE;
    if (scram_client_verify(client, pass(meddler, SIGNATURE, &sent, &changed), &why) == SCRAM_OK)
        reached = MESSAGES;
out:
    buf_fini(&sent);
    buf_fini(&reply);
    buf_fini(&changed);
    return reached;
}

/* Extensions behind a genuine signature mean nothing, so they are the one thing that may be added. */
static bool is_harmless(const struct meddler *meddler, bool is_bound, const char *mechanism)
{
    if (meddler->message == OFFER) /* not signed; but what is bound stays bound */
        return !is_bound || strcmp(mechanism, SCRAM_PLUS) == 0;
    return meddler->message == SIGNATURE && meddler->how != MASK;
}

static void check_meddling(struct span rest, bool is_bound, bool is_mock)
{
    if (rest.len < 3)
        return;
    struct meddler meddler = {.message = rest.ptr[0] % MESSAGES,
                              .how = rest.ptr[1] % KINDS,
                              .at = rest.ptr[2],
                              .bytes = span_of(rest.ptr + 3, rest.len - 3)};
    struct secret secret = secret_make();
    secret.is_mock = is_mock;
    struct span binding = span_of(certificate, is_bound ? sizeof certificate : 0);
    struct scram_server *server = scram_server_new(&secret, binding);
    struct scram_client *client = scram_client_new(&secret, client_key, binding);
    const char *mechanism = "";
    require(server && client);
    int reached = talk(server, client, &meddler, is_bound, &mechanism);
    if (is_mock)
        require(reached <= FINAL);
    else if (!meddler.has_changed)
        require(reached == MESSAGES);
    else
        require(reached != MESSAGES || is_harmless(&meddler, is_bound, mechanism));
    require(reached <= FINAL || !meddler.has_changed || meddler.message == OFFER || meddler.message == SIGNATURE);
    scram_server_free(server);
    scram_client_free(client);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct span rest = span_of(data + 1, size - 1);
    bool is_bound = data[0] & 4;
    bool is_other = data[0] & 8;
    switch (data[0] & 3) {
    case 0: check_server(rest, is_bound, is_other); break;
    case 1: check_client(rest, is_bound, is_other); break;
    case 2: check_texts(rest); break;
    default: check_meddling(rest, is_bound, is_other); break;
    }
    return 0;
}
