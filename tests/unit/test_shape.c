/* test_shape.c - shapes: parameters, limits, offsets, the map of positions, and the check that catches a bad rewrite.
 *
 * The texts of many statements are in tests/golden/cases. */
#include "../../parser/check.h"
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* `probes` are the columns of the texts that will be described. */
static struct pgseek_plan *must_plan_by(const char *sql, const char *columns, const char *params, const char *probes)
{
    struct fixture_description description;
    enum pgseek_reason reason;
    struct pgseek_query *query = fixture_query(sql, &reason);
    struct pgseek_plan *plan = query ? fixture_plan_of(fixture_shop, query, NULL,
                                                       fixture_describe(&description, columns, params), probes, &reason)
                                     : NULL;

    if (!plan)
        fail_msg("%s: %s", sql, pgseek_reason_name(reason));
    pgseek_query_free(query);
    return plan;
}

static struct pgseek_plan *must_plan(const char *sql, const char *columns, const char *params)
{
    return must_plan_by(sql, columns, params, NULL);
}

static struct pgseek_shape *must_shape(const struct pgseek_plan *plan, const struct pgseek_shape_key *key)
{
    enum pgseek_reason reason;
    struct pgseek_shape *shape = pgseek_shape_new(plan, key, &reason);

    if (!shape)
        fail_msg("%s", pgseek_reason_name(reason));
    return shape;
}

static void expect_end(const struct pgseek_plan *plan, struct pgseek_shape_key key, const char *end)
{
    struct pgseek_shape *shape = must_shape(plan, &key);
    size_t len = strlen(end);

    assert_int_equal(shape->len, strlen(shape->sql));
    if (shape->len < len || strcmp(shape->sql + shape->len - len, end) != 0)
        fail_msg("%s\n   does not end in %s", shape->sql, end);
    pgseek_shape_free(shape);
}

static void limit_and_offset_are_kept_as_asked(void **state)
{
    struct pgseek_plan *plan =
        must_plan("SELECT id FROM booking ORDER BY id OFFSET 40 ROWS FETCH FIRST 20 ROWS ONLY FOR SHARE", NULL, NULL);

    (void)state;
    assert_true(pgseek_plan_is_locking(plan));
    expect_end(plan, (struct pgseek_shape_key){.seek = PGSEEK_SEEK_FIRST}, " LIMIT 20 FOR SHARE");
    expect_end(plan, (struct pgseek_shape_key){.seek = PGSEEK_SEEK_FIRST, .look_ahead = true}, " LIMIT 21 FOR SHARE");
    expect_end(plan, (struct pgseek_shape_key){.seek = PGSEEK_SEEK_FIRST, .look_ahead = true, .keep_offset = true},
               " LIMIT 21 OFFSET 40 ROWS FOR SHARE");
    /* An offset belongs to the first page only. */
    expect_end(plan, (struct pgseek_shape_key){.seek = PGSEEK_SEEK_AFTER, .look_ahead = true, .keep_offset = true},
               " LIMIT 21 FOR SHARE");
    pgseek_plan_free(plan);
}

static void slots_tell_every_parameter(void **state)
{
    static const struct {
        enum pgseek_seek seek;
        bool look_ahead;
        size_t nslots;
        size_t nhidden;
        const char *kinds; /* c client, k key, f fetch, l limit */
    } cases[] = {
        {PGSEEK_SEEK_FIRST, true, 4, 2, "cccf"},     {PGSEEK_SEEK_AFTER, true, 6, 2, "ccckkf"},
        {PGSEEK_SEEK_BEFORE, true, 7, 3, "ccckkfl"}, {PGSEEK_SEEK_BEFORE, false, 6, 3, "ccckkf"},
        {PGSEEK_SEEK_LAST, true, 5, 3, "cccfl"},
    };
    struct pgseek_plan *plan = must_plan(
        "SELECT id FROM booking WHERE venue_id = $1 ORDER BY placed_at LIMIT $2 OFFSET $3", "id", "int4, int8, int8");

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct pgseek_shape_key key = {.seek = cases[i].seek, .look_ahead = cases[i].look_ahead};
        static const char letters[] = {
            [PGSEEK_SLOT_CLIENT] = 'c', [PGSEEK_SLOT_KEY] = 'k', [PGSEEK_SLOT_FETCH] = 'f', [PGSEEK_SLOT_LIMIT] = 'l'};
        struct pgseek_shape *shape = must_shape(plan, &key);

        assert_int_equal(shape->nslots, cases[i].nslots);
        assert_int_equal(shape->nkeys, 2);
        assert_int_equal(shape->nhidden, cases[i].nhidden);
        for (size_t s = 0; s < shape->nslots; s++) {
            assert_int_equal(letters[shape->slots[s].kind], cases[i].kinds[s]);
            assert_true(shape->slots[s].type_oid != 0);
        }
        pgseek_shape_free(shape);
    }
    const struct pgseek_shape_key after = {.seek = PGSEEK_SEEK_AFTER};
    struct pgseek_shape *shape = must_shape(plan, &after);
    assert_int_equal(shape->slots[0].type_oid, 23);
    assert_int_equal(shape->slots[3].type_oid, 1184);
    assert_int_equal(shape->slots[4].index, 1);
    pgseek_shape_free(shape);
    pgseek_plan_free(plan);
}

/* The cursor's parameter may lie behind all that the text uses: ours come behind it. */
static void parameters_follow_the_description(void **state)
{
    struct pgseek_plan *plan = must_plan("SELECT id FROM booking ORDER BY id LIMIT $1", "id", "int8, text");
    const struct pgseek_shape_key key = {.seek = PGSEEK_SEEK_AFTER, .look_ahead = true};
    struct pgseek_shape *shape = must_shape(plan, &key);

    (void)state;
    assert_int_equal(shape->nslots, 4);
    assert_non_null(strstr(shape->sql, "OPERATOR(pg_catalog.>) $3"));
    assert_non_null(strstr(shape->sql, "LIMIT $4"));
    pgseek_shape_free(shape);
    pgseek_plan_free(plan);
}

static int characters_before(const char *text, const char *at)
{
    int count = 0;

    for (; text < at; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

/* Every mark of the client's text is found where it stood, and what is ours is nowhere. */
static void positions_map_back(void **state)
{
    static const char sql[] = "SELECT id AS mark1, 'gr\303\274n' AS mark2 FROM booking AS b -- \303\251\n"
                              "WHERE note = 'mark3' ORDER BY id LIMIT 3 FOR UPDATE OF b /* mark4 */";
    static const char *const marks[] = {"SELECT id", "mark1", "mark2", "FROM booking", "mark3", "FOR UPDATE", "mark4"};
    static const char *const ours[] = {"pgseek_k1", "ORDER BY", "LIMIT", ") AND ("};
    struct pgseek_plan *plan = must_plan(sql, NULL, NULL);

    (void)state;
    for (int seek = PGSEEK_SEEK_FIRST; seek <= PGSEEK_SEEK_LAST; seek++) {
        const struct pgseek_shape_key key = {.seek = (enum pgseek_seek)seek};
        struct pgseek_shape *shape = must_shape(plan, &key);

        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
            int here = characters_before(shape->sql, strstr(shape->sql, marks[i])) + 1;
            int there = characters_before(sql, strstr(sql, marks[i])) + 1;
            assert_int_equal(pgseek_shape_position(plan, shape, here), there);
        }
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
            const char *at = strstr(shape->sql, ours[i]);
            if (at)
                assert_int_equal(pgseek_shape_position(plan, shape, characters_before(shape->sql, at) + 1), 0);
        }
        assert_int_equal(pgseek_shape_position(plan, shape, 0), 0);
        assert_int_equal(pgseek_shape_position(plan, shape, -1), 0);
        assert_int_equal(pgseek_shape_position(plan, shape, (int)shape->len + 1), 0);
        pgseek_shape_free(shape);
    }
    pgseek_plan_free(plan);
}

/* Each branch of a UNION, and the text around an inner level, map back to the one text of the client. */
static void every_copy_maps_back(void **state)
{
    static const char *const probes[] = {NULL, "id int8"};
    static const char *const texts[] = {
        "SELECT id AS mark1 FROM booking AS b WHERE note = '\303\274 mark2' ORDER BY venue_id DESC, id LIMIT 3",
        "WITH w AS (SELECT 1 AS mark1) SELECT q.*, 'mark2' FROM (SELECT id FROM booking WHERE note = 'mark3' ORDER BY "
        "venue_id "
        "DESC, id LIMIT 3) q ORDER BY q.id /* mark4 */",
    };

    (void)state;
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        struct pgseek_plan *plan = must_plan_by(texts[t], t ? "x, y" : NULL, NULL, probes[t]);
        const struct pgseek_shape_key key = {.seek = PGSEEK_SEEK_AFTER, .look_ahead = true};
        struct pgseek_shape *shape = must_shape(plan, &key);
        int found = 0;

        assert_non_null(strstr(shape->sql, "UNION ALL"));
        for (const char *at = strstr(shape->sql, "mark"); at; at = strstr(at + 1, "mark")) {
            char mark[6];
            memcpy(mark, at, 5);
            mark[5] = '\0';
            int there = characters_before(texts[t], strstr(texts[t], mark)) + 1;
            assert_int_equal(pgseek_shape_position(plan, shape, characters_before(shape->sql, at) + 1), there);
            found++;
        }
        assert_true(found > 3);
        pgseek_shape_free(shape);
        pgseek_plan_free(plan);
    }
}

/* ---- EXPLAIN and DECLARE ---- */

static void rows_of_other_verbs_are_plain(void **state)
{
    static const struct {
        const char *sql;
        const char *params;
        const char *probes;
        enum pgseek_seek seek;
        const char *expected; /* the text, or the reason; OPERATOR(pg_catalog.x) is written as x */
        const char *kinds;
    } cases[] = {
        {"EXPLAIN (COSTS OFF) SELECT id FROM booking b ORDER BY b.id LIMIT 3", "", "id int8", PGSEEK_SEEK_FIRST,
         "EXPLAIN (COSTS OFF) SELECT id, \"b\".\"id\" AS pgseek_k1 FROM booking b ORDER BY pgseek_k1 LIMIT 4", ""},
        {"DECLARE c CURSOR FOR SELECT note FROM booking b WHERE true ORDER BY b.venue_id + 0 DESC, placed_at LIMIT $1 "
         "-- end",
         "int8", "note text; note text, k1 int4", PGSEEK_SEEK_AFTER,
         "DECLARE c CURSOR FOR SELECT note FROM booking b WHERE ( true) AND ((b.venue_id + 0) <= $2 AND CASE WHEN "
         "(b.venue_id + 0) < $2 THEN true ELSE (\"b\".\"placed_at\", \"b\".\"id\") > ($3, $4) END) ORDER BY b.venue_id "
         "+ "
         "0 DESC, placed_at, \"b\".\"id\" LIMIT $5 -- end",
         "ckkkl"},
        {"DECLARE c CURSOR FOR SELECT id FROM booking ORDER BY id LIMIT 3", "", "id int8", PGSEEK_SEEK_BEFORE,
         "declare", ""},
        {"DECLARE c CURSOR FOR SELECT DISTINCT note, venue_id FROM booking ORDER BY note LIMIT 3", "",
         "note text, venue_id int4", PGSEEK_SEEK_AFTER, "declare", ""},
        {"DECLARE c CURSOR FOR SELECT count(*) FROM (SELECT id FROM booking ORDER BY id LIMIT 3) q", "", "id int8",
         PGSEEK_SEEK_AFTER,
         "DECLARE c CURSOR FOR SELECT count(*) FROM (SELECT id FROM booking WHERE \"booking\".\"id\" > $1 ORDER BY id "
         "LIMIT "
         "3) q",
         "k"},
    };
    static const char letters[] = {
        [PGSEEK_SLOT_CLIENT] = 'c', [PGSEEK_SLOT_KEY] = 'k', [PGSEEK_SLOT_FETCH] = 'f', [PGSEEK_SLOT_LIMIT] = 'l'};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct pgseek_shape_key key = {.seek = cases[i].seek, .look_ahead = true};
        struct pgseek_plan *plan = must_plan_by(cases[i].sql, "", cases[i].params, cases[i].probes);
        enum pgseek_reason reason;
        struct pgseek_shape *shape = pgseek_shape_new(plan, &key, &reason);
        char *text = strdup(shape ? shape->sql : pgseek_reason_name(reason));

        for (char *at; (at = strstr(text, "OPERATOR(pg_catalog."));) {
            char *end = strchr(at, ')');
            size_t sign = (size_t)(end - at) - strlen("OPERATOR(pg_catalog.");
            memmove(at, at + strlen("OPERATOR(pg_catalog."), sign);
            memmove(at + sign, end + 1, strlen(end));
        }
        assert_string_equal(text, cases[i].expected);
        if (shape) {
            assert_int_equal(shape->rows, PGSEEK_ROWS_PLAIN);
            assert_int_equal(shape->nhidden, 0);
            assert_int_equal(shape->nslots, strlen(cases[i].kinds));
            for (size_t s = 0; s < shape->nslots; s++)
                assert_int_equal(letters[shape->slots[s].kind], cases[i].kinds[s]);
        }
        free(text);
        pgseek_shape_free(shape);
        pgseek_plan_free(plan);
    }
}

/* ---- the check ---- */

static enum pgseek_reason check(const char *original, const char *rewritten, struct check_edits edits)
{
    enum pgseek_reason reason;
    struct pgseek_query *query = fixture_query(original, &reason);

    assert_non_null(query);
    edits.key_name = "pgseek_k";
    reason = check_rewrite(rewritten, strlen(rewritten), &edits, &query->core, &query->frame);
    pgseek_query_free(query);
    return reason;
}

static void check_catches_what_has_changed(void **state)
{
    static const char plain[] = "SELECT id FROM booking ORDER BY id LIMIT 3";
    static const char filtered[] = "SELECT id FROM booking WHERE a AND b ORDER BY id LIMIT 3";
    static const struct {
        const char *original;
        const char *rewritten;
        struct check_edits edits;
        bool passes;
    } cases[] = {
        {plain, "SELECT id, id AS pgseek_k1 FROM booking ORDER BY x DESC LIMIT 9", {.nkeys = 1}, true},
        {plain, "SELECT id, id AS pgseek_k1 FROM booking OFFSET 3", {.nkeys = 1}, true},
        {plain, "SELECT id, id AS pgseek_k2 FROM booking", {.nkeys = 1}, false},
        {plain, "SELECT id, 1, id AS pgseek_k1 FROM booking", {.nkeys = 1}, false},
        {plain, "SELECT id AS pgseek_k1 FROM booking", {.nkeys = 1}, false},
        {plain, "SELECT id FROM booking", {.nkeys = 1}, false},
        {plain, "SELECT ID, id AS pgseek_k1 FROM bookings", {.nkeys = 1}, false},
        {plain, "SELECT id, id AS pgseek_k1 FROM booking WHERE true", {.nkeys = 1}, false},
        {plain, "SELECT id, id AS pgseek_k1 FROM booking WHERE p", {.nkeys = 1, .has_predicate = true}, true},
        {plain, "SELECT id, id AS pgseek_k1 FROM booking", {.nkeys = 1, .has_predicate = true}, false},
        {plain, "SELECT id, id AS pgseek_k1 FROM booking; SELECT 1", {.nkeys = 1}, false},
        {plain, "SELECT id, id AS pgseek_k1 FROM booking FOR UPDATE", {.nkeys = 1}, false},
        {plain, "SELECT DISTINCT id, id AS pgseek_k1 FROM booking", {.nkeys = 1}, false},
        {plain, "SELECT id, id AS pgseek_k1 FROM", {.nkeys = 1}, false},
        {filtered,
         "SELECT id FROM booking WHERE (a AND b) AND (p OR q)",
         {.has_predicate = true, .had_clause = true},
         true},
        {filtered, "SELECT id FROM booking WHERE a AND b AND p", {.has_predicate = true, .had_clause = true}, true},
        {filtered, "SELECT id FROM booking WHERE a AND p", {.has_predicate = true, .had_clause = true}, false},
        {filtered, "SELECT id FROM booking WHERE a AND b OR p", {.has_predicate = true, .had_clause = true}, false},
        {filtered, "SELECT id FROM booking WHERE (b AND a) AND p", {.has_predicate = true, .had_clause = true}, false},
        {plain,
         "SELECT * FROM (SELECT * FROM (SELECT id, id AS pgseek_k1 FROM booking) p) c",
         {.nkeys = 1, .is_turned = true},
         true},
        {plain, "SELECT * FROM (SELECT id, id AS pgseek_k1 FROM booking) p", {.nkeys = 1, .is_turned = true}, false},
        {plain,
         "SELECT * FROM (SELECT * FROM (SELECT id, id AS pgseek_k1 FROM booking) p, x) c",
         {.nkeys = 1, .is_turned = true},
         false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum pgseek_reason reason = check(cases[i].original, cases[i].rewritten, cases[i].edits);
        if (reason != (cases[i].passes ? PGSEEK_REASON_NONE : PGSEEK_REASON_REWRITE_CHECK))
            fail_msg("case %zu, %s: %s", i, cases[i].rewritten, pgseek_reason_name(reason));
    }
}

/* The same for the forms that have more around the level. */
static void check_looks_through_all_forms(void **state)
{
    static const char plain[] = "SELECT id FROM t WHERE a ORDER BY id LIMIT 3";
    static const char grouped[] = "SELECT a FROM t GROUP BY a ORDER BY a LIMIT 3";
    static const char set[] = "SELECT a FROM t UNION SELECT b FROM u ORDER BY 1 LIMIT 3";
    static const char inner[] = "SELECT q.x FROM (SELECT id FROM t ORDER BY id LIMIT 3) q(x) ORDER BY x";
    static const char explain[] = "EXPLAIN (ANALYZE) SELECT id FROM t ORDER BY id LIMIT 3";
    static const char cte[] = "WITH a AS (SELECT 1), p AS (SELECT id FROM t ORDER BY id LIMIT 3) SELECT * FROM a, p";
#define REPLACED(kept, with, statement) \
    "WITH " with "pgseek_p(c1, pgseek_k1, pgseek_r) AS MATERIALIZED (SELECT z.*, 1 FROM (" kept \
    ") z), pgseek_m(n) AS (SELECT 1 FROM pgseek_p)" statement
#define AROUND(statement) \
    " SELECT o.* FROM pgseek_m m LEFT JOIN pgseek_p f ON true LEFT JOIN (SELECT x.* FROM (" statement ") x) o ON true"
    static const char level[] = "SELECT id, id AS pgseek_k1 FROM t";
    static const struct {
        const char *original;
        const char *rewritten;
        struct check_edits edits;
        bool passes;
    } cases[] = {
        {grouped, "SELECT a FROM t GROUP BY a HAVING p", {.has_predicate = true, .has_having = true}, true},
        {grouped, "SELECT a FROM t WHERE p GROUP BY a", {.has_predicate = true, .has_having = true}, false},
        {plain,
         "(SELECT id FROM t WHERE a AND p LIMIT 4) UNION ALL (SELECT id FROM t WHERE a AND q LIMIT 4) ORDER BY 1",
         {.has_predicate = true, .had_clause = true, .nbranches = 2},
         true},
        {plain,
         "(SELECT id FROM t WHERE a AND p LIMIT 4) UNION (SELECT id FROM t WHERE a AND q LIMIT 4) ORDER BY 1",
         {.has_predicate = true, .had_clause = true, .nbranches = 2},
         false},
        {plain,
         "(SELECT id FROM t WHERE b AND p LIMIT 4) UNION ALL (SELECT id FROM t WHERE a AND q LIMIT 4) ORDER BY 1",
         {.has_predicate = true, .had_clause = true, .nbranches = 2},
         false},
        {plain,
         "(SELECT id FROM t WHERE a AND p LIMIT 4) UNION ALL (SELECT id FROM t WHERE q AND a LIMIT 4) ORDER BY 1",
         {.has_predicate = true, .had_clause = true, .nbranches = 2},
         false},
        {plain,
         "(SELECT id FROM t WHERE a AND p LIMIT 4) UNION ALL (SELECT id FROM t WHERE a AND q LIMIT 4) ORDER BY 1",
         {.has_predicate = true, .had_clause = true, .nbranches = 3},
         false},
        {set,
         "SELECT s.*, s.c1 AS pgseek_k1 FROM (SELECT a FROM t UNION SELECT b FROM u) s(c1) WHERE p",
         {.nkeys = 1, .has_predicate = true, .wrap = CHECK_WRAPPED_OUTPUT},
         true},
        {set,
         "SELECT s.*, s.c1 AS pgseek_k1 FROM (SELECT a FROM t UNION ALL SELECT b FROM u) s(c1) WHERE p",
         {.nkeys = 1, .has_predicate = true, .wrap = CHECK_WRAPPED_OUTPUT},
         false},
        {plain,
         "SELECT s.* FROM (SELECT id, id AS pgseek_k1 FROM t WHERE a) s WHERE p",
         {.nkeys = 1, .has_predicate = true, .wrap = CHECK_WRAPPED},
         true},
        {explain, "EXPLAIN (ANALYZE) SELECT id, id AS pgseek_k1 FROM t", {.nkeys = 1}, true},
        {explain, "EXPLAIN (VERBOSE) SELECT id, id AS pgseek_k1 FROM t", {.nkeys = 1}, false},
        {explain, "SELECT id, id AS pgseek_k1 FROM t", {.nkeys = 1}, false},
        {inner,
         REPLACED("SELECT id, id AS pgseek_k1 FROM t", "",
                  AROUND("SELECT q.x FROM (SELECT c1 AS id FROM pgseek_p ORDER BY pgseek_r) q(x) ORDER BY x")),
         {.nkeys = 1, .is_replaced = true},
         true},
        {inner,
         REPLACED("SELECT id, id AS pgseek_k1 FROM u", "",
                  AROUND("SELECT q.x FROM (SELECT c1 AS id FROM pgseek_p ORDER BY pgseek_r) q(x) ORDER BY x")),
         {.nkeys = 1, .is_replaced = true},
         false},
        {inner,
         REPLACED("SELECT id, id AS pgseek_k1 FROM t", "",
                  AROUND("SELECT q.x FROM (SELECT c1 AS id FROM pgseek_p ORDER BY pgseek_r) q(x) ORDER BY x DESC")),
         {.nkeys = 1, .is_replaced = true},
         false},
        {inner,
         REPLACED("SELECT id, id AS pgseek_k1 FROM t", "",
                  AROUND("SELECT q.x FROM (SELECT id FROM t) q(x) ORDER BY x")),
         {.nkeys = 1, .is_replaced = true},
         false},
        {inner,
         REPLACED("SELECT id, id AS pgseek_k1 FROM t", "more AS (SELECT 1), ",
                  AROUND("SELECT q.x FROM (SELECT c1 AS id FROM pgseek_p ORDER BY pgseek_r) q(x) ORDER BY x")),
         {.nkeys = 1, .is_replaced = true},
         false},
        {cte,
         REPLACED("SELECT id, id AS pgseek_k1 FROM t", "a AS (SELECT 1), ",
                  ", p AS (SELECT c1 AS id FROM pgseek_p)" AROUND("SELECT * FROM a, p")),
         {.nkeys = 1, .is_replaced = true},
         true},
        {cte,
         REPLACED("SELECT id, id AS pgseek_k1 FROM t", "a AS (SELECT 2), ",
                  ", p AS (SELECT c1 AS id FROM pgseek_p)" AROUND("SELECT * FROM a, p")),
         {.nkeys = 1, .is_replaced = true},
         false},
        {cte, level, {.nkeys = 1, .is_replaced = true}, false},
        {cte, "WITH pgseek_p AS (SELECT 1) SELECT 1", {.nkeys = 1, .is_replaced = true}, false},
        {cte, "WITH pgseek_p AS (DELETE FROM t), pgseek_m AS (SELECT 1) SELECT 1", {.is_replaced = true}, false},
        {inner,
         "SELECT q.x FROM (SELECT id FROM t WHERE p) q(x) ORDER BY x",
         {.has_predicate = true, .level_ordinal = 1},
         true},
        {inner, "SELECT q.x FROM (SELECT id FROM t WHERE p) q(x)", {.has_predicate = true, .level_ordinal = 1}, false},
        {inner, "SELECT q.x FROM (SELECT id FROM t WHERE p) q(x)", {.has_predicate = true, .level_ordinal = 2}, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum pgseek_reason reason = check(cases[i].original, cases[i].rewritten, cases[i].edits);
        if (reason != (cases[i].passes ? PGSEEK_REASON_NONE : PGSEEK_REASON_REWRITE_CHECK))
            fail_msg("case %zu, %s: %s", i, cases[i].rewritten, pgseek_reason_name(reason));
    }
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(every_copy_maps_back),
        cmocka_unit_test(rows_of_other_verbs_are_plain),
        cmocka_unit_test(check_looks_through_all_forms),
        cmocka_unit_test(limit_and_offset_are_kept_as_asked),
        cmocka_unit_test(slots_tell_every_parameter),
        cmocka_unit_test(parameters_follow_the_description),
        cmocka_unit_test(positions_map_back),
        cmocka_unit_test(check_catches_what_has_changed),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return fixture_run(tests);
}
