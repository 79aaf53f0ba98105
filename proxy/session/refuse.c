/* refuse.c - errors of class PS, in the place where the client's message stood.
 *
 * The server itself fails the group: a Parse that it cannot accept goes out instead of the refused message, and its
 * ErrorResponse is replaced by ours on the way back. So the transaction ends up as after any error, and Sync is
 * answered by the one who counts. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

#define IDENTIFIER_MAX 63 /* a longer one would bring a NOTICE */

static void put_error(struct buf *out, const struct pgseek_error *error)
{
    wire_put_error(out, 'E',
                   &(struct wire_error){.severity = "ERROR",
                                        .sqlstate = pgseek_code_sqlstate(error->code),
                                        .message = error->message,
                                        .detail = error->detail,
                                        .hint = error->hint});
}

static void count(struct session *session, const struct pgseek_error *error)
{
    stats_reject(session->env->stats, error->code);
    log_at(LOG_INFO, "C-%llu: %s/%s@%s rejected: %s %s", (unsigned long long)session->id, session->dbname,
           session->user, session->peer, pgseek_code_sqlstate(error->code), error->message);
}

/* `SELECT "pgseek PS002: ..."`: fails in analysis, behind the check for a failed transaction, and says why in the
 * server's log. */
static void put_failing_parse(struct buf *out, const char *name, const struct pgseek_error *error)
{
    char identifier[IDENTIFIER_MAX + 1];
    char sql[IDENTIFIER_MAX + 16];
    snprintf(identifier, sizeof identifier, "pgseek %.5s: %.49s", pgseek_code_sqlstate(error->code), error->message);
    for (char *c = identifier; *c; c++)
        if (*c == '"' || (unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '\'';
    int len = snprintf(sql, sizeof sql, "SELECT \"%s\"", identifier);
    wire_put_parse(out, name, span_of(sql, (size_t)len), NULL, 0);
}

static enum action refuse_locally(struct session *session, const struct pgseek_error *error)
{
    put_error(to_frontend(session), error);
    wire_put_ready(to_frontend(session), 'I');
    sent_frontend(session);
    return ACTION_DONE;
}

enum action refuse(struct session *session, const struct pgseek_error *error, bool simple, struct span parse_name)
{
    if (simple && session->owed.readies > 0)
        return ACTION_HOLD;
    struct tagging *tagging = session_tagging(session);
    if (!tagging)
        return session_nomem(session);
    count(session, error);
    retry_over(session);
    if (simple && session->status == 'I' && !session->unsynced)
        return refuse_locally(session, error);
    bool unnamed = parse_name.ptr && parse_name.len == 0;
    struct pending *entry = expect(session, PENDING_PARSE, ROLE_REFUSE);
    struct follow *follow = entry ? follow_of(entry) : NULL;
    if (!follow)
        return session_nomem(session);
    entry->unnamed = unnamed;
    follow->refusal = mem_dup(error, sizeof *error);
    if (!follow->refusal)
        return session_nomem(session);
    put_failing_parse(to_backend(session), unnamed ? "" : tagging->reserved, error);
    if (simple) {
        wire_put_empty(to_backend(session), 'S');
        if (!expect(session, PENDING_SYNC, ROLE_CLIENT))
            return session_nomem(session);
    }
    sent_backend(session);
    return ACTION_DONE;
}

/* The Parse in the place of a refused message failed, as it should: our error, unless the block had failed before. */
enum action refuse_failed(struct session *session, const struct pending *head, struct span body)
{
    struct span sqlstate;
    bool as_planned = wire_error_field(body, 'C', &sqlstate) && span_equal_cstr(sqlstate, "42703");
    if (as_planned) {
        put_error(to_frontend(session), head->follow->refusal);
        sent_frontend(session);
    }
    fail_group(session);
    return as_planned ? ACTION_DONE : ACTION_FORWARD;
}
