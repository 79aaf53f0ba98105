/* session.h - one client's conversation with its server, from the first byte to the last.
 *
 * It is fed bytes and events and fills two sinks; it must not know sockets, loops or threads. So a whole conversation
 * runs in a test, at every split point. After each call of a session_* function that may make bytes, the owner sends
 * env->to_frontend and env->to_backend, clears them, then asks session_next(). */
#ifndef SESSION_H
#define SESSION_H

#include "../auth/secret.h"
#include "../protocol/address.h"
#include "../protocol/bytes.h"
#include "../protocol/channel.h"
#include "../protocol/sink.h"

struct conf;
struct conf_database;
struct keyring;
struct cancel_map;
struct census;
struct credentials;
struct plan_cache;
struct stats;
struct session;

enum side { SIDE_FRONTEND, SIDE_BACKEND };

/* What a worker lends to all its sessions. What new ones take lives until they have logged in, or ended. */
struct session_env {
    const struct conf *conf;               /* the snapshot that new sessions take */
    struct keyring *keyring;               /* seals and opens cursors; NULL until loaded */
    const struct credentials *credentials; /* decides about log-ins; NULL: every one is relayed */
    struct secret_shape found;             /* of the secret that auth_query has found last */
    bool has_tls;                          /* the client leg can be encrypted */
    struct plan_cache *plans;              /* this worker's; never shared */
    struct cancel_map *cancels;            /* all workers'; may be NULL */
    struct census *census;                 /* all workers'; NULL: clients are not counted by name */
    struct stats *stats;                   /* this worker's counters; may be NULL */
    struct sink to_frontend;               /* what the last call wants sent to the client ... */
    struct sink to_backend;                /* ... and to the server */
    int64_t (*now)(void *clock);           /* wall clock, in seconds since 1970 */
    void *clock;
};

/* What is to be done with the session after its sinks were sent. */
enum session_next {
    SESSION_GO,      /* keep reading where session_reads() says so */
    SESSION_SECURE,  /* begin TLS on the client's link, behind what was sent, then call session_secured() */
    SESSION_LOOK_UP, /* ask session_target()'s database for the secret of session_user(), then call session_secret() */
    SESSION_CONNECT, /* open the server link to session_target(), then call session_connected() or _unreachable() */
    SESSION_CLOSE    /* send what is left, then close both links */
};

/* Where the server is: hosts of a [databases] line in the order they are to be tried. */
struct session_target {
    const struct conf *conf;              /* what the session goes by, ... */
    const struct conf_database *database; /* ... and its line: hosts and ports */
    int host_index;                       /* >= 0: this host only (a cancel request, a second try); -1: try all */
    struct server_address address;        /* of that host: this one only; len 0: all that its name stands for */
    bool is_cancel;
    enum {
        TARGET_AS_CONFIGURED,
        TARGET_WITH_TLS,   /* the session to be cancelled has it, or the server has refused without (sslmode=allow) */
        TARGET_WITHOUT_TLS /* the other way round (sslmode=prefer); where TLS is required it still is */
    } tls;
};

/* Where a client comes from. */
struct session_peer {
    const char *name;    /* for the log: "127.0.0.1:53211", "unix"; copied */
    struct address from; /* the client's address ... */
    struct address to;   /* ... and the one that it has reached */
};

/* NULL when out of memory. */
struct session *session_new(struct session_env *env, const struct session_peer *peer, uint64_t id) MUST_USE;
void session_free(struct session *session);

/* Bytes that arrived from one side. The bytes need to live until the sinks were sent. */
void session_feed(struct session *session, enum side from, struct span bytes);

/* The client's first bytes are those of a TLS handshake, without an SSLRequest: whether they may be one. Where not, the
 * session has ended. Otherwise TLS begins with them. */
bool session_begins_tls(struct session *session);
/* The client's TLS handshake is over. */
void session_secured(struct session *session, const struct channel *channel);

/* What came of SESSION_LOOK_UP. */
struct session_looked_up {
    const struct secret *secret; /* copied; NULL: there is none */
    const char *none;            /* why (no such user, another kind of secret), for the log; static */
    const char *failed;          /* why it could not be asked for; NULL: it could */
    struct secret_shape usual;   /* of secrets that are made there now; 0 iterations: unknown */
};
void session_secret(struct session *session, const struct session_looked_up *answer);
/* The user and the database as the server is to know them. */
const char *session_user(const struct session *session);
const char *session_dbname(const struct session *session);

/* The server link is up, on hosts[host_index] of the target at this address (NULL: not known), encrypted if `channel`
 * is not NULL; or could not be made (`why` is for the client and the log). */
void session_connected(struct session *session, int host_index, const struct server_address *address,
                       const struct channel *channel);
void session_unreachable(struct session *session, const char *why);

/* One side has gone: `why` is for the log ("client closed the connection", "Connection reset by peer"). */
void session_lost(struct session *session, enum side side, const char *why);

/* The owner wants the session ended (shutdown, a time-out): the client is told with a FATAL of that SQLSTATE. */
void session_end(struct session *session, const char *sqlstate, const char *message);

enum session_next session_next(const struct session *session);
struct session_target session_target(const struct session *session);

/* Whether bytes of that side may be read now. False while a message is held. Asked after every call. */
bool session_reads(const struct session *session, enum side side);

/* The login is over (the server said ReadyForQuery once): login time-outs end here. */
bool session_is_up(const struct session *session);
/* Nothing is under way: no reply is owed and no transaction is open. */
bool session_is_idle(const struct session *session);
/* For a client that sends no more: whether it has something to come all the same, or asked for (a cancel request) ...
 */
bool session_is_owed(const struct session *session);
/* ... and whether some of what it said may still have to go to the server: it waits here, or may be run again. */
bool session_may_send(const struct session *session);

#endif
