/* backend.c - statements, portals, transactions and the order of replies of the small server. */
#include "backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../proxy/protocol/wire.h"
#include "answer.h"

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
    bool is_up, is_closed;
    bool in_block, has_failed, skips;
    bool is_unsynced;
    enum copying copying;
    bool copies_simply; /* for a simple Query */
    size_t copied;
    struct prepared prepared[MAX_NAMED];
    struct cursor_portal portal[MAX_NAMED];
};

/* ---- life ---- */

/* Memory of its own from the start: what a test lets fail are the allocations of the session. */
void backend_reserve(struct buf *buf, size_t cap)
{
    buf->ptr = malloc(cap);
    buf->cap = cap;
    if (!buf->ptr)
        abort();
}

struct backend *backend_new(const struct backend_setup *setup)
{
    struct backend *backend = calloc(1, sizeof *backend);
    if (!backend)
        abort();
    backend->setup = *setup;
    backend_reserve(&backend->in, 16384);
    backend_reserve(&backend->made, 16384);
    backend_reserve(&backend->sent, 16384);
    backend_reserve(&backend->startup, 512);
    return backend;
}

static void drop_prepared(struct prepared *prepared)
{
    if (prepared && prepared->is_used)
        answer_fini(&prepared->answer);
    if (prepared)
        prepared->is_used = false;
}

static void drop_portal(struct cursor_portal *portal)
{
    if (!portal || !portal->is_used)
        return;
    answer_fini(&portal->answer);
    buf_fini(&portal->rows);
    portal->is_used = false;
}

static void drop_all_portals(struct backend *backend)
{
    for (size_t i = 0; i < MAX_NAMED; i++)
        drop_portal(&backend->portal[i]);
}

/* All prepared statements, the unnamed one only when it is asked for. */
static void drop_all_prepared(struct backend *backend, bool with_unnamed)
{
    for (size_t i = 0; i < MAX_NAMED; i++)
        if (with_unnamed || backend->prepared[i].name[0])
            drop_prepared(&backend->prepared[i]);
}

void backend_free(struct backend *backend)
{
    drop_all_portals(backend);
    drop_all_prepared(backend, true);
    buf_fini(&backend->in);
    buf_fini(&backend->made);
    buf_fini(&backend->sent);
    buf_fini(&backend->startup);
    free(backend);
}

struct buf *backend_sent(struct backend *backend)
{
    return &backend->sent;
}

bool backend_is_idle(const struct backend *backend)
{
    return backend->is_up && !backend->in.len && !backend->in_block && !backend->is_unsynced && !backend->copying;
}

bool backend_is_closed(const struct backend *backend)
{
    return backend->is_closed;
}

struct span backend_startup(const struct backend *backend)
{
    return buf_span(&backend->startup);
}

/* ---- names ---- */

static bool has_name(const char *name, struct span wanted)
{
    return span_equal_cstr(wanted, name);
}

static struct prepared *find_prepared(struct backend *backend, struct span name)
{
    for (size_t i = 0; i < MAX_NAMED; i++)
        if (backend->prepared[i].is_used && has_name(backend->prepared[i].name, name))
            return &backend->prepared[i];
    return NULL;
}

static struct cursor_portal *find_portal(struct backend *backend, struct span name)
{
    for (size_t i = 0; i < MAX_NAMED; i++)
        if (backend->portal[i].is_used && has_name(backend->portal[i].name, name))
            return &backend->portal[i];
    return NULL;
}

static void copy_name(char to[64], struct span name)
{
    snprintf(to, 64, "%.*s", (int)name.len, (const char *)name.ptr);
}

static struct prepared *new_prepared(struct backend *backend, struct span name)
{
    struct prepared *prepared = backend->prepared;
    while (prepared->is_used && prepared + 1 < backend->prepared + MAX_NAMED)
        prepared++;
    drop_prepared(prepared);
    copy_name(prepared->name, name);
    return prepared;
}

static struct cursor_portal *new_portal(struct backend *backend, struct span name)
{
    struct cursor_portal *portal = backend->portal;
    while (portal->is_used && portal + 1 < backend->portal + MAX_NAMED)
        portal++;
    drop_portal(portal);
    memset(portal, 0, sizeof *portal);
    copy_name(portal->name, name);
    backend_reserve(&portal->rows, 4096);
    return portal;
}

/* ---- replies ---- */

static void flush(struct backend *backend)
{
    buf_put_span(&backend->sent, buf_span(&backend->made));
    buf_clear(&backend->made);
}

static void put_error(struct backend *backend, const char *sqlstate, int position)
{
    size_t at = wire_open(&backend->made, 'E');
    buf_put_cstr(&backend->made, "SERROR");
    buf_put_cstr(&backend->made, "VERROR");
    buf_put_format(&backend->made, "C%s", sqlstate);
    buf_put_u8(&backend->made, 0);
    buf_put_format(&backend->made, "Mthe server says %s", sqlstate);
    buf_put_u8(&backend->made, 0);
    if (position)
        buf_put_format(&backend->made, "P%d", position);
    if (position)
        buf_put_u8(&backend->made, 0);
    buf_put_u8(&backend->made, 0);
    wire_close(&backend->made, at);
    flush(backend);
}

/* The end of a transaction that a statement's error leaves behind. */
static void fail_transaction(struct backend *backend)
{
    backend->copying = COPY_NOT;
    backend->has_failed = backend->in_block;
    if (!backend->in_block)
        drop_all_portals(backend);
}

static void raise(struct backend *backend, const char *sqlstate, int position)
{
    put_error(backend, sqlstate, position);
    fail_transaction(backend);
    backend->skips = true;
}

static void ready(struct backend *backend)
{
    backend->is_unsynced = false;
    backend->skips = false;
    if (!backend->in_block)
        drop_all_portals(backend);
    wire_put_ready(&backend->made, backend->has_failed ? 'E' : backend->in_block ? 'T' : 'I');
    flush(backend);
}

/* The fault that this message of this statement meets, if any. */
static struct backend_fault *fault_on(struct backend *backend, char message, const char *sql)
{
    for (size_t i = 0; i < BACKEND_MAX_FAULTS && backend->setup.faults[i].where; i++) {
        struct backend_fault *fault = &backend->setup.faults[i];
        if (fault->on != message || !strstr(sql, fault->where))
            continue;
        if (fault->skip-- > 0)
            continue;
        fault->skip = 0;
        if (fault->times > 0 && --fault->times == 0)
            fault->on = 0;
        return fault;
    }
    return NULL;
}

static bool meets_fault(struct backend *backend, char message, const char *sql)
{
    const struct backend_fault *fault = fault_on(backend, message, sql);
    if (fault)
        raise(backend, fault->sqlstate, fault->position);
    return fault != NULL;
}

/* ---- running ---- */

static bool may_run(const struct backend *backend, const struct answer *answer)
{
    return !backend->has_failed || answer->kind == ANSWER_ROLLBACK || answer->kind == ANSWER_COMMIT ||
           answer->kind == ANSWER_ROLLBACK_TO;
}

static void end_block(struct backend *backend)
{
    backend->in_block = backend->has_failed = false;
    drop_all_portals(backend);
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
    flush(backend);
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
        raise(backend, portal->fails, 0);
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
        drop_prepared(find_prepared(backend, span_cstr(answer->name)));
    else if (answer->kind == ANSWER_DEALLOCATE || answer->kind == ANSWER_DISCARD)
        drop_all_prepared(backend, false);
    wire_put_command(&backend->made, tag);
}

static void run(struct backend *backend, struct cursor_portal *portal, int32_t max_rows)
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

static void put_columns(struct backend *backend, const struct answer *answer, const uint16_t *formats)
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

static void put_params(struct backend *backend, const struct answer *answer)
{
    size_t at = wire_open(&backend->made, 't');
    buf_put_u16(&backend->made, (uint16_t)answer->nparams);
    for (size_t i = 0; i < answer->nparams; i++)
        buf_put_u32(&backend->made, answer->param_oid[i]);
    wire_close(&backend->made, at);
}

/* ---- extended messages ---- */

static void take_parse(struct backend *backend, struct span body)
{
    struct wire_parse parse;
    struct answer answer;
    uint32_t oids[ANSWER_MAX_PARAMS];
    if (!wire_read_parse(body, &parse) || parse.noids > ANSWER_MAX_PARAMS) {
        raise(backend, "08P01", 0);
        return;
    }
    for (size_t i = 0; i < parse.noids; i++)
        oids[i] = get_u32(parse.oids + i * 4);
    if (parse.name.len == 0)
        drop_prepared(find_prepared(backend, parse.name));
    answer_read(&answer, parse.sql, oids, parse.noids);
    const char *sqlstate = answer.kind == ANSWER_ERROR ? answer.sqlstate : NULL;
    if (!may_run(backend, &answer) && !(sqlstate && strcmp(sqlstate, "42601") == 0))
        sqlstate = "25P02";
    else if (!sqlstate && find_prepared(backend, parse.name))
        sqlstate = "42P05";
    if (sqlstate)
        raise(backend, sqlstate, 0);
    if (sqlstate || meets_fault(backend, 'P', answer.sql)) {
        answer_fini(&answer);
        return;
    }
    struct prepared *prepared = new_prepared(backend, parse.name);
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
        raise(backend, "08P01", 0);
        return;
    }
    struct prepared *prepared = find_prepared(backend, bind.statement);
    const char *sqlstate = prepared ? misfit(&bind, &prepared->answer, params) : "26000";
    if (prepared && !may_run(backend, &prepared->answer))
        sqlstate = "25P02";
    if (!sqlstate && bind.portal.len && find_portal(backend, bind.portal))
        sqlstate = "42P03";
    if (sqlstate) {
        raise(backend, sqlstate, 0);
        return;
    }
    if (meets_fault(backend, 'B', prepared->answer.sql))
        return;
    drop_portal(find_portal(backend, bind.portal));
    struct cursor_portal *portal = new_portal(backend, bind.portal);
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
        raise(backend, "08P01", 0);
        return;
    }
    struct prepared *prepared = target.kind == 'S' ? find_prepared(backend, target.name) : NULL;
    struct cursor_portal *portal = target.kind == 'P' ? find_portal(backend, target.name) : NULL;
    const struct answer *answer = prepared ? &prepared->answer : portal ? &portal->answer : NULL;
    if (!answer) {
        raise(backend, target.kind == 'S' ? "26000" : "34000", 0);
        return;
    }
    if (backend->has_failed && answer->kind == ANSWER_ROWS) {
        raise(backend, "25P02", 0);
        return;
    }
    if (meets_fault(backend, 'D', answer->sql))
        return;
    if (prepared)
        put_params(backend, answer);
    put_columns(backend, answer, portal ? portal->formats : NULL);
}

static void take_execute(struct backend *backend, struct span body)
{
    struct wire_execute execute;
    struct cursor_portal *portal = wire_read_execute(body, &execute) ? find_portal(backend, execute.portal) : NULL;
    if (!portal) {
        raise(backend, "34000", 0);
        return;
    }
    if (!may_run(backend, &portal->answer)) {
        raise(backend, "25P02", 0);
        return;
    }
    if (meets_fault(backend, 'E', portal->answer.sql))
        return;
    backend->copies_simply = false;
    run(backend, portal, execute.max_rows);
}

static void take_close(struct backend *backend, struct span body)
{
    struct wire_target target;
    if (!wire_read_target(body, &target)) {
        raise(backend, "08P01", 0);
        return;
    }
    if (target.kind == 'S')
        drop_prepared(find_prepared(backend, target.name));
    if (target.kind == 'P')
        drop_portal(find_portal(backend, target.name));
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
    if (!may_run(backend, &portal.answer) && !(sqlstate && strcmp(sqlstate, "42601") == 0))
        sqlstate = "25P02";
    else if (!sqlstate && portal.answer.nparams > 0)
        sqlstate = "42P02";
    if (sqlstate)
        raise(backend, sqlstate, 0);
    bool ok = !sqlstate && !meets_fault(backend, 'E', portal.answer.sql);
    if (ok) {
        if (portal.answer.kind == ANSWER_ROWS)
            put_columns(backend, &portal.answer, NULL);
        portal.fails =
            answer_rows(&portal.answer, none, portal.formats, backend->setup.rows, &portal.rows, &portal.left);
        backend->copies_simply = true;
        run(backend, &portal, 0);
        ok = !backend->skips;
    }
    drop_portal(&portal);
    return ok;
}

static void take_query(struct backend *backend, struct span body)
{
    struct span sql;
    drop_prepared(find_prepared(backend, span_cstr("")));
    drop_portal(find_portal(backend, span_cstr("")));
    if (!wire_read_query(body, &sql)) {
        raise(backend, "08P01", 0);
        ready(backend);
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
        ready(backend);
}

static void take_function(struct backend *backend)
{
    size_t at = wire_open(&backend->made, 'V');
    buf_put_i32(&backend->made, -1);
    wire_close(&backend->made, at);
    ready(backend);
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
        raise(backend, "57014", 0);
    }
    if (backend->copies_simply)
        ready(backend);
}

/* What comes while a COPY is read. */
static void take_copy(struct backend *backend, uint8_t type)
{
    if (type == 'd')
        backend->copied++;
    else if (type == 'c' || type == 'f')
        end_copy(backend, type == 'c');
    else if (type != 'S' && type != 'H') {
        raise(backend, "08P01", 0);
        if (backend->copies_simply)
            ready(backend);
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
    case 'S': ready(backend); break;
    case 'H': flush(backend); break;
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
    ready(backend);
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
    if (memmem(backend->startup.ptr, backend->startup.len, "secret", 6))
        put_authentication(backend, 3);
    else
        welcome(backend);
    flush(backend);
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
            flush(backend);
}
