/* inquiry.c - side queries on the client's own server connection while one of its messages waits.
 *
 * They go out behind what the client has sent, closed by a Flush inside its group or by a Sync of ours outside; the
 * answers end in the catalog. What these make the parser ask is asked in another round. It must not know what the facts
 * are for.
 *
 * A probe, a text that pgseek wrote from the client's, is all that the server may refuse. It is sent last, only when
 * nothing of the client's has run in the group, and closed by a Sync of ours; inside the client's block it stands
 * behind a savepoint. So a refusal costs the client nothing. */
#include "internal.h"

#include <string.h>

#include <stdio.h>

void inquiry_reset(struct inquiry *inquiry)
{
    pgseek_query_free(inquiry->query);
    catalog_fini(&inquiry->catalog);
    *inquiry = (struct inquiry){.state = INQUIRY_IDLE};
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

/* A command of ours about the savepoint. */
static bool put_savepoint(struct session *session, const char *command)
{
    char sql[96];
    snprintf(sql, sizeof sql, "%s \"%s\"", command, session->tagging->reserved);
    catalog_put_command(to_backend(session), session->tagging->reserved, sql);
    return expect_statement(session, ROLE_FACTS);
}

/* The probe's parameters are the statement's own. */
static bool describe_probe(struct session *session)
{
    static const enum pending_kind kinds[] = {PENDING_CLOSE, PENDING_PARSE, PENDING_DESCRIBE_STATEMENT, PENDING_CLOSE};
    const struct catalog *catalog = &session->tagging->inquiry.catalog;
    const char *name = session->tagging->reserved;
    struct buf *out = to_backend(session);
    size_t len;
    const char *sql = pgseek_facts_probe(catalog->facts, &len);
    wire_put_target(out, 'C', 'S', span_cstr(name));
    wire_put_parse(out, name, span_of(sql, len), catalog->description.param_oids, catalog->description.nparams);
    wire_put_target(out, 'D', 'S', span_cstr(name));
    wire_put_target(out, 'C', 'S', span_cstr(name));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!expect(session, kinds[i], ROLE_PROBE))
            return false;
    return true;
}

static bool put_probe(struct session *session)
{
    struct inquiry *inquiry = &session->tagging->inquiry;
    inquiry->has_savepoint = session->status == 'T';
    if (!inquiry->has_savepoint)
        return describe_probe(session);
    return put_savepoint(session, "SAVEPOINT") && describe_probe(session) &&
           put_savepoint(session, "RELEASE SAVEPOINT");
}

static bool put_end(struct session *session)
{
    bool own_sync = session->tagging->inquiry.own_sync;
    wire_put_empty(to_backend(session), own_sync ? 'S' : 'H');
    if (own_sync)
        return expect(session, PENDING_SYNC, ROLE_SIDE_END) != NULL;
    pending_at(&session->owed, session->owed.count - 1)->role = ROLE_SIDE_END;
    return true;
}

/* The context, and what the facts ask for. */
static bool put_questions(struct session *session)
{
    struct inquiry *inquiry = &session->tagging->inquiry;
    const char *reserved = session->tagging->reserved;
    catalog_put_context(to_backend(session), reserved);
    if (!expect_statement(session, ROLE_CONTEXT))
        return false;
    if (!inquiry->query)
        return true;
    catalog_put_facts(to_backend(session), reserved, inquiry->catalog.facts);
    return expect_statement(session, ROLE_FACTS);
}

static enum action sent_questions(struct session *session, bool ran, bool ok)
{
    if (!ok)
        return session_nomem(session);
    session->ran = ran; /* only what the client runs counts */
    session->tagging->inquiry.state = INQUIRY_RUNNING;
    session->tagging->inquiry.rounds++;
    stats_add(session->env->stats, STATS_SIDE_QUERIES);
    sent_backend(session);
    return ACTION_HOLD;
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
    if (!catalog_start(&inquiry->catalog, query))
        return session_nomem(session);
    bool by_text = query && (statement->prefix || (simple && name.len == 0));
    inquiry->prefix_len = by_text && statement->prefix ? strlen(statement->prefix) : 0;
    inquiry->token_place = statement->token_place;
    inquiry->token_len = by_text ? statement->token_len : 0;
    bool ok = !query || ((!simple || close_unnamed(session)) &&
                         (by_text ? describe_text(session, statement) : describe_statement(session, name)));
    return sent_questions(session, ran, ok && put_questions(session) && put_end(session));
}

enum action inquiry_ask_more(struct session *session, bool *possible)
{
    struct inquiry *inquiry = &session->tagging->inquiry;
    bool ran = session->ran;
    size_t len;
    bool has_probe = pgseek_facts_probe(inquiry->catalog.facts, &len) != NULL;
    *possible = inquiry->rounds < PGSEEK_FACTS_MAX_ROUNDS && !(has_probe && ran);
    if (!*possible)
        return ACTION_DONE;
    inquiry->own_sync = inquiry->simple || has_probe || !session->unsynced;
    return sent_questions(session, ran,
                          put_questions(session) && (!has_probe || put_probe(session)) && put_end(session));
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

enum action inquiry_described(struct session *session, const struct pending *head, uint8_t type, struct span body)
{
    struct catalog *catalog = &session->tagging->inquiry.catalog;
    bool is_probe = head->role == ROLE_PROBE;
    struct description *description = is_probe ? &catalog->probe : &catalog->description;
    bool read = type == 't' ? description_read_params(description, body) : description_read_columns(description, body);
    catalog->is_probe_described |= is_probe && type == 'T';
    catalog->failed |= !read;
    return ACTION_DONE;
}

/* A round of its own, with nothing but the way back. */
static void roll_back(struct session *session)
{
    struct inquiry *inquiry = &session->tagging->inquiry;
    inquiry->rolls_back = inquiry->has_savepoint = false;
    if (put_savepoint(session, "ROLLBACK TO SAVEPOINT") && put_savepoint(session, "RELEASE SAVEPOINT") &&
        put_end(session)) {
        session->ran = false;
        sent_backend(session);
    } else {
        (void)session_nomem(session);
    }
}

void inquiry_ended(struct session *session)
{
    struct inquiry *inquiry = &session->tagging->inquiry;
    if (inquiry->rolls_back) {
        roll_back(session);
        return;
    }
    if (inquiry->state == INQUIRY_RUNNING) {
        catalog_answered(&inquiry->catalog);
        bool failed = inquiry->catalog.failed || !context_is_known(&inquiry->catalog.context);
        inquiry->state = failed ? INQUIRY_FAILED : INQUIRY_ANSWERED;
    }
    session->wake |= session->holding;
}

/* A refused probe has no description; all that was asked for before it is answered, and the ReadyForQuery of our Sync
 * is still to come. Any other failure is ours alone outside a block: the ReadyForQuery of our Sync ends it. Inside, the
 * transaction is lost, so the error is the answer to the message that waits: in the client's group the server discards
 * the rest of it by itself; with our Sync, we do. */
enum action inquiry_failed(struct session *session)
{
    struct inquiry *inquiry = &session->tagging->inquiry;
    bool is_probe = pending_head(&session->owed)->role == ROLE_PROBE;
    bool is_ours = inquiry->own_sync && session->status == 'I';
    fail_group(session);
    if (is_probe) {
        inquiry->rolls_back = inquiry->has_savepoint;
        return ACTION_DONE;
    }
    inquiry->state = is_ours ? INQUIRY_FAILED : INQUIRY_REFUSED;
    if (!is_ours && inquiry->simple)
        pending_head(&session->owed)->role = ROLE_CLIENT; /* our Sync ends the client's Query */
    if (!inquiry->own_sync)
        inquiry_reset(inquiry);
    return is_ours ? ACTION_DONE : ACTION_FORWARD;
}
