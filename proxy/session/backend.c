/* backend.c - what each message of the server answers, and where it goes.
 *
 * The head of the queue says what a reply belongs to; one table says which replies complete which kind. It must not
 * know how pages or side queries are made. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

#define MAX_SMALL 65536           /* replies that are short by nature */
#define MAX_ERROR WIRE_MAX_LENGTH /* a RAISE can say as much as a row can */
#define MAX_OURS (1u << 20)       /* any reply to a statement of ours, but an error: it may quote the client's value */
#define MAX_FORMATS (1u << 18)    /* one for each of 65,535 columns */
#define MAX_ROW WIRE_MAX_LENGTH   /* a row of a page: as long as a row can be */

typedef enum action reply_fn(struct session *session, struct pending *head, struct span message);

static struct span body_of(struct span message)
{
    return span_of(message.ptr + WIRE_HEADER, message.len - WIRE_HEADER);
}

static bool is_ours(const struct pending *head)
{
    return head->role != ROLE_CLIENT;
}

static struct page *page_of(const struct pending *head)
{
    return head->follow ? head->follow->page : NULL;
}

static enum action unexpected(struct session *session)
{
    return session_violation(session, SIDE_BACKEND, "an unexpected reply");
}

/* The head is answered: its changes stay. */
static enum action done(struct session *session, enum action action)
{
    pop_head(session);
    return action;
}

/* ---- ParseComplete, BindComplete, CloseComplete ---- */

static enum action reply_parse(struct session *session, struct pending *head, struct span message)
{
    (void)message;
    if (head->kind != PENDING_PARSE || head->role == ROLE_REFUSE)
        return unexpected(session);
    if (head->follow && head->follow->kept)
        head->follow->kept->is_ready = true;
    return done(session, is_ours(head) ? ACTION_DONE : ACTION_FORWARD);
}

static enum action reply_bind(struct session *session, struct pending *head, struct span message)
{
    (void)message;
    if (head->kind != PENDING_BIND)
        return unexpected(session);
    if (head->role != ROLE_PAGE)
        return done(session, is_ours(head) ? ACTION_DONE : ACTION_FORWARD);
    bool had_it = session->tagging->retry.bound;
    session->tagging->retry.bound = true;
    return done(session, had_it ? ACTION_DONE : ACTION_FORWARD);
}

static enum action reply_close(struct session *session, struct pending *head, struct span message)
{
    (void)message;
    if (head->kind != PENDING_CLOSE)
        return unexpected(session);
    enum action action = is_ours(head) ? ACTION_DONE : ACTION_FORWARD;
    bool ends = head->role == ROLE_SIDE_END;
    pop_head(session);
    if (ends)
        inquiry_ended(session);
    return action;
}

/* ---- descriptions ---- */

/* ParameterDescription without the one parameter that is ours. */
static enum action trim_params(struct session *session, struct span body)
{
    struct reader rd = rd_init(body);
    uint16_t count = rd_u16(&rd);
    if (count != 1 || rd_left(&rd) != 4)
        return session_violation(session, SIDE_BACKEND, "a malformed ParameterDescription");
    struct buf *out = to_frontend(session);
    size_t at = wire_open(out, 't');
    buf_put_u16(out, 0);
    wire_close(out, at);
    sent_frontend(session);
    return ACTION_DONE;
}

static enum action reply_params(struct session *session, struct pending *head, struct span message)
{
    if (head->kind != PENDING_DESCRIBE_STATEMENT)
        return unexpected(session);
    if (head->role == ROLE_DESCRIBE || head->role == ROLE_PROBE)
        return inquiry_described(session, head, 't', body_of(message));
    if (is_ours(head))
        return ACTION_DONE;
    return head->follow && head->follow->hides_param ? trim_params(session, body_of(message)) : ACTION_FORWARD;
}

static enum action reply_columns(struct session *session, struct pending *head, struct span message)
{
    struct page *page = page_of(head);
    enum action action = ACTION_FORWARD;
    if (page && !is_ours(head) && page_filters(page))
        action = deliver_description(session, page, body_of(message), head->kind != PENDING_DESCRIBE_STATEMENT);
    if (head->kind == PENDING_QUERY)
        return action;
    if (head->kind != PENDING_DESCRIBE_STATEMENT && head->kind != PENDING_DESCRIBE_PORTAL)
        return unexpected(session);
    if (head->role == ROLE_DESCRIBE || head->role == ROLE_PROBE)
        action = inquiry_described(session, head, 'T', body_of(message));
    else if (head->role == ROLE_NAMES)
        action = deliver_names(session, page, body_of(message));
    else if (is_ours(head))
        action = ACTION_DONE;
    return action == ACTION_FAIL ? action : done(session, action);
}

static enum action reply_no_data(struct session *session, struct pending *head, struct span message)
{
    (void)message;
    if (head->kind != PENDING_DESCRIBE_STATEMENT && head->kind != PENDING_DESCRIBE_PORTAL)
        return unexpected(session);
    return done(session, is_ours(head) ? ACTION_DONE : ACTION_FORWARD);
}

/* ---- rows and ends ---- */

static enum action reply_row(struct session *session, struct pending *head, struct span message)
{
    if (head->kind != PENDING_EXECUTE && head->kind != PENDING_QUERY)
        return unexpected(session);
    if (head->role == ROLE_CONTEXT || head->role == ROLE_FACTS)
        return inquiry_row(session, head, body_of(message));
    if (head->role == ROLE_TOTAL)
        return total_row(session, body_of(message));
    if (head->role == ROLE_GUARD)
        return deliver_digests(session, page_of(head), body_of(message));
    if (is_ours(head))
        return ACTION_DONE;
    struct page *page = page_of(head);
    return page && page_filters(page) ? deliver_row(session, page, body_of(message)) : ACTION_FORWARD;
}

static enum action end_show(struct session *session)
{
    wire_put_command(to_frontend(session), "SHOW");
    sent_frontend(session);
    return ACTION_DONE;
}

static enum action end_client(struct session *session, struct pending *head, struct span message)
{
    struct page *page = page_of(head);
    if (page)
        return deliver_end(session, page, message.ptr[0], message);
    if (message.ptr[0] == 'C' && head->follow && head->follow->is_show)
        return end_show(session);
    return ACTION_FORWARD;
}

/* CommandComplete, EmptyQueryResponse, PortalSuspended. */
static enum action reply_end(struct session *session, struct pending *head, struct span message)
{
    if (head->kind != PENDING_EXECUTE && head->kind != PENDING_QUERY)
        return unexpected(session);
    enum action action = is_ours(head) ? ACTION_DONE : end_client(session, head, message);
    if (action == ACTION_FAIL)
        return action;
    if (message.ptr[0] == 'C' && !is_ours(head)) {
        struct reader rd = rd_init(body_of(message));
        struct span tag = rd_cstr(&rd);
        if (rd.failed)
            return session_violation(session, SIDE_BACKEND, "a malformed CommandComplete");
        if (command_completed(session, head, (const char *)tag.ptr) == ACTION_FAIL)
            return ACTION_FAIL;
    }
    if (head->kind == PENDING_QUERY)
        return action;
    if (head->role == ROLE_GUARD)
        retry_over(session);
    session->copy_in = false;
    return done(session, action);
}

/* ---- COPY ---- */

/* CopyInResponse, CopyBothResponse: Syncs that were sent ahead are not answered, up to the end of the COPY. */
static enum action reply_copy_in(struct session *session, struct pending *head, struct span message)
{
    (void)message;
    if (head->kind != PENDING_EXECUTE && head->kind != PENDING_QUERY)
        return unexpected(session);
    uint32_t i = 1;
    while (i < session->owed.count && pending_at(&session->owed, i)->kind == PENDING_SYNC) {
        follow_free(pending_at(&session->owed, i)->follow);
        pending_remove(&session->owed, i);
    }
    session->unsynced |= !pending_ends_group(pending_at(&session->owed, session->owed.count - 1)->kind);
    bool ended = i < session->owed.count && pending_at(&session->owed, i)->kind == PENDING_COPY_END;
    session->copy_in = !ended;
    return ACTION_FORWARD;
}

/* ---- ReadyForQuery ---- */

static enum action reply_ready(struct session *session, struct pending *head, struct span message)
{
    bool failed = false;
    if (!pending_ends_group(head->kind) || message.len != 6)
        return unexpected(session);
    enum pending_role role = head->role;
    session->status = message.ptr[5];
    session->copy_in = false;
    pop_head(session);
    session->variables = variables_settle(session->variables, session->status, &failed);
    if (failed)
        return session_nomem(session);
    session->returning &= session->owed.count > 0;
    if (session->owed.readies == 0) {
        session->wake |= session->holding;
        if (session->status == 'I' && session->owed.count == 0) /* else portals of the next group may be among them */
            names_clear(&session->portals);
        if (!session->unsynced)
            session->doubtful = false;
        pending_shrink(&session->owed);
    }
    if (session->state == STATE_LOGIN)
        gate_opens(session);
    if (role == ROLE_SIDE_END)
        inquiry_ended(session);
    if (role == ROLE_TOTAL_END)
        total_ended(session);
    if (role == ROLE_DISCARD)
        return retry_again(session);
    return role == ROLE_CLIENT ? ACTION_FORWARD : ACTION_DONE;
}

/* ---- ParameterStatus ---- */

/* Reported settings that decide how a statement is read, or which tables its names mean. */
static enum action reply_status(struct session *session, struct pending *head, struct span message)
{
    (void)head;
    struct reader rd = rd_init(body_of(message));
    struct span name = rd_cstr(&rd);
    struct span value = rd_cstr(&rd);
    if (!rd_done(&rd))
        return session_violation(session, SIDE_BACKEND, "a malformed ParameterStatus");
    if (span_equal_cstr(name, "standard_conforming_strings"))
        session->strings_standard = span_equal_cstr(value, "on");
    if (span_equal_cstr(name, "client_encoding"))
        snprintf(session->encoding, sizeof session->encoding, "%.*s", (int)(value.len < 23 ? value.len : 23),
                 (const char *)value.ptr);
    if (session->tagging &&
        (span_equal_cstr(name, "search_path") || span_equal_cstr(name, "client_encoding") ||
         span_equal_cstr(name, "standard_conforming_strings") || span_equal_cstr(name, "session_authorization")))
        session->tagging->context_valid = false;
    return ACTION_FORWARD;
}

static enum action reply_notice(struct session *session, struct pending *head, struct span message)
{
    return notice_reply(session, head, body_of(message));
}

/* BackendKeyData: learned, so that a cancel request finds its server. */
static enum action reply_key(struct session *session, struct pending *head, struct span message)
{
    (void)head;
    struct span key = body_of(message);
    if (session->state != STATE_LOGIN || key.len <= 4 || key.len > 4 + STARTUP_MAX_CANCEL_KEY ||
        session->cancel_key.len)
        return session_violation(session, SIDE_BACKEND, "an unexpected or malformed BackendKeyData");
    buf_put_span(&session->cancel_key, key);
    if (session->cancel_key.failed)
        return session_nomem(session);
    cancel_map_add(session->env->cancels, key,
                   &(struct cancel_route){.conf = session->conf,
                                          .database = session->database,
                                          .host_index = session->host_index,
                                          .address = session->server,
                                          .is_tls = session->is_tls[SIDE_BACKEND]});
    return ACTION_FORWARD;
}

/* ---- the table ---- */

/* A row that nobody looks at. */
static bool row_passes_by(const struct pending *head)
{
    return head && head->role == ROLE_CLIENT && !(page_of(head) && page_filters(page_of(head)));
}

static const struct rule {
    reply_fn *reply;
    size_t max;                                    /* length up to which it is needed whole, ... */
    bool (*passes_by)(const struct pending *head); /* ... unless it passes by as it comes */
    bool anywhere;                                 /* needs no head */
} rules[256] = {
    ['1'] = {.reply = reply_parse, .max = MAX_SMALL},
    ['2'] = {.reply = reply_bind, .max = MAX_SMALL},
    ['3'] = {.reply = reply_close, .max = MAX_SMALL},
    ['t'] = {.reply = reply_params, .max = 1u << 20},
    ['T'] = {.reply = reply_columns, .max = 8u << 20},
    ['n'] = {.reply = reply_no_data, .max = MAX_SMALL},
    ['D'] = {.reply = reply_row, .max = MAX_ROW, .passes_by = row_passes_by},
    ['C'] = {.reply = reply_end, .max = MAX_SMALL},
    ['I'] = {.reply = reply_end, .max = MAX_SMALL},
    ['s'] = {.reply = reply_end, .max = MAX_SMALL},
    ['G'] = {.reply = reply_copy_in, .max = MAX_FORMATS},
    ['W'] = {.reply = reply_copy_in, .max = MAX_FORMATS},
    ['E'] = {.reply = error_reply, .max = MAX_ERROR},
    ['Z'] = {.reply = reply_ready, .max = MAX_SMALL},
    ['S'] = {.reply = reply_status, .max = MAX_SMALL, .anywhere = true},
    ['K'] = {.reply = reply_key, .max = MAX_SMALL},
    ['N'] = {.reply = reply_notice, .max = MAX_ERROR, .passes_by = notice_passes_by, .anywhere = true},
};

static bool passes_by(const struct rule *rule, const struct pending *head)
{
    return rule->passes_by && rule->passes_by(head);
}

static size_t backend_needs(struct session *session, uint8_t type, size_t total, struct span body)
{
    (void)body;
    const struct rule *rule = &rules[type];
    const struct pending *head = pending_head(&session->owed);
    if (!rule->reply || session->opaque || (!head && !rule->anywhere))
        return 0;
    if (total > rule->max || (head && is_ours(head) && type != 'E' && total > MAX_OURS))
        return 0;
    return passes_by(rule, head) ? 0 : total;
}

/* What is too long to be looked at and legal all the same: the session goes on without it. */
static bool may_be_long(struct session *session, const struct pending *head, uint8_t type, bool *drop)
{
    bool is_asked = head && (head->role == ROLE_CONTEXT || head->role == ROLE_FACTS);
    if (type == 'S' && session->tagging) /* search_path, or an extension's: no other value is longer than a name */
        session->tagging->context_valid = false;
    if (type == 'D' && is_asked) /* a search_path of a megabyte: nothing is known then, and the page is passed */
        session->tagging->inquiry.catalog.failed = true;
    /* The plan of very many partitions: no total. A notice of this size, about a text that we sent. */
    *drop = type == 'N' || (type == 'D' && (is_asked || (head && head->role == ROLE_TOTAL)));
    return *drop || type == 'S';
}

/* A description of what is no page: all that is needed of it is that it has come. */
static bool passes_description(struct session *session, const struct pending *head, uint8_t type)
{
    if (type != 'T' || !head || head->role != ROLE_CLIENT || page_of(head))
        return false;
    if (head->kind == PENDING_DESCRIBE_STATEMENT || head->kind == PENDING_DESCRIBE_PORTAL)
        pop_head(session);
    else if (head->kind != PENDING_QUERY)
        return false;
    return true;
}

static enum action backend_stream(struct session *session, uint8_t type, size_t total, struct span body)
{
    (void)total, (void)body;
    const struct pending *head = pending_head(&session->owed);
    const struct rule *rule = &rules[type];
    if (type == 'R')
        return session_violation(session, SIDE_BACKEND, "an authentication request behind AuthenticationOk");
    if (session->opaque || !rule->reply || passes_by(rule, head))
        return ACTION_RUN; /* neither it nor its like changes anything */
    bool drop = false;
    if (may_be_long(session, head, type, &drop) || passes_description(session, head, type))
        return drop ? ACTION_DONE : ACTION_FORWARD;
    if (!head) /* an error or notice out of turn is the server's own way to say goodbye */
        return type == 'E' || rule->anywhere ? ACTION_FORWARD : unexpected(session);
    return session_violation(session, SIDE_BACKEND, "a reply is too long");
}

static enum action backend_message(struct session *session, uint8_t type, struct span message)
{
    struct pending *head = pending_head(&session->owed);
    return rules[type].reply(session, head, message);
}

const struct way backend_way = {backend_needs, backend_stream, backend_message};
