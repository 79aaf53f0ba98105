/* retry.c - a page whose guard failed: run again with fresh facts where nothing is lost by it, else an error that says
 * what changed.
 *
 * It keeps the client's messages from the page on until the guard has spoken. It must not know what the facts are. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

/* ---- keeping ---- */

void retry_over(struct session *session)
{
    struct retry *retry = &session->tagging->retry;
    retry->possible = retry->bound = retry->again = retry->closing = retry->synced = false;
    buf_trim(&retry->kept, 1024);
}

void retry_start(struct session *session, const struct request *request, bool possible)
{
    struct retry *retry = &session->tagging->retry;
    retry->possible = possible && request->message.len <= RETRY_MAX_KEPT;
    retry->synced = request->simple;
    buf_clear(&retry->kept);
    if (retry->possible)
        buf_put_span(&retry->kept, request->message);
}

void retry_note(struct session *session, struct span message, bool may_repeat)
{
    struct retry *retry = &session->tagging->retry;
    if (!may_repeat || retry->synced || retry->kept.len + message.len > RETRY_MAX_KEPT) {
        retry->possible = false;
        buf_clear(&retry->kept);
        return;
    }
    buf_put_span(&retry->kept, message);
    retry->synced = message.ptr[0] == 'S';
}

/* Sync and Flush, which pass by without a body. */
void retry_passing(struct session *session, uint8_t type, bool may_repeat)
{
    const uint8_t message[] = {type, 0, 0, 0, 4};
    retry_note(session, span_of(message, sizeof message), may_repeat && (type == 'S' || type == 'H'));
}

/* ---- running again ---- */

/* Not in the middle of a message that passes by: its rest would be taken for the first of those that run again. */
static bool may_start_again(const struct session *session)
{
    return session->tagging->retry.possible && session->in[SIDE_FRONTEND].skip == 0;
}

/* The client hears nothing of the failed group: its Sync is answered when the messages have run again. */
static bool start_again(struct session *session)
{
    struct retry *retry = &session->tagging->retry;
    fail_group(session);
    session->skip_to_sync = false;
    struct pending *sync = pending_head(&session->owed);
    if (!sync) {
        wire_put_empty(to_backend(session), 'S');
        sent_backend(session);
        sync = expect(session, PENDING_SYNC, ROLE_CLIENT);
        if (!sync)
            return false;
    }
    sync->role = ROLE_DISCARD;
    retry->possible = false;
    retry->closing = true;
    session->holding = true; /* what comes meanwhile stands behind the kept messages */
    stats_add(session->env->stats, STATS_RETRIES);
    return true;
}

enum action retry_again(struct session *session)
{
    struct retry *retry = &session->tagging->retry;
    struct buf again = retry->kept;
    retry->kept = (struct buf){0};
    struct buf *begun = &session->in[SIDE_FRONTEND].partial; /* a message whose rest is the first that was held */
    buf_put_span(&again, buf_span(begun));
    buf_fini(begun);
    buf_put_span(&again, buf_span(&session->held));
    if (again.failed || session->held.failed) {
        buf_fini(&again);
        return session_nomem(session);
    }
    buf_fini(&session->held);
    session->held = again;
    retry->closing = retry->synced = false;
    retry->again = true;
    session->wake = true;
    return ACTION_DONE;
}

/* Nothing that was known about this plan's context holds any more. */
static void forget(struct session *session, struct page *page)
{
    session->tagging->context_valid = false;
    plan_cache_drop(session->env->plans, page->planned);
}

bool retry_instead(struct session *session, struct page *page)
{
    forget(session, page);
    return may_start_again(session) && start_again(session);
}

/* ---- a guard that failed ---- */

static const struct {
    const char *sqlstate;
    enum pgseek_code code;
    bool is_fact;   /* another look may help */
    bool is_server; /* where it does not help, the server's own words are the ones to hear */
    const char *message, *detail, *hint;
} failures[] = {
    {"22012", PGSEEK_PS005, true, false, "the page's plan does not hold any more",
     "The table, one of its indexes or constraints, the search_path or the role has changed since the page was "
     "planned.",
     "Run it again."},
    {"26000", PGSEEK_PS005, true, false, "the page's plan does not hold any more",
     "The server's prepared statements are gone.", "Run it again."},
    {"42501", PGSEEK_PS005, true, true, NULL, NULL, NULL}, /* a schema that a name was found in */
    {"42704", PGSEEK_PS005, true, true, NULL, NULL, NULL}, /* the role itself is gone; its statements run on */
    {"2201F", PGSEEK_PS004, false, false, "the cursor does not belong to this page",
     "The value of a parameter is not the one that it was made with.",
     "Start again from the first page, without a cursor."},
    {"2201E", PGSEEK_PS004, false, false, "the cursor does not belong to this page",
     "A setting of the scope has another value than when it was made.",
     "Start again from the first page, without a cursor."},
};

static void spend_cursor(struct session *session, const struct page *page)
{
    const char *value = variables_get(session->variables, PGSEEK_OPT_CURSOR);
    bool failed = false;
    if (value && span_equal_cstr(buf_span(&page->incoming), value))
        session->variables = variables_spend_cursor(session->variables, true, &failed);
}

static enum action tell(struct session *session, struct page *page, size_t failure)
{
    enum pgseek_code code = failures[failure].code;
    stats_reject(session->env->stats, code);
    log_at(LOG_INFO, "C-%llu: %s/%s@%s rejected: %s %s", (unsigned long long)session->id, session->dbname,
           session->user, session->peer, pgseek_code_sqlstate(code), failures[failure].detail);
    wire_put_error(to_frontend(session), 'E',
                   &(struct wire_error){.severity = "ERROR",
                                        .sqlstate = pgseek_code_sqlstate(code),
                                        .message = failures[failure].message,
                                        .detail = failures[failure].detail,
                                        .hint = failures[failure].hint});
    sent_frontend(session);
    page_ref(page);
    fail_group(session);
    spend_cursor(session, page);
    page_unref(page);
    retry_over(session);
    return ACTION_DONE;
}

enum action guard_failed(struct session *session, struct page *page, struct span body)
{
    struct span sqlstate;
    bool known = wire_error_field(body, 'C', &sqlstate);
    for (size_t i = 0; known && i < sizeof failures / sizeof *failures; i++) {
        if (!span_equal_cstr(sqlstate, failures[i].sqlstate))
            continue;
        stats_add(session->env->stats, STATS_GUARD_MISMATCHES);
        if (!failures[i].is_fact)
            return tell(session, page, i);
        forget(session, page);
        if (may_start_again(session))
            return start_again(session) ? ACTION_DONE : session_nomem(session);
        if (!failures[i].is_server)
            return tell(session, page, i);
    }
    fail_group(session); /* a cancel or a time-out that was meant for the page */
    retry_over(session);
    return ACTION_FORWARD;
}
