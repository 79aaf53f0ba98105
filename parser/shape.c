/* shape.c - the texts that are sent: the client's own statement with keys, a predicate, and its order and limit anew.
 *
 * It knows the plan's cuts and keys and must not know values. Forward pages are the statement itself; backward pages
 * run it in reversed order inside a wrap that turns the rows round again and puts the look-ahead row last. */
#include "check.h"
#include "plan.h"
#include "splice.h"

#include <stdlib.h>
#include <string.h>

enum { OID_INT8 = 20 };

/* A shape with the map of its text; what callers hold is its first part. */
struct mapped_shape {
    struct pgseek_shape shape;
    struct splice_piece piece[SPLICE_MAX_PIECES];
    size_t npieces;
};

/* A shape while it is made. */
struct draft {
    const struct pgseek_plan *plan;
    const struct pgseek_shape_key *how;
    struct predicate_key *keys; /* in the order in which the statement is to run */
    struct splice splice;
    bool has_boundary;
    bool is_wrapped;
    size_t fetch_param; /* n of $n; 0: none */
    size_t limit_param;
};

/* ---- the order in which the statement runs ---- */

static bool make_keys(struct draft *draft, struct arena *arena)
{
    const struct pgseek_plan *plan = draft->plan;

    draft->keys = arena_array(arena, plan->nkeys, sizeof *draft->keys);
    if (!draft->keys)
        return false;
    for (size_t i = 0; i < plan->nkeys; i++)
        draft->keys[i] = (struct predicate_key){
            .expr = plan->keys[i].is.expr,
            .operators = plan->keys[i].operators,
            .relation = plan->keys[i].relation,
            .param = (unsigned)(plan->nparams + i + 1),
            .descending = plan->keys[i].is.descending,
            .nulls_first = plan->keys[i].is.nulls_first,
            .nullable = plan->keys[i].is.nullable,
            .value_is_null = (draft->how->null_mask >> i & 1u) != 0,
        };
    if (draft->is_wrapped)
        predicate_reverse(draft->keys, plan->nkeys);
    return true;
}

/* ORDER BY over the hidden columns, each behind `prefix`. */
static void put_order(struct draft *draft, const char *prefix)
{
    struct text *text = &draft->splice.text;

    for (size_t i = 0; i < draft->plan->nkeys; i++) {
        const struct predicate_key *key = &draft->keys[i];

        text_format(text, "%s%s" PLAN_KEY_NAME "%zu%s", i ? ", " : "ORDER BY ", prefix, i + 1,
                    key->descending ? " DESC" : "");
        if (key->nullable && key->nulls_first != key->descending)
            text_puts(text, key->nulls_first ? " NULLS FIRST" : " NULLS LAST");
    }
}

/* ---- the statement itself ---- */

static void put_hidden(struct draft *draft)
{
    for (size_t i = 0; i < draft->plan->nkeys; i++)
        text_format(&draft->splice.text, "%s %s AS " PLAN_KEY_NAME "%zu", i || draft->plan->has_targets ? "," : "",
                    draft->keys[i].expr, i + 1);
    /* `SELECT (1)FROM t` is legal, `pgseek_k1FROM` is not what it was. */
    if (!strchr(" \t\r\n\f", draft->plan->sql[draft->plan->cut.list_end]))
        text_putc(&draft->splice.text, ' ');
}

static void put_predicate(struct draft *draft)
{
    const struct pgseek_plan *plan = draft->plan;

    predicate_write(&draft->splice.text, draft->keys, plan->nkeys, plan->is_partitioned);
}

/* From behind the select list to ORDER BY, with the predicate in WHERE. */
static void put_body(struct draft *draft)
{
    const struct cut *cut = &draft->plan->cut;
    struct text *text = &draft->splice.text;

    if (!draft->has_boundary) {
        splice_copy(&draft->splice, cut->list_end, cut->body_end);
    } else if (!cut->where) {
        splice_copy(&draft->splice, cut->list_end, cut->body_end);
        text_puts(text, " WHERE ");
        put_predicate(draft);
    } else {
        splice_copy(&draft->splice, cut->list_end, cut->where);
        text_puts(text, " (");
        splice_copy(&draft->splice, cut->where, cut->body_end);
        text_puts(text, ") AND (");
        put_predicate(draft);
        text_putc(text, ')');
    }
}

static int64_t rows_to_fetch(const struct draft *draft)
{
    int64_t limit = draft->plan->limit;

    return draft->how->look_ahead && limit >= 0 && limit < INT64_MAX ? limit + 1 : limit;
}

static void put_limit(struct draft *draft)
{
    struct text *text = &draft->splice.text;

    if (draft->plan->limit_kind == PGSEEK_NUMBER_LITERAL)
        text_format(text, " LIMIT %lld", (long long)rows_to_fetch(draft));
    if (draft->plan->limit_kind == PGSEEK_NUMBER_PARAMS)
        text_format(text, " LIMIT $%zu", draft->fetch_param);
}

/* A clause of the client's tail, kept. */
static void put_range(struct draft *draft, struct cut_range range)
{
    if (range.start == range.end)
        return;
    text_putc(&draft->splice.text, ' ');
    splice_copy(&draft->splice, range.start, range.end);
}

static void put_statement(struct draft *draft)
{
    const struct cut *cut = &draft->plan->cut;

    splice_copy(&draft->splice, cut->start, cut->list_end);
    put_hidden(draft);
    put_body(draft);
    text_putc(&draft->splice.text, ' ');
    put_order(draft, "");
    put_limit(draft);
    if (draft->how->seek == PGSEEK_SEEK_FIRST && draft->how->keep_offset)
        put_range(draft, cut->offset);
    for (size_t i = 0; i < cut->nlocks; i++)
        put_range(draft, cut->lock[i]);
}

/* ---- the wrap of a backward page ---- */

static void put_wrap_start(struct draft *draft)
{
    struct text *text = &draft->splice.text;

    text_puts(text, "SELECT c.* FROM (SELECT p.*, pg_catalog.row_number() OVER (");
    put_order(draft, "p.");
    text_puts(text, ") AS " PLAN_ROW_NAME " FROM (");
}

/* Rows in display order, except that the look-ahead row, which is the farthest, comes last. */
static void put_wrap_end(struct draft *draft)
{
    struct text *text = &draft->splice.text;
    bool has_limit = draft->limit_param || draft->plan->limit_kind == PGSEEK_NUMBER_LITERAL;

    text_puts(text, ") p) c ORDER BY ");
    if (draft->how->look_ahead && has_limit) {
        text_puts(text, "c." PLAN_ROW_NAME " OPERATOR(pg_catalog.>) ");
        if (draft->limit_param)
            text_format(text, "$%zu, ", draft->limit_param);
        else
            text_format(text, "(%lld), ", (long long)draft->plan->limit);
    }
    text_puts(text, "c." PLAN_ROW_NAME " DESC");
}

static void put_text(struct draft *draft)
{
    const struct cut *cut = &draft->plan->cut;

    splice_copy(&draft->splice, 0, cut->start);
    if (draft->is_wrapped)
        put_wrap_start(draft);
    put_statement(draft);
    if (draft->is_wrapped)
        put_wrap_end(draft);
    splice_copy(&draft->splice, cut->end, draft->plan->len);
}

/* ---- parameters ---- */

static void count_params(struct draft *draft, size_t *nslots)
{
    const struct pgseek_plan *plan = draft->plan;

    *nslots = plan->nparams + (draft->has_boundary ? plan->nkeys : 0);
    if (plan->limit_kind != PGSEEK_NUMBER_PARAMS)
        return;
    draft->fetch_param = ++*nslots;
    if (draft->is_wrapped && draft->how->look_ahead)
        draft->limit_param = ++*nslots;
}

static void fill_slots(const struct draft *draft, struct pgseek_slot *slots)
{
    const struct pgseek_plan *plan = draft->plan;

    for (size_t i = 0; i < plan->nparams; i++)
        slots[i] =
            (struct pgseek_slot){.kind = PGSEEK_SLOT_CLIENT, .type_oid = plan->param_oids[i], .index = (uint32_t)i};
    for (size_t i = 0; draft->has_boundary && i < plan->nkeys; i++)
        slots[plan->nparams + i] =
            (struct pgseek_slot){.kind = PGSEEK_SLOT_KEY, .type_oid = plan->keys[i].is.type_oid, .index = (uint32_t)i};
    if (draft->fetch_param)
        slots[draft->fetch_param - 1] = (struct pgseek_slot){.kind = PGSEEK_SLOT_FETCH, .type_oid = OID_INT8};
    if (draft->limit_param)
        slots[draft->limit_param - 1] = (struct pgseek_slot){.kind = PGSEEK_SLOT_LIMIT, .type_oid = OID_INT8};
}

/* ---- making ---- */

static enum pgseek_reason check(const struct draft *draft, const struct pgseek_shape *shape)
{
    const struct check_edits edits = {
        .nkeys = draft->plan->nkeys,
        .key_name = PLAN_KEY_NAME,
        .has_predicate = draft->has_boundary,
        .had_where = draft->plan->cut.where != 0,
        .is_wrapped = draft->is_wrapped,
    };
    return check_rewrite(shape->sql, shape->len, &edits, &draft->plan->core);
}

static enum pgseek_reason build(struct mapped_shape *mapped, struct draft *draft)
{
    struct pgseek_shape *shape = &mapped->shape;

    count_params(draft, &shape->nslots);
    put_text(draft);
    shape->nkeys = draft->plan->nkeys;
    shape->nhidden = shape->nkeys + draft->is_wrapped;
    shape->len = draft->splice.text.len;
    shape->sql = text_take(&draft->splice.text);
    shape->slots = calloc(shape->nslots + 1, sizeof *shape->slots);
    if (!shape->sql || !shape->slots)
        return PGSEEK_REASON_NOMEM;
    fill_slots(draft, shape->slots);
    mapped->npieces = draft->splice.npieces;
    memcpy(mapped->piece, draft->splice.piece, sizeof mapped->piece);
    return check(draft, shape);
}

struct pgseek_shape *pgseek_shape_new(const struct pgseek_plan *plan, const struct pgseek_shape_key *key,
                                      enum pgseek_reason *reason)
{
    struct mapped_shape *mapped = calloc(1, sizeof *mapped);
    struct arena scratch = {0};
    struct draft draft = {
        .plan = plan,
        .how = key,
        .splice.source = plan->sql,
        .has_boundary = key->seek == PGSEEK_SEEK_AFTER || key->seek == PGSEEK_SEEK_BEFORE,
        .is_wrapped = key->seek == PGSEEK_SEEK_BEFORE || key->seek == PGSEEK_SEEK_LAST,
    };

    *reason = PGSEEK_REASON_NOMEM;
    if (mapped && make_keys(&draft, &scratch))
        *reason = build(mapped, &draft);
    text_fini(&draft.splice.text);
    arena_fini(&scratch);
    if (*reason == PGSEEK_REASON_NONE)
        return &mapped->shape;
    pgseek_shape_free(mapped ? &mapped->shape : NULL);
    return NULL;
}

void pgseek_shape_free(struct pgseek_shape *shape)
{
    if (!shape)
        return;
    free(shape->sql);
    free(shape->slots);
    free(shape); /* the first member of its mapped_shape */
}

/* ---- positions ---- */

/* Whether the text is well-formed enough as UTF-8 to count its characters; else every byte is one. */
static bool is_utf8(const char *text, size_t len)
{
    size_t owed = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool continues = (c & 0xC0) == 0x80;

        if (continues != (owed > 0))
            return false;
        owed = continues ? owed - 1 : c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;
    }
    return owed == 0;
}

static bool starts_character(const char *text, size_t i, bool utf8)
{
    return !utf8 || ((unsigned char)text[i] & 0xC0) != 0x80;
}

int pgseek_shape_position(const struct pgseek_plan *plan, const struct pgseek_shape *shape, int position)
{
    const struct mapped_shape *mapped = (const struct mapped_shape *)shape;
    bool utf8 = is_utf8(plan->sql, plan->len);
    size_t offset = 0;
    size_t source;
    int count = 0;

    while (offset < shape->len) {
        count += starts_character(shape->sql, offset, utf8);
        if (count == position)
            break;
        offset++;
    }
    if (position < 1 || !splice_source(mapped->piece, mapped->npieces, offset, &source))
        return 0;
    count = 0;
    for (size_t i = 0; i <= source; i++)
        count += starts_character(plan->sql, i, utf8);
    return count;
}
