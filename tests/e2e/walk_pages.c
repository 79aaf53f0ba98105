/* walk_pages.c - see walk_pages.h. */
#include "walk_pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const sizes[] = {"1", "2", "3", "7", "20", "1000"};

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

#define MAX_SHAPES 256

struct walker {
    const struct walk_case *walk;
    const struct pgseek_plan *plan;
    struct {
        struct pgseek_shape_key key;
        struct pgseek_shape *shape;
    } shapes[MAX_SHAPES];
    size_t nshapes;
    PGresult *oracle;
    bool look_ahead;
    uint64_t limit;
};

/* The row that a page starts behind, or in front of. */
struct place {
    PGresult *page;
    int row;
    int nhidden;
};

static uint32_t null_mask(const struct walker *walker, const struct place *place)
{
    uint32_t mask = 0;

    for (size_t i = 0; place && i < pgseek_plan_key_count(walker->plan); i++)
        if (PQgetisnull(place->page, place->row, PQnfields(place->page) - place->nhidden + (int)i))
            mask |= (uint32_t)1 << i;
    return mask;
}

static const struct pgseek_shape *find_shape(struct walker *walker, enum pgseek_seek seek, uint32_t mask)
{
    const struct pgseek_shape_key key = {.seek = seek, .look_ahead = walker->look_ahead, .null_mask = mask};
    enum pgseek_reason reason;

    for (size_t i = 0; i < walker->nshapes; i++)
        if (walker->shapes[i].key.seek == seek && walker->shapes[i].key.null_mask == mask)
            return walker->shapes[i].shape;
    struct pgseek_shape *shape = pgseek_shape_new(walker->plan, &key, &reason);
    if (!shape)
        walk_fault(walker->walk, "seek %d, NULLs %x: %s", seek, mask, pgseek_reason_name(reason));
    if (shape && walker->nshapes == MAX_SHAPES)
        abort();
    if (shape) {
        walker->shapes[walker->nshapes].key = key;
        walker->shapes[walker->nshapes++].shape = shape;
    }
    return shape;
}

/* Runs a page from a place (NULL: none). All values travel in binary. NULL: there is no such shape. */
static PGresult *run_page(struct walker *walker, enum pgseek_seek seek, const struct place *place, int *nhidden)
{
    const struct pgseek_shape *shape = find_shape(walker, seek, null_mask(walker, place));
    uint64_t page = big_endian(walker->limit);
    uint64_t fetch = big_endian(walker->limit + walker->look_ahead);
    const char *values[64];
    int lengths[64];
    int formats[64];
    Oid types[64];

    if (!shape)
        return NULL;
    *nhidden = (int)shape->nhidden;
    for (size_t i = 0; i < shape->nslots; i++) {
        const struct pgseek_slot *slot = &shape->slots[i];
        int column = place ? PQnfields(place->page) - place->nhidden + (int)slot->index : 0;

        types[i] = slot->type_oid;
        formats[i] = 1;
        lengths[i] = 8;
        values[i] = (const char *)(slot->kind == PGSEEK_SLOT_FETCH ? &fetch : &page);
        if (slot->kind == PGSEEK_SLOT_KEY) {
            bool is_null = PQgetisnull(place->page, place->row, column);
            values[i] = is_null ? NULL : PQgetvalue(place->page, place->row, column);
            lengths[i] = PQgetlength(place->page, place->row, column);
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

/* The page's rows must be oracle rows from `first` on; the look-ahead row, if any, must stand behind or before them. */
static int check_page(struct walker *walker, enum pgseek_seek seek, const struct place *at, int first, int expected)
{
    int columns = PQnfields(walker->oracle);
    PGresult *page = at->page;
    int rows = PQntuples(page);
    bool backward = seek == PGSEEK_SEEK_BEFORE || seek == PGSEEK_SEEK_LAST;
    int kept = rows > (int)walker->limit ? (int)walker->limit : rows;

    if (PQnfields(page) - at->nhidden != columns) {
        walk_fault(walker->walk, "%d columns", PQnfields(page));
        return -1;
    }
    if (kept != expected) {
        walk_fault(walker->walk, "seek %d limit %d at %d: %d rows instead of %d", seek, (int)walker->limit, first, kept,
                   expected);
        return -1;
    }
    for (int i = 0; i < kept; i++)
        if (!same_row(page, i, walker->oracle, first + i, columns)) {
            walk_fault(walker->walk, "seek %d limit %d: row %d differs", seek, (int)walker->limit, first + i);
            return -1;
        }
    int beyond = backward ? first - 1 : first + kept;
    bool more = beyond >= 0 && beyond < PQntuples(walker->oracle);
    if (walker->look_ahead && (rows > kept) != more) {
        walk_fault(walker->walk, "seek %d limit %d at %d: look-ahead row is %d", seek, (int)walker->limit, first,
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
static void check_back(struct walker *walker, const struct place *page, int first)
{
    int expected = smaller((int)walker->limit, first);
    const struct place start = {page->page, 0, page->nhidden};
    struct place back = {0};

    back.page = run_page(walker, PGSEEK_SEEK_BEFORE, &start, &back.nhidden);
    if (back.page)
        check_page(walker, PGSEEK_SEEK_BEFORE, &back, first - expected, expected);
    PQclear(back.page);
}

static void walk_forward(struct walker *walker)
{
    int total = PQntuples(walker->oracle);
    enum pgseek_seek seek = PGSEEK_SEEK_FIRST;
    struct place page = {0};

    page.page = run_page(walker, seek, NULL, &page.nhidden);
    for (int first = 0; page.page && first < total;) {
        struct place next = {0};
        int kept = check_page(walker, seek, &page, first, smaller((int)walker->limit, total - first));
        if (kept <= 0)
            break;
        check_back(walker, &page, first);
        first += kept;
        seek = PGSEEK_SEEK_AFTER;
        page.row = kept - 1;
        next.page = run_page(walker, seek, &page, &next.nhidden);
        PQclear(page.page);
        page = next;
        if (page.page && first == total && PQntuples(page.page) != 0)
            walk_fault(walker->walk, "rows behind the end");
    }
    PQclear(page.page);
}

static void walk_last(struct walker *walker)
{
    int total = PQntuples(walker->oracle);
    int expected = smaller((int)walker->limit, total);
    struct place page = {0};

    page.page = run_page(walker, PGSEEK_SEEK_LAST, NULL, &page.nhidden);
    if (page.page)
        check_page(walker, PGSEEK_SEEK_LAST, &page, total - expected, expected);
    PQclear(page.page);
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

static void walk_pages(const struct walk_case *walk)
{
    struct walker walker = {.walk = walk};
    enum pgseek_reason reason;
    struct pgseek_plan *plan = ask_plan(walk, &reason);

    if (!plan) {
        if (walk->oracle)
            walk_fault(walk, "not rewritten: %s", pgseek_reason_name(reason));
        return;
    }
    if (walk->oracle) {
        walker.plan = plan;
        walker.look_ahead = !pgseek_plan_is_locking(plan);
        walker.oracle = must(PQexecParams(conn, walk->oracle, 0, NULL, NULL, NULL, NULL, 1));
        walk_sizes(&walker);
    } else {
        walk_fault(walk, "rewritten");
    }
    for (size_t i = 0; i < walker.nshapes; i++)
        pgseek_shape_free(walker.shapes[i].shape);
    PQclear(walker.oracle);
    pgseek_plan_free(plan);
}

struct walks {
    const struct walk_case *cases;
    size_t count;
};

static void *walk_all(void *arg)
{
    const struct walks *walks = arg;

    for (size_t i = 0; i < walks->count; i++)
        walk_pages(&walks->cases[i]);
    printf("%zu statements\n", walks->count);
    return NULL;
}

int walk_pages_main(int argc, char **argv, const struct walk_case *cases, size_t count)
{
    return walk_main(argc, argv, walk_all, &(struct walks){cases, count});
}
