/* cut.h - where the clauses of a page stand in the client's text, as byte ranges.
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
    size_t start;                         /* the level's first token, SELECT */
    size_t list_end;                      /* behind the select list: hidden columns go here */
    size_t where;                         /* behind the word WHERE; 0 without one */
    size_t body_end;                      /* behind what comes before ORDER BY: a predicate ends here */
    size_t tail;                          /* the word ORDER: from here to end everything is written anew */
    size_t end;                           /* behind the level's last token */
    struct cut_range offset;              /* the OFFSET clause, its word included */
    struct cut_range lock[CUT_MAX_LOCKS]; /* FOR UPDATE and the like */
    size_t nlocks;
};

/* Cuts a statement that is one plain SELECT ... FROM ... ORDER BY. Otherwise the reason why not. */
enum pgseek_reason cut_make(struct cut *cut, const struct lex *lex) PGSEEK_MUST_USE;

#endif
