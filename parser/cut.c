/* cut.c - where the clauses of a page stand in the client's text, as byte ranges.
 *
 * See cut.h. Reserved words mark the clauses at the level's own bracket depth; rewrite checks on the tree catch what
 * this reading may ever get wrong. */
#include "cut.h"

#include <string.h>

/* The level's tokens without comments and trailing semicolons. */
struct level {
    const struct lex *lex;
    size_t first;
    size_t last;
};

static size_t previous(const struct lex *lex, size_t i)
{
    while (i > 0 && lex_is_comment(&lex->tokens[i - 1]))
        i--;
    return i > 0 ? i - 1 : lex->ntokens;
}

static bool level_find(struct level *level, const struct lex *lex)
{
    size_t first = lex_skip(lex, 0);
    size_t last = previous(lex, lex->ntokens);

    while (lex_is(lex, first, ';'))
        first = lex_skip(lex, first + 1);
    while (lex_is(lex, last, ';'))
        last = previous(lex, last);
    *level = (struct level){.lex = lex, .first = first, .last = last};
    return first < lex->ntokens && last < lex->ntokens && first <= last;
}

/* What the reserved words that open a clause may be instead: a label (AS limit, x.from), or part of IS DISTINCT FROM,
 * WITHIN GROUP and ROWS FROM. */
static bool opens_clause(const struct lex *lex, size_t i)
{
    size_t before = previous(lex, i);

    if (lex_is(lex, before, PG_QUERY__TOKEN__AS) || lex_is(lex, before, '.'))
        return false;
    if (lex_is(lex, i, PG_QUERY__TOKEN__GROUP_P))
        return !lex_is(lex, before, PG_QUERY__TOKEN__WITHIN);
    if (!lex_is(lex, i, PG_QUERY__TOKEN__FROM))
        return true;
    if (lex_is(lex, before, PG_QUERY__TOKEN__ROWS))
        return false;
    /* SELECT DISTINCT FROM is no text of ours: DISTINCT has its own reason. */
    return !lex_is(lex, before, PG_QUERY__TOKEN__DISTINCT);
}

/* The next token from i on, at the level's depth, that opens a clause of that kind; behind the level when none. */
static size_t find_clause(const struct level *level, size_t i, int kind)
{
    for (; i <= level->last; i++)
        if (level->lex->tokens[i].kind == kind && level->lex->tokens[i].depth == 0 && opens_clause(level->lex, i))
            return i;
    return level->last + 1;
}

static bool opens_tail_clause(const struct level *level, size_t i)
{
    static const int kinds[] = {PG_QUERY__TOKEN__ORDER, PG_QUERY__TOKEN__LIMIT, PG_QUERY__TOKEN__OFFSET,
                                PG_QUERY__TOKEN__FETCH, PG_QUERY__TOKEN__FOR};

    if (level->lex->tokens[i].depth != 0)
        return false;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (level->lex->tokens[i].kind == kinds[k])
            return opens_clause(level->lex, i);
    return false;
}

/* From the token that opens a clause of the tail to the last token before the next clause. */
static struct cut_range clause_range(const struct level *level, size_t i)
{
    size_t next = i + 1;

    while (next <= level->last && !opens_tail_clause(level, next))
        next++;
    return (struct cut_range){.start = level->lex->tokens[i].start,
                              .end = level->lex->tokens[previous(level->lex, next)].end};
}

static bool cut_tail(struct cut *cut, const struct level *level, size_t order)
{
    for (size_t i = order; i <= level->last; i++) {
        if (!opens_tail_clause(level, i))
            continue;
        if (level->lex->tokens[i].kind == PG_QUERY__TOKEN__OFFSET)
            cut->offset = clause_range(level, i);
        if (level->lex->tokens[i].kind != PG_QUERY__TOKEN__FOR)
            continue;
        if (cut->nlocks == CUT_MAX_LOCKS)
            return false;
        cut->lock[cut->nlocks++] = clause_range(level, i);
    }
    return true;
}

enum pgseek_reason cut_make(struct cut *cut, const struct lex *lex)
{
    struct level level;

    memset(cut, 0, sizeof *cut);
    if (!level_find(&level, lex))
        return PGSEEK_REASON_EMPTY;
    if (lex_is(lex, level.first, '('))
        return PGSEEK_REASON_PARENTHESISED;
    if (!lex_is(lex, level.first, PG_QUERY__TOKEN__SELECT))
        return PGSEEK_REASON_VALUES;

    size_t from = find_clause(&level, level.first, PG_QUERY__TOKEN__FROM);
    size_t where = find_clause(&level, from, PG_QUERY__TOKEN__WHERE);
    size_t order = find_clause(&level, where <= level.last ? where : from, PG_QUERY__TOKEN__ORDER);
    if (from > level.last)
        return PGSEEK_REASON_NO_FROM;
    if (order > level.last)
        return PGSEEK_REASON_NO_ORDER;

    cut->start = lex->tokens[level.first].start;
    cut->list_end = lex->tokens[previous(lex, from)].end;
    cut->where = where <= level.last ? lex->tokens[where].end : 0;
    cut->body_end = lex->tokens[previous(lex, order)].end;
    cut->tail = lex->tokens[order].start;
    cut->end = lex->tokens[level.last].end;
    return cut_tail(cut, &level, order) ? PGSEEK_REASON_NONE : PGSEEK_REASON_LOCKING;
}
