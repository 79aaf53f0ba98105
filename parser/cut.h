/* cut.h - where the clauses of a page's level stand in the client's text, as byte ranges.
 *
 * It knows tokens and reserved words and must not know trees, catalogs or what will be written at the cuts. */
#ifndef PARSER_CUT_H
#define PARSER_CUT_H

#include "lex.h"

struct cut_range {
    size_t start;
    size_t end; /* one behind; equal to start: the clause is absent */
};

#define CUT_MAX_LOCKS 8

/* The level's text, cut up. Every place is the border of a token, so a comment is never split or left open. */
struct cut {
    struct cut_range statement;  /* the whole SELECT, without EXPLAIN, DECLARE and parentheses around it */
    struct cut_range outer_with; /* inner levels: the statement's own WITH clause, its names are seen by the level */
    bool outer_is_recursive;     /* that is WITH RECURSIVE: each name is seen everywhere in it */
    size_t cte;                  /* inner levels in that clause: the name of the CTE that they are in; else 0 */
    size_t main;                 /* the statement's first token behind WITH */
    size_t start;                /* the level's first token: WITH, SELECT, VALUES, TABLE, or ( of a set operation */
    struct cut_range with;       /* the level's own WITH clause */
    size_t select;               /* the word SELECT (VALUES, TABLE, the first token of a set operation): behind WITH */
    size_t list_end;             /* behind the select list: hidden columns go here */
    size_t where;                /* behind the word WHERE; 0 without one */
    size_t where_end;            /* a predicate for WHERE ends here: before GROUP, HAVING, WINDOW or the tail */
    size_t having;               /* behind the word HAVING; 0 without one */
    size_t having_end;           /* a predicate for HAVING ends here: before WINDOW or the tail */
    size_t body_end;             /* behind what comes before ORDER BY */
    size_t tail;                 /* the word ORDER: from here to end everything is written anew */
    size_t end;                  /* behind the level's last token */
    struct cut_range offset;     /* the OFFSET clause, its word included */
    struct cut_range lock[CUT_MAX_LOCKS]; /* FOR UPDATE and the like */
    size_t nlocks;
    /* Items, separated at the level's depth: bytes from the first to the last token of each. */
    struct cut_range *targets; /* without AS and alias (has_alias of the tree says whether there is one) */
    size_t ntargets;
    struct cut_range *sorts; /* without ASC, DESC, USING and NULLS */
    size_t nsorts;
    struct cut_range *sort_items; /* the same, whole */
    struct cut_range *groups;     /* of GROUP BY */
    size_t ngroups;
    struct cut_range *distincts; /* of DISTINCT ON */
    size_t ndistincts;
};

/* What the tree tells the cutter. */
struct cut_level {
    enum pgseek_verb verb;
    int cte_location;   /* of the CTE of the statement's WITH clause that the level is in; -1: none */
    int first_location; /* of the level's first select item: the level is the innermost bracket group that holds it; -1:
                         * the outermost */
    bool is_set;        /* a set operation, VALUES or TABLE: there is no list and no WHERE to cut */
    const bool *has_alias; /* per select item */
    size_t ntargets;
    size_t nsorts, ngroups, ndistincts; /* as the tree counts them: anything else is refused */
};

/* The bytes between the brackets around the token at that place; the whole text when there are none. */
struct cut_range cut_group(const struct lex *lex, int location);

/* Memory comes from the arena. Otherwise the reason why the level cannot be cut. */
struct arena;
bool cut_copy(struct cut *to, struct arena *arena, const struct cut *from) PGSEEK_MUST_USE;
enum pgseek_reason cut_make(struct cut *cut, struct arena *arena, const struct lex *lex,
                            const struct cut_level *level) PGSEEK_MUST_USE;

#endif
