/* backend_state.c - statements, portals and the transaction of the small server, and the replies that it collects. */
#include "backend_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void server_drop_prepared(struct prepared *prepared)
{
    if (prepared && prepared->is_used)
        answer_fini(&prepared->answer);
    if (prepared)
        prepared->is_used = false;
}

void server_drop_portal(struct cursor_portal *portal)
{
    if (!portal || !portal->is_used)
        return;
    answer_fini(&portal->answer);
    buf_fini(&portal->rows);
    portal->is_used = false;
}

void server_drop_all_portals(struct backend *backend)
{
    for (size_t i = 0; i < MAX_NAMED; i++)
        server_drop_portal(&backend->portal[i]);
}

/* All prepared statements, the unnamed one only when it is asked for. */
void server_drop_all_prepared(struct backend *backend, bool with_unnamed)
{
    for (size_t i = 0; i < MAX_NAMED; i++)
        if (with_unnamed || backend->prepared[i].name[0])
            server_drop_prepared(&backend->prepared[i]);
}

void backend_free(struct backend *backend)
{
    server_drop_all_portals(backend);
    server_drop_all_prepared(backend, true);
    buf_fini(&backend->in);
    buf_fini(&backend->made);
    buf_fini(&backend->sent);
    buf_fini(&backend->startup);
    free(backend);
}

void backend_encrypt(struct backend *backend, bool is_tls)
{
    backend->is_tls = is_tls;
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

struct prepared *server_find_prepared(struct backend *backend, struct span name)
{
    for (size_t i = 0; i < MAX_NAMED; i++)
        if (backend->prepared[i].is_used && has_name(backend->prepared[i].name, name))
            return &backend->prepared[i];
    return NULL;
}

struct cursor_portal *server_find_portal(struct backend *backend, struct span name)
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

struct prepared *server_new_prepared(struct backend *backend, struct span name)
{
    struct prepared *prepared = backend->prepared;
    while (prepared->is_used && prepared + 1 < backend->prepared + MAX_NAMED)
        prepared++;
    server_drop_prepared(prepared);
    copy_name(prepared->name, name);
    return prepared;
}

struct cursor_portal *server_new_portal(struct backend *backend, struct span name)
{
    struct cursor_portal *portal = backend->portal;
    while (portal->is_used && portal + 1 < backend->portal + MAX_NAMED)
        portal++;
    server_drop_portal(portal);
    memset(portal, 0, sizeof *portal);
    copy_name(portal->name, name);
    backend_reserve(&portal->rows, 4096);
    return portal;
}

/* ---- replies ---- */

void server_flush(struct backend *backend)
{
    buf_put_span(&backend->sent, buf_span(&backend->made));
    buf_clear(&backend->made);
}

static void put_error(struct backend *backend, const char *sqlstate, int position)
{
    size_t at = wire_open(&backend->made, 'E');
    bool is_end = strncmp(sqlstate, "57P", 3) == 0;
    buf_put_cstr(&backend->made, is_end ? "SFATAL" : "SERROR");
    buf_put_cstr(&backend->made, is_end ? "VFATAL" : "VERROR");
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
    server_flush(backend);
}

/* The end of a transaction that a statement's error leaves behind. */
static void fail_transaction(struct backend *backend)
{
    backend->copying = COPY_NOT;
    backend->has_failed = backend->in_block;
    if (!backend->in_block)
        server_drop_all_portals(backend);
}

void server_raise(struct backend *backend, const char *sqlstate, int position)
{
    put_error(backend, sqlstate, position);
    fail_transaction(backend);
    backend->skips = true;
}

void server_ready(struct backend *backend)
{
    backend->is_unsynced = false;
    backend->skips = false;
    if (!backend->in_block)
        server_drop_all_portals(backend);
    wire_put_ready(&backend->made, backend->has_failed ? 'E' : backend->in_block ? 'T' : 'I');
    server_flush(backend);
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

bool server_meets_fault(struct backend *backend, char message, const char *sql)
{
    const struct backend_fault *fault = fault_on(backend, message, sql);
    if (fault)
        server_raise(backend, fault->sqlstate, fault->position);
    return fault != NULL;
}
