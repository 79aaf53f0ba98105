/* pair_internal.h - a pair from inside: what pair.c, which moves its bytes, and pairs.c, which begins and ends it,
 * share.
 *
 * Nobody else may include it. */
#ifndef PAIR_INTERNAL_H
#define PAIR_INTERNAL_H

#include "pair.h"

/* How long a client may take to read its last message. */
#define PAIR_LINGER_MS 5000

/* How long what a client that is gone has said may wait here for its turn. */
#define PAIR_LEGACY_MS 10000

#define PAIR_SHUTDOWN_SQLSTATE "57P01"
#define PAIR_SHUTDOWN_MESSAGE "terminating connection due to administrator command"

struct pair {
    struct link front; /* to the client */
    struct link back;  /* to the server */
    struct pair_env *env;
    struct session *session;
    struct snapshot *snapshot; /* until logged in, then NULL */
    struct upstream *upstream; /* while connecting */
    struct lookup *lookup;     /* while the client's secret is asked for */
    struct pair *next, *prev;
    struct pair_list *list;
    uint64_t deadline_ms; /* of the log-in, of what a client that is gone has said, or of the last words; 0: none */
    bool is_refused;      /* above max_client_conn */
    bool is_cancel;       /* carries a cancel request */
    bool is_half_closed;  /* the client sends no more but is owed answers */
    bool is_heard;        /* the client has sent something */
    bool is_securing;     /* the client's TLS handshake is under way */
};

void pair_enlist(struct pair *pair, struct pair_list *list);
/* After every call of a session function: sends, then does what the session says. */
void pair_settle(struct pair *pair);
/* The client has left: ends the session. */
void pair_leave(struct pair *pair);
/* Closes both links at once. */
void pair_cut_off(struct pair *pair);
void pair_on_event(struct link *link, unsigned events);
void pair_on_link_closed(struct link *link);

#endif
