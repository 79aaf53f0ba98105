/* deliver.c - replies that go through a page on their way to the client: descriptions, rows, the end and the cursors.
 *
 * It fills the page in from what the server says and writes what the client is to see; it must not know which message
 * comes next. */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>

static struct page_seal seal_of(const struct session *session)
{
    return (struct page_seal){
        .keyring = session->env->keyring,
        .sign = session->conf->cursor_protection == CONF_PROTECT_SIGN,
        .now = session->env->now(session->env->clock),
    };
}

/* ---- what waits until all rows are there ---- */

#define GATHER_MAX ((size_t)1024 * 1024) /* bytes; beyond, rows go out as they come */

static void release(struct session *session, struct page *page)
{
    if (!page->gathers)
        return;
    buf_put_span(to_frontend(session), buf_span(&page->gathered));
    buf_fini(&page->gathered);
    page->gathers = false;
    sent_frontend(session);
}

static bool waits(const struct page *page, bool is_row)
{
    return page->gathers && (is_row || page->is_simple); /* who asks for a description gets it at once */
}

static struct buf *out_of(struct session *session, struct page *page, bool is_row)
{
    return waits(page, is_row) ? &page->gathered : to_frontend(session);
}

static void sent(struct session *session, struct page *page, bool is_row)
{
    if (!waits(page, is_row))
        sent_frontend(session);
    else if (page->gathered.len > GATHER_MAX)
        release(session, page);
}

/* ---- rows and descriptions ---- */

enum action deliver_row(struct session *session, struct page *page, struct span body)
{
    struct page_seal seal = seal_of(session);
    bool ok = page_put_row(page, &seal, body, out_of(session, page, true)) && !page_failed(page);
    sent(session, page, true);
    if (!ok && (page_failed(page) || sink_failed(&session->env->to_frontend)))
        return session_nomem(session);
    return ok ? ACTION_DONE : session_violation(session, SIDE_BACKEND, "a row does not fit the page");
}

enum action deliver_description(struct session *session, struct page *page, struct span body, bool of_portal)
{
    bool ok = page_put_description(page, body, of_portal, out_of(session, page, false));
    sent(session, page, false);
    if (page->gathered.failed)
        return session_nomem(session);
    return ok ? ACTION_DONE : session_violation(session, SIDE_BACKEND, "a RowDescription does not fit the page");
}

static bool is_description(struct span body)
{
    struct reader rd = rd_init(body);
    struct wire_field field;
    for (size_t n = wire_field_count(&rd); n > 0 && !rd.failed; n--)
        wire_read_field(&rd, &field);
    return rd_done(&rd);
}

enum action deliver_names(struct session *session, struct page *page, struct span body)
{
    if (!is_description(body))
        return session_violation(session, SIDE_BACKEND, "a RowDescription is malformed");
    return description_read_columns(&page->names, body) ? ACTION_DONE : session_nomem(session);
}

/* What the page has come to, for the client and for SHOW. */
static bool report(struct session *session, struct page *page, bool suspended)
{
    struct page_seal seal = seal_of(session);
    struct page_report now;
    if (!page_report(page, &seal, suspended, &now))
        return false;
    page_put_report(page, &now, to_frontend(session));
    page_report_fini(&session->tagging->results);
    session->tagging->results = now;
    return true;
}

/* CommandComplete or PortalSuspended of an Execute on a page; CommandComplete of a passed Query. */
enum action deliver_end(struct session *session, struct page *page, uint8_t type, struct span message)
{
    release(session, page);
    struct buf *out = to_frontend(session);
    bool to_client = page_end_run(page, type != 's', out);
    if (!page->reported && !report(session, page, !to_client))
        return session_nomem(session);
    page->reported |= to_client;
    if (to_client && page_makes_cursors(page)) {
        char tag[40];
        snprintf(tag, sizeof tag, "SELECT %" PRId64, page->run);
        wire_put_command(out, tag);
    } else {
        buf_put_span(out, message);
    }
    page_start_run(page);
    sent_frontend(session);
    return ACTION_DONE;
}

/* The guard's row: the digests of the filter values and of the scope, as the server sees them. */
enum action deliver_digests(struct session *session, struct page *page, struct span body)
{
    struct reader rd = rd_init(body);
    size_t columns = rd_u16(&rd);
    for (size_t i = 0; i < columns; i++) {
        int32_t len;
        const uint8_t *data;
        if (!wire_read_column(&rd, &len, &data))
            break;
        if (i == 0)
            continue;
        if (i > 2 || len < CURSOR_DIGEST)
            return session_violation(session, SIDE_BACKEND, "the guard's row is malformed");
        uint8_t *part = page->part[i == 1 ? CURSOR_FILTER : CURSOR_SCOPE];
        for (size_t b = 0; b < CURSOR_DIGEST; b++)
            part[b] = data[b];
    }
    return rd_done(&rd) && columns == 3 ? ACTION_DONE
                                        : session_violation(session, SIDE_BACKEND, "the guard's row is malformed");
}
