/* skim.c - one flat pass over any SQL text.
 *
 * It follows the lexical rules of the server, state by state, and must not know any grammar. The fuzz target `tag`
 * holds it against libpg_query's scanner: on texts that the scanner takes, both see the same comments, but for a
 * literal that is continued behind a line comment, which the server takes as one and libpg_query does not. */
#include "skim.h"

#include <string.h>

/* ---- characters ---- */

const uint8_t skim_classes[256] = {
    [' '] = SKIM_BLANK,          ['\t' ... '\r'] = SKIM_BLANK,
    ['a' ... 'z'] = SKIM_LETTER, ['A' ... 'Z'] = SKIM_LETTER,
    ['_'] = SKIM_LETTER,         [0x80 ... 0xff] = SKIM_LETTER,
    ['0' ... '9'] = SKIM_DIGIT,  ['$'] = SKIM_DOLLAR,
    ['~'] = SKIM_SIGN,           ['!'] = SKIM_SIGN,
    ['@'] = SKIM_SIGN,           ['#'] = SKIM_SIGN,
    ['^'] = SKIM_SIGN,           ['&'] = SKIM_SIGN,
    ['|'] = SKIM_SIGN,           ['`'] = SKIM_SIGN,
    ['?'] = SKIM_SIGN,           ['+'] = SKIM_SIGN,
    ['-'] = SKIM_SIGN,           ['*'] = SKIM_SIGN,
    ['/'] = SKIM_SIGN,           ['%'] = SKIM_SIGN,
    ['<'] = SKIM_SIGN,           ['>'] = SKIM_SIGN,
    ['='] = SKIM_SIGN,
};

bool skim_same(const char *bytes, size_t len, const char *word)
{
    if (len != strlen(word))
        return false;
    for (size_t i = 0; i < len; i++)
        if (skim_fold(bytes[i]) != word[i])
            return false;
    return true;
}

/* ---- comments ---- */

static bool starts_with(const char *at, const char *end, char first, char second)
{
    return end - at >= 2 && at[0] == first && at[1] == second;
}

static const char *line_end(const char *at, const char *end)
{
    while (at < end && *at != '\n' && *at != '\r')
        at++;
    return at;
}

/* How far the run of operator characters goes on from `at`. Each byte is looked at once, however often it is asked. */
static uint64_t run_left(struct skim *skim, const char *at)
{
    if (at >= skim->run_end) {
        skim->run_end = at;
        while (skim->run_end < skim->end && skim_has_class(*skim->run_end, SKIM_SIGN))
            skim->run_end++;
    }
    return (uint64_t)(skim->run_end - at);
}

/* From the slash of a block comment to behind its end; NULL when it is not closed. */
static const char *block_end(struct skim *skim, const char *at)
{
    size_t depth = 0;
    while (at < skim->end) {
        if (starts_with(at, skim->end, '/', '*')) {
            skim->work += run_left(skim, at);
            depth++;
            at += 2;
        } else if (starts_with(at, skim->end, '*', '/')) {
            at += 2;
            if (--depth == 0)
                return at;
        } else {
            at++;
        }
    }
    return NULL;
}

/* ---- literals ---- */

/* Behind a closing quote: the opening quote of a continuation, or NULL. Blanks and line comments may stand between,
 * when they hold a line's end. */
static const char *continuation(const char *at, const char *end)
{
    bool has_newline = false;
    while (at < end) {
        if (starts_with(at, end, '-', '-')) {
            at = line_end(at, end);
        } else if (skim_is_blank(*at)) {
            has_newline |= *at == '\n' || *at == '\r';
            at++;
        } else {
            break;
        }
    }
    return has_newline && at < end && *at == '\'' ? at : NULL;
}

/* From an opening single quote to behind the literal's end; NULL when it is not closed. */
static const char *string_end(const char *at, const char *end, bool has_escapes)
{
    for (at++; at < end; at++) {
        if (has_escapes && *at == '\\') {
            at++;
            continue;
        }
        if (*at != '\'')
            continue;
        if (end - at >= 2 && at[1] == '\'') {
            at++;
            continue;
        }
        const char *more = continuation(at + 1, end);
        if (!more)
            return at + 1;
        at = more;
    }
    return NULL;
}

/* From an opening double quote to behind the closing one; NULL when there is none. */
static const char *name_end(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        if (*at != '"')
            continue;
        if (end - at < 2 || at[1] != '"')
            return at + 1;
        at++;
    }
    return NULL;
}

/* The length of a dollar quote's delimiter, both dollars included, or 0 when none starts here. */
static size_t delimiter_length(const char *at, const char *end)
{
    const char *p = at + 1;
    if (p < end && skim_has_class(*p, SKIM_LETTER))
        while (p < end && skim_has_class(*p, SKIM_LETTER | SKIM_DIGIT))
            p++;
    return p < end && *p == '$' ? (size_t)(p + 1 - at) : 0;
}

static const char *dollar_end(const char *at, const char *end, size_t delimiter_len)
{
    const char *body = at + delimiter_len;
    const char *close = memmem(body, (size_t)(end - body), at, delimiter_len);
    return close ? close + delimiter_len : NULL;
}

/* ---- items ---- */

static enum skim_kind item_done(struct skim *skim, struct skim_item *item, enum skim_kind kind, const char *end)
{
    item->kind = end ? kind : SKIM_BROKEN;
    item->end = end ? end : skim->end;
    skim->at = item->end;
    return item->kind;
}

static const char *class_end(const char *at, const char *end, unsigned mask)
{
    while (at < end && skim_has_class(*at, mask))
        at++;
    return at;
}

static enum skim_kind take_operator(struct skim *skim, struct skim_item *item)
{
    const char *at = item->start;
    uint64_t run = run_left(skim, at);
    const char *end = at + run;
    for (at++; at < end; at++)
        if (starts_with(at, end, '-', '-') || starts_with(at, end, '/', '*'))
            break;
    skim->work += run * (uint64_t)(at - item->start);
    return item_done(skim, item, SKIM_OPERATOR, at);
}

static enum skim_kind take_dollar(struct skim *skim, struct skim_item *item)
{
    const char *at = item->start;
    const char *digits = class_end(at + 1, skim->end, SKIM_DIGIT);
    if (digits > at + 1)
        return item_done(skim, item, SKIM_PARAM, digits);
    size_t delimiter_len = delimiter_length(at, skim->end);
    if (delimiter_len)
        return item_done(skim, item, SKIM_STRING, dollar_end(at, skim->end, delimiter_len));
    return item_done(skim, item, SKIM_MARK, at + 1);
}

static enum skim_kind take_number(struct skim *skim, struct skim_item *item)
{
    const char *end = class_end(item->start, skim->end, SKIM_DIGIT);
    if (skim->end - end >= 2 && end[0] == '.' && end[1] != '.')
        end = class_end(end + 1, skim->end, SKIM_DIGIT);
    return item_done(skim, item, SKIM_NUMBER, end);
}

/* A word, unless it is the prefix of a literal: E'' B'' X'' N'' U&'' U&"". */
static enum skim_kind take_word(struct skim *skim, struct skim_item *item)
{
    const char *end = item->start;
    while (end < skim->end && skim_goes_on_name(*end))
        end++;
    if (end - item->start != 1 || end == skim->end)
        return item_done(skim, item, SKIM_WORD, end);

    char prefix = skim_fold(*item->start);
    if (*end == '\'' && strchr("ebxn", prefix))
        return item_done(skim, item, SKIM_STRING,
                         string_end(end, skim->end, prefix == 'e' || (prefix == 'n' && skim->has_backslashes)));
    if (prefix == 'u' && starts_with(end, skim->end, '&', '\''))
        return item_done(skim, item, SKIM_STRING, string_end(end + 1, skim->end, false));
    if (prefix == 'u' && starts_with(end, skim->end, '&', '"'))
        return item_done(skim, item, SKIM_NAME, name_end(end + 1, skim->end));
    return item_done(skim, item, SKIM_WORD, end);
}

struct skim skim_init(const char *sql, size_t len)
{
    return (struct skim){.at = sql, .end = len ? sql + len : sql, .run_end = sql};
}

enum skim_kind skim_next(struct skim *skim, struct skim_item *item)
{
    const char *at = class_end(skim->at, skim->end, SKIM_BLANK);
    item->start = at;
    if (at == skim->end)
        return item_done(skim, item, SKIM_END, at);
    if (skim_has_class(*at, SKIM_LETTER))
        return take_word(skim, item);
    if (starts_with(at, skim->end, '-', '-'))
        return item_done(skim, item, SKIM_LINE_COMMENT, line_end(at, skim->end));
    if (starts_with(at, skim->end, '/', '*'))
        return item_done(skim, item, SKIM_BLOCK_COMMENT, block_end(skim, at));
    if (skim_has_class(*at, SKIM_SIGN))
        return take_operator(skim, item);
    if (skim_has_class(*at, SKIM_DIGIT))
        return take_number(skim, item);
    if (*at == '\'')
        return item_done(skim, item, SKIM_STRING, string_end(at, skim->end, skim->has_backslashes));
    if (*at == '"')
        return item_done(skim, item, SKIM_NAME, name_end(at, skim->end));
    if (*at == '$')
        return take_dollar(skim, item);
    return item_done(skim, item, SKIM_MARK, at + 1);
}

enum skim_kind skim_token(struct skim *skim, struct skim_item *item)
{
    while (skim_next(skim, item) == SKIM_LINE_COMMENT || item->kind == SKIM_BLOCK_COMMENT)
        ;
    return item->kind;
}

const char *skim_lead(const char *sql, size_t len)
{
    struct skim skim = skim_init(sql, len);
    const char *at = sql;
    while (at && at < skim.end) {
        if (skim_is_blank(*at) || *at == ';')
            at++;
        else if (starts_with(at, skim.end, '-', '-'))
            at = line_end(at, skim.end);
        else if (starts_with(at, skim.end, '/', '*'))
            at = block_end(&skim, at);
        else
            break;
    }
    return at ? at : skim.end;
}

/* ---- questions about items ---- */

static size_t item_len(const struct skim_item *item)
{
    return (size_t)(item->end - item->start);
}

bool skim_is_comment(const struct skim_item *item)
{
    return item->kind == SKIM_LINE_COMMENT || item->kind == SKIM_BLOCK_COMMENT;
}

bool skim_is_mark(const struct skim_item *item, char mark)
{
    return item->kind == SKIM_MARK && *item->start == mark;
}

bool skim_is_word(const struct skim_item *item, const char *word)
{
    return item->kind == SKIM_WORD && skim_same(item->start, item_len(item), word);
}

bool skim_is_operator(const struct skim_item *item, const char *sign)
{
    return item->kind == SKIM_OPERATOR && skim_same(item->start, item_len(item), sign);
}

int skim_param(const struct skim_item *item)
{
    if (item->kind != SKIM_PARAM)
        return 0;
    int n = 0;
    for (const char *at = item->start + 1; at < item->end; at++) {
        n = n * 10 + (*at - '0');
        if (n > UINT16_MAX)
            return 0;
    }
    return n;
}

/* The server cuts long names at a character's border; in UTF-8 that is before a byte that starts one. */
static size_t cut_length(const char *name, size_t len)
{
    if (len <= SKIM_NAME_BYTES)
        return len;
    len = SKIM_NAME_BYTES;
    while (len > 0 && ((unsigned char)name[len] & 0xC0) == 0x80)
        len--;
    return len;
}

bool skim_name(const struct skim_item *item, char name[SKIM_NAME_BYTES + 1])
{
    char whole[SKIM_NAME_BYTES + 1]; /* one byte more than is kept shows whether the cut would split a character */
    size_t len = 0;
    name[0] = '\0';
    if (item->kind == SKIM_WORD) {
        for (const char *at = item->start; at < item->end && len < sizeof whole; at++)
            whole[len++] = skim_fold(*at);
    } else if (item->kind == SKIM_NAME && *item->start == '"') {
        for (const char *at = item->start + 1; at < item->end - 1 && len < sizeof whole; at++) {
            whole[len++] = *at;
            at += *at == '"';
        }
    }
    len = cut_length(whole, len);
    memcpy(name, whole, len);
    name[len] = '\0';
    return len > 0;
}
