/* setting.c - statements about our variables: SET, RESET, SHOW, set_config and current_setting.
 *
 * Values never reach the server. Alone and in the simple protocol they are answered here; in the extended protocol a
 * stand-in with the same shape goes to the server, so that names, order, errors and row limits stay its business. It
 * must not know what a value does. */
#include "setting.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define OID_BOOL 16
#define OID_TEXT 25

/* ---- values ---- */

/* pgseek.total is an option and a result: once a page has been asked for it, it is that page's. */
static bool is_known_total(const struct session *session, const char *name)
{
    return session->tagging && session->tagging->results.has_total && strcmp(name, page_result_name(PAGE_TOTAL)) == 0;
}

const char *setting_value(struct session *session, const char *name)
{
    enum pgseek_option option;
    enum page_result result;
    if (is_known_total(session, name))
        return session->tagging->results.value[PAGE_TOTAL];
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

bool setting_check(const char *name, const char *value, enum pgseek_option *option, struct pgseek_error *error)
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
    if (!setting_check(name + strlen("pgseek."), value, &option, &error)) {
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

/* Every Query takes the unnamed statement and portal away. The server hears of it with the next message that could
 * name them: until then it may have none of ours to answer. */
static enum action answered(struct session *session)
{
    session->closes_unnamed = true;
    bool ok = names_put(&session->statements, span_cstr(""), NULL, NULL) &&
              names_put(&session->portals, span_cstr(""), NULL, NULL);
    wire_put_ready(to_frontend(session), session->status);
    sent_frontend(session);
    return ok ? ACTION_DONE : session_nomem(session);
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
    if (!setting_check(name, value_of(variable), &option, &error))
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

enum action setting_query(struct session *session, const struct pgseek_variable *variable)
{
    struct pgseek_error error = {.code = PGSEEK_PS000,
                                 .message = "a pgseek variable cannot be used behind messages without a Sync",
                                 .hint = "Send Sync first."};
    if (session->owed.readies > 0)
        return ACTION_HOLD;
    if (session->unsynced && session->owed.count > 0)
        return hold_for_replies(session);
    if (session->unsynced && session->ran)
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

enum action setting_parse(struct session *session, struct pgseek_variable *variable, const struct wire_parse *parse,
                          struct span message)
{
    (void)message;
    struct pgseek_error error;
    enum pgseek_option option;
    if (sets_literally(variable) && !setting_check(variable->name.text, value_of(variable), &option, &error)) {
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
    bool kept = statement_keep_oids(statement, parse, 0);
    if (!change_statement(session, entry, parse->name, statement) || !kept)
        return session_nomem(session);
    if (!has_stand_in(&statement->variable))
        return ACTION_FORWARD;
    put_stand_in(session, &statement->variable, parse);
    return ACTION_DONE;
}

/* ---- Bind ---- */

enum action setting_bind_portal(struct session *session, struct portal *portal, struct span name, enum action action)
{
    struct pending *entry = portal ? expect(session, PENDING_BIND, ROLE_CLIENT) : NULL;
    if (!entry) {
        if (portal)
            object_unref(&portal->object);
        return session_nomem(session);
    }
    return change_portal(session, entry, name, portal) ? action : session_nomem(session);
}

enum action setting_bind_plain(struct session *session, const struct wire_bind *bind)
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
    return setting_bind_portal(session, portal, bind->portal, ACTION_FORWARD);
}

/* The value goes in as the stand-in's one parameter. */
static enum action bind_show(struct session *session, const struct pgseek_variable *variable,
                             const struct wire_bind *bind)
{
    if (bind->nparams != 0)
        return setting_bind_plain(session, bind); /* the server refuses it */
    const char *text = setting_value(session, variable->name.text);
    struct value value = {.format = 0, .len = (int32_t)strlen(text), .data = (const uint8_t *)text};
    put_bind(to_backend(session), bind->portal, (const char *)bind->statement.ptr, &value, 1, bind->results,
             bind->nresults);
    sent_backend(session);
    struct portal *portal = portal_new();
    if (portal)
        portal->kind = PORTAL_SHOW;
    return setting_bind_portal(session, portal, bind->portal, ACTION_DONE);
}

/* The result of a page is not known before its end: it is asked to come, and waited for. */
static bool must_wait(struct session *session, const struct pgseek_variable *variable)
{
    bool may_change = is_reading(variable) && (pages_are_owed(session) || commits_are_owed(session));
    if (session->owed.readies == 0 && !may_change)
        return false;
    if (session->owed.readies == 0)
        (void)hold_for_replies(session);
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
    enum action action = wire_bind_params(bind, params) ? setting_bind_call(session, statement, bind, params)
                                                        : setting_bind_plain(session, bind);
    mem_free(params);
    return action;
}
