/* guard_walk.c - guards on a real server: when they hold, when they fail, and with which SQLSTATE.
 *
 * Usage: guard_walk CONNINFO */
#include "walk_server.h"

#include <stdlib.h>
#include <string.h>
#include <stdio.h>

/* What a guard is run with, and how it must end. */
struct guard_run {
    const char *path;
    const char *user;
    const char *filter;
    const char *scope;
    const char *state;  /* SQLSTATE */
    const char *locale; /* NULL: that of now */
};

static const struct guard_run good_run = {"walk, public", "postgres", NULL, NULL, "00000", NULL};

static char locale[512]; /* of the session */

static void read_locale(void)
{
    PGresult *context = must(PQexec(conn, pgseek_context_sql));

    snprintf(locale, sizeof locale, "%s", PQgetvalue(context, 0, PGSEEK_CTX_LOCALE));
    PQclear(context);
}

/* Runs the prepared guard; its digests go to filter and scope where they are wanted. */
static void run_guard(const struct walk_case *walk, const char *what, const struct guard_run *run, char *filter,
                      char *scope)
{
    const char *values[] = {"3",         run->path, run->user, "UTF8", run->locale ? run->locale : locale,
                            run->filter, run->scope};
    PGresult *result = PQexecPrepared(conn, "guard", 7, values, NULL, NULL, 0);
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    if (strcmp(state ? state : "00000", run->state) != 0)
        walk_fault(walk, "guard, %s: %s instead of %s: %s", what, state, run->state, PQresultErrorMessage(result));
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
    const Oid types[] = {20, 25, 25, 25, 25, 17, 17};
    char *sql = pgseek_guard_new(plan, scope, 1);

    PQclear(must(PQprepare(conn, "guard", sql, 7, types)));
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
        expect_guard(walk, "all well", (struct guard_run){"walk, public", "postgres", filter, scope, "00000", NULL});
        expect_guard(walk, "search_path", (struct guard_run){"public", "postgres", filter, scope, "22012", NULL});
        expect_guard(walk, "user", (struct guard_run){"walk, public", "other", filter, scope, "22012", NULL});
        expect_guard(walk, "no user", (struct guard_run){"walk, public", NULL, filter, scope, "22012", NULL});
        expect_guard(walk, "filter", (struct guard_run){"walk, public", "postgres", "\\x00", scope, "2201F", NULL});
        expect_guard(walk, "scope", (struct guard_run){"walk, public", "postgres", filter, "\\x00", "2201E", NULL});
    }
    run("SET app.tenant_id = 'seven'");
    expect_guard(walk, "another scope", (struct guard_run){"walk, public", "postgres", filter, scope, "2201E", NULL});
    run("RESET app.tenant_id");
    expect_guard(walk, "the scope again", (struct guard_run){"walk, public", "postgres", filter, scope, "00000", NULL});
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
        {"ALTER TABLE booking RENAME took TO taken", "22012"}, /* a position over `*`: all columns count */
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
        {"CREATE TABLE heir () INHERITS (booking)", "22012"},
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
        walk_fault(&walk, "not rewritten: %s", pgseek_reason_name(reason));
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
        const char *values[] = {i == 1 ? (const char *)one : i == 2 ? "2" : "1",
                                "ok",
                                "walk, public",
                                "postgres",
                                "UTF8",
                                locale,
                                NULL,
                                NULL};
        const int lengths[] = {4, 2, 0, 0, 0, 0, 0, 0};
        const int formats[] = {i == 1, i == 1, 0, 0, 0, 0, 0, 0};
        PGresult *mood = must(PQexec(conn, "SELECT 'walk.mood'::regtype::oid"));
        const Oid types[] = {23, (Oid)strtoul(PQgetvalue(mood, 0, 0), NULL, 10), 25, 25, 25, 25, 17, 17};
        PQclear(mood);
        PGresult *result = must(PQexecParams(conn, sql, 8, types, values, lengths, formats, 0));
        snprintf(digest[i], sizeof digest[i], "%s", PQgetvalue(result, 0, 1));
        PQclear(result);
    }
    if (strcmp(digest[0], digest[1]) != 0 || strcmp(digest[0], digest[2]) == 0)
        walk_fault(&walk, "filter digests: %s %s %s", digest[0], digest[1], digest[2]);
    free(sql);
    pgseek_plan_free(plan);
}

/* Only an order by a stable expression depends on the settings. */
static void check_guard_locale(void)
{
    static const struct {
        struct walk_case walk;
        const char *state;
    } cases[] = {
        {{"SELECT id FROM booking ORDER BY date_trunc('day', placed_at), id LIMIT $1", NULL, NULL}, "22012"},
        {{"SELECT id FROM booking ORDER BY placed_at, id LIMIT $1", NULL, NULL}, "00000"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum pgseek_reason reason;
        struct pgseek_plan *plan = ask_plan(&cases[i].walk, &reason);
        struct guard_run other = good_run;

        if (!plan) {
            walk_fault(&cases[i].walk, "not rewritten: %s", pgseek_reason_name(reason));
            continue;
        }
        prepare_guard(plan);
        expect_guard(&cases[i].walk, "its own settings", good_run);
        other.locale = "others";
        other.state = cases[i].state;
        expect_guard(&cases[i].walk, "other settings", other);
        run("DEALLOCATE guard");
        pgseek_plan_free(plan);
    }
}

/* ---- all of it ---- */

static void *guard_all(void *unused)
{
    static const struct walk_case walks[] = {
        {"SELECT id, note FROM booking ORDER BY note DESC LIMIT $1", NULL, NULL},
        {"SELECT s.id, b.note FROM booking b JOIN seat s ON s.booking_id = b.id ORDER BY b.note LIMIT $1", NULL, NULL},
        {"SELECT b.note, s.id FROM booking b LEFT JOIN seat s ON s.booking_id = b.id ORDER BY b.note LIMIT $1", NULL,
         NULL},
    };

    (void)unused;
    read_locale();
    for (size_t i = 0; i < sizeof walks / sizeof *walks; i++) {
        enum pgseek_reason reason;
        struct pgseek_plan *plan = ask_plan(&walks[i], &reason);

        if (plan)
            check_guard(&walks[i], plan);
        else
            walk_fault(&walks[i], "not rewritten: %s", pgseek_reason_name(reason));
        pgseek_plan_free(plan);
    }
    check_guard_changes();
    check_guard_formats();
    check_guard_locale();
    return NULL;
}

int main(int argc, char **argv)
{
    return walk_main(argc, argv, guard_all, NULL);
}
