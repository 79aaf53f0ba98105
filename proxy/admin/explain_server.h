/* explain_server.h - a database that answers what the parser asks, over a connection of libpq.
 *
 * It asks what a session would ask, and must not know what is done with the answers or how they are printed. */
#ifndef EXPLAIN_SERVER_H
#define EXPLAIN_SERVER_H

#include <libpq-fe.h>

#include "../../parser/pgseek.h"
#include "../protocol/bytes.h"

struct explain_server {
    PGconn *conn;
    PGresult *described;                   /* owns the names of ... */
    struct pgseek_description description; /* ... the statement that is explained */
};

enum explain_answer {
    EXPLAIN_ANSWERED,
    EXPLAIN_REFUSED, /* the server has said why: explain_server_error() */
    EXPLAIN_NOMEM
};

bool explain_server_connect(struct explain_server *server, const char *connection) MUST_USE;
void explain_server_fini(struct explain_server *server);
/* What the server said last. */
const char *explain_server_error(const struct explain_server *server);
bool explain_server_has_standard_strings(const struct explain_server *server);
/* Describes the statement; cursor_param is n of the $n that carries the cursor, or 0: it is declared as text. */
enum explain_answer explain_server_describe(struct explain_server *server, const char *sql, int cursor_param) MUST_USE;
/* One round of answers to what the facts ask for. */
enum explain_answer explain_server_answer(struct explain_server *server, struct pgseek_facts *facts) MUST_USE;

#endif
