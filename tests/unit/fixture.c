/* fixture.c - facts and plans without a server: a schema is told in a few lines of text.
 *
 * See fixture.h. It must not know the parser's inner headers, so that it tests what the server's rows would. */
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char fixture_shop[] = "table public.booking\n"
                            "  id int8 notnull\n"
                            "  venue_id int4 notnull\n"
                            "  placed_at timestamptz notnull\n"
                            "  note text\n"
                            "  deleted_at timestamptz\n"
                            "  title text notnull\n"
                            "  primary booking_pkey (id)\n"
                            "table public.seat\n"
                            "  id int4 notnull\n"
                            "  booking_id int8 notnull\n"
                            "  seat_no int4 notnull\n"
                            "  primary seat_pkey (id)\n"
                            "  unique seat_no_key (booking_id, seat_no)\n"
                            "function lower i\n"
                            "function now s\n"
                            "function random v\n"
                            "function count i aggregate\n"
                            "function unnest i set\n";

struct type {
    const char *name;
    uint32_t oid;
    const char *kind;
    const char *collation;
    const char *operators; /* schema of the operators; NULL: no order */
    const char *labels;
};

static const struct type types[] = {
    {"bool", 16, "b", NULL, "pg_catalog", NULL},
    {"bytea", 17, "b", NULL, "pg_catalog", NULL},
    {"int8", 20, "b", NULL, "pg_catalog", NULL},
    {"int2", 21, "b", NULL, "pg_catalog", NULL},
    {"int4", 23, "b", NULL, "pg_catalog", NULL},
    {"text", 25, "b", "default d en_US.UTF-8 2.36", "pg_catalog", NULL},
    {"json", 114, "b", NULL, NULL, NULL},
    {"float8", 701, "b", NULL, "pg_catalog", NULL},
    {"varchar", 1043, "b", "default d en_US.UTF-8 2.36", "pg_catalog", NULL},
    {"date", 1082, "b", NULL, "pg_catalog", NULL},
    {"timestamptz", 1184, "b", NULL, "pg_catalog", NULL},
    {"numeric", 1700, "b", NULL, "pg_catalog", NULL},
    {"uuid", 2950, "b", NULL, "pg_catalog", NULL},
    {"citext", 16400, "b", "default d en_US.UTF-8 2.36", "public", NULL},
    {"mood", 16401, "e", NULL, "pg_catalog", "{sad,\\\"so so\\\",glad}"},
    {"aclitem", 1033, "b", NULL, NULL, NULL},
};

static void die(const char *what, const char *line)
{
    fprintf(stderr, "fixture: %s: %s\n", what, line);
    abort();
}

static const struct type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name))
            return &types[i];
    return NULL;
}

uint32_t fixture_type(const char *name)
{
    const struct type *type = find_type(name);
    return type ? type->oid : 0;
}

/* ---- reading a schema ---- */

struct loader {
    struct pgseek_facts *facts;
    const struct pgseek_query *query;
    size_t ord;      /* the question that the present table answers; 0: none */
    unsigned oid;    /* of the present table */
    unsigned things; /* tables and indexes so far */
    int attnum;
    char columns[64][64];
};

static void put_row(struct loader *loader, const char *what, size_t ord, unsigned rel, int num, const char *name,
                    const char *fields)
{
    char ord_text[16];
    char rel_text[16];
    char num_text[16];
    const char *row[] = {what, ord_text, rel ? rel_text : NULL, num ? num_text : NULL, name, fields};

    snprintf(ord_text, sizeof ord_text, "%zu", ord);
    snprintf(rel_text, sizeof rel_text, "%u", rel);
    snprintf(num_text, sizeof num_text, "%d", num);
    if (!pgseek_facts_row(loader->facts, row, PGSEEK_FACTS_COLUMNS))
        die("the row is refused", fields);
}

/* Whether the word stands in the line, between blanks. */
static bool has_word(const char *line, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = strstr(line, word); at; at = strstr(at + 1, word))
        if (at > line && at[-1] == ' ' && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

/* Whether the i-th question means schema.name under search_path = public. */
static bool is_asked(const struct loader *loader, size_t i, const char *schema, const char *name)
{
    const char *written = pgseek_query_relation_schema(loader->query, i);

    if (strcmp(pgseek_query_relation_name(loader->query, i), name) != 0)
        return false;
    return written ? !strcmp(written, schema) : !strcmp(schema, "public");
}

static void read_table(struct loader *loader, const char *word, const char *line, size_t ord)
{
    static const struct {
        const char *word;
        const char *kind;
        const char *kids;
    } kinds[] = {{"table", "r", "false"},   {"view", "v", "false"},       {"matview", "m", "false"},
                 {"foreign", "f", "false"}, {"partitioned", "p", "true"}, {"parent", "r", "true"}};
    char schema[64];
    char name[64];
    char fields[256];

    if (sscanf(line, "%*s %63[^.].%63s", schema, name) != 2)
        die("no schema.name", line);
    loader->oid = 1000 + 100 * ++loader->things;
    loader->attnum = 0;
    loader->ord = ord && is_asked(loader, ord - 1, schema, name) ? ord : 0;
    for (size_t i = 0; loader->ord && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].word, word) != 0)
            continue;
        snprintf(fields, sizeof fields, "{\"%s\",%s,%s,true,true}", schema, kinds[i].kind, kinds[i].kids);
        put_row(loader, "R", ord, loader->oid, 0, name, fields);
    }
}

static void read_column(struct loader *loader, const char *name, const char *line)
{
    char type_name[64];
    char operators[512] = "";
    char fields[1024];

    if (sscanf(line, "%*s %63s", type_name) != 1 || !find_type(type_name))
        die("no such type", line);
    const struct type *type = find_type(type_name);
    snprintf(loader->columns[++loader->attnum], sizeof loader->columns[0], "%s", name);
    for (int i = 0; i < 5; i++) {
        static const char *const names[] = {"<", "<=", "=", ">=", ">"};
        size_t len = strlen(operators);

        snprintf(operators + len, sizeof operators - len, ",%s,%s", type->operators ? type->operators : "NULL",
                 type->operators ? names[i] : "NULL");
    }
    snprintf(fields, sizeof fields, "{%u,%s,%s,%s,%s,\"%s\",%u,%s,%s,%s.%s%s,%s%s%s}", type->oid,
             has_word(line, "notnull") ? "true" : "false", has_word(line, "noselect") ? "false" : "true",
             type->collation ? "100" : "0",
             !type->collation       ? "NULL"
             : has_word(line, "ci") ? "false"
                                    : "true",
             type->collation ? type->collation : "", type->oid, type->kind, type->oid == 1033 ? "false" : "true",
             type->oid < 16384 ? "pg_catalog" : "public", type->name, operators, type->labels ? "\"" : "",
             type->labels ? type->labels : "NULL", type->labels ? "\"" : "");
    if (loader->ord)
        put_row(loader, "C", loader->ord, loader->oid, loader->attnum, name, fields);
}

static int find_attnum(const struct loader *loader, const char *name, const char *line)
{
    for (int i = 1; i <= loader->attnum; i++)
        if (!strcmp(loader->columns[i], name))
            return i;
    die("no such column", line);
    return 0;
}

static void read_index(struct loader *loader, const char *line, bool is_primary)
{
    char name[64];
    char list[256];
    char attnums[128] = "";
    char fields[256];

    loader->things++;
    if (sscanf(line, "%*s %63s (%255[^)])", name, list) != 2)
        die("no name and columns", line);
    for (char *column = strtok(list, ", "); column; column = strtok(NULL, ", ")) {
        size_t len = strlen(attnums);
        snprintf(attnums + len, sizeof attnums - len, "%s%d", len ? " " : "", find_attnum(loader, column, line));
    }
    snprintf(fields, sizeof fields, "{\"%s\",%s,%s,%s}", attnums, is_primary ? "true" : "false",
             has_word(line, "nnd") ? "true" : "false", has_word(line, "unsorted") ? "false" : "true");
    if (loader->ord)
        put_row(loader, "U", loader->ord, 1000 + 100 * loader->things, 0, name, fields);
}

static void read_function(struct loader *loader, const char *line)
{
    char name[64];
    char volatility[8];
    char fields[64];

    if (sscanf(line, "%*s %63s %7s", name, volatility) != 2)
        die("no name and volatility", line);
    snprintf(fields, sizeof fields, "{%s,%s,%s}", volatility, has_word(line, "set") ? "true" : "false",
             has_word(line, "aggregate") ? "true" : "false");
    for (size_t i = 0; i < pgseek_query_function_count(loader->query); i++)
        if (!strcmp(pgseek_query_function_name(loader->query, i), name))
            put_row(loader, "F", i + 1, 0, 0, name, fields);
}

/* Reads the schema once for one question (ord from 1), or for what is no question of a relation (0). */
static void read_line(struct loader *loader, const char *line, size_t ord)
{
    char word[64];

    if (sscanf(line, "%63s", word) != 1 || *word == '#')
        return;
    if (*line != ' ') {
        if (!strcmp(word, "function")) {
            if (!ord)
                read_function(loader, line);
        } else if (!strcmp(word, "foreign_operators")) {
            if (!ord)
                put_row(loader, "O", 1, 0, 0, "foreign operators", "{true}");
        } else {
            read_table(loader, word, line, ord);
        }
        return;
    }
    if (!strcmp(word, "primary") || !strcmp(word, "unique"))
        read_index(loader, line, *word == 'p');
    else
        read_column(loader, word, line);
}

static void read_schema(struct loader *loader, const char *schema, size_t ord)
{
    char line[512];

    loader->things = 0;
    while (*schema) {
        size_t len = strcspn(schema, "\n");
        snprintf(line, sizeof line, "%.*s", (int)len, schema);
        read_line(loader, line, ord);
        schema += len + (schema[len] == '\n');
    }
}

struct pgseek_facts *fixture_facts(const char *schema, const struct pgseek_query *query)
{
    struct loader loader = {.facts = pgseek_facts_new(), .query = query};

    for (size_t ord = 0; ord <= pgseek_query_relation_count(query); ord++)
        read_schema(&loader, schema, ord);
    return loader.facts;
}

/* ---- descriptions, queries, plans ---- */

static size_t split(const char *list, char out[64][64])
{
    size_t count = 0;

    while (list && *list && count < 64) {
        size_t len;

        list += strspn(list, " ");
        len = strcspn(list, ",");
        snprintf(out[count++], sizeof out[0], "%.*s", (int)len, list);
        list += len + (list[len] == ',');
    }
    return count;
}

const struct pgseek_description *fixture_describe(struct fixture_description *out, const char *columns,
                                                  const char *params)
{
    char words[64][64];
    size_t nparams = split(params, words);

    if (!columns)
        return NULL;
    for (size_t i = 0; i < nparams; i++)
        out->params[i] = fixture_type(words[i]);
    size_t ncolumns = split(columns, out->names);
    for (size_t i = 0; i < ncolumns; i++)
        out->columns[i] = (struct pgseek_column){.name = out->names[i]};
    out->description = (struct pgseek_description){out->params, nparams, out->columns, ncolumns};
    return &out->description;
}

struct pgseek_query *fixture_query(const char *sql, enum pgseek_reason *reason)
{
    const struct pgseek_reading reading = {.standard_strings = true, .ascii_safe_encoding = true};

    return pgseek_query_new(sql, strlen(sql), &reading, reason);
}

struct pgseek_plan *fixture_plan(const char *schema, const char *sql, const char *key,
                                 const struct pgseek_description *description, enum pgseek_reason *reason)
{
    struct pgseek_query *query = fixture_query(sql, reason);

    if (!query)
        return NULL;
    struct pgseek_facts *facts = fixture_facts(schema, query);
    struct pgseek_plan *plan = pgseek_plan_new(query, facts, description, key, reason);
    pgseek_facts_free(facts);
    pgseek_query_free(query);
    return plan;
}

/* ---- the stack ---- */

struct run {
    int (*tests)(void);
    int result;
};

static void *run_thread(void *context)
{
    struct run *run = context;

    run->result = run->tests();
    return NULL;
}

int fixture_run(int (*tests)(void))
{
    struct run run = {.tests = tests, .result = 1};
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PGSEEK_STACK_BYTES);
    if (pthread_create(&thread, &attributes, run_thread, &run) == 0)
        pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    return run.result;
}
