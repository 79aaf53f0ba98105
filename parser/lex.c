/* lex.c - the tokens of one SQL text.
 *
 * It turns the scanner's answer into an array and checks the limits; it must not know any grammar. The scanner is flat,
 * so it cannot overflow a stack, but it can take long: skim.h says first whether the text may be scanned. */
#include "lex.h"

#include <stdlib.h>
#include <string.h>

#include <pg_query.h>

/* ---- reading the scanner's answer ---- */

static bool is_open(int kind)
{
    return kind == '(' || kind == '[';
}

static bool is_close(int kind)
{
    return kind == ')' || kind == ']';
}

/* The scanner reports a wrong end for U&'...' and U&"..." (one byte or none). All that is not a token is a blank, so
 * such a token ends behind the last byte before the next one that is no blank. */
static uint32_t end_of_unicode(const struct lex *lex, const PgQuery__ScanToken *token, const PgQuery__ScanToken *next)
{
    size_t end = next && next->start > token->start ? (size_t)next->start : lex->len;
    while (end > (size_t)token->start && skim_is_blank(lex->sql[end - 1]))
        end--;
    return (uint32_t)end;
}

static struct lex_token token_from(const struct lex *lex, const PgQuery__ScanToken *token,
                                   const PgQuery__ScanToken *next)
{
    bool is_unicode = token->token == PG_QUERY__TOKEN__USCONST || token->token == PG_QUERY__TOKEN__UIDENT;
    return (struct lex_token){
        .kind = (int)token->token,
        .is_keyword = token->keyword_kind != PG_QUERY__KEYWORD_KIND__NO_KEYWORD,
        .is_reserved = token->keyword_kind == PG_QUERY__KEYWORD_KIND__RESERVED_KEYWORD,
        .start = (uint32_t)token->start,
        .end = is_unicode ? end_of_unicode(lex, token, next) : (uint32_t)token->end,
    };
}

/* Whether the range lies in the text and behind the token before: never trust positions that others computed. */
static bool is_in_place(const struct lex *lex, const struct lex_token *token, size_t i)
{
    uint32_t floor = i ? lex->tokens[i - 1].end : 0;
    return token->start >= floor && token->end > token->start && token->end <= lex->len;
}

struct limits {
    size_t bytes;
    size_t tokens;
    uint32_t nesting;
};

static const struct limits theirs = {LEX_MAX_BYTES, PGSEEK_MAX_TOKENS, PGSEEK_MAX_NESTING};
/* What pgseek adds is flat: sixteen keys with their branches are some 2,000 tokens. */
static const struct limits ours = {LEX_MAX_BYTES + 65536, PGSEEK_MAX_TOKENS + 2500, PGSEEK_MAX_NESTING + 8};

static enum lex_result take_tokens(struct lex *lex, const struct limits *limits, const PgQuery__ScanResult *scan)
{
    if (scan->n_tokens > limits->tokens)
        return LEX_TOO_LARGE;
    lex->tokens = calloc(scan->n_tokens + 1, sizeof *lex->tokens);
    if (!lex->tokens)
        return LEX_NOMEM;
    for (size_t i = 0; i < scan->n_tokens; i++) {
        const PgQuery__ScanToken *next = i + 1 < scan->n_tokens ? scan->tokens[i + 1] : NULL;
        lex->tokens[i] = token_from(lex, scan->tokens[i], next);
        if (!is_in_place(lex, &lex->tokens[i], i))
            return LEX_SYNTAX;
        lex->ntokens++;
    }
    return LEX_OK;
}

static enum lex_result scan_tokens(struct lex *lex, const struct limits *limits)
{
    enum lex_result result = LEX_SYNTAX;
    PgQuery__ScanResult *scan = NULL;
    PgQueryScanResult raw = pg_query_scan(lex->sql);
    if (raw.error)
        goto out;
    result = LEX_NOMEM;
    scan = pg_query__scan_result__unpack(NULL, raw.pbuf.len, (const uint8_t *)raw.pbuf.data);
    if (scan)
        result = take_tokens(lex, limits, scan);
out:
    if (scan)
        pg_query__scan_result__free_unpacked(scan, NULL);
    pg_query_free_scan_result(raw);
    return result;
}

/* ---- depths and statements ---- */

/* Numbers brackets and statements. A semicolon inside brackets (a rule's body) ends nothing, as the grammar has it. */
static enum lex_result measure(struct lex *lex, const struct limits *limits)
{
    uint32_t depth = 0;
    uint32_t ended = 0;    /* non-empty statements that a semicolon has ended */
    bool is_begun = false; /* the current one is not empty */
    for (size_t i = 0; i < lex->ntokens; i++) {
        struct lex_token *token = &lex->tokens[i];
        if (is_close(token->kind) && depth > 0)
            depth--;
        token->depth = depth;
        token->statement = ended;
        if (is_open(token->kind) && ++depth > limits->nesting)
            return LEX_TOO_LARGE;
        bool is_end = token->kind == ';' && depth == 0;
        if (is_end && is_begun)
            ended++;
        if (!lex_is_comment(token))
            is_begun = !is_end;
    }
    lex->nstatements = (size_t)ended + (is_begun ? 1 : 0);
    return LEX_OK;
}

/* Whether the scanner answers within bounds. Every item of skim.h is one token of the scanner or more. */
static bool is_scannable(const struct limits *limits, const char *sql, size_t len)
{
    if (len > limits->bytes)
        return false;
    struct skim skim = skim_init(sql, len);
    struct skim_item item;
    size_t items = 0;
    while (skim_next(&skim, &item) > SKIM_BROKEN)
        if (++items > limits->tokens || skim.work > LEX_MAX_WORK)
            return false;
    return skim.work <= LEX_MAX_WORK;
}

static enum lex_result init(struct lex *lex, const struct limits *limits, const char *sql, size_t len)
{
    *lex = (struct lex){0};
    if (!is_scannable(limits, sql, len))
        return LEX_TOO_LARGE;
    if (len && memchr(sql, '\0', len))
        return LEX_SYNTAX;
    lex->sql = calloc(1, len + 1);
    if (!lex->sql)
        return LEX_NOMEM;
    if (len)
        memcpy(lex->sql, sql, len);
    lex->len = len;

    enum lex_result result = scan_tokens(lex, limits);
    if (result == LEX_OK)
        result = measure(lex, limits);
    if (result != LEX_OK)
        lex_fini(lex);
    return result;
}

enum lex_result lex_init(struct lex *lex, const char *sql, size_t len)
{
    return init(lex, &theirs, sql, len);
}

enum lex_result lex_init_ours(struct lex *lex, const char *sql, size_t len)
{
    return init(lex, &ours, sql, len);
}

void lex_fini(struct lex *lex)
{
    free(lex->tokens);
    free(lex->sql);
    *lex = (struct lex){0};
}

/* ---- questions about tokens ---- */

bool lex_is_comment(const struct lex_token *token)
{
    return token->kind == PG_QUERY__TOKEN__SQL_COMMENT || token->kind == PG_QUERY__TOKEN__C_COMMENT;
}

size_t lex_skip(const struct lex *lex, size_t i)
{
    while (i < lex->ntokens && lex_is_comment(&lex->tokens[i]))
        i++;
    return i;
}

bool lex_is(const struct lex *lex, size_t i, int kind)
{
    return i < lex->ntokens && lex->tokens[i].kind == kind;
}

bool lex_is_word(const struct lex *lex, size_t i, const char *word)
{
    if (i >= lex->ntokens)
        return false;
    const struct lex_token *token = &lex->tokens[i];
    if (!token->is_keyword && token->kind != PG_QUERY__TOKEN__IDENT)
        return false;
    return skim_same(lex->sql + token->start, token->end - token->start, word);
}

bool lex_is_name(const struct lex *lex, size_t i)
{
    return i < lex->ntokens && (lex->tokens[i].is_keyword || lex->tokens[i].kind == PG_QUERY__TOKEN__IDENT ||
                                lex->tokens[i].kind == PG_QUERY__TOKEN__UIDENT);
}

bool lex_name(const struct lex *lex, size_t i, char name[LEX_NAME_BYTES + 1])
{
    name[0] = '\0';
    if (!lex_is_name(lex, i))
        return false;
    const char *start = lex->sql + lex->tokens[i].start;
    bool is_quoted = *start == '"' || lex->tokens[i].kind == PG_QUERY__TOKEN__UIDENT;
    return skim_name(&(struct skim_item){.kind = is_quoted ? SKIM_NAME : SKIM_WORD,
                                         .start = start,
                                         .end = lex->sql + lex->tokens[i].end},
                     name);
}
