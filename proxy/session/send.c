/* send.c - the messages that fetch a page, or the original one where the page is passed.
 *
 * The page's text lives on the server for the length of the Bind only; the guard runs behind that Bind and before any
 * Execute, so that the server itself checks what the plan assumed, under the locks that the Bind took. It must not
 * decide anything. */
#include "internal.h"

#include <string.h>

#define OID_BYTEA 17
#define OID_TEXT 25

/* ---- Bind ---- */

void put_bind(struct buf *out, struct span portal, const char *statement, const struct value *values, size_t nvalues,
              const uint8_t *results, size_t nresults)
{
    size_t at = wire_open(out, 'B');
    buf_put_span(out, portal);
    buf_put_u8(out, 0);
    buf_put_cstr(out, statement);
    buf_put_u16(out, (uint16_t)nvalues);
    for (size_t i = 0; i < nvalues; i++)
        buf_put_u16(out, (uint16_t)values[i].format);
    buf_put_u16(out, (uint16_t)nvalues);
    for (size_t i = 0; i < nvalues; i++) {
        buf_put_i32(out, values[i].len);
        if (values[i].len > 0)
            buf_put(out, values[i].data, (size_t)values[i].len);
    }
    buf_put_u16(out, (uint16_t)nresults);
    buf_put(out, results, nresults * 2);
    wire_close(out, at);
}

static struct value text_value(const char *text)
{
    return (struct value){.format = 0, .len = (int32_t)strlen(text), .data = (const uint8_t *)text};
}

/* ---- the page's own values and formats ---- */

struct sending {
    struct session *session;
    const struct request *request;
    struct page *page;
    const struct pgseek_shape *shape;
    const struct boundary *boundary;
    const struct wire_param *params;
    uint8_t fetch[8], limit[8]; /* int8 */
};

static void set_i64(uint8_t *to, int64_t value)
{
    set_u32(to, (uint32_t)((uint64_t)value >> 32));
    set_u32(to + 4, (uint32_t)value);
}

/* The token's own place is NULL where the text does not read it: the server never sees the token then. */
static struct value client_value(const struct sending *s, size_t i)
{
    const struct pgseek_settings *tag = &s->request->statement->tag.settings;
    const struct wire_param *param = &s->params[i];
    if (tag->cursor_kind == PGSEEK_CURSOR_PARAM && (size_t)tag->cursor_param == i + 1 &&
        !pgseek_query_uses_param(s->page->planned->query, tag->cursor_param))
        return (struct value){.len = -1};
    return (struct value){.format = param->format, .len = param->len, .data = param->data};
}

static struct value slot_value(const struct sending *s, size_t i)
{
    const struct pgseek_slot *slot = &s->shape->slots[i];
    const struct cursor_value *key = &s->boundary->cursor.value[slot->index];
    switch (slot->kind) {
    case PGSEEK_SLOT_CLIENT: return client_value(s, i);
    case PGSEEK_SLOT_KEY: return (struct value){.format = 1, .len = key->len, .data = key->data};
    case PGSEEK_SLOT_FETCH: return (struct value){.format = 1, .len = s->page->limit < 0 ? -1 : 8, .data = s->fetch};
    case PGSEEK_SLOT_LIMIT: return (struct value){.format = 1, .len = s->page->limit < 0 ? -1 : 8, .data = s->limit};
    }
    return (struct value){.len = -1};
}

/* The client's formats for its columns, binary for the hidden ones. Empty when out of memory. */
static void put_results(const struct sending *s, struct buf *out)
{
    const struct wire_bind *bind = s->request->bind;
    size_t n = bind ? bind->nresults : 0;
    if (!page_makes_cursors(s->page)) {
        buf_put(out, bind ? bind->results : NULL, n * 2);
        return;
    }
    for (size_t i = 0; i < s->page->planned->description.ncolumns; i++)
        buf_put_u16(out, n == 0 ? 0 : get_u16(bind->results + 2 * (n == 1 ? 0 : i)));
    for (size_t i = 0; i < s->page->nhidden; i++)
        buf_put_u16(out, 1);
}

static bool put_page_bind(const struct sending *s, const char *statement)
{
    size_t n = s->shape->nslots;
    struct value *values = mem_alloc(n * sizeof *values);
    struct buf results = {0};
    put_results(s, &results);
    bool ok = values && !results.failed;
    for (size_t i = 0; ok && i < n; i++)
        values[i] = slot_value(s, i);
    if (ok)
        put_bind(to_backend(s->session), s->request->portal.ptr ? s->request->portal : span_cstr(""), statement, values,
                 n, results.ptr, results.len / 2);
    buf_fini(&results);
    mem_free(values);
    return ok;
}

static bool put_page_parse(const struct sending *s, const char *statement)
{
    uint32_t *oids = mem_alloc(s->shape->nslots * sizeof *oids);
    if (!oids)
        return false;
    for (size_t i = 0; i < s->shape->nslots; i++)
        oids[i] = s->shape->slots[i].type_oid;
    struct buf sql = {0};
    buf_put_span(&sql, s->request->prefix);
    buf_put(&sql, s->shape->sql, s->shape->len);
    wire_put_parse(to_backend(s->session), statement, buf_span(&sql), oids, s->shape->nslots);
    bool ok = !sql.failed;
    buf_fini(&sql);
    mem_free(oids);
    return ok;
}

/* ---- expected replies ---- */

static struct pending *expect_for_page(const struct sending *s, enum pending_kind kind, enum pending_role role)
{
    struct pending *entry = expect(s->session, kind, role);
    struct follow *follow = entry ? follow_of(entry) : NULL;
    if (!follow)
        return NULL;
    follow->page = page_ref(s->page);
    return entry;
}

/* ---- prepared texts ---- */

/* A text of ours on the server: kept for a named statement, else under the reserved name for the length of its Bind. */
struct text {
    const char *name;
    struct kept *kept; /* NULL: not kept */
};

static bool choose_text(const struct sending *s, struct planned_shape *shape, struct text *out)
{
    struct tagging *tagging = s->session->tagging;
    *out = (struct text){.name = tagging->reserved};
    if (s->request->name.len == 0 || !page_makes_cursors(s->page))
        return true;
    out->kept = kept_get(tagging, s->request->statement, s->page->planned, shape);
    if (!out->kept)
        return false;
    out->name = out->kept->name;
    return true;
}

static bool expect_text(const struct sending *s, const struct text *text, enum pending_kind kind,
                        enum pending_role role)
{
    struct pending *entry = expect_for_page(s, kind, role);
    if (!entry)
        return false;
    if (text->kept)
        entry->follow->kept = (struct kept *)object_ref(&text->kept->object);
    return true;
}

static bool put_close(const struct sending *s, const char *name)
{
    wire_put_target(to_backend(s->session), 'C', 'S', span_cstr(name));
    return expect(s->session, PENDING_CLOSE, ROLE_SWALLOW) != NULL;
}

/* Close first: what a failed group has left under the name must not be in the way. */
static bool put_prepare(const struct sending *s, const struct text *text,
                        bool (*put_parse)(const struct sending *s, const char *statement), enum pending_role role)
{
    if (text->kept && text->kept->is_ready)
        return true;
    return put_close(s, text->name) && put_parse(s, text->name) && expect_text(s, text, PENDING_PARSE, role);
}

static bool put_release(const struct sending *s, const struct text *text)
{
    return text->kept || put_close(s, text->name);
}

/* Kept texts whose statement is gone. */
static bool put_orphans(const struct sending *s)
{
    for (struct kept *kept; (kept = kept_next_orphan(s->session->tagging)) != NULL;) {
        bool ok = put_close(s, kept->name);
        object_unref(&kept->object);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- names ---- */

/* Where the page's text would be described otherwise than the client's own, the server is asked for that description:
 * behind the page's Bind, so that the tables are locked and cannot change in between. */
static bool put_names(const struct sending *s)
{
    const struct statement *statement = s->request->statement;
    struct buf *out = to_backend(s->session);
    if (!s->shape->own_describe || !page_makes_cursors(s->page))
        return true;
    if (!s->request->simple || s->request->name.len > 0) {
        wire_put_target(out, 'D', 'S', s->request->name);
        return expect_for_page(s, PENDING_DESCRIBE_STATEMENT, ROLE_NAMES) != NULL;
    }
    const char *name = s->session->tagging->reserved;
    wire_put_parse(out, name, span_of(statement->sql, statement->sql_len), statement->oids, statement->noids);
    wire_put_target(out, 'D', 'S', span_cstr(name));
    return expect(s->session, PENDING_PARSE, ROLE_NAMES) &&
           expect_for_page(s, PENDING_DESCRIBE_STATEMENT, ROLE_NAMES) && put_close(s, name);
}

/* ---- the guard ---- */

static struct value digest_value(const struct sending *s, enum cursor_part part)
{
    if (!s->boundary->given)
        return (struct value){.len = -1};
    return (struct value){.format = 1, .len = CURSOR_DIGEST, .data = s->boundary->cursor.part[part]};
}

static bool put_guard_parse(const struct sending *s, const char *statement)
{
    const struct description *description = &s->page->planned->description;
    size_t n = description->nparams;
    uint32_t *oids = mem_alloc((n + PGSEEK_GUARD_PARAMS) * sizeof *oids);
    if (!oids)
        return false;
    for (size_t i = 0; i < n; i++)
        oids[i] = description->param_oids[i];
    for (size_t i = 0; i < PGSEEK_GUARD_PARAMS; i++)
        oids[n + i] = i == PGSEEK_GUARD_FILTER || i == PGSEEK_GUARD_SCOPE ? OID_BYTEA : OID_TEXT;
    wire_put_parse(to_backend(s->session), statement, span_cstr(s->page->planned->guard), oids,
                   n + PGSEEK_GUARD_PARAMS);
    mem_free(oids);
    return true;
}

static bool put_guard_bind(const struct sending *s, const char *statement)
{
    static const uint8_t binary[] = {0, 1};
    const struct context *context = &s->page->planned->context;
    size_t n = s->page->planned->description.nparams;
    struct value *values = mem_alloc((n + PGSEEK_GUARD_PARAMS) * sizeof *values);
    if (!values)
        return false;
    for (size_t i = 0; i < n; i++)
        values[i] = client_value(s, i);
    values[n + PGSEEK_GUARD_SEARCH_PATH] = text_value(context->value[PGSEEK_CTX_SEARCH_PATH]);
    values[n + PGSEEK_GUARD_USER] = text_value(context->value[PGSEEK_CTX_USER]);
    values[n + PGSEEK_GUARD_ENCODING] = text_value(context->value[PGSEEK_CTX_ENCODING]);
    values[n + PGSEEK_GUARD_LOCALE] = text_value(context->value[PGSEEK_CTX_LOCALE]);
    values[n + PGSEEK_GUARD_FILTER] = digest_value(s, CURSOR_FILTER);
    values[n + PGSEEK_GUARD_SCOPE] = digest_value(s, CURSOR_SCOPE);
    put_bind(to_backend(s->session), span_cstr(s->session->tagging->reserved), statement, values,
             n + PGSEEK_GUARD_PARAMS, binary, 1);
    mem_free(values);
    return true;
}

/* The guard's portal has the reserved name, which no page's portal can have. */
static bool put_guard(const struct sending *s)
{
    struct span portal = span_cstr(s->session->tagging->reserved);
    struct text text;
    if (!choose_text(s, NULL, &text) || !put_prepare(s, &text, put_guard_parse, ROLE_GUARD) ||
        !put_guard_bind(s, text.name) || !expect_text(s, &text, PENDING_BIND, ROLE_GUARD))
        return false;
    wire_put_execute(to_backend(s->session), portal, 0);
    wire_put_target(to_backend(s->session), 'C', 'P', portal);
    return expect_for_page(s, PENDING_EXECUTE, ROLE_GUARD) && expect_for_page(s, PENDING_CLOSE, ROLE_GUARD) &&
           put_release(s, &text);
}

/* ---- a page in the extended protocol ---- */

/* A statement that was prepared before this group is described once more: the server then says what it would say to the
 * original's own Bind if the table has changed under it. */
static bool put_revalidation(const struct sending *s)
{
    if (s->request->name.len == 0 && s->request->simple)
        return true; /* it was never prepared */
    if (s->request->name.len == 0 && s->request->statement->group == s->session->group)
        return true;
    wire_put_target(to_backend(s->session), 'D', 'S', s->request->name);
    return expect(s->session, PENDING_DESCRIBE_STATEMENT, ROLE_SWALLOW) != NULL;
}

static struct portal *page_portal(const struct sending *s, bool spends_cursor)
{
    struct portal *portal = portal_new();
    if (!portal)
        return NULL;
    portal->kind = PORTAL_PAGE;
    portal->page = page_ref(s->page);
    portal->spends_cursor = spends_cursor;
    return portal;
}

static bool put_extended(const struct sending *s, bool spends_cursor)
{
    struct text text;
    if (!put_revalidation(s) || !put_orphans(s) || !choose_text(s, s->page->origin, &text) ||
        !put_prepare(s, &text, put_page_parse, ROLE_SHAPE) || !put_page_bind(s, text.name) ||
        !expect_text(s, &text, PENDING_BIND, ROLE_PAGE))
        return false;
    struct portal *portal = page_portal(s, spends_cursor);
    struct pending *bind = pending_at(&s->session->owed, s->session->owed.count - 1);
    return portal && change_portal(s->session, bind, s->request->portal, portal) && put_release(s, &text) &&
           put_names(s) && put_guard(s);
}

/* ---- a page in the simple protocol ---- */

static bool put_simple(const struct sending *s, bool spends_cursor)
{
    /* A simple Query takes the unnamed statement away first, whatever becomes of it. */
    struct text text;
    bool ok = put_close(s, "") && put_revalidation(s) && put_orphans(s) && choose_text(s, s->page->origin, &text) &&
              put_prepare(s, &text, put_page_parse, ROLE_SHAPE) && put_page_bind(s, text.name) &&
              expect_for_page(s, PENDING_BIND, ROLE_SHAPE) && put_release(s, &text) && put_names(s) && put_guard(s);
    if (!ok)
        return false;
    struct buf *out = to_backend(s->session);
    bool has_rows = s->request->statement->verb != PGSEEK_VERB_DECLARE;
    if (has_rows)
        wire_put_target(out, 'D', 'P', span_cstr(""));
    wire_put_execute(out, span_cstr(""), 0);
    wire_put_target(out, 'C', 'P', span_cstr("")); /* and leaves no portal behind */
    wire_put_empty(out, 'S');
    if (has_rows && !expect_for_page(s, PENDING_DESCRIBE_PORTAL, ROLE_CLIENT))
        return false;
    struct pending *execute = expect_for_page(s, PENDING_EXECUTE, ROLE_CLIENT);
    if (!execute)
        return false;
    bool failed = false;
    if (spends_cursor &&
        !change_variables(s->session, execute,
                          variables_spend_cursor(variables_ref(s->session->variables), false, &failed)))
        return false;
    return !failed && expect_for_page(s, PENDING_CLOSE, ROLE_SWALLOW) &&
           expect(s->session, PENDING_SYNC, ROLE_CLIENT) &&
           names_put(&s->session->statements, span_cstr(""), NULL, NULL);
}

/* Whether the page can be run again if its guard fails: no block is open, and nothing in this group would be lost. */
static bool is_repeatable(const struct session *session)
{
    return session->status == 'I' && !variables_in_block(session->variables) && !session->ran &&
           !session->tagging->retry.again;
}

enum action send_page(struct session *session, const struct request *request, struct page *page,
                      const struct boundary *boundary, const struct wire_param *params, bool spends_cursor)
{
    struct sending s = {.session = session,
                        .request = request,
                        .page = page,
                        .shape = page->shape,
                        .boundary = boundary,
                        .params = params};
    set_i64(s.limit, page->limit);
    set_i64(s.fetch, page->limit + (page->look_ahead ? 1 : 0));
    retry_start(session, request, is_repeatable(session));
    stats_add(session->env->stats, STATS_REWRITES);
    bool ok = request->simple ? put_simple(&s, spends_cursor) : put_extended(&s, spends_cursor);
    sent_backend(session);
    return ok ? ACTION_DONE : session_nomem(session);
}

/* ---- the original ---- */

/* Result formats without those of the two columns that the server does not know. */
static bool put_trimmed_bind(struct session *session, const struct request *request)
{
    const struct wire_bind *bind = request->bind;
    struct wire_param *params = mem_alloc(bind->nparams * sizeof *params);
    struct value *values = mem_alloc(bind->nparams * sizeof *values);
    bool ok = params && values;
    if (ok && wire_bind_params(bind, params)) {
        for (size_t i = 0; i < bind->nparams; i++)
            values[i] = (struct value){.format = params[i].format, .len = params[i].len, .data = params[i].data};
        put_bind(to_backend(session), bind->portal, (const char *)bind->statement.ptr, values, bind->nparams,
                 bind->results, (size_t)bind->nresults - 2);
    } else if (ok) {
        forward(session, SIDE_BACKEND, request->message);
    }
    sent_backend(session);
    mem_free(params);
    mem_free(values);
    return ok;
}

static enum action bind_original(struct session *session, const struct request *request, struct page *page)
{
    bool trims = page && page->deliver & PGSEEK_DELIVER_COLUMNS && request->bind->nresults >= 2;
    if (trims && !put_trimmed_bind(session, request))
        return session_nomem(session);
    bool bound = session->tagging->retry.again && session->tagging->retry.bound;
    struct pending *entry = expect(session, PENDING_BIND, bound ? ROLE_SWALLOW : ROLE_CLIENT);
    struct portal *portal = NULL;
    if (page) {
        portal = portal_new();
        if (!portal)
            return session_nomem(session);
        portal->kind = PORTAL_PAGE;
        portal->page = page_ref(page);
    }
    if (!entry || !change_portal(session, entry, request->portal, portal))
        return session_nomem(session);
    return trims ? ACTION_DONE : ACTION_FORWARD;
}

enum action send_original(struct session *session, const struct request *request, struct page *page)
{
    enum action action;
    if (request->simple) {
        struct pending *entry = names_put(&session->statements, span_cstr(""), NULL, NULL)
                                    ? expect(session, PENDING_QUERY, ROLE_CLIENT)
                                    : NULL;
        struct follow *follow = entry ? follow_of(entry) : NULL;
        if (!follow)
            return session_nomem(session);
        follow->page = page_ref(page);
        action = ACTION_FORWARD;
    } else {
        action = bind_original(session, request, page);
    }
    retry_over(session);
    return action;
}
