/* cut.c - where the clauses of a page's level stand in the client's text, as byte ranges.
 *
 * See cut.h. Reserved words mark the clauses at the level's own bracket depth; rewrite checks on the tree catch what
 * this reading may ever get wrong. The lists of items are cut in cut_items.c. */
#include "cut_items.h"

#include <string.h>

/* ---- which tokens are the level ---- */

/* The innermost brackets around token i; the range between them. */
static struct cut_tokens brackets_around(const struct lex *lex, size_t i)
{
    uint32_t depth = lex->tokens[i].depth;
    size_t first = i;
    size_t end = i;

    while (first > 0 && lex->tokens[first - 1].depth >= depth)
        first--;
    while (end < lex->ntokens && lex->tokens[end].depth >= depth)
        end++;
    return (struct cut_tokens){
        .lex = lex, .first = lex_skip(lex, first), .last = cut_previous(lex, end), .depth = depth};
}

static size_t token_at(const struct lex *lex, int location)
{
    size_t i = 0;

    while (i < lex->ntokens && (location < 0 || lex->tokens[i].start != (uint32_t)location))
        i++;
    return i;
}

struct cut_range cut_group(const struct lex *lex, int location)
{
    size_t i = token_at(lex, location);
    struct cut_range range = {.start = 0, .end = lex->len};

    if (i == lex->ntokens)
        return range;
    uint32_t depth = lex->tokens[i].depth;
    for (size_t open = i; open > 0; open--)
        if (lex->tokens[open - 1].depth < depth) {
            range.start = lex->tokens[open - 1].end;
            break;
        }
    for (size_t close = i; close < lex->ntokens; close++)
        if (lex->tokens[close].depth < depth) {
            range.end = lex->tokens[close].start;
            break;
        }
    return range;
}

static bool starts_select(const struct lex *lex, size_t i)
{
    return lex_is(lex, i, PG_QUERY__TOKEN__SELECT) || lex_is(lex, i, PG_QUERY__TOKEN__VALUES) ||
           lex_is(lex, i, PG_QUERY__TOKEN__TABLE) || lex_is(lex, i, PG_QUERY__TOKEN__WITH);
}

/* Behind EXPLAIN and its options, or behind DECLARE ... FOR. */
static size_t behind_prefix(const struct lex *lex, size_t i, enum pgseek_verb verb)
{
    if (verb == PGSEEK_VERB_DECLARE) {
        while (i < lex->ntokens && !lex_is(lex, i, PG_QUERY__TOKEN__FOR))
            i++;
        return lex_skip(lex, i + 1);
    }
    if (verb != PGSEEK_VERB_EXPLAIN)
        return i;
    for (; i < lex->ntokens; i++) {
        if (lex->tokens[i].depth != 0 || lex_is_comment(&lex->tokens[i]))
            continue;
        size_t next = lex_skip(lex, i + 1);
        if (starts_select(lex, i) || (lex_is(lex, i, '(') && (starts_select(lex, next) || lex_is(lex, next, '('))))
            break;
    }
    return i;
}

/* Takes brackets off that hold all there is. */
static void strip_brackets(struct cut_tokens *tokens)
{
    const struct lex *lex = tokens->lex;

    while (lex_is(lex, tokens->first, '(') && lex_is(lex, tokens->last, ')')) {
        for (size_t i = tokens->first + 1; i < tokens->last; i++)
            if (lex->tokens[i].depth == tokens->depth) /* the bracket is closed before the end */
                return;
        size_t first = lex_skip(lex, tokens->first + 1);
        if (first == tokens->last)
            return;
        tokens->first = first;
        tokens->last = cut_previous(lex, tokens->last);
        tokens->depth++;
    }
}

static bool find_statement(struct cut_tokens *tokens, const struct lex *lex, enum pgseek_verb verb)
{
    size_t first = lex_skip(lex, 0);
    size_t last = cut_previous(lex, lex->ntokens);

    while (lex_is(lex, first, ';'))
        first = lex_skip(lex, first + 1);
    while (lex_is(lex, last, ';'))
        last = cut_previous(lex, last);
    *tokens = (struct cut_tokens){.lex = lex, .first = behind_prefix(lex, first, verb), .last = last};
    if (tokens->first >= lex->ntokens || last >= lex->ntokens || tokens->first > last)
        return false;
    strip_brackets(tokens);
    return true;
}

/* The first token behind a WITH clause: the level's first one when there is none, behind the level when it has no end
 * that can be seen. */
static size_t behind_with(const struct cut_tokens *level)
{
    const struct lex *lex = level->lex;

    if (!lex_is(lex, level->first, PG_QUERY__TOKEN__WITH))
        return level->first;
    for (size_t i = level->first + 1; i <= level->last; i++) {
        if (lex->tokens[i].depth != level->depth || !cut_opens_clause(lex, i))
            continue;
        bool behind_body = lex_is(lex, cut_previous(lex, i), ')');
        if (lex_is(lex, i, PG_QUERY__TOKEN__SELECT) || lex_is(lex, i, PG_QUERY__TOKEN__TABLE))
            return i;
        /* `values` may be a CTE's name, and a bracket opens its columns or its body. */
        if (behind_body && (lex_is(lex, i, PG_QUERY__TOKEN__VALUES) || lex_is(lex, i, '(')))
            return i;
    }
    return level->last + 1;
}

/* Whether the stretch is a set operation, VALUES or TABLE, seen at its own depth. */
static bool is_set(const struct cut_tokens *level)
{
    static const int signs[] = {PG_QUERY__TOKEN__UNION, PG_QUERY__TOKEN__INTERSECT, PG_QUERY__TOKEN__EXCEPT};
    size_t first = behind_with(level);

    for (size_t k = 0; k < sizeof signs / sizeof *signs; k++)
        if (cut_find(level, level->first, signs[k]) <= level->last)
            return true;
    return lex_is(level->lex, first, PG_QUERY__TOKEN__VALUES) || lex_is(level->lex, first, PG_QUERY__TOKEN__TABLE);
}

/* To the brackets around these. */
static bool widen(struct cut_tokens *level)
{
    size_t bracket = level->first;

    if (level->depth == 0)
        return false;
    while (bracket > 0 && level->lex->tokens[bracket].depth >= level->depth)
        bracket--;
    *level = brackets_around(level->lex, bracket);
    return true;
}

/* A set operation's first arm may stand deeper than the whole, and the whole deeper than its ORDER BY. */
static bool widen_set(struct cut_tokens *level)
{
    while (!is_set(level))
        if (!widen(level))
            return false;
    while (cut_find(level, level->first, PG_QUERY__TOKEN__ORDER) > level->last)
        if (!widen(level))
            return false;
    return true;
}

static enum pgseek_reason find_level(struct cut_tokens *tokens, const struct cut_tokens *statement,
                                     const struct cut_level *level)
{
    *tokens = *statement;
    if (level->first_location < 0)
        return PGSEEK_REASON_NONE;
    size_t i = token_at(statement->lex, level->first_location);
    if (i == statement->lex->ntokens)
        return PGSEEK_REASON_REWRITE_CHECK;
    *tokens = brackets_around(statement->lex, i);
    if (level->is_set && !widen_set(tokens))
        return PGSEEK_REASON_PARENTHESISED;
    return PGSEEK_REASON_NONE;
}

/* ---- the clauses ---- */

static size_t start_of(const struct cut_tokens *level, size_t i)
{
    return level->lex->tokens[i].start;
}

static size_t end_of(const struct cut_tokens *level, size_t i)
{
    return level->lex->tokens[i].end;
}

/* The end of what stands before token i. */
static size_t end_before(const struct cut_tokens *level, size_t i)
{
    return end_of(level, cut_previous(level->lex, i));
}

static struct cut_range with_range(const struct cut_tokens *level, size_t behind)
{
    if (behind == level->first)
        return (struct cut_range){0};
    return (struct cut_range){.start = start_of(level, level->first), .end = end_before(level, behind)};
}

static bool opens_tail_clause(const struct cut_tokens *level, size_t i)
{
    static const int kinds[] = {PG_QUERY__TOKEN__ORDER, PG_QUERY__TOKEN__LIMIT, PG_QUERY__TOKEN__OFFSET,
                                PG_QUERY__TOKEN__FETCH, PG_QUERY__TOKEN__FOR};

    if (level->lex->tokens[i].depth != level->depth)
        return false;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (level->lex->tokens[i].kind == kinds[k])
            return cut_opens_clause(level->lex, i);
    return false;
}

/* From the token that opens a clause of the tail to the last token before the next clause. */
static size_t next_tail_clause(const struct cut_tokens *level, size_t i)
{
    size_t next = i + 1;

    while (next <= level->last && !opens_tail_clause(level, next))
        next++;
    return next;
}

static bool cut_tail(struct cut *cut, const struct cut_tokens *level, size_t order)
{
    for (size_t i = order; i <= level->last; i = next_tail_clause(level, i)) {
        size_t next = next_tail_clause(level, i);
        const struct cut_range range = {.start = start_of(level, i), .end = end_before(level, next)};

        if (level->lex->tokens[i].kind == PG_QUERY__TOKEN__OFFSET)
            cut->offset = range;
        if (level->lex->tokens[i].kind != PG_QUERY__TOKEN__FOR)
            continue;
        if (cut->nlocks == CUT_MAX_LOCKS)
            return false;
        cut->lock[cut->nlocks++] = range;
    }
    return true;
}

/* The clauses between the select list and ORDER BY, each optional and in this order. */
enum { FROM, WHERE, GROUP, HAVING, WINDOW, TAIL, CLAUSES };

static void find_clauses(const struct cut_tokens *level, size_t select, size_t order, size_t clause[CLAUSES])
{
    static const int kinds[] = {PG_QUERY__TOKEN__FROM, PG_QUERY__TOKEN__WHERE, PG_QUERY__TOKEN__GROUP_P,
                                PG_QUERY__TOKEN__HAVING, PG_QUERY__TOKEN__WINDOW};
    size_t from = select;

    for (size_t k = 0; k < TAIL; k++) {
        clause[k] = cut_find(level, from, kinds[k]);
        if (clause[k] > order)
            clause[k] = level->last + 1;
        else
            from = clause[k];
    }
    clause[TAIL] = order;
}

/* The first clause that is there, from that kind on. */
static size_t first_clause(const struct cut_tokens *level, const size_t clause[CLAUSES], size_t kind)
{
    while (clause[kind] > level->last)
        kind++;
    return clause[kind];
}

static enum pgseek_reason cut_select(struct cut *cut, struct arena *arena, const struct cut_tokens *level,
                                     const struct cut_level *tree, size_t select, size_t order)
{
    size_t clause[CLAUSES];

    if (!lex_is(level->lex, select, PG_QUERY__TOKEN__SELECT))
        return PGSEEK_REASON_PARENTHESISED;
    find_clauses(level, select, order, clause);
    size_t list_end = first_clause(level, clause, FROM);
    cut->list_end = end_before(level, list_end);
    cut->where = clause[WHERE] <= level->last ? end_of(level, clause[WHERE]) : 0;
    cut->where_end = end_before(level, first_clause(level, clause, GROUP));
    cut->having = clause[HAVING] <= level->last ? end_of(level, clause[HAVING]) : 0;
    cut->having_end = end_before(level, first_clause(level, clause, WINDOW));
    size_t group_end = first_clause(level, clause, HAVING);
    if (!cut_targets(cut, arena, level, tree, select, list_end) ||
        !cut_groups(cut, arena, level, tree, clause[GROUP], group_end))
        return arena->failed ? PGSEEK_REASON_NOMEM : PGSEEK_REASON_REWRITE_CHECK;
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason cut_level(struct cut *cut, struct arena *arena, const struct cut_tokens *level,
                                    const struct cut_level *tree)
{
    size_t select = behind_with(level);
    size_t order = cut_find(level, select, PG_QUERY__TOKEN__ORDER);

    if (select > level->last)
        return PGSEEK_REASON_PARENTHESISED;
    if (order > level->last) /* it stands in brackets of its own */
        return PGSEEK_REASON_PARENTHESISED;
    cut->start = start_of(level, level->first);
    cut->with = with_range(level, select);
    cut->select = start_of(level, select);
    cut->body_end = end_before(level, order);
    cut->tail = start_of(level, order);
    cut->end = end_of(level, level->last);
    cut->list_end = cut->where_end = cut->having_end = cut->body_end;
    if (!cut_tail(cut, level, order))
        return PGSEEK_REASON_LOCKING;
    if (!cut_sorts(cut, arena, level, tree, order, next_tail_clause(level, order)))
        return arena->failed ? PGSEEK_REASON_NOMEM : PGSEEK_REASON_REWRITE_CHECK;
    return tree->is_set ? PGSEEK_REASON_NONE : cut_select(cut, arena, level, tree, select, order);
}

static enum pgseek_reason cut_statement(struct cut *cut, const struct cut_tokens *statement,
                                        const struct cut_level *tree)
{
    size_t behind = behind_with(statement);

    if (behind > statement->last)
        return PGSEEK_REASON_PARENTHESISED;
    cut->statement =
        (struct cut_range){.start = start_of(statement, statement->first), .end = end_of(statement, statement->last)};
    cut->main = start_of(statement, behind);
    if (tree->first_location < 0)
        return PGSEEK_REASON_NONE;
    cut->outer_with = with_range(statement, behind);
    cut->outer_is_recursive =
        behind != statement->first &&
        lex_is(statement->lex, lex_skip(statement->lex, statement->first + 1), PG_QUERY__TOKEN__RECURSIVE);
    if (tree->cte_location >= 0)
        cut->cte = (size_t)tree->cte_location;
    return PGSEEK_REASON_NONE;
}

enum pgseek_reason cut_make(struct cut *cut, struct arena *arena, const struct lex *lex, const struct cut_level *level)
{
    struct cut_tokens statement;
    struct cut_tokens tokens;

    memset(cut, 0, sizeof *cut);
    if (!find_statement(&statement, lex, level->verb))
        return PGSEEK_REASON_EMPTY;
    enum pgseek_reason reason = find_level(&tokens, &statement, level);
    if (reason == PGSEEK_REASON_NONE)
        reason = cut_statement(cut, &statement, level);
    return reason == PGSEEK_REASON_NONE ? cut_level(cut, arena, &tokens, level) : reason;
}

/* ---- copies ---- */

static struct cut_range *copy_ranges(struct arena *arena, const struct cut_range *from, size_t count)
{
    struct cut_range *to = arena_array(arena, count, sizeof *to);

    if (to && count)
        memcpy(to, from, count * sizeof *to);
    return to;
}

bool cut_copy(struct cut *to, struct arena *arena, const struct cut *from)
{
    *to = *from;
    to->targets = copy_ranges(arena, from->targets, from->ntargets);
    to->sorts = copy_ranges(arena, from->sorts, from->nsorts);
    to->sort_items = copy_ranges(arena, from->sort_items, from->nsorts);
    to->groups = copy_ranges(arena, from->groups, from->ngroups);
    to->distincts = copy_ranges(arena, from->distincts, from->ndistincts);
    return !arena->failed;
}
