/* paginate.c - a tagged Bind or Query: which verdict it gets, and what the page starts from.
 *
 * The handler is run again from its beginning each time something it waited for has come, so it asks only for what is
 * missing. It must not know how the page's messages look. */
#include "decision.h"

#include "../page/sorting.h"

#include <stdio.h>
#include <string.h>

/* ---- verdicts of a step ---- */

enum step decision_pass(struct decision *d, enum pgseek_reason reason)
{
    d->reason = reason;
    return STEP_PASS;
}

enum step decision_reject(struct decision *d, enum pgseek_code code, const char *message, const char *detail,
                          const char *hint)
{
    d->error = (struct pgseek_error){.code = code};
    snprintf(d->error.message, sizeof d->error.message, "%s", message);
    snprintf(d->error.detail, sizeof d->error.detail, "%s", detail);
    snprintf(d->error.hint, sizeof d->error.hint, "%s", hint);
    return STEP_REFUSE;
}

bool decision_refuses(const struct decision *d)
{
    return d->token.len > 0 || d->settings.cursor_kind == PGSEEK_CURSOR_TEXT || d->settings.strict;
}

/* ---- step 1: may this message be looked at now? ---- */

static enum step step_order(struct decision *d)
{
    struct session *session = d->session;
    struct inquiry *inquiry = &session->tagging->inquiry;
    if (session->owed.readies > 0 || inquiry->state == INQUIRY_RUNNING)
        return STEP_HOLD;
    if (session->variables && commits_are_owed(session)) {
        (void)hold_for_replies(session);
        return STEP_HOLD;
    }
    if (inquiry->state == INQUIRY_REFUSED) {
        inquiry_reset(inquiry);
        session->drop_to_sync = !d->request->simple;
        return STEP_DONE;
    }
    if (session->tagging->total.state == TOTAL_REFUSED) {
        session->drop_to_sync = !d->request->simple;
        return STEP_DONE;
    }
    if (session->status == 'E' && !session->ran)
        return STEP_ORIGINAL; /* nothing can have ended the failed block: the server says 25P02 */
    return STEP_ON;
}

/* ---- step 2: options and token ---- */

static enum step step_settings(struct decision *d)
{
    if (!setting_collect(d->session, d->request->tag, &d->settings, &d->cursor_from_variable, &d->error))
        return STEP_REFUSE;
    enum step step = arguments_read(d);
    return step == STEP_ON ? arguments_token(d) : step;
}

static enum step step_mode(struct decision *d)
{
    if (d->settings.mode == PGSEEK_MODE_OFF)
        return decision_pass(d, PGSEEK_REASON_MODE_OFF);
    if (d->settings.mode != PGSEEK_MODE_REWRITE)
        return decision_pass(d, PGSEEK_REASON_OBSERVE);
    if (d->request->statement->tag.several)
        return decision_reject(d, PGSEEK_PS000, "a page must be sent alone", "The text holds several statements.",
                               "Send the tagged statement alone.");
    if (d->request->statement->verb == PGSEEK_VERB_DECLARE && d->token.len == 0)
        return decision_pass(d, PGSEEK_REASON_DECLARE);
    if (d->session->doubtful ||
        (d->request->simple && d->session->unsynced && (d->session->ran || d->session->owed.count > 0)))
        return decision_pass(d, PGSEEK_REASON_PIPELINED);
    return STEP_ON;
}

/* ---- step 3 is planning.c's; step 4: numbers and formats ---- */

/* Result formats that the server would take, for every row and for none. */
static bool results_fit(const struct decision *d)
{
    if (d->request->prefix.len)
        return true; /* they go to the server as they came */
    const struct wire_bind *bind = d->request->bind;
    size_t n = bind ? bind->nresults : 0;
    for (size_t i = 0; i < n; i++)
        if (get_u16(bind->results + 2 * i) > 1)
            return false;
    size_t added = d->settings.deliver & PGSEEK_DELIVER_COLUMNS ? 2 : 0;
    return n <= 1 || n == d->planned->description.ncolumns + added;
}

static enum step step_numbers(struct decision *d)
{
    if (!results_fit(d))
        return STEP_ORIGINAL;
    enum step step = arguments_bind(d);
    if (step != STEP_ON)
        return step;
    enum pgseek_eval limit = pgseek_query_number(d->planned->query, PGSEEK_LIMIT, d->values, d->nparams, &d->limit);
    enum pgseek_eval offset = pgseek_query_number(d->planned->query, PGSEEK_OFFSET, d->values, d->nparams, &d->offset);
    if (limit == PGSEEK_EVAL_FAILED || offset == PGSEEK_EVAL_FAILED)
        return decision_pass(d, PGSEEK_REASON_LIMIT_VALUE);
    if (limit == PGSEEK_EVAL_NONE)
        d->limit = -1;
    if (offset == PGSEEK_EVAL_NONE)
        d->offset = 0;
    if ((limit == PGSEEK_EVAL_NUMBER && d->limit < 0) || d->offset < 0)
        return STEP_ORIGINAL; /* the server's own 2201W or 2201X */
    return STEP_ON;
}

/* ---- step 5: the cursor ---- */

static enum step not_ours(struct decision *d, const char *detail)
{
    return decision_reject(d, PGSEEK_PS004, "the cursor does not belong to this page", detail,
                           "Start again from the first page, without a cursor.");
}

static bool digest_who(const struct planned *planned, uint8_t out[CURSOR_DIGEST])
{
    const struct context *context = &planned->context;
    struct span database = span_cstr(context->value[PGSEEK_CTX_DATABASE]);
    struct span user = span_cstr(context->value[PGSEEK_CTX_USER]);
    return context_digest(context, database, user, span_is_ascii(database) && span_is_ascii(user), out);
}

/* Whether the cursor is one of this plan; if not, `detail` says what they disagree about. */
static bool contract_holds(const struct cursor *cursor, const struct planned *planned, const uint8_t *who, char *detail,
                           size_t size)
{
    const char *what = NULL;
    if (!cursor_part_equal(cursor->part[CURSOR_WHO], who))
        what = "It was made for another database or another role.";
    else if (!cursor_part_equal(cursor->part[CURSOR_QUERY], planned->query_part))
        what = "It was made for another statement, or the same names mean other tables now.";
    if (!what)
        return sorting_fits(planned->plan, &planned->context, planned->sort_part, cursor, detail, size);
    snprintf(detail, size, "%s", what);
    return false;
}

static enum step check_contract(struct decision *d)
{
    uint8_t who[CURSOR_DIGEST];
    if (!digest_who(d->planned, who))
        return STEP_NOMEM;
    char detail[sizeof d->error.detail];
    if (contract_holds(&d->boundary.cursor, d->planned, who, detail, sizeof detail))
        return STEP_ON;
    return d->is_fresh || d->session->tagging->asked_again ? not_ours(d, detail) : planning_ask_again(d);
}

static enum step step_cursor(struct decision *d)
{
    struct session *session = d->session;
    if (d->token.len == 0)
        return STEP_ON;
    if (!cursor_open(session->env->keyring, d->token, session->env->now(session->env->clock), session->conf->cursor_ttl,
                     &d->boundary.cursor, &d->error))
        return STEP_REFUSE;
    d->boundary.given = true;
    return check_contract(d);
}

static enum step step_offset(struct decision *d)
{
    const struct conf *conf = d->session->conf;
    if (d->boundary.given || d->offset == 0)
        return STEP_ON;
    if (conf->offset_policy == CONF_OFFSET_REJECT)
        return decision_reject(d, PGSEEK_PS006, "OFFSET is refused by policy", "offset_policy is reject.",
                               "Continue with the cursor of the page before.");
    if (conf->max_offset > 0 && d->offset > conf->max_offset)
        return decision_reject(d, PGSEEK_PS006, "OFFSET is deeper than max_offset allows", "The page has no cursor.",
                               "Continue with the cursor of the page before.");
    return STEP_ON;
}

/* ---- step 6: the page ---- */

static uint32_t null_mask(const struct boundary *boundary)
{
    uint32_t mask = 0;
    for (size_t i = 0; i < boundary->cursor.nvalues; i++)
        mask |= boundary->cursor.value[i].len < 0 ? 1u << i : 0;
    return mask;
}

static enum pgseek_seek seek_of(const struct decision *d)
{
    const struct cursor *cursor = &d->boundary.cursor;
    if (!d->boundary.given)
        return d->settings.page == PGSEEK_PAGE_LAST ? PGSEEK_SEEK_LAST : PGSEEK_SEEK_FIRST;
    if (cursor->direction == CURSOR_FORWARD)
        return cursor->nvalues ? PGSEEK_SEEK_AFTER : PGSEEK_SEEK_FIRST;
    return cursor->nvalues ? PGSEEK_SEEK_BEFORE : PGSEEK_SEEK_LAST;
}

/* The formats of the two delivered columns: the last of the client's result formats. */
static void column_formats(const struct decision *d, struct page *page)
{
    const struct wire_bind *bind = d->request->bind;
    size_t n = bind ? bind->nresults : 0;
    for (size_t i = 0; i < 2 && n > 0; i++)
        page->column_format[i] = get_u16(bind->results + 2 * (n == 1 ? 0 : n - 2 + i));
}

/* Drivers keep what they were told: a total must not stand beside the next page. */
static bool had_total(const struct tagging *tagging)
{
    const char *total = tagging->results.value[PAGE_TOTAL];
    return total && *total;
}

static struct page *new_page(const struct decision *d)
{
    struct page *page = page_new();
    if (!page)
        return NULL;
    struct tagging *tagging = d->session->tagging;
    page->deliver = d->settings.deliver & ~(d->request->prefix.len ? (unsigned)PGSEEK_DELIVER_COLUMNS : 0);
    page->by_execute = d->request->execute.len > 0;
    page->is_simple = d->request->simple;
    page->prefix_len = d->request->prefix.len;
    page->token_place = d->request->statement->token_place;
    page->token_len = d->request->statement->token_len;
    page->tail = d->settings.tail;
    page->asks_total = d->settings.total != PGSEEK_TOTAL_NONE;
    page->retracts_total = had_total(tagging);
    buf_put_span(&page->total, buf_span(&tagging->total.value));
    page->limit = d->limit;
    page->id = d->session->id << 32 | ++tagging->pages;
    column_formats(d, page);
    buf_put_span(&page->incoming, d->token);
    if (page->incoming.failed || page->total.failed) {
        page_unref(page);
        return NULL;
    }
    return page;
}

/* Not where the row more would be locked or fetched by somebody. */
static bool looks_ahead(const struct decision *d)
{
    return d->limit >= 0 && d->limit < INT64_MAX && !pgseek_plan_is_locking(d->planned->plan) &&
           pgseek_query_verb(d->planned->query) != PGSEEK_VERB_DECLARE;
}

/* FETCH would show hidden columns. */
static bool may_be_declared(const struct decision *d, const struct pgseek_shape *shape)
{
    return d->request->statement->verb != PGSEEK_VERB_DECLARE || shape->nhidden == 0;
}

/* The page with its shape; NULL with a step that is not STEP_ON. */
static struct page *plan_page(struct decision *d, enum step *step)
{
    struct page *page = new_page(d);
    enum pgseek_seek seek = seek_of(d);
    bool by_offset = seek == PGSEEK_SEEK_FIRST && !d->boundary.given && d->offset > 0;
    *step = STEP_NOMEM;
    if (!page)
        return NULL;
    page->look_ahead = looks_ahead(d);
    struct pgseek_shape_key key = {
        .seek = seek, .null_mask = null_mask(&d->boundary), .look_ahead = page->look_ahead, .keep_offset = by_offset};
    page->origin = planned_shape(d->planned, &key, &d->reason);
    if (page->origin && !may_be_declared(d, page->origin->shape)) {
        *step = decision_pass(d, PGSEEK_REASON_DECLARE);
        page_unref(page);
        return NULL;
    }
    if (!page->origin) {
        *step = d->reason == PGSEEK_REASON_NOMEM ? STEP_NOMEM : STEP_PASS;
        page_unref(page);
        return NULL;
    }
    page->planned = planned_ref(d->planned);
    page->shape = page->origin->shape;
    page->rows = d->request->prefix.len ? PGSEEK_ROWS_PLAIN : page->shape->rows;
    page->gathers = page->by_execute || d->request->prefix.len > 0;
    page->nkeys = page_makes_cursors(page) ? page->shape->nkeys : 0;
    page->nhidden = page_makes_cursors(page) ? page->shape->nhidden : 0;
    page->backward = seek == PGSEEK_SEEK_BEFORE || seek == PGSEEK_SEEK_LAST;
    page->bounded = seek == PGSEEK_SEEK_AFTER || seek == PGSEEK_SEEK_BEFORE || by_offset;
    page->action = d->boundary.given ? PAGE_KEYSET : by_offset ? PAGE_OFFSET : PAGE_FIRST;
    memcpy(page->part[CURSOR_QUERY], d->planned->query_part, CURSOR_DIGEST);
    memcpy(page->part[CURSOR_SORT], d->planned->sort_part, CURSOR_DIGEST);
    if (!digest_who(d->planned, page->part[CURSOR_WHO])) {
        page_unref(page);
        return NULL;
    }
    *step = STEP_ON;
    return page;
}

/* ---- verdicts ---- */

static enum action carry_out_pass(struct decision *d)
{
    struct page *page = new_page(d);
    if (!page)
        return session_nomem(d->session);
    stats_pass(d->session->env->stats, d->reason);
    log_at(LOG_DEBUG, "C-%llu: passed: %s", (unsigned long long)d->session->id, pgseek_reason_name(d->reason));
    page->action = PAGE_PASS;
    page->reason = d->reason;
    enum action action = send_original(d->session, d->request, page);
    page_unref(page);
    return action;
}

static enum action carry_out_refusal(struct decision *d)
{
    struct session *session = d->session;
    bool failed = false;
    enum action action = refuse(session, &d->error, d->request->simple, span_of(NULL, 0));
    if (action != ACTION_HOLD && d->cursor_from_variable)
        session->variables = variables_spend_cursor(session->variables, true, &failed);
    return action;
}

/* A page that cannot be rewritten. */
static enum action pass_or_refuse(struct decision *d)
{
    if (!decision_refuses(d))
        return carry_out_pass(d);
    d->error = (struct pgseek_error){.code = PGSEEK_PS005};
    snprintf(d->error.message, sizeof d->error.message, "this statement cannot be paginated: %s",
             pgseek_reason_name(d->reason));
    snprintf(d->error.detail, sizeof d->error.detail, "%s", pgseek_reason_why(d->reason));
    const char *hint = pgseek_reason_hint(d->reason);
    snprintf(d->error.hint, sizeof d->error.hint, "%s", *hint ? hint : "Without a cursor and strict it runs as it is.");
    return carry_out_refusal(d);
}

static enum action carry_out_page(struct decision *d)
{
    enum step step;
    struct page *page = plan_page(d, &step);
    if (!page)
        return step == STEP_PASS ? pass_or_refuse(d) : session_nomem(d->session);
    enum action action = send_page(d->session, d->request, page, &d->boundary, d->params, d->cursor_from_variable);
    page_unref(page);
    return action;
}

static enum step decide(struct decision *d)
{
    static enum step (*const steps[])(struct decision *) = {step_order,   step_settings, step_mode,   planning_step,
                                                            step_numbers, step_cursor,   step_offset, total_step};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        enum step step = steps[i](d);
        if (step != STEP_ON)
            return step;
    }
    return STEP_ON;
}

static enum action carry_out(struct decision *d, enum step step)
{
    switch (step) {
    case STEP_ON: return carry_out_page(d);
    case STEP_PASS: return pass_or_refuse(d);
    case STEP_ORIGINAL: return send_original(d->session, d->request, NULL);
    case STEP_REFUSE: return carry_out_refusal(d);
    case STEP_HOLD: return ACTION_HOLD;
    case STEP_DONE: return d->session->state == STATE_CLOSING ? ACTION_FAIL : ACTION_DONE;
    case STEP_NOMEM: return session_nomem(d->session);
    }
    return session_nomem(d->session);
}

enum action paginate(struct session *session, const struct request *request)
{
    if (!session_tagging(session))
        return session_nomem(session);
    struct decision d = {.session = session, .request = request, .limit = -1};
    pgseek_settings_init(&d.settings);
    enum step step = decide(&d);
    if (step != STEP_HOLD && step != STEP_DONE)
        stats_add(session->env->stats, STATS_TAGGED);
    if (step != STEP_HOLD)
        session->tagging->asked_again = false;
    enum action action = carry_out(&d, step);
    if (step != STEP_HOLD && action != ACTION_HOLD)
        total_reset(&session->tagging->total);
    cursor_fini(&d.boundary.cursor);
    planned_unref(d.planned);
    pgseek_execute_free(d.execute);
    mem_free(d.params);
    mem_free(d.values);
    return action;
}
