/* backend.h - a small server without sockets: bytes of a frontend in, the replies of PostgreSQL out.
 *
 * It keeps statements, portals and the transaction as the real one does and answers from a table of rows; what a text
 * means is answer.c's. It must not know that a proxy exists, except that it can answer the proxy's own statements. */
#ifndef BACKEND_H
#define BACKEND_H

#include "../../proxy/protocol/bytes.h"

/* An error that is raised where a statement's text contains `where`. */
struct backend_fault {
    const char *where;
    char on;              /* the message that fails: P, B, D or E */
    const char *sqlstate; /* of the ErrorResponse ... */
    int position;         /* ... and its field P; 0: none */
    int skip;             /* so many of these messages pass before */
    int times;            /* 0: each time */
};

#define BACKEND_MAX_FAULTS 4

struct backend_setup {
    int rows;                                        /* of the table posts: ids 1 to rows */
    struct backend_fault faults[BACKEND_MAX_FAULTS]; /* up to the first without `where` */
    bool is_prompt; /* sends every reply at once; else as the real one, at Flush, Sync, errors and simple queries */
    const char *refuses_plain; /* SQLSTATE of what it says to a log-in in clear text; NULL: takes it */
    const char *refuses_tls;
};

struct backend;
struct backend *backend_new(const struct backend_setup *setup);
void backend_free(struct backend *backend);
/* How its connection was made: before anything is said. */
void backend_encrypt(struct backend *backend, bool is_tls);

/* Gives an empty buffer memory that no test can make fail. */
void backend_reserve(struct buf *buf, size_t cap);

/* Bytes from the frontend, cut anywhere. */
void backend_take(struct backend *backend, struct span bytes);
/* What it has sent and nobody has taken: the caller consumes it. */
struct buf *backend_sent(struct backend *backend);
/* Nothing is owed, no transaction is open, every message was whole. */
bool backend_is_idle(const struct backend *backend);
/* The frontend asked for the end, or for a cancel. */
bool backend_is_closed(const struct backend *backend);
/* The startup or cancel packet, whole. */
struct span backend_startup(const struct backend *backend);

#endif
