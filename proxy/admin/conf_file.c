/* conf_file.c - reads a file of sections and settings, and reports every fault of it with its line.
 *
 * The form is INI as PgBouncer has it. It is read here and by no library: the one that was used cut long lines and
 * names without a word and told no line numbers, so that each line had to be looked at before it. */
#include "conf_file.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "option.h"
#include "whole_file.h"

#define CONF_WHY 320
#define CONF_NAME_MAX 63   /* bytes of a database's name, as PostgreSQL's identifiers */
#define CONF_LINE_MAX 4096 /* bytes of a line, without the blanks around it */
#define CONF_FILE_MAX (1u << 20)

enum conf_section { CONF_NO_SECTION, CONF_OPTIONS, CONF_DATABASES, CONF_UNKNOWN_SECTION };

/* One file that is being read. */
struct conf_reading {
    const char *path;
    FILE *complaints;
    struct conf *conf;
    struct span rest;
    unsigned number; /* of the line, from 1 */
    enum conf_section section;
    unsigned faults;
    char line[CONF_LINE_MAX + 1];
};

static void conf_complain(struct conf_reading *reading, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void conf_complain(struct conf_reading *reading, const char *format, ...)
{
    va_list args;
    reading->faults++;
    fprintf(reading->complaints, "%s:%u: ", reading->path, reading->number);
    va_start(args, format);
    vfprintf(reading->complaints, format, args);
    va_end(args);
    fputc('\n', reading->complaints);
}

/* ---- lines ---- */

static bool conf_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct span conf_trim(struct span text)
{
    while (text.len > 0 && conf_is_blank((char)text.ptr[0]))
        text = span_of(text.ptr + 1, text.len - 1);
    while (text.len > 0 && conf_is_blank((char)text.ptr[text.len - 1]))
        text.len--;
    return text;
}

static struct span conf_take_line(struct conf_reading *reading)
{
    struct span rest = reading->rest;
    const uint8_t *end = memchr(rest.ptr, '\n', rest.len);
    size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
    size_t used = len + (end ? 1 : 0);
    reading->rest = span_of(rest.ptr + used, rest.len - used);
    reading->number++;
    return conf_trim(span_of(rest.ptr, len));
}

/* The next line, without the blanks around it, in reading->line: empty when it has a fault. False at the end. */
static bool conf_next_line(struct conf_reading *reading)
{
    if (reading->rest.len == 0)
        return false;
    struct span line = conf_take_line(reading);
    size_t len = 0;
    if (line.len > 0 && memchr(line.ptr, '\0', line.len))
        conf_complain(reading, "the line holds a NUL character");
    else if (line.len > CONF_LINE_MAX)
        conf_complain(reading, "the line is longer than %d characters", CONF_LINE_MAX);
    else
        len = line.len;
    if (len > 0)
        memcpy(reading->line, line.ptr, len);
    reading->line[len] = '\0';
    return true;
}

/* ---- name = value ---- */

static void conf_put_option(struct conf_reading *reading, const char *name, const char *value)
{
    char why[OPTION_WHY];
    size_t i = option_find(name);
    const char *nearest = i == option_count ? option_nearest(name) : NULL;
    if (nearest)
        conf_complain(reading, "unknown option \"%s\", did you mean \"%s\"?", name, nearest);
    else if (i == option_count)
        conf_complain(reading, "unknown option \"%s\"", name);
    else if (reading->conf->lines[i])
        conf_complain(reading, "%s is already set in line %u", option_table[i].name, reading->conf->lines[i]);
    else if (!option_put(&option_table[i], reading->conf, value, why))
        conf_complain(reading, "%s %s", option_table[i].name, why);
    if (i < option_count && !reading->conf->lines[i])
        reading->conf->lines[i] = reading->number;
}

static void conf_put_database(struct conf_reading *reading, const char *name, const char *connection)
{
    char why[CONF_WHY];
    bool is_twice = false;
    for (size_t i = 0; i < reading->conf->ndatabases; i++)
        is_twice |= strcmp(reading->conf->databases[i].name, name) == 0;
    if (name[0] == '\0' || strlen(name) > CONF_NAME_MAX)
        conf_complain(reading, "a database's name has 1 to %d bytes", CONF_NAME_MAX);
    else if (is_twice)
        conf_complain(reading, "database \"%s\" is there already", name);
    else if (!conf_add_database(reading->conf, name, connection, why, sizeof why))
        conf_complain(reading, "database \"%s\" %s", name, why);
    else
        reading->conf->databases[reading->conf->ndatabases - 1].line = reading->number;
}

/* A ";" behind a blank begins a comment. */
static void conf_cut_comment(char *text)
{
    for (size_t i = 1; text[0] && text[i]; i++)
        if (text[i] == ';' && conf_is_blank(text[i - 1]))
            text[i] = '\0';
}

/* Where the text begins behind its blanks; those at its end are cut off. */
static char *conf_trim_cstr(char *text)
{
    struct span trimmed = conf_trim(span_cstr(text));
    char *begin = text + (trimmed.ptr - (const uint8_t *)text);
    begin[trimmed.len] = '\0';
    return begin;
}

static void conf_put(struct conf_reading *reading, char *line)
{
    size_t len = strcspn(line, "=:;");
    if (line[len] != '=') {
        conf_complain(reading, "expected name = value");
        return;
    }
    line[len] = '\0';
    conf_cut_comment(line + len + 1);
    const char *name = conf_trim_cstr(line);
    const char *value = conf_trim_cstr(line + len + 1);
    if (reading->section == CONF_DATABASES)
        conf_put_database(reading, name, value);
    else
        conf_put_option(reading, name, value);
}

/* ---- sections ---- */

static enum conf_section conf_find_section(struct span name)
{
    if (span_equal_cstr(name, "pgseek"))
        return CONF_OPTIONS;
    return span_equal_cstr(name, "databases") ? CONF_DATABASES : CONF_UNKNOWN_SECTION;
}

static void conf_open_section(struct conf_reading *reading, char *line)
{
    size_t len = strcspn(line + 1, "]");
    bool is_closed = line[1 + len] == ']';
    reading->section = is_closed ? conf_find_section(span_of(line + 1, len)) : CONF_UNKNOWN_SECTION;
    if (!is_closed) {
        conf_complain(reading, "a section's name must end in \"]\"");
        return;
    }
    const char *behind = conf_trim_cstr(line + len + 2);
    if (reading->section == CONF_UNKNOWN_SECTION)
        conf_complain(reading, "unknown section [%.*s]: there are [pgseek] and [databases]", (int)len, line + 1);
    else if (*behind && *behind != ';' && *behind != '#')
        conf_complain(reading, "something stands behind the section's name: settings have lines of their own");
}

/* ---- the whole ---- */

static void conf_read_line(struct conf_reading *reading)
{
    char *line = reading->line;
    if (*line == '\0' || *line == ';' || *line == '#')
        return;
    if (*line == '[')
        conf_open_section(reading, line);
    else if (reading->section == CONF_NO_SECTION)
        conf_complain(reading, "settings belong into a section: [pgseek] or [databases]");
    else if (reading->section != CONF_UNKNOWN_SECTION) /* which was reported as a whole */
        conf_put(reading, line);
}

/* What only the whole file can have wrong. */
static void conf_check_whole(struct conf_reading *reading)
{
    const struct conf *conf = reading->conf;
    if (conf->ndatabases == 0)
        conf_complain(reading, "[databases] is empty: add a line such as \"* = host=127.0.0.1 port=5432\"");
    if (conf->listen_addr[0] == '\0' && conf->unix_socket_dir[0] == '\0')
        conf_complain(reading, "nothing to listen on: listen_addr and unix_socket_dir are both empty");
}

static bool conf_read_text(struct conf_reading *reading, struct span text)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    size_t skip = text.len >= 3 && memcmp(text.ptr, byte_order_mark, 3) == 0 ? 3 : 0;
    reading->rest = span_of(text.ptr + skip, text.len - skip);
    while (conf_next_line(reading))
        conf_read_line(reading);
    if (reading->faults == 0)
        conf_check_whole(reading);
    return reading->faults == 0;
}

struct conf *conf_read(struct span text, const char *path, FILE *complaints)
{
    struct conf_reading reading = {.path = path, .complaints = complaints, .conf = conf_new()};
    assert(option_count <= CONF_MAX_OPTIONS);
    if (reading.conf)
        reading.conf->path = mem_strndup(path, strlen(path));
    bool ok = reading.conf && reading.conf->path;
    if (!ok)
        fprintf(complaints, "%s: out of memory\n", path);
    if (ok && conf_read_text(&reading, text))
        return reading.conf;
    conf_unref(reading.conf);
    return NULL;
}

struct conf *conf_load(const char *path, FILE *complaints)
{
    char why[WHOLE_FILE_WHY];
    struct whole_file file;
    if (!whole_file_read(path, WHOLE_FILE_PUBLIC, CONF_FILE_MAX, &file, why)) {
        fprintf(complaints, "%s: %s\n", path, why);
        return NULL;
    }
    struct conf *conf = conf_read(whole_file_span(&file), path, complaints);
    whole_file_fini(&file);
    return conf;
}
