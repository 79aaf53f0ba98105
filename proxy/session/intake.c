/* intake.c - cuts each side's bytes into messages: whole ones where they are needed, in passing where not.
 *
 * Memory is used only for a message that is needed whole and has not arrived whole, and grows with what has arrived,
 * never with what a header claims. It must not know what a message means. */
#include "internal.h"

#include <string.h>

/* The length of the message that starts here, type byte included; 0 when no message can be that long. */
static size_t message_length(struct span header)
{
    uint32_t len = get_u32(header.ptr + 1);
    return len >= 4 && len <= WIRE_MAX_LENGTH ? (size_t)len + 1 : 0;
}

/* Messages of one type that stand right behind each other, the last of them maybe not whole. */
static size_t run_length(struct span bytes, size_t first)
{
    size_t len = first;
    while (len + WIRE_HEADER <= bytes.len && bytes.ptr[len] == bytes.ptr[0]) {
        size_t next = message_length(span_of(bytes.ptr + len, WIRE_HEADER));
        if (next == 0)
            break; /* a fault, to be found when its turn comes */
        len += next;
    }
    return len;
}

static enum side other(enum side side)
{
    return side == SIDE_FRONTEND ? SIDE_BACKEND : SIDE_FRONTEND;
}

static const struct way *way_of(const struct session *session, enum side from)
{
    if (from == SIDE_FRONTEND)
        return session_is_up(session) ? &frontend_way : &frontend_gate;
    return session_is_up(session) ? &backend_way : &backend_gate;
}

/* ---- passing by ---- */

/* Lets bytes of a message pass by. */
static bool pass_by(struct session *session, enum side from, struct span bytes)
{
    struct intake *in = &session->in[from];
    if (in->search.on &&
        search_finds_tag(&in->search, bytes)) { /* its cursor must not be ignored, and it is too late */
        session_fatal(session, "54000", "a tagged statement is longer than max_tagged_size",
                      "Pass long lists as one array parameter, or raise max_tagged_size.");
        return false;
    }
    if (!in->skip_drops)
        forward(session, other(from), bytes);
    return true;
}

/* ---- the loop ---- */

static struct span take(struct span *bytes, size_t len)
{
    struct span taken = span_of(bytes->ptr, len);
    *bytes = span_of(bytes->ptr + len, bytes->len - len);
    return taken;
}

/* Keeps a message that waits, and all that is behind it. */
static void hold(struct session *session, struct span message, struct span behind)
{
    session->holding = true;
    buf_put_span(&session->held, message);
    buf_put_span(&session->held, behind);
    if (session->held.failed)
        session_nomem(session);
}

/* Hands over one whole message. False when the loop must stop. */
static bool hand_over(struct session *session, enum side from, const struct way *way, struct span message,
                      struct span *behind)
{
    enum action action = way->message(session, message.ptr[0], message);
    if (action == ACTION_FORWARD)
        forward(session, other(from), message);
    bool is_last = way == &frontend_gate && session_makes_wait(session); /* what is behind it waits for the server */
    if (action == ACTION_HOLD || is_last) {
        hold(session, action == ACTION_HOLD ? message : span_of(NULL, 0), *behind);
        *behind = span_of(behind->ptr, 0);
        return false;
    }
    return action != ACTION_FAIL && session->state != STATE_CLOSING;
}

/* A message passes by, or waits with all that is behind it. False when the loop must stop. */
static bool start_stream(struct session *session, enum side from, size_t total, enum action action, struct span *bytes)
{
    struct intake *in = &session->in[from];
    if (action == ACTION_HOLD)
        hold(session, take(bytes, bytes->len), span_of(NULL, 0));
    if (action == ACTION_HOLD || action == ACTION_FAIL)
        return false;
    in->skip = action == ACTION_RUN ? run_length(*bytes, total) : total;
    in->skip_drops = action == ACTION_DONE;
    return true;
}

/* A message starts at the front of `bytes`, header complete. Returns how many bytes must be there to go on, or 0 when
 * it has been dealt with (handled, streaming, or the session ended). */
static size_t begin_message(struct session *session, enum side from, struct span *bytes, bool *go_on)
{
    const struct way *way = way_of(session, from);
    uint8_t type = bytes->ptr[0];
    size_t total = message_length(*bytes);
    *go_on = false;
    if (total == 0) {
        session_violation(session, from, "invalid message length");
        return 0;
    }
    size_t have = bytes->len < total ? bytes->len : total;
    struct span body = span_of(bytes->ptr + WIRE_HEADER, have - WIRE_HEADER);
    size_t need = way->needs(session, type, total, body);
    if (need > have)
        return need;
    if (need > 0)
        *go_on = hand_over(session, from, way, take(bytes, total), bytes);
    else
        *go_on = start_stream(session, from, total, way->stream(session, type, total, body), bytes);
    return 0;
}

/* Goes on with the message whose start is in `partial`, taking from `bytes` what it needs. False when the loop must
 * stop. */
static bool complete_partial(struct session *session, enum side from, struct span *bytes)
{
    struct intake *in = &session->in[from];
    size_t want = WIRE_HEADER;
    for (;;) {
        if (in->partial.len < want) {
            size_t more = want - in->partial.len;
            buf_put_span(&in->partial, take(bytes, more < bytes->len ? more : bytes->len));
            if (in->partial.failed) {
                session_nomem(session);
                return false;
            }
            if (in->partial.len < want)
                return false;
        }
        struct buf whole = in->partial;
        struct span front = buf_span(&whole);
        bool was_borrowed = session->borrowed;
        bool go_on;
        session->borrowed = false;
        want = begin_message(session, from, &front, &go_on);
        if (want == 0) {
            in->partial = (struct buf){0};
            if (go_on && in->skip) { /* it passes by: its start goes now */
                in->skip -= whole.len;
                go_on = pass_by(session, from, buf_span(&whole));
                in->search.on &= in->skip > 0;
            }
            buf_fini(&whole);
        }
        session->borrowed = was_borrowed;
        if (want == 0 && session->holding && from == SIDE_FRONTEND) {
            hold(session, span_of(NULL, 0), *bytes);
            *bytes = span_of(bytes->ptr, 0);
        }
        if (want == 0)
            return go_on;
    }
}

static void read_messages(struct session *session, enum side from, struct span bytes)
{
    struct intake *in = &session->in[from];
    while (bytes.len > 0 && session->state != STATE_CLOSING) {
        if (in->skip > 0) {
            struct span part = take(&bytes, in->skip < bytes.len ? (size_t)in->skip : bytes.len);
            in->skip -= part.len;
            if (!pass_by(session, from, part))
                return;
            if (in->skip == 0)
                in->search.on = false;
            continue;
        }
        if (in->partial.len > 0) {
            if (!complete_partial(session, from, &bytes))
                return;
            continue;
        }
        size_t need = WIRE_HEADER;
        bool go_on = true;
        if (bytes.len >= WIRE_HEADER)
            need = begin_message(session, from, &bytes, &go_on);
        if (need > 0) {
            buf_put_span(&in->partial, bytes);
            if (in->partial.failed)
                session_nomem(session);
            return;
        }
        if (!go_on)
            return;
    }
}

/* ---- the frontend's untyped packets ---- */

/* Takes one packet off the front. False when it has not arrived whole, or the session ended. Who begins with something
 * else gets no answer, as from the server: node-postgres says Terminate first where its user ends a client that has not
 * logged in yet, and would take an error for a failure. */
static bool read_packet(struct session *session, struct span *bytes)
{
    struct buf *partial = &session->in[SIDE_FRONTEND].partial;
    size_t want = partial->len < 4 ? 4 : startup_length(buf_span(partial));
    while (partial->len < want) {
        size_t more = want - partial->len;
        buf_put_span(partial, take(bytes, more < bytes->len ? more : bytes->len));
        if (partial->failed) {
            session_nomem(session);
            return false;
        }
        if (partial->len < want)
            return false;
        if (want == 4)
            want = startup_length(buf_span(partial));
        if (want == 0) {
            session_hang_up(session, "invalid length of startup packet");
            return false;
        }
    }
    struct buf packet = *partial;
    *partial = (struct buf){0};
    login_packet(session, buf_span(&packet), bytes->len > 0);
    buf_fini(&packet);
    return true;
}

void intake_frontend(struct session *session, struct span bytes)
{
    while (session->state == STATE_STARTUP && bytes.len > 0)
        if (!read_packet(session, &bytes))
            return;
    if (bytes.len == 0 || session->state == STATE_CLOSING)
        return;
    if (session_makes_wait(session) ||
        session->holding) { /* sent without waiting for an answer: kept until it can go */
        hold(session, span_of(NULL, 0), bytes);
        session->holding = true;
        return;
    }
    if (session->state == STATE_CANCEL || session->state == STATE_SECURE)
        return;
    read_messages(session, SIDE_FRONTEND, bytes);
}

void intake_backend(struct session *session, struct span bytes)
{
    if (session->state == STATE_CANCEL)
        return;
    read_messages(session, SIDE_BACKEND, bytes);
}

void intake_resume(struct session *session)
{
    if (!session->holding || session_makes_wait(session))
        return;
    struct buf work = session->held;
    session->held = (struct buf){0};
    session->holding = false;
    session->borrowed = false;
    read_messages(session, SIDE_FRONTEND, buf_span(&work));
    buf_fini(&work);
}
