/* draft_inner.c - the text of a shape while it is made: the statement around an inner level.
 *
 * The level's rows are kept in a CTE, numbered; where the level stood, its own columns under their own names are read
 * from there, without the look-ahead row. Beside every row of the statement stand the number of the level's rows and
 * the keys of its first and last: one row comes back even when joins or filters outside have dropped all of them. */
#include "draft.h"

/* pgseek_p(c1, ..., pgseek_k1, ..., pgseek_r) AS MATERIALIZED (...), pgseek_m(n) AS (...) */
static void put_ctes(struct draft *draft)
{
    const struct pgseek_plan *plan = draft->plan;
    struct text *text = &draft->splice.text;

    text_puts(text, DRAFT_PAGE_NAME "(");
    for (size_t i = 0; i < plan->nlevel_names; i++)
        text_format(text, "c%zu, ", i + 1);
    for (size_t i = 0; i < plan->nkeys; i++)
        text_format(text, PLAN_KEY_NAME "%zu, ", i + 1);
    text_puts(text, PLAN_ROW_NAME ") AS MATERIALIZED (SELECT z.*, pg_catalog.row_number() OVER (");
    draft_put_order(draft, "z.");
    text_puts(text, ") FROM (");
    draft_put_level(draft);
    text_puts(text, ") z), " DRAFT_COUNT_NAME "(n) AS (SELECT pg_catalog.count(*) FROM " DRAFT_PAGE_NAME ")");
}

/* What stands in the level's place: exactly its columns, in display order. */
static void put_replacement(struct draft *draft)
{
    const struct pgseek_plan *plan = draft->plan;
    struct text *text = &draft->splice.text;

    text_puts(text, "SELECT ");
    for (size_t i = 0; i < plan->nlevel_names; i++) {
        text_puts(text, i ? ", " : "");
        text_format(text, "c%zu AS ", i + 1);
        text_put_ident(text, plan->level_names[i]);
    }
    text_puts(text, " FROM " DRAFT_PAGE_NAME);
    if (draft_has_look_ahead(draft)) {
        text_puts(text, " WHERE " PLAN_ROW_NAME " OPERATOR(pg_catalog.<=) ");
        draft_put_page_limit(draft);
    }
    text_puts(text, " ORDER BY " PLAN_ROW_NAME);
    text_puts(text, draft->is_turned ? " DESC" : "");
}

/* The client's text from start to end, with the level replaced if it stands there. */
static void put_around(struct draft *draft, size_t start, size_t end)
{
    const struct cut *cut = &draft->plan->cut;

    if (cut->start < start || cut->end > end) {
        splice_copy(&draft->splice, start, end);
        return;
    }
    splice_copy(&draft->splice, start, cut->start);
    put_replacement(draft);
    splice_copy(&draft->splice, cut->end, end);
}

static void put_with(struct draft *draft)
{
    const struct cut *cut = &draft->plan->cut;
    struct text *text = &draft->splice.text;

    if (cut->cte) {
        /* Before the CTE that will read it, and behind those that the level may read. */
        splice_copy(&draft->splice, cut->outer_with.start, cut->cte);
        put_ctes(draft);
        text_puts(text, ", ");
        put_around(draft, cut->cte, cut->outer_with.end);
        return;
    }
    splice_copy(&draft->splice, cut->outer_with.start, cut->outer_with.end);
    text_puts(text, cut->outer_with.end > cut->outer_with.start ? ", " : "WITH ");
    put_ctes(draft);
}

static void put_boundary_keys(struct draft *draft, char relation)
{
    for (size_t i = 0; i < draft->plan->nkeys; i++)
        text_format(&draft->splice.text, ", %c." PLAN_KEY_NAME "%zu", relation, i + 1);
}

/* Joins the row whose number is that of the page's nearest or farthest row, seen from where it was started. */
static void put_boundary_join(struct draft *draft, char relation, bool is_farthest)
{
    struct text *text = &draft->splice.text;

    text_format(text, " LEFT JOIN " DRAFT_PAGE_NAME " %c ON %c." PLAN_ROW_NAME " OPERATOR(pg_catalog.=) ", relation,
                relation);
    if (!is_farthest) {
        text_putc(text, '1');
    } else if (draft_has_look_ahead(draft)) {
        text_puts(text, "CASE WHEN m.n OPERATOR(pg_catalog.<) ");
        draft_put_page_limit(draft);
        text_puts(text, " THEN m.n ELSE ");
        draft_put_page_limit(draft);
        text_puts(text, " END");
    } else {
        text_puts(text, "m.n");
    }
}

void draft_put_inner(struct draft *draft)
{
    const struct cut *cut = &draft->plan->cut;
    struct text *text = &draft->splice.text;

    splice_copy(&draft->splice, 0, cut->statement.start);
    put_with(draft);
    text_puts(text, " SELECT o.*, m.n");
    put_boundary_keys(draft, 'f');
    put_boundary_keys(draft, 'l');
    text_puts(text, " FROM " DRAFT_COUNT_NAME " m");
    put_boundary_join(draft, 'f', draft->is_turned);
    put_boundary_join(draft, 'l', !draft->is_turned);
    text_puts(text, " LEFT JOIN (SELECT x.*, pg_catalog.row_number() OVER () AS " DRAFT_MARK_NAME " FROM (");
    put_around(draft, cut->main, cut->statement.end);
    text_puts(text, ") x) o ON true ORDER BY o." DRAFT_MARK_NAME);
    splice_copy(&draft->splice, cut->statement.end, draft->plan->len);
}
