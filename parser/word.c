/* word.c - what every statement is asked before anything may cost time: does it mention us, and what is its first word.
 *
 * It looks at bytes and must not know tokens, tags or variables. A false "yes" costs a closer look, a false "no" would
 * lose a cursor, so there is none. */
#include "pgseek.h"
#include "skim.h"

#include <string.h>

/* ---- skip search (Horspool), in any case ---- */

/* How far the window may move when its last byte is c. 0: the byte ends the needle, so compare. */
#define SKIP(lower, upper, distance) [lower] = (distance), [upper] = (distance)

struct needle {
    const char *word; /* lower case; its last letter stands nowhere else in it */
    size_t len;
    uint8_t skips[256]; /* 0xff stands for `len`, so that the tables name only the letters of the word */
};

#define OTHERS [0 ... 255] = 0xff

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init" /* the letters override OTHERS on purpose */
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#endif
static const struct needle pgseek_needle = {
    .word = "pgseek",
    .len = 6,
    .skips = {OTHERS, SKIP('p', 'P', 5), SKIP('g', 'G', 4), SKIP('s', 'S', 3), SKIP('e', 'E', 1), SKIP('k', 'K', 0)},
};
static const struct needle set_config_needle = {
    .word = "set_config",
    .len = 10,
    .skips = {OTHERS, SKIP('s', 'S', 9), SKIP('e', 'E', 8), SKIP('t', 'T', 7), ['_'] = 6, SKIP('c', 'C', 5),
              SKIP('o', 'O', 4), SKIP('n', 'N', 3), SKIP('f', 'F', 2), SKIP('i', 'I', 1), SKIP('g', 'G', 0)},
};
static const struct needle current_setting_needle = {
    .word = "current_setting",
    .len = 15,
    .skips = {OTHERS, SKIP('c', 'C', 14), SKIP('u', 'U', 13), SKIP('r', 'R', 11), SKIP('e', 'E', 5), SKIP('n', 'N', 1),
              SKIP('t', 'T', 3), ['_'] = 7, SKIP('s', 'S', 6), SKIP('i', 'I', 2), SKIP('g', 'G', 0)},
};
#pragma GCC diagnostic pop

static bool finds(const struct needle *needle, const char *text, size_t len)
{
    for (size_t last = needle->len - 1; last < len;) {
        size_t skip = needle->skips[(unsigned char)text[last]];
        if (skip == 0) {
            if (skim_same(text + last + 1 - needle->len, needle->len, needle->word))
                return true;
            skip = needle->len;
        }
        last += skip == 0xff ? needle->len : skip;
    }
    return false;
}

bool pgseek_mentions(const char *sql, size_t len)
{
    return finds(&pgseek_needle, sql, len);
}

/* A call alone in a statement is short; longer texts hold it, if at all, inside something larger. */
#define CONFIG_CALL_MAX_BYTES 1024

bool pgseek_may_be_config_call(const char *sql, size_t len)
{
    return len <= CONFIG_CALL_MAX_BYTES &&
           (finds(&set_config_needle, sql, len) || finds(&current_setting_needle, sql, len));
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
    ROW("abort", ABORT),
    ROW("begin", BEGIN),
    ROW("commit", COMMIT),
    ROW("close", CLOSE),
    ROW("call", CALL),
    ROW("discard", DISCARD),
    ROW("deallocate", DEALLOCATE),
    ROW("declare", DECLARE),
    ROW("do", DO),
    ROW("end", END),
    ROW("execute", EXECUTE),
    ROW("explain", EXPLAIN),
    ROW("fetch", FETCH),
    ROW("move", MOVE),
    ROW("prepare", PREPARE),
    ROW("rollback", ROLLBACK),
    ROW("release", RELEASE),
    ROW("reset", RESET),
    ROW("select", SELECT),
    ROW("set", SET),
    ROW("savepoint", SAVEPOINT),
    ROW("show", SHOW),
    ROW("start", START),
};

/* Where the rows of a letter begin, and how many there are. */
static const struct {
    uint8_t first;
    uint8_t count;
} letters[26] = {
    ['a' - 'a'] = {0, 1},  ['b' - 'a'] = {1, 1},  ['c' - 'a'] = {2, 3},  ['d' - 'a'] = {5, 4},  ['e' - 'a'] = {9, 3},
    ['f' - 'a'] = {12, 1}, ['m' - 'a'] = {13, 1}, ['p' - 'a'] = {14, 1}, ['r' - 'a'] = {15, 3}, ['s' - 'a'] = {18, 5},
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
