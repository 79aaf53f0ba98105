/* conf_file.c - reads an INI file with inih and reports every fault of it, with file and line.
 *
 * inih cuts long lines and section names silently, tells no line numbers to its handler and nothing about empty
 * sections. So each line passes through conf_next_line() first, which counts, checks, and hands inih only lines that it
 * takes whole. */
#include "conf_file.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include <ini.h>

#include "option.h"
#include "whole_file.h"

#define CONF_WHY 320
#define CONF_NAME_MAX 63   /* bytes of a database's name, as PostgreSQL's identifiers */
#define CONF_LINE_MAX 4096 /* bytes of a line, without the blanks around it */
#define CONF_FILE_MAX ((size_t)1 << 20)

static const char conf_section_options[] = "pgseek";
static const char conf_section_databases[] = "databases";

/* One file that is being read. */
struct conf_reading {
    const char *path;
    FILE *complaints;
    struct conf *conf;
    struct span rest;
    unsigned number; /* of the line, from 1 */
    bool is_in_section;
    bool is_known_section;
    unsigned faults;
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

static void conf_check_section(struct conf_reading *reading, const char *line)
{
    const char *end = strchr(line, ']');
    size_t len = end ? (size_t)(end - line - 1) : 0;
    struct span name = span_of(line + 1, len);
    reading->is_in_section = true;
    reading->is_known_section =
        span_equal_cstr(name, conf_section_options) || span_equal_cstr(name, conf_section_databases);
    if (!end)
        conf_complain(reading, "a section's name must end in \"]\"");
    else if (!reading->is_known_section)
        conf_complain(reading, "unknown section [%.*s]: there are [pgseek] and [databases]", (int)len, line + 1);
    else if (!strchr(";#", end[1 + strspn(end + 1, " \t")])) /* inih would not look at it */
        conf_complain(reading, "something stands behind the section's name: settings have lines of their own");
}

/* Whether inih may see the line: it is then whole, and of a form that inih knows. */
static bool conf_check_line(struct conf_reading *reading, const char *line)
{
    if (*line == '\0' || *line == ';' || *line == '#')
        return false;
    if (*line == '[') {
        conf_check_section(reading, line);
        return reading->is_known_section;
    }
    if (!reading->is_in_section)
        conf_complain(reading, "settings belong into a section: [pgseek] or [databases]");
    if (!reading->is_known_section)
        return false; /* an unknown section was reported as a whole */
    if (line[strcspn(line, "=:;")] != '=') {
        conf_complain(reading, "expected name = value");
        return false;
    }
    return true;
}

static struct span conf_trim(struct span text)
{
    static const char blanks[] = {' ', '\t', '\r'};
    while (text.len > 0 && memchr(blanks, text.ptr[0], sizeof blanks))
        text = span_of(text.ptr + 1, text.len - 1);
    while (text.len > 0 && memchr(blanks, text.ptr[text.len - 1], sizeof blanks))
        text.len--;
    return text;
}

/* inih's reader: the next line without the blanks before it, since inih would take those for a continuation. Lines that
 * it must not see become empty ones. */
static char *conf_next_line(char *room, int size, void *context)
{
    struct conf_reading *reading = context;
    assert(size > CONF_LINE_MAX + 1);
    if (reading->rest.len == 0)
        return NULL;
    struct span line = conf_trim(span_take_line(&reading->rest));
    reading->number++;
    size_t len = 0;
    if (line.len > 0 && memchr(line.ptr, '\0', line.len))
        conf_complain(reading, "the line holds a NUL character");
    else if (line.len > CONF_LINE_MAX)
        conf_complain(reading, "the line is longer than %d characters", CONF_LINE_MAX);
    else
        len = line.len;
    if (len > 0)
        memcpy(room, line.ptr, len);
    room[len] = '\0';
    if (!conf_check_line(reading, room))
        len = 0;
    room[len] = '\n';
    room[len + 1] = '\0';
    return room;
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

/* inih's handler. Always "handled": faults are counted here, and inih is to go on. */
static int conf_put(void *context, const char *section, const char *name, const char *value)
{
    struct conf_reading *reading = context;
    if (strcmp(section, conf_section_databases) == 0)
        conf_put_database(reading, name, value);
    else
        conf_put_option(reading, name, value);
    return 1;
}

/* ---- the whole ---- */

/* What only the whole file can have wrong. */
static void conf_check_whole(struct conf_reading *reading)
{
    const struct conf *conf = reading->conf;
    if (conf->ndatabases == 0)
        conf_complain(reading, "[databases] is empty: add a line such as \"* = host=127.0.0.1 port=5432\"");
    if (conf->listen_addr[0] == '\0' && conf->unix_socket_dir[0] == '\0')
        conf_complain(reading, "nothing to listen on: listen_addr and unix_socket_dir are both empty");
}

/* inih's buffer is 200 bytes else, which a line with the certificates of a server outgrows. The same each time, and
 * only the thread that reloads comes here. */
static void conf_set_up_inih(void)
{
    ini_use_stack = false;
    ini_max_line = CONF_LINE_MAX + 3;
    ini_initial_alloc = ini_max_line;
}

static bool conf_read_text(struct conf_reading *reading, struct span text)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    size_t skip = text.len >= 3 && memcmp(text.ptr, byte_order_mark, 3) == 0 ? 3 : 0;
    reading->rest = span_of(text.ptr + skip, text.len - skip);
    conf_set_up_inih();
    int fault_line = ini_parse_stream(conf_next_line, reading, conf_put, reading);
    if (fault_line > 0 && reading->faults == 0)
        conf_complain(reading, "line %d is neither a section, a comment nor name = value", fault_line);
    if (fault_line < 0)
        conf_complain(reading, "cannot be read: out of memory");
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
