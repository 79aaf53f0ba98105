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
    {"float4", 700, "b", NULL, "pg_catalog", NULL},
    {"bpchar", 1042, "b", "default d en_US.UTF-8 2.36", "pg_catalog", NULL},
    {"timestamp", 1114, "b", NULL, "pg_catalog", NULL},
    {"interval", 1186, "b", NULL, "pg_catalog", NULL},
    {"jsonb", 3802, "b", NULL, "pg_catalog", NULL},
    {"name", 19, "b", "C c ", "pg_catalog", NULL},
    {"int4range", 3904, "r", NULL, "pg_catalog", NULL},
    {"record", 2249, "p", NULL, "pg_catalog", NULL},
    {"unknown", 705, "p", NULL, NULL, NULL},
    {"_text", 1009, "b", "default d en_US.UTF-8 2.36", "pg_catalog", NULL},
    {"pair", 16402, "c", NULL, "pg_catalog", NULL},
};

/* Domains: declared types whose facts are those of another one. */
static const struct {
    const char *name;
    uint32_t oid;
    const char *base;
} domains[] = {{"posint", 16410, "int4"}, {"slug", 16411, "text"}};

static const struct {
    const char *schema, *name;
    uint32_t oid;
    const char *deterministic;
} collations[] = {{"pg_catalog", "default", 100, "true"},
                  {"pg_catalog", "C", 950, "true"},
                  {"pg_catalog", "en_US", 12345, "true"},
                  {"public", "ci", 16407, "false"}};

static void die(const char *what, const char *line)
{
    fprintf(stderr, "fixture: %s: %s\n", what, line);
    abort();
}

/* Of a domain: its base type. */
static const struct type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        if (!strcmp(domains[i].name, name))
            name = domains[i].base;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name))
            return &types[i];
    return NULL;
}

uint32_t fixture_type(const char *name)
{
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        if (!strcmp(domains[i].name, name))
            return domains[i].oid;
    const struct type *type = find_type(name);
    return type ? type->oid : 0;
}

/* ---- reading a schema ---- */

struct loader {
    struct pgseek_facts *facts;
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
    const char *written = pgseek_facts_asked(loader->facts, PGSEEK_ASKED_SCHEMA, i);

    if (strcmp(pgseek_facts_asked(loader->facts, PGSEEK_ASKED_RELATION, i), name) != 0)
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
    const char *definition = strstr(line, " AS ");
    const char *partition = strstr(line, " BY ");
    char schema[64];
    char name[64];
    char fields[1024];

    if (sscanf(line, "%*s %63[^.].%63s", schema, name) != 2)
        die("no schema.name", line);
    loader->oid = 1000 + 100 * ++loader->things;
    loader->attnum = 0;
    loader->ord = ord && is_asked(loader, ord - 1, schema, name) ? ord : 0;
    for (size_t i = 0; loader->ord && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].word, word) != 0)
            continue;
        snprintf(fields, sizeof fields, "{\"%s\",%s,%s,true,true,%s%s%s,%s,%s%s%s}", schema, kinds[i].kind,
                 kinds[i].kids, definition ? "\"" : "", definition ? definition + 4 : "NULL", definition ? "\"" : "",
                 definition ? "700" : "NULL", partition ? "\"" : "", partition ? partition + 4 : "NULL",
                 partition ? "\"" : "");
        put_row(loader, "R", ord, loader->oid, 0, name, fields);
    }
}

/* A type under the oid that was asked for. */
static void put_type(struct loader *loader, uint32_t oid, const struct type *type)
{
    static const char *const names[] = {"<", "<=", "=", ">=", ">"};
    char name[128];
    char fields[1024];
    int len = snprintf(fields, sizeof fields, "{%u,%s,%s", type->oid, type->kind, type->oid == 1033 ? "false" : "true");

    for (int i = 0; i < 5; i++)
        len += snprintf(fields + len, sizeof fields - (size_t)len, ",%s,%s", type->operators ? type->operators : "NULL",
                        type->operators ? names[i] : "NULL");
    snprintf(fields + len, sizeof fields - (size_t)len, ",%s%s%s}", type->labels ? "\"" : "",
             type->labels ? type->labels : "NULL", type->labels ? "\"" : "");
    snprintf(name, sizeof name, "%s.%s", type->oid < 16384 ? "pg_catalog" : "public", type->name);
    put_row(loader, "T", 1, oid, 0, name, fields);
}

static void read_column(struct loader *loader, const char *name, const char *line)
{
    char type_name[64];
    char fields[1024];

    if (sscanf(line, "%*s %63s", type_name) != 1 || !find_type(type_name))
        die("no such type", line);
    const struct type *type = find_type(type_name);
    snprintf(loader->columns[++loader->attnum], sizeof loader->columns[0], "%s", name);
    const char *deterministic = has_word(line, "ci") ? "false" : "true";
    snprintf(fields, sizeof fields, "{%u,%s,%s,%s,%s,\"%s\"}", fixture_type(type_name),
             has_word(line, "notnull") ? "true" : "false", has_word(line, "noselect") ? "false" : "true",
             type->collation ? "100" : "0", type->collation ? deterministic : "NULL",
             type->collation ? type->collation : "");
    if (!loader->ord)
        return;
    put_row(loader, "C", loader->ord, loader->oid, loader->attnum, name, fields);
    put_type(loader, fixture_type(type_name), type);
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
    const char *aggregate = has_word(line, "aggregate") ? "true" : "false";
    snprintf(fields, sizeof fields, "{%s,%s,%s,%s,%s,%s}", volatility, has_word(line, "set") ? "true" : "false",
             aggregate, aggregate, has_word(line, "user") ? "false" : "true", has_word(line, "user") ? "4711" : "NULL");
    for (size_t i = 0; i < pgseek_facts_asked_count(loader->facts, PGSEEK_ASKED_FUNCTION); i++)
        if (!strcmp(pgseek_facts_asked(loader->facts, PGSEEK_ASKED_FUNCTION, i), name))
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

static void answer_types(struct loader *loader)
{
    for (size_t i = 0; i < pgseek_facts_asked_count(loader->facts, PGSEEK_ASKED_TYPE); i++) {
        uint32_t oid = (uint32_t)strtoul(pgseek_facts_asked(loader->facts, PGSEEK_ASKED_TYPE, i), NULL, 10);

        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            if (types[t].oid == oid)
                put_type(loader, oid, &types[t]);
        for (size_t d = 0; d < sizeof domains / sizeof *domains; d++)
            if (domains[d].oid == oid)
                put_type(loader, oid, find_type(domains[d].base));
    }
}

static void answer_collations(struct loader *loader)
{
    char fields[128];

    for (size_t i = 0; i < pgseek_facts_asked_count(loader->facts, PGSEEK_ASKED_COLLATION); i++) {
        const char *schema = pgseek_facts_asked(loader->facts, PGSEEK_ASKED_COLLATION_SCHEMA, i);
        const char *name = pgseek_facts_asked(loader->facts, PGSEEK_ASKED_COLLATION, i);

        for (size_t c = 0; c < sizeof collations / sizeof *collations; c++) {
            if (strcmp(collations[c].name, name) != 0 || (schema && strcmp(collations[c].schema, schema) != 0))
                continue;
            snprintf(fields, sizeof fields, "{%s,\"%s 1.0\"}", collations[c].deterministic, name);
            put_row(loader, "L", i + 1, collations[c].oid, 0, name, fields);
        }
    }
}

void fixture_answer(const char *schema, struct pgseek_facts *facts)
{
    struct loader loader = {.facts = facts};

    for (size_t ord = 0; ord <= pgseek_facts_asked_count(facts, PGSEEK_ASKED_RELATION); ord++)
        read_schema(&loader, schema, ord);
    answer_types(&loader);
    answer_collations(&loader);
    pgseek_facts_answered(facts);
}

struct pgseek_facts *fixture_facts(const char *schema, const struct pgseek_query *query)
{
    struct pgseek_facts *facts = pgseek_facts_new(query);

    if (!facts)
        die("out of memory", "");
    fixture_answer(schema, facts);
    return facts;
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

/* Cuts the type off behind a name; 0 when there is none. */
static uint32_t cut_type(char *name)
{
    char *blank = strrchr(name, ' ');
    uint32_t oid = blank ? fixture_type(blank + 1) : 0;

    if (oid)
        *blank = '\0';
    return oid;
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
        out->columns[i] = (struct pgseek_column){.name = out->names[i], .type_oid = cut_type(out->names[i])};
    out->description = (struct pgseek_description){out->params, nparams, out->columns, ncolumns};
    return &out->description;
}

struct pgseek_query *fixture_query(const char *sql, enum pgseek_reason *reason)
{
    const struct pgseek_reading reading = {.standard_strings = true, .ascii_safe_encoding = true};

    return pgseek_query_new(sql, strlen(sql), &reading, reason);
}

/* Describes the text that is asked for by the next of `probes`, which end with semicolons. */
static void answer_probe(struct pgseek_facts *facts, const char **probes)
{
    struct fixture_description description;
    char columns[1024];
    size_t probe_len;

    if (!pgseek_facts_probe(facts, &probe_len) || !*probes || !**probes)
        return;
    size_t len = strcspn(*probes, ";");
    snprintf(columns, sizeof columns, "%.*s", (int)len, *probes);
    *probes += len + ((*probes)[len] == ';');
    if (!pgseek_facts_described(facts, fixture_describe(&description, columns, NULL)))
        die("out of memory", columns);
}

struct pgseek_plan *fixture_plan_of(const char *schema, const struct pgseek_query *query, const char *key,
                                    const struct pgseek_description *description, const char *probes,
                                    enum pgseek_reason *reason)
{
    struct pgseek_facts *facts = fixture_facts(schema, query);
    struct pgseek_plan *plan = NULL;

    for (int round = 0; round < PGSEEK_FACTS_MAX_ROUNDS; round++) {
        plan = pgseek_plan_new(query, facts, description, key, reason);
        if (plan || *reason != PGSEEK_REASON_MORE)
            break;
        answer_probe(facts, &probes);
        fixture_answer(schema, facts);
    }
    pgseek_facts_free(facts);
    return plan;
}

struct pgseek_plan *fixture_plan(const char *schema, const char *sql, const char *key,
                                 const struct pgseek_description *description, enum pgseek_reason *reason)
{
    struct pgseek_query *query = fixture_query(sql, reason);
    struct pgseek_plan *plan = query ? fixture_plan_of(schema, query, key, description, NULL, reason) : NULL;

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
