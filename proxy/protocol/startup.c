/* startup.c - reads the packets that open a connection and takes our variables out of them. */
#include "startup.h"

#include <string.h>
#include <strings.h>

#define CODE_CANCEL 80877102u
#define CODE_SSL 80877103u
#define CODE_GSSENC 80877104u

size_t startup_length(struct span head)
{
    uint32_t len = get_u32(head.ptr);
    return len >= 8 && len <= STARTUP_MAX_LENGTH ? len : 0;
}

/* Names and values in pairs up to an empty name that ends the packet. */
static bool parameters_are_sound(struct span bytes, struct span *parameters)
{
    struct reader rd = rd_init(bytes);
    for (;;) {
        const uint8_t *here = rd.at;
        struct span name = rd_cstr(&rd);
        if (rd.failed)
            return false;
        if (name.len == 0) {
            *parameters = span_of(bytes.ptr, (size_t)(here - bytes.ptr));
            return rd_done(&rd);
        }
        (void)rd_cstr(&rd);
    }
}

void startup_read(struct span packet, struct startup *out)
{
    *out = (struct startup){.kind = STARTUP_MALFORMED};
    uint32_t code = get_u32(packet.ptr + 4);
    struct span rest = span_of(packet.ptr + 8, packet.len - 8);
    if (code == CODE_SSL || code == CODE_GSSENC) {
        if (rest.len == 0)
            out->kind = code == CODE_SSL ? STARTUP_SSL : STARTUP_GSSENC;
        return;
    }
    if (code == CODE_CANCEL) {
        out->cancel = rest;
        if (rest.len > 4 && rest.len <= 4 + STARTUP_MAX_CANCEL_KEY)
            out->kind = STARTUP_CANCEL;
        return;
    }
    out->version = code;
    if (code >> 16 != 3) {
        out->kind = STARTUP_UNSUPPORTED;
        return;
    }
    if (parameters_are_sound(rest, &out->parameters))
        out->kind = STARTUP_SESSION;
}

bool startup_next(struct span *at, struct span *name, struct span *value)
{
    struct reader rd = rd_init(*at);
    *name = rd_cstr(&rd);
    *value = rd_cstr(&rd);
    if (rd.failed)
        return false;
    *at = span_of(rd.at, (size_t)(rd.end - rd.at));
    return true;
}

struct span startup_find(const struct startup *startup, const char *wanted)
{
    struct span at = startup->parameters;
    struct span name;
    struct span value;
    struct span found = span_of(NULL, 0);
    while (startup_next(&at, &name, &value))
        if (span_equal_cstr(name, wanted))
            found = value;
    return found;
}

/* ---- options: `-c a=b`, `-ca=b`, `--a=b`, words apart by blanks, a backslash takes the next byte as it is ---- */

struct word {
    size_t start, end; /* its bytes in the text as written */
    struct buf text;   /* what it says, NUL-terminated */
};

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Takes the next word behind *at; false at the end of the text. */
static bool next_word(struct span text, size_t *at, struct word *word)
{
    while (*at < text.len && is_blank(text.ptr[*at]))
        ++*at;
    if (*at == text.len)
        return false;
    buf_clear(&word->text);
    word->start = *at;
    for (; *at < text.len && !is_blank(text.ptr[*at]); ++*at) {
        if (text.ptr[*at] == '\\' && *at + 1 < text.len)
            ++*at;
        buf_put_u8(&word->text, text.ptr[*at]);
    }
    word->end = *at;
    buf_put_u8(&word->text, 0);
    return !word->text.failed;
}

/* Splits "name=value" in place; `-` in a name is read as `_`. NULL when there is no `=`. */
static char *split_assignment(char *name)
{
    char *equals = strchr(name, '=');
    if (!equals)
        return NULL;
    *equals = '\0';
    for (char *c = name; *c; c++)
        if (*c == '-')
            *c = '_';
    return equals + 1;
}

struct cut {
    const char *prefix;
    startup_variable_fn *fn;
    void *arg;
    bool refused;
};

/* Whether an assignment is one of ours; if so it has been handed over. */
static bool cut_takes(struct cut *cut, char *assignment)
{
    char *value = split_assignment(assignment);
    if (!value || strncasecmp(assignment, cut->prefix, strlen(cut->prefix)) != 0)
        return false;
    if (!cut->fn(cut->arg, assignment, value))
        cut->refused = true;
    return true;
}

/* One option of the text: where it starts and ends, and the assignment in it, or NULL. `-c` takes the next word. */
static char *option_assignment(struct span text, size_t *at, struct word *word, size_t *end)
{
    char *said = (char *)word->text.ptr;
    *end = word->end;
    if (strncmp(said, "--", 2) == 0)
        return said + 2;
    if (strncmp(said, "-c", 2) != 0)
        return NULL;
    if (said[2])
        return said + 2;
    if (!next_word(text, at, word))
        return NULL;
    *end = word->end;
    return (char *)word->text.ptr;
}

/* Copies `options` without our assignments, every other byte kept. */
static void options_without_ours(struct span text, struct cut *cut, struct buf *out)
{
    struct word word = {0};
    size_t at = 0;
    size_t kept = 0;
    while (next_word(text, &at, &word)) {
        size_t start = word.start;
        size_t end;
        char *assignment = option_assignment(text, &at, &word, &end);
        if (!assignment || !cut_takes(cut, assignment))
            continue;
        buf_put(out, text.ptr + kept, start - kept);
        kept = end;
    }
    buf_put(out, text.ptr + kept, text.len - kept);
    out->failed |= word.text.failed;
    buf_fini(&word.text);
}

static bool is_all_blank(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_blank(text.ptr[i]))
            return false;
    return true;
}

static void put_pair(struct buf *out, struct span name, struct span value)
{
    buf_put_span(out, name);
    buf_put_u8(out, 0);
    buf_put_span(out, value);
    buf_put_u8(out, 0);
}

static void put_options(struct buf *out, struct span name, struct span value, struct cut *cut, bool *changed)
{
    struct buf kept = {0};
    options_without_ours(value, cut, &kept);
    out->failed |= kept.failed;
    if (kept.len != value.len)
        *changed = true;
    if (kept.len == value.len || !is_all_blank(buf_span(&kept)))
        put_pair(out, name, buf_span(&kept));
    buf_fini(&kept);
}

/* A direct parameter `pgseek.x`: handed over and left out. */
static bool cut_takes_pair(struct cut *cut, struct span name, struct span value)
{
    size_t len = strlen(cut->prefix);
    if (name.len <= len || strncasecmp((const char *)name.ptr, cut->prefix, len) != 0)
        return false;
    if (!cut->fn(cut->arg, (const char *)name.ptr, (const char *)value.ptr))
        cut->refused = true;
    return true;
}

void startup_without(const struct startup *startup, const char *prefix, uint32_t version, struct buf *out)
{
    size_t at_length = out->len;
    struct span at = startup->parameters;
    struct span name;
    struct span value;
    buf_put_u32(out, 0);
    buf_put_u32(out, version);
    while (startup_next(&at, &name, &value))
        if (strncmp((const char *)name.ptr, prefix, strlen(prefix)) != 0)
            put_pair(out, name, value);
    buf_put_u8(out, 0);
    if (!out->failed)
        set_u32(out->ptr + at_length, (uint32_t)(out->len - at_length));
}

bool startup_rewrite(const struct startup *startup, const char *prefix, const char *database, const char *user,
                     startup_variable_fn *fn, void *arg, struct buf *out, bool *changed)
{
    struct cut cut = {.prefix = prefix, .fn = fn, .arg = arg};
    size_t at_length = out->len;
    struct span at = startup->parameters;
    struct span name;
    struct span value;
    bool saw_database = false;
    *changed = database || user;
    buf_put_u32(out, 0);
    buf_put_u32(out, startup->version);
    while (startup_next(&at, &name, &value)) {
        if (cut_takes_pair(&cut, name, value)) {
            *changed = true;
            continue;
        }
        bool is_database = span_equal_cstr(name, "database");
        saw_database |= is_database;
        if (span_equal_cstr(name, "options"))
            put_options(out, name, value, &cut, changed);
        else if (is_database && database)
            put_pair(out, name, span_cstr(database));
        else if (user && span_equal_cstr(name, "user"))
            put_pair(out, name, span_cstr(user));
        else
            put_pair(out, name, value);
    }
    if (database && !saw_database)
        put_pair(out, span_cstr("database"), span_cstr(database));
    buf_put_u8(out, 0);
    if (out->failed || cut.refused)
        return false;
    set_u32(out->ptr + at_length, (uint32_t)(out->len - at_length));
    return true;
}
