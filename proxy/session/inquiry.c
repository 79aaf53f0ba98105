/* inquiry.c - side queries on the client's own server connection while one of its messages waits.
 *
 * They go out behind what the client has sent, closed by a Flush inside its group or by a Sync of ours outside; the
 * answers end in the catalog. It must not know what the facts are for. */
#include "internal.h"

void inquiry_reset(struct inquiry *inquiry)
{
    pgseek_query_free(inquiry->query);
    inquiry->query = NULL;
    inquiry->state = INQUIRY_IDLE;
}

bool pages_are_owed(const struct session *session)
{
    for (uint32_t i = 0; i < session->owed.count; i++) {
        const struct pending *entry = pending_at(&session->owed, i);
        if (entry->kind == PENDING_EXECUTE && entry->follow && entry->follow->page)
            return true;
    }
    return false;
}

/* ---- asking ---- */

/* The replies of one catalog statement. */
static bool expect_statement(struct session *session, enum pending_role role)
{
    static const enum pending_kind kinds[] = {PENDING_CLOSE,   PENDING_PARSE, PENDING_BIND,
                                              PENDING_EXECUTE, PENDING_CLOSE, PENDING_CLOSE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!expect(session, kinds[i], role))
            return false;
    return true;
}

/* A simple Query takes the unnamed statement away, even where its text fails. */
static bool close_unnamed(struct session *session)
{
    wire_put_target(to_backend(session), 'C', 'S', span_cstr(""));
    return expect(session, PENDING_CLOSE, ROLE_DESCRIBE) != NULL;
}

/* The description of a text that is no statement on the server needs a statement of its own. */
static bool describe_text(struct session *session, const struct statement *statement)
{
    static const enum pending_kind kinds[] = {PENDING_CLOSE, PENDING_PARSE, PENDING_DESCRIBE_STATEMENT, PENDING_CLOSE};
    const char *name = session->tagging->reserved;
    struct buf *out = to_backend(session);
    wire_put_target(out, 'C', 'S', span_cstr(name));
    wire_put_parse(out, name, span_of(statement->sql, statement->sql_len), statement->oids, statement->noids);
    wire_put_target(out, 'D', 'S', span_cstr(name));
    wire_put_target(out, 'C', 'S', span_cstr(name));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!expect(session, kinds[i], ROLE_DESCRIBE))
            return false;
    return true;
}

static bool describe_statement(struct session *session, struct span name)
{
    wire_put_target(to_backend(session), 'D', 'S', name);
    return expect(session, PENDING_DESCRIBE_STATEMENT, ROLE_DESCRIBE) != NULL;
}

static bool ask_all(struct session *session, const struct statement *statement, struct span name, bool simple)
{
    struct inquiry *inquiry = &session->tagging->inquiry;
    const char *reserved = session->tagging->reserved;
    bool by_text = statement->prefix || (simple && name.len == 0);
    if (inquiry->query && simple && !close_unnamed(session))
        return false;
    if (inquiry->query && !(by_text ? describe_text(session, statement) : describe_statement(session, name)))
        return false;
    catalog_put_context(to_backend(session), reserved);
    if (!expect_statement(session, ROLE_CONTEXT))
        return false;
    if (inquiry->query) {
        catalog_put_facts(to_backend(session), reserved, inquiry->query);
        if (!expect_statement(session, ROLE_FACTS))
            return false;
    }
    wire_put_empty(to_backend(session), inquiry->own_sync ? 'S' : 'H');
    if (inquiry->own_sync)
        return expect(session, PENDING_SYNC, ROLE_SIDE_END) != NULL;
    pending_at(&session->owed, session->owed.count - 1)->role = ROLE_SIDE_END;
    return true;
}

enum action inquiry_ask(struct session *session, struct pgseek_query *query, const struct statement *statement,
                        struct span name, bool simple)
{
    struct inquiry *inquiry = &session->tagging->inquiry;
    bool ran = session->ran;
    inquiry_reset(inquiry);
    inquiry->query = query;
    inquiry->simple = simple;
    inquiry->own_sync = simple || !session->unsynced;
    if (!catalog_start(&inquiry->catalog))
        return session_nomem(session);
    inquiry->state = INQUIRY_RUNNING;
    stats_add(session->env->stats, STATS_SIDE_QUERIES);
    if (!ask_all(session, statement, name, simple))
        return session_nomem(session);
    session->ran = ran; /* only what the client runs counts */
    sent_backend(session);
    return ACTION_HOLD;
}

/* ---- answers ---- */

enum action inquiry_row(struct session *session, const struct pending *head, struct span body)
{
    struct catalog *catalog = &session->tagging->inquiry.catalog;
    if (head->role == ROLE_CONTEXT)
        catalog_context_row(catalog, body);
    if (head->role == ROLE_FACTS)
        catalog_facts_row(catalog, body);
    return ACTION_DONE;
}

enum action inquiry_described(struct session *session, uint8_t type, struct span body)
{
    struct catalog *catalog = &session->tagging->inquiry.catalog;
    bool read = type == 't' ? description_read_params(&catalog->description, body)
                            : description_read_columns(&catalog->description, body);
    catalog->failed |= !read;
    return ACTION_DONE;
}

void inquiry_ended(struct session *session)
{
    struct inquiry *inquiry = &session->tagging->inquiry;
    if (inquiry->state == INQUIRY_RUNNING)
        inquiry->state =
            inquiry->catalog.failed || !context_is_known(&inquiry->catalog.context) ? INQUIRY_FAILED : INQUIRY_ANSWERED;
    session->wake |= session->holding;
}

/* Outside a block the failure is ours alone: the ReadyForQuery of our Sync ends it. Inside, the transaction is lost, so
 * the error is the answer to the message that waits: in the client's group the server discards the rest of it by
 * itself; with our Sync, we do. */
enum action inquiry_failed(struct session *session)
{
    struct inquiry *inquiry = &session->tagging->inquiry;
    bool is_ours = inquiry->own_sync && session->status == 'I';
    fail_group(session);
    inquiry->state = is_ours ? INQUIRY_FAILED : INQUIRY_REFUSED;
    if (!is_ours && inquiry->simple)
        pending_head(&session->owed)->role = ROLE_CLIENT; /* our Sync ends the client's Query */
    if (!inquiry->own_sync)
        inquiry_reset(inquiry);
    return is_ours ? ACTION_DONE : ACTION_FORWARD;
}
