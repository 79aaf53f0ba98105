/* authenticate_client.c - a client proves its password to the proxy: SCRAM that ends here.
 *
 * What a stranger can see is the same for a user that does not exist, one without a usable secret and a wrong password:
 * the messages, their lengths and the work. Only the log says which. It must not know what the server will ask. */
#include "authenticate.h"

#include <stdio.h>
#include <string.h>

#include "../auth/credentials.h"
#include "../protocol/vault.h"
#include "internal.h"

#define PROTOCOL_NEWEST (196608u + 2) /* 3.2: the newest that the proxy itself can speak for */

/* ---- the protocol's version ---- */

static bool is_protocol_option(struct span name)
{
    return name.len > 5 && memcmp(name.ptr, "_pq_.", 5) == 0;
}

static uint32_t count_protocol_options(const struct startup *startup)
{
    struct span at = startup->parameters;
    struct span name;
    struct span value;
    uint32_t count = 0;
    while (startup_next(&at, &name, &value))
        count += is_protocol_option(name);
    return count;
}

static void put_negotiation(struct buf *out, const struct startup *startup, uint32_t version)
{
    struct span at = startup->parameters;
    struct span name;
    struct span value;
    size_t open = wire_open(out, 'v');
    buf_put_u32(out, version);
    buf_put_u32(out, count_protocol_options(startup));
    while (startup_next(&at, &name, &value))
        if (is_protocol_option(name))
            buf_put(out, name.ptr, name.len + 1);
    wire_close(out, open);
}

/* A client that asks for more than is known must hear so before it is asked to authenticate, and only once; the server
 * is asked when that is over. So the proxy answers for itself, and what the server then says to the version is dropped:
 * up to 3.2 a later version only allows longer cancel keys. (PostgreSQL documentation, "Protocol Flow: Start-up".) */
static bool negotiate(struct session *session, const struct startup *startup)
{
    bool is_newer = startup->version > PROTOCOL_NEWEST;
    if (!is_newer && count_protocol_options(startup) == 0)
        return true;
    uint32_t version = is_newer ? PROTOCOL_NEWEST : startup->version;
    struct startup forwarded;
    struct buf rewritten = {0};
    startup_read(buf_span(&session->startup), &forwarded);
    startup_without(&forwarded, "_pq_.", version, &rewritten);
    buf_fini(&session->startup);
    session->startup = rewritten;
    put_negotiation(to_frontend(session), startup, version);
    sent_frontend(session);
    return !rewritten.failed;
}

/* ---- the offer ---- */

/* Asks the client for its password, by SCRAM; bound to our certificate where that can be. */
static void offer(struct session *session)
{
    struct login *login = session->login;
    const struct channel *channel = session->channel[SIDE_FRONTEND];
    struct span binding = channel ? span_of(channel->binding, channel->binding_len) : span_of("", 0);
    login->verifier = scram_server_new(&login->secret, binding);
    if (!login->verifier) {
        session_nomem(session);
        return;
    }
    struct buf *out = to_frontend(session);
    size_t at = wire_open(out, 'R');
    buf_put_u32(out, 10);
    if (binding.len)
        buf_put_cstr(out, SCRAM_PLUS);
    buf_put_cstr(out, SCRAM_PLAIN);
    buf_put_u8(out, 0);
    wire_close(out, at);
    sent_frontend(session);
    session_move(session, STATE_VERIFY);
    session->wake = session->holding; /* sent without waiting for the offer */
}

/* Nobody's secret, which looks like those that the proxy has, or has found last. */
static bool begin_with_nobody(struct session *session, struct span user)
{
    const struct credentials *credentials = session->credentials;
    struct secret *secret = &session->login->secret;
    if (!secret_mock(credentials->seed, user, secret))
        return false;
    if (credentials->users)
        secret_mock_like(secret, userlist_shape(credentials->users));
    secret_mock_like(secret, session->env->found);
    return true;
}

void verify_begin(struct session *session, const struct startup *startup)
{
    const struct credentials *credentials = session->credentials;
    struct span user = span_cstr(session_user(session));
    struct login *login = session->login = vault_new(sizeof *login);
    if (!login || !negotiate(session, startup) || !begin_with_nobody(session, user)) {
        session_nomem(session);
        return;
    }
    const struct secret *known = credentials->users ? userlist_find(credentials->users, user) : NULL;
    bool may_ask = session->conf->auth_user[0] && !span_equal_cstr(user, session->conf->auth_user);
    login->doubt = "the user is not in auth_file";
    if (!known && may_ask) {
        session_move(session, STATE_LOOK_UP);
        return;
    }
    if (known)
        login->secret = *known;
    offer(session);
}

void verify_secret(struct session *session, const struct session_looked_up *answer)
{
    struct login *login = session->login;
    login->doubt = answer->none;
    if (answer->failed) {
        char logged[512];
        snprintf(logged, sizeof logged, "auth_query failed: %s", answer->failed);
        session_refuse(session, "08006", "authentication is not possible at the moment", NULL, logged);
        return;
    }
    if (answer->secret) {
        login->secret = *answer->secret;
        session->env->found = secret_shape(answer->secret);
    } else {
        secret_mock_like(&login->secret, answer->usual);
    }
    offer(session);
}

/* ---- the exchange ---- */

static enum action password_failed(struct session *session, const char *why)
{
    char message[160];
    char logged[512];
    const struct login *login = session->login;
    snprintf(message, sizeof message, "password authentication failed for user \"%s\"", session->user);
    snprintf(logged, sizeof logged, "%s: %s", message, login->secret.is_mock ? login->doubt : why);
    session_refuse(session, "28P01", message, NULL, logged);
    return ACTION_FAIL;
}

/* In PostgreSQL's words, too; nothing about the user is known here. */
static enum action offer_was_changed(struct session *session, const char *why)
{
    static const char message[] = "SCRAM channel binding negotiation error";
    char logged[512];
    snprintf(logged, sizeof logged, "%s: %s", message, why);
    session_refuse(session, "28000", message, NULL, logged);
    return ACTION_FAIL;
}

static enum action exchange_failed(struct session *session, enum scram_result result, const char *why)
{
    if (result == SCRAM_REFUSED)
        return session->login->has_begun ? password_failed(session, why) : offer_was_changed(session, why);
    if (result == SCRAM_ERROR)
        return session_nomem(session);
    char logged[256];
    snprintf(logged, sizeof logged, "malformed SCRAM message: %s", why);
    stats_add(session->env->stats, STATS_PROTOCOL_ERRORS);
    session_refuse(session, "08P01", "malformed SCRAM message", NULL, logged);
    return ACTION_FAIL;
}

static void put_answer(struct session *session, uint32_t code, struct span text)
{
    struct buf *out = to_frontend(session);
    size_t at = wire_open(out, 'R');
    buf_put_u32(out, code);
    buf_put_span(out, text);
    wire_close(out, at);
    sent_frontend(session);
}

/* SASLInitialResponse: mechanism, length, client-first-message. */
static enum action initial_response(struct session *session, struct span body, struct buf *answer)
{
    struct login *login = session->login;
    struct reader rd = rd_init(body);
    struct span mechanism = rd_cstr(&rd);
    int32_t len = rd_i32(&rd);
    struct span text = rd_bytes(&rd, len < 0 ? SIZE_MAX : (size_t)len);
    const char *why = "";
    if (!rd_done(&rd))
        return session_violation(session, SIDE_FRONTEND, "a malformed SASLInitialResponse");
    enum scram_result result = scram_server_first(login->verifier, mechanism, text, answer, &why);
    if (result != SCRAM_OK)
        return exchange_failed(session, result, why);
    login->has_begun = true;
    put_answer(session, 11, buf_span(answer));
    return ACTION_DONE;
}

/* SASLResponse: client-final-message. With the right proof the client's key is known, and the server comes next. */
static enum action final_response(struct session *session, struct span text, struct buf *answer)
{
    struct login *login = session->login;
    const char *why = "";
    enum scram_result result = scram_server_final(login->verifier, text, answer, login->key, &why);
    if (result != SCRAM_OK)
        return exchange_failed(session, result, why);
    scram_server_free(login->verifier);
    login->verifier = NULL;
    put_answer(session, 12, buf_span(answer));
    session_move(session, STATE_CONNECT);
    return ACTION_DONE;
}

enum action verify_message(struct session *session, struct span message)
{
    struct span body = span_of(message.ptr + WIRE_HEADER, message.len - WIRE_HEADER);
    if (message.ptr[0] == 'X') {
        session_lost(session, SIDE_FRONTEND, "client gave up its log-in");
        return ACTION_FAIL;
    }
    if (message.ptr[0] != 'p')
        return session_violation(session, SIDE_FRONTEND, "a SASL response was expected");
    struct buf answer = {0};
    enum action action =
        session->login->has_begun ? final_response(session, body, &answer) : initial_response(session, body, &answer);
    buf_fini(&answer);
    return action;
}
