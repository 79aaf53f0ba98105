/* command.c - transaction control, SET, and commands that name statements or portals: what they do to the session's
 * books.
 *
 * A command counts when it is forwarded and is undone when its group fails; the server's tag corrects what words cannot
 * tell. It must not know of pages beyond their names. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

/* ---- variables ---- */

/* The variables behind a command; takes and gives a reference. */
static struct variables *after(struct variables *state, const struct pgseek_command *command, bool *failed)
{
    switch (command->kind) {
    case PGSEEK_CMD_BEGIN: return variables_begin(state, failed);
    case PGSEEK_CMD_COMMIT: return variables_commit(state, command->and_chain, failed);
    case PGSEEK_CMD_PREPARE_TRANSACTION: return variables_commit(state, false, failed);
    case PGSEEK_CMD_ROLLBACK: return variables_rollback(state, command->and_chain, failed);
    case PGSEEK_CMD_SAVEPOINT: return variables_savepoint(state, command->name, failed);
    case PGSEEK_CMD_ROLLBACK_TO: return variables_rollback_to(state, command->name, failed);
    case PGSEEK_CMD_RELEASE: return variables_release(state, command->name, failed);
    case PGSEEK_CMD_RESET_ALL: return variables_reset_all(state, failed);
    case PGSEEK_CMD_DISCARD_ALL: /* it cannot stand in a transaction: what it did, stays */
        return variables_commit(variables_reset_all(state, failed), false, failed);
    case PGSEEK_CMD_OTHER: /* CALL and DO may end the transaction inside */
        return state ? variables_unfollowed(state, failed) : NULL;
    default: return state;
    }
}

static bool apply_variables(struct session *session, struct pending *entry, const struct pgseek_command *command)
{
    bool failed = false;
    struct variables *next = after(variables_ref(session->variables), command, &failed);
    if (command->several && next)
        next = variables_unfollowed(next, &failed);
    if (next != session->variables)
        return change_variables(session, entry, next) && !failed;
    variables_unref(next);
    return !failed;
}

/* ---- the context ---- */

/* What a command may change in search_path, role or encoding. */
static void apply_context(struct tagging *tagging, const struct pgseek_command *command)
{
    switch (command->kind) {
    case PGSEEK_CMD_SET:
    case PGSEEK_CMD_RESET:
    case PGSEEK_CMD_RESET_ALL:
    case PGSEEK_CMD_DISCARD_ALL:
    case PGSEEK_CMD_OTHER:
        tagging->context_valid = false;
        tagging->context_touched = true;
        return;
    case PGSEEK_CMD_COMMIT:
    case PGSEEK_CMD_ROLLBACK:
    case PGSEEK_CMD_ROLLBACK_TO:
    case PGSEEK_CMD_PREPARE_TRANSACTION:
        tagging->context_valid &= !tagging->context_touched;
        tagging->context_touched = command->kind == PGSEEK_CMD_ROLLBACK_TO && tagging->context_touched;
        return;
    default:
        if (command->several)
            tagging->context_valid = false;
    }
}

/* Any PREPARE takes the name: what was known under it had gone unseen, or the server refuses and it comes back. */
static bool apply_prepare(struct session *session, struct pending *entry, const struct pgseek_command *command,
                          struct statement *prepares)
{
    if (!*command->name)
        return true;
    if (prepares)
        (void)object_ref(&prepares->object);
    return change_statement(session, entry, span_cstr(command->name), prepares);
}

bool command_apply(struct session *session, struct pending *entry, const struct pgseek_command *command,
                   struct statement *prepares)
{
    struct follow *follow = follow_of(entry);
    if (!follow)
        return false;
    follow->command = command->kind;
    follow->commit_chain = command->and_chain;
    session->dropping |= command->kind == PGSEEK_CMD_DEALLOCATE_ALL || command->kind == PGSEEK_CMD_DISCARD_ALL;
    if (session->tagging)
        apply_context(session->tagging, command);
    if (command->kind == PGSEEK_CMD_DEALLOCATE && !change_statement(session, entry, span_cstr(command->name), NULL))
        return false;
    if (command->kind == PGSEEK_CMD_PREPARE && !apply_prepare(session, entry, command, prepares))
        return false;
    if (command->kind == PGSEEK_CMD_CLOSE && !change_portal(session, entry, span_cstr(command->name), NULL))
        return false;
    return apply_variables(session, entry, command);
}

/* ---- refusals ---- */

static const struct statement *named_statement(const struct session *session, const char *name)
{
    return *name ? (struct statement *)names_get(&session->statements, span_cstr(name)) : NULL;
}

static bool is_tagged(const struct statement *statement)
{
    return statement && (statement->kind == STATEMENT_TAGGED || statement->is_tagged);
}

/* What a prepared EXECUTE executes; NULL for anything else. */
static const struct statement *executed_by(const struct session *session, const struct statement *statement)
{
    bool is_execute = statement && statement->kind == STATEMENT_COMMAND && statement->sql;
    return is_execute ? named_statement(session, statement->command.name) : NULL;
}

bool command_executes_tagged(const struct session *session, const struct pgseek_command *command)
{
    const struct statement *statement = named_statement(session, command->name);
    return is_tagged(statement) || is_tagged(executed_by(session, statement));
}

static bool has_cursor(struct session *session, const struct statement *statement)
{
    struct pgseek_settings settings;
    struct pgseek_error error;
    bool from_variable;
    if (!is_tagged(statement))
        return false;
    if (!setting_collect(session, &statement->tag.settings, &settings, &from_variable, &error))
        return true;
    return settings.cursor_kind != PGSEEK_CURSOR_NONE || settings.strict;
}

/* Whether the server's own EXECUTE would run it without the cursor that is in force: what the protocol has prepared
 * may be EXPLAIN, DECLARE or an EXECUTE itself. */
static bool would_ignore_cursor(struct session *session, const struct pgseek_command *command)
{
    const struct statement *statement = named_statement(session, command->name);
    return has_cursor(session, statement) || has_cursor(session, executed_by(session, statement));
}

bool command_is_refused(struct session *session, const struct pgseek_command *command, struct pgseek_error *error)
{
    *error = (struct pgseek_error){.code = PGSEEK_PS005};
    struct span name = span_cstr(command->name);
    if (command->kind == PGSEEK_CMD_EXECUTE && name.len > 0) {
        if (!would_ignore_cursor(session, command))
            return false;
        snprintf(error->message, sizeof error->message, "this statement cannot be paginated: execute");
        snprintf(error->detail, sizeof error->detail,
                 "The statement \"%s\" is no SELECT, and EXECUTE would run it whole.", command->name);
        snprintf(error->hint, sizeof error->hint, "Bind it, or execute the SELECT itself.");
        return true;
    }
    if (command->kind != PGSEEK_CMD_FETCH)
        return false;
    const struct portal *portal = (struct portal *)names_get(&session->portals, name);
    if (!portal || portal->kind != PORTAL_PAGE || !portal->page->planned)
        return false;
    snprintf(error->message, sizeof error->message, "FETCH and MOVE cannot be used on the portal of a page");
    snprintf(error->detail, sizeof error->detail, "The portal \"%s\" runs a rewritten statement.", command->name);
    snprintf(error->hint, sizeof error->hint, "Read it with Execute and a row limit, as drivers do.");
    return true;
}

/* ---- what the tag tells ---- */

/* COMMIT of a failed transaction answers ROLLBACK: the values go back to the state before its COMMIT was assumed. */
static bool turn_into_rollback(struct session *session, struct follow *follow)
{
    struct effect *effect = follow->effects;
    while (effect && effect->kind != EFFECT_VARIABLES)
        effect = effect->next;
    if (!effect)
        return true;
    bool failed = false;
    if (variables_change_behind(session)) { /* made on top of a state that never was */
        session->variables = variables_doubt(session->variables, effect->variables, &failed);
        return !failed;
    }
    struct variables *next = variables_rollback(variables_ref(effect->variables), follow->commit_chain, &failed);
    variables_unref(session->variables);
    session->variables = next;
    return !failed;
}

bool commits_are_owed(const struct session *session)
{
    for (uint32_t i = 0; i < session->owed.count; i++) {
        const struct follow *follow = pending_at(&session->owed, i)->follow;
        if (follow && follow->command == PGSEEK_CMD_COMMIT)
            return true;
    }
    return false;
}

static bool is_transaction_tag(const char *tag)
{
    static const char *const tags[] = {"BEGIN",   "START TRANSACTION",  "COMMIT", "ROLLBACK", "SAVEPOINT",
                                       "RELEASE", "PREPARE TRANSACTION"};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (strcmp(tag, tags[i]) == 0)
            return true;
    return false;
}

static void drop_named(struct session *session)
{
    struct object *unnamed = object_ref(names_get(&session->statements, span_cstr("")));
    names_clear(&session->statements);
    if (unnamed && !names_put(&session->statements, span_cstr(""), unnamed, NULL))
        object_unref(unnamed);
}

/* `is_known`: the words have said so when they were forwarded. */
static void discard_all(struct session *session, bool is_known, bool *failed)
{
    drop_named(session);
    if (!is_known)
        session->variables = variables_reset_all(session->variables, failed);
    if (session->tagging)
        session->tagging->context_valid = false;
}

enum action command_completed(struct session *session, struct pending *entry, const char *tag)
{
    bool failed = false;
    struct follow *follow = entry->follow;
    bool is_commit = follow && follow->command == PGSEEK_CMD_COMMIT;
    if (is_commit && strcmp(tag, "ROLLBACK") == 0)
        failed = !turn_into_rollback(session, follow);
    else if (strcmp(tag, "DEALLOCATE ALL") == 0)
        drop_named(session);
    else if (strcmp(tag, "DISCARD ALL") == 0)
        discard_all(session, follow && follow->command == PGSEEK_CMD_DISCARD_ALL, &failed);
    else if (entry->kind == PENDING_QUERY && (!follow || follow->command == PGSEEK_CMD_OTHER) &&
             is_transaction_tag(tag)) {
        session->variables = variables_unfollowed(session->variables, &failed);
        if (session->tagging)
            session->tagging->context_valid = false;
    }
    return failed ? session_nomem(session) : ACTION_FORWARD;
}
