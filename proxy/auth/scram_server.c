/* scram_server.c - the server's side: what the client proves, and the key that its proof gives away. */
#include "scram_text.h"

#include <string.h>

#include <openssl/crypto.h>

#include "../protocol/base64.h"
#include "scram_key.h"

enum scram_server_step { SCRAM_SERVER_FIRST, SCRAM_SERVER_FINAL, SCRAM_SERVER_OVER };

struct scram_server {
    struct secret secret;
    enum scram_server_step step; /* which text is expected */
    struct buf binding;          /* of the channel; empty: PLUS is not offered */
    struct buf echo;             /* what c= must say */
    struct buf nonce;            /* both parts */
    struct buf exchange;         /* AuthMessage, as far as it is known */
};

struct scram_server *scram_server_new(const struct secret *secret, struct span binding)
{
    struct scram_server *server = mem_zalloc(sizeof *server);
    if (!server)
        return NULL;
    server->secret = *secret;
    buf_put_span(&server->binding, binding);
    if (!server->binding.failed)
        return server;
    scram_server_free(server);
    return NULL;
}

void scram_server_free(struct scram_server *server)
{
    if (!server)
        return;
    buf_fini(&server->binding);
    buf_fini(&server->echo);
    buf_fini(&server->nonce);
    buf_fini(&server->exchange);
    OPENSSL_cleanse(server, sizeof *server);
    mem_free(server);
}

/* ---- client-first-message ---- */

/* Whether the mechanism was offered, and the flag is one that it may come with. */
static enum scram_result scram_server_judge(const struct scram_server *server, struct span mechanism,
                                            const struct scram_client_first *first, const char **why)
{
    bool has_plus = server->binding.len > 0;
    bool is_plus = span_equal_cstr(mechanism, SCRAM_PLUS);
    *why = NULL;
    if (!is_plus && !span_equal_cstr(mechanism, SCRAM_PLAIN))
        *why = "the mechanism is unknown";
    else if (is_plus && !has_plus)
        *why = "SCRAM-SHA-256-PLUS was not offered";
    else if (is_plus != (first->flag == 'p'))
        *why = "the mechanism and the channel binding flag disagree";
    else if (is_plus && !span_equal_cstr(first->binding, SCRAM_BINDING))
        *why = "a channel binding other than " SCRAM_BINDING;
    if (*why)
        return SCRAM_MALFORMED;
    if (first->flag != 'y' || !has_plus)
        return SCRAM_OK;
    *why = "the client was not shown the offer of SCRAM-SHA-256-PLUS: somebody between has changed it, or it does not "
           "know "
           "the mechanism and says that it does";
    return SCRAM_REFUSED;
}

/* c= repeats the header, and behind it what the channel is bound to. */
static bool scram_server_note_echo(struct scram_server *server, const struct scram_client_first *first)
{
    struct buf input = {0};
    buf_put_span(&input, first->header);
    if (first->flag == 'p')
        buf_put_span(&input, buf_span(&server->binding));
    base64_put(buf_span(&input), &server->echo);
    bool ok = !input.failed && !server->echo.failed;
    buf_fini(&input);
    return ok;
}

static enum scram_result scram_server_answer(struct scram_server *server, const struct scram_client_first *first,
                                             struct span nonce, struct buf *out, const char **why)
{
    struct buf *exchange = &server->exchange;
    const struct secret *secret = &server->secret;
    *why = "out of memory";
    if (!scram_server_note_echo(server, first))
        return SCRAM_ERROR;
    buf_put_span(&server->nonce, first->nonce);
    buf_put_span(&server->nonce, nonce);
    buf_put_span(exchange, first->bare);
    buf_put_u8(exchange, ',');
    size_t begin = exchange->len;
    buf_put_text(exchange, "r=");
    buf_put_span(exchange, buf_span(&server->nonce));
    buf_put_text(exchange, ",s=");
    base64_put(span_of(secret->salt, secret->salt_len), exchange);
    buf_put_format(exchange, ",i=%u", (unsigned)secret->iterations);
    if (server->nonce.failed || exchange->failed)
        return SCRAM_ERROR;
    buf_put(out, exchange->ptr + begin, exchange->len - begin);
    if (out->failed)
        return SCRAM_ERROR;
    *why = NULL;
    server->step = SCRAM_SERVER_FINAL;
    return SCRAM_OK;
}

enum scram_result scram_server_first_nonce(struct scram_server *server, struct span mechanism, struct span message,
                                           struct span nonce, struct buf *out, const char **why)
{
    struct scram_client_first first;
    bool is_expected = server->step == SCRAM_SERVER_FIRST;
    server->step = SCRAM_SERVER_OVER; /* unless all is well */
    *why = is_expected ? scram_text_client_first(message, &first) : "the first text of an exchange comes once";
    if (*why)
        return SCRAM_MALFORMED;
    enum scram_result result = scram_server_judge(server, mechanism, &first, why);
    return result == SCRAM_OK ? scram_server_answer(server, &first, nonce, out, why) : result;
}

enum scram_result scram_server_first(struct scram_server *server, struct span mechanism, struct span message,
                                     struct buf *out, const char **why)
{
    uint8_t nonce[SCRAM_KEY_NONCE];
    if (scram_key_nonce(nonce))
        return scram_server_first_nonce(server, mechanism, message, span_of(nonce, sizeof nonce), out, why);
    server->step = SCRAM_SERVER_OVER;
    *why = "no randomness for a nonce";
    return SCRAM_ERROR;
}

/* ---- client-final-message ---- */

static enum scram_result scram_server_compare(const struct scram_server *server, const struct scram_client_final *last,
                                              const char **why)
{
    *why = NULL;
    if (!span_equal(last->nonce, buf_span(&server->nonce))) {
        *why = "the nonce is not the one that was agreed on";
        return SCRAM_MALFORMED;
    }
    if (span_equal(last->binding, buf_span(&server->echo)))
        return SCRAM_OK;
    *why = "the channel binding does not match: the client sees another certificate, or has changed its mind";
    return SCRAM_REFUSED;
}

/* The same work for a wrong password and for a user that does not exist. */
static enum scram_result scram_server_prove(const struct scram_server *server, const uint8_t proof[SCRAM_KEY],
                                            uint8_t client_key[SCRAM_KEY], uint8_t signature[SCRAM_KEY],
                                            const char **why)
{
    const struct secret *secret = &server->secret;
    struct span exchange = buf_span(&server->exchange);
    uint8_t hash[SCRAM_KEY];
    *why = "out of memory";
    if (!scram_key_sign(secret->stored_key, exchange, client_key))
        return SCRAM_ERROR;
    scram_key_xor(proof, client_key, client_key);
    if (!scram_key_hash(client_key, hash) || !scram_key_sign(secret->server_key, exchange, signature))
        return SCRAM_ERROR;
    bool is_proved = CRYPTO_memcmp(hash, secret->stored_key, SCRAM_KEY) == 0;
    *why = secret->is_mock ? "there is no SCRAM secret for this user" : is_proved ? NULL : "the password is wrong";
    return *why ? SCRAM_REFUSED : SCRAM_OK;
}

static enum scram_result scram_server_finish(struct scram_server *server, const struct scram_client_final *last,
                                             struct buf *out, uint8_t client_key[SCRAM_KEY], const char **why)
{
    uint8_t signature[SCRAM_KEY];
    struct buf text = {0};
    buf_put_u8(&server->exchange, ',');
    buf_put_span(&server->exchange, last->without_proof);
    *why = "out of memory";
    if (server->exchange.failed)
        return SCRAM_ERROR;
    enum scram_result result = scram_server_prove(server, last->proof, client_key, signature, why);
    if (result != SCRAM_OK)
        return result;
    buf_put_text(&text, "v=");
    base64_put(span_of(signature, sizeof signature), &text);
    if (!text.failed)
        buf_put_span(out, buf_span(&text));
    bool ok = !text.failed && !out->failed;
    buf_fini(&text);
    *why = ok ? NULL : "out of memory";
    return ok ? SCRAM_OK : SCRAM_ERROR;
}

enum scram_result scram_server_final(struct scram_server *server, struct span message, struct buf *out,
                                     uint8_t client_key[SCRAM_KEY], const char **why)
{
    struct scram_client_final last;
    bool is_expected = server->step == SCRAM_SERVER_FINAL;
    server->step = SCRAM_SERVER_OVER;
    OPENSSL_cleanse(client_key, SCRAM_KEY);
    *why =
        is_expected ? scram_text_client_final(message, &last) : "the last text of an exchange follows the first, once";
    if (*why)
        return SCRAM_MALFORMED;
    enum scram_result result = scram_server_compare(server, &last, why);
    if (result == SCRAM_OK)
        result = scram_server_finish(server, &last, out, client_key, why);
    if (result != SCRAM_OK)
        OPENSSL_cleanse(client_key, SCRAM_KEY);
    OPENSSL_cleanse(&last, sizeof last);
    return result;
}
