/* total.c - how many rows all pages have together, asked for in front of a page.
 *
 * It must never harm the client: it runs under a time limit of its own, outside a block in a transaction of its own and
 * inside one behind a savepoint, and whatever goes wrong only leaves the total empty. It must not know what the page
 * is.
 */
#include "decision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OID_INT8 20

/* $1: the limit in milliseconds; a shorter one of the client's stays. Up to the end of the transaction or savepoint. */
static const char limit_sql[] =
    "SELECT pg_catalog.set_config('statement_timeout', CASE WHEN t.ms OPERATOR(pg_catalog.>) 0::pg_catalog.int8 AND "
    "t.ms OPERATOR(pg_catalog.<) $1 THEN t.ms ELSE $1 END::pg_catalog.text, true) FROM (SELECT "
    "(1000::pg_catalog.float8 "
    "OPERATOR(pg_catalog.*) pg_catalog.date_part('epoch', pg_catalog.current_setting('statement_timeout')"
    "::pg_catalog.interval))::pg_catalog.int8) t(ms)";

struct total_text {
    struct span sql;
    const uint32_t *oids;
    const struct value *values;
    size_t nvalues;
};

/* ---- asking ---- */

/* Close first: what a failed group has left under the names must not be in the way. `role` is the Execute's. */
static bool put_text(struct session *session, const struct total_text *text, enum pending_role role)
{
    static const enum pending_kind kinds[] = {PENDING_CLOSE,   PENDING_CLOSE, PENDING_PARSE, PENDING_BIND,
                                              PENDING_EXECUTE, PENDING_CLOSE, PENDING_CLOSE};
    const char *name = session->tagging->reserved;
    struct buf *out = to_backend(session);
    wire_put_target(out, 'C', 'P', span_cstr(name));
    wire_put_target(out, 'C', 'S', span_cstr(name));
    wire_put_parse(out, name, text->sql, text->oids, text->nvalues);
    put_bind(out, span_cstr(name), name, text->values, text->nvalues, NULL, 0);
    wire_put_execute(out, span_cstr(name), 0);
    wire_put_target(out, 'C', 'P', span_cstr(name));
    wire_put_target(out, 'C', 'S', span_cstr(name));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!expect(session, kinds[i], kinds[i] == PENDING_EXECUTE ? role : ROLE_ASIDE))
            return false;
    return true;
}

static bool put_savepoint(struct session *session, const char *command)
{
    char sql[80];
    int len = snprintf(sql, sizeof sql, "%s \"%s\"", command, session->tagging->reserved);
    return put_text(session, &(struct total_text){.sql = span_of(sql, (size_t)len)}, ROLE_ASIDE);
}

static bool put_sync(struct session *session, enum pending_role role)
{
    wire_put_empty(to_backend(session), 'S');
    return expect(session, PENDING_SYNC, role) != NULL;
}

static bool put_limit(struct session *session)
{
    static const uint32_t oids[] = {OID_INT8};
    char limit[24];
    int len = snprintf(limit, sizeof limit, "%d000", session->conf->total_timeout);
    struct value value = {.format = 0, .len = len, .data = (const uint8_t *)limit};
    return put_text(session,
                    &(struct total_text){
                        .sql = span_of(limit_sql, sizeof limit_sql - 1), .oids = oids, .values = &value, .nvalues = 1},
                    ROLE_ASIDE);
}

/* The token is no part of the text unless the text reads it. */
static struct value param_value(const struct decision *d, size_t i)
{
    const struct pgseek_settings *tag = &d->request->statement->tag.settings;
    if (tag->cursor_kind == PGSEEK_CURSOR_PARAM && (size_t)tag->cursor_param == i + 1 &&
        !pgseek_query_uses_param(d->planned->query, tag->cursor_param))
        return (struct value){.len = -1};
    return (struct value){.format = d->params[i].format, .len = d->params[i].len, .data = d->params[i].data};
}

static bool put_count(const struct decision *d)
{
    bool estimate = d->settings.total == PGSEEK_TOTAL_ESTIMATE;
    char *sql = pgseek_total_new(d->planned->query, estimate);
    struct value *values = mem_alloc(d->nparams * sizeof *values);
    for (size_t i = 0; values && i < d->nparams; i++)
        values[i] = param_value(d, i);
    bool ok = sql && values &&
              put_text(d->session,
                       &(struct total_text){.sql = span_cstr(sql),
                                            .oids = d->planned->description.param_oids,
                                            .values = values,
                                            .nvalues = d->nparams},
                       ROLE_TOTAL);
    free(sql);
    mem_free(values);
    return ok;
}

/* An error ends the first group; the second one takes back what it did, the time limit included. */
static bool put_all(const struct decision *d)
{
    struct session *session = d->session;
    if (session->status != 'T')
        return put_limit(session) && put_count(d) && put_sync(session, ROLE_TOTAL_END);
    return put_savepoint(session, "SAVEPOINT") && put_limit(session) && put_count(d) && put_sync(session, ROLE_ASIDE) &&
           put_savepoint(session, "ROLLBACK TO SAVEPOINT") && put_savepoint(session, "RELEASE SAVEPOINT") &&
           put_sync(session, ROLE_TOTAL_END);
}

static enum step ask(struct decision *d)
{
    struct total *total = &d->session->tagging->total;
    total->state = TOTAL_RUNNING;
    total->is_estimate = d->settings.total == PGSEEK_TOTAL_ESTIMATE;
    stats_add(d->session->env->stats, STATS_SIDE_QUERIES);
    bool ok = put_all(d);
    sent_backend(d->session);
    return ok ? STEP_HOLD : STEP_NOMEM;
}

enum step total_step(struct decision *d)
{
    struct total *total = &d->session->tagging->total;
    if (d->settings.total == PGSEEK_TOTAL_NONE || d->request->prefix.len > 0 || total->state == TOTAL_ANSWERED)
        return STEP_ON;
    if (total->state == TOTAL_RUNNING)
        return STEP_HOLD;
    /* What has run in this group and is not yet committed would be committed by a Sync of ours, or lost by an error. */
    return d->session->ran ? STEP_ON : ask(d);
}

/* ---- answers ---- */

void total_reset(struct total *total)
{
    total->state = TOTAL_IDLE;
    total->is_lost = false;
    buf_fini(&total->value);
}

enum action total_row(struct session *session, struct span body)
{
    struct total *total = &session->tagging->total;
    struct reader rd = rd_init(body);
    uint16_t columns = rd_u16(&rd);
    int32_t len;
    const uint8_t *data;
    const char *number;
    if (columns != 1 || !wire_read_column(&rd, &len, &data) || len < 0)
        return ACTION_DONE;
    size_t digits = pgseek_total_read((const char *)data, (size_t)len, total->is_estimate, &number);
    buf_clear(&total->value);
    if (digits > 0 && digits <= TOTAL_MAX_DIGITS)
        buf_put(&total->value, number, digits);
    return total->value.failed ? session_nomem(session) : ACTION_DONE;
}

/* The end of the connection is the client's business all the same. */
enum action total_failed(struct session *session, struct span body)
{
    buf_clear(&session->tagging->total.value);
    fail_group(session);
    return error_is_fatal(body) ? ACTION_FORWARD : ACTION_DONE;
}

void total_lost(struct session *session)
{
    session->tagging->total.is_lost = session->tagging->total.state == TOTAL_RUNNING;
}

void total_ended(struct session *session)
{
    struct total *total = &session->tagging->total;
    total->state = total->is_lost ? TOTAL_REFUSED : TOTAL_ANSWERED;
    session->wake |= session->holding;
}
