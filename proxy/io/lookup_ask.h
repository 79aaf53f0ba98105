/* lookup_ask.h - auth_query: asks a server for a user's SCRAM secret, as auth_user, over connections of its own.
 *
 * It knows libpq, and blocks; it must not know loops or sessions. Of what a client has said, the user's name reaches
 * the server as a bound value and the database's name as that of the database, and nothing else does.
 *
 * It blocks, in a thread of the pool, since libpq does: it looks names up, reads files, and computes as many rounds of
 * SCRAM as a server cares to ask for. On a loop each of these would be a pause for everybody. */
#ifndef LOOKUP_ASK_H
#define LOOKUP_ASK_H

#include "../auth/secret.h"

struct conf;
struct conf_database;
/* A connection that has answered one question, and may be asked another. One thread at a time. */
struct lookup_conn;

struct lookup_question {
    const struct conf *conf;
    const struct conf_database *database; /* its hosts are tried in order */
    const char *user;
    const char *dbname; /* where auth_dbname does not say another */
    int bell;           /* readable when nobody waits for the answer any more; -1: nobody will know */
};

struct lookup_answer {
    bool has_secret;
    struct secret secret;
    const char *none;          /* why there is no secret, though the server has answered; static */
    struct secret_shape usual; /* of the secrets that this server makes; 0 iterations: it does not say */
    char failed[320];          /* why there is no answer; "" when there is one */
};

/* Each host may take server_connect_timeout to be reached, and whatever the system's name look-up takes beside.
 *
 * *conn is a connection that fits the question, or NULL. It is asked first; whatever else than an answer comes of it is
 * found out anew, as if it had not been there. Then *conn is one that is worth keeping, or NULL: nothing of the last
 * question is left in its session. */
void lookup_ask(const struct lookup_question *question, struct lookup_conn **conn, struct lookup_answer *answer);

/* Whether it leads where a new connection for the question would: the same settings, line and database. */
bool lookup_conn_fits(const struct lookup_conn *conn, const struct lookup_question *question) MUST_USE;
/* Never waits. NULL is allowed. */
void lookup_conn_close(struct lookup_conn *conn);

#endif
