/* shape.c - the texts that are sent: which form a page takes, its parameters, and where its characters came from.
 *
 * draft.c writes the texts, check.c proves them; what is decided here is whether a boundary becomes several branches of
 * a UNION ALL, each a seek of its own, or one bounded condition. */
#include "check.h"
#include "draft.h"
#include "oid.h"

#include <stdlib.h>
#include <string.h>

/* A shape with the map of its text; what callers hold is its first part. */
struct mapped_shape {
    struct pgseek_shape shape;
    struct splice_piece *pieces;
    size_t npieces;
};

/* ---- the order in which the level runs ---- */

/* Whether the text is a name, perhaps qualified: what needs no brackets. */
static bool is_name(const char *expr)
{
    bool in_quotes = false;

    for (const char *at = expr; *at; at++) {
        in_quotes ^= *at == '"';
        if (!in_quotes && *at != '"' && *at != '.' && !skim_goes_on_name(*at))
            return false;
    }
    return true;
}

/* How the predicate says what the hidden column holds. */
static const char *predicate_expr(const struct pgseek_plan *plan, struct arena *arena, size_t i)
{
    const char *expr = plan->keys[i].is.expr;

    if (plan->form == QUERY_WINDOW)
        expr = arena_format(arena, "s." PLAN_KEY_NAME "%zu", i + 1);
    else if (plan->form == QUERY_SET)
        expr = arena_format(arena, "s.%s", expr);
    else if (!is_name(expr))
        expr = arena_format(arena, "(%s)", expr);
    if (expr && plan->keys[i].cast)
        expr = arena_format(arena, "(%s::%s)", expr, plan->keys[i].cast);
    return expr;
}

static bool make_keys(struct draft *draft, struct arena *arena)
{
    const struct pgseek_plan *plan = draft->plan;

    draft->keys = arena_array(arena, plan->nkeys, sizeof *draft->keys);
    if (!draft->keys)
        return false;
    for (size_t i = 0; i < plan->nkeys; i++)
        draft->keys[i] = (struct predicate_key){
            .expr = predicate_expr(plan, arena, i),
            .operators = plan->keys[i].operators,
            .relation = plan->keys[i].relation,
            .param = (unsigned)(plan->nparams + i + 1),
            .descending = plan->keys[i].is.descending,
            .nulls_first = plan->keys[i].is.nulls_first,
            .nullable = plan->keys[i].is.nullable,
            .value_is_null = (draft->how->null_mask >> i & 1u) != 0,
        };
    if (draft->is_turned)
        predicate_reverse(draft->keys, plan->nkeys);
    return !arena->failed;
}

/* ---- which form ---- */

/* Whether the bound form reads little beyond the page: what bounds it tells a row of some relation. Where the bound
 * ends with its relation a branch of its own would not help: no index goes on in another one. */
static bool is_bound_close(const struct draft *draft)
{
    size_t nkeys = draft->plan->nkeys;
    size_t bound = predicate_bound_length(draft->keys, nkeys);

    for (size_t i = 0; i < bound; i++)
        if (draft->plan->keys[i].closes)
            return true;
    return bound > 0 && bound < nkeys && draft->keys[bound].relation != draft->keys[0].relation;
}

/* A UNION may not lock, calls volatile functions once per branch, and needs the hidden columns to be sorted by. */
static size_t count_branches(const struct draft *draft)
{
    const struct pgseek_plan *plan = draft->plan;
    bool may_unite = draft->has_boundary && draft->has_hidden && !plan->is_locking && !plan->has_volatile &&
                     (plan->form == QUERY_PLAIN || plan->form == QUERY_DISTINCT);

    /* What a WITH clause outside gives to two branches is computed whole, and read without an index. */
    if (!may_unite || plan->reads_outside || is_bound_close(draft))
        return 1;
    size_t count = predicate_branch_count(draft->keys, plan->nkeys);
    return count > 1 && count <= PREDICATE_MAX_BRANCHES ? count : 1;
}

static size_t count_appended(const struct pgseek_plan *plan)
{
    size_t count = 0;

    for (size_t i = 0; i < plan->nkeys; i++)
        count += plan->keys[i].is_appended;
    return count;
}

/* DECLARE fetches what the statement gives: nothing can be hidden, and nothing turned round. */
static bool may_declare(const struct draft *draft)
{
    const struct pgseek_plan *plan = draft->plan;

    return !draft->is_turned && plan->form != QUERY_SET && plan->form != QUERY_WINDOW &&
           (plan->form == QUERY_PLAIN || !count_appended(plan));
}

/* Whether each key that is not ours is an item of ORDER BY, in its order. */
static bool are_keys_items(const struct pgseek_plan *plan)
{
    const struct cut_range rest = plan->order_rest;
    size_t items = 0;

    while (items < plan->cut.nsorts && (rest.start == rest.end || plan->cut.sort_items[items].end <= rest.start))
        items++;
    return items == plan->nkeys - count_appended(plan);
}

/* Whether our tie-breakers may stand in ORDER BY: a bare name there could be captured by an output's. */
static bool are_appended_spelled(const struct pgseek_plan *plan)
{
    for (size_t i = 0; i < plan->nkeys; i++)
        if (plan->keys[i].is_appended && !plan->keys[i].is_spelled)
            return false;
    return true;
}

static enum pgseek_reason check_form(const struct draft *draft)
{
    const struct pgseek_plan *plan = draft->plan;

    if (plan->verb == PGSEEK_VERB_DECLARE && !(may_declare(draft) && are_appended_spelled(plan)))
        return PGSEEK_REASON_DECLARE;
    if (plan->form == QUERY_DISTINCT_ON && !(are_keys_items(plan) && are_appended_spelled(plan)))
        return PGSEEK_REASON_DISTINCT_ON;
    return PGSEEK_REASON_NONE;
}

/* ---- the text ---- */

static void put_wrap_start(struct draft *draft)
{
    struct text *text = &draft->splice.text;

    text_puts(text, "SELECT c.* FROM (SELECT p.*, pg_catalog.row_number() OVER (");
    draft_put_order(draft, "p.");
    text_puts(text, ") AS " PLAN_ROW_NAME " FROM (");
}

/* Rows in display order, except that the look-ahead row, which is the farthest, comes last. */
static void put_wrap_end(struct draft *draft)
{
    struct text *text = &draft->splice.text;

    text_puts(text, ") p) c ORDER BY ");
    if (draft_has_look_ahead(draft)) {
        text_puts(text, "c." PLAN_ROW_NAME " OPERATOR(pg_catalog.>) ");
        draft_put_page_limit(draft);
        text_puts(text, ", ");
    }
    text_puts(text, "c." PLAN_ROW_NAME " DESC");
}

static bool is_replaced(const struct pgseek_plan *plan)
{
    return plan->is_inner && plan->verb != PGSEEK_VERB_DECLARE;
}

static void put_text(struct draft *draft)
{
    const struct cut *cut = &draft->plan->cut;

    if (is_replaced(draft->plan)) {
        draft_put_inner(draft);
        return;
    }
    splice_copy(&draft->splice, 0, cut->start);
    if (draft->is_turned)
        put_wrap_start(draft);
    draft_put_level(draft);
    if (draft->is_turned)
        put_wrap_end(draft);
    splice_copy(&draft->splice, cut->end, draft->plan->len);
}

/* ---- parameters ---- */

static size_t count_params(struct draft *draft)
{
    const struct pgseek_plan *plan = draft->plan;
    size_t count = plan->nparams + (draft->has_boundary ? plan->nkeys : 0);

    if (plan->limit_kind != PGSEEK_NUMBER_PARAMS)
        return count;
    draft->fetch_param = ++count;
    if ((draft->is_turned || is_replaced(plan)) && draft_has_look_ahead(draft))
        draft->limit_param = ++count;
    return count;
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
    if (draft->fetch_param) /* without hidden columns there is no look-ahead row, whoever asks for it */
        slots[draft->fetch_param - 1] = (struct pgseek_slot){
            .kind = draft->has_hidden ? PGSEEK_SLOT_FETCH : PGSEEK_SLOT_LIMIT, .type_oid = OID_INT8};
    if (draft->limit_param)
        slots[draft->limit_param - 1] = (struct pgseek_slot){.kind = PGSEEK_SLOT_LIMIT, .type_oid = OID_INT8};
}

/* ---- making ---- */

static enum pgseek_reason check(const struct draft *draft, const struct pgseek_shape *shape)
{
    const struct pgseek_plan *plan = draft->plan;
    const struct check_edits edits = {
        .nkeys = draft->has_hidden && !(draft->keeps_keys && plan->star == PLAN_STAR_LAST) ? plan->nkeys : 0,
        .key_name = PLAN_KEY_NAME,
        .kept_name = draft->keeps_keys ? DRAFT_KEPT_NAME : NULL,
        .has_predicate = draft->has_boundary,
        .has_having = draft->has_having,
        .had_clause = (draft->has_having ? plan->cut.having : plan->cut.where) != 0,
        .wrap = plan->form == QUERY_SET      ? CHECK_WRAPPED_OUTPUT
                : plan->form == QUERY_WINDOW ? CHECK_WRAPPED
                                             : CHECK_NOT_WRAPPED,
        .nbranches = draft->nbranches,
        .is_turned = draft->is_turned && !is_replaced(plan),
        .is_replaced = is_replaced(plan),
        .level_ordinal = plan->level_ordinal,
    };
    return check_rewrite(shape->sql, shape->len, &edits, &plan->core, &plan->frame);
}

static void describe(const struct draft *draft, struct pgseek_shape *shape)
{
    const struct pgseek_plan *plan = draft->plan;

    shape->nkeys = plan->nkeys;
    shape->own_describe = draft->nbranches > 1 || plan->form == QUERY_SET;
    if (plan->verb != PGSEEK_VERB_SELECT) {
        shape->rows = PGSEEK_ROWS_PLAIN;
        shape->own_describe = false;
    } else if (plan->is_inner) {
        shape->rows = PGSEEK_ROWS_INNER;
        shape->nhidden = 2 + 2 * plan->nkeys;
    } else {
        shape->rows = PGSEEK_ROWS_PAGE;
        shape->nhidden = plan->nkeys + draft->is_turned;
    }
}

/* Writes and proves the text with so many branches. */
static enum pgseek_reason build(struct mapped_shape *mapped, struct draft *draft, size_t nbranches)
{
    struct pgseek_shape *shape = &mapped->shape;

    draft->nbranches = nbranches;
    draft->splice = (struct splice){.source = draft->plan->sql};
    draft->fetch_param = draft->limit_param = 0;
    shape->nslots = count_params(draft);
    describe(draft, shape);
    put_text(draft);
    shape->len = draft->splice.text.len;
    shape->sql = text_take(&draft->splice.text);
    shape->slots = calloc(shape->nslots + 1, sizeof *shape->slots);
    mapped->pieces = draft->splice.pieces;
    mapped->npieces = draft->splice.npieces;
    if (!shape->sql || !shape->slots)
        return PGSEEK_REASON_NOMEM;
    fill_slots(draft, shape->slots);
    return check(draft, shape);
}

static void fini(struct mapped_shape *mapped)
{
    free(mapped->shape.sql);
    free(mapped->shape.slots);
    free(mapped->pieces);
    *mapped = (struct mapped_shape){0};
}

static enum pgseek_reason make(struct mapped_shape *mapped, struct draft *draft)
{
    size_t nbranches = count_branches(draft);
    enum pgseek_reason reason = check_form(draft);

    if (reason == PGSEEK_REASON_NONE)
        reason = build(mapped, draft, nbranches);
    if (reason != PGSEEK_REASON_TOO_LARGE || nbranches == 1)
        return reason;
    fini(mapped); /* eight times a long list is too much, once is not */
    return build(mapped, draft, 1);
}

struct pgseek_shape *pgseek_shape_new(const struct pgseek_plan *plan, const struct pgseek_shape_key *key,
                                      enum pgseek_reason *reason)
{
    struct mapped_shape *mapped = calloc(1, sizeof *mapped);
    struct arena scratch = {0};
    struct draft draft = {
        .plan = plan,
        .how = key,
        .has_boundary = key->seek == PGSEEK_SEEK_AFTER || key->seek == PGSEEK_SEEK_BEFORE,
        .is_turned = key->seek == PGSEEK_SEEK_BEFORE || key->seek == PGSEEK_SEEK_LAST,
        .has_hidden = plan->verb != PGSEEK_VERB_DECLARE,
        .keeps_keys = plan->is_locking && plan->form == QUERY_PLAIN && plan->verb != PGSEEK_VERB_DECLARE,
        .has_having = plan->form == QUERY_GROUPED,
    };

    /* An index is in the order of the client's own items, not of columns that are kept apart. */
    draft.spells_order =
        plan->form == QUERY_DISTINCT_ON || (draft.keeps_keys && are_keys_items(plan) && are_appended_spelled(plan));
    *reason = PGSEEK_REASON_NOMEM;
    if (mapped && make_keys(&draft, &scratch))
        *reason = make(mapped, &draft);
    arena_fini(&scratch);
    if (*reason == PGSEEK_REASON_NONE)
        return &mapped->shape;
    pgseek_shape_free(mapped ? &mapped->shape : NULL);
    return NULL;
}

size_t pgseek_shape_bytes(const struct pgseek_shape *shape)
{
    const struct mapped_shape *mapped = (const struct mapped_shape *)shape; /* its first member */

    return sizeof *mapped + shape->len + shape->nslots * sizeof *shape->slots +
           mapped->npieces * sizeof *mapped->pieces;
}

void pgseek_shape_free(struct pgseek_shape *shape)
{
    struct mapped_shape *mapped = (struct mapped_shape *)shape; /* its first member */

    if (!mapped)
        return;
    fini(mapped);
    free(mapped);
}

int pgseek_shape_position(const struct pgseek_plan *plan, const struct pgseek_shape *shape, int position)
{
    const struct mapped_shape *mapped = (const struct mapped_shape *)shape;
    const struct splice_map map = {.source = plan->sql,
                                   .source_len = plan->len,
                                   .text = shape->sql,
                                   .len = shape->len,
                                   .pieces = mapped->pieces,
                                   .npieces = mapped->npieces};

    return splice_position(&map, position);
}
