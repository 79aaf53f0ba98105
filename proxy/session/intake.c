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

/* ---- both sides ---- */

struct direction {
    enum side from, to;
    size_t (*needs)(struct session *session, uint8_t type, size_t total, struct span body);
    enum action (*stream)(struct session *session, uint8_t type, size_t total, struct span body, bool *drop);
    enum action (*message)(struct session *session, uint8_t type, struct span message);
};

static enum action stream_frontend(struct session *session, uint8_t type, size_t total, struct span body, bool *drop)
{
    enum action action = frontend_stream(session, type, total, body);
    *drop = session->drop_to_sync && type != 'X'; /* the Sync itself goes on */
    return action;
}

static size_t needs_backend(struct session *session, uint8_t type, size_t total, struct span body)
{
    (void)body;
    return backend_needs(session, type, total);
}

static enum action stream_backend(struct session *session, uint8_t type, size_t total, struct span body, bool *drop)
{
    (void)total;
    (void)body;
    return backend_stream(session, type, drop);
}

static const struct direction frontend = {SIDE_FRONTEND, SIDE_BACKEND, frontend_needs, stream_frontend,
                                          frontend_message};
static const struct direction backend = {SIDE_BACKEND, SIDE_FRONTEND, needs_backend, stream_backend, backend_message};

/* ---- a statement too large to be looked at ---- */

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Whether what stands in front of a "pgseek" makes it the first word of a comment, or one of our keys in one. */
static bool looks_like_tag(struct span text, size_t at)
{
    if (at + 7 <= text.len && (text.ptr[at + 6] == '_' || text.ptr[at + 6] == '='))
        return true;
    while (at > 0 && is_blank(text.ptr[at - 1]))
        at--;
    return at >= 2 && (memcmp(text.ptr + at - 2, "/*", 2) == 0 || memcmp(text.ptr + at - 2, "--", 2) == 0);
}

static bool window_has_tag(struct span text)
{
    const uint8_t *at = text.ptr;
    while ((at = memmem(at, (size_t)(text.ptr + text.len - at), "pgseek", 6)) != NULL) {
        if (looks_like_tag(text, (size_t)(at - text.ptr)))
            return true;
        at++;
    }
    return false;
}

/* Looks through a part of a large statement, and over the seam to the part before. False when a tag is in it: a cursor
 * must never be ignored, and it is too late for anything but the end of the session. */
static bool search_passes(struct intake *in, struct span part)
{
    uint8_t seam[2 * sizeof in->search.tail];
    size_t head = part.len < sizeof in->search.tail ? part.len : sizeof in->search.tail;
    memcpy(seam, in->search.tail, in->search.len);
    memcpy(seam + in->search.len, part.ptr, head);
    size_t len = in->search.len + head;
    if (window_has_tag(span_of(seam, len)) || window_has_tag(part))
        return false;
    if (part.len >= sizeof in->search.tail) {
        in->search.len = sizeof in->search.tail;
        memcpy(in->search.tail, part.ptr + part.len - in->search.len, in->search.len);
        return true;
    }
    in->search.len = len < sizeof in->search.tail ? len : sizeof in->search.tail;
    memcpy(in->search.tail, seam + len - in->search.len, in->search.len);
    return true;
}

/* Lets bytes of a message pass by. */
static bool pass_by(struct session *session, const struct direction *way, struct span bytes)
{
    struct intake *in = &session->in[way->from];
    if (in->search.on && !search_passes(in, bytes)) {
        session_fatal(session, "54000", "a tagged statement is longer than max_tagged_size",
                      "Pass long lists as one array parameter, or raise max_tagged_size.");
        return false;
    }
    if (!in->skip_drops)
        forward(session, way->to, bytes);
    return true;
}

static void start_stream(struct intake *in, size_t rest, bool drops)
{
    in->skip = rest;
    in->skip_drops = drops;
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
static bool hand_over(struct session *session, const struct direction *way, struct span message, struct span *behind)
{
    enum action action = way->message(session, message.ptr[0], message);
    if (action == ACTION_FORWARD)
        forward(session, way->to, message);
    bool is_last = way == &frontend && session_makes_wait(session); /* what is behind it waits for the server */
    if (action == ACTION_HOLD || is_last) {
        hold(session, action == ACTION_HOLD ? message : span_of(NULL, 0), *behind);
        *behind = span_of(behind->ptr, 0);
        return false;
    }
    return action != ACTION_FAIL && session->state != STATE_CLOSING;
}

/* Before the log-in is over only its own messages go on. A client may send others ahead, but who has not said who he is
 * is not worth more memory than one receive: they are kept as they come, and no more is read. */
static bool waits_for_login(const struct session *session, const struct direction *way, uint8_t type)
{
    bool is_asked = session->state == STATE_VERIFY; /* anything but an answer is a fault then */
    return way == &frontend && !session_is_up(session) && !is_asked && type != 'p' && type != 'X';
}

/* A message starts at the front of `bytes`, header complete. Returns how many bytes must be there to go on, or 0 when
 * it has been dealt with (handled, streaming, or the session ended). */
static size_t begin_message(struct session *session, const struct direction *way, struct span *bytes, bool *go_on)
{
    struct intake *in = &session->in[way->from];
    size_t total = message_length(*bytes);
    *go_on = false;
    if (total == 0) {
        session_violation(session, way->from, "invalid message length");
        return 0;
    }
    if (waits_for_login(session, way, bytes->ptr[0])) {
        hold(session, take(bytes, bytes->len), span_of(NULL, 0));
        return 0;
    }
    size_t have = bytes->len < total ? bytes->len : total;
    size_t need = way->needs(session, bytes->ptr[0], total, span_of(bytes->ptr + WIRE_HEADER, have - WIRE_HEADER));
    if (need > have)
        return need;
    if (need == 0) {
        bool drops = false;
        enum action action =
            way->stream(session, bytes->ptr[0], total, span_of(bytes->ptr + WIRE_HEADER, have - WIRE_HEADER), &drops);
        if (action == ACTION_HOLD)
            hold(session, take(bytes, bytes->len), span_of(NULL, 0));
        if (action == ACTION_FAIL || action == ACTION_HOLD)
            return 0;
        start_stream(in, total, drops);
        *go_on = true;
        return 0;
    }
    struct span message = take(bytes, total);
    *go_on = hand_over(session, way, message, bytes);
    return 0;
}

/* Goes on with the message whose start is in `partial`, taking from `bytes` what it needs. False when the loop must
 * stop. */
static bool complete_partial(struct session *session, const struct direction *way, struct span *bytes)
{
    struct intake *in = &session->in[way->from];
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
        want = begin_message(session, way, &front, &go_on);
        if (want == 0) {
            in->partial = (struct buf){0};
            if (go_on && in->skip) { /* it passes by: its start goes now */
                in->skip -= whole.len;
                go_on = pass_by(session, way, buf_span(&whole));
                in->search.on &= in->skip > 0;
            }
            buf_fini(&whole);
        }
        session->borrowed = was_borrowed;
        if (want == 0 && session->holding && way == &frontend) {
            hold(session, span_of(NULL, 0), *bytes);
            *bytes = span_of(bytes->ptr, 0);
        }
        if (want == 0)
            return go_on;
    }
}

static void read_messages(struct session *session, const struct direction *way, struct span bytes)
{
    struct intake *in = &session->in[way->from];
    while (bytes.len > 0 && session->state != STATE_CLOSING) {
        if (in->skip > 0) {
            struct span part = take(&bytes, in->skip < bytes.len ? (size_t)in->skip : bytes.len);
            in->skip -= part.len;
            if (!pass_by(session, way, part))
                return;
            if (in->skip == 0)
                in->search.on = false;
            continue;
        }
        if (in->partial.len > 0) {
            if (!complete_partial(session, way, &bytes))
                return;
            continue;
        }
        size_t need = WIRE_HEADER;
        bool go_on = true;
        if (bytes.len >= WIRE_HEADER)
            need = begin_message(session, way, &bytes, &go_on);
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
    read_messages(session, &frontend, bytes);
}

void intake_backend(struct session *session, struct span bytes)
{
    if (session->state == STATE_CANCEL)
        return;
    read_messages(session, &backend, bytes);
}

void intake_resume(struct session *session)
{
    if (!session->holding || session_makes_wait(session))
        return;
    struct buf work = session->held;
    session->held = (struct buf){0};
    session->holding = false;
    session->borrowed = false;
    read_messages(session, &frontend, buf_span(&work));
    buf_fini(&work);
}
