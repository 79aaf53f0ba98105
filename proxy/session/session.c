/* session.c - a session's life: made, connected, ended; the verbs that the other files of this room share.
 *
 * It holds the state and its one mover; it must not know what any message means. */
#include "internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "authenticate.h"

/* ---- states ---- */

static const struct {
    const char *name;
    unsigned successors; /* bits of enum state */
} states[] = {
    [STATE_STARTUP] = {"startup", 1u << STATE_SECURE | 1u << STATE_LOOK_UP | 1u << STATE_VERIFY | 1u << STATE_CONNECT |
                                      1u << STATE_CLOSING},
    [STATE_SECURE] = {"secure", 1u << STATE_STARTUP | 1u << STATE_CLOSING},
    [STATE_LOOK_UP] = {"look up", 1u << STATE_VERIFY | 1u << STATE_CLOSING},
    [STATE_VERIFY] = {"verify", 1u << STATE_CONNECT | 1u << STATE_CLOSING},
    [STATE_CONNECT] = {"connect", 1u << STATE_PROVE | 1u << STATE_LOGIN | 1u << STATE_CANCEL | 1u << STATE_CLOSING},
    [STATE_PROVE] = {"prove", 1u << STATE_LOGIN | 1u << STATE_CONNECT | 1u << STATE_CLOSING},
    [STATE_LOGIN] = {"login", 1u << STATE_UP | 1u << STATE_CONNECT | 1u << STATE_CLOSING},
    [STATE_UP] = {"up", 1u << STATE_CLOSING},
    [STATE_CANCEL] = {"cancel", 1u << STATE_CLOSING},
    [STATE_CLOSING] = {"closing", 1u << STATE_CLOSING},
};

/* Its place is another's as soon as it is over, even if its client has not read why. */
static void leave_census(struct session *session)
{
    census_leave(session->env->census, session->as_database);
    census_leave(session->env->census, session->as_user);
    session->as_database = session->as_user = NULL;
}

void session_move(struct session *session, enum state to)
{
    if (!(states[session->state].successors & 1u << to)) {
        log_at(LOG_ERROR, "C-%llu: BUG: %s -> %s", (unsigned long long)session->id, states[session->state].name,
               states[to].name);
        to = STATE_CLOSING;
    }
    log_at(LOG_DEBUG, "C-%llu: %s -> %s", (unsigned long long)session->id, states[session->state].name,
           states[to].name);
    session->state = to;
    if (to == STATE_CLOSING)
        leave_census(session);
    if (to == STATE_UP)
        session->wake |= session->holding; /* what was sent ahead */
    if (to == STATE_UP && session->conf->log_connections)
        log_forgive(LOG_OF_ATTEMPT);
    if (to == STATE_UP || to == STATE_CLOSING) {
        login_end(session);
        session->credentials = NULL;
    }
}

/* ---- life ---- */

struct session *session_new(struct session_env *env, const struct session_peer *peer, uint64_t id)
{
    struct session *session = mem_zalloc(sizeof *session);
    if (!session)
        return NULL;
    session->env = env;
    session->conf = conf_ref((struct conf *)(uintptr_t)env->conf);
    session->credentials = env->credentials;
    session->id = id;
    session->status = 'I';
    session->strings_standard = true;
    snprintf(session->peer, sizeof session->peer, "%s", peer->name);
    session->from = peer->from;
    session->to = peer->to;
    session->may_tls = env->has_tls && peer->from.family != ADDRESS_UNIX;
    stats_add(env->stats, STATS_CLIENTS);
    return session;
}

static void tagging_free(struct tagging *tagging)
{
    if (!tagging)
        return;
    kept_fini(tagging);
    context_fini(&tagging->context);
    inquiry_reset(&tagging->inquiry);
    catalog_fini(&tagging->inquiry.catalog);
    buf_fini(&tagging->retry.kept);
    buf_fini(&tagging->total.value);
    page_report_fini(&tagging->results);
    buf_fini(&tagging->scratch);
    mem_free(tagging);
}

void session_free(struct session *session)
{
    if (!session)
        return;
    while (session->owed.count) {
        follow_free(pending_head(&session->owed)->follow);
        pending_pop(&session->owed);
    }
    pending_fini(&session->owed);
    names_fini(&session->statements);
    names_fini(&session->portals);
    variables_unref(session->variables);
    buf_fini(&session->in[0].partial);
    buf_fini(&session->in[1].partial);
    cancel_map_remove(session->env->cancels, buf_span(&session->cancel_key));
    buf_fini(&session->cancel_key);
    leave_census(session);
    buf_fini(&session->held);
    buf_fini(&session->startup);
    secure_forget(session);
    login_end(session);
    tagging_free(session->tagging);
    conf_unref(session->conf);
    mem_free(session);
}

struct tagging *session_tagging(struct session *session)
{
    if (session->tagging)
        return session->tagging;
    struct tagging *tagging = mem_zalloc(sizeof *tagging);
    uint32_t random;
    if (!tagging || getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        mem_free(tagging);
        return NULL;
    }
    snprintf(tagging->reserved, sizeof tagging->reserved, "pgseek_%08x", random);
    session->tagging = tagging;
    return tagging;
}

/* ---- sinks ---- */

struct buf *to_backend(struct session *session)
{
    return sink_make(&session->env->to_backend);
}

void sent_backend(struct session *session)
{
    sink_made(&session->env->to_backend);
}

struct buf *to_frontend(struct session *session)
{
    return sink_make(&session->env->to_frontend);
}

void sent_frontend(struct session *session)
{
    sink_made(&session->env->to_frontend);
}

void forward(struct session *session, enum side to, struct span bytes)
{
    struct sink *sink = to == SIDE_FRONTEND ? &session->env->to_frontend : &session->env->to_backend;
    if (session->borrowed)
        sink_borrow(sink, bytes);
    else
        sink_copy(sink, bytes);
}

enum action hold_for_replies(struct session *session)
{
    wire_put_empty(to_backend(session), 'H');
    sent_backend(session);
    return ACTION_HOLD;
}

/* ---- ends ---- */

#define CLOSING_LINE "C-%llu: %s/%s@%s closing because: %s"

static void log_closing(struct session *session, enum log_level level, const char *why)
{
    const char *dbname = session->dbname[0] ? session->dbname : "(nodb)";
    const char *user = session->user[0] ? session->user : "(nouser)";
    if (session->state == STATE_UP)
        log_at(level, CLOSING_LINE, (unsigned long long)session->id, dbname, user, session->peer, why);
    else
        log_stranger(session->state == STATE_SECURE ? LOG_OF_HANDSHAKE : LOG_OF_END, level, CLOSING_LINE,
                     (unsigned long long)session->id, dbname, user, session->peer, why);
}

static void count_end(struct session *session)
{
    if (session->state == STATE_VERIFY || session_makes_wait(session) || session->state == STATE_LOGIN)
        stats_add(session->env->stats, STATS_LOGIN_FAILURES);
}

void session_refuse(struct session *session, const char *sqlstate, const char *message, const char *hint,
                    const char *why)
{
    if (session->state == STATE_CLOSING)
        return;
    count_end(session);
    wire_put_error(to_frontend(session), 'E',
                   &(struct wire_error){.severity = "FATAL", .sqlstate = sqlstate, .message = message, .hint = hint});
    sent_frontend(session);
    log_closing(session, LOG_WARNING, why);
    session_move(session, STATE_CLOSING);
}

void session_fatal(struct session *session, const char *sqlstate, const char *message, const char *hint)
{
    session_refuse(session, sqlstate, message, hint, message);
}

void session_hang_up(struct session *session, const char *what)
{
    char message[160];
    if (session->state == STATE_CLOSING)
        return;
    snprintf(message, sizeof message, "protocol violation by the client: %s", what);
    stats_add(session->env->stats, STATS_PROTOCOL_ERRORS);
    log_closing(session, LOG_WARNING, message);
    session_move(session, STATE_CLOSING);
}

enum action session_violation(struct session *session, enum side side, const char *what)
{
    char message[160];
    snprintf(message, sizeof message, "protocol violation by the %s: %s", side == SIDE_FRONTEND ? "client" : "server",
             what);
    stats_add(session->env->stats, STATS_PROTOCOL_ERRORS);
    session_fatal(session, "08P01", message, NULL);
    return ACTION_FAIL;
}

enum action session_nomem(struct session *session)
{
    session_fatal(session, "53200", "the proxy is out of memory", NULL);
    return ACTION_FAIL;
}

void session_end(struct session *session, const char *sqlstate, const char *message)
{
    session_fatal(session, sqlstate, message, NULL);
}

/* Health checks connect and close, and are nobody's news. Who has made a handshake first has seen something that he
 * does not like: our certificate, as a rule, of which TLS 1.3 tells after the handshake. */
static bool is_mere_probe(const struct session *session)
{
    return session->state == STATE_CANCEL || (session->state == STATE_STARTUP && !session->is_tls[SIDE_FRONTEND]);
}

/* A server that goes before its first word: inside TLS 1.3 that is how it refuses our certificate. Only we can tell the
 * client. */
static bool is_silent_server(const struct session *session, enum side side)
{
    return side == SIDE_BACKEND && !session->is_answered &&
           (session->state == STATE_LOGIN || session->state == STATE_PROVE);
}

void session_lost(struct session *session, enum side side, const char *why)
{
    if (session->state == STATE_CLOSING)
        return;
    if (is_silent_server(session, side)) {
        session_unreachable(session, why);
        return;
    }
    bool orderly = session->state == STATE_CANCEL || (side == SIDE_FRONTEND && session->state == STATE_UP);
    if (side == SIDE_BACKEND && (session->state == STATE_LOGIN || session->state == STATE_PROVE))
        orderly = true; /* a refused login: the client has the server's own words */
    if (side == SIDE_BACKEND && session->has_said_goodbye) {
        orderly = true; /* a client that waits for the server's end has not closed yet */
        why = "client close request";
    }
    count_end(session);
    if (session->state == STATE_SECURE) {
        char message[320];
        snprintf(message, sizeof message, "TLS handshake failed: %s", why);
        log_closing(session, LOG_WARNING, message);
    } else if (session->conf->log_disconnections && !is_mere_probe(session)) {
        log_closing(session, orderly ? LOG_INFO : LOG_WARNING, why);
    }
    session_move(session, STATE_CLOSING);
}

/* ---- the server link ---- */

/* A sink with a gap in it must not be sent: what stands behind the gap would be taken for what is missing. */
static void discard_if_failed(struct sink *sink)
{
    if (sink_failed(sink))
        sink_clear(sink);
}

/* Takes up what waited, and looks whether memory ran out on the way. */
static void settle(struct session *session)
{
    while (session->wake && session->state != STATE_CLOSING) {
        session->wake = false;
        intake_resume(session);
    }
    if (!sink_failed(&session->env->to_frontend) && !sink_failed(&session->env->to_backend))
        return;
    if (session->state != STATE_CLOSING)
        log_closing(session, LOG_ERROR, "out of memory");
    session_move(session, STATE_CLOSING);
    discard_if_failed(&session->env->to_frontend);
    discard_if_failed(&session->env->to_backend);
}

void session_secret(struct session *session, const struct session_looked_up *answer)
{
    if (session->state == STATE_LOOK_UP)
        verify_secret(session, answer);
    settle(session);
}

const char *session_user(const struct session *session)
{
    const struct conf_database *database = session->database;
    return database && database->user ? database->user : session->user;
}

const char *session_dbname(const struct session *session)
{
    const struct conf_database *database = session->database;
    return database && database->dbname ? database->dbname : session->dbname;
}

static void log_server(const struct session *session, const struct channel *channel)
{
    const char *host = session->database->hosts[session->host_index].host;
    log_at(LOG_DEBUG, "C-%llu: %s/%s@%s new connection to server %s:%d tls=%s%s%s", (unsigned long long)session->id,
           session->dbname, session->user, session->peer, host, session->database->hosts[session->host_index].port,
           channel ? channel->version : "no", channel ? "/" : "", channel ? channel->cipher : "");
}

void session_connected(struct session *session, int host_index, const struct server_address *address,
                       const struct channel *channel)
{
    session->host_index = host_index;
    if (address)
        session->server = *address;
    session->is_answered = false;
    log_server(session, channel);
    if (!secure_note(session, SIDE_BACKEND, channel) ||
        (!session->is_cancel && !expect(session, PENDING_STARTUP, ROLE_CLIENT))) {
        session_nomem(session);
        return;
    }
    sink_copy(&session->env->to_backend, buf_span(&session->startup));
    session_move(session, session->is_cancel ? STATE_CANCEL : session->login ? STATE_PROVE : STATE_LOGIN);
    session->may_redial = secure_may_redial(session);
    if (!session->may_redial)
        secure_settled(session);
    settle(session);
}

void session_unreachable(struct session *session, const char *why)
{
    char message[256];
    snprintf(message, sizeof message, "cannot connect to the server: %s", why);
    session_fatal(session, "08006", message, NULL);
}

/* ---- events ---- */

void session_feed(struct session *session, enum side from, struct span bytes)
{
    if (session->state == STATE_CLOSING)
        return;
    session->borrowed = true;
    if (from == SIDE_BACKEND)
        session->is_answered = true;
    (from == SIDE_FRONTEND ? intake_frontend : intake_backend)(session, bytes);
    session->borrowed = false;
    settle(session);
}

/* ---- questions ---- */

bool session_makes_wait(const struct session *session)
{
    return session->state == STATE_LOOK_UP || session->state == STATE_CONNECT || session->state == STATE_PROVE ||
           session->may_redial;
}

enum session_next session_next(const struct session *session)
{
    switch (session->state) {
    case STATE_CLOSING: return SESSION_CLOSE;
    case STATE_SECURE: return SESSION_SECURE;
    case STATE_LOOK_UP: return SESSION_LOOK_UP;
    case STATE_CONNECT: return SESSION_CONNECT;
    default: return SESSION_GO;
    }
}

struct session_target session_target(const struct session *session)
{
    return (struct session_target){.conf = session->conf,
                                   .database = session->database,
                                   .host_index = session->host_index,
                                   .address = session->server,
                                   .is_cancel = session->is_cancel,
                                   .tls = session->redial};
}

bool session_reads(const struct session *session, enum side side)
{
    if (session->state == STATE_CLOSING)
        return false;
    if (side == SIDE_BACKEND)
        return session->state >= STATE_PROVE;
    return !session_makes_wait(session) && session->state != STATE_CANCEL && !session->holding &&
           session->owed.count < PENDING_MAX;
}

bool session_is_up(const struct session *session)
{
    return session->state == STATE_UP;
}

bool session_is_idle(const struct session *session)
{
    return session->state == STATE_STARTUP || session->state == STATE_SECURE ||
           (session->state == STATE_UP && session->status == 'I' && session->owed.count == 0 && !session->unsynced &&
            !session->holding);
}

bool session_is_owed(const struct session *session)
{
    if (session->state == STATE_UP)
        return !session_is_idle(session);
    if (session->is_cancel)
        return session->state == STATE_CONNECT;
    bool is_on_its_way =
        session->state == STATE_CONNECT || session->state == STATE_PROVE || session->state == STATE_LOGIN;
    return is_on_its_way && session->holding;
}

bool session_may_send(const struct session *session)
{
    const struct tagging *tagging = session->tagging;
    /* Behind a group without its Sync nothing runs again: the Sync will not come. */
    bool may_run_again = tagging && (tagging->retry.possible || tagging->retry.closing) && !session->unsynced;
    return session->state != STATE_UP || session->holding || may_run_again;
}
