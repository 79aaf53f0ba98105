/* word.c - what every statement is asked before anything may cost time: does it mention us, and what is its first word.
 *
 * It looks at bytes and must not know tokens, tags or variables. A false "yes" costs a closer look, a false "no" would
 * lose a cursor, so there is none. */
#include "pgseek.h"
#include "skim.h"

#include <string.h>

/* ---- words anywhere in a text: memchr for a letter that SQL seldom has, then a look around it ---- */

/* Whether the word, given in lower case, stands where its letter number `at` was found. */
static bool stands_around(const char *text, size_t len, size_t found, const char *word, size_t at)
{
    size_t word_len = strlen(word);
    return found >= at && word_len - at <= len - found && skim_same(text + found - at, word_len, word);
}

/* By the word's letter number `place`, in one case of it. */
static bool mentions_by(const char *sql, size_t len, char letter, const char *word, size_t place)
{
    const char *end = sql + len;
    const char *at = sql;
    while (at < end && (at = memchr(at, letter, (size_t)(end - at))) != NULL) {
        if (stands_around(sql, len, (size_t)(at - sql), word, place))
            return true;
        at++;
    }
    return false;
}

bool pgseek_mentions(const char *sql, size_t len)
{
    return mentions_by(sql, len, 'k', "pgseek", 5) || mentions_by(sql, len, 'K', "pgseek", 5);
}

bool pgseek_mentions_execute(const char *sql, size_t len)
{
    return mentions_by(sql, len, 'x', "execute", 1) || mentions_by(sql, len, 'X', "execute", 1);
}

/* A call alone in a statement is short; longer texts hold it, if at all, inside something larger. */
#define CONFIG_CALL_MAX_BYTES 1024

bool pgseek_may_be_config_call(const char *sql, size_t len)
{
    if (len > CONFIG_CALL_MAX_BYTES)
        return false;
    const char *end = sql + len;
    const char *at = sql;
    while (at < end && (at = memchr(at, '_', (size_t)(end - at))) != NULL) {
        size_t found = (size_t)(at - sql);
        if (stands_around(sql, len, found, "set_config", 3) || stands_around(sql, len, found, "current_setting", 7))
            return true;
        at++;
    }
    return false;
}

/* ---- the first word ---- */

struct word_row {
    const char *word;
    uint8_t len;
    uint8_t value;
};

#define ROW(text, id) \
    { \
        text, sizeof text - 1, PGSEEK_WORD_##id \
    }

/* By first letter; within a letter the most frequent comes first. */
static const struct word_row word_rows[] = {
    ROW("abort", ABORT),       ROW("begin", BEGIN),
    ROW("commit", COMMIT),     ROW("close", CLOSE),
    ROW("call", CALL),         ROW("create", CREATE),
    ROW("discard", DISCARD),   ROW("deallocate", DEALLOCATE),
    ROW("declare", DECLARE),   ROW("do", DO),
    ROW("end", END),           ROW("execute", EXECUTE),
    ROW("explain", EXPLAIN),   ROW("fetch", FETCH),
    ROW("move", MOVE),         ROW("prepare", PREPARE),
    ROW("rollback", ROLLBACK), ROW("release", RELEASE),
    ROW("reset", RESET),       ROW("select", SELECT),
    ROW("set", SET),           ROW("savepoint", SAVEPOINT),
    ROW("show", SHOW),         ROW("start", START),
};

/* Where the rows of a letter begin, and how many there are. */
static const struct {
    uint8_t first;
    uint8_t count;
} letters[26] = {
    ['a' - 'a'] = {0, 1},  ['b' - 'a'] = {1, 1},  ['c' - 'a'] = {2, 4},  ['d' - 'a'] = {6, 4},  ['e' - 'a'] = {10, 3},
    ['f' - 'a'] = {13, 1}, ['m' - 'a'] = {14, 1}, ['p' - 'a'] = {15, 1}, ['r' - 'a'] = {16, 3}, ['s' - 'a'] = {19, 5},
};

enum pgseek_word pgseek_first_word(const char *sql, size_t len)
{
    const char *end = sql + len;
    const char *start = skim_lead(sql, len);
    const char *at = start;
    while (at < end && skim_goes_on_name(*at))
        at++;
    if (at == start)
        return PGSEEK_WORD_OTHER;
    char letter = skim_fold(*start);
    if (letter < 'a' || letter > 'z')
        return PGSEEK_WORD_OTHER;

    const struct word_row *row = &word_rows[letters[letter - 'a'].first];
    for (size_t left = letters[letter - 'a'].count; left > 0; left--, row++)
        if (row->len == at - start && skim_same(start, row->len, row->word))
            return (enum pgseek_word)row->value;
    return PGSEEK_WORD_OTHER;
}
