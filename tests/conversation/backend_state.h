/* backend_state.h - what the small server keeps: statements, portals, the transaction, replies to be sent.
 *
 * Shared by the files that it is made of; tests see backend.h. */
#ifndef BACKEND_STATE_H
#define BACKEND_STATE_H

#include "../../proxy/protocol/wire.h"
#include "answer.h"
#include "backend.h"

#define MAX_NAMED 12

struct prepared {
    bool is_used;
    char name[64];
    struct answer answer;
};

struct cursor_portal {
    bool is_used;
    char name[64];
    struct answer answer; /* a copy of the statement's; the text is its own */
    uint16_t formats[ANSWER_MAX_COLUMNS];
    struct buf rows; /* DataRow messages that are still to be fetched */
    size_t left;
    const char *fails; /* SQLSTATE behind the rows */
    bool is_done;
};

enum copying { COPY_NOT, COPY_IN, COPY_BOTH };

struct backend {
    struct backend_setup setup;
    struct buf in, made, sent; /* made: not flushed yet */
    struct buf startup;
    bool is_up, is_closed, is_tls;
    bool in_block, has_failed, skips;
    bool is_unsynced;
    enum copying copying;
    bool copies_simply; /* for a simple Query */
    size_t copied;
    struct prepared prepared[MAX_NAMED];
    struct cursor_portal portal[MAX_NAMED];
};

/* ---- backend_state.c ---- */

void server_drop_prepared(struct prepared *prepared);
void server_drop_portal(struct cursor_portal *portal);
void server_drop_all_portals(struct backend *backend);
void server_drop_all_prepared(struct backend *backend, bool with_unnamed);
/* By name; NULL when there is none. */
struct prepared *server_find_prepared(struct backend *backend, struct span name);
struct cursor_portal *server_find_portal(struct backend *backend, struct span name);
/* A place for a new one; the last is taken when all are in use. */
struct prepared *server_new_prepared(struct backend *backend, struct span name);
struct cursor_portal *server_new_portal(struct backend *backend, struct span name);
/* What was made is sent. */
void server_flush(struct backend *backend);
/* ErrorResponse: the transaction fails, and messages are skipped up to Sync. position 0: none. */
void server_raise(struct backend *backend, const char *sqlstate, int position);
/* ReadyForQuery. */
void server_ready(struct backend *backend);
/* Raises the fault that this message of this statement is to meet, if any. */
bool server_meets_fault(struct backend *backend, char message, const char *sql);

/* ---- backend_run.c ---- */

/* Whether it runs in a failed block, too, or there is none. */
bool server_may_run(const struct backend *backend, const struct answer *answer);
/* Execute. */
void server_run(struct backend *backend, struct cursor_portal *portal, int32_t max_rows);
/* RowDescription or NoData; formats NULL: text. ParameterDescription. */
void server_put_columns(struct backend *backend, const struct answer *answer, const uint16_t *formats);
void server_put_params(struct backend *backend, const struct answer *answer);

#endif
