/* lex.h - the tokens of one SQL text, with byte ranges, bracket depths and the limits that make parsing safe.
 *
 * It knows PostgreSQL's lexical rules (through libpg_query's flat scanner) and must not know any grammar. A text that
 * lex_init() took with LEX_OK is within the limits that pgseek.h sets, and only such a text may be parsed. */
#ifndef PARSER_LEX_H
#define PARSER_LEX_H

#include "pgseek.h"
#include "skim.h"

#include <pg_query/pg_query.pb-c.h>

/* A longer text is not scanned at all. */
#define LEX_MAX_BYTES ((size_t)1024 * 1024)
/* What the scanner may spend on runs of operator characters, in steps: its rules look at a whole run again for every
 * token in it, and 20,000 plus signs took 2.4 seconds. */
#define LEX_MAX_WORK ((uint64_t)1024 * 1024)
#define LEX_NAME_BYTES SKIM_NAME_BYTES

enum lex_result {
    LEX_OK,
    LEX_SYNTAX,    /* the scanner refuses the text, or it holds a NUL byte */
    LEX_TOO_LARGE, /* too long, too many tokens, or nested too deeply */
    LEX_NOMEM
};

struct lex_token {
    int kind;           /* PG_QUERY__TOKEN__*; a character's own code for ( ) , ; . and the like */
    bool is_keyword;    /* a keyword of any class, e.g. SELECT or cursor */
    bool is_reserved;   /* a keyword that no name can be without quotes */
    uint32_t start;     /* bytes from the start of the text */
    uint32_t end;       /* one behind the last byte */
    uint32_t depth;     /* open ( and [ around it; a bracket has the depth of what it stands in */
    uint32_t statement; /* number of the statement that it is in, from 0, empty ones not counted */
};

struct lex {
    char *sql; /* owned, NUL-terminated copy */
    size_t len;
    struct lex_token *tokens; /* owned */
    size_t ntokens;
    size_t nstatements; /* those that hold more than comments */
};

/* Scans the text. Whatever the result, lex_fini() may be called; without LEX_OK there are no tokens. */
enum lex_result lex_init(struct lex *lex, const char *sql, size_t len) PGSEEK_MUST_USE;
/* The same for a text of pgseek's own, made from one that was within the limits: with room for what was added, so that
 * a page that is rewritten can be gone on from. */
enum lex_result lex_init_ours(struct lex *lex, const char *sql, size_t len) PGSEEK_MUST_USE;
void lex_fini(struct lex *lex);

bool lex_is_comment(const struct lex_token *token);
/* The first token at or behind i that is no comment; lex->ntokens when there is none. */
size_t lex_skip(const struct lex *lex, size_t i);
/* Whether token i is the unquoted word (given in lower case); false behind the last token. */
bool lex_is_word(const struct lex *lex, size_t i, const char *word);
/* Whether token i is of that kind; false behind the last token. */
bool lex_is(const struct lex *lex, size_t i, int kind);

/* Whether the token may be a name: an identifier, quoted or not, or any keyword. */
bool lex_is_name(const struct lex *lex, size_t i);
/* The name as the server reads it: unquoted ASCII letters folded, quoted text as it stands, cut to 63 bytes at a
 * character's border. "" and false for a Unicode-escaped name (U&"...") and for what is no name. */
bool lex_name(const struct lex *lex, size_t i, char name[LEX_NAME_BYTES + 1]);

#endif
