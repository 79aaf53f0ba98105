/* option.c - the options: their names, the values that they take, and how values are decoded.
 *
 * It holds one table; it must not know whether an option came from a comment, a variable or a rule. */
#include "option.h"

#include "fault.h"
#include "skim.h"

#include <assert.h>
#include <string.h>

#define WALK_MAX_BYTES 64
#define NAME_MAX_BYTES 16 /* longer than any option's name */

/* ---- values ---- */

struct choice {
    const char *word;
    int value;
};

static const struct choice pages[] = {{"first", PGSEEK_PAGE_FIRST}, {"last", PGSEEK_PAGE_LAST}, {NULL, 0}};
static const struct choice totals[] = {
    {"none", PGSEEK_TOTAL_NONE}, {"estimate", PGSEEK_TOTAL_ESTIMATE}, {"exact", PGSEEK_TOTAL_EXACT}, {NULL, 0}};
static const struct choice modes[] = {{"rewrite", PGSEEK_MODE_REWRITE},
                                      {"verify", PGSEEK_MODE_VERIFY},
                                      {"observe", PGSEEK_MODE_OBSERVE},
                                      {"off", PGSEEK_MODE_OFF},
                                      {NULL, 0}};
static const struct choice channels[] = {{"status", PGSEEK_DELIVER_STATUS},
                                         {"notice", PGSEEK_DELIVER_NOTICE},
                                         {"columns", PGSEEK_DELIVER_COLUMNS},
                                         {NULL, 0}};
static const struct choice booleans[] = {{"on", true},  {"off", false}, {"true", true}, {"false", false}, {"yes", true},
                                         {"no", false}, {"1", true},    {"0", false},   {NULL, 0}};

static bool choose(const struct choice *choices, const char *word, size_t len, int *value)
{
    for (; choices->word; choices++) {
        if (!skim_same(word, len, choices->word))
            continue;
        *value = choices->value;
        return true;
    }
    return false;
}

bool option_boolean(const char *value, bool *truth)
{
    int number = 0;
    if (!choose(booleans, value, strlen(value), &number))
        return false;
    *truth = number != 0;
    return true;
}

/* ---- one function per kind of option; false when the value does not fit ---- */

/* $n, from 1 to what a message can carry. */
static bool put_cursor_param(struct pgseek_settings *settings, const char *value)
{
    const char *end = value + strlen(value);
    struct skim_item item = {.kind = SKIM_PARAM, .start = value, .end = end};
    for (const char *at = value + 1; at < end; at++)
        if (*at < '0' || *at > '9')
            return false;
    settings->cursor = NULL;
    settings->cursor_kind = PGSEEK_CURSOR_PARAM;
    settings->cursor_param = skim_param(&item);
    return settings->cursor_param > 0;
}

static bool put_cursor(struct pgseek_settings *settings, const char *value, bool may_param)
{
    if (may_param && *value == '$')
        return put_cursor_param(settings, value);
    bool is_none = *value == '\0' || (may_param && skim_same(value, strlen(value), "null"));
    settings->cursor = is_none ? NULL : value;
    settings->cursor_kind = is_none ? PGSEEK_CURSOR_NONE : PGSEEK_CURSOR_TEXT;
    settings->cursor_param = 0;
    return true;
}

static bool put_page(struct pgseek_settings *settings, const char *value, bool may_param)
{
    (void)may_param;
    int chosen = 0;
    bool is_good = choose(pages, value, strlen(value), &chosen);
    settings->page = (enum pgseek_page)chosen;
    return is_good;
}

static bool put_key(struct pgseek_settings *settings, const char *value, bool may_param)
{
    (void)may_param;
    settings->key = *value ? value : NULL;
    return true;
}

static bool put_total(struct pgseek_settings *settings, const char *value, bool may_param)
{
    (void)may_param;
    int chosen = 0;
    bool is_good = choose(totals, value, strlen(value), &chosen);
    settings->total = (enum pgseek_total)chosen;
    return is_good;
}

static bool put_mode(struct pgseek_settings *settings, const char *value, bool may_param)
{
    (void)may_param;
    int chosen = 0;
    bool is_good = choose(modes, value, strlen(value), &chosen);
    settings->mode = (enum pgseek_mode)chosen;
    return is_good;
}

static bool put_strict(struct pgseek_settings *settings, const char *value, bool may_param)
{
    (void)may_param;
    return option_boolean(value, &settings->strict);
}

/* A list, separated by + or | or commas or blanks. */
static bool put_deliver(struct pgseek_settings *settings, const char *value, bool may_param)
{
    (void)may_param;
    static const char separators[] = "+|, \t";
    settings->deliver = 0;
    for (const char *at = value + strspn(value, separators); *at; at += strspn(at, separators)) {
        size_t len = strcspn(at, separators);
        int channel = 0;
        if (!choose(channels, at, len, &channel))
            return false;
        settings->deliver |= (unsigned)channel;
        at += len;
    }
    return settings->deliver != 0;
}

static bool put_walk(struct pgseek_settings *settings, const char *value, bool may_param)
{
    (void)may_param;
    settings->walk = *value ? value : NULL;
    return strlen(value) <= WALK_MAX_BYTES;
}

static bool put_tail(struct pgseek_settings *settings, const char *value, bool may_param)
{
    (void)may_param;
    return option_boolean(value, &settings->tail);
}

static bool put_paginate(struct pgseek_settings *settings, const char *value, bool may_param)
{
    (void)may_param;
    return option_boolean(value, &settings->paginate);
}

/* ---- the table ---- */

static const struct option_row {
    const char *name;
    const char *values; /* for the hint of a bad value */
    const char *help;
    bool (*put)(struct pgseek_settings *settings, const char *value, bool may_param);
} options[PGSEEK_OPT_COUNT] = {
    [PGSEEK_OPT_CURSOR] = {"cursor", "a token that pgseek gave, empty, NULL, or $1 to $65535",
                           "continue at this cursor; empty or NULL is the first page; $n is the value of parameter n",
                           put_cursor},
    [PGSEEK_OPT_PAGE] = {"page", "first, last", "without a cursor: start at this end", put_page},
    [PGSEEK_OPT_KEY] = {"key", "a list of columns, such as 'id' or 'a.id, b.id'",
                        "the unique key of a row, where the catalog cannot tell", put_key},
    [PGSEEK_OPT_TOTAL] = {"total", "none, estimate, exact", "also report how many rows there are", put_total},
    [PGSEEK_OPT_MODE] = {"mode", "rewrite, verify, observe, off", "what is done with the page", put_mode},
    [PGSEEK_OPT_STRICT] = {"strict", "on, off", "reject instead of pass when the page cannot be rewritten", put_strict},
    [PGSEEK_OPT_DELIVER] = {"deliver", "a list of status, notice, columns, such as status+columns",
                            "how the cursor is handed back", put_deliver},
    [PGSEEK_OPT_WALK] = {"walk", "a text of at most 64 bytes", "names one reader's walk, for anchors", put_walk},
    [PGSEEK_OPT_TAIL] = {"tail", "on, off", "give a next cursor on the last page too, to poll a growing feed",
                         put_tail},
    [PGSEEK_OPT_PAGINATE] = {"paginate", "on, off",
                             "a session variable only: every rewritable SELECT of the session counts as tagged",
                             put_paginate},
};

const char *pgseek_option_name(enum pgseek_option option)
{
    assert((unsigned)option < PGSEEK_OPT_COUNT);
    return options[option].name;
}

const char *pgseek_option_help(enum pgseek_option option)
{
    assert((unsigned)option < PGSEEK_OPT_COUNT);
    return options[option].help;
}

bool pgseek_option_find(const char *name, size_t len, enum pgseek_option *option)
{
    for (unsigned i = 0; i < PGSEEK_OPT_COUNT; i++) {
        if (!skim_same(name, len, options[i].name))
            continue;
        *option = (enum pgseek_option)i;
        return true;
    }
    return false;
}

/* ---- settings ---- */

void pgseek_settings_init(struct pgseek_settings *settings)
{
    *settings = (struct pgseek_settings){.deliver = PGSEEK_DELIVER_STATUS};
}

bool pgseek_settings_put(struct pgseek_settings *settings, enum pgseek_option option, const char *value, bool may_param,
                         struct pgseek_error *error)
{
    assert((unsigned)option < PGSEEK_OPT_COUNT);
    const struct option_row *row = &options[option];
    struct pgseek_settings changed = *settings; /* a bad value leaves no trace */
    if (!row->put(&changed, value, may_param)) {
        fault(error, "bad value for a pgseek option");
        fault_detail(error, "\"%s\" is no value of %s.", fault_excerpt(value, strlen(value)).text, row->name);
        return fault_hint(error, "%s takes: %s.", row->name, row->values);
    }
    changed.given |= 1u << option;
    *settings = changed;
    return true;
}

void pgseek_settings_overlay(struct pgseek_settings *settings, const struct pgseek_settings *over)
{
#define OVERLAY(id, field) \
    if (over->given & 1u << PGSEEK_OPT_##id) \
    settings->field = over->field
    OVERLAY(CURSOR, cursor_kind);
    OVERLAY(CURSOR, cursor);
    OVERLAY(CURSOR, cursor_param);
    OVERLAY(PAGE, page);
    OVERLAY(KEY, key);
    OVERLAY(TOTAL, total);
    OVERLAY(MODE, mode);
    OVERLAY(STRICT, strict);
    OVERLAY(DELIVER, deliver);
    OVERLAY(WALK, walk);
    OVERLAY(TAIL, tail);
    OVERLAY(PAGINATE, paginate);
#undef OVERLAY
    settings->given |= over->given;
}

/* ---- misspelt names ---- */

/* How many letters have to be changed, added or left out; a pair swapped counts as one. */
static unsigned edit_distance(const char *a, size_t a_len, const char *b)
{
    unsigned rows[3][NAME_MAX_BYTES + 1];
    size_t b_len = strlen(b);
    assert(b_len <= NAME_MAX_BYTES);
    for (unsigned j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i + 2) % 3];
        const unsigned *above2 = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            bool is_same = skim_fold(a[i - 1]) == b[j - 1];
            unsigned best = above[j - 1] + !is_same;
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            bool is_swapped = i > 1 && j > 1 && skim_fold(a[i - 1]) == b[j - 2] && skim_fold(a[i - 2]) == b[j - 1];
            if (is_swapped && above2[j - 2] + 1 < best)
                best = above2[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[a_len % 3][b_len];
}

/* The option that was probably meant, or NULL. */
static const char *nearest_name(const char *name, size_t len)
{
    const char *nearest = NULL;
    unsigned least = 3; /* so two mistakes at most, and fewer than half of the letters */
    if (len > NAME_MAX_BYTES)
        return NULL;
    for (unsigned i = 0; i < PGSEEK_OPT_COUNT; i++) {
        unsigned distance = edit_distance(name, len, options[i].name);
        if (distance >= least || distance * 2 >= strlen(options[i].name))
            continue;
        least = distance;
        nearest = options[i].name;
    }
    return nearest;
}

bool option_unknown(struct pgseek_error *error, const char *name, size_t len)
{
    const char *nearest = nearest_name(name, len);
    fault(error, "unknown pgseek option");
    fault_detail(error, "\"%s\" is no option of pgseek.", fault_excerpt(name, len).text);
    if (nearest)
        return fault_hint(error, "Did you mean \"%s\"?", nearest);
    return fault_hint(error, "The options are cursor, page, key, total, mode, strict, deliver, walk and tail.");
}
