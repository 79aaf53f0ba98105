/* rule.c - cuts a file into lines, and lines into tokens. */
#include "rule.h"

#include <string.h>

void rule_complain_v(struct rule_reading *reading, unsigned number, const char *format, va_list args)
{
    reading->faults++;
    fprintf(reading->complaints, "%s:%u: ", reading->name, number);
    vfprintf(reading->complaints, format, args);
    fputc('\n', reading->complaints);
}

void rule_complain(struct rule_reading *reading, unsigned number, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    rule_complain_v(reading, number, format, args);
    va_end(args);
}

bool rule_file_read(const char *path, struct whole_file *file, FILE *complaints)
{
    char why[WHOLE_FILE_WHY];
    if (whole_file_read(path, WHOLE_FILE_PUBLIC, RULE_FILE_MAX, file, why))
        return true;
    fprintf(complaints, "%s: %s\n", path, why);
    return false;
}

/* ---- lines ---- */

void rule_reading_init(struct rule_reading *reading, struct span text, const char *name, FILE *complaints)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    size_t skip = text.len >= 3 && memcmp(text.ptr, byte_order_mark, 3) == 0 ? 3 : 0;
    *reading = (struct rule_reading){.name = name, .complaints = complaints, .number = 1};
    reading->rest = span_of(text.ptr + skip, text.len - skip);
}

/* One line as it stands in the file, without its end. */
static struct span rule_take_line(struct rule_reading *reading)
{
    struct span line = span_take_line(&reading->rest);
    reading->number++;
    while (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    return line;
}

/* A backslash at the end joins the next line, in comments and quotes, too. */
static void rule_join_lines(struct rule_reading *reading, struct buf *whole)
{
    bool is_continued = true;
    while (is_continued && reading->rest.len > 0) {
        struct span line = rule_take_line(reading);
        is_continued = line.len > 0 && line.ptr[line.len - 1] == '\\';
        buf_put(whole, line.ptr, line.len - (is_continued ? 1 : 0));
    }
    buf_put_u8(whole, '\0');
}

/* ---- tokens ---- */

/* A line that is being cut. The tokens are written over it: what is unquoted is never longer. */
struct rule_cutting {
    char *from;
    char *to;
    const char *why; /* what is wrong, or NULL */
    bool has_comma;  /* the last token ended with one: the list goes on */
};

static bool rule_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Up to a blank, comma, comment or the end, outside of quotes. Within them a quote is doubled. */
static void rule_cut_token(struct rule_cutting *cutting)
{
    bool is_in_quotes = false;
    for (; *cutting->from; cutting->from++) {
        char c = *cutting->from;
        if (!is_in_quotes && (rule_is_blank(c) || c == ',' || c == '#'))
            break;
        if (c == '"' && is_in_quotes && cutting->from[1] == '"')
            *cutting->to++ = *cutting->from++;
        else if (c == '"')
            is_in_quotes = !is_in_quotes;
        else
            *cutting->to++ = c;
    }
    if (is_in_quotes)
        cutting->why = "a quote is not closed";
}

/* False at the end of the line, and where it is at fault. */
static bool rule_next_token(struct rule_cutting *cutting, struct rule_token *token)
{
    cutting->from += strspn(cutting->from, " \t\r");
    if (*cutting->from == ',')
        cutting->why = "a list has nothing before a comma";
    if (*cutting->from == '\0' || *cutting->from == '#' || cutting->why)
        return false;
    *token = (struct rule_token){
        .text = cutting->to, .is_quoted = *cutting->from == '"', .opens_field = !cutting->has_comma};
    rule_cut_token(cutting);
    char end = *cutting->from; /* before the token's own end is written over it */
    cutting->has_comma = end == ',';
    cutting->from += cutting->has_comma || rule_is_blank(end);
    if (end == '#')
        cutting->from += strlen(cutting->from);
    if ((size_t)(cutting->to - token->text) > RULE_TOKEN_MAX)
        cutting->why = "a word is longer than 255 bytes";
    *cutting->to++ = '\0';
    return !cutting->why;
}

static bool rule_add_token(struct rule_line *line, size_t *room, struct rule_token token)
{
    if (line->ntokens == *room) {
        size_t more = *room ? 2 * *room : 8;
        struct rule_token *grown = mem_realloc(line->tokens, more * sizeof *grown);
        if (!grown)
            return false;
        line->tokens = grown;
        *room = more;
    }
    line->tokens[line->ntokens++] = token;
    return true;
}

/* False when out of memory. */
static bool rule_cut(struct rule_reading *reading, struct rule_line *line, size_t len)
{
    struct rule_cutting cutting = {.from = line->text, .to = line->text};
    struct rule_token token;
    size_t room = 0;
    if (strlen(line->text) != len)
        cutting.why = "the line holds a NUL character";
    while (rule_next_token(&cutting, &token))
        if (!rule_add_token(line, &room, token))
            return false;
    if (!cutting.why && cutting.has_comma)
        cutting.why = "a list ends with a comma";
    if (!cutting.why)
        return true;
    rule_complain(reading, line->number, "%s", cutting.why);
    line->ntokens = 0;
    return true;
}

bool rule_next(struct rule_reading *reading, struct rule_line *line)
{
    while (reading->rest.len > 0) {
        struct buf whole = {0};
        *line = (struct rule_line){.number = reading->number};
        rule_join_lines(reading, &whole);
        bool ok = !whole.failed;
        line->text = (char *)whole.ptr; /* now the line's */
        ok = ok && rule_cut(reading, line, whole.len - 1);
        if (ok && line->ntokens > 0)
            return true;
        rule_line_fini(line);
        if (!ok) {
            rule_complain(reading, line->number, "out of memory");
            return false;
        }
    }
    return false;
}

void rule_line_fini(struct rule_line *line)
{
    mem_free(line->tokens);
    mem_free(line->text);
    line->tokens = NULL;
    line->text = NULL;
    line->ntokens = 0;
}

struct rule_field rule_field(const struct rule_line *line, size_t *at)
{
    struct rule_field field = {.tokens = line->tokens + *at};
    while (*at < line->ntokens && (field.count == 0 || !line->tokens[*at].opens_field)) {
        field.count++;
        ++*at;
    }
    return field;
}

bool rule_is_keyword(const struct rule_token *token, const char *word)
{
    return !token->is_quoted && strcmp(token->text, word) == 0;
}
