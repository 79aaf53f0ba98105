/* shape_walk.c - walks every page of many statements on a real server, by the shapes that the parser makes.
 *
 * It talks to the server directly, so it tests the parser's half alone: facts, keys, predicates, wraps, guard. Each
 * statement comes with another one that gives the same rows in the full order, written by hand; whatever way the pages
 * are walked, their rows must be those. Usage: shape_walk CONNINFO */
#include "../../parser/pgseek.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* $1 of every statement is LIMIT, as int8. */
struct walk_case {
    const char *sql;
    const char *oracle; /* the same without LIMIT, in the full order */
    const char *key;    /* key= or NULL */
};

static const char schema[] =
    "CREATE SCHEMA walk; SET search_path = walk, public;"
    "CREATE TYPE walk.mood AS ENUM ('sad', 'ok', 'glad');"
    "CREATE DOMAIN walk.score AS numeric(6,2);"
    "CREATE TABLE booking (id bigint PRIMARY KEY, venue_id int NOT NULL, placed_at timestamptz NOT NULL,"
    "  note varchar(20) NOT NULL, mood walk.mood NOT NULL, score walk.score, ratio float8 NOT NULL, tag text COLLATE "
    "\"C\" NOT NULL,"
    "  flags int[] NOT NULL, code uuid NOT NULL, open bool NOT NULL, price numeric NOT NULL, spare int,"
    "  data bytea NOT NULL, day date NOT NULL, took interval NOT NULL, letter char(3) NOT NULL, addr inet NOT NULL,"
    "  UNIQUE (venue_id, note, id), UNIQUE (code));"
    "INSERT INTO booking SELECT i * 7 % 111, i % 3, '2024-01-01'::timestamptz + i % 5 * interval '1 us',"
    "  'n' || i % 4, (ARRAY['sad','ok','glad'])[1 + i % 3]::walk.mood, i % 7 / 3.0,"
    "  (ARRAY['NaN','Infinity','-Infinity','0','-0','1.5'])[1 + i % 6]::float8, (ARRAY['B','a','Z','\u00e9'])[1 + i % "
    "4],"
    "  (ARRAY['{1,NULL}','{}','{1,2}'])[1 + i % 3]::int[], md5(i::text)::uuid, i % 2 = 0,"
    "  (ARRAY['1.0','1.00','NaN','-3'])[1 + i % 4]::numeric, i,"
    "  decode(to_hex(i % 3 + 16), 'hex'), '2024-02-28'::date + i % 3,"
    "  (ARRAY['1 mon','30 days','720 hours'])[1 + i % 3]::interval, (ARRAY['a','ab','b'])[1 + i % 3],"
    "  (ARRAY['10.0.0.1','10.0.0.0/8','::1'])[1 + i % 3]::inet"
    "  FROM generate_series(1, 110) i;"
    "CREATE TABLE seat (id int PRIMARY KEY, booking_id bigint NOT NULL REFERENCES booking, seat_no int NOT NULL,"
    "  UNIQUE (booking_id, seat_no));"
    "INSERT INTO seat SELECT i, i * 13 % 111, i / 111 FROM generate_series(1, 300) i WHERE i * 13 % 111 > 0 AND EXISTS "
    "(SELECT FROM booking b WHERE b.id = i * 13 % 111);"
    "CREATE TABLE pair (a int NOT NULL, b int NOT NULL, c int NOT NULL, PRIMARY KEY (a, b));"
    "INSERT INTO pair SELECT i % 5, i / 5, i % 2 FROM generate_series(0, 99) i;"
    "CREATE TABLE part (id int NOT NULL, at date NOT NULL, v int NOT NULL, PRIMARY KEY (at, id)) PARTITION BY RANGE "
    "(at);"
    "CREATE TABLE part1 PARTITION OF part FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');"
    "CREATE TABLE part2 PARTITION OF part FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');"
    "INSERT INTO part SELECT i, '2024-01-20'::date + i % 20, i % 3 FROM generate_series(1, 120) i;"
    "CREATE TABLE plain (x int NOT NULL, y int NOT NULL); INSERT INTO plain SELECT i % 3, i FROM generate_series(1, "
    "60) i;"
    "CREATE TABLE \"Odd \"\"Name\" (\"Id\" int PRIMARY KEY, \"limit\" int NOT NULL);"
    "INSERT INTO \"Odd \"\"Name\" SELECT i, i % 4 FROM generate_series(1, 50) i;"
    "CREATE TABLE word (w citext NOT NULL, id int NOT NULL, PRIMARY KEY (id));"
    "INSERT INTO word SELECT (ARRAY['a','A','b','B','c'])[1 + i % 5], i FROM generate_series(1, 70) i;";

static const struct walk_case cases[] = {
    {"SELECT * FROM booking ORDER BY placed_at DESC, id DESC LIMIT $1",
     "SELECT * FROM booking ORDER BY placed_at DESC, id DESC", NULL},
    {"SELECT id, note FROM booking ORDER BY placed_at LIMIT $1", "SELECT id, note FROM booking ORDER BY placed_at, id",
     NULL},
    {"SELECT note FROM booking b WHERE venue_id = 1 OR venue_id = 2 ORDER BY b.note DESC LIMIT $1",
     "SELECT note FROM booking WHERE venue_id IN (1,2) ORDER BY note DESC, id DESC", NULL},
    {"SELECT id, mood AS m FROM booking ORDER BY m LIMIT $1", "SELECT id, mood FROM booking ORDER BY mood, id", NULL},
    {"SELECT id, -id AS placed_at, ratio FROM booking ORDER BY 3 DESC LIMIT $1",
     "SELECT id, -id, ratio FROM booking ORDER BY ratio DESC, id DESC", NULL},
    {"SELECT -id AS id, note FROM booking ORDER BY note LIMIT $1",
     "SELECT -id, note FROM booking b ORDER BY note, b.id", NULL},
    {"SELECT id FROM booking ORDER BY tag, flags, open LIMIT $1",
     "SELECT id FROM booking ORDER BY tag, flags, open, id", NULL},
    {"SELECT id, id, NULL, 'x', row(1,2) FROM booking ORDER BY price DESC NULLS LAST FETCH FIRST $1 ROWS ONLY",
     "SELECT id, id, NULL, 'x', row(1,2) FROM booking ORDER BY price DESC, id DESC", NULL},
    {"SELECT code FROM booking ORDER BY code OFFSET 0 LIMIT $1", "SELECT code FROM booking ORDER BY code", NULL},
    {"SELECT id FROM booking ORDER BY data, day LIMIT $1", "SELECT id FROM booking ORDER BY data, day, id", NULL},
    {"SELECT id FROM booking ORDER BY took DESC, letter DESC, addr DESC LIMIT $1",
     "SELECT id FROM booking ORDER BY took DESC, letter DESC, addr DESC, id DESC", NULL},
    {"SELECT id, score FROM booking WHERE score IS NOT NULL ORDER BY score LIMIT $1 /* hint */",
     "SELECT id, score FROM booking WHERE score IS NOT NULL ORDER BY score, id", NULL},
    {"SELECT id FROM booking ORDER BY placed_at LIMIT $1 FOR UPDATE", "SELECT id FROM booking ORDER BY placed_at, id",
     NULL},
    {"SELECT id FROM booking WHERE venue_id = 1 AND note = 'n1' ORDER BY venue_id DESC LIMIT $1 -- end",
     "SELECT id FROM booking WHERE venue_id = 1 AND note = 'n1' ORDER BY id DESC", NULL},
    {"SELECT a, b, c FROM pair ORDER BY c LIMIT $1", "SELECT a, b, c FROM pair ORDER BY c, a, b", NULL},
    {"SELECT b FROM pair WHERE a = 3 ORDER BY c DESC LIMIT $1",
     "SELECT b FROM pair WHERE a = 3 ORDER BY c DESC, b DESC", NULL},
    {"SELECT b.id, s.seat_no FROM booking b JOIN seat s ON s.booking_id = b.id ORDER BY b.placed_at DESC LIMIT $1",
     "SELECT b.id, s.seat_no FROM booking b JOIN seat s ON s.booking_id = b.id ORDER BY b.placed_at DESC, b.id DESC, "
     "s.id DESC",
     NULL},
    {"SELECT b.note, s.* FROM seat s, booking b WHERE s.booking_id = b.id AND b.venue_id = 2 ORDER BY s.seat_no LIMIT "
     "$1",
     "SELECT b.note, s.* FROM seat s, booking b WHERE s.booking_id = b.id AND b.venue_id = 2 ORDER BY s.seat_no, s.id",
     NULL},
    {"SELECT p.a, q.b FROM pair p CROSS JOIN pair q WHERE q.a = 1 AND p.b < 4 ORDER BY p.c, q.c LIMIT $1",
     "SELECT p.a, q.b FROM pair p, pair q WHERE q.a = 1 AND p.b < 4 ORDER BY p.c, q.c, q.b, p.a, p.b", NULL},
    {"SELECT * FROM booking b JOIN pair p USING (id) ORDER BY 1 LIMIT $1", NULL, NULL},
    {"SELECT * FROM part ORDER BY at DESC LIMIT $1", "SELECT * FROM part ORDER BY at DESC, id DESC", NULL},
    {"SELECT v, id FROM part WHERE v = 1 ORDER BY at, id LIMIT $1",
     "SELECT v, id FROM part WHERE v = 1 ORDER BY at, id", NULL},
    {"SELECT x FROM plain ORDER BY x LIMIT $1", "SELECT x FROM plain ORDER BY x, y", "y"},
    {"SELECT x FROM plain p ORDER BY p.x DESC LIMIT $1", "SELECT x FROM plain ORDER BY x DESC, y DESC", "p.y"},
    {"SELECT o.\"limit\" AS \"from\" FROM \"Odd \"\"Name\" AS o ORDER BY o.limit LIMIT $1",
     "SELECT \"limit\" FROM \"Odd \"\"Name\" ORDER BY \"limit\", \"Id\"", NULL},
    {"SELECT w, id FROM word ORDER BY w LIMIT $1", "SELECT w, id FROM word ORDER BY w, id", NULL},
    {"SELECT w FROM word AS v(x, y) WHERE y > 10 ORDER BY x DESC, y DESC LIMIT $1", NULL, NULL},
    {"SELECT x, y FROM word AS v(x, y) WHERE y > 10 ORDER BY x DESC, y DESC LIMIT $1",
     "SELECT w, id FROM word WHERE id > 10 ORDER BY w DESC, id DESC", NULL},
    {"SELECT FROM booking ORDER BY id LIMIT $1", "SELECT FROM booking ORDER BY id", NULL},
    {"SELECT id IS DISTINCT FROM 3 AS limit, (SELECT count(*) FROM seat s WHERE s.booking_id = b.id ORDER BY 1 LIMIT "
     "1) FROM booking b ORDER BY b.placed_at LIMIT $1",
     "SELECT id IS DISTINCT FROM 3, (SELECT count(*) FROM seat s WHERE s.booking_id = b.id) FROM booking b ORDER BY "
     "placed_at, id",
     NULL},
};

static const char *const sizes[] = {"1", "2", "3", "7", "20", "1000"};

static PGconn *conn;
static int faults;

__attribute__((format(printf, 2, 3))) static void fault(const struct walk_case *walk, const char *format, ...)
{
    va_list args;

    faults++;
    printf("FAULT %s\n      ", walk->sql);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

/* ---- the server ---- */

static PGresult *must(PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return result;
    printf("server: %s", PQerrorMessage(conn));
    exit(2);
}

static void run(const char *sql)
{
    PQclear(must(PQexec(conn, sql)));
}

static void put_array(char *out, size_t room, const char *value, int is_null)
{
    size_t len = strlen(out);

    len += (size_t)snprintf(out + len, room - len, "%s%s", len ? "," : "{", is_null ? "NULL" : "\"");
    for (; !is_null && *value && len + 4 < room; value++) {
        if (*value == '"' || *value == '\\')
            out[len++] = '\\';
        out[len++] = *value;
    }
    snprintf(out + len, room - len, "%s", is_null ? "" : "\"");
}

static struct pgseek_facts *ask_facts(const struct pgseek_query *query)
{
    char schemas[4096] = "";
    char names[4096] = "";
    char functions[4096] = "";

    for (size_t i = 0; i < pgseek_query_relation_count(query); i++) {
        const char *written = pgseek_query_relation_schema(query, i);
        put_array(schemas, sizeof schemas, written, written == NULL);
        put_array(names, sizeof names, pgseek_query_relation_name(query, i), 0);
    }
    for (size_t i = 0; i < pgseek_query_function_count(query); i++)
        put_array(functions, sizeof functions, pgseek_query_function_name(query, i), 0);
    strcat(schemas, *schemas ? "}" : "{}");
    strcat(names, *names ? "}" : "{}");
    strcat(functions, *functions ? "}" : "{}");

    const char *values[] = {schemas, names, functions};
    PGresult *rows = must(PQexecParams(conn, pgseek_facts_sql, 3, NULL, values, NULL, NULL, 0));
    struct pgseek_facts *facts = pgseek_facts_new();
    for (int i = 0; i < PQntuples(rows); i++) {
        const char *columns[PGSEEK_FACTS_COLUMNS];
        for (int j = 0; j < PGSEEK_FACTS_COLUMNS; j++)
            columns[j] = PQgetisnull(rows, i, j) ? NULL : PQgetvalue(rows, i, j);
        if (!pgseek_facts_row(facts, columns, PGSEEK_FACTS_COLUMNS)) {
            printf("facts: row %d is not understood\n", i);
            exit(2);
        }
    }
    PQclear(rows);
    return facts;
}

static struct pgseek_plan *ask_plan(const struct walk_case *walk, enum pgseek_reason *reason)
{
    const struct pgseek_reading reading = {.standard_strings = true, .ascii_safe_encoding = true};
    struct pgseek_query *query = pgseek_query_new(walk->sql, strlen(walk->sql), &reading, reason);

    if (!query)
        return NULL;
    PGresult *prepared = PQprepare(conn, "original", walk->sql, 0, NULL);
    if (PQresultStatus(prepared) != PGRES_COMMAND_OK) {
        PQclear(prepared);
        pgseek_query_free(query);
        return NULL; /* a statement that the server refuses: nothing to walk */
    }
    PQclear(prepared);
    PGresult *described = must(PQdescribePrepared(conn, "original"));
    struct pgseek_column columns[64];
    uint32_t params[8];
    struct pgseek_description description = {params, (size_t)PQnparams(described), columns,
                                             (size_t)PQnfields(described)};
    for (int i = 0; i < PQnparams(described); i++)
        params[i] = PQparamtype(described, i);
    for (int i = 0; i < PQnfields(described); i++)
        columns[i] = (struct pgseek_column){.name = PQfname(described, i), .type_oid = PQftype(described, i)};

    struct pgseek_facts *facts = ask_facts(query);
    struct pgseek_plan *plan = pgseek_plan_new(query, facts, &description, walk->key, reason);
    pgseek_facts_free(facts);
    pgseek_query_free(query);
    PQclear(described);
    run("DEALLOCATE original");
    return plan;
}

/* ---- pages ---- */

static uint64_t big_endian(uint64_t value)
{
    uint64_t out;
    uint8_t bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (56 - 8 * i));
    memcpy(&out, bytes, sizeof out);
    return out;
}

/* Runs a shape with the keys of row `row` of `from` as its boundary. All values travel in binary. */
static PGresult *run_shape(const struct pgseek_shape *shape, uint64_t limit, bool look_ahead, PGresult *from, int row,
                           int from_hidden)
{
    uint64_t page = big_endian(limit);
    uint64_t fetch = big_endian(limit + look_ahead);
    const char *values[64];
    int lengths[64];
    int formats[64];
    Oid types[64];

    for (size_t i = 0; i < shape->nslots; i++) {
        const struct pgseek_slot *slot = &shape->slots[i];
        int column = from ? PQnfields(from) - from_hidden + (int)slot->index : 0;

        types[i] = slot->type_oid;
        formats[i] = 1;
        lengths[i] = 8;
        values[i] = (const char *)(slot->kind == PGSEEK_SLOT_FETCH ? &fetch : &page);
        if (slot->kind == PGSEEK_SLOT_KEY) {
            values[i] = PQgetvalue(from, row, column);
            lengths[i] = PQgetlength(from, row, column);
        }
    }
    return must(PQexecParams(conn, shape->sql, (int)shape->nslots, types, values, lengths, formats, 1));
}

static bool same_row(PGresult *a, int arow, PGresult *b, int brow, int columns)
{
    for (int i = 0; i < columns; i++)
        if (PQgetisnull(a, arow, i) != PQgetisnull(b, brow, i) || PQgetlength(a, arow, i) != PQgetlength(b, brow, i) ||
            memcmp(PQgetvalue(a, arow, i), PQgetvalue(b, brow, i), (size_t)PQgetlength(a, arow, i)) != 0)
            return false;
    return true;
}

struct walker {
    const struct walk_case *walk;
    struct pgseek_shape *shape[4];
    PGresult *oracle;
    bool look_ahead;
    uint64_t limit;
};

/* The page's rows must be oracle rows from `first` on; the look-ahead row, if any, must stand behind or before them. */
static int check_page(struct walker *walker, enum pgseek_seek seek, PGresult *page, int first, int expected)
{
    int columns = PQnfields(walker->oracle);
    int rows = PQntuples(page);
    bool backward = seek == PGSEEK_SEEK_BEFORE || seek == PGSEEK_SEEK_LAST;
    int kept = rows > (int)walker->limit ? (int)walker->limit : rows;

    if (PQnfields(page) - (int)walker->shape[seek]->nhidden != columns) {
        fault(walker->walk, "%d columns", PQnfields(page));
        return -1;
    }
    if (kept != expected) {
        fault(walker->walk, "seek %d limit %d at %d: %d rows instead of %d", seek, (int)walker->limit, first, kept,
              expected);
        return -1;
    }
    for (int i = 0; i < kept; i++)
        if (!same_row(page, i, walker->oracle, first + i, columns)) {
            fault(walker->walk, "seek %d limit %d: row %d differs", seek, (int)walker->limit, first + i);
            return -1;
        }
    int beyond = backward ? first - 1 : first + kept;
    bool more = beyond >= 0 && beyond < PQntuples(walker->oracle);
    if (walker->look_ahead && (rows > kept) != more) {
        fault(walker->walk, "seek %d limit %d at %d: look-ahead row is %d", seek, (int)walker->limit, first,
              rows > kept);
        return -1;
    }
    return kept;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* The page before the one that starts at `first`, from that page's first row. */
static void check_back(struct walker *walker, PGresult *page, int first, int hidden)
{
    int expected = smaller((int)walker->limit, first);
    PGresult *back = run_shape(walker->shape[PGSEEK_SEEK_BEFORE], walker->limit, walker->look_ahead, page, 0, hidden);

    check_page(walker, PGSEEK_SEEK_BEFORE, back, first - expected, expected);
    PQclear(back);
}

static void walk_forward(struct walker *walker)
{
    int total = PQntuples(walker->oracle);
    int limit = (int)walker->limit;
    PGresult *page = run_shape(walker->shape[PGSEEK_SEEK_FIRST], walker->limit, walker->look_ahead, NULL, 0, 0);
    enum pgseek_seek seek = PGSEEK_SEEK_FIRST;

    for (int first = 0; first < total;) {
        int kept = check_page(walker, seek, page, first, smaller(limit, total - first));
        if (kept <= 0)
            break;
        int hidden = (int)walker->shape[seek]->nhidden;
        check_back(walker, page, first, hidden);
        first += kept;
        seek = PGSEEK_SEEK_AFTER;
        PGresult *next = run_shape(walker->shape[seek], walker->limit, walker->look_ahead, page, kept - 1, hidden);
        PQclear(page);
        page = next;
        if (first == total && PQntuples(page) != 0)
            fault(walker->walk, "rows behind the end");
    }
    PQclear(page);
}

static void walk_last(struct walker *walker)
{
    int total = PQntuples(walker->oracle);
    int expected = smaller((int)walker->limit, total);
    PGresult *page = run_shape(walker->shape[PGSEEK_SEEK_LAST], walker->limit, walker->look_ahead, NULL, 0, 0);

    check_page(walker, PGSEEK_SEEK_LAST, page, total - expected, expected);
    PQclear(page);
}

/* ---- the guard ---- */

/* What a guard is run with, and how it must end. */
struct guard_run {
    const char *path;
    const char *user;
    const char *filter;
    const char *scope;
    const char *state; /* SQLSTATE */
};

static const struct guard_run good_run = {"walk, public", "postgres", NULL, NULL, "00000"};

/* Runs the prepared guard; its digests go to filter and scope where they are wanted. */
static void run_guard(const struct walk_case *walk, const char *what, const struct guard_run *run, char *filter,
                      char *scope)
{
    const char *values[] = {"3", run->path, run->user, "UTF8", run->filter, run->scope};
    PGresult *result = PQexecPrepared(conn, "guard", 6, values, NULL, NULL, 0);
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    if (strcmp(state ? state : "00000", run->state) != 0)
        fault(walk, "guard, %s: %s instead of %s: %s", what, state, run->state, PQresultErrorMessage(result));
    if (filter)
        snprintf(filter, 80, "%s", PQntuples(result) ? PQgetvalue(result, 0, 1) : "");
    if (scope)
        snprintf(scope, 80, "%s", PQntuples(result) ? PQgetvalue(result, 0, 2) : "");
    PQclear(result);
}

static void expect_guard(const struct walk_case *walk, const char *what, struct guard_run run)
{
    run_guard(walk, what, &run, NULL, NULL);
}

static void prepare_guard(const struct pgseek_plan *plan)
{
    const char *scope[] = {"app.tenant_id"};
    const Oid types[] = {20, 25, 25, 25, 17, 17};
    char *sql = pgseek_guard_new(plan, scope, 1);

    PQclear(must(PQprepare(conn, "guard", sql, 6, types)));
    free(sql);
}

/* Often enough that the server tries a plan that knows no values. */
static void check_guard(const struct walk_case *walk, const struct pgseek_plan *plan)
{
    char filter[80];
    char scope[80];

    prepare_guard(plan);
    run_guard(walk, "digests", &good_run, filter, scope);
    for (int i = 0; i < 7; i++) {
        expect_guard(walk, "all well", (struct guard_run){"walk, public", "postgres", filter, scope, "00000"});
        expect_guard(walk, "search_path", (struct guard_run){"public", "postgres", filter, scope, "22012"});
        expect_guard(walk, "user", (struct guard_run){"walk, public", "other", filter, scope, "22012"});
        expect_guard(walk, "no user", (struct guard_run){"walk, public", NULL, filter, scope, "22012"});
        expect_guard(walk, "filter", (struct guard_run){"walk, public", "postgres", "\\x00", scope, "2201F"});
        expect_guard(walk, "scope", (struct guard_run){"walk, public", "postgres", filter, "\\x00", "2201E"});
    }
    run("SET app.tenant_id = 'seven'");
    expect_guard(walk, "another scope", (struct guard_run){"walk, public", "postgres", filter, scope, "2201E"});
    run("RESET app.tenant_id");
    expect_guard(walk, "the scope again", (struct guard_run){"walk, public", "postgres", filter, scope, "00000"});
    run("DEALLOCATE guard");
}

/* What another session may do to a table, and whether a page that relied on the table may still run. */
static void check_guard_changes(void)
{
    static const struct walk_case walk = {
        "SELECT s.*, b.note FROM booking b JOIN walk.seat s ON s.booking_id = b.id ORDER BY 4 LIMIT $1", NULL, NULL};
    static const struct {
        const char *sql;
        const char *state;
    } changes[] = {
        {"INSERT INTO plain VALUES (1, 1)", "00000"},
        {"ALTER TABLE booking RENAME took TO taken", "00000"},
        {"ALTER TABLE booking RENAME note TO notes", "22012"},
        {"ALTER TABLE booking RENAME id TO old; ALTER TABLE booking RENAME venue_id TO id", "22012"},
        {"ALTER TABLE booking ALTER note TYPE varchar(20) COLLATE \"C\"", "22012"},
        {"ALTER TABLE seat DROP CONSTRAINT seat_booking_id_fkey; ALTER TABLE seat ALTER booking_id TYPE float8",
         "22012"},
        {"ALTER TABLE seat DROP COLUMN seat_no", "22012"}, /* before the column that ORDER BY counts */
        {"ALTER TABLE seat ADD COLUMN more int", "22012"},
        {"ANALYZE booking", "00000"},
        {"ALTER TABLE booking DROP CONSTRAINT booking_code_key", "00000"},
        {"CREATE INDEX ON booking (note)", "00000"},
        {"ALTER TABLE booking ALTER note DROP NOT NULL", "22012"},
        {"ALTER TABLE booking DROP CONSTRAINT booking_pkey CASCADE", "22012"},
        {"ALTER TABLE seat DROP CONSTRAINT seat_pkey", "22012"},
        {"ALTER TABLE booking ALTER note TYPE text", "22012"},
        {"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'seat_pkey'::regclass", "22012"},
        {"CREATE TABLE child () INHERITS (booking)", "22012"},
        {"CREATE TEMP TABLE booking (id int)", "22012"},
        {"CREATE TEMP TABLE seat (id int)", "00000"}, /* the schema is written */
        {"ALTER TABLE booking RENAME TO booked", "22012"},
        {"DROP TABLE seat", "22012"},
        {"SET LOCAL search_path = walk", "22012"},
        {"SET LOCAL ROLE pg_monitor", "22012"},
        {"SET LOCAL client_encoding = 'LATIN1'", "22012"}, /* a key is text */
    };
    enum pgseek_reason reason;
    struct pgseek_plan *plan = ask_plan(&walk, &reason);

    if (!plan) {
        fault(&walk, "not rewritten: %s", pgseek_reason_name(reason));
        return;
    }
    prepare_guard(plan);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct guard_run expected = good_run;

        expected.state = changes[i].state;
        run("BEGIN");
        run(changes[i].sql);
        expect_guard(&walk, changes[i].sql, expected);
        run("ROLLBACK");
    }
    run("DEALLOCATE guard");
    pgseek_plan_free(plan);
}

/* A value is hashed by what it is, not by how it travels. */
static void check_guard_formats(void)
{
    static const struct walk_case walk = {
        "SELECT id FROM booking WHERE venue_id = $1 AND mood = $2 ORDER BY id LIMIT 3", NULL, NULL};
    static const uint8_t one[] = {0, 0, 0, 1};
    enum pgseek_reason reason;
    struct pgseek_plan *plan = ask_plan(&walk, &reason);
    char *sql = pgseek_guard_new(plan, NULL, 0);
    char digest[3][80];

    for (int i = 0; i < 3; i++) {
        const char *values[] = {
            i == 1 ? (const char *)one : i == 2 ? "2" : "1", "ok", "walk, public", "postgres", "UTF8", NULL, NULL};
        const int lengths[] = {4, 2, 0, 0, 0, 0, 0};
        const int formats[] = {i == 1, i == 1, 0, 0, 0, 0, 0};
        PGresult *mood = must(PQexec(conn, "SELECT 'walk.mood'::regtype::oid"));
        const Oid types[] = {23, (Oid)strtoul(PQgetvalue(mood, 0, 0), NULL, 10), 25, 25, 25, 17, 17};
        PQclear(mood);
        PGresult *result = must(PQexecParams(conn, sql, 7, types, values, lengths, formats, 0));
        snprintf(digest[i], sizeof digest[i], "%s", PQgetvalue(result, 0, 1));
        PQclear(result);
    }
    if (strcmp(digest[0], digest[1]) != 0 || strcmp(digest[0], digest[2]) == 0)
        fault(&walk, "filter digests: %s %s %s", digest[0], digest[1], digest[2]);
    free(sql);
    pgseek_plan_free(plan);
}

/* ---- all of it ---- */

static void walk_sizes(struct walker *walker)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        walker->limit = strtoull(sizes[i], NULL, 10);
        walk_forward(walker);
        walk_last(walker);
    }
}

static void walk_case(const struct walk_case *walk)
{
    struct walker walker = {.walk = walk};
    enum pgseek_reason reason;
    struct pgseek_plan *plan = ask_plan(walk, &reason);

    if (!plan) {
        if (walk->oracle)
            fault(walk, "not rewritten: %s", pgseek_reason_name(reason));
        return;
    }
    walker.look_ahead = !pgseek_plan_is_locking(plan);
    for (int seek = 0; seek < 4; seek++) {
        const struct pgseek_shape_key key = {.seek = (enum pgseek_seek)seek, .look_ahead = walker.look_ahead};
        walker.shape[seek] = pgseek_shape_new(plan, &key, &reason);
        if (!walker.shape[seek])
            fault(walk, "shape %d: %s", seek, pgseek_reason_name(reason));
    }
    walker.oracle = must(PQexecParams(conn, walk->oracle, 0, NULL, NULL, NULL, NULL, 1));
    if (walker.shape[0] && walker.shape[1] && walker.shape[2] && walker.shape[3])
        walk_sizes(&walker);
    check_guard(walk, plan);
    for (int seek = 0; seek < 4; seek++)
        pgseek_shape_free(walker.shape[seek]);
    PQclear(walker.oracle);
    pgseek_plan_free(plan);
}

static void *walk_all(void *unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        walk_case(&cases[i]);
    check_guard_changes();
    check_guard_formats();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_attr_t attributes;
    pthread_t thread;

    conn = PQconnectdb(argc > 1 ? argv[1] : "");
    if (PQstatus(conn) != CONNECTION_OK) {
        printf("%s", PQerrorMessage(conn));
        return 2;
    }
    PQclear(PQexec(conn, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS walk CASCADE"));
    run("CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public");
    run(schema);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PGSEEK_STACK_BYTES);
    pthread_create(&thread, &attributes, walk_all, NULL);
    pthread_join(thread, NULL);
    run("DROP SCHEMA walk CASCADE");
    PQfinish(conn);
    printf("%zu statements, %d faults\n", sizeof cases / sizeof *cases, faults);
    return faults ? 1 : 0;
}
