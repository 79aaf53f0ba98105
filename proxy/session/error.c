/* error.c - what the client hears of the server's errors: what each is about, in the client's own text.
 *
 * The head of the queue says whose message has failed. It must not know how pages or side queries are made. */
#include "internal.h"

#include <stdlib.h>

static struct span body_of(struct span message)
{
    return span_of(message.ptr + WIRE_HEADER, message.len - WIRE_HEADER);
}

static struct page *page_of(const struct pending *head)
{
    return head->follow ? head->follow->page : NULL;
}

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

bool error_is_fatal(struct span body)
{
    struct span severity;
    return wire_error_field(body, 'V', &severity) && !span_equal_cstr(severity, "ERROR");
}

/* A side query failed. What the client hears of it speaks of the client's own text, of which a part was described, or
 * of the connection's end. */
static enum action error_inquiry(struct session *session, const struct pending *head, struct span message)
{
    const struct inquiry *inquiry = &session->tagging->inquiry;
    int position = head->role == ROLE_DESCRIBE ? position_of(message) : 0;
    if (position > (int)inquiry->token_place)
        position += (int)inquiry->token_len;
    position += position ? (int)inquiry->prefix_len : 0;
    enum action action = inquiry_failed(session);
    if (error_is_fatal(body_of(message)))
        return ACTION_FORWARD;
    return action == ACTION_FORWARD && position ? forward_moved(session, message, position, false) : action;
}

/* Other columns, a kept text that is gone; or a tie-breaker that the role may not read any more, which a cursor cannot
 * do without. */
static bool tells_of_a_stale_plan(const struct pending *head, struct span body)
{
    struct span sqlstate;
    if (head->kind == PENDING_PARSE)
        return true;
    if (!wire_error_field(body, 'C', &sqlstate))
        return false;
    const struct page *page = page_of(head);
    return span_equal_cstr(sqlstate, "08P01") || span_equal_cstr(sqlstate, "26000") ||
           (span_equal_cstr(sqlstate, "42501") && page && page->action != PAGE_KEYSET);
}

/* A page's own Parse or Bind failed. A stale plan is made anew; anything else is what the original would have met. */
static enum action error_page(struct session *session, struct pending *head, struct span message)
{
    struct page *page = page_of(head);
    if (tells_of_a_stale_plan(head, body_of(message)) && retry_instead(session, page))
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

enum action error_reply(struct session *session, struct pending *head, struct span message)
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
