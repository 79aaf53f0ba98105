/* level_walk.c - walks every page of statements whose LIMIT stands in a sub-select or CTE.
 *
 * The oracle is the statement itself, its inner ORDER BY made total by hand, with LIMIT and OFFSET of the page; how
 * many rows the level has in all is asked too. Rows must come in the same order. Usage: level_walk CONNINFO */
#include "walk_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct level_case {
    const char *sql;    /* $1 is LIMIT of the level */
    const char *oracle; /* the same, $2 is its OFFSET; NULL: must not be rewritten */
    const char *count;  /* rows of the level */
};

static const struct level_case cases[] = {
    {"SELECT t.id, t.a, k.id FROM (SELECT g.id, g.a FROM gap g ORDER BY g.c, g.a DESC LIMIT $1) AS t LEFT JOIN child k "
     "ON t.id = k.gap_id ORDER BY t.id, k.id",
     "SELECT t.id, t.a, k.id FROM (SELECT g.id, g.a FROM gap g ORDER BY g.c, g.a DESC, g.id DESC LIMIT $1 OFFSET $2) "
     "AS t "
     "LEFT JOIN child k ON t.id = k.gap_id ORDER BY t.id, k.id",
     "SELECT count(*) FROM gap"},
    /* an inner join that drops whole pages */
    {"SELECT t.*, k.n FROM (SELECT * FROM gap WHERE c = 1 OR a = 2 ORDER BY id DESC LIMIT $1) t JOIN child k ON "
     "k.gap_id "
     "= t.id AND k.n = 3 ORDER BY t.id DESC, k.id",
     "SELECT t.*, k.n FROM (SELECT * FROM gap WHERE c = 1 OR a = 2 ORDER BY id DESC LIMIT $1 OFFSET $2) t JOIN child k "
     "ON "
     "k.gap_id = t.id AND k.n = 3 ORDER BY t.id DESC, k.id",
     "SELECT count(*) FROM gap WHERE c = 1 OR a = 2"},
    /* a CTE, aggregated */
    {"WITH pgrst_source AS (SELECT gap.id, gap.b FROM gap WHERE c < 2 ORDER BY b NULLS FIRST LIMIT $1) SELECT "
     "NULL::bigint, count(x), coalesce(json_agg(x), '[]') FROM (SELECT * FROM pgrst_source) x",
     "WITH s AS (SELECT gap.id, gap.b FROM gap WHERE c < 2 ORDER BY b NULLS FIRST, id LIMIT $1 OFFSET $2) SELECT "
     "NULL::bigint, count(x), coalesce(json_agg(x), '[]') FROM (SELECT * FROM s) x",
     "SELECT count(*) FROM gap WHERE c < 2"},
    /* between CTEs, of which it reads one and another reads it */
    {"WITH few AS (SELECT id AS i FROM gap WHERE c > 0), page AS (SELECT g.id, g.b FROM gap g JOIN few ON i = id ORDER "
     "BY "
     "g.c DESC, id LIMIT $1), kids AS (SELECT k.* FROM child k JOIN page ON page.id = k.gap_id) SELECT page.*, kids.id "
     "FROM "
     "page LEFT JOIN kids ON kids.gap_id = page.id ORDER BY page.b, page.id, kids.id",
     "WITH few AS (SELECT id AS i FROM gap WHERE c > 0), page AS (SELECT g.id, g.b FROM gap g JOIN few ON i = id ORDER "
     "BY "
     "g.c DESC, id LIMIT $1 OFFSET $2), kids AS (SELECT k.* FROM child k JOIN page ON page.id = k.gap_id) SELECT "
     "page.*, "
     "kids.id FROM page LEFT JOIN kids ON kids.gap_id = page.id ORDER BY page.b, page.id, kids.id",
     "SELECT count(*) FROM gap WHERE c > 0"},
    /* the name of the CTE is the table's in it, and a later CTE's name is a table's too */
    {"WITH gap AS (SELECT id, a FROM gap ORDER BY a LIMIT $1), child AS (SELECT 1 AS one) SELECT gap.*, one FROM gap, "
     "child "
     "ORDER BY gap.a DESC, id",
     "WITH gap AS (SELECT id, a FROM gap ORDER BY a, id LIMIT $1 OFFSET $2), child AS (SELECT 1 AS one) SELECT gap.*, "
     "one "
     "FROM gap, child ORDER BY gap.a DESC, id",
     "SELECT count(*) FROM gap"},
    {"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 30) SELECT q.*, n FROM (SELECT id, c "
     "FROM "
     "gap ORDER BY c DESC, id LIMIT $1) q JOIN r ON n = q.id ORDER BY n",
     "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 30) SELECT q.*, n FROM (SELECT id, c "
     "FROM "
     "gap ORDER BY c DESC, id LIMIT $1 OFFSET $2) q JOIN r ON n = q.id ORDER BY n",
     "SELECT count(*) FROM gap"},
    /* two deep, whole rows and odd names outside */
    {"SELECT row_to_json(o) FROM (SELECT q AS \"Whole\", q.\"Id x\" FROM (SELECT id AS \"Id x\", a AS \"limit\" FROM "
     "gap "
     "ORDER BY b DESC LIMIT $1) q) o ORDER BY \"Id x\"",
     "SELECT row_to_json(o) FROM (SELECT q AS \"Whole\", q.\"Id x\" FROM (SELECT id AS \"Id x\", a AS \"limit\" FROM "
     "gap "
     "ORDER BY b DESC, id DESC LIMIT $1 OFFSET $2) q) o ORDER BY \"Id x\"",
     "SELECT count(*) FROM gap"},
    /* other forms as the level */
    {"SELECT q.n, q.a FROM (SELECT a, count(*) AS n FROM gap GROUP BY a ORDER BY n DESC, a LIMIT $1) q ORDER BY q.a",
     "SELECT q.n, q.a FROM (SELECT a, count(*) AS n FROM gap GROUP BY a ORDER BY n DESC, a LIMIT $1 OFFSET $2) q ORDER "
     "BY "
     "q.a",
     "SELECT count(DISTINCT a) + 1 FROM gap"},
    {"SELECT * FROM (SELECT DISTINCT a, c FROM gap ORDER BY c DESC LIMIT $1) q, (SELECT 7 AS x) y WHERE q.a > 0 ORDER "
     "BY 1, "
     "2",
     "SELECT * FROM (SELECT DISTINCT a, c FROM gap ORDER BY c DESC, a DESC LIMIT $1 OFFSET $2) q, (SELECT 7 AS x) y "
     "WHERE "
     "q.a > 0 ORDER BY 1, 2",
     "SELECT count(*) FROM (SELECT DISTINCT a, c FROM gap) x"},
    {"SELECT q.* FROM (SELECT id FROM gap UNION SELECT n FROM child ORDER BY id DESC LIMIT $1) q ORDER BY 1",
     "SELECT q.* FROM (SELECT id FROM gap UNION SELECT n FROM child ORDER BY id DESC LIMIT $1 OFFSET $2) q ORDER BY 1",
     "SELECT count(*) FROM (SELECT id FROM gap UNION SELECT n FROM child) x"},
    {"SELECT q.* FROM (SELECT id, count(*) OVER (PARTITION BY c) AS n FROM gap ORDER BY a LIMIT $1) q ORDER BY q.n, "
     "q.id",
     "SELECT q.* FROM (SELECT id, count(*) OVER (PARTITION BY c) AS n FROM gap ORDER BY a, id LIMIT $1 OFFSET $2) q "
     "ORDER BY "
     "q.n, q.id",
     "SELECT count(*) FROM gap"},
    {"SELECT q.* FROM (SELECT DISTINCT ON (c) c, id FROM gap ORDER BY c, id DESC LIMIT $1) q ORDER BY 1",
     "SELECT q.* FROM (SELECT DISTINCT ON (c) c, id FROM gap ORDER BY c, id DESC LIMIT $1 OFFSET $2) q ORDER BY 1",
     "SELECT count(DISTINCT c) FROM gap"},
    /* a WITH clause of the level's own, and no outer one */
    {"SELECT count(*), min(q.id) FROM (WITH w AS (SELECT id, c FROM gap WHERE c = 1) SELECT w.id FROM w ORDER BY w.id "
     "LIMIT "
     "$1) q",
     "SELECT count(*), min(q.id) FROM (SELECT id FROM gap WHERE c = 1 ORDER BY id LIMIT $1 OFFSET $2) q",
     "SELECT count(*) FROM gap WHERE c = 1"},
    /* the tag chooses between two levels */
    {"SELECT q.id FROM (SELECT id FROM gap ORDER BY c, id LIMIT $1 /* pgseek */) q, (SELECT 1 FROM gap ORDER BY id "
     "LIMIT "
     "1) one ORDER BY q.id LIMIT 1000",
     "SELECT id FROM (SELECT id FROM gap ORDER BY c, id LIMIT $1 OFFSET $2) q ORDER BY id", "SELECT count(*) FROM gap"},
    {"SELECT q.id FROM (SELECT id FROM gap ORDER BY c, id LIMIT $1) q, (SELECT 1 FROM gap ORDER BY id LIMIT 1) one",
     NULL, NULL},
    {"SELECT g.id, k.n FROM gap g, LATERAL (SELECT n FROM child WHERE gap_id = g.id ORDER BY id LIMIT $1) k", NULL,
     NULL},
    {"SELECT id FROM gap WHERE id IN (SELECT gap_id FROM child ORDER BY id LIMIT $1) ORDER BY id", NULL, NULL},
    {"WITH RECURSIVE r AS ((SELECT id FROM gap ORDER BY id LIMIT $1) UNION SELECT id + 1 FROM r WHERE id < 50) SELECT "
     "* "
     "FROM r",
     NULL, NULL},
    {"SELECT * FROM (SELECT id FROM gap ORDER BY id LIMIT $1) q FOR UPDATE", NULL, NULL},
};

static const int sizes[] = {1, 2, 3, 7, 30, 1000};

/* ---- one case ---- */

struct walker {
    struct walk_case walk;
    const struct level_case *level;
    const struct pgseek_plan *plan;
    int limit;
    int total;
};

/* A page and what its hidden columns say. */
struct page {
    PGresult *rows;
    size_t nkeys;
    int nhidden;
};

static void put_int8(uint64_t value, char out[8])
{
    for (int i = 0; i < 8; i++)
        out[i] = (char)(value >> (56 - 8 * i));
}

static int hidden(const struct page *page, size_t i)
{
    return PQnfields(page->rows) - page->nhidden + (int)i;
}

static int level_rows(const struct page *page)
{
    const char *value = PQgetvalue(page->rows, 0, hidden(page, 1));
    uint32_t count = 0;

    for (int i = 4; i < 8; i++)
        count = count << 8 | (uint8_t)value[i];
    return (int)count;
}

/* The column of a boundary's i-th key: of the page's first row or of its last. */
static int key_column(const struct page *page, bool is_last, size_t i)
{
    return hidden(page, 2 + (is_last ? page->nkeys : 0) + i);
}

static uint32_t null_mask(const struct page *page, bool is_last)
{
    uint32_t mask = 0;

    for (size_t i = 0; page && i < page->nkeys; i++)
        if (PQgetisnull(page->rows, 0, key_column(page, is_last, i)))
            mask |= (uint32_t)1 << i;
    return mask;
}

static bool run_page(const struct walker *walker, enum pgseek_seek seek, const struct page *from, bool is_last,
                     struct page *to)
{
    const struct pgseek_shape_key key = {.seek = seek, .look_ahead = true, .null_mask = null_mask(from, is_last)};
    enum pgseek_reason reason;
    struct pgseek_shape *shape = pgseek_shape_new(walker->plan, &key, &reason);
    char fetch[8];
    char limit[8];
    const char *values[64];
    int lengths[64];
    int formats[64];
    Oid types[64];

    if (!shape) {
        walk_fault(&walker->walk, "seek %d: %s", seek, pgseek_reason_name(reason));
        return false;
    }
    put_int8((uint64_t)walker->limit + 1, fetch);
    put_int8((uint64_t)walker->limit, limit);
    for (size_t i = 0; i < shape->nslots; i++) {
        const struct pgseek_slot *slot = &shape->slots[i];
        bool is_key = slot->kind == PGSEEK_SLOT_KEY;
        int column = is_key ? key_column(from, is_last, slot->index) : 0;

        types[i] = slot->type_oid;
        formats[i] = 1;
        lengths[i] = is_key ? PQgetlength(from->rows, 0, column) : 8;
        values[i] = slot->kind == PGSEEK_SLOT_FETCH ? fetch : limit;
        if (is_key)
            values[i] = PQgetisnull(from->rows, 0, column) ? NULL : PQgetvalue(from->rows, 0, column);
    }
    to->rows = must(PQexecParams(conn, shape->sql, (int)shape->nslots, types, values, lengths, formats, 1));
    to->nkeys = shape->nkeys;
    to->nhidden = (int)shape->nhidden;
    if (shape->rows != PGSEEK_ROWS_INNER || shape->nhidden != 2 + 2 * shape->nkeys)
        walk_fault(&walker->walk, "no inner rows");
    pgseek_shape_free(shape);
    return true;
}

static PGresult *run_oracle(const struct walker *walker, int first, int count)
{
    static const Oid types[] = {20, 20};
    char limit[16];
    char offset[16];
    const char *values[] = {limit, offset};

    snprintf(limit, sizeof limit, "%d", count);
    snprintf(offset, sizeof offset, "%d", first);
    return must(PQexecParams(conn, walker->level->oracle, 2, types, values, NULL, NULL, 1));
}

static bool same_row(PGresult *a, int arow, PGresult *b, int brow)
{
    for (int i = 0; i < PQnfields(b); i++)
        if (PQgetisnull(a, arow, i) != PQgetisnull(b, brow, i) || PQgetlength(a, arow, i) != PQgetlength(b, brow, i) ||
            memcmp(PQgetvalue(a, arow, i), PQgetvalue(b, brow, i), (size_t)PQgetlength(a, arow, i)) != 0)
            return false;
    return true;
}

/* The page must hold what the oracle gives for `count` rows of the level from `first` on. */
static bool check_page(const struct walker *walker, enum pgseek_seek seek, const struct page *page, int first,
                       int count, bool more)
{
    PGresult *oracle = run_oracle(walker, first, count);
    int rows = PQntuples(page->rows);
    bool is_good = true;

    if (rows == 1 && PQgetisnull(page->rows, 0, hidden(page, 0)))
        rows = 0;
    if (PQnfields(page->rows) - page->nhidden != PQnfields(oracle) || rows != PQntuples(oracle))
        is_good = false;
    for (int i = 0; is_good && i < rows; i++)
        is_good = same_row(page->rows, i, oracle, i);
    if (level_rows(page) != count + more)
        is_good = false;
    if (!is_good)
        walk_fault(&walker->walk, "seek %d limit %d at %d: %d rows instead of %d, level has %d of %d", seek,
                   walker->limit, first, rows, PQntuples(oracle), level_rows(page), count + more);
    PQclear(oracle);
    return is_good;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static bool check_back(const struct walker *walker, const struct page *page, int first)
{
    struct page back = {0};
    int count = smaller(walker->limit, first);
    bool is_good = run_page(walker, PGSEEK_SEEK_BEFORE, page, false, &back) &&
                   check_page(walker, PGSEEK_SEEK_BEFORE, &back, first - count, count, first > walker->limit);

    PQclear(back.rows);
    return is_good;
}

static void walk_forward(const struct walker *walker)
{
    enum pgseek_seek seek = PGSEEK_SEEK_FIRST;
    struct page page = {0};

    if (!run_page(walker, seek, NULL, false, &page))
        return;
    for (int first = 0; first < walker->total; seek = PGSEEK_SEEK_AFTER) {
        int count = smaller(walker->limit, walker->total - first);
        struct page next = {0};
        bool is_good = check_page(walker, seek, &page, first, count, first + count < walker->total) &&
                       check_back(walker, &page, first) && run_page(walker, PGSEEK_SEEK_AFTER, &page, true, &next);
        PQclear(page.rows);
        page = next;
        first += count;
        if (!is_good)
            break;
    }
    PQclear(page.rows);
}

static void walk_last(const struct walker *walker)
{
    int count = smaller(walker->limit, walker->total);
    struct page page = {0};

    if (run_page(walker, PGSEEK_SEEK_LAST, NULL, false, &page))
        check_page(walker, PGSEEK_SEEK_LAST, &page, walker->total - count, count, count < walker->total);
    PQclear(page.rows);
}

static void walk_level(const struct level_case *level)
{
    struct walker walker = {.walk = {.sql = level->sql}, .level = level};
    enum pgseek_reason reason = PGSEEK_REASON_NONE;
    struct pgseek_plan *plan = ask_plan(&walker.walk, &reason);

    if (!plan != !level->oracle)
        walk_fault(&walker.walk, "%s", plan ? "rewritten" : pgseek_reason_name(reason));
    if (plan && level->oracle) {
        PGresult *count = must(PQexec(conn, level->count));
        walker.plan = plan;
        walker.total = atoi(PQgetvalue(count, 0, 0));
        PQclear(count);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            walker.limit = sizes[i];
            walk_forward(&walker);
            walk_last(&walker);
        }
    }
    if (plan)
        pgseek_plan_free(plan);
}

static void *walk_all(void *unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        walk_level(&cases[i]);
    printf("%zu statements\n", sizeof cases / sizeof *cases);
    return NULL;
}

int main(int argc, char **argv)
{
    return walk_main(argc, argv, walk_all, NULL);
}
