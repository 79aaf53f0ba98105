/* backend.c - what each message of the server answers, and where it goes.
 *
 * The head of the queue says what a reply belongs to; one table says which replies complete which kind. It must not
 * know how pages or side queries are made. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authenticate.h"

#define MAX_SMALL 65536         /* replies that are short by nature */
#define MAX_ERROR (1u << 20)    /* an ErrorResponse that is looked at */
#define MAX_OURS (1u << 20)     /* any reply to a statement of ours */
#define MAX_ROW WIRE_MAX_LENGTH /* a row of a page: as long as a row can be */

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

/* ---- errors ---- */

/* Where a character of the text that was sent stands in the client's; 0: nowhere. What is in front of the shape is the
 * client's own. The text of a prepared statement is not what the client has just sent. */
static int mapped_position(const struct page *page, int position)
{
    int prefix = (int)page->prefix_len;
    if (position <= prefix)
        return position;
    int mapped = page->by_execute ? 0 : pgseek_shape_position(page->planned->plan, page->shape, position - prefix);
    if (mapped > (int)page->token_place)
        mapped += (int)page->token_len;
    return mapped ? mapped + prefix : 0;
}

/* Where the error says that it is; 0: nowhere. */
static int position_of(struct span message)
{
    struct span field;
    return wire_error_field(body_of(message), 'P', &field) ? (int)strtol((const char *)field.ptr, NULL, 10) : 0;
}

/* The error's fields with another position, or none (0). `hides_context`: it speaks of parameters, which an EXECUTE has
 * not. */
static enum action forward_moved(struct session *session, struct span message, int position, bool hides_context)
{
    struct buf *out = to_frontend(session);
    size_t at = wire_open(out, 'E');
    struct reader rd = rd_init(body_of(message));
    for (uint8_t letter = rd_u8(&rd); letter && !rd.failed; letter = rd_u8(&rd)) {
        struct span value = rd_cstr(&rd);
        if ((letter == 'P' && position == 0) || (letter == 'W' && hides_context))
            continue;
        buf_put_u8(out, letter);
        if (letter == 'P')
            buf_put_format(out, "%d", position);
        else
            buf_put_span(out, value);
        buf_put_u8(out, 0);
    }
    buf_put_u8(out, 0);
    wire_close(out, at);
    sent_frontend(session);
    return ACTION_DONE;
}

static enum action forward_mapped(struct session *session, struct page *page, struct span message, bool hides_context)
{
    int position = position_of(message);
    if (!page || !page->planned || !page->shape || (!position && !hides_context))
        return ACTION_FORWARD;
    return forward_moved(session, message, position ? mapped_position(page, position) : 0, hides_context);
}

/* A side query failed. What the client hears of it speaks of the client's own text, of which a part was described. */
static enum action error_inquiry(struct session *session, const struct pending *head, struct span message)
{
    const struct inquiry *inquiry = &session->tagging->inquiry;
    int position = head->role == ROLE_DESCRIBE ? position_of(message) : 0;
    if (position > (int)inquiry->token_place)
        position += (int)inquiry->token_len;
    position += position ? (int)inquiry->prefix_len : 0;
    enum action action = inquiry_failed(session);
    return action == ACTION_FORWARD && position ? forward_moved(session, message, position, false) : action;
}

/* A page's own Parse or Bind failed. A stale plan is made anew; anything else is what the original would have met. */
static enum action error_page(struct session *session, struct pending *head, struct span message)
{
    struct span sqlstate;
    struct page *page = page_of(head);
    bool is_stale = head->kind == PENDING_PARSE;
    if (wire_error_field(body_of(message), 'C', &sqlstate)) /* other columns, or a kept text that is gone */
        is_stale |= span_equal_cstr(sqlstate, "08P01") || span_equal_cstr(sqlstate, "26000");
    if (is_stale && retry_instead(session, page))
        return ACTION_DONE;
    enum action action = forward_mapped(session, page, message, page && page->by_execute && head->kind == PENDING_BIND);
    fail_group(session);
    retry_over(session);
    return action;
}

/* The client's own statement cannot be described: the error is about its text. */
static enum action error_names(struct session *session)
{
    fail_group(session);
    retry_over(session);
    return ACTION_FORWARD;
}

static enum action error_client(struct session *session, struct pending *head, struct span message)
{
    struct inquiry *inquiry = session->tagging ? &session->tagging->inquiry : NULL;
    enum action action = forward_mapped(session, page_of(head), message, false);
    if (pending_ends_group(head->kind)) {
        undo(session, head->follow, 1);
        bool failed = false;
        session->variables = variables_fail(session->variables, &failed);
        return failed ? session_nomem(session) : action;
    }
    fail_group(session);
    if (inquiry && inquiry->state == INQUIRY_RUNNING && !inquiry->own_sync)
        inquiry_reset(inquiry);
    if (session->tagging) {
        total_lost(session);
        retry_over(session);
    }
    return action;
}

static enum action reply_error(struct session *session, struct pending *head, struct span message)
{
    session->doubtful |=
        session->copy_in && !pending_ends_group(head->kind); /* a Sync may have been read by the COPY, or not */
    session->copy_in = false;
    switch (head->role) {
    case ROLE_CONTEXT:
    case ROLE_FACTS:
    case ROLE_DESCRIBE:
    case ROLE_PROBE:
    case ROLE_SIDE_END: return error_inquiry(session, head, message);
    case ROLE_ASIDE:
    case ROLE_TOTAL:
    case ROLE_TOTAL_END: return total_failed(session, body_of(message));
    case ROLE_GUARD: return guard_failed(session, page_of(head), body_of(message));
    case ROLE_REFUSE: return refuse_failed(session, head, body_of(message));
    case ROLE_SHAPE:
    case ROLE_PAGE: return error_page(session, head, message);
    case ROLE_NAMES: return error_names(session);
    default: return error_client(session, head, message);
    }
}

/* ---- ReadyForQuery ---- */

static void login_done(struct session *session)
{
    session_move(session, STATE_UP);
    secure_forget(session);
    stats_add(session->env->stats, STATS_LOGINS);
}

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
        login_done(session);
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
    cancel_map_add(session->env->cancels, key, session->database->name, session->host_index,
                   session->is_tls[SIDE_BACKEND]);
    return ACTION_FORWARD;
}

/* ---- the table ---- */

static const struct rule {
    reply_fn *reply;
    size_t max;    /* length up to which it is needed whole */
    bool anywhere; /* needs no head */
} rules[256] = {
    ['1'] = {reply_parse, MAX_SMALL, false},   ['2'] = {reply_bind, MAX_SMALL, false},
    ['3'] = {reply_close, MAX_SMALL, false},   ['t'] = {reply_params, 1u << 20, false},
    ['T'] = {reply_columns, 8u << 20, false},  ['n'] = {reply_no_data, MAX_SMALL, false},
    ['D'] = {reply_row, MAX_ROW, false},       ['C'] = {reply_end, MAX_SMALL, false},
    ['I'] = {reply_end, MAX_SMALL, false},     ['s'] = {reply_end, MAX_SMALL, false},
    ['G'] = {reply_copy_in, MAX_SMALL, false}, ['W'] = {reply_copy_in, MAX_SMALL, false},
    ['E'] = {reply_error, MAX_ERROR, false},   ['Z'] = {reply_ready, MAX_SMALL, false},
    ['S'] = {reply_status, MAX_SMALL, true},   ['K'] = {reply_key, MAX_SMALL, false},
    ['N'] = {reply_notice, MAX_ERROR, true},
};

/* A row or notice that nobody looks at passes by as it comes. */
static bool passes_by(const struct pending *head, uint8_t type)
{
    if (type == 'N')
        return notice_passes_by(head);
    if (type == 'D' && head)
        return head->role == ROLE_CLIENT && !(page_of(head) && page_filters(page_of(head)));
    return false;
}

size_t backend_needs(struct session *session, uint8_t type, size_t total)
{
    const struct rule *rule = &rules[type];
    const struct pending *head = pending_head(&session->owed);
    if (login_takes(session, SIDE_BACKEND, type))
        return login_needs(session, total);
    if (!rule->reply || session->opaque || (!head && !rule->anywhere))
        return 0;
    if (total > rule->max || (head && is_ours(head) && total > MAX_OURS))
        return 0;
    return passes_by(head, type) ? 0 : total;
}

enum action backend_stream(struct session *session, uint8_t type, bool *drop)
{
    const struct pending *head = pending_head(&session->owed);
    const struct rule *rule = &rules[type];
    *drop = false;
    if (session->may_redial)
        secure_settled(session);
    if (login_takes(session, SIDE_BACKEND, type))
        return login_too_long(session, SIDE_BACKEND);
    if (session->opaque && type == 'Z' && session->state == STATE_LOGIN)
        login_done(session);
    if (session->opaque || !rule->reply || passes_by(head, type))
        return ACTION_FORWARD;
    /* The plan of very many partitions: no total. A notice of this size, about a text that we sent. */
    *drop = type == 'N' || (head && head->role == ROLE_TOTAL && type == 'D');
    if (*drop)
        return ACTION_FORWARD;
    if (!head) /* an error or notice out of turn is the server's own way to say goodbye */
        return type == 'E' || rule->anywhere ? ACTION_FORWARD : unexpected(session);
    return session_violation(session, SIDE_BACKEND, "a reply is too long");
}

enum action backend_message(struct session *session, uint8_t type, struct span message)
{
    if (session->may_redial && secure_redials(session, message))
        return ACTION_FAIL; /* nothing more is expected from this server */
    if (login_takes(session, SIDE_BACKEND, type))
        return login_message(session, SIDE_BACKEND, message);
    struct pending *head = pending_head(&session->owed);
    return rules[type].reply(session, head, message);
}
