/* backend.c - the messages that the small server is sent, and the order of its replies. */
#include "backend_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- extended messages ---- */

static void take_parse(struct backend *backend, struct span body)
{
    struct wire_parse parse;
    struct answer answer;
    uint32_t oids[ANSWER_MAX_PARAMS];
    if (!wire_read_parse(body, &parse) || parse.noids > ANSWER_MAX_PARAMS) {
        server_raise(backend, "08P01", 0);
        return;
    }
    for (size_t i = 0; i < parse.noids; i++)
        oids[i] = get_u32(parse.oids + i * 4);
    if (parse.name.len == 0)
        server_drop_prepared(server_find_prepared(backend, parse.name));
    answer_read(&answer, parse.sql, oids, parse.noids);
    const char *sqlstate = answer.kind == ANSWER_ERROR ? answer.sqlstate : NULL;
    if (!server_may_run(backend, &answer) && !(sqlstate && strcmp(sqlstate, "42601") == 0))
        sqlstate = "25P02";
    else if (!sqlstate && server_find_prepared(backend, parse.name))
        sqlstate = "42P05";
    if (sqlstate)
        server_raise(backend, sqlstate, 0);
    if (sqlstate || server_meets_fault(backend, 'P', answer.sql)) {
        answer_fini(&answer);
        return;
    }
    struct prepared *prepared = server_new_prepared(backend, parse.name);
    prepared->answer = answer;
    prepared->is_used = true;
    wire_put_empty(&backend->made, '1');
}

/* Why a value cannot be an int8, or NULL. */
static const char *no_int8(const struct wire_param *param)
{
    if (param->len < 0)
        return NULL;
    if (param->format == 1)
        return param->len == 8 ? NULL : "08P01";
    size_t digits = 0;
    for (int32_t i = 0; i < param->len; i++)
        digits +=
            (param->data[i] >= '0' && param->data[i] <= '9') || (i == 0 && param->len > 1 && param->data[i] == '-');
    return digits && digits == (size_t)param->len ? NULL : "22P02";
}

/* Why a Bind does not fit its statement, or NULL. */
static const char *misfit(const struct wire_bind *bind, const struct answer *answer, struct wire_param *params)
{
    if (bind->nparams != answer->nparams || !wire_bind_params(bind, params))
        return "08P01";
    if (bind->nresults > 1 && bind->nresults != answer->ncolumns)
        return "08P01";
    for (size_t i = 0; i < bind->nparams; i++)
        if (params[i].format != 0 && params[i].format != 1)
            return "22023";
    for (size_t i = 0; i < bind->nparams; i++)
        if (answer->param_oid[i] == 20 && no_int8(&params[i]))
            return no_int8(&params[i]);
    return NULL;
}

static void fill_portal(struct backend *backend, struct cursor_portal *portal, const struct wire_bind *bind,
                        const struct wire_param *params)
{
    struct answer_value values[ANSWER_MAX_PARAMS];
    for (size_t i = 0; i < bind->nparams; i++)
        values[i] = (struct answer_value){params[i].format, params[i].len, params[i].data};
    for (size_t i = 0; i < ANSWER_MAX_COLUMNS && bind->nresults; i++)
        portal->formats[i] = get_u16(bind->results + 2 * (bind->nresults == 1 || i >= bind->nresults ? 0 : i));
    portal->fails =
        answer_rows(&portal->answer, values, portal->formats, backend->setup.rows, &portal->rows, &portal->left);
}

static void take_bind(struct backend *backend, struct span body)
{
    struct wire_bind bind;
    struct wire_param params[ANSWER_MAX_PARAMS];
    if (!wire_read_bind(body, &bind) || bind.nparams > ANSWER_MAX_PARAMS) {
        server_raise(backend, "08P01", 0);
        return;
    }
    struct prepared *prepared = server_find_prepared(backend, bind.statement);
    const char *sqlstate = prepared ? misfit(&bind, &prepared->answer, params) : "26000";
    if (prepared && !server_may_run(backend, &prepared->answer))
        sqlstate = "25P02";
    if (!sqlstate && bind.portal.len && server_find_portal(backend, bind.portal))
        sqlstate = "42P03";
    if (sqlstate) {
        server_raise(backend, sqlstate, 0);
        return;
    }
    if (server_meets_fault(backend, 'B', prepared->answer.sql))
        return;
    server_drop_portal(server_find_portal(backend, bind.portal));
    struct cursor_portal *portal = server_new_portal(backend, bind.portal);
    portal->is_used = true;
    portal->answer = prepared->answer;
    portal->answer.sql = strdup(prepared->answer.sql);
    fill_portal(backend, portal, &bind, params);
    wire_put_empty(&backend->made, '2');
}

static void take_describe(struct backend *backend, struct span body)
{
    struct wire_target target;
    if (!wire_read_target(body, &target)) {
        server_raise(backend, "08P01", 0);
        return;
    }
    struct prepared *prepared = target.kind == 'S' ? server_find_prepared(backend, target.name) : NULL;
    struct cursor_portal *portal = target.kind == 'P' ? server_find_portal(backend, target.name) : NULL;
    const struct answer *answer = prepared ? &prepared->answer : portal ? &portal->answer : NULL;
    if (!answer) {
        server_raise(backend, target.kind == 'S' ? "26000" : "34000", 0);
        return;
    }
    if (backend->has_failed && answer->kind == ANSWER_ROWS) {
        server_raise(backend, "25P02", 0);
        return;
    }
    if (server_meets_fault(backend, 'D', answer->sql))
        return;
    if (prepared)
        server_put_params(backend, answer);
    server_put_columns(backend, answer, portal ? portal->formats : NULL);
}

static void take_execute(struct backend *backend, struct span body)
{
    struct wire_execute execute;
    struct cursor_portal *portal =
        wire_read_execute(body, &execute) ? server_find_portal(backend, execute.portal) : NULL;
    if (!portal) {
        server_raise(backend, "34000", 0);
        return;
    }
    if (!server_may_run(backend, &portal->answer)) {
        server_raise(backend, "25P02", 0);
        return;
    }
    if (server_meets_fault(backend, 'E', portal->answer.sql))
        return;
    backend->copies_simply = false;
    server_run(backend, portal, execute.max_rows);
}

static void take_close(struct backend *backend, struct span body)
{
    struct wire_target target;
    if (!wire_read_target(body, &target)) {
        server_raise(backend, "08P01", 0);
        return;
    }
    if (target.kind == 'S')
        server_drop_prepared(server_find_prepared(backend, target.name));
    if (target.kind == 'P')
        server_drop_portal(server_find_portal(backend, target.name));
    wire_put_empty(&backend->made, '3');
}

/* ---- simple queries ---- */

/* One statement of a simple query; false when it failed. */
static bool run_simply(struct backend *backend, struct span sql)
{
    struct answer_value none[ANSWER_MAX_PARAMS] = {{0, -1, NULL}};
    struct cursor_portal portal = {.is_used = true};
    backend_reserve(&portal.rows, 4096);
    answer_read(&portal.answer, sql, NULL, 0);
    const char *sqlstate = portal.answer.kind == ANSWER_ERROR ? portal.answer.sqlstate : NULL;
    if (!server_may_run(backend, &portal.answer) && !(sqlstate && strcmp(sqlstate, "42601") == 0))
        sqlstate = "25P02";
    else if (!sqlstate && portal.answer.nparams > 0)
        sqlstate = "42P02";
    if (sqlstate)
        server_raise(backend, sqlstate, 0);
    bool ok = !sqlstate && !server_meets_fault(backend, 'E', portal.answer.sql);
    if (ok) {
        if (portal.answer.kind == ANSWER_ROWS)
            server_put_columns(backend, &portal.answer, NULL);
        portal.fails =
            answer_rows(&portal.answer, none, portal.formats, backend->setup.rows, &portal.rows, &portal.left);
        backend->copies_simply = true;
        server_run(backend, &portal, 0);
        ok = !backend->skips;
    }
    server_drop_portal(&portal);
    return ok;
}

static void take_query(struct backend *backend, struct span body)
{
    struct span sql;
    server_drop_prepared(server_find_prepared(backend, span_cstr("")));
    server_drop_portal(server_find_portal(backend, span_cstr("")));
    if (!wire_read_query(body, &sql)) {
        server_raise(backend, "08P01", 0);
        server_ready(backend);
        return;
    }
    bool ok = true;
    while (ok && !backend->copying) {
        const uint8_t *semicolon = sql.len ? memchr(sql.ptr, ';', sql.len) : NULL;
        size_t len = semicolon ? (size_t)(semicolon - sql.ptr) : sql.len;
        ok = run_simply(backend, span_of(sql.ptr, len));
        if (!semicolon || semicolon + 1 == sql.ptr + sql.len)
            break;
        sql = span_of(semicolon + 1, sql.len - len - 1);
    }
    if (!backend->copying)
        server_ready(backend);
}

static void take_function(struct backend *backend)
{
    size_t at = wire_open(&backend->made, 'V');
    buf_put_i32(&backend->made, -1);
    wire_close(&backend->made, at);
    server_ready(backend);
}

/* ---- COPY ---- */

static void end_copy(struct backend *backend, bool is_done)
{
    char tag[32];
    bool was_both = backend->copying == COPY_BOTH;
    backend->copying = COPY_NOT;
    if (is_done) {
        if (was_both)
            wire_put_empty(&backend->made, 'c');
        snprintf(tag, sizeof tag, "COPY %zu", backend->copied);
        wire_put_command(&backend->made, tag);
    } else {
        server_raise(backend, "57014", 0);
    }
    if (backend->copies_simply)
        server_ready(backend);
}

/* What comes while a COPY is read. */
static void take_copy(struct backend *backend, uint8_t type)
{
    if (type == 'd')
        backend->copied++;
    else if (type == 'c' || type == 'f')
        end_copy(backend, type == 'c');
    else if (type != 'S' && type != 'H') {
        server_raise(backend, "08P01", 0);
        if (backend->copies_simply)
            server_ready(backend);
    }
}

/* ---- the loop ---- */

static void take_message(struct backend *backend, uint8_t type, struct span body)
{
    if (backend->copying) {
        take_copy(backend, type);
        return;
    }
    backend->is_unsynced |= strchr("PBDEC", type) != NULL;
    if (backend->skips && type != 'S' && type != 'X')
        return;
    switch (type) {
    case 'P': take_parse(backend, body); break;
    case 'B': take_bind(backend, body); break;
    case 'D': take_describe(backend, body); break;
    case 'E': take_execute(backend, body); break;
    case 'C': take_close(backend, body); break;
    case 'Q': take_query(backend, body); break;
    case 'F': take_function(backend); break;
    case 'S': server_ready(backend); break;
    case 'H': server_flush(backend); break;
    case 'X': backend->is_closed = true; break;
    default: break; /* c, d and f behind a COPY that failed, and passwords */
    }
}

static void put_authentication(struct backend *backend, uint32_t code)
{
    size_t at = wire_open(&backend->made, 'R');
    buf_put_u32(&backend->made, code);
    wire_close(&backend->made, at);
}

static void welcome(struct backend *backend)
{
    put_authentication(backend, 0);
    wire_put_status(&backend->made, "client_encoding", "UTF8");
    wire_put_status(&backend->made, "standard_conforming_strings", "on");
    size_t at = wire_open(&backend->made, 'K');
    buf_put_u32(&backend->made, 4711);
    buf_put_u32(&backend->made, 0x01020304);
    wire_close(&backend->made, at);
    server_ready(backend);
    backend->is_up = true;
}

static void take_startup(struct backend *backend)
{
    uint32_t version = get_u32(backend->startup.ptr + 4);
    if (version == 80877102u) {
        backend->is_closed = true;
        return;
    }
    if (version > 196608) { /* NegotiateProtocolVersion */
        size_t at = wire_open(&backend->made, 'v');
        buf_put_u32(&backend->made, 196608);
        buf_put_u32(&backend->made, 0);
        wire_close(&backend->made, at);
    }
    const char *refused = backend->is_tls ? backend->setup.refuses_tls : backend->setup.refuses_plain;
    if (refused)
        wire_put_error(&backend->made, 'E', &(struct wire_error){"FATAL", refused, "no entry", NULL, NULL});
    else if (memmem(backend->startup.ptr, backend->startup.len, "secret", 6))
        put_authentication(backend, 3);
    else
        welcome(backend);
    server_flush(backend);
}

/* One message or packet off the front of what came; false when it is not whole. */
static bool take_one(struct backend *backend)
{
    struct buf *in = &backend->in;
    size_t head = backend->startup.len ? 1 : 0;
    if (in->len < head + 4 || in->len < head + get_u32(in->ptr + head))
        return false;
    size_t len = head + get_u32(in->ptr + head);
    if (len < head + 4) { /* no message: the real one closes, too */
        backend->is_closed = true;
        return false;
    }
    if (!head) {
        buf_put(&backend->startup, in->ptr, len);
        take_startup(backend);
    } else if (backend->is_up) {
        take_message(backend, in->ptr[0], span_of(in->ptr + WIRE_HEADER, len - WIRE_HEADER));
    } else if (in->ptr[0] == 'p') {
        welcome(backend);
    }
    buf_consume(in, len);
    return true;
}

void backend_take(struct backend *backend, struct span bytes)
{
    buf_put_span(&backend->in, bytes);
    while (!backend->is_closed && take_one(backend))
        if (backend->setup.is_prompt)
            server_flush(backend);
}
