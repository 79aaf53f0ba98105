/* predicate_walk.c - the condition for "after this row", over every order of three keys, on a real server: in one piece
 * and as the branches of a UNION.
 *
 * Every direction, null placement, nullability and border between relations; every row as the boundary, both ways. What
 * the condition finds must be what the server numbers higher (or lower). Usage: predicate_walk CONNINFO */
#include "../../parser/predicate.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static PGconn *conn;
static int faults;
static int checks;

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

/* Eight ways a key may sort: direction, null placement, nullable or not; NULLs only where nullable. */
static void make_way(struct predicate_key *key, int way, const char *expr, unsigned param)
{
    static const struct facts_operator operators[FACTS_OPERATORS] = {
        {"pg_catalog", "<"}, {"pg_catalog", "<="}, {"pg_catalog", "="}, {"pg_catalog", ">="}, {"pg_catalog", ">"}};

    *key = (struct predicate_key){
        .expr = expr,
        .operators = operators,
        .relation = (size_t)(way >> 3),
        .param = param,
        .descending = way & 1,
        .nulls_first = way >> 1 & 1,
        .nullable = way >> 2 & 1,
    };
}

/* What finds the rows must find those that the server numbers so, each once. */
static void check_text(const struct text *text, const char *const *values, int row, bool backward, int expected,
                       const char *order)
{
    static const Oid types[] = {23, 23, 23};
    PGresult *found = must(PQexecParams(conn, text->ptr, 3, types, values, NULL, NULL, 0));
    char count[16];

    snprintf(count, sizeof count, "%d", expected);
    checks++;
    if (strcmp(PQgetvalue(found, 0, 0), count) != 0 || strcmp(PQgetvalue(found, 0, 1), count) != 0) {
        faults++;
        printf("FAULT %s, row %d, %s: %s\n", order, row + 1, backward ? "backward" : "forward", text->ptr);
    }
    PQclear(found);
}

/* A parameter of a NULL value is not in the condition: it is named here, so that the server knows of it. */
#define SELECT_FROM "FROM numbered WHERE ($1 + $2 + $3 = 0 OR true) AND ("

static void put_branches(struct text *text, const struct predicate_key *keys, bool leading_bound)
{
    size_t count = predicate_branch_count(keys, 3);

    text_puts(text, "(SELECT r FROM numbered WHERE false AND $1 + $2 + $3 = 0)");
    for (size_t i = 0; i < count; i++) {
        text_puts(text, " UNION ALL (SELECT r " SELECT_FROM);
        predicate_write_branch(text, keys, 3, i, leading_bound);
        text_puts(text, "))");
    }
}

/* The rows that the condition finds behind (or before) one row, in one piece and branch by branch. */
static void check_row(const struct predicate_key *ways, PGresult *rows, int row, bool backward, const char *order)
{
    int expected = backward ? row : PQntuples(rows) - row - 1;
    const char *sign = backward ? "<" : ">";
    struct predicate_key keys[3];
    struct text whole = {0};
    struct text parts = {0};
    const char *values[3];

    memcpy(keys, ways, sizeof keys);
    for (int k = 0; k < 3; k++) {
        keys[k].value_is_null = PQgetisnull(rows, row, k);
        values[k] = keys[k].value_is_null ? NULL : PQgetvalue(rows, row, k);
    }
    if (backward)
        predicate_reverse(keys, 3);
    text_format(&whole, "SELECT count(*), count(*) FILTER (WHERE r %s %d) " SELECT_FROM, sign, row + 1);
    predicate_write(&whole, keys, 3, (row & 1) != 0);
    text_puts(&whole, ")");
    check_text(&whole, values, row, backward, expected, order);
    text_format(&parts, "SELECT count(*), count(DISTINCT r) FILTER (WHERE r %s %d) FROM (", sign, row + 1);
    put_branches(&parts, keys, (row & 1) != 0);
    text_puts(&parts, ") found");
    check_text(&parts, values, row, backward, expected, order);
    text_fini(&whole);
    text_fini(&parts);
}

static void check_order(const struct predicate_key *ways)
{
    char order[256] = "";
    char sql[1024];

    for (int i = 0; i < 3; i++) {
        size_t len = strlen(order);
        snprintf(order + len, sizeof order - len, "%s%s%s NULLS %s", i ? ", " : "", ways[i].expr,
                 ways[i].descending ? " DESC" : "", ways[i].nulls_first ? "FIRST" : "LAST");
    }
    snprintf(sql, sizeof sql,
             "CREATE TEMP TABLE numbered AS SELECT q.*, row_number() OVER (ORDER BY %s) AS r"
             " FROM (SELECT %s AS a, %s AS b, c FROM triple) q",
             order, ways[0].nullable ? "a" : "coalesce(a, 1)", ways[1].nullable ? "b" : "coalesce(b, 1)");
    run(sql);
    PGresult *rows = must(PQexec(conn, "SELECT a, b, c FROM numbered ORDER BY r"));
    for (int row = 0; row < PQntuples(rows); row++) {
        check_row(ways, rows, row, false, order);
        check_row(ways, rows, row, true, order);
    }
    PQclear(rows);
    run("DROP TABLE numbered");
}

static void check_orders(void)
{
    struct predicate_key ways[3];

    run("CREATE TEMP TABLE triple AS SELECT a, b, row_number() OVER () ::int AS c FROM (VALUES (1), (2), (NULL)) x(a), "
        "(VALUES (1), (3), (NULL)) y(b), generate_series(1, 2)");
    for (int first = 0; first < 8; first++)
        for (int second = 0; second < 16; second++)
            for (int third = 0; third < 2; third++) {
                make_way(&ways[0], first, "a", 1);
                make_way(&ways[1], second, "b", 2);
                make_way(&ways[2], third | (second & 8), "c", 3);
                check_order(ways);
            }
}

int main(int argc, char **argv)
{
    conn = PQconnectdb(argc > 1 ? argv[1] : "");
    if (PQstatus(conn) != CONNECTION_OK) {
        printf("%s", PQerrorMessage(conn));
        return 2;
    }
    check_orders();
    PQfinish(conn);
    printf("%d conditions, %d faults\n", checks, faults);
    return faults ? 1 : 0;
}
