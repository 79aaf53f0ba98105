/* shape_walk.c - walks every page of many statements on a real server, by the shapes that the parser makes.
 *
 * It tests the parser's half alone: facts, keys, predicates, wraps. Each statement comes with another one that gives
 * the same rows in the full order, written by hand; whatever way the pages are walked, their rows must be those. A
 * statement without one must not be rewritten. Usage: shape_walk CONNINFO */
#include "walk_pages.h"

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

int main(int argc, char **argv)
{
    return walk_pages_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
