/* text.c - sorts the client's SQL texts into plain ones, commands, variables and pages. */
#include "text.h"

#include <string.h>

/* ---- words ---- */

/* Words that matter without a mention of pgseek. */
static bool is_command_word(enum pgseek_word word)
{
    switch (word) {
    case PGSEEK_WORD_OTHER:
    case PGSEEK_WORD_SELECT:
    case PGSEEK_WORD_EXPLAIN:
    case PGSEEK_WORD_DECLARE: return false;
    default: return true;
    }
}

static bool paginates(const struct session *session, enum pgseek_word word)
{
    const char *value = word == PGSEEK_WORD_SELECT ? variables_get(session->variables, PGSEEK_OPT_PAGINATE) : NULL;
    if (!value)
        return false;
    struct pgseek_settings settings;
    struct pgseek_error error;
    pgseek_settings_init(&settings);
    return pgseek_settings_put(&settings, PGSEEK_OPT_PAGINATE, value, false, &error) && settings.paginate;
}

/* What a text is; exactly one of the structs is filled, and then owned by the caller. */
enum text_kind { TEXT_PLAIN, TEXT_COMMAND, TEXT_VARIABLE, TEXT_TAGGED, TEXT_BAD };

struct reading {
    enum text_kind kind;
    enum pgseek_word word;
    struct pgseek_tag tag;
    struct pgseek_variable variable;
    struct pgseek_command command;
    struct pgseek_error error;
};

static bool read_tag(struct reading *out, const char *sql, size_t len)
{
    enum pgseek_found found = pgseek_tag_read(sql, len, &out->tag, &out->error);
    if (found == PGSEEK_FOUND_NONE)
        return false;
    out->kind = found == PGSEEK_FOUND_BAD ? TEXT_BAD : TEXT_TAGGED;
    return true;
}

static bool read_variable(struct reading *out, const char *sql, size_t len)
{
    enum pgseek_found found = pgseek_variable_read(sql, len, &out->variable, &out->error);
    if (found == PGSEEK_FOUND_NONE)
        return false;
    out->kind = found == PGSEEK_FOUND_BAD ? TEXT_BAD : TEXT_VARIABLE;
    return true;
}

static void read_text(struct session *session, struct span text, struct reading *out)
{
    const char *sql = (const char *)text.ptr;
    memset(out, 0, sizeof *out);
    out->word = pgseek_first_word(sql, text.len);
    bool mentions = pgseek_mentions(sql, text.len);
    if (mentions && (read_variable(out, sql, text.len) || read_tag(out, sql, text.len)))
        return;
    if (!mentions && pgseek_may_be_config_call(sql, text.len) && read_variable(out, sql, text.len))
        return;
    if (is_command_word(out->word)) {
        out->kind = TEXT_COMMAND;
        pgseek_command_read(sql, text.len, &out->command);
        return;
    }
    if (!paginates(session, out->word))
        return;
    out->kind = TEXT_TAGGED;
    pgseek_settings_init(&out->tag.settings);
}

/* ---- plain ---- */

static void forget_unnamed(struct session *session)
{
    if (session->statements.count && !names_put(&session->statements, span_cstr(""), NULL, NULL))
        session_nomem(session);
}

enum action text_plain_query(struct session *session)
{
    forget_unnamed(session);
    return expect(session, PENDING_QUERY, ROLE_CLIENT) ? ACTION_FORWARD : session_nomem(session);
}

enum action text_plain_parse(struct session *session, struct span name)
{
    struct pending *entry = expect(session, PENDING_PARSE, ROLE_CLIENT);
    if (!entry || !change_statement(session, entry, name, NULL))
        return session_nomem(session);
    entry->unnamed = name.len == 0;
    return ACTION_FORWARD;
}

/* ---- Query ---- */

static enum action query_command(struct session *session, const struct pgseek_command *command)
{
    struct pgseek_error error;
    if (must_follow(session) || name_may_return(session, span_cstr(command->name)))
        return ACTION_HOLD;
    if (command_is_refused(session, command, &error))
        return refuse(session, &error, true, span_of(NULL, 0));
    forget_unnamed(session);
    struct pending *entry = expect(session, PENDING_QUERY, ROLE_CLIENT);
    if (!entry || !command_apply(session, entry, command))
        return session_nomem(session);
    return ACTION_FORWARD;
}

/* A tagged Query has no statement on the server: one is made for the length of its handling. */
static enum action query_tagged(struct session *session, struct reading *reading, struct span sql, struct span message)
{
    struct statement *statement = statement_new();
    if (!statement) {
        pgseek_tag_fini(&reading->tag);
        return session_nomem(session);
    }
    statement->kind = STATEMENT_TAGGED;
    statement->tag = reading->tag;
    statement->sql = mem_strndup((const char *)sql.ptr, sql.len);
    statement->sql_len = sql.len;
    enum action action =
        statement->sql
            ? paginate(session, &(struct request){.statement = statement, .simple = true, .message = message})
            : session_nomem(session);
    object_unref(&statement->object);
    return action;
}

enum action text_query(struct session *session, struct span message)
{
    struct span sql;
    if (!wire_read_query(span_of(message.ptr + WIRE_HEADER, message.len - WIRE_HEADER), &sql))
        return text_plain_query(session);
    struct reading reading;
    read_text(session, sql, &reading);
    enum action action;
    switch (reading.kind) {
    case TEXT_PLAIN: return text_plain_query(session);
    case TEXT_COMMAND: return query_command(session, &reading.command);
    case TEXT_BAD: return refuse(session, &reading.error, true, span_of(NULL, 0));
    case TEXT_VARIABLE:
        action = setting_query(session, &reading.variable);
        pgseek_variable_fini(&reading.variable);
        return action;
    case TEXT_TAGGED: return query_tagged(session, &reading, sql, message);
    }
    return text_plain_query(session);
}

/* ---- Parse ---- */

#define OID_TEXT 25
#define OID_UNKNOWN 705

/* `cursor=$n`: the server is told of a parameter n of type text, unless the client gave it a type. */
static bool declare_cursor(struct statement *statement, const struct wire_parse *parse)
{
    int n = statement->tag.settings.cursor_kind == PGSEEK_CURSOR_PARAM ? statement->tag.settings.cursor_param : 0;
    if (!statement_keep_oids(statement, parse, (size_t)n))
        return false;
    if (n > 0 && (statement->oids[n - 1] == 0 || statement->oids[n - 1] == OID_UNKNOWN))
        statement->oids[n - 1] = OID_TEXT;
    return true;
}

static bool oids_changed(const struct statement *statement, const struct wire_parse *parse)
{
    if (statement->noids != parse->noids)
        return true;
    for (size_t i = 0; i < statement->noids; i++)
        if (statement->oids[i] != get_u32(parse->oids + i * 4))
            return true;
    return false;
}

static enum action register_statement(struct session *session, const struct wire_parse *parse,
                                      struct statement *statement)
{
    struct pending *entry = expect(session, PENDING_PARSE, ROLE_CLIENT);
    if (!entry) {
        object_unref(&statement->object);
        return session_nomem(session);
    }
    entry->unnamed = parse->name.len == 0;
    statement->group = session->group;
    if (!change_statement(session, entry, parse->name, statement))
        return session_nomem(session);
    return ACTION_FORWARD;
}

static enum action parse_tagged(struct session *session, struct reading *reading, const struct wire_parse *parse)
{
    struct statement *statement = statement_new();
    if (!statement) {
        pgseek_tag_fini(&reading->tag);
        return session_nomem(session);
    }
    statement->kind = STATEMENT_TAGGED;
    statement->tag = reading->tag;
    statement->sql = mem_strndup((const char *)parse->sql.ptr, parse->sql.len);
    statement->sql_len = parse->sql.len;
    if (!statement->sql || !declare_cursor(statement, parse)) {
        object_unref(&statement->object);
        return session_nomem(session);
    }
    bool changed = oids_changed(statement, parse);
    enum action action = register_statement(session, parse, statement);
    if (action != ACTION_FORWARD || !changed)
        return action;
    wire_put_parse(to_backend(session), (const char *)parse->name.ptr, parse->sql, statement->oids, statement->noids);
    sent_backend(session);
    return ACTION_DONE;
}

static enum action parse_command(struct session *session, const struct reading *reading, const struct wire_parse *parse)
{
    struct statement *statement = statement_new();
    if (!statement)
        return session_nomem(session);
    statement->kind = STATEMENT_COMMAND;
    statement->command = reading->command;
    return register_statement(session, parse, statement);
}

/* A name that is given now would go with the others when the tag comes: it is asked to come, and waited for. */
static enum action wait_for_names(struct session *session)
{
    return session->owed.readies == 0 ? hold_for_replies(session) : ACTION_HOLD;
}

enum action text_parse(struct session *session, struct span message)
{
    struct wire_parse parse;
    if (!wire_read_parse(span_of(message.ptr + WIRE_HEADER, message.len - WIRE_HEADER), &parse))
        return text_plain_parse(session, span_cstr(""));
    struct reading reading;
    if (names_will_go(session))
        return wait_for_names(session);
    read_text(session, parse.sql, &reading);
    switch (reading.kind) {
    case TEXT_PLAIN: return text_plain_parse(session, parse.name);
    case TEXT_COMMAND: return parse_command(session, &reading, &parse);
    case TEXT_BAD: return refuse(session, &reading.error, false, parse.name);
    case TEXT_VARIABLE: return setting_parse(session, &reading.variable, &parse, message);
    case TEXT_TAGGED: return parse_tagged(session, &reading, &parse);
    }
    return text_plain_parse(session, parse.name);
}

/* ---- Bind and Describe of such statements ---- */

enum action text_bind_command(struct session *session, struct statement *statement, const struct wire_bind *bind)
{
    struct pgseek_error error;
    if (command_is_refused(session, &statement->command, &error))
        return refuse(session, &error, false, span_of(NULL, 0));
    struct portal *portal = portal_new();
    struct pending *entry = portal ? expect(session, PENDING_BIND, ROLE_CLIENT) : NULL;
    if (!entry) {
        if (portal)
            object_unref(&portal->object);
        return session_nomem(session);
    }
    portal->kind = PORTAL_COMMAND;
    portal->command = statement->command;
    return change_portal(session, entry, bind->portal, portal) ? ACTION_FORWARD : session_nomem(session);
}

bool text_adds_columns(struct session *session, const struct statement *statement)
{
    struct pgseek_settings settings;
    struct pgseek_error error;
    bool from_variable;
    if (statement->kind != STATEMENT_TAGGED)
        return false;
    return setting_collect(session, &statement->tag.settings, &settings, &from_variable, &error) &&
           settings.deliver & PGSEEK_DELIVER_COLUMNS;
}
