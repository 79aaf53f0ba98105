/* walk_server.c - see walk_server.h. */
#include "walk_server.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    "INSERT INTO word SELECT (ARRAY['a','A','b','B','c'])[1 + i % 5], i FROM generate_series(1, 70) i;"
    "CREATE TABLE gap (id int PRIMARY KEY, a int, b text, c int NOT NULL);"
    "INSERT INTO gap SELECT i, nullif(i % 5, 3), nullif(chr(97 + i % 4), 'c'), i % 3 FROM generate_series(1, 83) i;"
    "CREATE TABLE child (id int PRIMARY KEY, gap_id int REFERENCES gap, n int NOT NULL);"
    "INSERT INTO child SELECT i, nullif(i % 40, 0), i % 6 FROM generate_series(1, 150) i;";

PGconn *conn;
int faults;

void walk_fault(const struct walk_case *walk, const char *format, ...)
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

PGresult *must(PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return result;
    printf("server: %s", PQerrorMessage(conn));
    exit(2);
}

void run(const char *sql)
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

void answer_facts(struct pgseek_facts *facts)
{
    char arrays[PGSEEK_ASKED_LISTS][4096] = {{0}};
    const char *values[PGSEEK_ASKED_LISTS];

    for (int list = 0; list < PGSEEK_ASKED_LISTS; list++) {
        for (size_t i = 0; i < pgseek_facts_asked_count(facts, (enum pgseek_asked)list); i++) {
            const char *asked = pgseek_facts_asked(facts, (enum pgseek_asked)list, i);
            put_array(arrays[list], sizeof arrays[list], asked, asked == NULL);
        }
        strcat(arrays[list], *arrays[list] ? "}" : "{}");
        values[list] = arrays[list];
    }
    PGresult *rows = must(PQexecParams(conn, pgseek_facts_sql, PGSEEK_ASKED_LISTS, NULL, values, NULL, NULL, 0));
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
}

/* What the server describes; names belong to the result. False when it refuses the text. */
struct described {
    PGresult *result;
    struct pgseek_column columns[64];
    uint32_t params[8];
    struct pgseek_description description;
};

static bool describe(const char *sql, const struct pgseek_description *original, struct described *out)
{
    PGresult *prepared = PQprepare(conn, "described", sql, original ? (int)original->nparams : 0,
                                   original ? original->param_oids : NULL);
    bool is_prepared = PQresultStatus(prepared) == PGRES_COMMAND_OK;

    PQclear(prepared);
    if (!is_prepared)
        return false;
    out->result = must(PQdescribePrepared(conn, "described"));
    for (int i = 0; i < PQnparams(out->result); i++)
        out->params[i] = PQparamtype(out->result, i);
    for (int i = 0; i < PQnfields(out->result); i++)
        out->columns[i] = (struct pgseek_column){.name = PQfname(out->result, i), .type_oid = PQftype(out->result, i)};
    out->description = (struct pgseek_description){out->params, (size_t)PQnparams(out->result), out->columns,
                                                   (size_t)PQnfields(out->result)};
    run("DEALLOCATE described");
    return true;
}

static void answer_probe(struct pgseek_facts *facts, const struct pgseek_description *original)
{
    struct described probe;
    size_t len;
    const char *sql = pgseek_facts_probe(facts, &len);

    if (!sql)
        return;
    if (!describe(sql, original, &probe)) {
        printf("probe: %s%s\n", PQerrorMessage(conn), sql);
        faults++;
        return;
    }
    if (!pgseek_facts_described(facts, &probe.description))
        exit(2);
    PQclear(probe.result);
}

struct pgseek_plan *ask_plan(const struct walk_case *walk, enum pgseek_reason *reason)
{
    const struct pgseek_reading reading = {.standard_strings = true, .ascii_safe_encoding = true};
    struct pgseek_query *query = pgseek_query_new(walk->sql, strlen(walk->sql), &reading, reason);
    struct described original;

    if (!query)
        return NULL;
    if (!describe(walk->sql, NULL, &original)) {
        pgseek_query_free(query);
        return NULL; /* a statement that the server refuses: nothing to walk */
    }
    struct pgseek_facts *facts = pgseek_facts_new(query);
    struct pgseek_plan *plan = NULL;
    *reason = PGSEEK_REASON_MORE;
    for (int round = 0; round < PGSEEK_FACTS_MAX_ROUNDS && *reason == PGSEEK_REASON_MORE; round++) {
        answer_facts(facts);
        answer_probe(facts, &original.description);
        pgseek_facts_answered(facts);
        *reason = PGSEEK_REASON_NONE;
        plan = pgseek_plan_new(query, facts, &original.description, walk->key, reason);
    }
    pgseek_facts_free(facts);
    pgseek_query_free(query);
    PQclear(original.result);
    return plan;
}

/* ---- the program ---- */

int walk_main(int argc, char **argv, void *(*all)(void *), void *arg)
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
    pthread_create(&thread, &attributes, all, arg);
    pthread_join(thread, NULL);
    run("DROP SCHEMA walk CASCADE");
    PQfinish(conn);
    printf("%d faults\n", faults);
    return faults ? 1 : 0;
}
