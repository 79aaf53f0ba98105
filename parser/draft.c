/* draft.c - the text of a shape while it is made: the level as it is run.
 *
 * See draft.h. The client's own text is spliced wherever that is possible; only set operations and window functions
 * need a wrap, since a condition inside would change what they compute. */
#include "draft.h"

#include <string.h>

/* ---- ORDER BY ---- */

static void put_direction(struct text *text, const struct predicate_key *key)
{
    text_puts(text, key->descending ? " DESC" : "");
    if (key->nullable && key->nulls_first != key->descending)
        text_puts(text, key->nulls_first ? " NULLS FIRST" : " NULLS LAST");
}

void draft_put_order(struct draft *draft, const char *prefix)
{
    struct text *text = &draft->splice.text;

    for (size_t i = 0; i < draft->plan->nkeys; i++) {
        text_format(text, "%s%s" PLAN_KEY_NAME "%zu", i ? ", " : "ORDER BY ", prefix, i + 1);
        put_direction(text, &draft->keys[i]);
    }
}

/* The client's own items and our tie-breakers. DISTINCT ON wants its expressions, and what follows them decides which
 * row stays; where keys are kept apart, only these are what an index is ordered by. */
static void put_spelled_order(struct draft *draft)
{
    const struct pgseek_plan *plan = draft->plan;
    struct text *text = &draft->splice.text;

    for (size_t i = 0; i < plan->nkeys; i++) {
        text_puts(text, i ? ", " : "ORDER BY ");
        if (plan->keys[i].is_appended)
            text_puts(text, plan->keys[i].is.expr);
        else
            splice_copy(&draft->splice, plan->cut.sorts[i].start, plan->cut.sorts[i].end);
        put_direction(text, &draft->keys[i]);
    }
    if (plan->form == QUERY_DISTINCT_ON)
        splice_copy(&draft->splice, plan->order_rest.start, plan->order_rest.end);
}

/* The server groups in the order of ORDER BY only when both name the same output column: the client's own, and not a
 * hidden one beside it. */
static void put_grouped_order(struct draft *draft)
{
    const struct pgseek_plan *plan = draft->plan;
    struct text *text = &draft->splice.text;

    for (size_t i = 0; i < plan->nkeys; i++) {
        text_puts(text, i ? ", " : "ORDER BY ");
        if (plan->keys[i].is_spelled)
            text_puts(text, plan->keys[i].is.expr);
        else
            text_format(text, PLAN_KEY_NAME "%zu", i + 1);
        put_direction(text, &draft->keys[i]);
    }
}

static void put_own_order(struct draft *draft)
{
    const struct pgseek_plan *plan = draft->plan;
    struct text *text = &draft->splice.text;

    splice_copy(&draft->splice, plan->cut.tail, plan->cut.sort_items[plan->cut.nsorts - 1].end);
    for (size_t i = 0; i < plan->nkeys; i++) {
        if (!plan->keys[i].is_appended)
            continue;
        text_format(text, ", %s", plan->keys[i].is.expr);
        put_direction(text, &draft->keys[i]);
    }
}

static void put_statement_order(struct draft *draft)
{
    if (!draft->has_hidden)
        put_own_order(draft);
    else if (draft->spells_order)
        put_spelled_order(draft);
    else if (draft->plan->form == QUERY_GROUPED)
        put_grouped_order(draft);
    else
        draft_put_order(draft, "");
}

/* ---- LIMIT ---- */

bool draft_has_look_ahead(const struct draft *draft)
{
    bool has_limit =
        draft->plan->limit_kind == PGSEEK_NUMBER_LITERAL || draft->plan->limit_kind == PGSEEK_NUMBER_PARAMS;

    return draft->how->look_ahead && has_limit && draft->has_hidden;
}

static int64_t rows_to_fetch(const struct draft *draft)
{
    int64_t limit = draft->plan->limit;

    return draft_has_look_ahead(draft) && limit >= 0 && limit < INT64_MAX ? limit + 1 : limit;
}

static void put_limit(struct draft *draft)
{
    struct text *text = &draft->splice.text;

    if (draft->plan->limit_kind == PGSEEK_NUMBER_LITERAL)
        text_format(text, " LIMIT %lld", (long long)rows_to_fetch(draft));
    if (draft->plan->limit_kind == PGSEEK_NUMBER_PARAMS)
        text_format(text, " LIMIT $%zu", draft->fetch_param);
}

void draft_put_page_limit(struct draft *draft)
{
    if (draft->limit_param)
        text_format(&draft->splice.text, "$%zu", draft->limit_param);
    else
        text_format(&draft->splice.text, "(%lld)", (long long)draft->plan->limit);
}

/* A clause of the client's tail, kept. */
static void put_range(struct draft *draft, struct cut_range range)
{
    if (range.start == range.end)
        return;
    text_putc(&draft->splice.text, ' ');
    splice_copy(&draft->splice, range.start, range.end);
}

static void put_offset(struct draft *draft)
{
    if (draft->how->seek == PGSEEK_SEEK_FIRST && draft->how->keep_offset)
        put_range(draft, draft->plan->cut.offset);
}

/* ---- the client's own text ---- */

/* `SELECT (1)FROM t` is legal, `pgseek_k1FROM` is not what it was. */
static void put_blank_before(struct draft *draft, size_t at)
{
    if (at < draft->plan->len && !strchr(" \t\r\n\f", draft->plan->sql[at]))
        text_putc(&draft->splice.text, ' ');
}

static void put_hidden(struct draft *draft)
{
    const struct pgseek_plan *plan = draft->plan;

    if (!draft->has_hidden || (draft->keeps_keys && plan->star == PLAN_STAR_LAST))
        return;
    for (size_t i = 0; i < plan->nkeys; i++) {
        const char *comma = i || plan->has_targets ? "," : "";

        if (draft->keeps_keys)
            text_format(&draft->splice.text, "%s " DRAFT_KEPT_NAME "." PLAN_KEY_NAME "%zu AS " PLAN_KEY_NAME "%zu",
                        comma, i + 1, i + 1);
        else
            text_format(&draft->splice.text, "%s %s AS " PLAN_KEY_NAME "%zu", comma, plan->keys[i].is.expr, i + 1);
    }
    put_blank_before(draft, plan->cut.list_end);
}

/* OFFSET 0 keeps the server from making it a part of the level, where it would be computed again after the wait. */
static void put_kept_keys(struct draft *draft)
{
    const struct pgseek_plan *plan = draft->plan;
    struct text *text = &draft->splice.text;

    text_puts(text, ", LATERAL (SELECT");
    for (size_t i = 0; i < plan->nkeys; i++)
        text_format(text, "%s %s AS " PLAN_KEY_NAME "%zu", i ? "," : "", plan->keys[i].is.expr, i + 1);
    text_puts(text, " OFFSET 0) " DRAFT_KEPT_NAME " ");
}

#define WHERE_LENGTH 5 /* of the word */

/* From behind the select list to the end of FROM. */
static size_t put_from(struct draft *draft)
{
    const struct cut *cut = &draft->plan->cut;
    size_t end = cut->where ? cut->where - WHERE_LENGTH : cut->where_end;

    if (!draft->keeps_keys)
        return cut->list_end;
    splice_copy(&draft->splice, cut->list_end, end);
    put_kept_keys(draft);
    return end;
}

static void put_predicate(struct draft *draft, size_t branch)
{
    const struct pgseek_plan *plan = draft->plan;
    struct text *text = &draft->splice.text;

    if (draft->nbranches > 1)
        predicate_write_branch(text, draft->keys, plan->nkeys, branch, plan->is_partitioned);
    else
        predicate_write(text, draft->keys, plan->nkeys, plan->is_partitioned);
}

/* From behind the select list to ORDER BY, with the predicate in WHERE or HAVING. */
static void put_body(struct draft *draft, size_t branch)
{
    const struct cut *cut = &draft->plan->cut;
    struct text *text = &draft->splice.text;
    size_t clause = draft->has_having ? cut->having : cut->where;
    size_t end = draft->has_having ? cut->having_end : cut->where_end;
    size_t start = put_from(draft);

    if (!draft->has_boundary) {
        splice_copy(&draft->splice, start, cut->body_end);
        return;
    }
    if (clause) {
        splice_copy(&draft->splice, start, clause);
        text_puts(text, " (");
        splice_copy(&draft->splice, clause, end);
        text_puts(text, ") AND (");
    } else {
        splice_copy(&draft->splice, start, end);
        text_puts(text, draft->has_having ? " HAVING " : " WHERE ");
    }
    put_predicate(draft, branch);
    text_puts(text, clause ? ")" : "");
    if (end < cut->body_end)
        put_blank_before(draft, end);
    splice_copy(&draft->splice, end, cut->body_end);
}

static void put_statement(struct draft *draft, size_t branch)
{
    const struct cut *cut = &draft->plan->cut;

    splice_copy(&draft->splice, cut->start, cut->list_end);
    put_hidden(draft);
    put_body(draft, branch);
    text_putc(&draft->splice.text, ' ');
    put_statement_order(draft);
    put_limit(draft);
    put_offset(draft);
    for (size_t i = 0; i < cut->nlocks; i++)
        put_range(draft, cut->lock[i]);
}

/* ---- several branches, and wraps ---- */

/* Each branch is the whole level, its WITH clause included: hoisted, it would be read once and scanned by all. */
static void put_union(struct draft *draft)
{
    for (size_t i = 0; i < draft->nbranches; i++) {
        text_puts(&draft->splice.text, i ? " UNION ALL (" : "(");
        put_statement(draft, i);
        text_putc(&draft->splice.text, ')');
    }
    text_putc(&draft->splice.text, ' ');
    draft_put_order(draft, "");
    put_limit(draft);
}

/* Window functions: the hidden columns are of the core, which alone can compute them. */
static void put_window_core(struct draft *draft)
{
    const struct cut *cut = &draft->plan->cut;

    text_puts(&draft->splice.text, "SELECT s.* FROM (");
    splice_copy(&draft->splice, cut->start, cut->list_end);
    put_hidden(draft);
    splice_copy(&draft->splice, cut->list_end, cut->body_end);
    text_puts(&draft->splice.text, ") s");
}

/* Set operations: columns are known by their numbers, since names may be there twice. */
static void put_set_core(struct draft *draft)
{
    const struct pgseek_plan *plan = draft->plan;
    struct text *text = &draft->splice.text;

    text_puts(text, "SELECT s.*");
    for (size_t i = 0; i < plan->nkeys; i++)
        text_format(text, ", s.%s AS " PLAN_KEY_NAME "%zu", plan->keys[i].is.expr, i + 1);
    text_puts(text, " FROM (");
    splice_copy(&draft->splice, plan->cut.start, plan->cut.body_end);
    text_puts(text, ") s(");
    for (size_t i = 0; i < plan->noutputs; i++)
        text_format(text, "%sc%zu", i ? ", " : "", i + 1);
    text_putc(text, ')');
}

static void put_wrapped(struct draft *draft)
{
    if (draft->plan->form == QUERY_SET)
        put_set_core(draft);
    else
        put_window_core(draft);
    if (draft->has_boundary) {
        text_puts(&draft->splice.text, " WHERE ");
        put_predicate(draft, 0);
    }
    text_putc(&draft->splice.text, ' ');
    draft_put_order(draft, "");
    put_limit(draft);
    put_offset(draft);
}

void draft_put_level(struct draft *draft)
{
    if (draft->plan->form == QUERY_SET || draft->plan->form == QUERY_WINDOW)
        put_wrapped(draft);
    else if (draft->nbranches > 1)
        put_union(draft);
    else
        put_statement(draft, 0);
}
