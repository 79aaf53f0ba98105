/* prepared.c - what SQL's PREPARE makes is remembered under its name, and an EXECUTE of it is a page. */
#include "prepared.h"

#include <stdio.h>
#include <string.h>

static void refuse_because(struct pgseek_error *error, const char *message, const char *detail, const char *hint)
{
    *error = (struct pgseek_error){.code = PGSEEK_PS000};
    snprintf(error->message, sizeof error->message, "%s", message);
    snprintf(error->detail, sizeof error->detail, "%s", detail);
    snprintf(error->hint, sizeof error->hint, "%s", hint);
}

/* ---- PREPARE ---- */

/* Whether a tagged PREPARE cannot stand: the server knows no other parameters than those that it says. */
static bool is_refused(struct reading *reading, struct span sql)
{
    const struct pgseek_settings *settings = &reading->tag.settings;
    size_t inner = reading->frame.inner;
    int known = pgseek_highest_param((const char *)sql.ptr + inner, sql.len - inner);
    known = reading->frame.types > known ? reading->frame.types : known;
    if (reading->tag.several)
        refuse_because(&reading->error, "a page must be sent alone", "The text holds several statements.",
                       "Send the tagged statement alone.");
    else if (settings->cursor_kind == PGSEEK_CURSOR_PARAM && settings->cursor_param > known)
        refuse_because(&reading->error, "cursor=$n names no parameter of the statement",
                       "PREPARE in SQL has no parameter of that number.",
                       "List its type: PREPARE name (..., text) AS ...");
    else
        return false;
    pgseek_tag_fini(&reading->tag);
    return true;
}

/* The statement that it makes; takes the tag. */
static struct statement *prepared_statement(struct session *session, struct reading *reading, struct span sql)
{
    struct statement *statement = text_statement(reading, sql);
    if (statement && reading->frame.types)
        statement->serial = session->id << 32 | ++session->prepared;
    return statement;
}

enum action prepared_query(struct session *session, struct reading *reading, struct span sql)
{
    if (is_refused(reading, sql))
        return refuse(session, &reading->error, true, span_of(NULL, 0));
    if (names_will_go(session)) {
        pgseek_tag_fini(&reading->tag);
        return wait_for_names(session);
    }
    struct statement *statement = prepared_statement(session, reading, sql);
    if (!statement)
        return session_nomem(session);
    text_forget_unnamed(session);
    struct pending *entry = expect(session, PENDING_QUERY, ROLE_CLIENT);
    bool ok = entry && command_apply(session, entry, &reading->command, statement);
    object_unref(&statement->object);
    return ok ? ACTION_FORWARD : session_nomem(session);
}

/* The name is given when it is executed. */
enum action prepared_parse(struct session *session, struct reading *reading, const struct wire_parse *parse)
{
    if (is_refused(reading, parse->sql))
        return refuse(session, &reading->error, false, parse->name);
    struct statement *prepares = prepared_statement(session, reading, parse->sql);
    struct statement *statement = prepares ? statement_new() : NULL;
    if (!statement) {
        if (prepares)
            object_unref(&prepares->object);
        return session_nomem(session);
    }
    statement->kind = STATEMENT_COMMAND;
    statement->command = reading->command;
    statement->prepares = prepares;
    return text_register(session, parse, statement);
}

/* ---- EXECUTE ---- */

/* The tagged statement behind a name in SQL; NULL when there is none. */
static struct statement *named_page(struct session *session, const char *name)
{
    struct statement *named = *name ? (struct statement *)names_get(&session->statements, span_cstr(name)) : NULL;
    return named && named->kind == STATEMENT_TAGGED && !named->prefix ? named : NULL;
}

/* The options of both texts: those of the EXECUTE over those of what it runs. False when its tag is refused. */
static bool combine(const struct statement *named, const struct pgseek_settings *over, struct pgseek_settings *out,
                    struct pgseek_error *error)
{
    *out = named->tag.settings;
    pgseek_settings_overlay(out, over);
    if (over->cursor_kind != PGSEEK_CURSOR_PARAM)
        return true;
    refuse_because(error, "cursor=$n cannot stand in the tag of EXECUTE",
                   "The parameters are those of the prepared statement.",
                   "Write cursor=$n into the tag of the statement that is prepared, or the token into this one.");
    return false;
}

static bool executes_tagged(const struct session *session, struct span sql)
{
    const char *text = (const char *)sql.ptr;
    struct pgseek_command command;
    size_t at = 0;
    while (pgseek_command_next_execute(text, sql.len, session->strings_standard, &at, &command))
        if (command_executes_tagged(session, &command))
            return true;
    return false;
}

bool prepared_is_among(struct session *session, struct reading *reading, struct span sql, enum action *action)
{
    const char *text = (const char *)sql.ptr;
    struct pgseek_command command;
    bool has_names = session->statements.count > 0 || session->returning;
    bool is_ours = reading->kind == TEXT_BAD || reading->kind == TEXT_VARIABLE;
    if (is_ours || !has_names || !pgseek_mentions_execute(text, sql.len))
        return false;
    pgseek_command_read(text, sql.len, session->strings_standard, &command);
    bool waits = session->returning && session->owed.readies > 0; /* a name with a tag may come back */
    if (!command.several || (!waits && !executes_tagged(session, sql)))
        return false;
    refuse_because(&reading->error, "a page must be sent alone",
                   "The text holds several statements, and one executes a statement with a pgseek tag.",
                   "Send the EXECUTE alone.");
    *action = waits ? ACTION_HOLD : refuse(session, &reading->error, true, span_of(NULL, 0));
    pgseek_tag_fini(&reading->tag);
    return true;
}

/* Runs a page by the text of its EXECUTE; `request` holds what depends on the protocol, and the statement when it is
 * not what is executed that will run: CREATE TABLE AS EXECUTE is no page, and is refused where a page has a cursor. */
static enum action run(struct session *session, struct statement *named, const struct pgseek_tag *tag, struct span sql,
                       struct request *request)
{
    struct pgseek_settings settings;
    struct pgseek_error error;
    struct pgseek_frame frame;
    if (!combine(named, &tag->settings, &settings, &error))
        return refuse(session, &error, request->simple, span_of(NULL, 0));
    pgseek_frame_read((const char *)sql.ptr, sql.len, &frame);
    if (!request->statement)
        request->statement = named;
    request->tag = &settings;
    request->execute = sql;
    request->prefix = span_of(sql.ptr, frame.kind == PGSEEK_FRAME_EXPLAIN ? frame.inner : 0);
    (void)object_ref(&named->object);
    enum action action = paginate(session, request);
    request->tag = NULL; /* the settings end here */
    object_unref(&named->object);
    return action;
}

/* CREATE TABLE AS EXECUTE as a Query: a statement of its own, as text_query_tagged() makes one. Takes the tag. */
static enum action run_into(struct session *session, struct statement *named, struct reading *reading, struct span sql,
                            struct span message)
{
    struct statement *statement = text_statement(reading, sql);
    if (!statement)
        return session_nomem(session);
    struct request request = {
        .statement = statement, .simple = true, .name = span_cstr(reading->command.name), .message = message};
    enum action action = run(session, named, &statement->tag, sql, &request);
    object_unref(&statement->object);
    return action;
}

enum action prepared_query_execute(struct session *session, struct reading *reading, struct span sql,
                                   struct span message)
{
    const struct pgseek_command *command = &reading->command;
    bool waits = must_follow(session) || name_may_return(session, span_cstr(command->name));
    struct statement *named = command->several ? NULL : named_page(session, command->name);
    if (!waits && !named && reading->is_tagged && !command_is_refused(session, command, &reading->error)) {
        if (!command->into)
            reading->frame = (struct pgseek_frame){.kind = PGSEEK_FRAME_NONE};
        return text_query_tagged(session, reading, sql, message);
    }
    if (!waits && named && command->into)
        return run_into(session, named, reading, sql, message);
    struct request request = {.simple = true, .name = span_cstr(command->name), .message = message};
    enum action action = ACTION_HOLD;
    if (!waits && !named)
        action = text_query_command(session, command);
    else if (!waits)
        action = run(session, named, &reading->tag, sql, &request);
    pgseek_tag_fini(&reading->tag);
    return action;
}

enum action prepared_parse_execute(struct session *session, struct reading *reading, const struct wire_parse *parse)
{
    struct statement *statement = statement_new();
    if (!statement) {
        pgseek_tag_fini(&reading->tag);
        return session_nomem(session);
    }
    statement->kind = STATEMENT_COMMAND;
    statement->command = reading->command;
    statement->tag = reading->tag;
    statement->is_tagged = reading->is_tagged;
    statement->sql = mem_strndup((const char *)parse->sql.ptr, parse->sql.len);
    statement->sql_len = parse->sql.len;
    if (statement->sql)
        return text_register(session, parse, statement);
    object_unref(&statement->object);
    return session_nomem(session);
}

/* What a tagged EXECUTE runs may be no page: it is passed with a reason, or refused. */
static enum action bind_execute(struct session *session, struct statement *statement, const struct wire_bind *bind,
                                struct span message)
{
    struct statement *named = named_page(session, statement->command.name);
    struct request request = {.portal = bind->portal, .bind = bind, .message = message};
    if (named) {
        request.name = span_cstr(statement->command.name);
        request.statement = statement->command.into ? statement : NULL;
        return run(session, named, &statement->tag, span_of(statement->sql, statement->sql_len), &request);
    }
    request.statement = statement;
    request.tag = &statement->tag.settings;
    request.name = bind->statement;
    return paginate(session, &request);
}

static enum action bind_command(struct session *session, const struct statement *statement,
                                const struct wire_bind *bind)
{
    struct portal *portal = portal_new();
    struct pending *entry = portal ? expect(session, PENDING_BIND, ROLE_CLIENT) : NULL;
    if (!entry) {
        if (portal)
            object_unref(&portal->object);
        return session_nomem(session);
    }
    portal->kind = PORTAL_COMMAND;
    portal->command = statement->command;
    portal->prepares = statement->prepares;
    if (portal->prepares)
        (void)object_ref(&portal->prepares->object);
    return change_portal(session, entry, bind->portal, portal) ? ACTION_FORWARD : session_nomem(session);
}

enum action prepared_bind(struct session *session, struct statement *statement, const struct wire_bind *bind,
                          struct span message)
{
    struct pgseek_error error;
    const struct pgseek_command *command = &statement->command;
    if (statement->sql) { /* EXECUTE */
        if (name_may_return(session, span_cstr(command->name)))
            return ACTION_HOLD;
        bool is_refused = command_is_refused(session, command, &error);
        if ((statement->is_tagged && !is_refused) || named_page(session, command->name))
            return bind_execute(session, statement, bind, message);
    }
    if (command_is_refused(session, command, &error))
        return refuse(session, &error, false, span_of(NULL, 0));
    return bind_command(session, statement, bind);
}

bool prepared_adds_columns(struct session *session, const struct statement *statement)
{
    struct pgseek_settings tag;
    struct pgseek_settings settings;
    struct pgseek_error error;
    bool from_variable;
    bool is_execute = statement->kind == STATEMENT_COMMAND && statement->sql;
    const struct statement *page = is_execute ? named_page(session, statement->command.name) : statement;
    if (is_execute && statement->command.into)
        return false;
    if (!page || page->kind != STATEMENT_TAGGED || page->prefix)
        return false;
    tag = page->tag.settings;
    if (is_execute && !combine(page, &statement->tag.settings, &tag, &error))
        return false;
    return setting_collect(session, &tag, &settings, &from_variable, &error) &&
           settings.deliver & PGSEEK_DELIVER_COLUMNS;
}
