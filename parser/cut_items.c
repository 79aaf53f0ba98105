/* cut_items.c - the items of a level's lists: select list, ORDER BY, GROUP BY, DISTINCT ON.
 *
 * See cut_items.h. The tree says how many items there are; a text that seems to have others is not cut. */
#include "cut_items.h"

size_t cut_previous(const struct lex *lex, size_t i)
{
    while (i > 0 && lex_is_comment(&lex->tokens[i - 1]))
        i--;
    return i > 0 ? i - 1 : lex->ntokens;
}

bool cut_opens_clause(const struct lex *lex, size_t i)
{
    size_t before = cut_previous(lex, i);

    /* Any keyword may be a label: AS limit, x.from. */
    if (lex_is(lex, before, PG_QUERY__TOKEN__AS) || lex_is(lex, before, '.'))
        return false;
    if (lex_is(lex, i, PG_QUERY__TOKEN__GROUP_P)) /* else WITHIN GROUP ( */
        return lex_is(lex, lex_skip(lex, i + 1), PG_QUERY__TOKEN__BY);
    if (!lex_is(lex, i, PG_QUERY__TOKEN__FROM) || !lex_is(lex, before, PG_QUERY__TOKEN__DISTINCT))
        return true;
    size_t is = cut_previous(lex, before); /* IS [NOT] DISTINCT FROM; DISTINCT alone may be a label too */
    return !lex_is(lex, is, PG_QUERY__TOKEN__IS) && !lex_is(lex, is, PG_QUERY__TOKEN__NOT);
}

size_t cut_find(const struct cut_tokens *tokens, size_t i, int kind)
{
    for (; i <= tokens->last; i++)
        if (tokens->lex->tokens[i].kind == kind && tokens->lex->tokens[i].depth == tokens->depth &&
            cut_opens_clause(tokens->lex, i))
            return i;
    return tokens->last + 1;
}

/* ---- items ---- */

/* One item: its first and last token. */
struct item {
    size_t first;
    size_t last;
};

/* The item that starts at token i, before `end`; false at the end of the list. *next: where the following one starts.
 */
static bool next_item(const struct lex *lex, size_t i, size_t end, uint32_t depth, struct item *item, size_t *next)
{
    size_t comma = lex_skip(lex, i);

    if (comma >= end)
        return false;
    item->first = comma;
    while (comma < end && !(lex_is(lex, comma, ',') && lex->tokens[comma].depth == depth))
        comma++;
    item->last = cut_previous(lex, comma);
    *next = comma + 1;
    return item->last >= item->first && item->last < lex->ntokens;
}

static struct cut_range range_of(const struct lex *lex, const struct item *item)
{
    return (struct cut_range){.start = lex->tokens[item->first].start, .end = lex->tokens[item->last].end};
}

/* Takes what follows the expression off the item; n is its number. False when nothing is left. */
typedef bool (*cut_trim)(const struct lex *lex, struct item *item, const struct cut_level *tree, size_t n);

/* Cuts tokens [i, end) into exactly `count` items. */
static bool cut_list(const struct lex *lex, size_t i, size_t end, uint32_t depth, size_t count, cut_trim trim,
                     const struct cut_level *tree, struct cut_range *whole, struct cut_range *trimmed)
{
    struct item item;
    size_t n = 0;

    for (; n < count && next_item(lex, i, end, depth, &item, &i); n++) {
        if (whole)
            whole[n] = range_of(lex, &item);
        if (trim && !trim(lex, &item, tree, n))
            return false;
        trimmed[n] = range_of(lex, &item);
    }
    return n == count && !next_item(lex, i, end, depth, &item, &i);
}

/* ---- the select list ---- */

static bool trim_label(const struct lex *lex, struct item *item, const struct cut_level *tree, size_t n)
{
    if (!tree->has_alias[n])
        return true;
    size_t last = item->last;
    size_t escape = cut_previous(lex, last);
    if (lex_is(lex, escape, PG_QUERY__TOKEN__UESCAPE)) /* U&"..." UESCAPE '!' */
        last = cut_previous(lex, escape);
    last = cut_previous(lex, last);
    if (lex_is(lex, last, PG_QUERY__TOKEN__AS))
        last = cut_previous(lex, last);
    if (last >= lex->ntokens || last < item->first)
        return false;
    item->last = last;
    return true;
}

/* Behind ON ( ... ): cuts its items. */
static bool cut_distincts(struct cut *cut, struct arena *arena, const struct lex *lex, size_t *i,
                          const struct cut_level *tree)
{
    size_t open = lex_skip(lex, *i + 1);

    if (!lex_is(lex, open, '('))
        return false;
    size_t close = open + 1;
    while (close < lex->ntokens && lex->tokens[close].depth > lex->tokens[open].depth)
        close++;
    *i = lex_skip(lex, close + 1);
    cut->ndistincts = tree->ndistincts;
    cut->distincts = arena_array(arena, tree->ndistincts, sizeof *cut->distincts);
    return cut->distincts && cut_list(lex, open + 1, close, lex->tokens[open].depth + 1, tree->ndistincts, NULL, tree,
                                      NULL, cut->distincts);
}

bool cut_targets(struct cut *cut, struct arena *arena, const struct cut_tokens *level, const struct cut_level *tree,
                 size_t select, size_t end)
{
    const struct lex *lex = level->lex;
    size_t i = lex_skip(lex, select + 1);

    if (lex_is(lex, i, PG_QUERY__TOKEN__ALL) || lex_is(lex, i, PG_QUERY__TOKEN__DISTINCT))
        i = lex_skip(lex, i + 1);
    if (tree->ndistincts && !cut_distincts(cut, arena, lex, &i, tree))
        return false;
    cut->ntargets = tree->ntargets;
    cut->targets = arena_array(arena, tree->ntargets, sizeof *cut->targets);
    return cut->targets && cut_list(lex, i, end, level->depth, tree->ntargets, trim_label, tree, NULL, cut->targets);
}

/* ---- ORDER BY ---- */

/* Whether the token is that word and could not be a label behind a dot. */
static bool is_suffix(const struct lex *lex, const struct item *item, size_t i, const char *word)
{
    return i < lex->ntokens && i > item->first && lex_is_word(lex, i, word) && !lex_is(lex, cut_previous(lex, i), '.');
}

static bool trim_direction(const struct lex *lex, struct item *item, const struct cut_level *tree, size_t n)
{
    size_t nulls = cut_previous(lex, item->last);
    (void)tree;
    (void)n;
    if ((is_suffix(lex, item, item->last, "first") || is_suffix(lex, item, item->last, "last")) &&
        is_suffix(lex, item, nulls, "nulls"))
        item->last = cut_previous(lex, nulls);
    if (is_suffix(lex, item, item->last, "asc") || is_suffix(lex, item, item->last, "desc")) {
        item->last = cut_previous(lex, item->last);
        return true;
    }
    for (size_t i = item->first + 1; i <= item->last; i++)
        if (lex->tokens[i].depth == lex->tokens[item->first].depth && is_suffix(lex, item, i, "using")) {
            item->last = cut_previous(lex, i);
            break;
        }
    return true;
}

bool cut_sorts(struct cut *cut, struct arena *arena, const struct cut_tokens *level, const struct cut_level *tree,
               size_t order, size_t end)
{
    size_t by = lex_skip(level->lex, order + 1);

    cut->nsorts = tree->nsorts;
    cut->sorts = arena_array(arena, tree->nsorts, sizeof *cut->sorts);
    cut->sort_items = arena_array(arena, tree->nsorts, sizeof *cut->sort_items);
    return cut->sorts && cut->sort_items &&
           cut_list(level->lex, by + 1, end, level->depth, tree->nsorts, trim_direction, tree, cut->sort_items,
                    cut->sorts);
}

/* ---- GROUP BY ---- */

bool cut_groups(struct cut *cut, struct arena *arena, const struct cut_tokens *level, const struct cut_level *tree,
                size_t group, size_t end)
{
    const struct lex *lex = level->lex;

    if (group > level->last)
        return tree->ngroups == 0;
    size_t i = lex_skip(lex, lex_skip(lex, group + 1) + 1);
    if (lex_is(lex, i, PG_QUERY__TOKEN__ALL) || lex_is(lex, i, PG_QUERY__TOKEN__DISTINCT))
        i = lex_skip(lex, i + 1);
    cut->ngroups = tree->ngroups;
    cut->groups = arena_array(arena, tree->ngroups, sizeof *cut->groups);
    return cut->groups && cut_list(lex, i, end, level->depth, tree->ngroups, NULL, tree, NULL, cut->groups);
}
