/* scram_client.c - the client's side, with a key instead of a password. */
#include "scram_text.h"

#include <string.h>

#include <openssl/crypto.h>

#include "../protocol/base64.h"
#include "../protocol/vault.h"
#include "scram_key.h"

enum scram_client_step { SCRAM_CLIENT_OFFER, SCRAM_CLIENT_FIRST, SCRAM_CLIENT_FINAL, SCRAM_CLIENT_OVER };

struct scram_client {
    struct secret secret;
    uint8_t key[SCRAM_KEY];      /* ClientKey */
    enum scram_client_step step; /* what is expected of the server */
    struct buf binding;          /* of the channel; empty: cannot be bound */
    struct buf echo;             /* the header, and behind it what the channel is bound to: c= */
    struct buf nonce;            /* our part */
    struct buf exchange;         /* AuthMessage, as far as it is known */
};

struct scram_client *scram_client_new(const struct secret *secret, const uint8_t client_key[SCRAM_KEY],
                                      struct span binding)
{
    struct scram_client *client = vault_new(sizeof *client);
    if (!client)
        return NULL;
    client->secret = *secret;
    memcpy(client->key, client_key, SCRAM_KEY);
    buf_put_span(&client->binding, binding);
    if (!client->binding.failed)
        return client;
    scram_client_free(client);
    return NULL;
}

void scram_client_free(struct scram_client *client)
{
    if (!client)
        return;
    buf_fini(&client->binding);
    buf_fini(&client->echo);
    buf_fini(&client->nonce);
    buf_fini(&client->exchange);
    vault_free(client);
}

/* ---- client-first-message ---- */

struct scram_offer {
    bool has_plain;
    bool has_plus;
};

static bool scram_offer_read(struct span text, struct scram_offer *offer)
{
    struct reader rd = rd_init(text);
    struct span mechanism;
    *offer = (struct scram_offer){0};
    if (text.len > SCRAM_MESSAGE_MAX)
        return false;
    while ((mechanism = rd_cstr(&rd)).len > 0) {
        offer->has_plain = offer->has_plain || span_equal_cstr(mechanism, SCRAM_PLAIN);
        offer->has_plus = offer->has_plus || span_equal_cstr(mechanism, SCRAM_PLUS);
    }
    return rd_done(&rd);
}

/* Writes client-first-message; *mechanism was chosen. */
static enum scram_result scram_client_begin(struct scram_client *client, struct span nonce, bool is_plus,
                                            struct buf *out, const char **why)
{
    struct buf text = {0};
    buf_put_text(&text, is_plus ? "p=" SCRAM_BINDING ",," : client->binding.len > 0 ? "y,," : "n,,");
    size_t header = text.len;
    buf_put_text(&text, "n=,r="); /* the user is the start-up packet's */
    buf_put_span(&text, nonce);
    if (!text.failed) {
        buf_put(&client->echo, text.ptr, header);
        buf_put_span(&client->echo, is_plus ? buf_span(&client->binding) : span_of(NULL, 0));
        buf_put_span(&client->nonce, nonce);
        buf_put(&client->exchange, text.ptr + header, text.len - header);
    }
    bool ok = !text.failed && !client->echo.failed && !client->nonce.failed && !client->exchange.failed;
    if (ok)
        buf_put_span(out, buf_span(&text));
    ok = ok && !out->failed;
    buf_fini(&text);
    client->step = ok ? SCRAM_CLIENT_FIRST : SCRAM_CLIENT_OVER;
    *why = ok ? NULL : "out of memory";
    return ok ? SCRAM_OK : SCRAM_ERROR;
}

enum scram_result scram_client_first_nonce(struct scram_client *client, struct span offer, struct span nonce,
                                           const char **mechanism, struct buf *out, const char **why)
{
    struct scram_offer offered;
    bool is_expected = client->step == SCRAM_CLIENT_OFFER;
    client->step = SCRAM_CLIENT_OVER; /* unless all is well */
    *mechanism = NULL;
    *why = is_expected ? "the server's list of mechanisms is malformed" : "an offer of mechanisms comes once";
    if (!is_expected || !scram_offer_read(offer, &offered))
        return SCRAM_MALFORMED;
    bool is_plus = offered.has_plus && client->binding.len > 0;
    *why = "the server offers no SCRAM-SHA-256";
    if (!is_plus && !offered.has_plain)
        return SCRAM_REFUSED;
    *mechanism = is_plus ? SCRAM_PLUS : SCRAM_PLAIN;
    return scram_client_begin(client, nonce, is_plus, out, why);
}

enum scram_result scram_client_first(struct scram_client *client, struct span offer, const char **mechanism,
                                     struct buf *out, const char **why)
{
    uint8_t nonce[SCRAM_KEY_NONCE];
    if (scram_key_nonce(nonce))
        return scram_client_first_nonce(client, offer, span_of(nonce, sizeof nonce), mechanism, out, why);
    client->step = SCRAM_CLIENT_OVER;
    *mechanism = NULL;
    *why = "no randomness for a nonce";
    return SCRAM_ERROR;
}

/* ---- client-final-message ---- */

/* Whether the server goes on with our exchange, and keeps the secret that our key belongs to. */
static enum scram_result scram_client_compare(const struct scram_client *client, const struct scram_server_first *first,
                                              const char **why)
{
    struct span ours = buf_span(&client->nonce);
    const struct secret *secret = &client->secret;
    *why = "the server's nonce does not extend ours";
    if (first->nonce.len <= ours.len || !span_equal(span_of(first->nonce.ptr, ours.len), ours))
        return SCRAM_MALFORMED;
    *why = "the server keeps another SCRAM secret for this user";
    if (first->iterations != secret->iterations ||
        !span_equal(span_of(first->salt, first->salt_len), span_of(secret->salt, secret->salt_len)))
        return SCRAM_REFUSED;
    *why = NULL;
    return SCRAM_OK;
}

/* Completes the exchange, without the proof. Its end is the text to send. */
static struct span scram_client_complete(struct scram_client *client, struct span server_first, struct span nonce)
{
    struct buf *exchange = &client->exchange;
    buf_put_u8(exchange, ',');
    buf_put_span(exchange, server_first);
    buf_put_u8(exchange, ',');
    size_t begin = exchange->len;
    buf_put_text(exchange, "c=");
    base64_put(buf_span(&client->echo), exchange);
    buf_put_text(exchange, ",r=");
    buf_put_span(exchange, nonce);
    return exchange->failed ? span_of(NULL, 0) : span_of(exchange->ptr + begin, exchange->len - begin);
}

static enum scram_result scram_client_prove(struct scram_client *client, struct span without_proof, struct buf *out,
                                            const char **why)
{
    uint8_t proof[SCRAM_KEY];
    struct buf text = {0};
    bool ok = without_proof.len > 0 && scram_key_sign(client->secret.stored_key, buf_span(&client->exchange), proof);
    if (ok) {
        scram_key_xor(client->key, proof, proof);
        buf_put_span(&text, without_proof);
        buf_put_text(&text, ",p=");
        base64_put(span_of(proof, sizeof proof), &text);
    }
    ok = ok && !text.failed;
    if (ok)
        buf_put_span(out, buf_span(&text));
    ok = ok && !out->failed;
    buf_fini(&text);
    OPENSSL_cleanse(proof, sizeof proof);
    client->step = ok ? SCRAM_CLIENT_FINAL : SCRAM_CLIENT_OVER;
    *why = ok ? NULL : "out of memory";
    return ok ? SCRAM_OK : SCRAM_ERROR;
}

enum scram_result scram_client_final(struct scram_client *client, struct span server_first, struct buf *out,
                                     const char **why)
{
    struct scram_server_first first;
    bool is_expected = client->step == SCRAM_CLIENT_FIRST;
    client->step = SCRAM_CLIENT_OVER;
    *why = is_expected ? scram_text_server_first(server_first, &first) : "a challenge that nothing was said to";
    if (*why)
        return SCRAM_MALFORMED;
    enum scram_result result = scram_client_compare(client, &first, why);
    if (result != SCRAM_OK)
        return result;
    return scram_client_prove(client, scram_client_complete(client, server_first, first.nonce), out, why);
}

/* ---- server-final-message ---- */

enum scram_result scram_client_verify(struct scram_client *client, struct span server_final, const char **why)
{
    struct scram_server_final last;
    uint8_t signature[SCRAM_KEY];
    bool is_expected = client->step == SCRAM_CLIENT_FINAL;
    client->step = SCRAM_CLIENT_OVER;
    *why = is_expected ? scram_text_server_final(server_final, &last) : "a signature before there was a proof";
    if (*why)
        return SCRAM_MALFORMED;
    *why = "the server refuses the proof";
    if (last.is_error)
        return SCRAM_REFUSED;
    *why = "out of memory";
    if (!scram_key_sign(client->secret.server_key, buf_span(&client->exchange), signature))
        return SCRAM_ERROR;
    bool is_same = CRYPTO_memcmp(signature, last.signature, SCRAM_KEY) == 0;
    OPENSSL_cleanse(signature, sizeof signature);
    *why = is_same ? NULL : "the server does not know the user's secret: its signature is wrong";
    return is_same ? SCRAM_OK : SCRAM_REFUSED;
}
