/* text.c - sorts the client's SQL texts into plain ones, commands, variables and pages. */
#include "text.h"

#include "prepared.h"

#include <string.h>
#include <strings.h>

/* ---- words ---- */

/* Words that matter without a mention of pgseek. */
static bool is_command_word(enum pgseek_word word)
{
    switch (word) {
    case PGSEEK_WORD_OTHER:
    case PGSEEK_WORD_SELECT:
    case PGSEEK_WORD_DECLARE: return false;
    default: return true;
    }
}

static bool paginates(const struct session *session, enum pgseek_word word)
{
    bool may_page = word == PGSEEK_WORD_SELECT || word == PGSEEK_WORD_EXPLAIN || word == PGSEEK_WORD_PREPARE;
    const char *value = may_page ? variables_get(session->variables, PGSEEK_OPT_PAGINATE) : NULL;
    if (!value)
        return false;
    struct pgseek_settings settings;
    struct pgseek_error error;
    pgseek_settings_init(&settings);
    return pgseek_settings_put(&settings, PGSEEK_OPT_PAGINATE, value, false, &error) && settings.paginate;
}

static bool read_variable(struct reading *out, const char *sql, size_t len)
{
    enum pgseek_found found = pgseek_variable_read(sql, len, &out->variable, &out->error);
    if (found == PGSEEK_FOUND_NONE)
        return false;
    out->kind = found == PGSEEK_FOUND_BAD ? TEXT_BAD : TEXT_VARIABLE;
    return true;
}

/* A tag in the text, or one that paginate=on stands for. */
static void read_tag(struct session *session, struct reading *out, const char *sql, size_t len, bool mentions)
{
    enum pgseek_found found = PGSEEK_FOUND_NONE;
    pgseek_settings_init(&out->tag.settings);
    if (mentions)
        found = pgseek_tag_read(sql, len, session->strings_standard, &out->tag, &out->error);
    if (found == PGSEEK_FOUND_BAD)
        out->kind = TEXT_BAD;
    else
        out->is_tagged = found == PGSEEK_FOUND_SOME || paginates(session, out->word);
}

/* Texts that begin with a word of the list, or carry a tag. */
static void read_words(const struct session *session, struct reading *out, const char *sql, size_t len)
{
    bool is_command = is_command_word(out->word);
    if (is_command)
        pgseek_command_read(sql, len, session->strings_standard, &out->command);
    if (is_command || out->is_tagged)
        pgseek_frame_read(sql, len, &out->frame);
    if (is_command && out->command.kind == PGSEEK_CMD_EXECUTE && *out->command.name)
        out->kind = TEXT_EXECUTE;
    else if (out->is_tagged && out->frame.kind == PGSEEK_FRAME_PREPARE)
        out->kind = TEXT_PREPARE;
    else if (out->is_tagged)
        out->kind = TEXT_TAGGED;
    else if (is_command && out->word != PGSEEK_WORD_EXPLAIN && out->word != PGSEEK_WORD_CREATE)
        out->kind = TEXT_COMMAND;
}

static void read_text(struct session *session, struct span text, struct reading *out)
{
    const char *sql = (const char *)text.ptr;
    memset(out, 0, sizeof *out);
    out->word = pgseek_first_word(sql, text.len);
    bool mentions = pgseek_mentions(sql, text.len);
    if ((mentions || pgseek_may_be_config_call(sql, text.len)) && read_variable(out, sql, text.len))
        return;
    if (!mentions && !is_command_word(out->word) && out->word != PGSEEK_WORD_SELECT)
        return;
    read_tag(session, out, sql, text.len, mentions);
    if (out->kind != TEXT_BAD)
        read_words(session, out, sql, text.len);
}

/* ---- a tagged text ---- */

struct statement *text_statement(struct reading *reading, struct span sql)
{
    struct statement *statement = statement_new();
    if (!statement) {
        pgseek_tag_fini(&reading->tag);
        return NULL;
    }
    enum pgseek_frame_kind frame = reading->frame.kind;
    size_t inner = frame == PGSEEK_FRAME_NONE ? 0 : reading->frame.inner;
    bool has_prefix = frame == PGSEEK_FRAME_EXPLAIN || frame == PGSEEK_FRAME_DECLARE;
    statement->kind = STATEMENT_TAGGED;
    statement->tag = reading->tag;
    statement->verb = frame == PGSEEK_FRAME_DECLARE ? PGSEEK_VERB_DECLARE : PGSEEK_VERB_SELECT;
    statement->sql_len = sql.len - inner;
    statement->sql = mem_strndup((const char *)sql.ptr + inner, sql.len - inner);
    statement->prefix = has_prefix ? mem_strndup((const char *)sql.ptr, inner) : NULL;
    if (statement->sql && (statement->prefix || !has_prefix))
        return statement;
    object_unref(&statement->object);
    return NULL;
}

/* ---- plain ---- */

void text_forget_unnamed(struct session *session)
{
    if (session->statements.count && !names_put(&session->statements, span_cstr(""), NULL, NULL))
        session_nomem(session);
}

enum action text_plain_query(struct session *session)
{
    text_forget_unnamed(session);
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

enum action text_query_command(struct session *session, const struct pgseek_command *command)
{
    struct pgseek_error error;
    if (must_follow(session) || name_may_return(session, span_cstr(command->name)))
        return ACTION_HOLD;
    if (command_is_refused(session, command, &error))
        return refuse(session, &error, true, span_of(NULL, 0));
    text_forget_unnamed(session);
    struct pending *entry = expect(session, PENDING_QUERY, ROLE_CLIENT);
    if (!entry || !command_apply(session, entry, command, NULL))
        return session_nomem(session);
    return ACTION_FORWARD;
}

/* Takes the cursor out of the comment that it is written in: else each page would be another statement, to be planned
 * anew. Percent-encoded letters are not found, and then nothing is taken. `inner` is where the page's text begins. */
static void cut_token(const struct session *session, struct statement *statement, size_t inner)
{
    const struct pgseek_tag *tag = &statement->tag;
    const char *token = tag->settings.cursor;
    size_t len = tag->settings.cursor_kind == PGSEEK_CURSOR_TEXT ? strlen(token) : 0;
    char *comment = tag->start >= inner ? statement->sql + (tag->start - inner) : NULL;
    char *at = len > 0 && comment ? memmem(comment, tag->end - tag->start, token, len) : NULL;
    if (!at)
        return;
    bool is_utf8 = strncasecmp(session->encoding, "UTF", 3) == 0;
    for (const char *c = statement->sql; c < at; c++)
        statement->token_place += !is_utf8 || ((unsigned char)*c & 0xC0) != 0x80;
    statement->token_len = len;
    statement->sql_len -= len;
    memmove(at, at + len, strlen(at + len) + 1);
}

/* It has no statement on the server: one is made for the length of its handling. */
enum action text_query_tagged(struct session *session, struct reading *reading, struct span sql, struct span message)
{
    struct statement *statement = text_statement(reading, sql);
    if (!statement)
        return session_nomem(session);
    cut_token(session, statement, sql.len - statement->sql_len);
    enum action action =
        paginate(session, &(struct request){.statement = statement,
                                            .tag = &statement->tag.settings,
                                            .simple = true,
                                            .message = message,
                                            .prefix = span_cstr(statement->prefix ? statement->prefix : "")});
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
    if (prepared_is_among(session, &reading, sql, &action))
        return action;
    switch (reading.kind) {
    case TEXT_PLAIN: return text_plain_query(session);
    case TEXT_COMMAND: return text_query_command(session, &reading.command);
    case TEXT_BAD: return refuse(session, &reading.error, true, span_of(NULL, 0));
    case TEXT_VARIABLE:
        action = setting_query(session, &reading.variable);
        pgseek_variable_fini(&reading.variable);
        return action;
    case TEXT_TAGGED: return text_query_tagged(session, &reading, sql, message);
    case TEXT_PREPARE: return prepared_query(session, &reading, sql);
    case TEXT_EXECUTE: return prepared_query_execute(session, &reading, sql, message);
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

enum action text_register(struct session *session, const struct wire_parse *parse, struct statement *statement)
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
    struct statement *statement = text_statement(reading, parse->sql);
    if (!statement)
        return session_nomem(session);
    if (!declare_cursor(statement, parse)) {
        object_unref(&statement->object);
        return session_nomem(session);
    }
    bool changed = oids_changed(statement, parse);
    enum action action = text_register(session, parse, statement);
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
    return text_register(session, parse, statement);
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
    case TEXT_PREPARE: return prepared_parse(session, &reading, &parse);
    case TEXT_EXECUTE: return prepared_parse_execute(session, &reading, &parse);
    }
    return text_plain_parse(session, parse.name);
}
