/* secure.c - encryption of both links, as far as it is a matter of messages: who may ask for it, what must have it, and
 * the second try of a log-in that was refused because of it.
 *
 * It knows what the requests and answers mean; it must not know how bytes are encrypted. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

#include "../auth/ident.h"

/* ---- the client's link ---- */

static void answer(struct session *session, char letter)
{
    buf_put_u8(to_frontend(session), (uint8_t)letter);
    sent_frontend(session);
}

/* Each may be asked once, and neither under TLS. Bytes behind a request in the same read were sent before the answer:
 * an attack on whoever would take them for encrypted ones. GSSAPI encryption is declined always: we must read. */
void secure_asked(struct session *session, enum startup_kind kind, bool more_behind)
{
    bool *asked = kind == STARTUP_SSL ? &session->asked_ssl : &session->asked_gss;
    if (*asked || session->is_tls[SIDE_FRONTEND]) {
        session_hang_up(session, *asked ? "encryption requested twice" : "encryption requested inside TLS");
        return;
    }
    if (more_behind) {
        session_hang_up(session, "bytes behind an encryption request");
        return;
    }
    *asked = true;
    bool accepts = kind == STARTUP_SSL && session->may_tls;
    answer(session, accepts ? 'S' : 'N');
    if (accepts)
        session_move(session, STATE_SECURE);
}

/* Why a connection cannot begin with TLS; NULL when it can. */
static const char *why_not_direct(const struct session *session)
{
    if (session->state != STATE_STARTUP || session->asked_ssl || session->asked_gss || session->is_tls[SIDE_FRONTEND] ||
        session->in[SIDE_FRONTEND].partial.len > 0)
        return "a TLS handshake out of turn";
    if (session->from.family == ADDRESS_UNIX)
        return "a TLS handshake on a Unix socket";
    return session->may_tls ? NULL : "a TLS handshake, and TLS is not offered (client_tls_sslmode)";
}

bool session_begins_tls(struct session *session)
{
    const char *why = why_not_direct(session);
    if (why)
        session_hang_up(session, why);
    else
        session_move(session, STATE_SECURE);
    return !why;
}

void session_secured(struct session *session, const struct channel *channel)
{
    if (session->state != STATE_SECURE)
        return;
    if (secure_note(session, SIDE_FRONTEND, channel))
        session_move(session, STATE_STARTUP);
    else
        session_nomem(session);
}

static bool admit_certificate(struct session *session, struct span user)
{
    const char *name = session->channel[SIDE_FRONTEND]->peer_cn;
    char message[160];
    char why[512];
    if (ident_allows(NULL, NULL, name, user.ptr ? (const char *)user.ptr : ""))
        return true;
    snprintf(message, sizeof message, "certificate authentication failed for user \"%s\"", session->user);
    snprintf(why, sizeof why, "%s: the certificate is for \"%s\" (client_tls_sslmode = verify-full)", message, name);
    session_refuse(session, "28000", message, NULL, why);
    return false;
}

bool secure_admits(struct session *session, struct span user)
{
    enum conf_sslmode mode = session->conf->client_tls.sslmode;
    if (session->from.family == ADDRESS_UNIX || mode < CONF_SSL_REQUIRE)
        return true;
    if (session->is_tls[SIDE_FRONTEND])
        return mode < CONF_SSL_VERIFY_FULL || admit_certificate(session, user);
    session_fatal(session, "28000", "the proxy takes no connection without TLS", "Connect with sslmode=require.");
    return false;
}

/* ---- both ---- */

bool secure_note(struct session *session, enum side side, const struct channel *channel)
{
    mem_free(session->channel[side]);
    session->channel[side] = channel ? mem_dup(channel, sizeof *channel) : NULL;
    session->is_tls[side] = channel != NULL;
    return !channel || session->channel[side];
}

const char *secure_text(const struct session *session, enum side side, char text[SECURE_TEXT])
{
    const struct channel *channel = session->channel[side];
    if (channel)
        snprintf(text, SECURE_TEXT, "%s/%s", channel->version, channel->cipher);
    else
        snprintf(text, SECURE_TEXT, "no");
    return text;
}

void secure_forget(struct session *session)
{
    for (int side = 0; side < 2; side++) {
        mem_free(session->channel[side]);
        session->channel[side] = NULL;
    }
}

/* ---- the second try ---- */

/* As libpq: `allow` begins without TLS and `prefer` with it, and each turns round when the server refuses. */
bool secure_may_redial(const struct session *session)
{
    const struct conf_database *database = session->database;
    enum conf_sslmode mode = conf_server_leg(session->conf, database).sslmode;
    if (session->is_cancel || session->redial != TARGET_AS_CONFIGURED)
        return false;
    if (database->hosts[session->host_index].host[0] == '/')
        return false;
    return mode == (session->is_tls[SIDE_BACKEND] ? CONF_SSL_PREFER : CONF_SSL_ALLOW);
}

/* What pg_hba.conf refuses comes as 28000 and before anything else. */
static bool is_refusal(struct span message)
{
    struct span sqlstate;
    struct span body = span_of(message.ptr + WIRE_HEADER, message.len - WIRE_HEADER);
    return message.ptr[0] == 'E' && wire_error_field(body, 'C', &sqlstate) && span_equal_cstr(sqlstate, "28000");
}

bool secure_redials(struct session *session, struct span message)
{
    if (!is_refusal(message)) {
        secure_settled(session);
        return false;
    }
    bool was_tls = session->is_tls[SIDE_BACKEND];
    log_stranger(LOG_OF_RETRY, LOG_INFO,
                 "C-%llu: %s/%s@%s the server refused the log-in with tls=%s: trying again with tls=%s",
                 (unsigned long long)session->id, session->dbname, session->user, session->peer, was_tls ? "yes" : "no",
                 was_tls ? "no" : "yes");
    session->redial = was_tls ? TARGET_WITHOUT_TLS : TARGET_WITH_TLS;
    session->may_redial = false;
    pop_head(session);     /* the log-in's: expected anew */
    session->wake = false; /* what the client sent behind it waits for the second try's answer */
    session_move(session, STATE_CONNECT);
    return true;
}

void secure_settled(struct session *session)
{
    session->may_redial = false;
    buf_fini(&session->startup);
    session->wake |= session->holding; /* what was sent without waiting for an answer */
}
