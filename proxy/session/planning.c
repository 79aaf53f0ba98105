/* planning.c - the plan of a tagged statement: at hand, in the worker's cache, or made from facts that are asked for.
 *
 * It knows contexts, caches and side queries, and must not know what the page starts from. */
#include "decision.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* Encodings by their first letters. Of the first ones non-ASCII text is read by the parser as the server does: UTF8,
 * and those of one byte a character. The others are a server's own, so no byte of a character looks like ASCII. */
static const char *const encodings[] = {"UTF8", "LATIN", "ISO_8859", "WIN", "KOI8", "SQL_ASCII", "EUC_", "MULE_"};
#define READABLE_ENCODINGS 5
#define SERVER_ENCODINGS (sizeof encodings / sizeof *encodings)

static bool is_among(const char *encoding, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncasecmp(encoding, encodings[i], strlen(encodings[i])) == 0)
            return true;
    return false;
}

struct pgseek_reading planning_reading(const struct session *session, struct span sql)
{
    return (struct pgseek_reading){
        .standard_strings = session->strings_standard,
        .ascii_safe_encoding = span_is_ascii(sql) || is_among(session->encoding, READABLE_ENCODINGS),
        .has_ascii_trails = !is_among(session->encoding, SERVER_ENCODINGS),
    };
}

static struct pgseek_query *read_query(struct decision *d)
{
    const struct statement *statement = d->request->statement;
    const struct pgseek_settings *settings = &statement->tag.settings;
    struct pgseek_reading reading = planning_reading(d->session, span_of(statement->sql, statement->sql_len));
    reading.cursor_param = settings->cursor_kind == PGSEEK_CURSOR_PARAM ? settings->cursor_param : 0;
    reading.verb = statement->verb;
    return pgseek_query_new(statement->sql, statement->sql_len, &reading, &d->reason);
}

#define REASON_TTL 10 /* seconds that a reason given by the catalog holds: an index may have come */

/* What a plan is found by, in tagging->scratch. The scope is in it, since the guard reads it; so is the server, since
 * databases of one name on two servers would take each other's plans away, page by page. */
static bool make_key(struct decision *d)
{
    const struct statement *statement = d->request->statement;
    const struct conf *conf = d->session->conf;
    const struct conf_database *database = d->session->database;
    struct tagging *tagging = d->session->tagging;
    plan_cache_key(&tagging->scratch, &tagging->context, d->settings.key, statement->oids, statement->noids,
                   span_of(statement->sql, statement->sql_len));
    buf_put_u8(&tagging->scratch, 0); /* the text ends */
    buf_put_cstr(&tagging->scratch, database->hosts[d->session->host_index].host);
    buf_put_format(&tagging->scratch, "%d ", database->hosts[d->session->host_index].port);
    for (size_t i = 0; i < conf->nscope; i++)
        buf_put_cstr(&tagging->scratch, conf->scope[i]);
    if (statement->serial || statement->verb)
        buf_put_format(&tagging->scratch, "%d %" PRIu64, (int)statement->verb, statement->serial);
    return !tagging->scratch.failed;
}

static struct planned *look_up(struct decision *d)
{
    struct session *session = d->session;
    struct planned *planned =
        make_key(d) ? plan_cache_find(session->env->plans, buf_span(&session->tagging->scratch)) : NULL;
    if (!planned || planned->plan || session->env->now(session->env->clock) - planned->made_at <= REASON_TTL)
        return planned;
    plan_cache_drop(session->env->plans, planned);
    planned_unref(planned);
    return NULL;
}

/* A plan by a key= that a variable gave holds for this page only. */
static void remember(struct decision *d, struct planned *planned)
{
    struct statement *statement = d->request->statement;
    d->planned = planned;
    if (d->settings.key)
        return;
    if (statement->planned != planned) {
        planned_unref(statement->planned);
        statement->planned = planned_ref(planned);
    }
    statement->epoch = d->session->tagging->epoch;
}

/* Views, expressions and inner levels want more than the text mentions. A question that cannot be asked now may be
 * asked for the next page, so nothing is kept of it. */
static enum step ask_more(struct decision *d)
{
    bool possible;
    if (inquiry_ask_more(d->session, &possible) == ACTION_HOLD)
        return STEP_HOLD;
    if (possible)
        return STEP_DONE; /* out of memory: the session has ended */
    inquiry_reset(&d->session->tagging->inquiry);
    return decision_pass(d, PGSEEK_REASON_FACTS_FAILED);
}

/* With the facts there is a plan or a reason, or another question. */
static enum step make_plan(struct decision *d)
{
    struct session *session = d->session;
    struct tagging *tagging = session->tagging;
    struct inquiry *inquiry = &tagging->inquiry;
    const struct plan_source source = {
        .query = &inquiry->query,
        .description = &inquiry->catalog.description,
        .facts = inquiry->catalog.facts,
        .context = &tagging->context,
        .key_option = d->settings.key,
        .scope = (const char *const *)session->conf->scope,
        .nscope = session->conf->nscope,
    };
    enum pgseek_reason reason = PGSEEK_REASON_NONE;
    struct planned *planned = planned_new(&source, &reason);
    if (!planned && reason == PGSEEK_REASON_MORE)
        return ask_more(d);
    inquiry_reset(inquiry);
    if (!planned)
        return STEP_NOMEM;
    stats_add(session->env->stats, STATS_PLAN_MISSES);
    planned->made_at = session->env->now(session->env->clock);
    d->is_fresh = true;
    if (make_key(d))
        plan_cache_put(session->env->plans, planned, buf_span(&tagging->scratch));
    remember(d, planned);
    return STEP_ON;
}

/* The answers to a side query: the context is known again. */
static enum step take_answers(struct decision *d)
{
    struct session *session = d->session;
    struct tagging *tagging = session->tagging;
    struct inquiry *inquiry = &tagging->inquiry;
    context_fini(&tagging->context);
    tagging->context = inquiry->catalog.context;
    inquiry->catalog.context = (struct context){0};
    tagging->context_valid = true;
    tagging->epoch++;
    inquiry->state = INQUIRY_IDLE;
    return inquiry->query ? make_plan(d) : STEP_ON;
}

/* A plan that is at hand without asking; NULL when there is none. */
static bool plan_at_hand(struct decision *d)
{
    struct tagging *tagging = d->session->tagging;
    struct statement *statement = d->request->statement;
    if (d->planned)
        return true;
    if (!tagging->context_valid)
        return false;
    if (statement->planned && statement->planned->plan && statement->epoch == tagging->epoch && !d->settings.key) {
        d->planned = planned_ref(statement->planned);
        return true;
    }
    struct planned *planned = look_up(d);
    if (planned)
        remember(d, planned);
    return planned != NULL;
}

static enum step ask(struct decision *d)
{
    struct tagging *tagging = d->session->tagging;
    struct planned *probable = context_is_known(&tagging->context) && !tagging->context_valid ? look_up(d) : NULL;
    planned_unref(probable);
    struct pgseek_query *query = probable ? NULL : read_query(d);
    if (!probable && !query)
        return d->reason == PGSEEK_REASON_NOMEM ? STEP_NOMEM : STEP_PASS;
    return inquiry_ask(d->session, query, d->request->statement, d->request->name, d->request->simple) == ACTION_HOLD
               ? STEP_HOLD
               : STEP_DONE;
}

enum step planning_ask_again(struct decision *d)
{
    struct tagging *tagging = d->session->tagging;
    tagging->asked_again = true;
    tagging->context_valid = false;
    plan_cache_drop(d->session->env->plans, d->planned);
    planned_unref(d->planned);
    d->planned = NULL;
    return ask(d);
}

enum step planning_step(struct decision *d)
{
    struct inquiry *inquiry = &d->session->tagging->inquiry;
    bool hit = inquiry->state != INQUIRY_ANSWERED;
    if (inquiry->state == INQUIRY_FAILED) {
        inquiry_reset(inquiry);
        return decision_pass(d, PGSEEK_REASON_FACTS_FAILED);
    }
    if (inquiry->state == INQUIRY_ANSWERED) {
        enum step step = take_answers(d);
        if (step != STEP_ON)
            return step;
    }
    if (!plan_at_hand(d))
        return ask(d);
    if (hit)
        stats_add(d->session->env->stats, STATS_PLAN_HITS);
    if (strcmp(d->planned->context.value[PGSEEK_CTX_STRINGS], "on") != 0)
        return decision_pass(d, PGSEEK_REASON_STRINGS);
    if (d->planned->plan)
        return STEP_ON;
    if (decision_refuses(d) && !d->is_fresh && !d->session->tagging->asked_again)
        return planning_ask_again(d);
    return decision_pass(d, d->planned->reason);
}
