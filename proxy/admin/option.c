/* option.c - values in and out of the fields that the option table names, by type. */
#include "option.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool option_refuse(char why[OPTION_WHY], const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool option_refuse(char why[OPTION_WHY], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, OPTION_WHY, format, args);
    va_end(args);
    return false;
}

/* ---- fields ---- */

static void option_store(const struct option *option, struct conf *conf, int64_t value)
{
    char *field = (char *)conf + option->offset;
    int narrow = (int)value;
    bool truth = value != 0;
    assert(option->size == sizeof value || option->size == sizeof narrow || option->size == sizeof truth);
    if (option->size == sizeof value)
        memcpy(field, &value, sizeof value);
    else if (option->size == sizeof narrow)
        memcpy(field, &narrow, sizeof narrow);
    else
        memcpy(field, &truth, sizeof truth);
}

static char **option_text(const struct option *option, struct conf *conf)
{
    assert(option->type == OPTION_TEXT);
    return (char **)(void *)((char *)conf + option->offset);
}

static void option_release_scope(struct conf *conf)
{
    for (size_t i = 0; i < conf->nscope; i++)
        mem_free(conf->scope[i]);
    conf->nscope = 0;
}

void option_release(const struct option *option, struct conf *conf)
{
    if (option->type == OPTION_NAMES)
        option_release_scope(conf);
    if (option->type != OPTION_TEXT)
        return;
    mem_free(*option_text(option, conf));
    *option_text(option, conf) = NULL;
}

bool option_equal(const struct option *option, const struct conf *a, const struct conf *b)
{
    const char *field_a = (const char *)a + option->offset;
    const char *field_b = (const char *)b + option->offset;
    if (option->type == OPTION_TEXT) {
        const char *text_a;
        const char *text_b;
        memcpy(&text_a, field_a, sizeof text_a);
        memcpy(&text_b, field_b, sizeof text_b);
        return strcmp(text_a, text_b) == 0;
    }
    if (option->type != OPTION_NAMES)
        return memcmp(field_a, field_b, option->size) == 0;
    bool same = a->nscope == b->nscope;
    for (size_t i = 0; same && i < a->nscope; i++)
        same = strcmp(a->scope[i], b->scope[i]) == 0;
    return same;
}

/* ---- numbers and their units ---- */

struct option_unit {
    const char *name;
    int64_t factor;
};

static const struct option_unit option_no_units[] = {{"", 1}, {NULL, 0}};
static const struct option_unit option_seconds[] = {{"", 1},     {"s", 1},     {"min", 60},
                                                    {"h", 3600}, {"d", 86400}, {NULL, 0}};
static const struct option_unit option_bytes[] = {
    {"", 1}, {"B", 1}, {"kB", 1024}, {"MB", 1024 * 1024}, {"GB", 1024 * 1024 * 1024}, {NULL, 0},
};

static const struct {
    const char *name;
    const struct option_unit *units; /* NULL: no number */
    const char *units_help;
    int base;
} option_types[] = {
    [OPTION_TEXT] = {.name = "text"},
    [OPTION_INT] = {"integer", option_no_units, "a whole number", 10},
    [OPTION_OCTAL] = {"octal", option_no_units, "an octal number", 8},
    [OPTION_BOOL] = {.name = "boolean"},
    [OPTION_DURATION] = {"duration", option_seconds, "a whole number of seconds, or one with s, min, h or d", 10},
    [OPTION_SIZE] = {"size", option_bytes, "a whole number of bytes, or one with kB, MB or GB", 10},
    [OPTION_CHOICE] = {.name = "choice"},
    [OPTION_FLAGS] = {.name = "list"},
    [OPTION_NAMES] = {.name = "list of names"},
};

static bool option_scale(const struct option_unit *unit, const char *name, int64_t *number)
{
    for (; unit->name; unit++)
        if (strcasecmp(unit->name, name) == 0)
            return !__builtin_mul_overflow(*number, unit->factor, number);
    return false;
}

static bool option_put_number(const struct option *option, struct conf *conf, const char *text, char why[OPTION_WHY])
{
    char *end;
    char bounds[128];
    errno = 0;
    int64_t number = strtoll(text, &end, option_types[option->type].base);
    bool is_number = end != text && errno == 0;
    while (*end == ' ')
        end++;
    if (!is_number || !option_scale(option_types[option->type].units, end, &number))
        return option_refuse(why, "must be %s", option_types[option->type].units_help);
    if (number < option->min || number > option->max) {
        option_bounds(option, bounds, sizeof bounds);
        return option_refuse(why, "is out of range: %s", bounds);
    }
    option_store(option, conf, number);
    return true;
}

/* ---- words ---- */

static const struct option_choice option_truths[] = {
    {"on", 1, NULL},    {"off", 0, NULL}, {"yes", 1, NULL}, {"no", 0, NULL}, {"true", 1, NULL},
    {"false", 0, NULL}, {"1", 1, NULL},   {"0", 0, NULL},   {NULL, 0, NULL},
};

/* The words that can be used, separated by commas. */
static void option_list_words(const struct option_choice *choice, char *text, size_t size)
{
    size_t len = 0;
    text[0] = '\0';
    for (; choice->word; choice++)
        if (!choice->refusal && len < size)
            len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "", choice->word);
}

/* NULL with `why` when the word is none of them. */
static const struct option_choice *option_find_choice(const struct option_choice *choice, const char *word,
                                                      char why[OPTION_WHY])
{
    char words[128];
    const struct option_choice *first = choice;
    while (choice->word && strcasecmp(choice->word, word) != 0)
        choice++;
    if (choice->word && !choice->refusal)
        return choice;
    option_list_words(first, words, sizeof words);
    if (choice->word)
        option_refuse(why, "cannot be \"%s\": %s", choice->word, choice->refusal);
    else
        option_refuse(why, "must be one of: %s", words);
    return NULL;
}

bool option_choose(const char *option, const char *word, int *value, char why[OPTION_WHY])
{
    const struct option_choice *choice = option_find_choice(option_table[option_find(option)].choices, word, why);
    if (choice)
        *value = choice->value;
    return choice != NULL;
}

static bool option_put_word(const struct option *option, struct conf *conf, const char *text, char why[OPTION_WHY])
{
    const struct option_choice *choices = option->type == OPTION_BOOL ? option_truths : option->choices;
    const struct option_choice *choice = option_find_choice(choices, text, why);
    if (choice)
        option_store(option, conf, choice->value);
    return choice != NULL;
}

/* Takes the next element of a list into `word`, without the blanks around it. False at the end of the list. */
static bool option_next(const char **list, char *word, size_t size)
{
    if (!*list)
        return false;
    const char *from = *list + strspn(*list, " \t");
    size_t len = strcspn(from, ",");
    *list = from[len] ? from + len + 1 : NULL;
    while (len > 0 && isspace((unsigned char)from[len - 1]))
        len--;
    snprintf(word, size, "%.*s", len < size ? (int)len : (int)size, from);
    return true;
}

static bool option_put_flags(const struct option *option, struct conf *conf, const char *text, char why[OPTION_WHY])
{
    char word[64];
    int flags = 0;
    while (option_next(&text, word, sizeof word)) {
        const struct option_choice *choice = option_find_choice(option->choices, word, why);
        if (!choice)
            return false;
        flags |= choice->value;
    }
    option_store(option, conf, flags);
    return true;
}

/* ---- the scope ---- */

/* A setting's name: identifiers joined by dots, each of letters, digits, "_" and "$", as PostgreSQL takes them. */
static bool option_is_setting(const char *name)
{
    bool is_start = true;
    for (; *name; name++) {
        bool is_letter = isalpha((unsigned char)*name) || *name == '_';
        bool is_later = isdigit((unsigned char)*name) || *name == '$';
        if (*name == '.' && is_start)
            return false;
        if (*name != '.' && !is_letter && (is_start || !is_later))
            return false;
        is_start = *name == '.';
    }
    return !is_start;
}

static bool option_has_scope(const struct conf *conf, const char *name)
{
    for (size_t i = 0; i < conf->nscope; i++)
        if (strcasecmp(conf->scope[i], name) == 0)
            return true;
    return false;
}

static bool option_put_names(struct conf *conf, const char *text, char why[OPTION_WHY])
{
    char name[64];
    option_release_scope(conf);
    if (text[0] == '\0')
        return true;
    while (option_next(&text, name, sizeof name)) {
        if (!option_is_setting(name) || strlen(name) == sizeof name - 1)
            return option_refuse(why, "must be a list of settings such as app.tenant_id: \"%s\" is none", name);
        if (strncasecmp(name, "pgseek.", 7) == 0)
            return option_refuse(why, "cannot hold \"%s\": the server never sees pgseek's own variables", name);
        if (option_has_scope(conf, name))
            return option_refuse(why, "names \"%s\" twice", name);
        if (conf->nscope == CONF_MAX_SCOPE)
            return option_refuse(why, "can hold at most %d settings", CONF_MAX_SCOPE);
        conf->scope[conf->nscope] = mem_strndup(name, strlen(name));
        if (!conf->scope[conf->nscope])
            return option_refuse(why, "cannot be stored: out of memory");
        conf->nscope++;
    }
    return true;
}

static bool option_put_text(const struct option *option, struct conf *conf, const char *text, char why[OPTION_WHY])
{
    char *copy = mem_strndup(text, strlen(text));
    if (!copy)
        return option_refuse(why, "cannot be stored: out of memory");
    option_release(option, conf);
    *option_text(option, conf) = copy;
    return true;
}

bool option_put(const struct option *option, struct conf *conf, const char *text, char why[OPTION_WHY])
{
    if (option_types[option->type].units)
        return option_put_number(option, conf, text, why);
    if (option->type == OPTION_TEXT)
        return option_put_text(option, conf, text, why);
    if (option->type == OPTION_NAMES)
        return option_put_names(conf, text, why);
    if (option->type == OPTION_FLAGS)
        return option_put_flags(option, conf, text, why);
    return option_put_word(option, conf, text, why);
}

/* ---- names ---- */

size_t option_find(const char *name)
{
    size_t i = 0;
    while (i < option_count && strcasecmp(option_table[i].name, name) != 0)
        i++;
    return i;
}

#define OPTION_NAME_MAX 48

/* Edits (insert, delete, replace) that lead from one name to the other; names longer than the table's are far away. */
static size_t option_distance(const char *a, const char *b)
{
    size_t row[OPTION_NAME_MAX + 1];
    size_t len_a = strlen(a);
    size_t len_b = strlen(b);
    if (len_a > OPTION_NAME_MAX || len_b > OPTION_NAME_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= len_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= len_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= len_b; j++) {
            size_t replaced = diagonal + (tolower((unsigned char)a[i - 1]) != b[j - 1]);
            size_t shorter = row[j] < row[j - 1] ? row[j] : row[j - 1];
            diagonal = row[j];
            row[j] = replaced < shorter + 1 ? replaced : shorter + 1;
        }
    }
    return row[len_b];
}

const char *option_nearest(const char *name)
{
    const char *nearest = NULL;
    size_t best = strlen(name) / 3 + 1; /* farther away is another word, not a slip */
    for (size_t i = 0; i < option_count; i++) {
        size_t distance = option_distance(name, option_table[i].name);
        if (distance > best || (nearest && distance == best))
            continue;
        best = distance;
        nearest = option_table[i].name;
    }
    return nearest;
}

/* ---- for documents and messages ---- */

const char *option_type_name(enum option_type type)
{
    return option_types[type].name;
}

/* A number in its largest whole unit: 86400 seconds are "1d". */
static void option_print_number(const struct option *option, int64_t number, char *text, size_t size)
{
    const struct option_unit *best = option_types[option->type].units;
    for (const struct option_unit *unit = best; unit->name; unit++)
        if (number != 0 && number % unit->factor == 0)
            best = unit;
    if (option->type == OPTION_OCTAL)
        snprintf(text, size, "%04llo", (unsigned long long)number);
    else
        snprintf(text, size, "%lld%s", (long long)(number / best->factor), best->name);
}

void option_bounds(const struct option *option, char *text, size_t size)
{
    char low[32];
    char high[32];
    text[0] = '\0';
    if (option->type == OPTION_BOOL)
        snprintf(text, size, "on, off");
    else if (option->choices)
        option_list_words(option->choices, text, size);
    if (!option_types[option->type].units)
        return;
    option_print_number(option, option->min, low, sizeof low);
    option_print_number(option, option->max, high, sizeof high);
    if (option->max == INT64_MAX)
        snprintf(text, size, "%s or more", low);
    else
        snprintf(text, size, "%s to %s", low, high);
}
