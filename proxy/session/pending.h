/* pending.h - the queue of expected replies: one entry for each message that the server will answer.
 *
 * An entry says what it answers, what is done with the reply, and what to undo when its group fails; the queue must not
 * know how. It keeps pipelines straight: the head is what the next reply belongs to. */
#ifndef PENDING_H
#define PENDING_H

#include "../protocol/bytes.h"

enum pending_kind {
    PENDING_STARTUP,
    PENDING_PARSE,
    PENDING_BIND,
    PENDING_CLOSE,
    PENDING_DESCRIBE_STATEMENT,
    PENDING_DESCRIBE_PORTAL,
    PENDING_EXECUTE,
    PENDING_SYNC,
    PENDING_QUERY,
    PENDING_FUNCTION,
    PENDING_COPY_END, /* the client ended a COPY that may not have begun: no reply of its own */
    PENDING_KINDS
};

enum pending_role {
    ROLE_CLIENT,    /* the client's own: the reply goes to it */
    ROLE_SWALLOW,   /* ours, nothing to learn */
    ROLE_CONTEXT,   /* ours: a side query for the session's context ... */
    ROLE_FACTS,     /* ... for the catalog's facts ... */
    ROLE_DESCRIBE,  /* ... the description of the client's statement ... */
    ROLE_PROBE,     /* ... or of a text that the facts want described: the server may refuse it */
    ROLE_SIDE_END,  /* ours: the last reply of the side queries */
    ROLE_SHAPE,     /* ours: the Parse of a page's text */
    ROLE_NAMES,     /* ours: the description of the client's statement, which the page is to show as its own */
    ROLE_PAGE,      /* the Bind of a page: the reply is the client's BindComplete, unless it has had it */
    ROLE_GUARD,     /* ours: the guard of a page */
    ROLE_ASIDE,     /* ours: around a total, where an error only empties it ... */
    ROLE_TOTAL,     /* ... the Execute that brings it ... */
    ROLE_TOTAL_END, /* ... and the last Sync */
    ROLE_REFUSE,    /* ours: a Parse that fails in the place of a refused message */
    ROLE_DISCARD    /* a Sync whose ReadyForQuery the client has no use for */
};

struct follow; /* what else hangs on an entry; owned by whoever fills it */

struct pending {
    uint8_t kind; /* enum pending_kind */
    uint8_t role; /* enum pending_role */
    bool unnamed; /* PARSE: of the unnamed statement */
    bool failed;  /* QUERY: the server has said ErrorResponse */
    struct follow *follow;
};

#define PENDING_MAX 8192 /* the frontend is not read beyond it: far above what a server can leave unflushed */

struct pending_queue {
    struct pending *ring;
    uint32_t cap; /* a power of two, or 0 */
    uint32_t first;
    uint32_t count;
    uint32_t readies; /* entries that ReadyForQuery answers */
};

void pending_fini(struct pending_queue *queue); /* entries must be gone */
/* A new last entry, or NULL when out of memory. Valid until the next push. */
struct pending *pending_push(struct pending_queue *queue, enum pending_kind kind, enum pending_role role) MUST_USE;
struct pending *pending_at(const struct pending_queue *queue, uint32_t i); /* 0 is the head */
struct pending *pending_head(const struct pending_queue *queue);           /* NULL when empty */
void pending_pop(struct pending_queue *queue);                             /* the head; its follow must be gone */
void pending_remove(struct pending_queue *queue, uint32_t i);
/* Whether the kind is answered by ReadyForQuery. */
bool pending_ends_group(enum pending_kind kind);
void pending_shrink(struct pending_queue *queue); /* gives memory back when empty */

#endif
