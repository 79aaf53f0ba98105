/* test_cut.c - where the clauses of a level stand: labels, comments and other traps, brackets, inner levels. */
#include "../../parser/probe.h"
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct cut_case {
    const char *sql;
    const char
        *pieces; /* list;where;having;sorts;groups;distincts;offset;locks with | between items, - for no clause */
};

static const struct cut_case cases[] = {
    {"SELECT id FROM t ORDER BY id LIMIT 3", "id;-;-;id;;;;"},
    {"SELECT a AS limit, x.from, b \"group\", c AS \"from\" FROM x WHERE a = 1 ORDER BY x.order LIMIT 3",
     "a|x.from|b|c;a = 1;-;x.order;;;;"},
    {"SELECT a IS DISTINCT FROM b, c distinct, d AS distinct FROM t WHERE a IS NOT DISTINCT FROM b ORDER BY 1 LIMIT 3",
     "a IS DISTINCT FROM b|c|d;a IS NOT DISTINCT FROM b;-;1;;;;"},
    {"SELECT extract(year FROM a), substring(b FROM 1 FOR 2), count(*) FILTER (WHERE a > 0) FROM t GROUP BY 1, (a, b), "
     "f(a, "
     "b) HAVING max(a) > 0 ORDER BY f(a, b) DESC NULLS LAST, \"x\" ASC LIMIT 3",
     "extract(year FROM a)|substring(b FROM 1 FOR 2)|count(*) FILTER (WHERE a > 0);-;max(a) > 0;f(a, b)|\"x\";1|(a, "
     "b)|f(a, "
     "b);;;"},
    {"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) AS within FROM t GROUP BY b ORDER BY 1 LIMIT 3",
     "percentile_cont(0.5) WITHIN GROUP (ORDER BY a);-;-;1;b;;;"},
    {"SELECT within FROM t within GROUP BY within ORDER BY within.asc DESC LIMIT 3", "within;-;-;within.asc;within;;;"},
    {"SELECT DISTINCT ON (a, f(b, c)) a x, b FROM t ORDER BY a, f(b, c), d LIMIT 3",
     "a|b;-;-;a|f(b, c)|d;;a|f(b, c);;"},
    {"SELECT ALL a FROM t GROUP BY ALL a, b ORDER BY a USING <, b USING OPERATOR(pg_catalog.>) NULLS FIRST LIMIT 3",
     "a;-;-;a|b;a|b;;;"},
    {"SELECT a U&\"d!0061\" UESCAPE '!', U&'x' UESCAPE '!' FROM t ORDER BY t.nulls, t.first, t.last DESC LIMIT 3",
     "a|U&'x' UESCAPE '!';-;-;t.nulls|t.first|t.last;;;;"},
    {"/* a */ SELECT /* b */ a /* c */ , -- d\n b -- e\n FROM t /* f */ WHERE /* g */ x -- h\n ORDER /* i */ BY a /* j "
     "*/ "
     "DESC -- k\n LIMIT 3 /* l */",
     "a|b;x;-;a;;;;"},
    {"SELECT a FROM t WINDOW w AS (ORDER BY b) ORDER BY a OFFSET 2 ROWS FETCH FIRST 3 ROWS ONLY FOR UPDATE OF t FOR "
     "SHARE",
     "a;-;-;a;;;OFFSET 2 ROWS;FOR UPDATE OF t|FOR SHARE"},
    {"SELECT a FROM t ORDER BY a FOR UPDATE LIMIT 3 OFFSET 1", "a;-;-;a;;;OFFSET 1;FOR UPDATE"},
    {"SELECT ROW(a, b), ARRAY[a, b], a[1:2] FROM ROWS FROM (f(1), g(2)) AS r(a, b) ORDER BY (a, b) LIMIT 3",
     "ROW(a, b)|ARRAY[a, b]|a[1:2];-;-;(a, b);;;;"},
    {"((SELECT a FROM t WHERE (b) ORDER BY a LIMIT 3)) ;", "a;(b);-;a;;;;"},
    {"WITH values AS (SELECT 1), x(a, b) AS MATERIALIZED (SELECT 2) SELECT a FROM x ORDER BY a LIMIT 3", "a;-;-;a;;;;"},
    {"SELECT FROM t ORDER BY 1 + 1 LIMIT 3", ";-;-;1 + 1;;;;"},
    {"SELECT a FROM t UNION (SELECT b FROM t ORDER BY 1) ORDER BY a DESC OFFSET 1 LIMIT 3", ";-;-;a;;;OFFSET 1;"},
    {"VALUES (1, 2), (3, 4) ORDER BY 2 LIMIT 3", ";-;-;2;;;;"},
    {"EXPLAIN (ANALYZE, FORMAT JSON) (SELECT a FROM t ORDER BY a LIMIT 3)", "a;-;-;a;;;;"},
    {"DECLARE c NO SCROLL CURSOR WITH HOLD FOR WITH x AS (SELECT 1) SELECT a FROM t ORDER BY a LIMIT 3", "a;-;-;a;;;;"},
    {"SELECT x.y FROM z, (SELECT a, b c FROM t WHERE d ORDER BY a DESC LIMIT 3 OFFSET 4) q ORDER BY x.y, q.c",
     "a|b;d;-;a;;;OFFSET 4;"},
    {"WITH p AS (SELECT 1), q AS ((SELECT a FROM t UNION SELECT b FROM t) ORDER BY 1 DESC LIMIT 3) SELECT * FROM q",
     ";-;-;1;;;;"},
    {"SELECT * FROM (VALUES (f(1), 2) ORDER BY 1 LIMIT 3) v(a, b)", ";-;-;1;;;;"},
};

static void put_ranges(struct text *text, const char *sql, const struct cut_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        text_puts(text, i ? "|" : "");
        text_put(text, sql + ranges[i].start, ranges[i].end - ranges[i].start);
    }
    text_putc(text, ';');
}

static void put_clause(struct text *text, const char *sql, size_t start, size_t end)
{
    if (!start)
        text_puts(text, "-");
    else
        text_put(text, sql + start + 1, end - start - 1);
    text_putc(text, ';');
}

static void clauses_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum pgseek_reason reason;
        struct pgseek_query *query = fixture_query(cases[i].sql, &reason);
        struct text text = {0};

        if (!query)
            fail_msg("%s: %s", cases[i].sql, pgseek_reason_name(reason));
        const struct cut *cut = &query->cut;
        put_ranges(&text, cases[i].sql, cut->targets, cut->ntargets);
        /* Comments at the start of a clause stay in it. */
        size_t where = cut->where;
        while (where && strchr(" /", cases[i].sql[where]) && strncmp(cases[i].sql + where, " /* ", 4) == 0)
            where = (size_t)(strstr(cases[i].sql + where, "*/") + 2 - cases[i].sql);
        put_clause(&text, cases[i].sql, where, cut->where_end);
        put_clause(&text, cases[i].sql, cut->having, cut->having_end);
        put_ranges(&text, cases[i].sql, cut->sorts, cut->nsorts);
        put_ranges(&text, cases[i].sql, cut->groups, cut->ngroups);
        put_ranges(&text, cases[i].sql, cut->distincts, cut->ndistincts);
        put_ranges(&text, cases[i].sql, &cut->offset, cut->offset.end > cut->offset.start);
        put_ranges(&text, cases[i].sql, cut->lock, cut->nlocks);
        text.ptr[text.len - 1] = '\0';
        if (strcmp(text.ptr, cases[i].pieces) != 0)
            fail_msg("%s\n   is cut to %s", cases[i].sql, text.ptr);
        text_fini(&text);
        pgseek_query_free(query);
    }
}

/* ---- which level, and what is described of it ---- */

static const struct {
    const char *sql;
    const char *probe; /* with the expression x; or the reason */
} probes[] = {
    {"SELECT a FROM t WHERE b ORDER BY a LIMIT 3 FOR UPDATE", "SELECT a, x AS pgseek_k1  FROM t WHERE b"},
    {"EXPLAIN SELECT FROM t ORDER BY 1 LIMIT 3", "SELECT x AS pgseek_k1  FROM t"},
    {"WITH w AS (SELECT 1) SELECT a FROM t ORDER BY a LIMIT 3",
     "WITH w AS (SELECT 1) SELECT a, x AS pgseek_k1  FROM t"},
    {"WITH w AS (SELECT 1) SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 3) q",
     "WITH w AS (SELECT 1) SELECT s.* FROM (SELECT a, x AS pgseek_k1  FROM t) s"},
    {"WITH w AS (SELECT 1) , /* , */ v(c) AS (SELECT a FROM t ORDER BY a LIMIT 3), u AS (SELECT 2) SELECT * FROM v",
     "WITH w AS (SELECT 1)  SELECT s.* FROM (SELECT a, x AS pgseek_k1  FROM t) s"},
    {"WITH v AS (SELECT a FROM t ORDER BY a LIMIT 3), u AS (SELECT 2) SELECT * FROM v",
     "SELECT a, x AS pgseek_k1  FROM t"},
    {"WITH RECURSIVE v AS (SELECT a FROM t ORDER BY a LIMIT 3), u AS (SELECT 2) SELECT * FROM v",
     "WITH RECURSIVE v AS (SELECT a FROM t ORDER BY a LIMIT 3), u AS (SELECT 2) SELECT s.* FROM (SELECT a, x AS "
     "pgseek_k1  "
     "FROM t) s"},
    {"SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 3) p, (SELECT b FROM t ORDER BY b LIMIT 3 /* pgseek */) q",
     "SELECT b, x AS pgseek_k1  FROM t"},
    {"SELECT * FROM (SELECT a FROM (SELECT b FROM t ORDER BY b LIMIT 9) s ORDER BY a LIMIT 3 -- pgseek\n) p",
     "SELECT a, x AS pgseek_k1  FROM (SELECT b FROM t ORDER BY b LIMIT 9) s"},
    {"SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 3) p, (SELECT b FROM t ORDER BY b LIMIT 3) q /* pgseek */",
     "several_limits"},
    {"SELECT * FROM (SELECT a FROM t LIMIT 3) p ORDER BY a LIMIT 9", "several_limits"},
    {"SELECT * FROM (SELECT a FROM t LIMIT 3) p", "no_order"},
    {"SELECT * FROM t, LATERAL (SELECT a FROM u ORDER BY a LIMIT 3) p ORDER BY 1", "correlated"},
    {"SELECT * FROM t WHERE a = (SELECT a FROM u ORDER BY a LIMIT 1) ORDER BY a LIMIT 3",
     "SELECT *, x AS pgseek_k1  FROM t WHERE a = (SELECT a FROM u ORDER BY a LIMIT 1)"},
    {"SELECT * FROM (WITH w AS (SELECT 1) SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 3) x) y", "inner_level"},
    {"WITH RECURSIVE r AS ((SELECT 1 UNION SELECT a FROM r) ORDER BY 1 LIMIT 3) SELECT * FROM r", "inner_level"},
    {"SELECT * FROM (TABLE t ORDER BY 1 LIMIT 3) x", "inner_level"},
    {"SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 3) q FOR SHARE", "locking"},
    {"SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 3 FOR UPDATE) q", "locking"},
    {"WITH w AS (DELETE FROM t RETURNING a) SELECT * FROM (SELECT a FROM w ORDER BY a LIMIT 3) q", "cte_modifies"},
    {"SELECT DISTINCT a, rank() OVER (ORDER BY a) FROM t ORDER BY a LIMIT 3", "window"},
    {"SELECT a FROM t ORDER BY rank() OVER (ORDER BY a) LIMIT 3", "window_key"},
    {"(SELECT a FROM t ORDER BY a) LIMIT 3", "parenthesised"},
    {"(SELECT a FROM t) ORDER BY a LIMIT 3", "parenthesised"},
    {"SELECT a FROM t GROUP BY ROLLUP (a) ORDER BY a LIMIT 3", "grouping_sets"},
    {"SELECT 1 ORDER BY 1 LIMIT 3", "no_from"},
    {"EXPLAIN DELETE FROM t", "not_select"},
    {"EXPLAIN EXECUTE x", "execute"},
    {"DECLARE c CURSOR FOR SELECT a INTO b FROM t ORDER BY a LIMIT 3", "into"},
};

static void levels_are_found(void **state)
{
    static const char *const exprs[] = {"x"};

    (void)state;
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        enum pgseek_reason reason;
        struct pgseek_query *query = fixture_query(probes[i].sql, &reason);
        struct text text = {0};

        if (query)
            assert_true(probe_make(&text, query, exprs, 1));
        else
            text_puts(&text, pgseek_reason_name(reason));
        if (strcmp(text.ptr, probes[i].probe) != 0)
            fail_msg("%s\n   gives %s", probes[i].sql, text.ptr);
        text_fini(&text);
        pgseek_query_free(query);
    }
}

/* A level in a CTE sees the names before it, and all of them under RECURSIVE. */
static void with_clauses_are_cut_off(void **state)
{
    static const struct {
        const char *sql;
        size_t seen[2]; /* CTEs of each clause, the level's own first */
        size_t nwith;
    } clauses[] = {
        {"SELECT a FROM t ORDER BY a LIMIT 3", {0}, 0},
        {"WITH x AS (SELECT 1) SELECT a FROM t ORDER BY a LIMIT 3", {1}, 1},
        {"WITH x AS (SELECT 1), y AS (SELECT a FROM t ORDER BY a LIMIT 3), z AS (SELECT 2) SELECT * FROM y", {1}, 1},
        {"WITH y AS (WITH u AS (SELECT 1), v AS (SELECT 2) SELECT a FROM t ORDER BY a LIMIT 3) SELECT * FROM y",
         {2, 0},
         2},
        {"WITH RECURSIVE x AS (SELECT 1), y AS (SELECT a FROM t ORDER BY a LIMIT 3), z AS (SELECT 2) SELECT * FROM y",
         {3},
         1},
        {"WITH x AS (SELECT 1), y AS (SELECT 2) SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 3) q", {2}, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof clauses / sizeof *clauses; i++) {
        enum pgseek_reason reason;
        struct pgseek_query *query = fixture_query(clauses[i].sql, &reason);

        assert_non_null(query);
        assert_int_equal(query->nwith, clauses[i].nwith);
        for (size_t w = 0; w < query->nwith; w++)
            assert_int_equal(query->with[w]->n_ctes, clauses[i].seen[w]);
        pgseek_query_free(query);
    }
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(clauses_are_found),
        cmocka_unit_test(levels_are_found),
        cmocka_unit_test(with_clauses_are_cut_off),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return fixture_run(tests);
}
