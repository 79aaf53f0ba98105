/* authenticate.c - who must prove what to whom: the rules' verdict about a client, and the log-in's messages.
 *
 * It applies what auth/ decides and must not know SCRAM's texts, nor what the server will ask. */
#include "authenticate.h"

#include <stdio.h>
#include <string.h>

#include "../auth/credentials.h"
#include "../protocol/vault.h"
#include "internal.h"

/* The longest message of an exchange that is ours: a mechanism, a length and a text. */
#define LOGIN_OWN_MAX (SCRAM_MESSAGE_MAX + 256u)
/* A message with a token of PostgreSQL's own limit. */
#define LOGIN_RELAYED_MAX (WIRE_HEADER + 4u + 65535u)

#define NAME_MAX_BYTES 63u /* what the server keeps of a name */

/* ---- life ---- */

void login_end(struct session *session)
{
    struct login *login = session->login;
    if (!login)
        return;
    scram_server_free(login->verifier);
    scram_client_free(login->prover);
    vault_free(login);
    session->login = NULL;
}

/* ---- refusals ---- */

/* The client is told what PostgreSQL tells; the log names the line of the rules. */
static void refuse_login(struct session *session, const char *message, const char *hint, unsigned line)
{
    char logged[512];
    if (line)
        snprintf(logged, sizeof logged, "%s (line %u of auth_hba_file)", message, line);
    else
        snprintf(logged, sizeof logged, "%s", message);
    session_refuse(session, "28000", message, hint, logged);
}

static void refuse_by_rules(struct session *session, const struct hba_verdict *verdict)
{
    char message[400];
    const char *port = session->from.family == ADDRESS_UNIX ? NULL : strrchr(session->peer, ':');
    size_t host_len = port ? (size_t)(port - session->peer) : strlen(session->peer);
    snprintf(message, sizeof message, "%s for host \"%.*s\", user \"%s\", database \"%s\", %s",
             verdict->method == HBA_REJECT ? "auth_hba_file rejects the connection" : "no auth_hba_file entry",
             (int)host_len, session->peer, session->user, session->dbname,
             session->is_tls[SIDE_FRONTEND] ? "TLS" : "no encryption");
    refuse_login(session, message, NULL, verdict->line);
}

static void refuse_certificate(struct session *session, const char *name, unsigned line)
{
    char message[160];
    char logged[512];
    snprintf(message, sizeof message, "certificate authentication failed for user \"%s\"", session->user);
    snprintf(logged, sizeof logged, "%s: the certificate's common name is \"%s\" (line %u of auth_hba_file)", message,
             name, line);
    session_refuse(session, "28000", message, NULL, logged);
}

/* ---- what the startup packet may say where the proxy decides ---- */

static size_t count_parameter(const struct startup *startup, const char *wanted)
{
    struct span at = startup->parameters;
    struct span name;
    struct span value;
    size_t count = 0;
    while (startup_next(&at, &name, &value))
        count += span_equal_cstr(name, wanted);
    return count;
}

/* The rules must have decided about the very names that the server will read: given once, and not shortened there. */
static const char *unsound_names(const struct startup *startup)
{
    static const char *const decisive[] = {"user", "database", "replication"};
    for (size_t i = 0; i < sizeof decisive / sizeof *decisive; i++) {
        if (count_parameter(startup, decisive[i]) > 1)
            return "a startup parameter that decides about the log-in is given twice";
        if (startup_find(startup, decisive[i]).len > NAME_MAX_BYTES)
            return "a name in the startup packet is too long";
    }
    if (startup_find(startup, "user").len == 0)
        return "no PostgreSQL user name specified in startup packet";
    return NULL;
}

/* ---- the verdict ---- */

static struct hba_verdict decide(const struct session *session, const struct startup *startup)
{
    struct span replication = startup_find(startup, "replication");
    const struct hba_client client = {
        .from = session->from,
        .to = session->to,
        .is_tls = session->is_tls[SIDE_FRONTEND],
        .is_replication = session->opaque && !span_equal_cstr(replication, "database"),
        .database = session->dbname,
        .user = session->user,
    };
    return credentials_decide(session->credentials, &client);
}

/* Whether the client's certificate is what the rule asks for; if not, the session has ended. */
static bool certificate_suffices(struct session *session, const struct hba_verdict *verdict)
{
    bool names_user = verdict->method == HBA_CERT || verdict->clientcert == HBA_CLIENTCERT_FULL;
    if (!names_user && verdict->clientcert == HBA_CLIENTCERT_NONE)
        return true;
    const struct channel *channel = session->channel[SIDE_FRONTEND];
    if (!channel || !channel->is_verified) {
        refuse_login(session, "connection requires a valid client certificate", NULL, verdict->line);
        return false;
    }
    const char *name = channel->peer_cn;
    if (!names_user || (name[0] && ident_allows(session->credentials->ident, verdict->map, name, session->user)))
        return true;
    refuse_certificate(session, name, verdict->line);
    return false;
}

void authenticate(struct session *session, const struct startup *startup)
{
    const struct credentials *credentials = session->credentials;
    if (!credentials || (!credentials->hba && credentials->otherwise == HBA_RELAY)) {
        session_move(session, STATE_CONNECT);
        return;
    }
    const char *unsound = unsound_names(startup);
    if (unsound) {
        refuse_login(session, unsound, NULL, 0);
        return;
    }
    struct hba_verdict verdict = decide(session, startup);
    if (verdict.method == HBA_REJECT || verdict.method == HBA_NO_LINE)
        refuse_by_rules(session, &verdict);
    else if (!certificate_suffices(session, &verdict))
        return;
    else if (verdict.method == HBA_SCRAM)
        verify_begin(session, startup);
    else
        session_move(session, STATE_CONNECT);
}

/* ---- messages ---- */

bool login_takes(const struct session *session, enum side from, uint8_t type)
{
    switch (session->state) {
    case STATE_VERIFY: return from == SIDE_FRONTEND;
    case STATE_PROVE: return from == SIDE_BACKEND && type != 'E'; /* an error is the client's, as in every log-in */
    case STATE_LOGIN: return from == SIDE_FRONTEND ? type == 'p' && session->watches_choice : type == 'R';
    default: return false;
    }
}

size_t login_needs(const struct session *session, size_t total)
{
    return total <= (session->state == STATE_LOGIN ? LOGIN_RELAYED_MAX : LOGIN_OWN_MAX) ? total : 0;
}

enum action login_too_long(struct session *session, enum side from)
{
    if (session->state == STATE_LOGIN && from == SIDE_FRONTEND)
        return ACTION_FORWARD; /* no choice of a mechanism; the server says what it thinks of it */
    return session_violation(session, from, "a message of the log-in is too long");
}

enum action login_message(struct session *session, enum side from, struct span message)
{
    if (session->state == STATE_VERIFY)
        return verify_message(session, message);
    if (session->state == STATE_PROVE)
        return prove_message(session, message);
    return from == SIDE_FRONTEND ? relay_choice(session, message) : relay_request(session, message);
}
