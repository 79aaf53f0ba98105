/* answer.c - reads texts by their first words and a few marks; no more of SQL than the conversations need. */
#include "answer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../parser/pgseek.h"
#include "../../proxy/protocol/wire.h"

enum { OID_BYTEA = 17, OID_INT8 = 20, OID_INT4 = 23, OID_TEXT = 25, OID_TIMESTAMPTZ = 1184, OID_POSTS = 16384 };

/* ---- the catalog ---- */

/* What PostgreSQL 15 answers to the facts statement about
 * CREATE TABLE posts (id int8 PRIMARY KEY, created_at timestamptz NOT NULL, body text). */
static const char *const facts[][PGSEEK_FACTS_COLUMNS] = {
    {"C", "1", "16384", "1", "id", "{20,true,true,0,NULL,NULL}"},
    {"C", "1", "16384", "2", "created_at", "{1184,true,true,0,NULL,NULL}"},
    {"C", "1", "16384", "3", "body", "{25,false,true,100,true,\"default d C.UTF-8 c  \"}"},
    {"O", "1", NULL, NULL, "foreign operators", "{false}"},
    {"R", "1", "16384", NULL, "posts", "{public,r,false,true,true,NULL,NULL,NULL}"},
    {"T", "1", "20", NULL, "pg_catalog.int8",
     "{20,b,true,pg_catalog,<,pg_catalog,<=,pg_catalog,=,pg_catalog,>=,pg_catalog,>,NULL}"},
    {"T", "1", "1184", NULL, "pg_catalog.timestamptz",
     "{1184,b,true,pg_catalog,<,pg_catalog,<=,pg_catalog,=,pg_catalog,>=,pg_catalog,>,NULL}"},
    {"T", "1", "25", NULL, "pg_catalog.text",
     "{25,b,true,pg_catalog,<,pg_catalog,<=,pg_catalog,=,pg_catalog,>=,pg_catalog,>,NULL}"},
    {"U", "1", "16389", NULL, "posts_pkey", "{1,true,false,true}"},
};

static const char *const context[PGSEEK_CTX_COUNT] = {"\"$user\", public", "u", "d", "on", "UTF8", "0", "UTC"};

static const char filter_digest[] = "the filter's 16.";
static const char scope_digest[] = "the scope's 16 b";

/* ---- texts ---- */

/* A copy without comments. */
static char *strip(struct span sql)
{
    char *text = malloc(sql.len + 1);
    size_t len = 0;
    for (size_t i = 0; text && i < sql.len;) {
        const char *at = (const char *)sql.ptr + i;
        const char *end = NULL;
        if (sql.len - i >= 2 && memcmp(at, "/*", 2) == 0)
            end = memmem(at, sql.len - i, "*/", 2);
        if (end)
            i = (size_t)(end - (const char *)sql.ptr) + 2;
        else
            text[len++] = (char)sql.ptr[i++];
    }
    while (text && len && isspace((unsigned char)text[len - 1]))
        len--;
    if (text)
        text[len] = '\0';
    return text;
}

static bool starts(const char *text, const char *word)
{
    return strncasecmp(text, word, strlen(word)) == 0;
}

static size_t highest_param(const char *sql)
{
    size_t highest = 0;
    for (const char *at = strchr(sql, '$'); at; at = strchr(at + 1, '$')) {
        size_t n = strtoul(at + 1, NULL, 10);
        highest = n > highest ? n : highest;
    }
    return highest;
}

static void add_column(struct answer *answer, const char *name, size_t name_len, uint32_t type_oid, uint16_t attnum)
{
    if (answer->ncolumns == ANSWER_MAX_COLUMNS)
        return;
    struct answer_column *column = &answer->column[answer->ncolumns++];
    snprintf(column->name, sizeof column->name, "%.*s", (int)name_len, name);
    column->type_oid = type_oid;
    column->type_len = type_oid == OID_INT8 || type_oid == OID_TIMESTAMPTZ ? 8
                       : type_oid == OID_INT4                              ? 4
                                                                           : (uint16_t)-1;
    column->attnum = attnum;
    column->table_oid = attnum ? OID_POSTS : 0;
}

/* ---- the table posts ---- */

static const struct {
    const char *name;
    uint32_t type_oid;
    uint16_t attnum;
} posts_columns[] = {{"id", OID_INT8, 1}, {"created_at", OID_TIMESTAMPTZ, 2}, {"body", OID_TEXT, 3}};

static bool is_wrapped(const struct answer *answer)
{
    return starts(answer->sql, "SELECT c.*");
}

static bool is_union(const struct answer *answer)
{
    return strstr(answer->sql, " UNION ALL (");
}

/* A set operation's columns are of no table; their names are as bad as they can be. */
static void forget_tables(struct answer *answer)
{
    for (size_t i = 0; i < answer->ncolumns; i++) {
        snprintf(answer->column[i].name, sizeof answer->column[i].name, "u%zu", i + 1);
        answer->column[i].table_oid = 0;
        answer->column[i].attnum = 0;
    }
}

/* The select list up to FROM: known names, and the hidden key behind them. */
static void read_posts(struct answer *answer)
{
    const char *list = strstr(answer->sql, "select ");
    for (const char *at = list ? list + 7 : ""; *at && !starts(at, "from "); at++)
        for (size_t i = 0; i < sizeof posts_columns / sizeof *posts_columns; i++) {
            size_t len = strlen(posts_columns[i].name);
            if (at[-1] != ' ' || !starts(at, posts_columns[i].name) || isalnum((unsigned char)at[len]) ||
                starts(at + len, " + 0"))
                continue;
            add_column(answer, posts_columns[i].name, len, posts_columns[i].type_oid, posts_columns[i].attnum);
        }
    if (is_union(answer))
        forget_tables(answer);
    if (strstr(answer->sql, "AS pgseek_k1"))
        add_column(answer, "pgseek_k1", 9, OID_INT8, 1);
    if (strstr(answer->sql, "AS pgseek_k2"))
        add_column(answer, "pgseek_k2", 9, OID_INT8, 1);
    if (is_wrapped(answer))
        add_column(answer, "pgseek_r", 8, OID_INT8, 0);
    answer->kind = ANSWER_ROWS;
}

static int64_t int_of(const struct answer_value *value)
{
    char text[24] = "";
    if (value->len < 0)
        return -1;
    if (value->format == 0) {
        snprintf(text, sizeof text, "%.*s", (int)value->len, value->data ? (const char *)value->data : "");
        return strtoll(text, NULL, 10);
    }
    uint64_t bits = value->len > 0 && value->data[0] & 0x80 ? UINT64_MAX : 0;
    for (int32_t i = 0; i < value->len; i++)
        bits = bits << 8 | value->data[i];
    return (int64_t)bits;
}

/* The number behind a mark in the text: a literal, `(n)` or a parameter; `otherwise` when the mark is not there. */
static int64_t number_behind(const struct answer *answer, const char *mark, const struct answer_value *params,
                             int64_t otherwise)
{
    const char *at = strcasestr(answer->sql, mark);
    if (!at)
        return otherwise;
    at += strlen(mark);
    while (*at == ' ' || *at == '(')
        at++;
    if (*at != '$')
        return isdigit((unsigned char)*at) || *at == '-' ? strtoll(at, NULL, 10) : otherwise;
    size_t n = strtoul(at + 1, NULL, 10);
    bool is_null = n == 0 || n > answer->nparams || params[n - 1].len < 0;
    return is_null ? otherwise : int_of(&params[n - 1]);
}

struct posts_run { /* ids `first`, first + step ... `count` of them */
    int64_t first, step, count;
    int64_t page; /* wrapped: rows in front of the look-ahead row */
};

static struct posts_run plan_posts(const struct answer *answer, const struct answer_value *params, int rows)
{
    bool is_descending = strstr(answer->sql, "order by id desc") || strstr(answer->sql, "ORDER BY pgseek_k1 DESC");
    bool by_time = is_union(answer); /* by (created_at, id) in two directions; both hold the same number */
    int64_t low = number_behind(
        answer, by_time ? "\"created_at\" OPERATOR(pg_catalog.>)" : "\"id\" OPERATOR(pg_catalog.>)", params, 0);
    int64_t high = number_behind(
        answer, by_time ? "\"created_at\" OPERATOR(pg_catalog.<)" : "\"id\" OPERATOR(pg_catalog.<)", params, rows + 1);
    int64_t limit = number_behind(answer, " limit ", params, INT64_MAX);
    int64_t offset = number_behind(answer, " offset ", params, 0);
    int64_t count = high - low - 1 - offset;
    count = count < 0 ? 0 : count;
    struct posts_run run = {.count = count < limit ? count : limit, .step = is_descending ? -1 : 1};
    run.first = is_descending ? high - 1 - offset : low + 1 + offset;
    run.page = number_behind(answer, "c.pgseek_r OPERATOR(pg_catalog.>)", params, INT64_MAX);
    return run;
}

static void put_int8(struct buf *out, int64_t value, uint16_t format)
{
    char text[24];
    if (format == 1) {
        buf_put_i32(out, 8);
        buf_put_u64(out, (uint64_t)value);
        return;
    }
    int len = snprintf(text, sizeof text, "%lld", (long long)value);
    buf_put_i32(out, len);
    buf_put(out, text, (size_t)len);
}

static void put_post_value(struct buf *out, const struct answer_column *column, int64_t id, int64_t row,
                           uint16_t format)
{
    char text[40];
    int len;
    if (strcmp(column->name, "pgseek_r") == 0) {
        put_int8(out, row, format);
        return;
    }
    if (column->type_oid == OID_INT8 || (column->type_oid == OID_TIMESTAMPTZ && format == 1)) {
        put_int8(out, id, format);
        return;
    }
    if (column->type_oid == OID_TIMESTAMPTZ)
        len = snprintf(text, sizeof text, "2026-01-01 00:00:%02lld+00", (long long)id % 60);
    else
        len = snprintf(text, sizeof text, "b%lld", (long long)id);
    buf_put_i32(out, len);
    buf_put(out, text, (size_t)len);
}

static void put_post(const struct answer *answer, const uint16_t *formats, int64_t id, int64_t row, struct buf *out)
{
    size_t at = wire_open(out, 'D');
    buf_put_u16(out, (uint16_t)answer->ncolumns);
    for (size_t i = 0; i < answer->ncolumns; i++)
        put_post_value(out, &answer->column[i], id, row, formats[i]);
    wire_close(out, at);
}

static size_t put_posts(const struct answer *answer, const struct answer_value *params, const uint16_t *formats,
                        int rows, struct buf *out)
{
    struct posts_run run = plan_posts(answer, params, rows);
    if (!is_wrapped(answer)) {
        for (int64_t i = 0; i < run.count; i++)
            put_post(answer, formats, run.first + i * run.step, i + 1, out);
        return (size_t)run.count;
    }
    int64_t page = run.count < run.page ? run.count : run.page;
    for (int64_t i = page; i > 0; i--)
        put_post(answer, formats, run.first + (i - 1) * run.step, i, out);
    for (int64_t i = run.count; i > page; i--)
        put_post(answer, formats, run.first + (i - 1) * run.step, i, out);
    return (size_t)run.count;
}

/* ---- the proxy's own statements ---- */

static void put_texts(struct buf *out, const char *const *texts, size_t count)
{
    size_t at = wire_open(out, 'D');
    buf_put_u16(out, (uint16_t)count);
    for (size_t i = 0; i < count; i++) {
        buf_put_i32(out, texts[i] ? (int32_t)strlen(texts[i]) : -1);
        if (texts[i])
            buf_put_text(out, texts[i]);
    }
    wire_close(out, at);
}

/* What is asked for: with the table's name all of it, else nothing but types and operators. */
static size_t put_facts(const struct answer_value *names, struct buf *out)
{
    bool is_asked = names->len > 2;
    size_t count = 0;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (is_asked || strchr("OT", facts[i][0][0])) {
            put_texts(out, facts[i], PGSEEK_FACTS_COLUMNS);
            count++;
        }
    return count;
}

/* The digests that are expected, if any are, must be those of now. */
static const char *put_guard(const struct answer *answer, const struct answer_value *params, struct buf *out)
{
    const struct answer_value *expected = &params[answer->nparams - 2];
    if (expected[0].len >= 0 && (expected[0].len != 16 || memcmp(expected[0].data, filter_digest, 16) != 0))
        return "2201F";
    if (expected[1].len >= 0 && (expected[1].len != 16 || memcmp(expected[1].data, scope_digest, 16) != 0))
        return "2201E";
    size_t at = wire_open(out, 'D');
    buf_put_u16(out, 3);
    buf_put_i32(out, 4);
    buf_put_i32(out, 1);
    buf_put_i32(out, 16);
    buf_put_text(out, filter_digest);
    buf_put_i32(out, 16);
    buf_put_text(out, scope_digest);
    wire_close(out, at);
    return NULL;
}

static void put_echo(const struct answer_value *value, struct buf *out)
{
    size_t at = wire_open(out, 'D');
    buf_put_u16(out, 1);
    buf_put_i32(out, value->len);
    if (value->len > 0)
        buf_put(out, value->data, (size_t)value->len);
    wire_close(out, at);
}

/* ---- all texts ---- */

static bool is_facts(const struct answer *answer)
{
    return strncmp(answer->sql, pgseek_facts_sql, 64) == 0;
}

static bool is_context(const struct answer *answer)
{
    return starts(answer->sql, "SELECT pg_catalog.current_setting('search_path'), CURRENT_USER");
}

static bool is_guard(const struct answer *answer)
{
    return starts(answer->sql, "SELECT 1 OPERATOR(pg_catalog./)") && highest_param(answer->sql) > 2;
}

static bool is_echo(const struct answer *answer)
{
    return starts(answer->sql, "SELECT $") && highest_param(answer->sql) > 0 && strchr(answer->sql, '"') &&
           strstr(answer->sql, "::pg_catalog.text AS \"");
}

/* `SELECT $n::pg_catalog.text AS "name"`: what stands in for SHOW and set_config. */
static void read_echo(struct answer *answer)
{
    const char *name = strchr(answer->sql, '"') + 1;
    add_column(answer, name, strcspn(name, "\""), OID_TEXT, 0);
    answer->kind = ANSWER_ROWS;
}

static void add_many(struct answer *answer, size_t count, uint32_t type_oid)
{
    for (size_t i = 0; i < count; i++)
        add_column(answer, "?column?", 8, type_oid, 0);
    answer->kind = ANSWER_ROWS;
}

static void read_select(struct answer *answer)
{
    if (is_facts(answer))
        add_many(answer, PGSEEK_FACTS_COLUMNS, OID_TEXT);
    else if (is_context(answer))
        add_many(answer, PGSEEK_CTX_COUNT, OID_TEXT);
    else if (is_guard(answer))
        add_many(answer, 3, OID_BYTEA);
    else if (is_echo(answer))
        read_echo(answer);
    else if (strstr(answer->sql, " posts"))
        read_posts(answer);
    else if (starts(answer->sql, "select \""))
        answer->sqlstate = "42703";
    else if (strstr(answer->sql, " missing"))
        answer->sqlstate = "42P01";
    else
        add_many(answer, 1, OID_INT4);
    if (answer->sqlstate)
        answer->kind = ANSWER_ERROR;
}

static const struct {
    const char *word;
    enum answer_kind kind;
    const char *tag;
} commands[] = {
    {"begin", ANSWER_BEGIN, "BEGIN"},
    {"start transaction", ANSWER_BEGIN, "START TRANSACTION"},
    {"commit", ANSWER_COMMIT, "COMMIT"},
    {"end", ANSWER_COMMIT, "COMMIT"},
    {"rollback to", ANSWER_ROLLBACK_TO, "ROLLBACK"},
    {"rollback", ANSWER_ROLLBACK, "ROLLBACK"},
    {"savepoint", ANSWER_COMMAND, "SAVEPOINT"},
    {"release", ANSWER_COMMAND, "RELEASE"},
    {"set", ANSWER_COMMAND, "SET"},
    {"reset", ANSWER_COMMAND, "RESET"},
    {"do", ANSWER_COMMAND, "DO"},
    {"call", ANSWER_COMMAND, "CALL"},
    {"create", ANSWER_COMMAND, "CREATE TABLE"},
    {"deallocate all", ANSWER_DEALLOCATE, "DEALLOCATE ALL"},
    {"deallocate", ANSWER_DEALLOCATE, "DEALLOCATE"},
    {"discard all", ANSWER_DISCARD, "DISCARD ALL"},
    {"close", ANSWER_COMMAND, "CLOSE CURSOR"},
    {"copy posts to", ANSWER_COPY_OUT, ""},
    {"copy", ANSWER_COPY_IN, ""},
    {"start_replication", ANSWER_COPY_BOTH, ""},
};

static bool read_command(struct answer *answer)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (!starts(answer->sql, commands[i].word))
            continue;
        answer->kind = commands[i].kind;
        snprintf(answer->tag, sizeof answer->tag, "%s", commands[i].tag);
        if (answer->kind == ANSWER_DEALLOCATE && strcmp(answer->tag, "DEALLOCATE") == 0)
            snprintf(answer->name, sizeof answer->name, "%.60s", answer->sql + 11);
        return true;
    }
    return false;
}

static void read_params(struct answer *answer, const uint32_t *oids, size_t noids)
{
    size_t used = highest_param(answer->sql);
    answer->nparams = noids > used ? noids : used;
    if (answer->nparams > ANSWER_MAX_PARAMS) {
        answer->nparams = 0;
        answer->kind = ANSWER_ERROR;
        answer->sqlstate = "08P01";
        return;
    }
    for (size_t i = 0; i < answer->nparams; i++) {
        answer->param_oid[i] = i < noids && oids[i] && oids[i] != 705 ? oids[i] : OID_INT8;
        if (i >= used && (i >= noids || !oids[i])) { /* could not determine its type */
            answer->kind = ANSWER_ERROR;
            answer->sqlstate = "42P18";
        }
    }
}

void answer_read(struct answer *answer, struct span sql, const uint32_t *oids, size_t noids)
{
    memset(answer, 0, sizeof *answer);
    char *stripped = strip(sql);
    char *text = stripped;
    while (isspace((unsigned char)*text))
        text++;
    answer->sql = strdup(text);
    free(stripped);
    if (!*answer->sql) {
        answer->kind = ANSWER_EMPTY;
    } else if (starts(answer->sql, "select") || starts(answer->sql, "(select") || is_facts(answer)) {
        read_select(answer);
    } else if (!read_command(answer)) {
        answer->kind = ANSWER_ERROR;
        answer->sqlstate = "42601";
    }
    if (answer->kind != ANSWER_ERROR)
        read_params(answer, oids, noids);
}

void answer_fini(struct answer *answer)
{
    free(answer->sql);
    answer->sql = NULL;
}

const char *answer_rows(const struct answer *answer, const struct answer_value *params, const uint16_t *formats,
                        int table_rows, struct buf *out, size_t *count)
{
    *count = 0;
    if (answer->kind != ANSWER_ROWS)
        return NULL;
    *count = 1;
    if (is_facts(answer)) {
        *count = put_facts(&params[1], out);
    } else if (is_context(answer)) {
        put_texts(out, context, PGSEEK_CTX_COUNT);
    } else if (is_guard(answer)) {
        const char *sqlstate = put_guard(answer, params, out);
        *count = sqlstate ? 0 : 1;
        return sqlstate;
    } else if (is_echo(answer)) {
        put_echo(&params[answer->nparams - 1], out);
    } else if (strstr(answer->sql, " posts")) {
        if (number_behind(answer, " limit ", params, 0) < 0) {
            *count = 0;
            return "2201W";
        }
        *count = put_posts(answer, params, formats, table_rows, out);
    } else if (strstr(answer->sql, "1/0")) {
        *count = 0;
        return "22012";
    } else {
        put_texts(out, &(const char *){answer->sql + 7}, 1);
    }
    return NULL;
}
