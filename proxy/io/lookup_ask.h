/* lookup_ask.h - auth_query: asks a server for a user's SCRAM secret, as auth_user, over a connection of its own.
 *
 * It knows libpq, and blocks; it must not know loops or sessions. Of what a client has said, the user's name reaches
 * the server as a bound value and the database's name as that of the database, and nothing else does. */
#ifndef LOOKUP_ASK_H
#define LOOKUP_ASK_H

#include <stdatomic.h>

#include "../auth/secret.h"

struct conf;
struct conf_database;

struct lookup_question {
    const struct conf *conf;
    const struct conf_database *database; /* its hosts are tried in order */
    const char *user;
    const char *dbname;         /* where auth_dbname does not say another */
    _Atomic bool *is_abandoned; /* set by others: nobody waits for the answer */
};

struct lookup_answer {
    bool has_secret;
    struct secret secret;
    const char *none; /* why there is no secret, though the server has answered; static */
    char failed[320]; /* why there is no answer; "" when there is one */
};

/* Each host may take server_connect_timeout to be reached, and whatever the system's name look-up takes beside. */
void lookup_ask(const struct lookup_question *question, struct lookup_answer *answer);

#endif
