/* authenticate_server.c - what the server asks at a log-in: answered in the client's name, or relayed.
 *
 * With a client's key it answers SCRAM and nothing else. Relayed requests pass, except that SCRAM over TLS is bound to
 * a certificate: where a leg's TLS ends here, what cannot work is taken out of the offer or refused in plain words. It
 * must not know how the key was learned. */
#include "authenticate.h"

#include <stdio.h>
#include <string.h>

#include "internal.h"

/* AuthenticationRequest codes (PostgreSQL documentation, "Message Formats"). */
enum { ASK_NOTHING = 0, ASK_SASL = 10, ASK_SASL_CONTINUE = 11, ASK_SASL_FINAL = 12 };

static const struct {
    uint32_t code;
    const char *name;
} methods[] = {
    {2, "Kerberos"}, {3, "a clear-text password"}, {5, "an MD5 password"}, {7, "GSSAPI"}, {8, "GSSAPI"}, {9, "SSPI"},
};

static const char *method_name(uint32_t code)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].code == code)
            return methods[i].name;
    return "an unknown method";
}

/* ---- in the client's name ---- */

static enum action cannot(struct session *session, const char *message, const char *hint, const char *why)
{
    char logged[512];
    snprintf(logged, sizeof logged, "%s%s%s", message, why ? ": " : "", why ? why : "");
    session_refuse(session, "28000", message, hint, logged);
    return ACTION_FAIL;
}

static enum action refuse_method(struct session *session, const char *asked)
{
    char message[160];
    snprintf(message, sizeof message, "the server asks for %s, and the proxy has only the client's SCRAM key", asked);
    return cannot(session, message,
                  "Give the user a password with password_encryption = 'scram-sha-256' on the server and ask for "
                  "scram-sha-256 in its pg_hba.conf, or let the proxy relay the log-in (auth_type = relay).",
                  NULL);
}

static enum action refuse_exchange(struct session *session, enum scram_result result, const char *why)
{
    char message[256];
    if (result == SCRAM_ERROR)
        return session_nomem(session);
    if (result == SCRAM_MALFORMED)
        return session_violation(session, SIDE_BACKEND, why);
    if (session->login->prover_step == PROVER_IDLE)
        return refuse_method(session, "a SASL mechanism other than SCRAM-SHA-256");
    if (session->login->prover_step == PROVER_HAS_PROVED)
        return cannot(session, "the server did not prove that it knows the user's SCRAM secret", NULL, why);
    snprintf(message, sizeof message, "the server keeps another SCRAM secret for user \"%s\" than the proxy",
             session_user(session));
    return cannot(session, message,
                  "auth_file must hold the rolpassword of the server's pg_authid, to the letter, and all hosts of a "
                  "[databases] line must have the same.",
                  why);
}

/* AuthenticationSASL: chooses a mechanism. */
static enum action answer_offer(struct session *session, struct span offer, struct buf *text, const char **why)
{
    struct login *login = session->login;
    const struct channel *channel = session->channel[SIDE_BACKEND];
    struct span binding = channel ? span_of(channel->binding, channel->binding_len) : span_of("", 0);
    const char *mechanism = NULL;
    login->prover = scram_client_new(&login->secret, login->key, binding);
    if (!login->prover)
        return session_nomem(session);
    enum scram_result result = scram_client_first(login->prover, offer, &mechanism, text, why);
    if (result != SCRAM_OK)
        return refuse_exchange(session, result, *why);
    struct buf *out = to_backend(session);
    size_t at = wire_open(out, 'p');
    buf_put_cstr(out, mechanism);
    buf_put_u32(out, (uint32_t)text->len);
    buf_put_span(out, buf_span(text));
    wire_close(out, at);
    sent_backend(session);
    login->prover_step = PROVER_HAS_CHOSEN;
    return ACTION_DONE;
}

static enum action answer_challenge(struct session *session, struct span challenge, struct buf *text, const char **why)
{
    struct login *login = session->login;
    enum scram_result result = scram_client_final(login->prover, challenge, text, why);
    if (result != SCRAM_OK)
        return refuse_exchange(session, result, *why);
    struct buf *out = to_backend(session);
    size_t at = wire_open(out, 'p');
    buf_put_span(out, buf_span(text));
    wire_close(out, at);
    sent_backend(session);
    login->prover_step = PROVER_HAS_PROVED;
    return ACTION_DONE;
}

static enum action hear_signature(struct session *session, struct span signature, struct buf *text, const char **why)
{
    (void)text;
    struct login *login = session->login;
    enum scram_result result = scram_client_verify(login->prover, signature, why);
    if (result != SCRAM_OK)
        return refuse_exchange(session, result, *why);
    login->prover_step = PROVER_IS_DONE;
    return ACTION_DONE;
}

/* AuthenticationOk. What the client has sent meanwhile can go. A server that ends an exchange before it has proved
 * itself knows no secret; one that asks for nothing at all trusts us. */
static enum action logged_in(struct session *session, struct span nothing, struct buf *text, const char **why)
{
    (void)text;
    if (nothing.len)
        return session_violation(session, SIDE_BACKEND, "a malformed AuthenticationOk");
    if (session->login->prover_step == PROVER_HAS_PROVED)
        return refuse_exchange(session, SCRAM_REFUSED, *why);
    login_end(session);
    session->is_welcome = true;
    session_move(session, STATE_LOGIN);
    session->wake = session->holding;
    return ACTION_FORWARD;
}

static const struct step {
    uint32_t asked;
    unsigned when; /* bits of prover_step */
    enum action (*answer)(struct session *session, struct span rest, struct buf *text, const char **why);
} steps[] = {
    {ASK_NOTHING, 1u << PROVER_IDLE | 1u << PROVER_HAS_PROVED | 1u << PROVER_IS_DONE, logged_in},
    {ASK_SASL, 1u << PROVER_IDLE, answer_offer},
    {ASK_SASL_CONTINUE, 1u << PROVER_HAS_CHOSEN, answer_challenge},
    {ASK_SASL_FINAL, 1u << PROVER_HAS_PROVED, hear_signature},
};

static enum action answer(struct session *session, uint32_t asked, struct span rest)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i].asked != asked)
            continue;
        if (!(steps[i].when & 1u << session->login->prover_step))
            return session_violation(session, SIDE_BACKEND, "an authentication request out of turn");
        struct buf text = {0};
        const char *why = "it ended the exchange without a word";
        enum action action = steps[i].answer(session, rest, &text, &why);
        buf_fini(&text);
        return action;
    }
    return refuse_method(session, method_name(asked));
}

enum action prove_message(struct session *session, struct span message)
{
    struct reader rd = rd_init(span_of(message.ptr + WIRE_HEADER, message.len - WIRE_HEADER));
    switch (message.ptr[0]) {
    case 'v':                     /* the client has had its answer */
    case 'N': return ACTION_DONE; /* no client takes a notice now */
    case 'R': break;
    default: return session_violation(session, SIDE_BACKEND, "an unexpected message in the log-in");
    }
    uint32_t asked = rd_u32(&rd);
    if (rd.failed)
        return session_violation(session, SIDE_BACKEND, "a malformed authentication request");
    return answer(session, asked, rd_bytes(&rd, rd_left(&rd)));
}

/* ---- relayed ---- */

/* AuthenticationSASL for a client without TLS: it could not bind, and libpq takes the offer to do so for an attack. */
static enum action forward_without_plus(struct session *session, struct span offer)
{
    struct reader rd = rd_init(offer);
    struct buf kept = {0};
    for (struct span name = rd_cstr(&rd); name.len && !rd.failed; name = rd_cstr(&rd))
        if (!span_equal_cstr(name, SCRAM_PLUS))
            buf_put(&kept, name.ptr, name.len + 1);
    bool is_empty = kept.len == 0;
    if (!rd.failed && !is_empty) {
        struct buf *out = to_frontend(session);
        size_t at = wire_open(out, 'R');
        buf_put_u32(out, ASK_SASL);
        buf_put_span(out, buf_span(&kept));
        buf_put_u8(out, 0);
        wire_close(out, at);
        out->failed |= kept.failed;
        sent_frontend(session);
    }
    buf_fini(&kept);
    if (rd.failed)
        return session_violation(session, SIDE_BACKEND, "a malformed AuthenticationSASL");
    if (!is_empty)
        return ACTION_DONE;
    return cannot(session, "the server offers only " SCRAM_PLUS ", which needs TLS between client and proxy",
                  "Let clients connect with TLS and the proxy verify them (auth_type = scram-sha-256).", NULL);
}

static bool offers_plus(struct span offer)
{
    struct reader rd = rd_init(offer);
    for (struct span name = rd_cstr(&rd); name.len && !rd.failed; name = rd_cstr(&rd))
        if (span_equal_cstr(name, SCRAM_PLUS))
            return true;
    return false;
}

enum action relay_request(struct session *session, struct span message)
{
    struct reader rd = rd_init(span_of(message.ptr + WIRE_HEADER, message.len - WIRE_HEADER));
    uint32_t asked = rd_u32(&rd);
    struct span offer = rd_bytes(&rd, rd_left(&rd));
    if (rd.failed)
        return session_violation(session, SIDE_BACKEND, "a malformed authentication request");
    /* A client that has proved itself might answer all the same, with its password in clear text. */
    if (session->is_welcome)
        return session_violation(session, SIDE_BACKEND, "an authentication request behind AuthenticationOk");
    session->is_welcome = asked == ASK_NOTHING;
    if (asked != ASK_SASL || !session->channel[SIDE_BACKEND] || !offers_plus(offer))
        return ACTION_FORWARD;
    session->watches_choice = true;
    return session->channel[SIDE_FRONTEND] ? ACTION_FORWARD : forward_without_plus(session, offer);
}

static bool same_certificate(const struct channel *seen, const struct channel *shown)
{
    return seen && span_equal(span_of(seen->binding, seen->binding_len), span_of(shown->binding, shown->binding_len));
}

/* A client binds to the certificate that it has seen, the server to the one that it has shown: ours and its own, unless
 * they are the same. One that says that it would bind, had it only been offered ("y,,"), is refused by a server that
 * has offered it. */
enum action relay_choice(struct session *session, struct span message)
{
    struct reader rd = rd_init(span_of(message.ptr + WIRE_HEADER, message.len - WIRE_HEADER));
    struct span mechanism = rd_cstr(&rd);
    uint32_t len = rd_u32(&rd);
    bool says_y = !rd.failed && len > 0 && rd_u8(&rd) == 'y';
    bool binds = span_equal_cstr(mechanism, SCRAM_PLUS);
    session->watches_choice = false;
    if (!binds && !says_y)
        return ACTION_FORWARD;
    if (binds && same_certificate(session->channel[SIDE_FRONTEND], session->channel[SIDE_BACKEND]))
        return ACTION_FORWARD;
    return cannot(
        session, "SCRAM channel binding cannot reach through the proxy: TLS ends here, with another certificate",
        "Connect with channel_binding=disable, or let the proxy verify clients (auth_type = scram-sha-256), or "
        "give it the server's own certificate and key.",
        NULL);
}
