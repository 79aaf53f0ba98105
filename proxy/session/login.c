/* login.c - from the first packet to the connection: cancel requests, startup parameters.
 *
 * It decides where a session goes and takes our variables out of its parameters; it must not know what the server will
 * answer, nor who must prove what (authenticate.c). */
#include "internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "authenticate.h"

static void copy_name(char *to, size_t size, struct span from)
{
    snprintf(to, size, "%.*s", (int)(from.len < size ? from.len : size - 1), from.ptr ? (const char *)from.ptr : "");
}

static void connect_to(struct session *session, const struct conf_database *database, int host_index)
{
    session->database = database;
    session->host_index = host_index;
    if (session->startup.failed)
        session_nomem(session);
    else
        session_move(session, STATE_CONNECT);
}

/* The key was made by the server and relayed, so the request goes to that server as it is, by the session's own
 * settings and encrypted if the session is; an unknown one goes nowhere. */
static void cancel(struct session *session, struct span packet, struct span key)
{
    struct cancel_route route;
    if (!cancel_map_find(session->env->cancels, key, &route)) {
        log_stranger(LOG_OF_CANCEL, LOG_INFO,
                     "C-%llu: (nodb)/(nouser)@%s closing because: cancel request with an unknown key",
                     (unsigned long long)session->id, session->peer);
        session_move(session, STATE_CLOSING);
        return;
    }
    stats_add(session->env->stats, STATS_CANCELS);
    session->is_cancel = true;
    session->redial = route.is_tls ? TARGET_WITH_TLS : TARGET_WITHOUT_TLS;
    session->server = route.address;
    conf_unref(session->conf);
    session->conf = route.conf;
    buf_put_span(&session->startup, packet);
    connect_to(session, route.database, route.host_index);
}

/* "database", and whatever the server reads as true; a value that it cannot read is an error there. It takes any
 * beginning of a word that tells it from the others. */
static bool asks_for_replication(struct span value)
{
    static const struct {
        const char *word;
        size_t least;
    } no[] = {{"false", 1}, {"off", 2}, {"no", 1}, {"0", 1}};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (value.len >= no[i].least && value.len <= strlen(no[i].word) &&
            strncasecmp((const char *)value.ptr, no[i].word, value.len) == 0)
            return false;
    return value.len > 0;
}

static bool enter_census(struct session *session, enum census_kind kind, const char *name, int max, const char *what,
                         struct census_entry **entry)
{
    char message[160];
    bool is_out_of_memory;
    *entry = census_enter(session->env->census, kind, name, max, &is_out_of_memory);
    if (*entry)
        return true;
    snprintf(message, sizeof message, "no more connections allowed %s", what);
    if (is_out_of_memory)
        session_nomem(session);
    else
        session_fatal(session, "53300", message, NULL);
    return false;
}

/* The limits in force now, not those of the snapshot that the session keeps: a reload that lowers them counts for the
 * next log-in. A database is the one that clients ask for, so those that the line for * serves are counted apart. */
bool login_is_admitted(struct session *session)
{
    const struct conf *conf = session->env->conf;
    if (!session->env->census)
        return true;
    return enter_census(session, CENSUS_DATABASE, session->dbname, conf->max_db_client_connections,
                        "for this database (max_db_client_connections)", &session->as_database) &&
           enter_census(session, CENSUS_USER, session->user, conf->max_user_client_connections,
                        "for this user (max_user_client_connections)", &session->as_user);
}

static void open_session(struct session *session, const struct startup *startup)
{
    struct span user = startup_find(startup, "user");
    struct span dbname = startup_find(startup, "database");
    copy_name(session->user, sizeof session->user, user);
    copy_name(session->dbname, sizeof session->dbname, dbname.len ? dbname : user);
    session->opaque = asks_for_replication(startup_find(startup, "replication"));
    if (!secure_admits(session, user))
        return;
    const struct conf_database *database = conf_find_database(session->conf, session->dbname);
    if (!database) {
        session_fatal(session, "3D000", "no such database in the proxy's configuration",
                      "Add it, or a line for *, to [databases].");
        return;
    }
    if (!login_is_admitted(session))
        return;
    const char *other_database = database->dbname;
    if (!other_database && database->user && dbname.len == 0)
        other_database = session->dbname; /* the server would take the other user's name */
    bool changed;
    if (!startup_rewrite(startup, "pgseek.", other_database, database->user, setting_startup, session,
                         &session->startup, &changed)) {
        if (session->state != STATE_CLOSING)
            session_nomem(session);
        return;
    }
    char tls[SECURE_TEXT];
    if (session->conf->log_connections)
        log_stranger(LOG_OF_ATTEMPT, LOG_INFO, "C-%llu: %s/%s@%s login attempt: db=%s user=%s tls=%s",
                     (unsigned long long)session->id, session->dbname, session->user, session->peer, session->dbname,
                     session->user, secure_text(session, SIDE_FRONTEND, tls));
    session->database = database;
    session->host_index = -1;
    authenticate(session, startup);
}

void login_packet(struct session *session, struct span packet, bool more_behind)
{
    struct startup startup;
    startup_read(packet, &startup);
    switch (startup.kind) {
    case STARTUP_SSL:
    case STARTUP_GSSENC: secure_asked(session, startup.kind, more_behind); return;
    case STARTUP_CANCEL: cancel(session, packet, startup.cancel); return;
    case STARTUP_SESSION: open_session(session, &startup); return;
    case STARTUP_UNSUPPORTED:
        session_fatal(session, "0A000",
                      "unsupported frontend protocol: the proxy supports 3.0 and later minor versions", NULL);
        return;
    case STARTUP_MALFORMED: session_violation(session, SIDE_FRONTEND, "invalid startup packet"); return;
    }
}
