/* cut_items.h - the items of a level's lists: select list, ORDER BY, GROUP BY, DISTINCT ON; for cut.c alone.
 *
 * It knows commas at one bracket depth and what may follow an expression in each list; it must not know clauses. */
#ifndef PARSER_CUT_ITEMS_H
#define PARSER_CUT_ITEMS_H

#include "arena.h"
#include "cut.h"

/* A stretch of tokens, comments at its ends left out. */
struct cut_tokens {
    const struct lex *lex;
    size_t first;
    size_t last;
    uint32_t depth; /* of its own tokens; what is deeper belongs to brackets in it */
};

/* The last token before i that is no comment; lex->ntokens when there is none. */
size_t cut_previous(const struct lex *lex, size_t i);
/* Whether a reserved word opens a clause, and is no label and no part of another construct. */
bool cut_opens_clause(const struct lex *lex, size_t i);
/* The next token from i on, at the stretch's depth, that opens a clause of that kind; behind it when there is none. */
size_t cut_find(const struct cut_tokens *tokens, size_t i, int kind);

/* Each false when the text has other items than the tree, or memory ran out. The lists are tokens [word, end), with the
 * words that open them. */
bool cut_targets(struct cut *cut, struct arena *arena, const struct cut_tokens *level, const struct cut_level *tree,
                 size_t select, size_t end) PGSEEK_MUST_USE;
bool cut_sorts(struct cut *cut, struct arena *arena, const struct cut_tokens *level, const struct cut_level *tree,
               size_t order, size_t end) PGSEEK_MUST_USE;
bool cut_groups(struct cut *cut, struct arena *arena, const struct cut_tokens *level, const struct cut_level *tree,
                size_t group, size_t end) PGSEEK_MUST_USE;

#endif
