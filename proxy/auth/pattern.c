/* pattern.c - looks at each character of an expression before the C library may compile it. */
#include "pattern.h"

#include <stdio.h>
#include <string.h>

#define PATTERN_COUNT_MAX 255 /* of {m,n} */

/* What a quantifier would follow. */
enum pattern_before {
    PATTERN_NOTHING, /* the beginning of a branch, or ^ */
    PATTERN_ATOM,
    PATTERN_GROUP,  /* ")": may be repeated, but not counted: counts of counts multiply */
    PATTERN_BEYOND, /* a byte of a longer character */
    PATTERN_QUANTIFIER
};

struct pattern_reading {
    const char *at;
    unsigned depth; /* of groups */
    enum pattern_before before;
    bool has_choice; /* branches, or a group that is repeated: what a group matches may be told in several ways */
    const char *why;
};

static void pattern_refuse(struct pattern_reading *reading, const char *why)
{
    if (!reading->why)
        reading->why = why;
}

/* ---- brackets ---- */

/* "[:alpha:]": returns where it ends. */
static const char *pattern_read_class(struct pattern_reading *reading, const char *at)
{
    at += 2;
    at += strspn(at, "abcdefghijklmnopqrstuvwxyz");
    if (at[0] == ':' && at[1] == ']')
        return at + 1;
    pattern_refuse(reading, "has a character class that does not end in \":]\"");
    return at - 1;
}

static void pattern_read_bracket(struct pattern_reading *reading)
{
    const char *at = reading->at + 1;
    at += *at == '^';
    at += *at == ']';
    for (; *at && *at != ']'; at++) {
        if (*at == '\\')
            pattern_refuse(reading, "has a backslash in brackets, which means itself in some dialects only");
        if ((unsigned char)*at >= 0x80)
            pattern_refuse(reading, "has a character beyond ASCII in brackets");
        if (*at == '[' && (at[1] == '.' || at[1] == '='))
            pattern_refuse(reading, "has a collating element in brackets");
        if (*at == '[' && at[1] == ':')
            at = pattern_read_class(reading, at);
    }
    if (*at == '\0')
        pattern_refuse(reading, "has a bracket that is not closed");
    reading->at = *at ? at : at - 1;
    reading->before = PATTERN_ATOM;
}

/* ---- quantifiers ---- */

/* A number behind *at, which moves behind it; -1: there is none, or one too large. */
static int pattern_read_number(const char **at)
{
    int number = 0;
    size_t digits = strspn(*at, "0123456789");
    for (size_t i = 0; i < digits && number <= PATTERN_COUNT_MAX; i++)
        number = 10 * number + ((*at)[i] - '0');
    *at += digits;
    return digits > 0 && number <= PATTERN_COUNT_MAX ? number : -1;
}

/* {m}, {m,} or {m,n}. */
static void pattern_read_count(struct pattern_reading *reading)
{
    const char *at = reading->at + 1;
    int from = pattern_read_number(&at);
    int to = from;
    if (*at == ',' && *++at != '}')
        to = pattern_read_number(&at);
    if (from < 0 || to < from || *at != '}')
        pattern_refuse(reading,
                       "has a \"{\" that begins no count of 0 to 255 such as {2,5}: write [{] for the character");
    else
        reading->at = at;
}

static void pattern_read_quantifier(struct pattern_reading *reading)
{
    if (reading->before == PATTERN_NOTHING)
        pattern_refuse(reading, "repeats nothing");
    if (reading->before == PATTERN_QUANTIFIER)
        pattern_refuse(reading, "has two quantifiers in a row");
    if (reading->before == PATTERN_BEYOND)
        pattern_refuse(reading, "repeats a character beyond ASCII: put it into parentheses");
    if (*reading->at == '{' && reading->before == PATTERN_GROUP)
        pattern_refuse(reading, "counts a group: only single characters and brackets can be counted");
    reading->has_choice |= reading->before == PATTERN_GROUP && *reading->at != '?';
    if (*reading->at == '{')
        pattern_read_count(reading);
    reading->before = PATTERN_QUANTIFIER;
}

/* ---- the rest ---- */

static void pattern_read_group(struct pattern_reading *reading)
{
    if (reading->at[0] == '(' && reading->at[1] == '?')
        pattern_refuse(reading, "has a \"(?\", which only some dialects know");
    if (reading->at[0] == '(') {
        reading->depth++;
        reading->before = PATTERN_NOTHING;
        return;
    }
    if (reading->depth == 0)
        pattern_refuse(reading, "closes a group that is not open");
    else
        reading->depth--;
    reading->before = PATTERN_GROUP;
}

static void pattern_read_escape(struct pattern_reading *reading)
{
    if (!reading->at[1] || !strchr("\\^$.[]|()*+?{}-/\"@#, ", reading->at[1]))
        pattern_refuse(reading, "has a backslash before a letter, digit or the like: write [0-9] for \\d");
    else
        reading->at++;
    reading->before = PATTERN_ATOM;
}

static void pattern_read_one(struct pattern_reading *reading)
{
    switch (*reading->at) {
    case '\\': pattern_read_escape(reading); break;
    case '[': pattern_read_bracket(reading); break;
    case '(':
    case ')': pattern_read_group(reading); break;
    case '*':
    case '+':
    case '?':
    case '{': pattern_read_quantifier(reading); break;
    case '|':
        reading->has_choice = true;
        reading->before = PATTERN_NOTHING;
        break;
    case '^':
    case '$': reading->before = PATTERN_NOTHING; break;
    default: reading->before = (unsigned char)*reading->at >= 0x80 ? PATTERN_BEYOND : PATTERN_ATOM; break;
    }
}

static void pattern_check(const char *text, struct pattern_reading *reading)
{
    *reading = (struct pattern_reading){.at = text};
    for (; *reading->at && !reading->why; reading->at++)
        pattern_read_one(reading);
    if (reading->depth > 0)
        pattern_refuse(reading, "has a group that is not closed");
    if (*text == '\0')
        pattern_refuse(reading, "is empty");
}

bool pattern_compile(const char *text, regex_t *pattern, char why[PATTERN_WHY])
{
    struct pattern_reading reading;
    pattern_check(text, &reading);
    if (reading.why) {
        snprintf(why, PATTERN_WHY, "%s", reading.why);
        return false;
    }
    int fault = regcomp(pattern, text, REG_EXTENDED);
    if (fault == 0)
        return true;
    int len = snprintf(why, PATTERN_WHY, "does not compile: ");
    regerror(fault, pattern, why + len, PATTERN_WHY - (size_t)len);
    return false;
}

bool pattern_has_choice(const char *text)
{
    struct pattern_reading reading;
    pattern_check(text, &reading);
    return reading.has_choice;
}

bool pattern_match(const regex_t *pattern, const char *text, struct span *group)
{
    regmatch_t match[2] = {{.rm_so = -1}, {.rm_so = -1}};
    *group = (struct span){0};
    if (regexec(pattern, text, 2, match, 0) != 0)
        return false;
    if (match[1].rm_so >= 0)
        *group = span_of(text + match[1].rm_so, (size_t)(match[1].rm_eo - match[1].rm_so));
    return true;
}
