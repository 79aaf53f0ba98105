/* setting.c - statements about our variables: SET, RESET, SHOW, set_config and current_setting.
 *
 * Values never reach the server. Alone and in the simple protocol they are answered here; in the extended protocol a
 * stand-in with the same shape goes to the server, so that names, order, errors and row limits stay its business. It
 * must not know what a value does. */
#include "internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define OID_BOOL 16
#define OID_TEXT 25

/* ---- values ---- */

const char *setting_value(struct session *session, const char *name)
{
    enum pgseek_option option;
    enum page_result result;
    if (pgseek_option_find(name, strlen(name), &option)) {
        const char *value = variables_get(session->variables, option);
        return value ? value : "";
    }
    if (page_result_find(name, &result) && session->tagging && session->tagging->results.value[result])
        return session->tagging->results.value[result];
    return "";
}

static bool is_valid(enum pgseek_option option, const char *value, struct pgseek_error *error)
{
    struct pgseek_settings settings;
    pgseek_settings_init(&settings);
    return !value || pgseek_settings_put(&settings, option, value, false, error);
}

static void unknown_variable(const char *name, struct pgseek_error *error)
{
    *error = (struct pgseek_error){.code = PGSEEK_PS000};
    snprintf(error->message, sizeof error->message, "unknown pgseek variable");
    snprintf(error->detail, sizeof error->detail, "There is no variable pgseek.%.100s that can be set.", name);
    snprintf(error->hint, sizeof error->hint, "The variables are the tag's options with the prefix pgseek.");
}

/* Whether a name and a value can be set; the option by its name. */
static bool check(const char *name, const char *value, enum pgseek_option *option, struct pgseek_error *error)
{
    if (pgseek_option_find(name, strlen(name), option))
        return is_valid(*option, value, error);
    unknown_variable(name, error);
    return false;
}

bool setting_startup(void *arg, const char *name, const char *value)
{
    struct session *session = arg;
    struct pgseek_error error;
    enum pgseek_option option;
    bool failed = false;
    if (!check(name + strlen("pgseek."), value, &option, &error)) {
        session_fatal(session, "22023", error.message, error.detail);
        return false;
    }
    session->variables = variables_start(session->variables, option, value, &failed);
    return !failed;
}

/* ---- the options in force ---- */

static bool add_variable(struct session *session, enum pgseek_option option, struct pgseek_settings *out,
                         struct pgseek_error *error)
{
    const char *value = variables_get(session->variables, option);
    return !value || pgseek_settings_put(out, option, value, false, error);
}

bool setting_collect(struct session *session, const struct pgseek_settings *tag, struct pgseek_settings *out,
                     bool *cursor_from_variable, struct pgseek_error *error)
{
    pgseek_settings_init(out);
    out->mode = session->conf->mode;
    out->strict = session->conf->strict;
    out->deliver = session->conf->deliver;
    for (int i = 0; session->variables && i < PGSEEK_OPT_COUNT; i++) {
        enum pgseek_option option = (enum pgseek_option)i;
        bool hidden = tag->given & 1u << option;
        if (!hidden && variables_uncertain(session->variables, option)) {
            *error = (struct pgseek_error){.code = PGSEEK_PS000};
            snprintf(error->message, sizeof error->message, "the value of pgseek.%s is not certain any more",
                     pgseek_option_name(option));
            snprintf(error->detail, sizeof error->detail,
                     "The transaction in which it was set did something that the proxy cannot follow.");
            snprintf(error->hint, sizeof error->hint, "Set it again.");
            return false;
        }
        if (!hidden && !add_variable(session, option, out, error))
            return false;
    }
    *cursor_from_variable = out->cursor_kind == PGSEEK_CURSOR_TEXT && !(tag->given & 1u << PGSEEK_OPT_CURSOR);
    pgseek_settings_overlay(out, tag);
    return true;
}

/* ---- simple protocol: answered here ---- */

static bool is_reading(const struct pgseek_variable *variable)
{
    return variable->verb == PGSEEK_VAR_SHOW || variable->verb == PGSEEK_VAR_CURRENT_SETTING;
}

static const char *value_of(const struct pgseek_variable *variable)
{
    bool is_default = variable->value.kind == PGSEEK_ARG_ABSENT;
    if (variable->verb == PGSEEK_VAR_RESET || (variable->verb != PGSEEK_VAR_SET_CONFIG && is_default))
        return NULL;
    return variable->value.kind == PGSEEK_ARG_TEXT ? variable->value.text : "";
}

static bool is_local(const struct pgseek_variable *variable)
{
    if (variable->verb == PGSEEK_VAR_SET_CONFIG)
        return variable->local.kind == PGSEEK_ARG_TEXT && variable->local.text[0] == 't';
    return variable->verb == PGSEEK_VAR_SET_LOCAL;
}

static bool set_now(struct session *session, enum pgseek_option option, const char *value, bool local)
{
    bool failed = false;
    session->variables = variables_set(session->variables, option, value, local, &failed);
    session->variables = variables_settle(session->variables, session->status, &failed);
    return !failed;
}

static void answer_row(struct session *session, const char *column, const char *value, const char *tag)
{
    struct buf *out = to_frontend(session);
    wire_put_text_description(out, column);
    wire_put_text_row(out, value);
    wire_put_command(out, tag);
}

static void answer_set(struct session *session, const struct pgseek_variable *variable, bool local)
{
    if (local && session->status == 'I')
        wire_put_error(to_frontend(session), 'N',
                       &(struct wire_error){.severity = "WARNING",
                                            .sqlstate = "25P01",
                                            .message = "SET LOCAL can only be used in transaction blocks"});
    wire_put_command(to_frontend(session), variable->verb == PGSEEK_VAR_RESET ? "RESET" : "SET");
}

static enum action answered(struct session *session)
{
    wire_put_ready(to_frontend(session), session->status);
    sent_frontend(session);
    return ACTION_DONE;
}

static enum action answer(struct session *session, const struct pgseek_variable *variable)
{
    struct pgseek_error error;
    enum pgseek_option option;
    const char *name = variable->name.text;
    if (is_reading(variable)) {
        char column[80];
        snprintf(column, sizeof column, "pgseek.%s", name);
        bool is_show = variable->verb == PGSEEK_VAR_SHOW;
        answer_row(session, is_show ? column : variable->output_name, setting_value(session, name),
                   is_show ? "SHOW" : "SELECT 1");
        return answered(session);
    }
    if (!check(name, value_of(variable), &option, &error))
        return refuse(session, &error, true, span_of(NULL, 0));
    bool local = is_local(variable);
    if (!set_now(session, option, value_of(variable), local))
        return session_nomem(session);
    if (variable->verb == PGSEEK_VAR_SET_CONFIG)
        answer_row(session, variable->output_name, value_of(variable), "SELECT 1");
    else
        answer_set(session, variable, local);
    return answered(session);
}

/* In a failed block the server says 25P02 to whatever is sent. */
static enum action ask_failed_block(struct session *session)
{
    wire_put_query(to_backend(session), "SET pgseek.active = ''");
    sent_backend(session);
    return expect(session, PENDING_QUERY, ROLE_CLIENT) ? ACTION_DONE : session_nomem(session);
}

enum action setting_query(struct session *session, const struct pgseek_variable *variable, struct span message)
{
    (void)message;
    struct pgseek_error error = {.code = PGSEEK_PS000,
                                 .message = "a pgseek variable cannot be used behind messages without a Sync",
                                 .hint = "Send Sync first."};
    if (session->owed.readies > 0)
        return ACTION_HOLD;
    if (session->unsynced)
        return refuse(session, &error, true, span_of(NULL, 0));
    if (session->status == 'E')
        return ask_failed_block(session);
    if (variable->name.kind != PGSEEK_ARG_TEXT)
        return expect(session, PENDING_QUERY, ROLE_CLIENT) ? ACTION_FORWARD : session_nomem(session);
    return answer(session, variable);
}

/* ---- extended protocol: stand-ins ---- */

static const char *const stand_ins[] = {
    [PGSEEK_VAR_SET] = "SET pgseek.active = ''",
    [PGSEEK_VAR_SET_LOCAL] = "SET LOCAL pgseek.active = ''",
    [PGSEEK_VAR_RESET] = "RESET pgseek.active",
};

static void put_stand_in(struct session *session, const struct pgseek_variable *variable,
                         const struct wire_parse *parse)
{
    static const uint32_t text_oid[] = {OID_TEXT};
    const char *name = (const char *)parse->name.ptr;
    struct buf *out = to_backend(session);
    if (variable->verb == PGSEEK_VAR_SHOW) {
        char sql[128];
        int len = snprintf(sql, sizeof sql, "SELECT $1::pg_catalog.text AS \"pgseek.%.60s\"", variable->name.text);
        wire_put_parse(out, name, span_of(sql, (size_t)len), text_oid, 1);
    } else {
        wire_put_parse(out, name, span_cstr(stand_ins[variable->verb]), NULL, 0);
    }
    sent_backend(session);
}

static bool has_stand_in(const struct pgseek_variable *variable)
{
    return variable->verb != PGSEEK_VAR_SET_CONFIG && variable->verb != PGSEEK_VAR_CURRENT_SETTING;
}

static bool sets_literally(const struct pgseek_variable *variable)
{
    return !is_reading(variable) && variable->name.kind == PGSEEK_ARG_TEXT && variable->value.kind != PGSEEK_ARG_PARAM;
}

static bool keep_declared(struct statement *statement, const struct wire_parse *parse)
{
    statement->noids = parse->noids;
    statement->oids = mem_zalloc((size_t)parse->noids * sizeof *statement->oids);
    for (size_t i = 0; statement->oids && i < parse->noids; i++)
        statement->oids[i] = get_u32(parse->oids + i * 4);
    return statement->oids != NULL;
}

enum action setting_parse(struct session *session, struct pgseek_variable *variable, const struct wire_parse *parse,
                          struct span message)
{
    (void)message;
    struct pgseek_error error;
    enum pgseek_option option;
    if (sets_literally(variable) && !check(variable->name.text, value_of(variable), &option, &error)) {
        pgseek_variable_fini(variable);
        return refuse(session, &error, false, parse->name);
    }
    struct statement *statement = statement_new();
    struct pending *entry = statement ? expect(session, PENDING_PARSE, ROLE_CLIENT) : NULL;
    if (!entry) {
        pgseek_variable_fini(variable);
        mem_free(statement);
        return session_nomem(session);
    }
    statement->kind = STATEMENT_VARIABLE;
    statement->variable = *variable;
    entry->unnamed = parse->name.len == 0;
    bool kept = keep_declared(statement, parse);
    if (!change_statement(session, entry, parse->name, statement) || !kept)
        return session_nomem(session);
    if (!has_stand_in(&statement->variable))
        return ACTION_FORWARD;
    put_stand_in(session, &statement->variable, parse);
    return ACTION_DONE;
}

/* ---- Bind ---- */

/* A portal that does the statement's work when it is executed. */
static enum action bind_portal(struct session *session, struct portal *portal, struct span name, enum action action)
{
    struct pending *entry = portal ? expect(session, PENDING_BIND, ROLE_CLIENT) : NULL;
    if (!entry) {
        if (portal)
            object_unref(&portal->object);
        return session_nomem(session);
    }
    return change_portal(session, entry, name, portal) ? action : session_nomem(session);
}

/* A Bind that is none of ours after all. */
static enum action bind_plain(struct session *session, const struct wire_bind *bind)
{
    struct pending *entry = expect(session, PENDING_BIND, ROLE_CLIENT);
    return entry && change_portal(session, entry, bind->portal, NULL) ? ACTION_FORWARD : session_nomem(session);
}

static enum action bind_set(struct session *session, const struct pgseek_variable *variable,
                            const struct wire_bind *bind)
{
    struct portal *portal = portal_new();
    const char *value = value_of(variable);
    if (portal) {
        portal->kind = PORTAL_SET;
        portal->local = is_local(variable);
        pgseek_option_find(variable->name.text, strlen(variable->name.text), &portal->option);
        portal->value = value ? mem_strndup(value, strlen(value)) : NULL;
        if (value && !portal->value) {
            object_unref(&portal->object);
            portal = NULL;
        }
    }
    return bind_portal(session, portal, bind->portal, ACTION_FORWARD);
}

/* The value goes in as the stand-in's one parameter. */
static enum action bind_show(struct session *session, const struct pgseek_variable *variable,
                             const struct wire_bind *bind)
{
    if (bind->nparams != 0)
        return bind_plain(session, bind); /* the server refuses it */
    const char *text = setting_value(session, variable->name.text);
    struct value value = {.format = 0, .len = (int32_t)strlen(text), .data = (const uint8_t *)text};
    put_bind(to_backend(session), bind->portal, (const char *)bind->statement.ptr, &value, 1, bind->results,
             bind->nresults);
    sent_backend(session);
    struct portal *portal = portal_new();
    if (portal)
        portal->kind = PORTAL_SHOW;
    return bind_portal(session, portal, bind->portal, ACTION_DONE);
}

/* An argument's text, from the literal or the Bind: NULL for SQL NULL. False when it is absent or not in the Bind. */
static bool argument(const struct pgseek_arg *arg, const struct wire_param *params, size_t nparams, struct span *out)
{
    *out = span_of(NULL, 0);
    if (arg->kind == PGSEEK_ARG_TEXT)
        *out = span_cstr(arg->text);
    if (arg->kind != PGSEEK_ARG_PARAM)
        return arg->kind != PGSEEK_ARG_ABSENT;
    if (arg->param < 1 || (size_t)arg->param > nparams)
        return false;
    const struct wire_param *param = &params[arg->param - 1];
    if (param->len >= 0)
        *out = span_of(param->data ? param->data : (const uint8_t *)"", (size_t)param->len);
    return true;
}

struct call { /* set_config or current_setting with its arguments known */
    char name[64];
    char *value; /* owned */
    bool local;
};

/* Whether the name is one of ours; it is copied without its prefix. */
static bool call_name(const struct pgseek_variable *variable, const struct wire_param *params, size_t nparams,
                      struct call *call)
{
    struct span name;
    if (!argument(&variable->name, params, nparams, &name) || !name.ptr)
        return false;
    if (variable->name.kind == PGSEEK_ARG_PARAM) {
        if (name.len < 7 || strncasecmp((const char *)name.ptr, "pgseek.", 7) != 0)
            return false;
        name = span_of(name.ptr + 7, name.len - 7);
    }
    size_t len = name.len < sizeof call->name - 1 ? name.len : sizeof call->name - 1;
    for (size_t i = 0; i < len; i++)
        call->name[i] = (char)(name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? name.ptr[i] | 0x20 : name.ptr[i]);
    call->name[len] = '\0';
    return true;
}

static bool span_is_true(struct span text)
{
    if (text.len == 1 &&
        (text.ptr[0] == 1 || text.ptr[0] == 't' || text.ptr[0] == 'T' || text.ptr[0] == '1' || text.ptr[0] == 'y'))
        return true;
    return (text.len == 4 && strncasecmp((const char *)text.ptr, "true", 4) == 0) ||
           (text.len == 2 && strncasecmp((const char *)text.ptr, "on", 2) == 0) ||
           (text.len == 3 && strncasecmp((const char *)text.ptr, "yes", 3) == 0);
}

static bool call_value(struct session *session, const struct pgseek_variable *variable, const struct wire_param *params,
                       size_t nparams, struct call *call)
{
    struct span value = span_cstr("");
    struct span local = span_of(NULL, 0);
    if (variable->verb == PGSEEK_VAR_SET_CONFIG) {
        (void)argument(&variable->value, params, nparams, &value);
        (void)argument(&variable->local, params, nparams, &local);
    } else {
        value = span_cstr(setting_value(session, call->name));
    }
    call->local = span_is_true(local);
    call->value = mem_strndup((const char *)value.ptr, value.len);
    return call->value && strlen(call->value) == value.len;
}

/* The types of the client's parameters in the stand-in: as declared, else by where the argument stands. */
static void call_types(const struct statement *statement, uint32_t *types)
{
    const struct pgseek_variable *variable = &statement->variable;
    for (int i = 0; i < variable->param_count; i++) {
        bool is_switch = variable->local.kind == PGSEEK_ARG_PARAM && variable->local.param == i + 1;
        bool declared = (size_t)i < statement->noids && statement->oids[i] != 0 && statement->oids[i] != 705;
        types[i] = declared ? statement->oids[i] : is_switch ? OID_BOOL : OID_TEXT;
    }
    types[variable->param_count] = OID_TEXT;
}

/* `SELECT $k::text AS name` in the place of the call, under a statement that lives as long as this Bind. */
static bool put_call(struct session *session, const struct statement *statement, const struct wire_bind *bind,
                     const struct wire_param *params, const struct call *call)
{
    const struct pgseek_variable *variable = &statement->variable;
    size_t n = (size_t)variable->param_count + 1;
    const char *reserved = session->tagging->reserved;
    uint32_t *types = mem_alloc(n * sizeof *types);
    struct value *values = mem_alloc(n * sizeof *values);
    bool ok = types && values;
    if (ok) {
        char sql[192];
        int len = snprintf(sql, sizeof sql, "SELECT $%zu::pg_catalog.text AS \"%s\"", n, variable->output_name);
        call_types(statement, types);
        for (size_t i = 0; i + 1 < n; i++)
            values[i] = (struct value){.format = params[i].format, .len = params[i].len, .data = params[i].data};
        for (size_t i = 0; i + 1 < n; i++) /* the server must not see them */
            if (variable->value.kind == PGSEEK_ARG_PARAM && (size_t)variable->value.param == i + 1)
                values[i] = (struct value){.len = -1};
        values[n - 1] = (struct value){.len = (int32_t)strlen(call->value), .data = (const uint8_t *)call->value};
        struct buf *out = to_backend(session);
        wire_put_target(out, 'C', 'S', span_cstr(reserved));
        wire_put_parse(out, reserved, span_of(sql, (size_t)len), types, n);
        put_bind(out, bind->portal, reserved, values, n, bind->results, bind->nresults);
        wire_put_target(out, 'C', 'S', span_cstr(reserved));
        sent_backend(session);
    }
    mem_free(types);
    mem_free(values);
    return ok && expect(session, PENDING_CLOSE, ROLE_SWALLOW) && expect(session, PENDING_PARSE, ROLE_SWALLOW);
}

static struct portal *call_portal(const struct pgseek_variable *variable, enum pgseek_option option, struct call *call)
{
    struct portal *portal = portal_new();
    if (!portal || variable->verb == PGSEEK_VAR_CURRENT_SETTING) {
        if (portal)
            portal->kind = PORTAL_COMMAND; /* nothing to do */
        return portal;
    }
    portal->kind = PORTAL_SET;
    portal->option = option;
    portal->local = call->local;
    portal->value = call->value;
    call->value = NULL;
    return portal;
}

static enum action bind_call(struct session *session, struct statement *statement, const struct wire_bind *bind,
                             const struct wire_param *params)
{
    const struct pgseek_variable *variable = &statement->variable;
    struct call call = {0};
    struct pgseek_error error;
    enum pgseek_option option = PGSEEK_OPT_CURSOR;
    if (bind->nparams != variable->param_count || !call_name(variable, params, bind->nparams, &call))
        return bind_plain(session, bind);
    if (!call_value(session, variable, params, bind->nparams, &call)) {
        mem_free(call.value);
        return session_nomem(session);
    }
    enum action action;
    if (variable->verb == PGSEEK_VAR_SET_CONFIG && !check(call.name, call.value, &option, &error)) {
        action = refuse(session, &error, false, span_of(NULL, 0));
    } else if (!session_tagging(session) || !put_call(session, statement, bind, params, &call)) {
        action = session_nomem(session);
    } else {
        action = bind_portal(session, call_portal(variable, option, &call), bind->portal, ACTION_DONE);
        if (action == ACTION_DONE && !expect(session, PENDING_CLOSE, ROLE_SWALLOW))
            action = session_nomem(session);
    }
    mem_free(call.value);
    return action;
}

/* The result of a page is not known before its end: it is asked to come, and waited for. */
static bool must_wait(struct session *session, const struct pgseek_variable *variable)
{
    if (session->owed.readies == 0 && !(is_reading(variable) && pages_are_owed(session)))
        return false;
    if (session->owed.readies == 0) {
        wire_put_empty(to_backend(session), 'H');
        sent_backend(session);
    }
    return true;
}

enum action setting_bind(struct session *session, struct statement *statement, const struct wire_bind *bind,
                         struct span message)
{
    (void)message;
    const struct pgseek_variable *variable = &statement->variable;
    if (has_stand_in(variable) && !is_reading(variable))
        return bind_set(session, variable, bind);
    if (must_wait(session, variable))
        return ACTION_HOLD;
    if (variable->verb == PGSEEK_VAR_SHOW)
        return bind_show(session, variable, bind);
    struct wire_param *params = mem_alloc((size_t)bind->nparams * sizeof *params);
    if (!params)
        return session_nomem(session);
    enum action action =
        wire_bind_params(bind, params) ? bind_call(session, statement, bind, params) : bind_plain(session, bind);
    mem_free(params);
    return action;
}
