/* ident.c - the lines of name maps, tried in their order. */
#include "ident.h"

#include <string.h>

#include "pattern.h"
#include "rule.h"

#define IDENT_NAME_MAX 255u /* bytes of a certificate's name: what is longer matches nothing */

struct ident_line {
    struct rule_line line; /* owns what the others point to */
    const char *map;
    const char *name; /* of the certificate */
    const char *user;
    bool is_pattern;       /* `name` is one */
    bool is_any_user;      /* the keyword all */
    const char *reference; /* where \1 stands in `user`, or NULL */
    regex_t pattern;
};

struct ident {
    struct ident_line *lines;
    size_t count;
};

/* ---- loading ---- */

static void ident_line_fini(struct ident_line *line)
{
    if (line->is_pattern)
        regfree(&line->pattern);
    rule_line_fini(&line->line);
}

static bool ident_read_name(struct rule_reading *reading, struct ident_line *line)
{
    char why[PATTERN_WHY];
    if (line->name[0] != '/') /* quoted or not: a pattern with a comma in it has to be quoted */
        return true;
    line->is_pattern = pattern_compile(line->name + 1, &line->pattern, why);
    if (!line->is_pattern)
        rule_complain(reading, line->line.number, "the regular expression \"%s\" %s", line->name + 1, why);
    return line->is_pattern;
}

/* NULL: the user is as it should be. */
static const char *ident_user_fault(const struct ident_line *line, const struct rule_token *user)
{
    const char *backslash = strchr(line->user, '\\');
    if (line->user[0] == '/')
        return "a user cannot be a regular expression: write a line for each user";
    if (line->user[0] == '+' && !user->is_quoted)
        return "who is a member of a role only the server knows: write a line for each user";
    if (strlen(line->user) > RULE_NAME_MAX)
        return "the user is longer than the name of a user can be";
    if (!backslash)
        return NULL;
    if (backslash[1] != '1' || strchr(backslash + 1, '\\'))
        return "of backslashes a user can hold one \\1";
    if (!line->is_pattern || line->pattern.re_nsub == 0)
        return "\\1 stands for the first group of a regular expression, and there is none";
    if (pattern_has_choice(line->name + 1))
        return "what \\1 stands for must be plain: no | and no repeated group in its regular expression";
    return NULL;
}

static bool ident_line_read(struct rule_reading *reading, struct ident_line *line)
{
    const struct rule_token *token = line->line.tokens;
    bool is_list = false;
    for (size_t i = 0; i < line->line.ntokens; i++)
        is_list |= !token[i].opens_field || token[i].text[0] == '\0';
    if (is_list || line->line.ntokens != 3) {
        rule_complain(
            reading, line->line.number,
            "a line is three words: map, name of the certificate, user; quote one with a comma or a blank in it");
        return false;
    }
    line->map = token[0].text;
    line->name = token[1].text;
    line->user = token[2].text;
    line->is_any_user = rule_is_keyword(&token[2], "all");
    line->reference = strstr(line->user, "\\1");
    if (!ident_read_name(reading, line))
        return false;
    const char *fault = ident_user_fault(line, &token[2]);
    if (fault)
        rule_complain(reading, line->line.number, "%s", fault);
    return !fault;
}

static bool ident_add(struct ident *ident, struct rule_reading *reading, struct ident_line *line)
{
    struct ident_line *grown = mem_realloc(ident->lines, (ident->count + 1) * sizeof *grown);
    if (!grown) {
        rule_complain(reading, line->line.number, "out of memory");
        return false;
    }
    ident->lines = grown;
    ident->lines[ident->count++] = *line;
    return true;
}

struct ident *ident_read(struct span text, const char *name, FILE *complaints)
{
    struct rule_reading reading;
    struct ident_line line = {0};
    struct ident *ident = mem_zalloc(sizeof *ident);
    rule_reading_init(&reading, text, name, complaints);
    if (!ident)
        rule_complain(&reading, 0, "out of memory");
    while (ident && rule_next(&reading, &line.line)) {
        if (!ident_line_read(&reading, &line) || !ident_add(ident, &reading, &line))
            ident_line_fini(&line);
        line = (struct ident_line){0};
    }
    if (reading.faults == 0)
        return ident;
    ident_free(ident);
    return NULL;
}

struct ident *ident_load(const char *path, FILE *complaints)
{
    struct whole_file file;
    if (!rule_file_read(path, &file, complaints))
        return NULL;
    struct ident *ident = ident_read(whole_file_span(&file), path, complaints);
    whole_file_fini(&file);
    return ident;
}

void ident_free(struct ident *ident)
{
    if (!ident)
        return;
    for (size_t i = 0; i < ident->count; i++)
        ident_line_fini(&ident->lines[i]);
    mem_free(ident->lines);
    mem_free(ident);
}

/* ---- deciding ---- */

bool ident_has_map(const struct ident *ident, const char *map)
{
    for (size_t i = 0; i < ident->count; i++)
        if (strcmp(ident->lines[i].map, map) == 0)
            return true;
    return false;
}

/* Takes `part` from the front of *text, if it stands there. */
static bool ident_skip(struct span *text, struct span part)
{
    if (text->len < part.len || !span_equal(span_of(text->ptr, part.len), part))
        return false;
    *text = span_of(text->ptr + part.len, text->len - part.len);
    return true;
}

/* Whether `user` is the line's, with the group in the place of \1. A group that took no part gives no user at all. */
static bool ident_is_user(const struct ident_line *line, const char *user, struct span group)
{
    if (line->is_any_user || !line->reference)
        return line->is_any_user || strcmp(line->user, user) == 0;
    struct span rest = span_cstr(user);
    return group.ptr && ident_skip(&rest, span_of(line->user, (size_t)(line->reference - line->user))) &&
           ident_skip(&rest, group) && span_equal_cstr(rest, line->reference + 2);
}

static bool ident_line_allows(const struct ident_line *line, const char *map, const char *name, const char *user)
{
    struct span group = {0};
    if (strcmp(line->map, map) != 0)
        return false;
    bool is_name = line->is_pattern ? pattern_match(&line->pattern, name, &group) : strcmp(line->name, name) == 0;
    return is_name && ident_is_user(line, user, group);
}

bool ident_allows(const struct ident *ident, const char *map, const char *name, const char *user)
{
    size_t len = strlen(name);
    if (len == 0 || len > IDENT_NAME_MAX || user[0] == '\0' || strlen(user) > RULE_NAME_MAX)
        return false;
    if (!map)
        return strcmp(name, user) == 0;
    for (size_t i = 0; ident && i < ident->count; i++)
        if (ident_line_allows(&ident->lines[i], map, name, user))
            return true;
    return false;
}
