/* explain.c - asks the parser about one statement and prints the answer for a person.
 *
 * Without a database it can only say what no catalog can change; with one (libpq) it asks what a session would ask. */
#include "explain.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../parser/pgseek.h"
#include "../protocol/bytes.h"
#include "conf.h"
#include "explain_server.h"

/* The exit code is the verdict, so that a build can check its statements. */
enum explain_exit { EXPLAIN_REWRITE = 0, EXPLAIN_FAULT = 1, EXPLAIN_PASS = 2, EXPLAIN_REJECT = 3, EXPLAIN_UNKNOWN = 4 };

struct explain {
    const char *sql;
    const char *conf_path;  /* or NULL */
    const char *connection; /* or NULL: no database */
    bool is_verbose;
    struct conf *conf;
    struct explain_server server;
    struct pgseek_tag tag;
    struct pgseek_query *query;
    struct pgseek_facts *facts;
    struct pgseek_plan *plan;
    enum explain_exit exit;
};

static const char usage_text[] =
    "usage: pgseek explain [-c CONFIG] [-d CONNSTR] [-v] SQL\n"
    "\n"
    "Says what pgseek would do with a statement: rewrite it (exit code 0), pass it untouched (2) or reject it (3).\n"
    "Without -d no catalog is asked, so a statement that depends on it stays undecided (4). 1 is a failure.\n"
    "\n"
    "  -c CONFIG    the settings that a cursor is bound to (scope) are taken from there\n"
    "  -d CONNSTR   the database to ask, as libpq reads it, for example \"host=/run/postgresql dbname=shop\"\n"
    "  -v           also print the guard and what stands behind each parameter\n"
    "  SQL          the statement; - reads it from standard input\n";

/* ---- printing ---- */

/* One aligned line; the further lines of a text are indented below it. */
static void explain_line(const char *name, const char *text)
{
    printf("%-10s ", name);
    for (; *text; text++) {
        putchar(*text);
        if (*text == '\n' && text[1])
            printf("%-10s ", "");
    }
    putchar('\n');
}

static void explain_optional(const char *name, const char *text)
{
    if (text && text[0])
        explain_line(name, text);
}

static bool explain_end(struct explain *explain, enum explain_exit code)
{
    explain->exit = code;
    return false;
}

/* A tagged statement that cannot be rewritten. */
static bool explain_pass(struct explain *explain, enum pgseek_reason reason)
{
    bool is_refused = explain->tag.settings.cursor_kind == PGSEEK_CURSOR_TEXT || explain->tag.settings.strict;
    explain_line("verdict", is_refused ? "reject (PS005)" : "pass: the statement runs untouched, by OFFSET");
    explain_line("reason", pgseek_reason_name(reason));
    explain_line("why", pgseek_reason_why(reason));
    explain_optional("hint", pgseek_reason_hint(reason));
    if (explain->tag.settings.cursor_kind == PGSEEK_CURSOR_PARAM)
        explain_line("note", "a page with a cursor would be rejected (PS005)");
    return explain_end(explain, is_refused ? EXPLAIN_REJECT : EXPLAIN_PASS);
}

static bool explain_reject(struct explain *explain, const struct pgseek_error *error)
{
    explain_line("verdict", "reject");
    explain_line("code", pgseek_code_sqlstate(error->code));
    explain_line("message", error->message);
    explain_optional("detail", error->detail);
    explain_optional("hint", error->hint);
    return explain_end(explain, EXPLAIN_REJECT);
}

static bool explain_fault(struct explain *explain, const char *what)
{
    fprintf(stderr, "pgseek explain: %s%s", what, what[0] && what[strlen(what) - 1] == '\n' ? "" : "\n");
    return explain_end(explain, EXPLAIN_FAULT);
}

/* ---- the statement ---- */

static bool explain_read_tag(struct explain *explain)
{
    struct pgseek_error error = {0};
    pgseek_settings_init(&explain->tag.settings);
    enum pgseek_found found = pgseek_tag_read(explain->sql, strlen(explain->sql), true, &explain->tag, &error);
    if (found == PGSEEK_FOUND_BAD)
        return explain_reject(explain, &error);
    explain_line("tag",
                 found == PGSEEK_FOUND_SOME ? "found" : "none: untagged statements pass; explained as if it had one");
    if (explain->tag.settings.mode == PGSEEK_MODE_OFF)
        explain_line("note", "mode=off: it would pass; explained as if it were on");
    return true;
}

static bool explain_read_query(struct explain *explain)
{
    const struct pgseek_reading reading = {
        .standard_strings = !explain->connection || explain_server_has_standard_strings(&explain->server),
        .ascii_safe_encoding = true, /* we set client_encoding to UTF8 ourselves */
    };
    enum pgseek_reason reason = PGSEEK_REASON_NONE;
    explain->query = pgseek_query_new(explain->sql, strlen(explain->sql), &reading, &reason);
    return explain->query || explain_pass(explain, reason);
}

/* ---- the database ---- */

static bool explain_nomem(struct explain *explain)
{
    return explain_fault(explain, "out of memory");
}

static bool explain_describe(struct explain *explain)
{
    const struct pgseek_settings *settings = &explain->tag.settings;
    int cursor_param = settings->cursor_kind == PGSEEK_CURSOR_PARAM ? settings->cursor_param : 0;
    switch (explain_server_describe(&explain->server, explain->sql, cursor_param)) {
    case EXPLAIN_ANSWERED: return true;
    case EXPLAIN_NOMEM: return explain_nomem(explain);
    case EXPLAIN_REFUSED: break;
    }
    explain_line("verdict", "pass: the server refuses the statement itself");
    explain_line("server", explain_server_error(&explain->server));
    return explain_end(explain, EXPLAIN_PASS);
}

static bool explain_learn_facts(struct explain *explain)
{
    switch (explain_server_answer(&explain->server, explain->facts)) {
    case EXPLAIN_ANSWERED: return true;
    case EXPLAIN_NOMEM: return explain_nomem(explain);
    case EXPLAIN_REFUSED: break;
    }
    return explain_pass(explain, PGSEEK_REASON_FACTS_FAILED);
}

/* ---- the plan ---- */

static bool explain_make_plan(struct explain *explain)
{
    enum pgseek_reason reason = PGSEEK_REASON_MORE;
    explain->facts = pgseek_facts_new(explain->query);
    if (!explain->facts)
        return explain_nomem(explain);
    for (int round = 0; round < PGSEEK_FACTS_MAX_ROUNDS && reason == PGSEEK_REASON_MORE; round++) {
        if (!explain_learn_facts(explain))
            return false;
        reason = PGSEEK_REASON_NONE;
        explain->plan = pgseek_plan_new(explain->query, explain->facts, &explain->server.description,
                                        explain->tag.settings.key, &reason);
    }
    return explain->plan || explain_pass(explain, reason == PGSEEK_REASON_MORE ? PGSEEK_REASON_FACTS_FAILED : reason);
}

static void explain_print_slot(const struct explain *explain, const struct pgseek_shape *shape, size_t i)
{
    const struct pgseek_slot *slot = &shape->slots[i];
    char text[160];
    switch (slot->kind) {
    case PGSEEK_SLOT_CLIENT: snprintf(text, sizeof text, "$%zu is your own", i + 1); break;
    case PGSEEK_SLOT_KEY:
        snprintf(text, sizeof text, "$%zu is the cursor's key %u, %s", i + 1, slot->index + 1,
                 pgseek_plan_key(explain->plan, slot->index)->type_name);
        break;
    case PGSEEK_SLOT_FETCH:
        snprintf(text, sizeof text, "$%zu is the number of rows to fetch: LIMIT and one more", i + 1);
        break;
    case PGSEEK_SLOT_LIMIT: snprintf(text, sizeof text, "$%zu is LIMIT", i + 1); break;
    }
    explain_line("", text);
}

static void explain_print_shape(const struct explain *explain, const char *name, const struct pgseek_shape_key *key)
{
    enum pgseek_reason reason = PGSEEK_REASON_NONE;
    struct pgseek_shape *shape = pgseek_shape_new(explain->plan, key, &reason);
    putchar('\n');
    explain_line(name, shape ? shape->sql : pgseek_reason_why(reason));
    for (size_t i = 0; shape && explain->is_verbose && i < shape->nslots; i++)
        explain_print_slot(explain, shape, i);
    pgseek_shape_free(shape);
}

/* The texts for a boundary: with values in all keys and, for each key that may be NULL, with NULL in it. More NULLs at
 * once give the same forms again. */
static void explain_print_boundary(const struct explain *explain, const char *name, enum pgseek_seek seek)
{
    struct pgseek_shape_key key = {.seek = seek, .look_ahead = !pgseek_plan_is_locking(explain->plan)};
    char title[64];
    explain_print_shape(explain, name, &key);
    for (size_t i = 0; explain->is_verbose && i < pgseek_plan_key_count(explain->plan); i++) {
        if (!pgseek_plan_key(explain->plan, i)->nullable)
            continue;
        snprintf(title, sizeof title, "%s, key %zu is NULL", name, i + 1);
        key.null_mask = (uint32_t)1 << i;
        explain_print_shape(explain, title, &key);
    }
}

static void explain_print_key(const struct pgseek_key *key, size_t i)
{
    char text[512];
    const char *placement = key->nulls_first ? " NULLS FIRST" : " NULLS LAST";
    snprintf(text, sizeof text, "%zu: %s %s%s, %s%s", i + 1, key->expr, key->descending ? "DESC" : "ASC",
             key->nulls_first == key->descending ? "" : placement, key->type_name,
             key->nullable ? ", may be NULL" : "");
    explain_line("", text);
}

static void explain_print_guard(const struct explain *explain)
{
    const char *const *scope = explain->conf ? (const char *const *)explain->conf->scope : NULL;
    char *guard = pgseek_guard_new(explain->plan, scope, explain->conf ? explain->conf->nscope : 0);
    putchar('\n');
    explain_line("guard", guard ? guard : "out of memory");
    free(guard);
}

static void explain_print_plan(const struct explain *explain)
{
    explain_line("verdict", "rewrite");
    explain_line("key", pgseek_plan_summary(explain->plan));
    for (size_t i = 0; explain->is_verbose && i < pgseek_plan_key_count(explain->plan); i++)
        explain_print_key(pgseek_plan_key(explain->plan, i), i);
    const struct pgseek_shape_key first = {.seek = PGSEEK_SEEK_FIRST,
                                           .look_ahead = !pgseek_plan_is_locking(explain->plan)};
    explain_print_shape(explain, "first", &first);
    explain_print_boundary(explain, "next", PGSEEK_SEEK_AFTER);
    explain_print_boundary(explain, "previous", PGSEEK_SEEK_BEFORE);
    if (explain->is_verbose)
        explain_print_guard(explain);
}

/* What is still open without a database. */
static bool explain_without_database(struct explain *explain)
{
    explain_line("verdict", "undecided: the catalog must say whether the order identifies a row");
    for (size_t i = 0; i < pgseek_query_relation_count(explain->query); i++)
        explain_line(i == 0 ? "asks for" : "", pgseek_query_relation_name(explain->query, i));
    explain_line("hint", "name a database with -d");
    return explain_end(explain, EXPLAIN_UNKNOWN);
}

/* ---- the command ---- */

static bool explain_steps(struct explain *explain)
{
    if (!explain_read_tag(explain))
        return false;
    if (explain->connection && !explain_server_connect(&explain->server, explain->connection))
        return explain_fault(explain, explain_server_error(&explain->server));
    if (!explain_read_query(explain))
        return false;
    if (!explain->connection)
        return explain_without_database(explain);
    if (!explain_describe(explain) || !explain_make_plan(explain))
        return false;
    explain_print_plan(explain);
    return true;
}

static void *explain_thread(void *argument)
{
    struct explain *explain = argument;
    explain->exit = EXPLAIN_REWRITE;
    bool is_plan = explain_steps(explain);
    if (is_plan != (explain->exit == EXPLAIN_REWRITE))
        explain->exit = EXPLAIN_FAULT;
    return NULL;
}

/* Parsing needs a deeper stack than main has. */
static bool explain_on_deep_stack(struct explain *explain)
{
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0)
        return explain_fault(explain, "out of memory");
    int rc = pthread_attr_setstacksize(&attributes, PGSEEK_STACK_BYTES);
    if (rc == 0)
        rc = pthread_create(&thread, &attributes, explain_thread, explain);
    pthread_attr_destroy(&attributes);
    if (rc != 0)
        return explain_fault(explain, strerror(rc));
    return pthread_join(thread, NULL) == 0;
}

static bool explain_read_arguments(struct explain *explain, int argc, char **argv)
{
    int letter;
    optind = 2; /* argv[1] is "explain" */
    while ((letter = getopt(argc, argv, "+c:d:v")) != -1) {
        if (letter == 'c')
            explain->conf_path = optarg;
        else if (letter == 'd')
            explain->connection = optarg;
        else if (letter == 'v')
            explain->is_verbose = true;
        else
            return false;
    }
    if (optind != argc - 1)
        return false;
    explain->sql = argv[optind];
    return true;
}

/* "-": all of standard input. */
static bool explain_read_sql(struct explain *explain, struct buf *input)
{
    if (strcmp(explain->sql, "-") != 0)
        return true;
    char chunk[4096];
    size_t got;
    while ((got = fread(chunk, 1, sizeof chunk, stdin)) > 0)
        buf_put(input, chunk, got);
    buf_put_u8(input, 0);
    if (input->failed || ferror(stdin))
        return explain_fault(explain, "could not read standard input");
    explain->sql = (const char *)input->ptr;
    return true;
}

static bool explain_load_conf(struct explain *explain)
{
    if (!explain->conf_path)
        return true;
    explain->conf = conf_load(explain->conf_path, stderr);
    return explain->conf || explain_end(explain, EXPLAIN_FAULT);
}

static void explain_fini(struct explain *explain)
{
    pgseek_plan_free(explain->plan);
    pgseek_facts_free(explain->facts);
    pgseek_query_free(explain->query);
    pgseek_tag_fini(&explain->tag);
    explain_server_fini(&explain->server);
    conf_unref(explain->conf);
}

int explain_main(int argc, char **argv)
{
    struct explain explain = {.exit = EXPLAIN_FAULT};
    struct buf input = {0};
    if (!explain_read_arguments(&explain, argc, argv)) {
        fputs(usage_text, stderr);
        return EXPLAIN_FAULT;
    }
    if (explain_read_sql(&explain, &input) && explain_load_conf(&explain) && !explain_on_deep_stack(&explain))
        explain.exit = EXPLAIN_FAULT;
    explain_fini(&explain);
    buf_fini(&input);
    return (int)explain.exit;
}
