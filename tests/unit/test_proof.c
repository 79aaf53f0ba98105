/* test_proof.c - what is known of joined rows: each rule beside the rule that looks right.
 *
 * It looks into scopes and proofs themselves; how an order uses them is in test_order.c, what names mean in
 * test_scope.c, derived tables by themselves in test_source.c. Random statements against a server are in
 * tests/e2e/test_claims.py. */
#include "reading_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- proofs over FROM ---- */

struct total_case {
    const char *from;
    const char *assumed;  /* alias.column with blanks between */
    const char *expected; /* the tie-breakers that are missing; "none" when nothing makes it total */
};

static const struct total_case proof_cases[] = {
    /* one relation */
    {"a", "", "a.id"},
    {"a", "a.id", ""},
    {"bag", "", "none"},
    {"b", "b.u", ""},
    {"maybe", "maybe.x", "none"},
    {"maybe WHERE x IS NOT NULL", "maybe.x", ""},
    {"once", "once.x", ""},
    {"c WHERE x = 1", "", "c.y"},
    {"a WHERE id = 1", "", ""},
    {"a WHERE id = 1 OR true", "", "a.id"},
    {"par", "", "none"},
    {"ONLY par", "", "par.id"},
    {"part", "", "part.id"},
    {"mat", "", "none"},
    {"word WHERE w = 'a'", "", "word.w"},
    {"a TABLESAMPLE SYSTEM (50)", "", "none"},
    {"a TABLESAMPLE SYSTEM (50) REPEATABLE (1)", "", "a.id"},
    /* inner joins */
    {"a, b", "", "a.id b.id"},
    {"a JOIN b ON b.id = a.b_id", "", "a.id"},
    {"a CROSS JOIN b WHERE b.u = a.b_id", "", "a.id"},
    {"a JOIN b ON b.id = a.f", "", "a.id b.id"},
    {"a JOIN c ON c.x = a.id", "", "c.x c.y"},
    {"a JOIN c ON c.x = a.id", "a.id", "c.y"},
    {"a JOIN b USING (id)", "b.u", ""},
    {"a NATURAL JOIN b", "b.u", ""},
    {"a JOIN maybe ON maybe.x = a.b_id", "a.id", ""},
    {"a JOIN word ON word.w = a.w", "a.id", "word.w"},
    /* LEFT: the right side's key alone does not tell rows without a partner apart */
    {"a LEFT JOIN b ON b.id = a.b_id", "", "a.id"},
    {"a LEFT JOIN b ON b.id = a.b_id", "b.id", "a.id"},
    {"a LEFT JOIN b ON b.id = a.id", "b.id", "a.id"},
    {"a LEFT JOIN b ON b.n = a.b_id", "a.id", "b.id"},
    {"a LEFT JOIN bag ON bag.v = a.id", "a.id", "none"},
    {"a LEFT JOIN b ON b.id = 3", "a.id", ""},
    {"a LEFT JOIN b ON b.id = a.id AND a.w = 'x'", "a.id", ""},
    {"a LEFT JOIN b ON b.id = a.id OR a.w = 'x'", "a.id", "b.id"},
    {"a LEFT JOIN c ON c.x = a.id AND c.y = 1", "a.id", ""},
    {"a LEFT JOIN c ON c.x = a.id", "a.id", "c.y"},
    {"a LEFT JOIN maybe ON maybe.x = a.b_id", "a.id", ""},
    {"a LEFT JOIN once ON true", "a.id", "once.x"},
    /* what ON says of the kept side is not so of all its rows */
    {"a LEFT JOIN b ON a.id = 1 AND b.id = 2", "", "a.id"},
    {"maybe LEFT JOIN b ON maybe.x = b.id", "maybe.x", "none"},
    /* a constant in WHERE pins, in ON of the extended side only for rows with a partner */
    {"a LEFT JOIN b ON b.u = a.id WHERE b.id = 3", "", "a.id"},
    {"b LEFT JOIN c ON c.x = b.id WHERE c.x = 1 AND c.y = 2", "", "b.id"},
    {"b LEFT JOIN (a JOIN c ON c.x = a.id AND a.id = 1 AND c.y = 2) ON true", "b.id", ""},
    {"b LEFT JOIN (a JOIN c ON c.x = a.id AND a.id = 1 AND c.y = 2) ON true", "", "b.id"},
    /* RIGHT mirrors */
    {"b RIGHT JOIN a ON b.id = a.b_id", "", "a.id"},
    {"b RIGHT JOIN a ON b.id = a.b_id", "b.id", "a.id"},
    /* FULL: no reduction, and one side must show that it is there */
    {"a FULL JOIN b ON b.id = a.id", "a.id", "b.id"},
    {"a FULL JOIN b ON b.id = a.id", "", "a.id b.id"},
    {"once o FULL JOIN once p ON o.x = p.x", "o.x p.x", "none"},
    {"a FULL JOIN once ON a.b_id = once.x", "a.id", "once.x"},
    {"a FULL JOIN maybe ON a.b_id = maybe.x", "a.id", "none"},
    /* chains */
    {"a LEFT JOIN b ON b.id = a.b_id LEFT JOIN c ON c.x = b.n AND c.y = a.id", "a.id", ""},
    {"a LEFT JOIN (b LEFT JOIN c ON c.x = b.id AND c.y = 1) ON b.id = a.b_id", "a.id", ""},
    {"a LEFT JOIN (b JOIN c ON c.x = b.id) ON b.id = a.b_id", "a.id", "c.y"},
    {"a LEFT JOIN b ON b.id = a.b_id JOIN c ON c.x = b.id AND c.y = b.n", "c.x c.y", "a.id"},
    {"(a FULL JOIN b ON a.id = b.id) LEFT JOIN c ON c.x = a.id AND c.y = b.id", "a.id b.id", ""},
    /* a condition of ON means the relations of its join: this b_id is not the other a's */
    {"a x, a y JOIN b ON b.id = y.b_id", "x.id", "y.id"},
    /* LATERAL holds for one row of what stands before it */
    {"a, LATERAL (SELECT b.id FROM b WHERE b.n = a.id) q", "q.id", "a.id"},
    {"a, LATERAL (SELECT b.id FROM b WHERE b.n = a.id) q", "a.id", "q.id"},
    {"a, LATERAL (SELECT b.id FROM b WHERE b.n = a.b_id LIMIT 1) q WHERE a.id = q.id", "", "a.id"},
    {"a LEFT JOIN LATERAL (SELECT b.id FROM b WHERE b.n = a.id LIMIT 1) q ON true", "a.id", ""},
    {"a, LATERAL (SELECT b.u FROM b WHERE b.id = a.b_id) q", "a.id", ""},
    {"a, LATERAL (SELECT b.u FROM b WHERE b.id = a.f) q", "a.id", "q.u"},
    {"a LEFT JOIN LATERAL (SELECT p.n + 1 AS m FROM (SELECT b.* FROM b WHERE a.b_id = b.id) p) q ON true", "a.id", ""},
    /* this a is another one, whose columns are its own */
    {"a, LATERAL (SELECT b.n AS m FROM b, (SELECT x AS id FROM c) a WHERE b.id = a.id) q", "a.id", "none"},
    {"c a, LATERAL (WITH w AS (SELECT v FROM bag WHERE v = a.x) SELECT v FROM w) q", "a.x a.y", "none"},
    {"a, LATERAL (VALUES (1), (a.id)) v(x)", "a.id", "none"},
    /* functions */
    {"unnest('{1,2}'::int[]) WITH ORDINALITY AS f", "", "f.ordinality"},
    {"unnest('{1,2}'::int[]) AS f(x)", "", "none"},
    {"unnest('{1,2}'::int[]) WITH ORDINALITY AS f(x, n)", "", "f.n"},
    {"unnest('{1,2}'::pair[]) WITH ORDINALITY AS f(x, n)", "", "none"}, /* n may be the pair's second */
    {"unnest(ARRAY['a', NULL]) WITH ORDINALITY AS f(x, n)", "", "f.n"},
    {"unnest(ARRAY[ROW(1, 2)]) WITH ORDINALITY AS f(x, n)", "", "none"},
    {"mine(1) WITH ORDINALITY AS f(x, n)", "", "none"},
    {"a, unnest('{1,2}'::int[]) WITH ORDINALITY AS f", "f.ordinality", "a.id"},
    /* a join with an alias of its own hides its tables */
    {"(a JOIN b ON b.id = a.b_id) AS j(p)", "", "j.p"},
    /* views, CTEs and derived tables */
    {"plain", "", "plain.id"},
    {"secret", "", "none"},
    {"plain LEFT JOIN b ON b.u = plain.u", "plain.id", ""},
    {"(SELECT id, u FROM b) q", "q.u", ""},
    {"(SELECT id FROM b) q(k)", "", "q.k"},
    {"(SELECT g, count(*) AS n FROM bag GROUP BY g) q", "", "q.g"},
    {"(SELECT g FROM bag UNION ALL SELECT v FROM bag) q", "", "none"},
    {"(SELECT g FROM bag UNION SELECT v FROM bag) q", "", "q.g"},
    {"(VALUES (1), (1)) q(x)", "q.x", "none"},
    {"a, (SELECT count(*) AS n FROM bag) q", "", "a.id"},
};

/* The tie-breakers that a proof asks for, one after the other. */
static void ask(struct reading *reading, char *out, size_t room)
{
    struct proof *proof = &reading->proof;

    *out = '\0';
    while (!proof_is_total(proof)) {
        size_t relation;
        bool denied;
        const struct scope_key *key = proof_next_key(proof, reading->scope.nrelations, NULL, NULL, &relation, &denied);

        for (size_t i = 0; key && i < key->ncolumns; i++) {
            struct scope_column column = {relation, key->columns[i]};
            size_t len = strlen(out);

            if (proof_is_known(proof, column))
                continue;
            snprintf(out + len, room - len, "%s%s.%s", len ? " " : "", reading->scope.relations[relation].qualifier,
                     scope_attribute(&reading->scope, column)->name);
            proof_assume(proof, column);
        }
        if (!key) {
            snprintf(out, room, "none");
            return;
        }
    }
}

static void rows_are_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof proof_cases / sizeof *proof_cases; i++) {
        struct reading reading;
        char sql[512];
        char found[512];
        char assumed[128];

        snprintf(sql, sizeof sql, "SELECT 1 FROM %s", proof_cases[i].from);
        snprintf(assumed, sizeof assumed, "%s", proof_cases[i].assumed);
        reading_start(&reading, sql);
        for (char *word = strtok(assumed, " "); word; word = strtok(NULL, " "))
            proof_assume(&reading.proof, reading_find(&reading, word));
        ask(&reading, found, sizeof found);
        if (strcmp(found, proof_cases[i].expected) != 0)
            fail_msg("FROM %s with %s\n   asks for %s\n   instead of %s", proof_cases[i].from, proof_cases[i].assumed,
                     found, proof_cases[i].expected);
        reading_finish(&reading);
    }
}

/* ---- single columns ---- */

struct column_case {
    const char *from;
    const char *assumed;
    const char *column;
    bool is_known;
};

static const struct column_case column_cases[] = {
    {"a", "a.id", "a.w", true},
    {"a", "a.w", "a.id", false},
    {"a JOIN b ON b.id = a.b_id", "a.b_id", "b.u", true},
    {"a JOIN b ON b.id = a.b_id", "b.u", "a.b_id", true},
    {"a JOIN b ON b.id = a.b_id", "b.u", "a.id", false},
    {"a WHERE b_id = 1", "", "a.b_id", true},
    /* 3, or NULL without a partner */
    {"a LEFT JOIN b ON b.id = 3", "", "b.id", false},
    {"a LEFT JOIN b ON b.id = 3", "a.id", "b.u", true},
    {"a LEFT JOIN b ON b.id = a.b_id", "a.b_id", "b.id", false},
    {"a LEFT JOIN b ON b.id = a.b_id", "b.id", "a.b_id", false},
    {"b LEFT JOIN (a JOIN c ON c.x = a.id) ON true", "a.id", "c.x", true},
};

static void columns_follow(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof column_cases / sizeof *column_cases; i++) {
        struct reading reading;
        char sql[512];

        snprintf(sql, sizeof sql, "SELECT 1 FROM %s", column_cases[i].from);
        reading_start(&reading, sql);
        if (*column_cases[i].assumed)
            proof_assume(&reading.proof, reading_find(&reading, column_cases[i].assumed));
        if (proof_is_known(&reading.proof, reading_find(&reading, column_cases[i].column)) != column_cases[i].is_known)
            fail_msg("FROM %s with %s: %s", column_cases[i].from, column_cases[i].assumed, column_cases[i].column);
        reading_finish(&reading);
    }
}

/* ---- NULL ---- */

struct null_case {
    const char *from;
    const char *column;
    bool non_null;
};

static const struct null_case null_cases[] = {
    {"a", "a.id", true},
    {"a", "a.b_id", false},
    {"a WHERE b_id IS NOT NULL", "a.b_id", true},
    {"a WHERE b_id = 1", "a.b_id", true},
    {"a WHERE b_id = 1 OR id = 1", "a.b_id", false},
    {"a JOIN b ON b.id = a.b_id", "a.b_id", true},
    {"a LEFT JOIN b ON b.id = a.b_id", "a.b_id", false},
    {"a LEFT JOIN b ON b.id = a.b_id", "b.id", false},
    {"a LEFT JOIN b ON b.id = a.b_id", "a.id", true},
    {"a LEFT JOIN b ON b.id = a.b_id WHERE b.id = 3", "b.id", true},
    {"a LEFT JOIN b ON b.id = a.b_id WHERE b.id = 3", "b.u", false},
    {"a RIGHT JOIN b ON b.id = a.b_id", "a.id", false},
    {"a FULL JOIN b ON b.id = a.b_id", "a.id", false},
    {"a LEFT JOIN (b JOIN c ON c.z = b.n) ON true", "c.z", false},
    {"(a LEFT JOIN b ON b.id = a.b_id) JOIN c ON c.x = b.id", "b.id", true},
    {"par", "par.id", false},
    {"ONLY par", "par.id", true},
    {"plain", "plain.id", true},
    {"plain", "plain.u", false},
    {"secret", "secret.id", false},
    {"(SELECT id, coalesce(n, 0) AS n, count(*) AS k, sum(u) AS s FROM b GROUP BY id) q", "q.n", true},
    {"(SELECT id, coalesce(n, 0) AS n, count(*) AS k, sum(u) AS s FROM b GROUP BY id) q", "q.k", true},
    {"(SELECT id, coalesce(n, 0) AS n, count(*) AS k, sum(u) AS s FROM b GROUP BY id) q", "q.s", false},
    {"(SELECT id FROM b GROUP BY ROLLUP (id)) q", "q.id", false},
    {"(SELECT id FROM a UNION SELECT id FROM b) q", "q.id", true},
    {"(SELECT id FROM a UNION SELECT n FROM b) q", "q.id", false},
    {"(SELECT id FROM a EXCEPT SELECT n FROM b) q", "q.id", true},
};

static void nulls_are_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof null_cases / sizeof *null_cases; i++) {
        struct reading reading;
        char sql[512];

        snprintf(sql, sizeof sql, "SELECT 1 FROM %s", null_cases[i].from);
        reading_start(&reading, sql);
        if (proof_is_non_null(&reading.proof, reading_find(&reading, null_cases[i].column)) != null_cases[i].non_null)
            fail_msg("FROM %s: %s", null_cases[i].from, null_cases[i].column);
        reading_finish(&reading);
    }
}

/* ---- what it rests on ---- */

static void rests_are_complete(void **state)
{
    static const struct {
        const char *from;
        const char *expected; /* what must be watched, in any order */
    } cases[] = {
        {"a", "index a_pkey, column a.id, not null a.id"},
        {"maybe WHERE x = 1", "index maybe_x, column maybe.x"},
        {"a JOIN b ON b.id = a.b_id", "index a_pkey, not null a.id, index b_pkey, column b.id, column a.b_id"},
        {"a LEFT JOIN b ON b.id = a.b_id", "index a_pkey, not null a.id, index b_pkey, column b.id, column a.b_id"},
        {"plain", "view plain, index a_pkey, not null a.id, index b_pkey, column a.b_id"},
        {"a, LATERAL (SELECT b.u FROM b WHERE b.id = a.b_id) q", "index b_pkey, column b.id, column a.b_id"},
        {"(SELECT x, y FROM c) q", "index c_pkey, not null c.x, not null c.y"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reading reading;
        char sql[512];
        char found[512];
        char expected[512];
        char all[2048] = ",";

        snprintf(sql, sizeof sql, "SELECT 1 FROM %s", cases[i].from);
        reading_start(&reading, sql);
        ask(&reading, found, sizeof found);
        for (const struct scope_rest *rest = proof_rests(&reading.proof); rest; rest = rest->next) {
            size_t len = strlen(all);
            const char *relation = rest->relation->name;

            if (rest->unique)
                snprintf(all + len, sizeof all - len, " index %s,", rest->unique->name);
            else if (rest->column)
                snprintf(all + len, sizeof all - len, " %s %s.%s,", rest->must_be_not_null ? "not null" : "column",
                         relation, rest->column->name);
            else
                snprintf(all + len, sizeof all - len, " view %s,", relation);
        }
        snprintf(expected, sizeof expected, "%s", cases[i].expected);
        for (char *item = strtok(expected, ","); item; item = strtok(NULL, ",")) {
            char wanted[128];

            snprintf(wanted, sizeof wanted, ", %s,", item + (*item == ' '));
            if (!strstr(all, wanted))
                fail_msg("FROM %s: %s is not in %s", cases[i].from, wanted, all);
        }
        reading_finish(&reading);
    }
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(rows_are_told_apart),
        cmocka_unit_test(columns_follow),
        cmocka_unit_test(nulls_are_known),
        cmocka_unit_test(rests_are_complete),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return fixture_run(tests);
}
