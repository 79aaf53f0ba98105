/* setting_call.c - set_config and current_setting of our variables, bound in the extended protocol.
 *
 * Only the Bind tells whose variable it is: its name may be a parameter. A stand-in that gives the value back goes to
 * the server in the place of the call. It must not know how values are kept. */
#include "setting.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define OID_BOOL 16
#define OID_TEXT 25

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

enum action setting_bind_call(struct session *session, struct statement *statement, const struct wire_bind *bind,
                              const struct wire_param *params)
{
    const struct pgseek_variable *variable = &statement->variable;
    struct call call = {0};
    struct pgseek_error error;
    enum pgseek_option option = PGSEEK_OPT_CURSOR;
    if (bind->nparams != variable->param_count || !call_name(variable, params, bind->nparams, &call))
        return setting_bind_plain(session, bind);
    if (!call_value(session, variable, params, bind->nparams, &call)) {
        mem_free(call.value);
        return session_nomem(session);
    }
    enum action action;
    if (variable->verb == PGSEEK_VAR_SET_CONFIG && !setting_check(call.name, call.value, &option, &error)) {
        action = refuse(session, &error, false, span_of(NULL, 0));
    } else if (!session_tagging(session) || !put_call(session, statement, bind, params, &call)) {
        action = session_nomem(session);
    } else {
        action = setting_bind_portal(session, call_portal(variable, option, &call), bind->portal, ACTION_DONE);
        if (action == ACTION_DONE && !expect(session, PENDING_CLOSE, ROLE_SWALLOW))
            action = session_nomem(session);
    }
    mem_free(call.value);
    return action;
}
