/* fuzz_tag.c - looking at a text without parsing it: tags, variables, commands, and the flat pass below them.
 *
 * Properties: the flat pass sees the comments that the server's own scanner sees, on every text that it takes; a text
 * whose comments are blanked has no tag; the skip search agrees with a plain one; nothing crashes or leaks. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../parser/lex.h"
#include "../../parser/pgseek.h"
#include "../../parser/skim.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next comment at or behind token *i, or NULL. */
static const struct lex_token *next_comment(const struct lex *lex, size_t *i)
{
    while (*i < lex->ntokens && !lex_is_comment(&lex->tokens[*i]))
        ++*i;
    return *i < lex->ntokens ? &lex->tokens[(*i)++] : NULL;
}

/* Compares the comments of a text that the scanner takes. The comparison ends at a literal that is continued behind a
 * comment, 'a' -- b (new line) 'c': one literal to the server and to us, two and a comment to libpg_query. */
static void compare_comments(const char *sql, size_t len, const struct lex *lex)
{
    struct skim skim = skim_init(sql, len);
    struct skim_item item;
    size_t i = 0;
    const struct lex_token *token = next_comment(lex, &i);
    while (skim_next(&skim, &item) != SKIM_END) {
        bool is_string = item.kind == SKIM_STRING || item.kind == SKIM_BROKEN;
        if (is_string && token && sql + token->start < item.end)
            return;
        require(item.kind != SKIM_BROKEN);
        if (!skim_is_comment(&item))
            continue;
        require(token && sql + token->start == item.start && sql + token->end == item.end);
        token = next_comment(lex, &i);
    }
    require(!token);
}

/* A vertical tab is no blank before version 16 and a blank since; such texts are left out. */
static void check_comments(const char *sql, size_t len)
{
    struct lex lex;
    if (len && memchr(sql, '\v', len))
        return;
    if (lex_init(&lex, sql, len) == LEX_OK)
        compare_comments(sql, len, &lex);
    lex_fini(&lex);
}

/* Their ends stay: a literal goes on behind blanks with a new line among them, but not behind a comment in brackets. */
static void blank_comments(char *sql, size_t len)
{
    struct skim skim = skim_init(sql, len);
    struct skim_item item;
    while (skim_next(&skim, &item) > SKIM_BROKEN)
        if (skim_is_comment(&item))
            memset(sql + (item.start - sql) + 2, ' ', (size_t)(item.end - item.start) - (item.start[0] == '/' ? 4 : 2));
}

static void check_tag(char *sql, size_t len)
{
    struct pgseek_tag tag;
    struct pgseek_error error;
    enum pgseek_found found = pgseek_tag_read(sql, len, true, &tag, &error);
    if (found == PGSEEK_FOUND_SOME) {
        require(tag.settings.cursor_kind != PGSEEK_CURSOR_TEXT || tag.settings.cursor[0] != '\0');
        require(tag.settings.cursor_kind != PGSEEK_CURSOR_PARAM || tag.settings.cursor_param > 0);
        pgseek_tag_fini(&tag);
    }
    if (found == PGSEEK_FOUND_BAD)
        require(error.code == PGSEEK_PS000 && error.message[0] && error.detail[0]);
    blank_comments(sql, len);
    require(pgseek_tag_read(sql, len, true, &tag, &error) == PGSEEK_FOUND_NONE);
}

static void check_variable(const char *sql, size_t len)
{
    struct pgseek_variable variable;
    struct pgseek_error error;
    struct pgseek_command command;
    enum pgseek_found found = pgseek_variable_read(sql, len, &variable, &error);
    if (found == PGSEEK_FOUND_SOME) {
        require(variable.name.kind == PGSEEK_ARG_TEXT || variable.name.kind == PGSEEK_ARG_PARAM);
        require(variable.name.kind != PGSEEK_ARG_TEXT || pgseek_mentions(sql, len) || memchr(sql, '\\', len) ||
                memchr(sql, '\'', len));
        pgseek_variable_fini(&variable);
    }
    pgseek_command_read(sql, len, true, &command);
    size_t at = 0;
    for (size_t before = 0; pgseek_command_next_execute(sql, len, len % 2, &at, &command); before = at)
        require(at > before && at <= len);
    require(memchr(command.name, '\0', sizeof command.name) != NULL);
    (void)pgseek_may_be_config_call(sql, len);
}

static void check_mentions(const char *sql, size_t len)
{
    bool is_there = false;
    for (size_t i = 0; i + 6 <= len && !is_there; i++)
        is_there = strncasecmp(sql + i, "pgseek", 6) == 0;
    require(pgseek_mentions(sql, len) == is_there);
}

static void check_literals(const char *sql, size_t len)
{
    struct skim skim = skim_init(sql, len);
    struct skim_item item;
    char name[SKIM_NAME_BYTES + 1];
    while (skim_next(&skim, &item) > SKIM_BROKEN) {
        struct text value = {0};
        if (skim_string(&item, &value))
            require(value.len <= (size_t)(item.end - item.start));
        require(skim_name(&item, name) == (name[0] != '\0'));
        text_fini(&value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size = strnlen((const char *)data, size); /* a message's text has no NUL */
    char *sql = malloc(size + 1);
    if (!sql)
        return 0;
    char *tight = size ? sql + 1 : sql;
    if (size)
        memcpy(tight, data, size); /* ends with its block, so that a look too far is seen */
    check_mentions(tight, size);
    check_literals(tight, size);
    check_variable(tight, size);
    check_comments(tight, size);
    check_tag(tight, size);
    free(sql);
    return 0;
}
