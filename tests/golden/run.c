/* run.c - the golden tests: a statement in, its keys and texts or its reason out, compared with what a file expects.
 *
 * A case is a file *.test of three parts with lines of `----` between them: settings, one per line (schema, columns,
 * params, key, show, probes: see ../unit/fixture.h), the statement, and what is expected. In the statement `{n|text}`
 * stands for n times the text. Usage: run [--accept] DIR; with --accept the present output becomes the expected one. */
#include "../unit/fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATOR "----\n"

struct golden_case {
    char *settings;
    char *sql;
    char *expected;
};

static const char *directory;
static bool accepting;

/* ---- files ---- */

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t room = 0;
    ssize_t len;

    if (!file)
        return NULL;
    len = getdelim(&text, &room, '\0', file);
    fclose(file);
    if (len < 0) {
        free(text);
        return strdup("");
    }
    return text;
}

static bool split_case(char *text, struct golden_case *test)
{
    char *first = strstr(text, SEPARATOR);
    char *second = first ? strstr(first + 1, "\n" SEPARATOR) : NULL;

    if (!second)
        return false;
    *first = '\0';
    *second = '\0';
    *test = (struct golden_case){text, first + strlen(SEPARATOR), second + 1 + strlen(SEPARATOR)};
    return true;
}

/* The value of a setting, or NULL; in a buffer that the next call with the same slot overwrites. */
static const char *setting(const struct golden_case *test, const char *name, int slot)
{
    static char values[8][512];
    size_t len = strlen(name);

    for (const char *line = test->settings; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        if (strncmp(line, name, len) != 0 || line[len] != ':')
            continue;
        line += len + 1;
        line += strspn(line, " ");
        snprintf(values[slot], sizeof values[slot], "%.*s", (int)strcspn(line, "\n"), line);
        return values[slot];
    }
    return NULL;
}

/* Replaces each {n|text} by n times the text. */
static char *expand(const char *sql)
{
    char *out = NULL;
    size_t len = 0;
    FILE *stream = open_memstream(&out, &len);

    while (*sql) {
        long count;
        int used = 0;
        const char *end;

        if (*sql == '{' && sscanf(sql, "{%ld|%n", &count, &used) == 1 && used && (end = strchr(sql, '}')) != NULL) {
            for (; count > 0; count--)
                fwrite(sql + used, 1, (size_t)(end - sql - used), stream);
            sql = end + 1;
        } else {
            fputc(*sql++, stream);
        }
    }
    fclose(stream);
    return out;
}

/* ---- what a statement gives ---- */

static void print_slots(FILE *out, const struct pgseek_shape *shape)
{
    static const char *const kinds[] = {[PGSEEK_SLOT_CLIENT] = "client",
                                        [PGSEEK_SLOT_KEY] = "key",
                                        [PGSEEK_SLOT_FETCH] = "fetch",
                                        [PGSEEK_SLOT_LIMIT] = "limit"};

    for (size_t i = 0; i < shape->nslots; i++)
        fprintf(out, "%s%s:%u", i ? " " : "  slots ", kinds[shape->slots[i].kind], shape->slots[i].type_oid);
    fprintf(out, "%s", shape->nslots ? "\n" : "");
}

static void print_shape(FILE *out, const struct pgseek_plan *plan, enum pgseek_seek seek)
{
    static const char *const names[] = {"first", "after", "before", "last"};
    const struct pgseek_shape_key key = {.seek = seek, .look_ahead = !pgseek_plan_is_locking(plan)};
    enum pgseek_reason reason;
    struct pgseek_shape *shape = pgseek_shape_new(plan, &key, &reason);

    fprintf(out, "%s: %s\n", names[seek], shape ? shape->sql : pgseek_reason_name(reason));
    if (shape)
        print_slots(out, shape);
    pgseek_shape_free(shape);
}

static void print_plan(FILE *out, const struct pgseek_plan *plan, const char *show)
{
    fprintf(out, "keys: %s\n", pgseek_plan_summary(plan));
    if (pgseek_plan_filter_count(plan)) {
        fprintf(out, "filter:");
        for (size_t i = 0; i < pgseek_plan_filter_count(plan); i++)
            fprintf(out, " $%d", pgseek_plan_filter_param(plan, i));
        fprintf(out, "\n");
    }
    for (int seek = 0; seek < 4; seek++)
        print_shape(out, plan, (enum pgseek_seek)seek);
    if (!show || !strstr(show, "guard"))
        return;
    char *guard = pgseek_guard_new(plan, NULL, 0);
    fprintf(out, "guard: %s\n", guard);
    free(guard);
}

static char *answer(const struct golden_case *test)
{
    struct fixture_description description;
    enum pgseek_reason reason;
    char path[1024];
    char *out = NULL;
    size_t len = 0;
    FILE *stream = open_memstream(&out, &len);
    const char *schema_name = setting(test, "schema", 0);
    const char *key = setting(test, "key", 1);

    snprintf(path, sizeof path, "%s/../schemas/%s.schema", directory, schema_name ? schema_name : "shop");
    char *schema = read_file(path);
    char *sql = expand(test->sql);
    struct pgseek_plan *plan = NULL;
    if (!schema)
        fprintf(stream, "no such schema\n");
    struct pgseek_query *query = schema ? fixture_query(sql, &reason) : NULL;
    if (query)
        plan = fixture_plan_of(schema, query, key,
                               fixture_describe(&description, setting(test, "columns", 2), setting(test, "params", 3)),
                               setting(test, "probes", 5), &reason);
    pgseek_query_free(query);
    if (plan)
        print_plan(stream, plan, setting(test, "show", 4));
    else if (schema)
        fprintf(stream, "reason: %s\n", pgseek_reason_name(reason));
    pgseek_plan_free(plan);
    free(schema);
    free(sql);
    fclose(stream);
    return out;
}

/* ---- running ---- */

static void print_difference(const char *name, const char *expected, const char *found)
{
    printf("FAIL %s\n", name);
    while (*expected || *found) {
        size_t elen = strcspn(expected, "\n");
        size_t flen = strcspn(found, "\n");

        if (elen != flen || memcmp(expected, found, elen) != 0)
            printf("- %.*s\n+ %.*s\n", (int)elen, expected, (int)flen, found);
        expected += elen + (expected[elen] == '\n');
        found += flen + (found[flen] == '\n');
    }
}

static bool accept_case(const char *path, const struct golden_case *test, const char *found)
{
    FILE *file = fopen(path, "wb");

    if (!file)
        return false;
    fprintf(file, "%s" SEPARATOR "%s\n" SEPARATOR "%s", test->settings, test->sql, found);
    return fclose(file) == 0;
}

static bool run_case(const char *name)
{
    char path[1024];
    struct golden_case test;
    bool passed = false;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    char *text = read_file(path);
    if (!text || !split_case(text, &test)) {
        printf("FAIL %s: not a case of three parts\n", name);
        free(text);
        return false;
    }
    char *found = answer(&test);
    passed = !strcmp(found, test.expected);
    if (!passed && accepting)
        passed = accept_case(path, &test, found);
    else if (!passed)
        print_difference(name, test.expected, found);
    free(found);
    free(text);
    return passed;
}

static int is_test(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 5 && !strcmp(entry->d_name + len - 5, ".test");
}

static int run_all(void)
{
    struct dirent **entries;
    int count = scandir(directory, &entries, is_test, alphasort);
    int failed = 0;

    if (count <= 0) {
        printf("no cases in %s\n", directory);
        return 1;
    }
    for (int i = 0; i < count; i++) {
        failed += !run_case(entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    printf("%d cases, %d failed\n", count, failed);
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    accepting = argc > 1 && !strcmp(argv[1], "--accept");
    if (argc != 2 + accepting) {
        printf("usage: run [--accept] DIR\n");
        return 2;
    }
    directory = argv[argc - 1];
    return fixture_run(run_all);
}
