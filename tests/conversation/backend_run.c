/* backend_run.c - what the small server does when a portal is executed, and how it describes one. */
#include "backend_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- running ---- */

bool server_may_run(const struct backend *backend, const struct answer *answer)
{
    return !backend->has_failed || answer->kind == ANSWER_ROLLBACK || answer->kind == ANSWER_COMMIT ||
           answer->kind == ANSWER_ROLLBACK_TO;
}

static void end_block(struct backend *backend)
{
    backend->in_block = backend->has_failed = false;
    server_drop_all_portals(backend);
}

static void start_copy_in(struct backend *backend, const struct answer *answer)
{
    static const uint8_t body[] = {0, 0, 1, 0, 0};
    bool is_both = answer->kind == ANSWER_COPY_BOTH;
    size_t at = wire_open(&backend->made, is_both ? 'W' : 'G');
    buf_put(&backend->made, body, sizeof body);
    wire_close(&backend->made, at);
    if (is_both) {
        at = wire_open(&backend->made, 'd');
        buf_put_text(&backend->made, "wal");
        wire_close(&backend->made, at);
    }
    backend->copying = is_both ? COPY_BOTH : COPY_IN;
    backend->copied = 0;
    server_flush(backend);
}

static void copy_out(struct backend *backend)
{
    static const uint8_t body[] = {0, 0, 1, 0, 0};
    char tag[32];
    size_t at = wire_open(&backend->made, 'H');
    buf_put(&backend->made, body, sizeof body);
    wire_close(&backend->made, at);
    for (int i = 1; i <= backend->setup.rows; i++) {
        at = wire_open(&backend->made, 'd');
        buf_put_format(&backend->made, "b%d\n", i);
        wire_close(&backend->made, at);
    }
    wire_put_empty(&backend->made, 'c');
    snprintf(tag, sizeof tag, "COPY %d", backend->setup.rows);
    wire_put_command(&backend->made, tag);
}

/* Takes rows off a portal; the reply at their end. */
static void fetch(struct backend *backend, struct cursor_portal *portal, int32_t max_rows)
{
    char tag[32];
    size_t count = 0;
    size_t wanted = max_rows > 0 ? (size_t)max_rows : portal->left;
    for (; count < wanted && portal->left > 0; count++, portal->left--) {
        size_t len = (size_t)get_u32(portal->rows.ptr + 1) + 1;
        buf_put(&backend->made, portal->rows.ptr, len);
        buf_consume(&portal->rows, len);
    }
    if (max_rows > 0 && count == wanted) {
        wire_put_empty(&backend->made, 's');
        return;
    }
    if (portal->fails) {
        server_raise(backend, portal->fails, 0);
        return;
    }
    snprintf(tag, sizeof tag, "SELECT %zu", count);
    wire_put_command(&backend->made, tag);
}

/* A command: what it does, and its tag. */
static void run_command(struct backend *backend, const struct answer *answer)
{
    const char *tag = answer->tag;
    if (answer->kind == ANSWER_BEGIN)
        backend->in_block = true;
    if (answer->kind == ANSWER_ROLLBACK_TO)
        backend->has_failed = false;
    if (answer->kind == ANSWER_COMMIT && backend->has_failed)
        tag = "ROLLBACK";
    if (answer->kind == ANSWER_COMMIT || answer->kind == ANSWER_ROLLBACK)
        end_block(backend);
    if (answer->kind == ANSWER_DEALLOCATE && answer->name[0])
        server_drop_prepared(server_find_prepared(backend, span_cstr(answer->name)));
    else if (answer->kind == ANSWER_DEALLOCATE || answer->kind == ANSWER_DISCARD)
        server_drop_all_prepared(backend, false);
    wire_put_command(&backend->made, tag);
}

void server_run(struct backend *backend, struct cursor_portal *portal, int32_t max_rows)
{
    struct answer answer = portal->answer; /* the portal may go with its transaction */
    switch (answer.kind) {
    case ANSWER_EMPTY: wire_put_empty(&backend->made, 'I'); return;
    case ANSWER_ROWS: fetch(backend, portal, max_rows); return;
    case ANSWER_COPY_IN:
    case ANSWER_COPY_BOTH: start_copy_in(backend, &answer); return;
    case ANSWER_COPY_OUT: copy_out(backend); return;
    default: run_command(backend, &answer);
    }
}

/* ---- descriptions ---- */

void server_put_columns(struct backend *backend, const struct answer *answer, const uint16_t *formats)
{
    if (answer->kind != ANSWER_ROWS) {
        wire_put_empty(&backend->made, 'n');
        return;
    }
    size_t at = wire_open(&backend->made, 'T');
    buf_put_u16(&backend->made, (uint16_t)answer->ncolumns);
    for (size_t i = 0; i < answer->ncolumns; i++) {
        const struct answer_column *column = &answer->column[i];
        buf_put_cstr(&backend->made, column->name);
        buf_put_u32(&backend->made, column->table_oid);
        buf_put_u16(&backend->made, column->attnum);
        buf_put_u32(&backend->made, column->type_oid);
        buf_put_u16(&backend->made, column->type_len);
        buf_put_i32(&backend->made, -1);
        buf_put_u16(&backend->made, formats ? formats[i] : 0);
    }
    wire_close(&backend->made, at);
}

void server_put_params(struct backend *backend, const struct answer *answer)
{
    size_t at = wire_open(&backend->made, 't');
    buf_put_u16(&backend->made, (uint16_t)answer->nparams);
    for (size_t i = 0; i < answer->nparams; i++)
        buf_put_u32(&backend->made, answer->param_oid[i]);
    wire_close(&backend->made, at);
}
