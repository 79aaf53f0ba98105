/* form_walk.c - walks every page of statements of all forms: NULLs, mixed directions, outer joins, groups, DISTINCT,
 * windows, set operations.
 *
 * What shape_walk.c is for plain keys. Usage: form_walk CONNINFO */
#include "walk_pages.h"

static const struct walk_case cases[] = {
    /* mixed directions and NULLs: several branches */
    {"SELECT id, a, b FROM gap ORDER BY a LIMIT $1", "SELECT id, a, b FROM gap ORDER BY a, id", NULL},
    {"SELECT id, a, b FROM gap ORDER BY a DESC, b LIMIT $1", "SELECT id, a, b FROM gap ORDER BY a DESC, b, id", NULL},
    {"SELECT id, a FROM gap ORDER BY a NULLS FIRST, c DESC LIMIT $1",
     "SELECT id, a FROM gap ORDER BY a NULLS FIRST, c DESC, id DESC", NULL},
    {"SELECT * FROM gap ORDER BY c, b DESC NULLS LAST, id LIMIT $1",
     "SELECT * FROM gap ORDER BY c, b DESC NULLS LAST, id", NULL},
    {"SELECT g.* FROM gap g WHERE g.c = 1 OR g.a IS NULL ORDER BY a DESC NULLS LAST, b NULLS FIRST, c, id DESC LIMIT "
     "$1",
     "SELECT * FROM gap WHERE c = 1 OR a IS NULL ORDER BY a DESC NULLS LAST, b NULLS FIRST, c, id DESC", NULL},
    {"WITH few AS (SELECT id FROM gap WHERE c < 2) SELECT g.id, g.a FROM gap g JOIN few f ON f.id = g.id "
     "ORDER BY g.a DESC, g.c LIMIT $1",
     "SELECT id, a FROM gap WHERE c < 2 ORDER BY a DESC, c, id", NULL},
    {"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 60) SELECT g.id, r.n FROM r JOIN gap "
     "g "
     "ON g.id = r.n ORDER BY g.c DESC, g.a LIMIT $1",
     "SELECT id, id FROM gap WHERE id <= 60 ORDER BY c DESC, a, id", "g.id"},
    {"SELECT id FROM gap ORDER BY c DESC, id FOR UPDATE LIMIT $1", "SELECT id FROM gap ORDER BY c DESC, id", NULL},
    {"SELECT id, 'x', NULL, row(1, id) FROM gap ORDER BY c DESC, id LIMIT $1",
     "SELECT id, 'x', NULL, row(1, id) FROM gap ORDER BY c DESC, id", NULL},
    {"SELECT at, id FROM part ORDER BY at DESC, id LIMIT $1", "SELECT at, id FROM part ORDER BY at DESC, id", NULL},
    /* expressions */
    {"SELECT id FROM gap ORDER BY a + c, -id LIMIT $1", "SELECT id FROM gap ORDER BY a + c, -id", NULL},
    {"SELECT id FROM gap ORDER BY b || 'x' COLLATE \"C\" DESC LIMIT $1",
     "SELECT id FROM gap ORDER BY b || 'x' COLLATE \"C\" DESC, id DESC", NULL},
    {"SELECT id, coalesce(a, 0) FROM gap ORDER BY coalesce(a, 0), 1 DESC LIMIT $1",
     "SELECT id, coalesce(a, 0) FROM gap ORDER BY coalesce(a, 0), id DESC", NULL},
    {"SELECT id, a IS NULL AS gone FROM gap ORDER BY gone, a DESC NULLS LAST LIMIT $1",
     "SELECT id, a IS NULL FROM gap ORDER BY a IS NULL, a DESC NULLS LAST, id DESC", NULL},
    {"SELECT id FROM gap ORDER BY CASE WHEN c = 1 THEN b END, a = 2 OR c = 0 LIMIT $1",
     "SELECT id FROM gap ORDER BY CASE WHEN c = 1 THEN b END, a = 2 OR c = 0, id", NULL},
    {"SELECT id FROM gap g ORDER BY (SELECT count(*) FROM child k WHERE k.gap_id = g.id) DESC LIMIT $1",
     "SELECT id FROM gap g ORDER BY (SELECT count(*) FROM child k WHERE k.gap_id = g.id) DESC, id DESC", NULL},
    {"SELECT lower(b) AS b, id FROM gap ORDER BY b, id DESC LIMIT $1",
     "SELECT lower(b), id FROM gap ORDER BY lower(b), id DESC", NULL},
    /* joins */
    {"SELECT g.id, k.id FROM gap g LEFT JOIN child k ON k.gap_id = g.id ORDER BY g.b, g.id, k.n LIMIT $1",
     "SELECT g.id, k.id FROM gap g LEFT JOIN child k ON k.gap_id = g.id ORDER BY g.b, g.id, k.n, k.id", NULL},
    {"SELECT k.id, g.a FROM child k LEFT JOIN gap g ON g.id = k.gap_id ORDER BY g.a DESC NULLS LAST LIMIT $1",
     "SELECT k.id, g.a FROM child k LEFT JOIN gap g ON g.id = k.gap_id ORDER BY g.a DESC NULLS LAST, k.id DESC", NULL},
    {"SELECT k.id, g.id FROM child k FULL JOIN gap g ON g.id = k.gap_id AND k.n = 2 ORDER BY k.n, g.c DESC, g.id, k.id "
     "LIMIT $1",
     "SELECT k.id, g.id FROM child k FULL JOIN gap g ON g.id = k.gap_id AND k.n = 2 ORDER BY k.n, g.c DESC, g.id, k.id",
     NULL},
    {"SELECT q.s, q.id FROM (SELECT id, a + c AS s FROM gap WHERE c > 0) q ORDER BY q.s DESC, q.id LIMIT $1",
     "SELECT a + c, id FROM gap WHERE c > 0 ORDER BY a + c DESC, id", NULL},
    /* groups */
    {"SELECT a, count(*) AS n FROM gap GROUP BY a ORDER BY n DESC, a LIMIT $1",
     "SELECT a, count(*) FROM gap GROUP BY a ORDER BY 2 DESC, 1", NULL},
    {"SELECT c, b, max(id) FROM gap WHERE a > 0 GROUP BY c, b HAVING count(*) > 1 OR c = 1 ORDER BY max(id) LIMIT $1",
     "SELECT c, b, max(id) FROM gap WHERE a > 0 GROUP BY c, b HAVING count(*) > 1 OR c = 1 ORDER BY max(id), c, b",
     NULL},
    {"SELECT id % 7 AS m, sum(a) FROM gap GROUP BY 1 ORDER BY m DESC LIMIT $1",
     "SELECT id % 7, sum(a) FROM gap GROUP BY 1 ORDER BY 1 DESC", NULL},
    {"SELECT g.id, count(k.id) FROM gap g LEFT JOIN child k ON k.gap_id = g.id GROUP BY g.id ORDER BY g.c, count(k.id) "
     "DESC LIMIT $1",
     "SELECT g.id, count(k.id) FROM gap g LEFT JOIN child k ON k.gap_id = g.id GROUP BY g.id ORDER BY g.c, "
     "count(k.id) DESC, g.id DESC",
     NULL},
    {"SELECT b, count(*) FILTER (WHERE c = 1) FROM gap GROUP BY b HAVING count(*) > 0 ORDER BY b NULLS FIRST LIMIT $1",
     "SELECT b, count(*) FILTER (WHERE c = 1) FROM gap GROUP BY b ORDER BY b NULLS FIRST", NULL},
    /* DISTINCT */
    {"SELECT DISTINCT a, c FROM gap ORDER BY c DESC, a LIMIT $1", "SELECT DISTINCT a, c FROM gap ORDER BY c DESC, a",
     NULL},
    {"SELECT DISTINCT b FROM gap WHERE c = 1 OR c = 2 ORDER BY b DESC LIMIT $1",
     "SELECT DISTINCT b FROM gap WHERE c IN (1, 2) ORDER BY b DESC", NULL},
    {"SELECT DISTINCT a, b, c FROM gap ORDER BY b LIMIT $1", "SELECT DISTINCT a, b, c FROM gap ORDER BY b, a, c", NULL},
    {"SELECT DISTINCT c AS a, a AS c FROM gap ORDER BY a DESC LIMIT $1",
     "SELECT DISTINCT c, a FROM gap ORDER BY 1 DESC, 2 DESC", NULL},
    {"SELECT DISTINCT a, count(*) FROM gap GROUP BY a, b ORDER BY a LIMIT $1",
     "SELECT DISTINCT a, count(*) FROM gap GROUP BY a, b ORDER BY a, 2", NULL},
    {"SELECT DISTINCT ON (c) c, id, b FROM gap ORDER BY c DESC, b, id LIMIT $1",
     "SELECT DISTINCT ON (c) c, id, b FROM gap ORDER BY c DESC, b, id", NULL},
    {"SELECT DISTINCT ON (a, b) id, a, b FROM gap ORDER BY a, b DESC NULLS LAST, id DESC LIMIT $1",
     "SELECT DISTINCT ON (a, b) id, a, b FROM gap ORDER BY a, b DESC NULLS LAST, id DESC", NULL},
    {"SELECT DISTINCT ON (m) id % 7 AS m, id FROM gap ORDER BY m, id LIMIT $1",
     "SELECT DISTINCT ON (m) id % 7 AS m, id FROM gap ORDER BY m, id", NULL},
    /* windows */
    {"SELECT id, count(*) OVER (PARTITION BY c) FROM gap ORDER BY b, id LIMIT $1",
     "SELECT id, count(*) OVER (PARTITION BY c) FROM gap ORDER BY b, id", NULL},
    {"SELECT b, id, sum(id) OVER w FROM gap WINDOW w AS (ORDER BY id) ORDER BY a DESC, c LIMIT $1",
     "SELECT b, id, sum(id) OVER w FROM gap WINDOW w AS (ORDER BY id) ORDER BY a DESC, c, id", NULL},
    {"SELECT c, count(*), sum(count(*)) OVER () FROM gap GROUP BY c ORDER BY c DESC LIMIT $1",
     "SELECT c, count(*), sum(count(*)) OVER () FROM gap GROUP BY c ORDER BY c DESC", NULL},
    {"SELECT id, row_number() OVER (ORDER BY id) AS r FROM gap ORDER BY r LIMIT $1", NULL, NULL},
    /* set operations, VALUES, TABLE */
    {"SELECT id, a FROM gap UNION SELECT id, n FROM child ORDER BY a DESC, id LIMIT $1",
     "SELECT id, a FROM gap UNION SELECT id, n FROM child ORDER BY a DESC, id", NULL},
    {"SELECT a AS id, id AS a FROM gap WHERE c = 1 EXCEPT SELECT 1, 1 ORDER BY id LIMIT $1",
     "SELECT a, id FROM gap WHERE c = 1 EXCEPT SELECT 1, 1 ORDER BY 1, 2", NULL},
    {"WITH x AS (SELECT a, b FROM gap) (SELECT * FROM x) INTERSECT SELECT a, b FROM gap WHERE c < 2 ORDER BY 2, 1 DESC "
     "LIMIT $1",
     "SELECT a, b FROM gap INTERSECT SELECT a, b FROM gap WHERE c < 2 ORDER BY 2, 1 DESC", NULL},
    {"SELECT id FROM gap UNION ALL SELECT id FROM child ORDER BY id LIMIT $1", NULL, NULL},
    {"TABLE gap ORDER BY id DESC LIMIT $1", "SELECT * FROM gap ORDER BY id DESC", NULL},
    /* brackets around the whole */
    {"((SELECT id FROM gap ORDER BY c DESC, id LIMIT $1))", "SELECT id FROM gap ORDER BY c DESC, id", NULL},
    {"(SELECT a FROM gap UNION SELECT n FROM child) ORDER BY 1 DESC NULLS LAST LIMIT $1",
     "SELECT a FROM gap UNION SELECT n FROM child ORDER BY 1 DESC NULLS LAST", NULL},
};

int main(int argc, char **argv)
{
    return walk_pages_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
