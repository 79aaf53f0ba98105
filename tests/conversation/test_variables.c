/* test_variables.c - pgseek.* variables in a session: how they are set and read, what they do, when they go. */
#include "talk.h"

#define FEED "select id, body from posts order by id limit 2 /* pgseek */"
#define PLAIN "select id, body from posts order by id limit 2"
#define SHOW_WALK "Q show pgseek.walk\n"
#define EXTENDED(sql) "P - " sql "\nB - -\nD P -\nE - 0\n"

static const struct talk talks[] = {
    {.name = "set, show, reset",
     .script = "Q set pgseek.walk = 'abc'\n" SHOW_WALK "Q reset pgseek.walk\n" SHOW_WALK
               "Q set session pgseek.walk to xyz\n" SHOW_WALK,
     .expected = "C(SET) Z(I) T(pgseek.walk) D(abc) C(SHOW) Z(I) C(RESET) Z(I) T(pgseek.walk) D() C(SHOW) Z(I) C(SET) "
                 "Z(I) T(pgseek.walk) D(xyz) C(SHOW) Z(I)"},
    {.name = "set local outside a block",
     .script = "Q set local pgseek.walk = 'abc'\n" SHOW_WALK,
     .expected = "N(25P01) C(SET) Z(I) T(pgseek.walk) D() C(SHOW) Z(I)"},
    {.name = "faults",
     .script = "Q set pgseek.wlak = 'abc'\nQ set pgseek.strict = 'maybe'\nQ set pgseek.walk = 'a'; select 1\nQ select "
               "set_config('pgseek.walk', 'x', false), 1\nQ show pgseek.walk",
     .expected = "E(PS000) Z(I) E(PS000) Z(I) E(PS000) Z(I) E(PS000) Z(I) T(pgseek.walk) D() C(SHOW) Z(I)"},
    {.name = "functions",
     .script = "Q select set_config('pgseek.walk', 'abc', false)\nQ select current_setting('pgseek.walk')\nQ select "
               "current_setting('pgseek.walk', true) as w\nQ select set_config('pgseek.walk', 'abc', true) as w\nQ "
               "select set_config('work_mem', '1', true)",
     .expected =
         "T(set_config) D(abc) C(SELECT 1) Z(I) T(current_setting) D(abc) C(SELECT 1) Z(I) T(w) D(abc) C(SELECT 1) "
         "Z(I) T(w) D(abc) C(SELECT 1) Z(I) T(?column?) D(set_config('work_mem', '1', true)) C(SELECT 1) Z(I)"},
    {.name = "the unnamed statement goes with every query",
     .script = "P - select 1\nB - -\nE - 0\nS\nwait\nQ set pgseek.walk = 'a'\nB - -\nE - 0\nS\nP - " FEED
               "\nS\nwait\n" SHOW_WALK "D S -\nS\nP - select 2\nB - -\nE - 0\nS",
     .expected = "1 2 D(1) C(SELECT 1) Z(I) C(SET) Z(I) E(26000) Z(I) 1 Z(I) T(pgseek.walk) D(a) C(SHOW) Z(I) E(26000) "
                 "Z(I) 1 2 D(2) C(SELECT 1) Z(I)"},
    {.name = "the unnamed portal goes too, named ones stay",
     .script = "Q begin\nP a " FEED "\nB x a\nB - a\nS\nwait\n" SHOW_WALK "E x 0\nS\nE - 0\nS\nQ rollback",
     .expected = "C(BEGIN) Z(T) 1 2 2 Z(T) T(pgseek.walk) D() C(SHOW) Z(T) D(1,b1) D(2,b2) [first 2 more next] "
                 "C(SELECT 2) Z(T) E(34000) Z(E) C(ROLLBACK) Z(I)",
     .server = {.rows = 3}},
    {.name = "rolled back",
     .script = "Q begin\nQ set pgseek.walk = 'abc'\n" SHOW_WALK "Q rollback\n" SHOW_WALK,
     .expected = "C(BEGIN) Z(T) C(SET) Z(T) T(pgseek.walk) D(abc) C(SHOW) Z(T) C(ROLLBACK) Z(I) T(pgseek.walk) D() "
                 "C(SHOW) Z(I)"},
    {.name = "committed",
     .script = "Q begin\nQ set pgseek.walk = 'a'\nQ set local pgseek.walk = 'b'\n" SHOW_WALK "Q commit\n" SHOW_WALK,
     .expected = "C(BEGIN) Z(T) C(SET) Z(T) C(SET) Z(T) T(pgseek.walk) D(b) C(SHOW) Z(T) C(COMMIT) Z(I) T(pgseek.walk) "
                 "D(a) C(SHOW) Z(I)"},
    {.name = "commit of a failed block",
     .script = "Q begin\nQ set pgseek.walk = 'a'\nQ select missing from missing\nQ commit\n" SHOW_WALK,
     .expected = "C(BEGIN) Z(T) C(SET) Z(T) E(42P01) Z(E) C(ROLLBACK) Z(I) T(pgseek.walk) D() C(SHOW) Z(I)"},
    {.name = "in a failed block",
     .script = "Q begin\nQ select missing from missing\n" SHOW_WALK "Q set pgseek.walk = 'a'\nQ rollback\n" SHOW_WALK,
     .expected =
         "C(BEGIN) Z(T) E(42P01) Z(E) E(25P02) Z(E) E(25P02) Z(E) C(ROLLBACK) Z(I) T(pgseek.walk) D() C(SHOW) Z(I)"},
    {.name = "savepoints",
     .script =
         "Q begin\nQ set pgseek.walk = 'a'\nQ savepoint s\nQ set pgseek.walk = 'b'\nQ savepoint s\nQ set pgseek.walk = "
         "'c'\nQ rollback to s\n" SHOW_WALK "Q release s\nQ rollback to s\n" SHOW_WALK "Q commit\n" SHOW_WALK,
     .expected = "C(BEGIN) Z(T) C(SET) Z(T) C(SAVEPOINT) Z(T) C(SET) Z(T) C(SAVEPOINT) Z(T) C(SET) Z(T) C(ROLLBACK) "
                 "Z(T) T(pgseek.walk) D(b) C(SHOW) Z(T) C(RELEASE) Z(T) C(ROLLBACK) Z(T) T(pgseek.walk) D(a) C(SHOW) "
                 "Z(T) C(COMMIT) Z(I) T(pgseek.walk) D(a) C(SHOW) Z(I)"},
    {.name = "begin again, chain",
     .script = "Q begin\nQ set pgseek.walk = 'a'\nQ begin\nQ rollback\n" SHOW_WALK,
     .expected = "C(BEGIN) Z(T) C(SET) Z(T) C(BEGIN) Z(T) C(ROLLBACK) Z(I) T(pgseek.walk) D() C(SHOW) Z(I)"},
    {.name = "reset all, discard all",
     .script = "Q set pgseek.walk = 'a'\nQ reset all\n" SHOW_WALK "Q set pgseek.walk = 'a'\nQ discard all\n" SHOW_WALK,
     .expected = "C(SET) Z(I) C(RESET) Z(I) T(pgseek.walk) D() C(SHOW) Z(I) C(SET) Z(I) C(DISCARD ALL) Z(I) "
                 "T(pgseek.walk) D() C(SHOW) Z(I)"},
    {.name = "startup options",
     .script = "start user=u|database=d|options=-c pgseek.walk=a -c work_mem=1|pgseek.strict=on\nwait\n" SHOW_WALK
               "Q show pgseek.strict\nQ set pgseek.walk = 'b'\nQ reset pgseek.walk\n" SHOW_WALK
               "Q set pgseek.walk = 'b'\nQ discard all\n" SHOW_WALK,
     .expected = "R S(client_encoding) S(standard_conforming_strings) K Z(I) T(pgseek.walk) D(a) C(SHOW) Z(I) "
                 "T(pgseek.strict) D(on) C(SHOW) Z(I) C(SET) Z(I) C(RESET) Z(I) T(pgseek.walk) D(a) C(SHOW) Z(I) "
                 "C(SET) Z(I) C(DISCARD ALL) Z(I) T(pgseek.walk) D(a) C(SHOW) Z(I)"},
    {.name = "startup option that is none",
     .script = "start user=u|database=d|options=-c pgseek.wlak=a",
     .expected = "E(22023) CLOSED"},
    /* extended */
    {.name = "extended set and show",
     .script = EXTENDED("set pgseek.walk = 'a'") "S\n" EXTENDED("show pgseek.walk") "S\n" EXTENDED("reset pgseek.walk")
         EXTENDED("show pgseek.walk") "S",
     .expected =
         "1 2 n C(SET) Z(I) 1 2 T(pgseek.walk) D(a) C(SHOW) Z(I) 1 2 n C(RESET) 1 2 T(pgseek.walk) D() C(SHOW) Z(I)"},
    {.name = "extended show described",
     .script = "P a show pgseek.walk\nD S a\nB - a ; 1\nD P -\nE - 1\nE - 1\nS\nB - a x\nS",
     .expected = "1 t() T(pgseek.walk) 2 T(pgseek.walk:1) D() s C(SHOW) Z(I) 2 Z(I)"},
    {.name = "extended set, its group fails",
     .script = EXTENDED("set pgseek.walk = 'a'") EXTENDED("select 1/0") "S\n" SHOW_WALK,
     .expected = "1 2 n C(SET) 1 2 T(?column?) E(22012) Z(I) T(pgseek.walk) D() C(SHOW) Z(I)"},
    {.name = "extended set in a block",
     .script = EXTENDED("begin") EXTENDED("set local pgseek.walk = 'a'")
         EXTENDED("show pgseek.walk") "S\n" EXTENDED("commit") EXTENDED("show pgseek.walk") "S",
     .expected = "1 2 n C(BEGIN) 1 2 n C(SET) 1 2 T(pgseek.walk) D(a) C(SHOW) Z(T) 1 2 n C(COMMIT) 1 2 T(pgseek.walk) "
                 "D() C(SHOW) Z(I)"},
    {.name = "extended set that is refused",
     .script = EXTENDED("set pgseek.strict = 'maybe'") "S\n" SHOW_WALK,
     .expected = "E(PS000) Z(I) T(pgseek.walk) D() C(SHOW) Z(I)"},
    {.name = "bound set_config",
     .script = "P a select set_config('pgseek.walk', $1, false)\nD S a\nB - a abc\nD P -\nE - 0\nS\n" SHOW_WALK
               "B - a xyz\nE - 0\nB - a NULL\nS\n" SHOW_WALK,
     .expected = "1 t(20) T(?column?) 2 T(set_config) D(abc) C(SELECT 1) Z(I) T(pgseek.walk) D(abc) C(SHOW) Z(I) 2 "
                 "D(xyz) C(SELECT 1) 2 Z(I) T(pgseek.walk) D(xyz) C(SHOW) Z(I)"},
    {.name = "bound name",
     .script = "P a:25,25,16 select set_config($1, $2, $3)\nB - a pgseek.walk abc f\nE - 0\nS\n" SHOW_WALK
               "B - a work_mem 1 f\nE - 0\nS\nB - a PgSeek.Walk x t\nE - 0\nS\n" SHOW_WALK,
     .expected = "1 2 D(abc) C(SELECT 1) Z(I) T(pgseek.walk) D(abc) C(SHOW) Z(I) 2 D(set_config($1, $2, $3)) C(SELECT "
                 "1) Z(I) 2 D(x) C(SELECT 1) Z(I) T(pgseek.walk) D(abc) C(SHOW) Z(I)"},
    {.name = "bound current_setting",
     .script = "Q set pgseek.walk = 'a'\nP a:25 select current_setting($1)\nB - a pgseek.walk\nD P -\nE - 0\nS\nB - a "
               "work_mem\nE - 0\nS",
     .expected = "C(SET) Z(I) 1 2 T(current_setting) D(a) C(SELECT 1) Z(I) 2 D(current_setting($1)) C(SELECT 1) Z(I)"},
    {.name = "bound bad value",
     .script = "P a select set_config('pgseek.strict', $1, false)\nB - a maybe\nE - 0\nS\nQ select 1",
     .expected = "1 E(PS000) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "pipelined groups",
     .script = "Q set pgseek.walk = 'a'\nQ select 1\nQ show pgseek.walk\nQ select 2\nQ set pgseek.walk = 'b'\nQ show "
               "pgseek.walk",
     .expected = "C(SET) Z(I) T(?column?) D(1) C(SELECT 1) Z(I) T(pgseek.walk) D(a) C(SHOW) Z(I) T(?column?) D(2) "
                 "C(SELECT 1) Z(I) C(SET) Z(I) T(pgseek.walk) D(b) C(SHOW) Z(I)"},
    {.name = "variable behind an open group",
     .script = "P - select 1\nB - -\nE - 0\nQ set pgseek.walk = 'a'\nS\n" SHOW_WALK,
     .expected = "1 2 D(1) C(SELECT 1) E(PS000) Z(I) Z(I) T(pgseek.walk) D() C(SHOW) Z(I)"},
    /* what they do */
    {.name = "cursor in a variable, used once",
     .script = "Q " FEED "\nwait\nQ set pgseek.cursor = '{next}'\nQ " FEED "\nQ " FEED "\nQ show pgseek.cursor",
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) C(SET) Z(I) T(id,body) D(3,b3) "
                 "D(4,b4) [keyset 2 more prev next back] C(SELECT 2) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more "
                 "next] C(SELECT 2) Z(I) T(pgseek.cursor) D() C(SHOW) Z(I)",
     .server = {.rows = 5}},
    {.name = "cursor in a variable, extended",
     .script = "P a " FEED
               "\nB - a\nE - 0\nS\nwait\n" EXTENDED("set pgseek.cursor = '{next}'") "B - a\nE - 0\nB - a\nE - 0\nS",
     .expected = "1 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) 1 2 n C(SET) 2 D(3,b3) D(4,b4) [keyset 2 "
                 "more prev next back] C(SELECT 2) 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "cursor spent in a transaction that is undone",
     .script = "Q " FEED "\nwait\nQ set pgseek.cursor = '{next}'\nQ begin\nQ " FEED "\nQ rollback\nQ " FEED,
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) C(SET) Z(I) C(BEGIN) Z(T) T(id,body) "
                 "D(3,b3) D(4,b4) [keyset 2 more prev next back] C(SELECT 2) Z(T) C(ROLLBACK) Z(I) T(id,body) D(3,b3) "
                 "D(4,b4) [keyset 2 more prev next back] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "cursor kept when the page fails",
     .script = "Q " FEED "\nwait\nQ set pgseek.cursor = '{next}'\nQ " FEED "\nQ " FEED,
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) C(SET) Z(I) T(id,body) E(57014) Z(I) "
                 "T(id,body) D(3,b3) D(4,b4) [keyset 2 more prev next back] C(SELECT 2) Z(I)",
     .server = {.rows = 5,
                .faults = {{.where = "AS pgseek_k1", .on = 'E', .sqlstate = "57014", .skip = 1, .times = 1}}}},
    {.name = "bad cursor in a variable",
     .script = "Q set pgseek.cursor = 'zzz'\nQ " FEED "\nQ " FEED,
     .expected = "C(SET) Z(I) E(PS001) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "a comment wins",
     .script = "Q set pgseek.deliver = 'columns'\nQ " FEED
               "\nQ select id from posts order by id limit 1 /* pgseek deliver=status */",
     .expected = "C(SET) Z(I) T(id,body,pgseek_cursor,pgseek_has_more) D(1,b1,<token>,t) D(2,b2,<token>,t) C(SELECT 2) "
                 "Z(I) T(id) D(1) [first 1 more next] C(SELECT 1) Z(I)",
     .server = {.rows = 5}},
    {.name = "paginate",
     .script = "Q set pgseek.paginate = on\nQ " PLAIN "\nQ select 1\nQ set pgseek.paginate = off\nQ " PLAIN,
     .expected = "C(SET) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) T(?column?) D(1) [pass: "
                 "no_order] C(SELECT 1) Z(I) C(SET) Z(I) T(id,body) D(1,b1) D(2,b2) C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "results",
     .script = "Q " FEED "\nQ show pgseek.has_more\nQ show pgseek.rows\nQ select current_setting('pgseek.action')\nQ "
               "show pgseek.next_cursor\nQ show pgseek.prev_cursor",
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) T(pgseek.has_more) D(on) C(SHOW) "
                 "Z(I) T(pgseek.rows) D(2) C(SHOW) Z(I) T(current_setting) D(first) C(SELECT 1) Z(I) "
                 "T(pgseek.next_cursor) D(<token>) C(SHOW) Z(I) T(pgseek.prev_cursor) D() C(SHOW) Z(I)",
     .server = {.rows = 5}},
    {.name = "results, extended, in one group",
     .script =
         EXTENDED(FEED) EXTENDED("show pgseek.rows") "S\n" EXTENDED("select current_setting('pgseek.has_more')") "S",
     .expected = "1 2 T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) 1 2 T(pgseek.rows) D(2) C(SHOW) Z(I) "
                 "1 2 T(current_setting) D(on) C(SELECT 1) Z(I)",
     .server = {.rows = 5}},
    {.name = "uncertain",
     .script = "Q begin\nQ set pgseek.walk = 'a'\nQ savepoint a; rollback to a\nQ " FEED "\nQ rollback\nQ " FEED,
     .expected = "C(BEGIN) Z(T) C(SET) Z(T) C(SAVEPOINT) C(ROLLBACK) Z(T) E(PS000) Z(E) C(ROLLBACK) Z(I) T(id,body) "
                 "D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "a procedure that may commit",
     .script = "Q begin\nQ set pgseek.walk = 'a'\nQ call p()\nQ " FEED
               "\nQ rollback\nQ set pgseek.walk = 'a'\nQ call p()\nQ " FEED,
     .expected = "C(BEGIN) Z(T) C(SET) Z(T) C(CALL) Z(T) E(PS000) Z(E) C(ROLLBACK) Z(I) C(SET) Z(I) C(CALL) Z(I) "
                 "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "mode off",
     .script = "Q set pgseek.mode = 'off'\nQ " FEED "\nQ set pgseek.mode = 'observe'\nQ " FEED
               "\nQ set pgseek.strict = on\nQ " FEED,
     .expected = "C(SET) Z(I) T(id,body) D(1,b1) D(2,b2) [pass: mode_off] C(SELECT 2) Z(I) C(SET) Z(I) T(id,body) "
                 "D(1,b1) D(2,b2) [pass: observe] C(SELECT 2) Z(I) C(SET) Z(I) E(PS005) Z(I)",
     .server = {.rows = 5}},
    {.name = "context is asked again",
     .script = "Q " FEED "\nwait\nQ set search_path = x\nQ " FEED "\nQ " FEED,
     .expected =
         "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) C(SET) Z(I) T(id,body) D(1,b1) D(2,b2) "
         "[first 2 more next] C(SELECT 2) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     .server = {.rows = 5}},
    {.name = "a text that only mentions",
     .script = "Q select 'pgseek.cursor'\nQ select 1 where 'x' like '%pgseek.cursor%'",
     .expected = "T(?column?) D('pgseek.cursor') C(SELECT 1) Z(I) T(?column?) D(1 where 'x' like '%pgseek.cursor%') "
                 "C(SELECT 1) Z(I)",
     .server = {.rows = 5}},
};

int main(void)
{
    return talk_main_of(talks, sizeof talks / sizeof *talks);
}
