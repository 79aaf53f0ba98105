/* gate.c - the way of messages until a session is up.
 *
 * What is the log-in's business goes to authenticate.c, what comes ahead of its time waits, and all else goes where it
 * goes later. So the conversation asks nothing about log-ins. It must not know what a message means. */
#include "authenticate.h"
#include "internal.h"

void gate_opens(struct session *session)
{
    session_move(session, STATE_UP);
    secure_forget(session);
    stats_add(session->env->stats, STATS_LOGINS);
}

/* ---- the client's ---- */

/* Before the log-in is over only its own messages go on. A client may send others ahead, but who has not said who he is
 * is not worth more memory than one receive: they are kept as they come, and no more is read. */
static bool is_ahead(const struct session *session, uint8_t type)
{
    bool is_asked = session->state == STATE_VERIFY; /* anything but an answer is a fault then */
    return !is_asked && type != 'p' && type != 'X';
}

static size_t frontend_needs(struct session *session, uint8_t type, size_t total, struct span body)
{
    if (is_ahead(session, type))
        return 0;
    if (login_takes(session, SIDE_FRONTEND, type))
        return login_needs(session, total);
    return frontend_way.needs(session, type, total, body);
}

static enum action frontend_stream(struct session *session, uint8_t type, size_t total, struct span body)
{
    if (is_ahead(session, type))
        return ACTION_HOLD;
    if (login_takes(session, SIDE_FRONTEND, type))
        return login_too_long(session, SIDE_FRONTEND);
    return frontend_way.stream(session, type, total, body);
}

static enum action frontend_message(struct session *session, uint8_t type, struct span message)
{
    if (login_takes(session, SIDE_FRONTEND, type))
        return login_message(session, SIDE_FRONTEND, message);
    return frontend_way.message(session, type, message);
}

/* ---- the server's ---- */

static size_t backend_needs(struct session *session, uint8_t type, size_t total, struct span body)
{
    if (login_takes(session, SIDE_BACKEND, type))
        return login_needs(session, total);
    return backend_way.needs(session, type, total, body);
}

static enum action backend_stream(struct session *session, uint8_t type, size_t total, struct span body)
{
    if (session->may_redial)
        secure_settled(session);
    if (login_takes(session, SIDE_BACKEND, type))
        return login_too_long(session, SIDE_BACKEND);
    if (session->opaque && type == 'Z' && session->state == STATE_LOGIN)
        gate_opens(session);
    return backend_way.stream(session, type, total, body);
}

static enum action backend_message(struct session *session, uint8_t type, struct span message)
{
    if (session->may_redial && secure_redials(session, message))
        return ACTION_FAIL; /* nothing more is expected from this server */
    if (login_takes(session, SIDE_BACKEND, type))
        return login_message(session, SIDE_BACKEND, message);
    return backend_way.message(session, type, message);
}

const struct way frontend_gate = {frontend_needs, frontend_stream, frontend_message};
const struct way backend_gate = {backend_needs, backend_stream, backend_message};
