/* skim.h - one flat pass over any SQL text: where comments, words, names, literals and marks begin and end.
 *
 * It knows the server's lexical rules (standard_conforming_strings on) and must not know any grammar. Unlike lex.h it
 * allocates nothing, has no limit of size, and takes time linear in the text whatever the text is: so it is what looks
 * for tags and variables in texts that may be too large to scan, and what says whether a text may be scanned at all. */
#ifndef PARSER_SKIM_H
#define PARSER_SKIM_H

#include "arena.h"

#include <stdint.h>

/* What an identifier is cut to, as the server cuts it. */
#define SKIM_NAME_BYTES 63

enum skim_kind {
    SKIM_END,           /* no more items */
    SKIM_BROKEN,        /* a comment, literal or name that is not closed; the last item */
    SKIM_LINE_COMMENT,  /* without the line's end */
    SKIM_BLOCK_COMMENT, /* nested ones included */
    SKIM_WORD,          /* an unquoted name or keyword */
    SKIM_NAME,          /* a name in double quotes, with its U& */
    SKIM_STRING,        /* a literal in any quotes, with its prefix and its continuation lines */
    SKIM_NUMBER,        /* digits, perhaps with a fraction; an exponent is a word of its own */
    SKIM_PARAM,         /* $n */
    SKIM_OPERATOR,      /* a run of operator characters, not divided as the server would */
    SKIM_MARK           /* any other single character: ( ) [ ] , . ; : and what no SQL has */
};

struct skim_item {
    enum skim_kind kind;
    const char *start;
    const char *end; /* one behind the last byte */
};

struct skim {
    const char *at;
    const char *end;
    const char *run_end; /* where the last seen run of operator characters ends */
    bool
        has_backslashes; /* a plain literal reads like E'': standard_conforming_strings = off; set behind skim_init() */
    uint64_t work;       /* steps that the server's own scanner would need for runs of operator characters: its rules
                          * look at a whole run again for every token and comment in it */
};

struct skim skim_init(const char *sql, size_t len);
/* The next item; its kind, SKIM_END and SKIM_BROKEN included, is also what is returned. */
enum skim_kind skim_next(struct skim *skim, struct skim_item *item);
/* The next item that is no comment. */
enum skim_kind skim_token(struct skim *skim, struct skim_item *item);
/* Skips blanks, semicolons and comments: to the first word of the first statement. Nothing else is looked at. */
const char *skim_lead(const char *sql, size_t len);

bool skim_is_comment(const struct skim_item *item);
bool skim_is_mark(const struct skim_item *item, char mark);
/* Whether the item is the unquoted word, given in lower case. */
bool skim_is_word(const struct skim_item *item, const char *word);
/* Whether the item is the operator, as a whole. */
bool skim_is_operator(const struct skim_item *item, const char *sign);
/* The name as the server reads it: unquoted ASCII letters folded, quoted text as it stands, cut to 63 bytes at a
 * character's border. "" and false for a Unicode-escaped name (U&"...") and for what is neither word nor name. */
bool skim_name(const struct skim_item *item, char name[SKIM_NAME_BYTES + 1]);
/* n of a $n; 0 when the item is none, or beyond what a message can carry (65,535). */
int skim_param(const struct skim_item *item);
/* Appends what a string literal stands for. False for what is no text literal (B'', X'') or has a bad escape. */
bool skim_string(const struct skim_item *item, struct text *value);

/* ---- characters: inline, since every statement's first word is read with them ---- */

enum { SKIM_BLANK = 1, SKIM_LETTER = 2, SKIM_DIGIT = 4, SKIM_SIGN = 8, SKIM_DOLLAR = 16 };

/* What each byte may be. Bytes above 0x7f count as letters, as the server has it. */
extern const uint8_t skim_classes[256];

static inline bool skim_has_class(char c, unsigned mask)
{
    return (skim_classes[(unsigned char)c] & mask) != 0;
}

static inline bool skim_is_blank(char c)
{
    return skim_has_class(c, SKIM_BLANK);
}

/* Whether the character may go on an unquoted name. */
static inline bool skim_goes_on_name(char c)
{
    return skim_has_class(c, SKIM_LETTER | SKIM_DIGIT | SKIM_DOLLAR);
}

/* ASCII only, as the server folds names. */
static inline char skim_fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether len bytes are the word, given in lower case, in any case. */
bool skim_same(const char *bytes, size_t len, const char *word);

#endif
