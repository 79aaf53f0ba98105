/* variable.c - statements that are about one of our session variables: SET, RESET, SHOW, set_config, current_setting.
 *
 * It reads these few statements, whole, and finds our variables inside larger ones; it must not know what a session
 * keeps. It decides on the items of skim.h, so a literal or a comment that mentions a variable is none. */
#include "fault.h"
#include "option.h"
#include "skim.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX "pgseek"
#define RESERVED "active" /* the stand-in that the server is sent */
/* How far into a call its name argument is looked for: calls may nest, and the look must stay linear. */
#define CALL_MAX_ITEMS 64

/* What SHOW and current_setting know besides the options. */
static const char *const results[] = {"next_cursor", "prev_cursor", "has_more", "has_prev",
                                      "rows",        "total",       "action",   "page_id"};

/* ---- the statement under the eye ---- */

struct reading {
    struct skim skim;
    struct skim_item item;
};

static void step(struct reading *in)
{
    skim_token(&in->skim, &in->item);
}

static struct reading read_from(const char *sql, size_t len)
{
    struct reading in = {.skim = skim_init(sql, len)};
    step(&in);
    return in;
}

static bool accept_word(struct reading *in, const char *word)
{
    if (!skim_is_word(&in->item, word))
        return false;
    step(in);
    return true;
}

static bool accept_mark(struct reading *in, char mark)
{
    if (!skim_is_mark(&in->item, mark))
        return false;
    step(in);
    return true;
}

static bool accept_operator(struct reading *in, const char *sign)
{
    if (!skim_is_operator(&in->item, sign))
        return false;
    step(in);
    return true;
}

/* A name, written bare or in quotes. Setting names are compared in any case, quoted or not; function names are not. */
static bool accept_name(struct reading *in, const char *wanted, bool any_case)
{
    char name[SKIM_NAME_BYTES + 1];
    if (!skim_name(&in->item, name))
        return false;
    if (any_case ? !skim_same(name, strlen(name), wanted) : strcmp(name, wanted) != 0)
        return false;
    step(in);
    return true;
}

/* ---- is a variable of ours anywhere in the text? ---- */

static bool accept_our_prefix(struct reading *in)
{
    struct reading ahead = *in;
    if (!accept_name(&ahead, PREFIX, true) || !accept_mark(&ahead, '.'))
        return false;
    *in = ahead;
    return true;
}

/* SET, RESET or SHOW of one of ours, at the start of a statement. */
static bool is_our_command(struct reading in)
{
    if (accept_word(&in, "set")) {
        if (!accept_word(&in, "session"))
            accept_word(&in, "local");
    } else if (!accept_word(&in, "reset") && !accept_word(&in, "show")) {
        return false;
    }
    return accept_our_prefix(&in);
}

/* Whether the literal is a name of ours. */
static bool is_our_literal(const struct skim_item *item)
{
    struct text value = {0};
    bool is_ours = skim_string(item, &value) && value.len > sizeof PREFIX - 1 &&
                   skim_same(value.ptr, sizeof PREFIX - 1, PREFIX) && value.ptr[sizeof PREFIX - 1] == '.';
    text_fini(&value);
    return is_ours;
}

static bool accept_function(struct reading *in)
{
    return accept_name(in, "set_config", false) || accept_name(in, "current_setting", false);
}

/* A call of one of the two functions whose name argument is a literal of ours: the first literal behind its bracket,
 * through further brackets and casts, or one behind =>. */
static bool is_our_call(struct reading in)
{
    if (!accept_function(&in) || !skim_is_mark(&in.item, '('))
        return false;
    size_t depth = 0;
    size_t left = CALL_MAX_ITEMS;
    bool is_name = false;
    do {
        if (is_name && is_our_literal(&in.item))
            return true;
        is_name = skim_is_mark(&in.item, '(') || skim_is_operator(&in.item, "=>");
        depth += skim_is_mark(&in.item, '(');
        depth -= skim_is_mark(&in.item, ')');
        step(&in);
    } while (depth > 0 && --left > 0 && in.item.kind > SKIM_BROKEN);
    return false;
}

/* What is asked of the whole text before its one statement is read. */
struct survey {
    bool is_ours;       /* a variable of ours stands somewhere */
    bool is_closed;     /* no literal or comment runs into the end */
    size_t nstatements; /* empty ones not counted */
    int param_count;    /* highest $n */
};

static struct survey survey_text(const char *sql, size_t len)
{
    struct survey survey = {0};
    bool is_begun = false;
    struct reading in = read_from(sql, len);
    for (; in.item.kind > SKIM_BROKEN; step(&in)) {
        bool is_end = skim_is_mark(&in.item, ';');
        bool is_first = !is_begun && !is_end;
        survey.nstatements += is_first;
        if (!survey.is_ours)
            survey.is_ours = (is_first && is_our_command(in)) || is_our_call(in);
        is_begun = !is_end;
        if (skim_param(&in.item) > survey.param_count)
            survey.param_count = skim_param(&in.item);
    }
    survey.is_closed = in.item.kind == SKIM_END;
    return survey;
}

/* ---- errors ---- */

static bool not_alone(struct pgseek_error *error)
{
    fault(error, "a pgseek variable inside a larger statement");
    fault_detail(error,
                 "SET, RESET, SHOW, set_config and current_setting of a pgseek variable must be the whole statement.");
    return fault_hint(error, "Send it alone.");
}

static bool not_understood(struct pgseek_error *error, const char *hint)
{
    fault(error, "bad pgseek variable");
    fault_detail(error, "The statement about a pgseek variable cannot be read.");
    return fault_hint(error, "%s", hint);
}

/* ---- arguments ---- */

static bool arg_text(struct pgseek_arg *arg, const char *text, size_t len)
{
    free(arg->text);
    arg->kind = PGSEEK_ARG_TEXT;
    arg->text = strndup(text, len);
    return arg->text != NULL;
}

static bool arg_literal(struct pgseek_arg *arg, const struct skim_item *item)
{
    struct text value = {0};
    if (skim_string(item, &value)) {
        arg->kind = PGSEEK_ARG_TEXT;
        arg->text = text_take(&value);
    }
    text_fini(&value);
    return arg->text != NULL;
}

/* The types that change nothing in a text or boolean value. */
static bool accept_type(struct reading *in)
{
    static const char *const types[] = {"text", "varchar", "bool", "boolean"};
    struct reading ahead = *in;
    if (accept_name(&ahead, "pg_catalog", false) && accept_mark(&ahead, '.'))
        *in = ahead;
    if (accept_word(in, "character"))
        return accept_word(in, "varying");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (accept_name(in, types[i], false))
            return true;
    return false;
}

/* literal | NULL | $n | true | false, without casts. */
static bool read_plain_arg(struct reading *in, struct pgseek_arg *arg)
{
    bool is_good = true;
    if (in->item.kind == SKIM_STRING) {
        is_good = arg_literal(arg, &in->item);
    } else if (in->item.kind == SKIM_PARAM) {
        arg->kind = PGSEEK_ARG_PARAM;
        arg->param = skim_param(&in->item);
        is_good = arg->param > 0;
    } else if (skim_is_word(&in->item, "null")) {
        arg->kind = PGSEEK_ARG_NULL;
    } else if (skim_is_word(&in->item, "true") || skim_is_word(&in->item, "false")) {
        is_good = arg_text(arg, skim_is_word(&in->item, "true") ? "t" : "f", 1);
    } else {
        return false;
    }
    step(in);
    return is_good;
}

/* Any number of `::type`. */
static bool accept_casts(struct reading *in)
{
    while (accept_mark(in, ':'))
        if (!accept_mark(in, ':') || !accept_type(in))
            return false;
    return true;
}

/* CAST(argument AS type), or the argument with casts behind it. */
static bool read_cast_arg(struct reading *in, struct pgseek_arg *arg)
{
    bool is_cast = accept_word(in, "cast");
    if (is_cast && !accept_mark(in, '('))
        return false;
    if (!read_plain_arg(in, arg) || !accept_casts(in))
        return false;
    return !is_cast || (accept_word(in, "as") && accept_type(in) && accept_mark(in, ')'));
}

/* An argument, perhaps in parentheses: drivers that write values into the text put them there. */
static bool read_arg(struct reading *in, struct pgseek_arg *arg)
{
    size_t open = 0;
    while (accept_mark(in, '('))
        open++;
    bool is_read = read_cast_arg(in, arg);
    while (is_read && open > 0 && accept_mark(in, ')')) {
        open--;
        is_read = accept_casts(in);
    }
    return is_read && open == 0;
}

/* ---- names ---- */

static bool is_result(const char *name)
{
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (strcmp(name, results[i]) == 0)
            return true;
    return false;
}

static bool check_name(const struct pgseek_variable *variable, struct pgseek_error *error)
{
    const char *name = variable->name.text;
    enum pgseek_option option = PGSEEK_OPT_COUNT;
    bool only_reads = variable->verb == PGSEEK_VAR_SHOW || variable->verb == PGSEEK_VAR_CURRENT_SETTING;
    if (pgseek_option_find(name, strlen(name), &option) || (only_reads && is_result(name)))
        return true;
    if (!is_result(name) && strcmp(name, RESERVED) != 0)
        return option_unknown(error, name, strlen(name));
    fault(error, "bad pgseek variable");
    fault_detail(error, "pgseek.%s is pgseek's own.", fault_excerpt(name, strlen(name)).text);
    return fault_hint(error, is_result(name) ? "Read it with SHOW; it cannot be set." : "Use another name.");
}

/* Keeps what follows "pgseek." in lower case. */
static bool keep_name(struct pgseek_arg *arg, const char *name, size_t len)
{
    if (!arg_text(arg, name, len))
        return false;
    for (char *at = arg->text; *at; at++)
        *at = skim_fold(*at);
    return true;
}

/* The whole name was a literal: cuts "pgseek." off. */
static bool cut_prefix(struct pgseek_arg *arg)
{
    char *whole = arg->text;
    arg->text = NULL;
    bool is_kept = keep_name(arg, whole + sizeof PREFIX, strlen(whole) - sizeof PREFIX);
    free(whole);
    return is_kept;
}

/* A literal value must fit now; a bound one is read when it is bound. */
static bool check_value(const struct pgseek_variable *variable, struct pgseek_error *error)
{
    struct pgseek_settings scratch;
    enum pgseek_option option = PGSEEK_OPT_COUNT;
    if (variable->name.kind != PGSEEK_ARG_TEXT || variable->value.kind != PGSEEK_ARG_TEXT)
        return true;
    if (!pgseek_option_find(variable->name.text, strlen(variable->name.text), &option))
        return true;
    pgseek_settings_init(&scratch);
    return pgseek_settings_put(&scratch, option, variable->value.text, false, error);
}

/* ---- SET, RESET, SHOW ---- */

/* string | number | name, as SET has it; names are folded unless quoted. No option takes a number with a sign. */
static bool read_set_value(struct reading *in, struct pgseek_arg *arg)
{
    char name[SKIM_NAME_BYTES + 1];
    bool is_read = false;
    if (in->item.kind == SKIM_STRING)
        is_read = arg_literal(arg, &in->item);
    else if (in->item.kind == SKIM_NUMBER)
        is_read = arg_text(arg, in->item.start, (size_t)(in->item.end - in->item.start));
    else if (!skim_is_word(&in->item, "null") && skim_name(&in->item, name))
        is_read = arg_text(arg, name, strlen(name));
    step(in);
    return is_read;
}

static bool read_set(struct reading *in, struct pgseek_variable *variable)
{
    variable->verb = PGSEEK_VAR_SET;
    if (!accept_word(in, "session") && accept_word(in, "local"))
        variable->verb = PGSEEK_VAR_SET_LOCAL;
    char name[SKIM_NAME_BYTES + 1];
    if (!accept_our_prefix(in) || !skim_name(&in->item, name) || !keep_name(&variable->name, name, strlen(name)))
        return false;
    step(in);
    if (!accept_operator(in, "=") && !accept_word(in, "to"))
        return false;
    return accept_word(in, "default") || read_set_value(in, &variable->value);
}

static bool read_name_only(struct reading *in, struct pgseek_variable *variable, enum pgseek_var_verb verb)
{
    variable->verb = verb;
    char name[SKIM_NAME_BYTES + 1];
    if (!accept_our_prefix(in) || !skim_name(&in->item, name) || !keep_name(&variable->name, name, strlen(name)))
        return false;
    step(in);
    return true;
}

/* ---- SELECT set_config(...), SELECT current_setting(...) ---- */

static bool read_arguments(struct reading *in, struct pgseek_variable *variable)
{
    bool is_set = variable->verb == PGSEEK_VAR_SET_CONFIG;
    if (!accept_mark(in, '(') || !read_arg(in, &variable->name))
        return false;
    if (is_set && (!accept_mark(in, ',') || !read_arg(in, &variable->value)))
        return false;
    bool has_last = accept_mark(in, ',');
    if (has_last && !read_arg(in, &variable->local))
        return false;
    return (has_last || !is_set) && accept_mark(in, ')');
}

/* 't' or 'f'. NULL counts as false in set_config; current_setting then gives NULL, and keeps it. */
static bool normalise_local(struct pgseek_variable *variable)
{
    struct pgseek_arg *local = &variable->local;
    if (local->kind == PGSEEK_ARG_NULL && variable->verb == PGSEEK_VAR_SET_CONFIG)
        return arg_text(local, "f", 1);
    if (local->kind != PGSEEK_ARG_TEXT)
        return true;
    bool truth = false;
    bool is_short = strcmp(local->text, "t") == 0 || strcmp(local->text, "f") == 0;
    if (!is_short && !option_boolean(local->text, &truth))
        return false;
    return is_short || arg_text(local, truth ? "t" : "f", 1);
}

static bool read_output_name(struct reading *in, struct pgseek_variable *variable)
{
    bool has_as = accept_word(in, "as");
    if (!has_as && (in->item.kind <= SKIM_BROKEN || skim_is_mark(&in->item, ';')))
        return true;
    if (!skim_name(&in->item, variable->output_name))
        return false;
    step(in);
    return true;
}

static bool read_call(struct reading *in, struct pgseek_variable *variable)
{
    struct reading ahead = *in;
    if (accept_name(&ahead, "pg_catalog", false) && accept_mark(&ahead, '.'))
        *in = ahead;
    variable->verb = PGSEEK_VAR_SET_CONFIG;
    const char *function = "set_config";
    if (!accept_name(in, function, false)) {
        variable->verb = PGSEEK_VAR_CURRENT_SETTING;
        function = "current_setting";
        if (!accept_name(in, function, false))
            return false;
    }
    memcpy(variable->output_name, function, strlen(function) + 1);
    return read_arguments(in, variable) && normalise_local(variable) && read_output_name(in, variable);
}

/* ---- the whole ---- */

static bool read_statement(struct reading *in, struct pgseek_variable *variable)
{
    bool is_read = false;
    while (accept_mark(in, ';'))
        ;
    if (accept_word(in, "set"))
        is_read = read_set(in, variable);
    else if (accept_word(in, "reset"))
        is_read = read_name_only(in, variable, PGSEEK_VAR_RESET);
    else if (accept_word(in, "show"))
        is_read = read_name_only(in, variable, PGSEEK_VAR_SHOW);
    else if (accept_word(in, "select"))
        is_read = read_call(in, variable);
    while (is_read && accept_mark(in, ';'))
        ;
    return is_read && in->item.kind == SKIM_END;
}

static bool is_call(const struct pgseek_variable *variable)
{
    return variable->verb == PGSEEK_VAR_SET_CONFIG || variable->verb == PGSEEK_VAR_CURRENT_SETTING;
}

/* Reads a statement that is known to be about one of ours. False with *error set. */
static bool read_ours(struct reading *in, struct pgseek_variable *variable, struct pgseek_error *error)
{
    if (!read_statement(in, variable)) {
        bool is_alone = variable->name.kind == PGSEEK_ARG_TEXT && !is_call(variable);
        return is_alone
                   ? not_understood(error, "Write SET pgseek.name = 'value', RESET pgseek.name or SHOW pgseek.name.")
                   : not_alone(error);
    }
    if (is_call(variable) && !cut_prefix(&variable->name))
        return not_understood(error, "The proxy ran out of memory.");
    return check_name(variable, error) && check_value(variable, error);
}

/* A call whose name is a parameter: which setting it is about shows when it is bound. */
static bool is_call_by_parameter(struct reading *in, struct pgseek_variable *variable)
{
    return read_statement(in, variable) && is_call(variable) && variable->name.kind == PGSEEK_ARG_PARAM;
}

enum pgseek_found pgseek_variable_read(const char *sql, size_t len, struct pgseek_variable *variable,
                                       struct pgseek_error *error)
{
    *variable = (struct pgseek_variable){0};
    if (!pgseek_mentions(sql, len) && !pgseek_may_be_config_call(sql, len))
        return PGSEEK_FOUND_NONE;
    struct survey survey = survey_text(sql, len);
    if (!survey.is_closed || (!survey.is_ours && survey.nstatements != 1))
        return PGSEEK_FOUND_NONE;

    struct reading in = read_from(sql, len);
    enum pgseek_found found = PGSEEK_FOUND_SOME;
    variable->param_count = survey.param_count;
    if (survey.nstatements > 1)
        found = not_alone(error) ? PGSEEK_FOUND_SOME : PGSEEK_FOUND_BAD;
    else if (survey.is_ours)
        found = read_ours(&in, variable, error) ? PGSEEK_FOUND_SOME : PGSEEK_FOUND_BAD;
    else
        found = is_call_by_parameter(&in, variable) ? PGSEEK_FOUND_SOME : PGSEEK_FOUND_NONE;
    if (found != PGSEEK_FOUND_SOME)
        pgseek_variable_fini(variable);
    return found;
}

void pgseek_variable_fini(struct pgseek_variable *variable)
{
    free(variable->name.text);
    free(variable->value.text);
    free(variable->local.text);
    *variable = (struct pgseek_variable){0};
}
