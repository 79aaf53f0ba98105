/* arguments.c - the values of a page's parameters: what a Bind carries, or the arguments of an EXECUTE in SQL.
 *
 * It reads and types values, the token among them, and must not know what they are for. */
#include "decision.h"

#include <string.h>

#define OID_TEXT 25

/* ---- reading ---- */

static enum step make_room(struct decision *d, size_t nparams)
{
    d->nparams = nparams;
    d->params = mem_zalloc(nparams * sizeof *d->params);
    d->values = mem_zalloc(nparams * sizeof *d->values);
    return d->params && d->values ? STEP_ON : STEP_NOMEM;
}

static enum step read_bind(struct decision *d)
{
    const struct wire_bind *bind = d->request->bind;
    if (make_room(d, bind->nparams) != STEP_ON)
        return STEP_NOMEM;
    if (!wire_bind_params(bind, d->params))
        return STEP_ORIGINAL;
    for (size_t i = 0; i < d->nparams; i++)
        if (d->params[i].format != 0 && d->params[i].format != 1)
            return STEP_ORIGINAL;
    return STEP_ON;
}

/* It is in doubt whether there is a cursor: nothing may run that would ignore it. */
static enum step unknown_token(struct decision *d)
{
    return decision_reject(d, PGSEEK_PS005, "this statement cannot be paginated: execute_args",
                           pgseek_reason_why(PGSEEK_REASON_EXECUTE_ARGS),
                           "Give EXECUTE the cursor as a literal, or NULL.");
}

static enum step read_execute(struct decision *d)
{
    const struct request *request = d->request;
    if (request->bind && (request->bind->nparams > 0 || request->bind->nformats > 1))
        return STEP_ORIGINAL; /* EXECUTE itself has no parameters */
    struct pgseek_reading reading = planning_reading(d->session, request->execute);
    d->execute = pgseek_execute_new((const char *)request->execute.ptr, request->execute.len, &reading, &d->reason);
    if (!d->execute && d->reason != PGSEEK_REASON_NOMEM && d->settings.cursor_kind == PGSEEK_CURSOR_PARAM)
        return unknown_token(d);
    if (!d->execute)
        return d->reason == PGSEEK_REASON_NOMEM ? STEP_NOMEM : STEP_PASS;
    return make_room(d, pgseek_execute_count(d->execute));
}

enum step arguments_read(struct decision *d)
{
    if (d->request->execute.len)
        return read_execute(d);
    return d->request->bind ? read_bind(d) : STEP_ON;
}

/* ---- the token ---- */

static enum step token_of_execute(struct decision *d, size_t n)
{
    const char *text;
    switch (pgseek_execute_argument(d->execute, n - 1, OID_TEXT, &text)) {
    case PGSEEK_ARGUMENT_TEXT: d->token = span_cstr(text); return STEP_ON;
    case PGSEEK_ARGUMENT_NULL: return STEP_ON;
    case PGSEEK_ARGUMENT_UNKNOWN:
    case PGSEEK_ARGUMENT_BAD: return unknown_token(d);
    }
    return unknown_token(d);
}

enum step arguments_token(struct decision *d)
{
    const struct pgseek_settings *settings = &d->settings;
    if (settings->cursor_kind == PGSEEK_CURSOR_TEXT)
        d->token = span_cstr(settings->cursor);
    if (settings->cursor_kind != PGSEEK_CURSOR_PARAM)
        return STEP_ON;
    if (d->request->simple && !d->execute)
        return decision_reject(d, PGSEEK_PS000, "cursor=$n has no value in a simple query",
                               "Parameters are bound in the extended protocol only.",
                               "Write the cursor into the tag, or set pgseek.cursor.");
    size_t n = (size_t)settings->cursor_param;
    if (n > d->nparams)
        return STEP_ORIGINAL; /* the server wants it, too */
    if (d->execute)
        return token_of_execute(d, n);
    const struct wire_param *param = &d->params[n - 1];
    if (param->len > 0 && memchr(param->data, 0, (size_t)param->len))
        return STEP_ORIGINAL; /* no text in any encoding: the server's own 22021 */
    if (param->len > 0)
        d->token = span_of(param->data, (size_t)param->len);
    return STEP_ON;
}

/* ---- types ---- */

/* The arguments as a Bind would carry them, in text format. */
static enum step bind_execute(struct decision *d)
{
    const struct description *description = &d->planned->description;
    for (size_t i = 0; i < d->nparams; i++) {
        const char *text;
        enum pgseek_argument argument = pgseek_execute_argument(d->execute, i, description->param_oids[i], &text);
        if (argument == PGSEEK_ARGUMENT_BAD)
            return STEP_ORIGINAL;
        if (argument == PGSEEK_ARGUMENT_UNKNOWN)
            return decision_pass(d, PGSEEK_REASON_EXECUTE_ARGS);
        bool is_null = argument == PGSEEK_ARGUMENT_NULL;
        d->params[i] = (struct wire_param){.len = is_null ? -1 : (int32_t)strlen(text), .data = (const uint8_t *)text};
    }
    return STEP_ON;
}

enum step arguments_bind(struct decision *d)
{
    const struct description *description = &d->planned->description;
    if (d->nparams != description->nparams)
        return STEP_ORIGINAL;
    enum step step = d->execute ? bind_execute(d) : STEP_ON;
    for (size_t i = 0; step == STEP_ON && i < d->nparams; i++)
        d->values[i] = (struct pgseek_value){.type_oid = description->param_oids[i],
                                             .format = d->params[i].format,
                                             .len = d->params[i].len,
                                             .data = d->params[i].data};
    return step;
}
