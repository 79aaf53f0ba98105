/* frontend.c - what each message of the client does to the conversation.
 *
 * One table says how much of a message is needed and who handles it; the handlers note the expected reply and what
 * changes, and must not write to a link. Texts of statements are text.c's, tagged Binds are paginate.c's. */
#include "internal.h"

#include "prepared.h"
#include "text.h"

#define MAX_NAMED 65536             /* bytes of a Describe, Close or Execute */
#define MAX_NAMES 4096              /* the two names of a Bind that is looked up */
#define MAX_TAGGED_BIND (64u << 20) /* a Bind of a statement that matters is kept whole up to this */

typedef enum action handler_fn(struct session *session, struct span message);
typedef size_t needs_fn(struct session *session, size_t total, struct span body);
typedef enum action stream_fn(struct session *session, size_t total, struct span body);

static struct span body_of(struct span message)
{
    return span_of(message.ptr + WIRE_HEADER, message.len - WIRE_HEADER);
}

/* Notes a reply to a message that nobody needs to look at. */
static enum action plain(struct session *session, enum pending_kind kind)
{
    return expect(session, kind, ROLE_CLIENT) ? ACTION_FORWARD : session_nomem(session);
}

/* ---- how much is needed ---- */

static size_t needs_nothing(struct session *session, size_t total, struct span body)
{
    (void)session, (void)total, (void)body;
    return 0;
}

static size_t needs_all(struct session *session, size_t total, struct span body)
{
    (void)session, (void)body;
    return total <= MAX_NAMED ? total : 0;
}

static size_t needs_text(struct session *session, size_t total, struct span body)
{
    (void)body;
    return total <= (size_t)session->conf->max_tagged_size ? total : 0;
}

/* Whether the Bind of a statement of this name has to be looked at. */
static bool matters(struct session *session, struct span statement)
{
    return names_get(&session->statements, statement) || name_may_return(session, statement);
}

static size_t needs_bind(struct session *session, size_t total, struct span body)
{
    if (session->statements.count == 0 && session->portals.count == 0 && !session->returning)
        return 0;
    struct span portal;
    struct span statement;
    if (wire_peek_bind(body, &portal, &statement))
        return total <= MAX_TAGGED_BIND && matters(session, statement) ? total : 0;
    if (body.len + WIRE_HEADER >= total || body.len >= MAX_NAMES)
        return 0;                      /* malformed, or names that nothing in the maps can have */
    return WIRE_HEADER + body.len + 1; /* as soon as both names are there, and no later */
}

/* ---- messages that pass by ---- */

static enum action stream_ignored(struct session *session, size_t total, struct span body)
{
    (void)session, (void)total, (void)body;
    return ACTION_FORWARD;
}

/* CopyData: nothing happens between one and the next. */
static enum action stream_copy_data(struct session *session, size_t total, struct span body)
{
    (void)session, (void)total, (void)body;
    return ACTION_RUN;
}

/* Terminate: the server will close. */
static enum action stream_terminate(struct session *session, size_t total, struct span body)
{
    (void)total, (void)body;
    session->has_said_goodbye = true;
    return ACTION_FORWARD;
}

static enum action stream_too_long(struct session *session, size_t total, struct span body)
{
    (void)total, (void)body;
    return session_violation(session, SIDE_FRONTEND, "a name is too long");
}

static enum action stream_query(struct session *session, size_t total, struct span body)
{
    (void)total, (void)body;
    session->in[SIDE_FRONTEND].search = (struct search){.on = true};
    return text_plain_query(session);
}

static enum action stream_parse(struct session *session, size_t total, struct span body)
{
    (void)total;
    session->in[SIDE_FRONTEND].search = (struct search){.on = true};
    struct reader rd = rd_init(body);
    struct span name = rd_cstr(&rd);
    return text_plain_parse(session, rd.failed ? span_of("", 0) : name);
}

static enum action stream_bind(struct session *session, size_t total, struct span body)
{
    struct span portal;
    struct span statement;
    bool is_named = wire_peek_bind(body, &portal, &statement);
    if (is_named && total > MAX_TAGGED_BIND && name_may_return(session, statement))
        return ACTION_HOLD; /* whose it is, an answer that is owed will tell */
    if (is_named && total > MAX_TAGGED_BIND && matters(session, statement)) {
        session_fatal(session, "54000", "a Bind of a tagged statement is longer than 64 MB",
                      "Bind large values to untagged statements.");
        return ACTION_FAIL; /* its cursor would be ignored */
    }
    struct pending *entry = expect(session, PENDING_BIND, ROLE_CLIENT);
    if (!entry || (is_named && !change_portal(session, entry, portal, NULL)))
        return session_nomem(session);
    return ACTION_FORWARD;
}

/* Sync. While the server reads a COPY it answers none. */
static enum action stream_sync(struct session *session, size_t total, struct span body)
{
    (void)total, (void)body;
    session->skip_to_sync = false;
    session->drop_to_sync = false;
    return session->copy_in ? ACTION_FORWARD : plain(session, PENDING_SYNC);
}

static enum action stream_function(struct session *session, size_t total, struct span body)
{
    (void)total, (void)body;
    return plain(session, PENDING_FUNCTION);
}

/* CopyDone, CopyFail: the end of a COPY, or of one that has not been announced yet. */
static enum action stream_copy_end(struct session *session, size_t total, struct span body)
{
    (void)total, (void)body;
    if (session->copy_in || session->owed.count == 0) {
        session->copy_in = false;
        return ACTION_FORWARD;
    }
    return plain(session, PENDING_COPY_END);
}

/* ---- whole messages ---- */

static enum action bind_message(struct session *session, struct span message)
{
    struct wire_bind bind;
    if (!wire_read_bind(body_of(message), &bind))
        return plain(session, PENDING_BIND);
    if (name_may_return(session, bind.statement))
        return ACTION_HOLD;
    struct statement *statement = (struct statement *)names_get(&session->statements, bind.statement);
    if (!statement)
        return stream_bind(session, message.len, body_of(message));
    if (statement->kind == STATEMENT_VARIABLE)
        return setting_bind(session, statement, &bind, message);
    if (statement->kind == STATEMENT_COMMAND)
        return prepared_bind(session, statement, &bind, message);
    return paginate(session, &(struct request){.statement = statement,
                                               .tag = &statement->tag.settings,
                                               .portal = bind.portal,
                                               .name = bind.statement,
                                               .bind = &bind,
                                               .message = message,
                                               .prefix = span_cstr(statement->prefix ? statement->prefix : "")});
}

/* A statement whose rows will carry our columns says so when it is described, too. */
static bool follow_description(struct session *session, struct pending *entry, const struct statement *statement)
{
    struct follow *follow = follow_of(entry);
    if (!follow)
        return false;
    if (statement->kind == STATEMENT_VARIABLE) {
        follow->hides_param = statement->variable.verb == PGSEEK_VAR_SHOW;
        return true;
    }
    if (!prepared_adds_columns(session, statement))
        return true;
    follow->page = page_new();
    if (follow->page)
        follow->page->deliver = PGSEEK_DELIVER_COLUMNS;
    return follow->page != NULL;
}

static enum action describe_message(struct session *session, struct span message)
{
    struct wire_target target;
    bool read = wire_read_target(body_of(message), &target);
    bool is_statement = message.len > WIRE_HEADER && message.ptr[WIRE_HEADER] == 'S';
    struct pending *entry =
        expect(session, is_statement ? PENDING_DESCRIBE_STATEMENT : PENDING_DESCRIBE_PORTAL, ROLE_CLIENT);
    if (!entry)
        return session_nomem(session);
    struct object *object =
        read ? names_get(is_statement ? &session->statements : &session->portals, target.name) : NULL;
    if (!object)
        return ACTION_FORWARD;
    if (is_statement)
        return follow_description(session, entry, (struct statement *)object) ? ACTION_FORWARD : session_nomem(session);
    struct portal *portal = (struct portal *)object;
    struct follow *follow = portal->page ? follow_of(entry) : NULL;
    if (portal->page && !follow)
        return session_nomem(session);
    if (follow)
        follow->page = page_ref(portal->page);
    return ACTION_FORWARD;
}

/* What an Execute does besides running: the portal remembers. */
static bool execute_portal(struct session *session, struct pending *entry, struct portal *portal)
{
    struct follow *follow = follow_of(entry);
    if (!follow)
        return false;
    bool failed = false;
    follow->portal = (struct portal *)object_ref(&portal->object);
    if (portal->kind == PORTAL_COMMAND)
        return command_apply(session, entry, &portal->command, portal->prepares);
    if (portal->kind == PORTAL_SHOW)
        follow->is_show = true;
    if (portal->kind == PORTAL_SET) {
        struct variables *next =
            variables_set(variables_ref(session->variables), portal->option, portal->value, portal->local, &failed);
        return change_variables(session, entry, next) && !failed;
    }
    if (portal->kind != PORTAL_PAGE)
        return true;
    follow->page = page_ref(portal->page);
    if (!portal->spends_cursor)
        return true;
    portal->spends_cursor = false;
    struct variables *next = variables_spend_cursor(variables_ref(session->variables), false, &failed);
    return change_variables(session, entry, next) && !failed;
}

static bool changes_variables(const struct portal *portal)
{
    return portal->kind == PORTAL_SET || portal->kind == PORTAL_COMMAND || portal->spends_cursor;
}

static enum action execute_message(struct session *session, struct span message)
{
    struct wire_execute execute;
    bool read = wire_read_execute(body_of(message), &execute);
    struct portal *portal = read ? (struct portal *)names_get(&session->portals, execute.portal) : NULL;
    if (portal && changes_variables(portal) &&
        (portal->kind == PORTAL_COMMAND ? must_follow(session) : session->owed.readies > 0))
        return ACTION_HOLD;
    if (portal && portal->prepares && names_will_go(session))
        return wait_for_names(session);
    struct pending *entry = expect(session, PENDING_EXECUTE, ROLE_CLIENT);
    if (!entry)
        return session_nomem(session);
    if (portal && !execute_portal(session, entry, portal))
        return session_nomem(session);
    return ACTION_FORWARD;
}

static enum action close_message(struct session *session, struct span message)
{
    struct wire_target target;
    bool read = wire_read_target(body_of(message), &target);
    struct pending *entry = expect(session, PENDING_CLOSE, ROLE_CLIENT);
    if (!entry)
        return session_nomem(session);
    bool changed = true;
    if (read && target.kind == 'S')
        changed = change_statement(session, entry, target.name, NULL);
    if (read && target.kind == 'P')
        changed = change_portal(session, entry, target.name, NULL);
    return changed ? ACTION_FORWARD : session_nomem(session);
}

/* ---- the table ---- */

static const struct rule {
    needs_fn *needs;     /* NULL: no message of protocol 3 */
    stream_fn *stream;   /* when it passes by */
    handler_fn *message; /* when it is whole */
    bool in_skip;        /* handled even where the server discards */
    bool in_copy;        /* a COPY goes on behind it */
    bool in_retry;       /* may be sent again behind a page's Bind */
} rules[256] = {
    ['Q'] = {needs_text, stream_query, text_query, .in_retry = false},
    ['P'] = {needs_text, stream_parse, text_parse, .in_retry = false},
    ['B'] = {needs_bind, stream_bind, bind_message, .in_retry = false},
    ['D'] = {needs_all, stream_too_long, describe_message, .in_retry = true},
    ['E'] = {needs_all, stream_too_long, execute_message, .in_retry = true},
    ['C'] = {needs_all, stream_too_long, close_message, .in_retry = true},
    ['S'] = {needs_nothing, stream_sync, NULL, .in_skip = true, .in_copy = true, .in_retry = true},
    ['H'] = {needs_nothing, stream_ignored, NULL, .in_copy = true, .in_retry = true},
    ['X'] = {needs_nothing, stream_terminate, NULL, .in_skip = true, .in_retry = true},
    ['F'] = {.needs = needs_nothing, .stream = stream_function},
    ['d'] = {needs_nothing, stream_copy_data, NULL, .in_copy = true},
    ['c'] = {needs_nothing, stream_copy_end, NULL, .in_copy = true},
    ['f'] = {needs_nothing, stream_copy_end, NULL, .in_copy = true},
    ['p'] = {.needs = needs_nothing, .stream = stream_ignored},
};

/* Whether the message only passes by, whatever it is: the server will discard it, or reads a COPY that it breaks. */
static bool is_bystander(struct session *session, const struct rule *rule)
{
    if (session->opaque)
        return true;
    if ((session->skip_to_sync || session->drop_to_sync) && !rule->in_skip)
        return true;
    return session->copy_in && !rule->in_copy;
}

static size_t frontend_needs(struct session *session, uint8_t type, size_t total, struct span body)
{
    const struct rule *rule = &rules[type];
    if (!rule->needs || is_bystander(session, rule))
        return 0;
    return rule->needs(session, total, body);
}

/* What a Query that was answered here owes the server. A Query that reaches it sees to that itself. */
static bool close_unnamed(struct session *session, uint8_t type)
{
    bool is_extended = type == 'P' || type == 'B' || type == 'D' || type == 'E' || type == 'C';
    if (!session->closes_unnamed || (!is_extended && type != 'Q'))
        return true;
    session->closes_unnamed = false;
    if (!is_extended)
        return true;
    wire_put_target(to_backend(session), 'C', 'S', span_cstr(""));
    wire_put_target(to_backend(session), 'C', 'P', span_cstr(""));
    sent_backend(session);
    const struct pending *statement = expect(session, PENDING_CLOSE, ROLE_SWALLOW);
    const struct pending *portal = expect(session, PENDING_CLOSE, ROLE_SWALLOW);
    return statement && portal;
}

static enum action frontend_stream(struct session *session, uint8_t type, size_t total, struct span body)
{
    const struct rule *rule = &rules[type];
    if (!rule->needs)
        return session_violation(session, SIDE_FRONTEND, "invalid message type");
    if (is_bystander(session, rule)) {
        session->copy_in &= rule->in_copy || session->opaque;
        return session->drop_to_sync ? ACTION_DONE : ACTION_FORWARD;
    }
    if (!close_unnamed(session, type))
        return session_nomem(session);
    if (session->tagging && session->tagging->retry.possible)
        retry_passing(session, type, rule->in_retry);
    return rule->stream(session, total, body);
}

static enum action frontend_message(struct session *session, uint8_t type, struct span message)
{
    const struct rule *rule = &rules[type];
    if (!close_unnamed(session, type))
        return session_nomem(session);
    if (session->tagging && session->tagging->retry.possible)
        retry_note(session, message, rule->in_retry);
    return rule->message(session, message);
}

const struct way frontend_way = {frontend_needs, frontend_stream, frontend_message};
