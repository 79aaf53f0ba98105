/* test_pages.c - pages in both protocols, as the client sees them, cut at every byte. */
#include "talk.h"

#define FEED "select id, body from posts order by id limit 2 /* pgseek */"
#define FEED_BY(cursor) "select id, body from posts order by id limit 2 /* pgseek cursor=" cursor " */"
#define MIXED(option) "select id, body from posts order by created_at, id desc limit 2 /* pgseek " option " */"
#define BOUND "select id, body from posts where id > $1 order by id limit $2 /* pgseek cursor=$3 */"

static const struct talk talks[] = {
    /* untagged */
    {.name = "simple query", .script = "Q select 1", .expected = "T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "several statements",
     .script = "Q select 1; select 2\nQ begin; select bad from missing\nQ select 3\nQ rollback",
     .expected = "T(?column?) D(1) C(SELECT 1) T(?column?) D(2) C(SELECT 1) Z(I) C(BEGIN) E(42P01) Z(E) E(25P02) Z(E) "
                 "C(ROLLBACK) Z(I)"},
    {.name = "empty query", .script = "Q ", .expected = "I Z(I)"},
    {.name = "pipeline",
     .script = "P - select 1\nB - -\nD P -\nE - 0\nS\nP a select 2\nB x a\nE x 1\nE x 1\nC P x\nC S a\nS\nQ select 3",
     .expected =
         "1 2 T(?column?) D(1) C(SELECT 1) Z(I) 1 2 D(2) s C(SELECT 0) 3 3 Z(I) T(?column?) D(3) C(SELECT 1) Z(I)"},
    {.name = "error in a pipeline",
     .script = "P - select 1/0\nB - -\nE - 0\nP - select 2\nS\nP - select 3\nB - -\nE - 0\nS",
     .expected = "1 2 E(22012) Z(I) 1 2 D(3) C(SELECT 1) Z(I)"},
    {.name = "flush",
     .script = "P - select 1\nH\nwait\nB - -\nE - 0\nH\nwait\nS",
     .expected = "1 2 D(1) C(SELECT 1) Z(I)"},
    {.name = "function call", .script = "F\nQ select 1", .expected = "V Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "terminate", .script = "Q select 1\nX", .expected = "T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "copy out",
     .script = "Q copy posts to stdout\nP - copy posts to stdout\nB - -\nE - 0\nS",
     .expected = "H d(b1\\12) d(b2\\12) c C(COPY 2) Z(I) 1 2 H d(b1\\12) d(b2\\12) c C(COPY 2) Z(I)",
     .server = {.rows = 2}},
    {.name = "copy in",
     .script = "Q copy posts from stdin\nwait\nd one\nd two\nc\nQ select 1",
     .expected = "G C(COPY 2) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "copy in, sent ahead",
     .script = "Q copy posts from stdin\nd one\nd two\nc\nQ select 1",
     .expected = "G C(COPY 2) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "copy in, no message behind the data",
     .script = "Q copy posts from stdin\nwait\nd one\nraw 64 00000003",
     .expected = "G E(08P01) CLOSED"},
    {.name = "copy in, extended, Sync sent early",
     .script = "P - copy posts from stdin\nB - -\nE - 0\nS\nwait\nd one\nc\nS\nQ select 1",
     .expected = "1 2 G C(COPY 1) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "copy in, extended, all at once",
     .script = "P - copy posts from stdin\nB - -\nE - 0\nS\nd one\nc\nS\nQ select 1",
     .expected = "1 2 G C(COPY 1) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "copy in, no early Sync",
     .script = "P - copy posts from stdin\nB - -\nE - 0\nd one\nc\nS\nQ select 1",
     .expected = "1 2 G C(COPY 1) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "copy in that fails",
     .script = "Q copy posts from stdin\nd one\nf no more\nQ select 1",
     .expected = "G E(57014) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "copy in, extended, fails",
     .script = "P - copy posts from stdin\nB - -\nE - 0\nwait\nd one\nf no more\nS\nQ select 1",
     .expected = "1 2 G E(57014) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "copy in that never begins",
     .script = "Q copy posts from stdin\nd one\nc\nQ select 1",
     .expected = "E(42501) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     .server = {.faults = {{.where = "copy", .on = 'E', .sqlstate = "42501"}}}},
    {.name = "copy in broken by a query",
     .script = "Q copy posts from stdin\nwait\nd one\nQ select 1\nQ select 2",
     .expected = "G E(08P01) Z(I) T(?column?) D(2) C(SELECT 1) Z(I)"},
    /* simple pages */
    {.name = "first page",
     .script = "Q " FEED,
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "walk",
     .script = "Q " FEED "\nwait\nQ " FEED_BY("{next}") "\nwait\nQ " FEED_BY("{next}") "\nwait\nQ " FEED_BY("{prev}"),
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) T(id,body) D(3,b3) D(4,b4) [keyset 2 "
                 "more prev next back] C(SELECT 2) Z(I) T(id,body) D(5,b5) [keyset 1 prev back] C(SELECT 1) Z(I) "
                 "T(id,body) D(3,b3) D(4,b4) [keyset 2 more prev next back] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "a page exactly full",
     .script = "Q " FEED,
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2] C(SELECT 2) Z(I)",
     .server = {.rows = 2}},
    {.name = "a page not full",
     .script = "Q " FEED,
     .expected = "T(id,body) D(1,b1) [first 1] C(SELECT 1) Z(I)",
     .server = {.rows = 1}},
    {.name = "no rows",
     .script = "Q " FEED,
     .expected = "T(id,body) [first 0] C(SELECT 0) Z(I)",
     .server = {.rows = 0}},
    {.name = "limit 0",
     .script = "Q select id from posts order by id limit 0 /* pgseek */",
     .expected = "T(id) [first 0 more next] C(SELECT 0) Z(I)",
     .server = {.rows = 3}},
    {.name = "limit 1",
     .script = "Q select id from posts order by id limit 1 /* pgseek */",
     .expected = "T(id) D(1) [first 1 more next] C(SELECT 1) Z(I)",
     .server = {.rows = 3}},
    {.name = "limit null",
     .script = "Q select id from posts order by id limit null /* pgseek */",
     .expected = "T(id) D(1) D(2) D(3) [first 3] C(SELECT 3) Z(I)",
     .server = {.rows = 3}},
    {.name = "limit all",
     .script = "Q select id from posts order by id limit all /* pgseek */",
     .expected = "T(id) D(1) D(2) D(3) [first 3] C(SELECT 3) Z(I)",
     .server = {.rows = 3}},
    {.name = "offset",
     .script = "Q select id from posts order by id limit 2 offset 2 /* pgseek */",
     .expected = "T(id) D(3) D(4) [offset 2 more prev next back] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "the last page",
     .script = "Q select id from posts order by id limit 2 /* pgseek page=last */\nwait\nQ select id from posts order "
               "by id limit 2 /* pgseek cursor={prev} */\nwait\nQ select id from posts order by id limit 2 /* pgseek "
               "cursor={prev} */",
     .expected = "T(id) D(4) D(5) [first 2 prev back] C(SELECT 2) Z(I) T(id) D(2) D(3) [keyset 2 more prev next back] "
                 "C(SELECT 2) Z(I) T(id) D(1) [keyset 1 more next] C(SELECT 1) Z(I)",
     .server = {.rows = 5}},
    {.name = "descending, key not selected",
     .script = "Q select body from posts order by id desc limit 2 /* pgseek */\nwait\nQ select body from posts order "
               "by id desc limit 2 /* pgseek cursor={next} */",
     .expected = "T(body) D(b5) D(b4) [first 2 more next] C(SELECT 2) Z(I) T(body) D(b3) D(b2) [keyset 2 more prev "
                 "next back] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "pages and others in one write",
     .script = "Q " FEED "\nQ select 7\nQ " FEED "\nQ select 8",
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) T(?column?) D(7) C(SELECT 1) Z(I) "
                 "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) T(?column?) D(8) C(SELECT 1) Z(I)",
     .server = {.rows = 5}},
    {.name = "passed",
     .script = "Q select id from posts limit 2 /* pgseek */",
     .expected = "T(id) D(1) D(2) [pass: no_order] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "passed in the extended protocol",
     .script = "P - select id from posts limit 2 /* pgseek */\nB - -\nD P -\nE - 0\nS",
     .expected = "1 2 T(id) D(1) D(2) [pass: no_order] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "page of a missing table",
     .script = "Q select id from missing order by id limit 2 /* pgseek */\nQ select 1",
     .expected = "E(42P01) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    /* extended pages */
    {.name = "extended page",
     .script = "P - " FEED "\nB - -\nD P -\nE - 0\nS",
     .expected = "1 2 T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "described before",
     .script = "P - " FEED "\nD S -\nS\nwait\nB - -\nE - 0\nS",
     .expected = "1 t() T(id,body) Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "binary",
     .script = "P - " FEED "\nB - - ; 1\nD P -\nE - 0\nS\nwait\nB - - ; 1 0\nD P -\nE - 0\nS",
     .expected = "1 2 T(id:1,body:1) D(\\0\\0\\0\\0\\0\\0\\0\\1,b1) D(\\0\\0\\0\\0\\0\\0\\0\\2,b2) [first 2 more next] "
                 "C(SELECT 2) Z(I) 2 T(id:1,body) D(\\0\\0\\0\\0\\0\\0\\0\\1,b1) D(\\0\\0\\0\\0\\0\\0\\0\\2,b2) [first "
                 "2 more next] C(SELECT 2) Z(I)",
     .server = {.rows = 3}},
    {.name = "named, bound cursor",
     .script = "P a:0,0 " BOUND "\nD S a\nS\nwait\nB - a 0 2 ''\nE - 0\nS\nwait\nB - a 0 2 {next}\nE - 0\nS\nwait\nB x "
               "a i8=0 i8=2 {next}\nE x 0\nS\nwait\nB - a 0 2 {prev}\nE - 0\nS",
     .expected = "1 t(20,20,25) T(id,body) Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) 2 D(3,b3) "
                 "D(4,b4) [keyset 2 more prev next back] C(SELECT 2) Z(I) 2 D(5,b5) [keyset 1 prev back] C(SELECT 1) "
                 "Z(I) 2 D(3,b3) D(4,b4) [keyset 2 more prev next back] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "bound NULL cursor and limits",
     .script = "P a " BOUND "\nB - a 0 NULL NULL\nE - 0\nS\nwait\nB - a 0 0 NULL\nE - 0\nS\nwait\nB - a 0 1 NULL\nE - "
               "0\nS\nwait\nB - a 0 -1 NULL\nE - 0\nS\nB - a 0 x NULL\nE - 0\nS",
     .expected = "1 2 D(1,b1) D(2,b2) D(3,b3) [first 3] C(SELECT 3) Z(I) 2 [first 0 more next] C(SELECT 0) Z(I) 2 "
                 "D(1,b1) [first 1 more next] C(SELECT 1) Z(I) 2 E(2201W) Z(I) E(22P02) Z(I)",
     .server = {.rows = 3}},
    {.name = "bad binds",
     .script = "P a " BOUND "\nS\nB - a 0 2\nS\nB - a 0 2 NULL ; 0 0 0\nS\nB - b\nS\nB - a 0 2 NULL\nE - 0\nS",
     .expected =
         "1 Z(I) E(08P01) Z(I) E(08P01) Z(I) E(26000) Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     .server = {.rows = 3}},
    {.name = "row limits",
     .script = "P a " FEED "\nB x a\nD P x\nE x 1\nE x 1\nE x 1\nE x 0\nS",
     .expected = "1 2 T(id,body) D(1,b1) [first 1 more next] s D(2,b2) [first 2 more next] s [first 2 more next] "
                 "C(SELECT 0) C(SELECT 0) Z(I)",
     .server = {.rows = 5}},
    {.name = "row limits in a block",
     .script = "Q begin\nP a " FEED "\nB x a\nE x 1\nS\nwait\nE x 1\nS\nE x 1\nS\nQ commit\nE x 1\nS",
     .expected = "C(BEGIN) Z(T) 1 2 D(1,b1) [first 1 more next] s Z(T) D(2,b2) [first 2 more next] s Z(T) [first 2 "
                 "more next] C(SELECT 0) Z(T) C(COMMIT) Z(I) E(34000) Z(I)",
     .server = {.rows = 5}},
    {.name = "two pages in one group",
     .script = "P a " FEED "\nB x a\nB y a\nE x 0\nE y 0\nS",
     .expected =
         "1 2 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "tagged and untagged mixed",
     .script = "P - select 1\nB - -\nE - 0\nP a " FEED "\nB - a\nE - 0\nP - select 2\nB - -\nE - 0\nS\nQ " FEED
               "\nB - a\nE - 0\nS",
     .expected = "1 2 D(1) C(SELECT 1) 1 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) 1 2 D(2) C(SELECT 1) Z(I) "
                 "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) 2 D(1,b1) D(2,b2) [first 2 more "
                 "next] C(SELECT 2) Z(I)",
     .server = {.rows = 3}},
    {.name = "a page behind an error",
     .script = "P - select missing from missing\nP a " FEED "\nB - a\nE - 0\nS\nP a " FEED "\nB - a\nE - 0\nS",
     .expected = "E(42P01) Z(I) 1 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     .server = {.rows = 3}},
    {.name = "a block in one group",
     .script = "P - begin\nB - -\nE - 0\nP - " FEED "\nB - -\nD P -\nE - 0\nS\nQ commit",
     .expected = "1 2 C(BEGIN) 1 2 T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(T) C(COMMIT) Z(I)",
     .server = {.rows = 3}},
    {.name = "portal of a page closed",
     .script = "P a " FEED "\nB x a\nE x 1\nC P x\nE x 1\nS\nB x a\nE x 0\nS",
     .expected =
         "1 2 D(1,b1) [first 1 more next] s 3 E(34000) Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     .server = {.rows = 3}},
    {.name = "statement closed",
     .script = "P a " FEED "\nB x a\nC S a\nE x 0\nB y a\nS\nP a select 1\nB - a\nE - 0\nS",
     .expected = "1 2 3 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) E(26000) Z(I) 1 2 D(1) C(SELECT 1) Z(I)",
     .server = {.rows = 3}},
    {.name = "flush in front of a page",
     .script = "P a " FEED "\nH\nwait\nB x a\nH\nwait\nD P x\nE x 0\nH\nwait\nS",
     .expected = "1 2 T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     .server = {.rows = 3}},
    /* a text that the server describes otherwise */
    {.name = "a union, simple",
     .script = "Q " MIXED("") "\nwait\nQ " MIXED("cursor={next}") "\nwait\nQ " MIXED("cursor={prev}") "\nQ select 1",
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) T(id,body) D(3,b3) D(4,b4) [keyset 2 "
                 "more prev next back] C(SELECT 2) Z(I) T(id,body) D(1,b1) D(2,b2) [keyset 2 more next] C(SELECT 2) "
                 "Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     .server = {.rows = 5}},
    {.name = "a union, extended",
     .script = "P - " MIXED("cursor=$1") "\nB - - NULL\nD P -\nE - 0\nS\nwait\nB - - {next} ; 1\nD P -\nE - 0\nD S "
                                         "-\nS\nwait\nP - select 1\nB - -\nD P -\nE - 0\nS",
     .expected =
         "1 2 T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) 2 T(id:1,body:1) "
         "D(\\0\\0\\0\\0\\0\\0\\0\\3,b3) D(\\0\\0\\0\\0\\0\\0\\0\\4,b4) [keyset 2 more prev next back] C(SELECT "
         "2) t(25) T(id,body) Z(I) 1 2 T(?column?) D(1) C(SELECT 1) Z(I)",
     .server = {.rows = 5}},
    {.name = "a union, named, in a pipeline and in portions",
     .script = "P a " MIXED("cursor=$1") "\nB - a NULL\nE - 0\nS\nwait\nB x a {next}\nB y a {next}\nD P y\nE x 1\nD P "
                                         "x\nE y 0\nE x 0\nS",
     .expected = "1 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) 2 2 T(id,body) D(3,b3) [keyset 1 more prev "
                 "next back] s T(id,body) D(3,b3) D(4,b4) [keyset 2 more prev next back] C(SELECT 2) D(4,b4) [keyset 2 "
                 "more prev next back] C(SELECT 1) Z(I)",
     .server = {.rows = 5}},
    {.name = "the original cannot be described",
     .script = "Q " MIXED("") "\nwait\nP n " MIXED("cursor=$1") "\nS\nB - n {next}\nE - 0\nS\nQ select 1",
     .expected =
         "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) 1 Z(I) 2 E(0A000) Z(I) T(?column?) D(1) "
         "C(SELECT 1) Z(I)",
     .server = {.rows = 5, .faults = {{.where = "limit 2", .on = 'D', .sqlstate = "0A000", .position = 9, .skip = 3}}}},
    /* delivery */
    {.name = "columns",
     .script = "Q select id from posts order by id limit 2 /* pgseek deliver=columns */",
     .expected = "T(id,pgseek_cursor,pgseek_has_more) D(1,<token>,t) D(2,<token>,t) C(SELECT 2) Z(I)",
     .server = {.rows = 3}},
    {.name = "columns, extended",
     .script = "P - select id from posts order by id limit 2 /* pgseek deliver=columns */\nD S -\nB - - ; 0 0 1\nD P "
               "-\nE - 1\nE - 0\nS",
     .expected = "1 t() T(id,pgseek_cursor,pgseek_has_more) 2 T(id,pgseek_cursor,pgseek_has_more:1) D(1,<token>,\\1) s "
                 "D(2,<token>,\\1) C(SELECT 1) Z(I)",
     .server = {.rows = 3}},
    {.name = "columns, passed",
     .script = "P - select id from posts limit 2 /* pgseek deliver=columns */\nD S -\nB - - ; 0 0 1\nD P -\nE - 0\nS",
     .expected = "1 t() T(id,pgseek_cursor,pgseek_has_more) 2 T(id,pgseek_cursor,pgseek_has_more:1) D(1,NULL,NULL) "
                 "D(2,NULL,NULL) C(SELECT 2) Z(I)",
     .server = {.rows = 3}},
    {.name = "notice",
     .script = "Q select id from posts order by id limit 2 /* pgseek deliver='notice' */",
     .expected = "T(id) D(1) D(2) N(00000) C(SELECT 2) Z(I)",
     .server = {.rows = 3}},
    {.name = "all ways",
     .script = "Q select id from posts order by id limit 1 /* pgseek deliver='status,notice,columns' */",
     .expected = "T(id,pgseek_cursor,pgseek_has_more) D(1,<token>,t) [first 1 more next] N(00000) C(SELECT 1) Z(I)",
     .server = {.rows = 3}},
    {.name = "tail",
     .script = "Q select id from posts order by id limit 5 /* pgseek tail=on */\nwait\nQ select id from posts order by "
               "id limit 5 /* pgseek tail=on cursor={next} */\nwait\nQ select id from posts order by id limit 5 /* "
               "pgseek tail=on cursor={next} */",
     .expected = "T(id) D(1) D(2) D(3) [first 3 next] C(SELECT 3) Z(I) T(id) [keyset 0 prev next back] C(SELECT 0) "
                 "Z(I) T(id) [keyset 0 prev next back] C(SELECT 0) Z(I)",
     .server = {.rows = 3}},
};

int main(void)
{
    return talk_main_of(talks, sizeof talks / sizeof *talks);
}
