/* kept.h - texts of ours that stay prepared on the server for as long as the client-named statement that they serve.
 *
 * A named statement is run many times, so its pages' texts and its guard are parsed once. It knows names and lifetimes
 * and must not know what a text says. Nothing is kept for unnamed statements: behind a pooler it would meet another
 * client. */
#ifndef KEPT_H
#define KEPT_H

#include "names.h"

struct planned;
struct planned_shape;
struct statement;
struct tagging;

struct kept {
    struct object object;
    struct planned *planned;        /* counted: whose text it is */
    struct planned_shape *shape;    /* counted; NULL: the guard */
    bool is_ready;                  /* the server has said ParseComplete */
    bool is_orphan;                 /* its statement is gone: to be closed on the server */
    struct kept *next_of_statement; /* counted */
    struct kept *next_of_session;   /* counted */
    char name[48];
};

/* The kept text of a statement, a shape's or (shape NULL) the guard's, made when there is none; borrowed. NULL when out
 * of memory. Texts that the plan has dropped become orphans. */
struct kept *kept_get(struct tagging *tagging, struct statement *statement, struct planned *planned,
                      struct planned_shape *shape);
/* The statement goes, or its plan is another one: what it kept is to be closed. */
void kept_orphan(struct kept **list);
/* The next orphan of the session, taken out of its list; the reference passes. NULL when there is none. */
struct kept *kept_next_orphan(struct tagging *tagging);
void kept_fini(struct tagging *tagging);

#endif
