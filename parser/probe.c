/* probe.c - texts that the server is to describe, to learn names and types that only it knows.
 *
 * See probe.h. */
#include "probe.h"

static void put_range(struct text *out, const struct pgseek_query *query, size_t start, size_t end)
{
    text_put(out, query->lex.sql + start, end - start);
}

static void put_level(struct text *out, const struct pgseek_query *query, const char *const *exprs, size_t nexprs)
{
    const struct cut *cut = &query->cut;

    put_range(out, query, cut->start, cut->list_end);
    for (size_t i = 0; i < nexprs; i++)
        text_format(out, "%s %s AS " PROBE_KEY_NAME "%zu", i || cut->ntargets ? "," : "", exprs[i], i + 1);
    text_putc(out, ' ');
    put_range(out, query, cut->list_end, cut->body_end);
}

/* Where the statement's WITH clause ends for the level: before the CTE that it is in, unless all names are seen. */
static size_t seen_with_end(const struct pgseek_query *query)
{
    const struct cut *cut = &query->cut;

    if (!cut->cte || cut->outer_is_recursive)
        return cut->outer_with.end;
    for (size_t i = query->lex.ntokens; i > 0; i--) {
        const struct lex_token *token = &query->lex.tokens[i - 1];

        if (token->start < cut->cte && !lex_is_comment(token)) /* a comma, or WITH */
            return token->kind == ',' ? token->start : cut->outer_with.start;
    }
    return cut->outer_with.start;
}

bool probe_make(struct text *out, const struct pgseek_query *query, const char *const *exprs, size_t nexprs)
{
    size_t with_end = seen_with_end(query);
    size_t with_start = query->cut.outer_with.start;

    if (with_end > with_start) {
        /* The level may have a WITH clause of its own, and two in a row are none. */
        put_range(out, query, with_start, with_end);
        text_puts(out, " SELECT s.* FROM (");
    }
    put_level(out, query, exprs, nexprs);
    if (with_end > with_start)
        text_puts(out, ") s");
    return !out->failed;
}
