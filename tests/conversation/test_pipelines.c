/* test_pipelines.c - groups that were sent before the ones in front of them were answered.
 *
 * What a group does is undone when it fails, and nothing else: not what a later group has done meanwhile. A page that
 * is run with a forgotten cursor would be page 1 again, so most of these end with a page. */
#include "talk.h"

#define FEED "select id, body from posts order by id limit 2 /* pgseek */"
#define BOUND "select id, body from posts order by id limit 2 /* pgseek cursor=$1 */"
#define EXTENDED(sql) "P - " sql "\nB - -\nE - 0\n"
#define SHOW_WALK "Q show pgseek.walk\n"
#define FIVE .server = {.rows = 5}

static const struct talk talks[] = {
    {.name = "a failed Parse, then a good one of the same name",
     .script = "Q " FEED "\nwait\nP a selec\nS\nP a " BOUND "\nS\nB - a zzz\nE - 0\nS",
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) E(42601) Z(I) 1 Z(I) E(PS001) Z(I)",
     FIVE},
    {.name = "the same without a name",
     .script = "P - selec\nS\nP - " BOUND "\nS\nB - - zzz\nE - 0\nS",
     .expected = "E(42601) Z(I) 1 Z(I) E(PS001) Z(I)",
     FIVE},
    {.name = "a Close that fails with its group",
     .script = "P a " BOUND "\nS\nwait\nP - select 1/0\nB - -\nE - 0\nC S a\nS\nB - a zzz\nE - 0\nS",
     .expected = "1 Z(I) 1 2 E(22012) Z(I) E(PS001) Z(I)",
     FIVE},
    {.name = "a Close that fails, then another Parse",
     .script =
         "P a " BOUND "\nS\nwait\nP - select 1/0\nB - -\nE - 0\nC S a\nS\nC S a\nP a select 7\nS\nB - a\nE - 0\nS",
     .expected = "1 Z(I) 1 2 E(22012) Z(I) 3 1 Z(I) 2 D(7) C(SELECT 1) Z(I)",
     FIVE},
    {.name = "DEALLOCATE ALL, then a Parse",
     .script = "Q deallocate all\nP a " BOUND "\nB - a zzz\nE - 0\nS",
     .expected = "C(DEALLOCATE ALL) Z(I) 1 E(PS001) Z(I)",
     FIVE},
    {.name = "DEALLOCATE ALL and a Parse in one group",
     .script = EXTENDED("deallocate all") "P a " BOUND "\nB - a zzz\nE - 0\nS",
     .expected = "1 2 C(DEALLOCATE ALL) 1 E(PS001) Z(I)",
     FIVE},
    {.name = "DISCARD ALL, then a Parse",
     .script = "Q discard all\nP a " BOUND "\nS\nB - a zzz\nE - 0\nS",
     .expected = "C(DISCARD ALL) Z(I) 1 Z(I) E(PS001) Z(I)",
     FIVE},
    {.name = "DEALLOCATE that fails",
     .script = "P a " BOUND "\nS\nwait\n" EXTENDED("select 1/0") EXTENDED("deallocate a") "S\nB - a zzz\nE - 0\nS",
     .expected = "1 Z(I) 1 2 E(22012) Z(I) E(PS001) Z(I)",
     FIVE},
    {.name = "a set behind a group that fails",
     .script = EXTENDED("set pgseek.walk = 'a'")
         EXTENDED("select 1/0") "S\n" EXTENDED("set pgseek.cursor = 'zzz'") "S\nQ " FEED,
     .expected = "1 2 C(SET) 1 2 E(22012) Z(I) 1 2 C(SET) Z(I) E(PS001) Z(I)",
     FIVE},
    {.name = "a set behind a query",
     .script = "Q select 1\n" EXTENDED("set pgseek.walk = 'a'") "S\n" SHOW_WALK,
     .expected = "T(?column?) D(1) C(SELECT 1) Z(I) 1 2 C(SET) Z(I) T(pgseek.walk) D(a) C(SHOW) Z(I)"},
    {.name = "set local behind a group",
     .script = EXTENDED("select 1") "S\n" EXTENDED("set local pgseek.walk = 'a'")
         EXTENDED("show pgseek.walk") "S\n" SHOW_WALK,
     .expected = "1 2 D(1) C(SELECT 1) Z(I) 1 2 C(SET) 1 2 D(a) C(SHOW) Z(I) T(pgseek.walk) D() C(SHOW) Z(I)"},
    {.name = "a block behind a query",
     .script = "Q select 1\nQ begin\nQ set pgseek.walk = 'a'\nQ savepoint s\nQ set pgseek.walk = 'b'\nQ rollback to "
               "s\n" SHOW_WALK "Q rollback\n" SHOW_WALK,
     .expected = "T(?column?) D(1) C(SELECT 1) Z(I) C(BEGIN) Z(T) C(SET) Z(T) C(SAVEPOINT) Z(T) C(SET) Z(T) "
                 "C(ROLLBACK) Z(T) T(pgseek.walk) D(a) C(SHOW) Z(T) C(ROLLBACK) Z(I) T(pgseek.walk) D() C(SHOW) Z(I)"},
    {.name = "a block behind a query, savepoint sent ahead",
     .script = "Q set pgseek.walk = 'z'\nQ select 1\nQ begin\nQ savepoint s\nQ set pgseek.walk = 'b'\nQ rollback to "
               "s\nQ " FEED "\nQ commit\n" SHOW_WALK,
     .expected = "C(SET) Z(I) T(?column?) D(1) C(SELECT 1) Z(I) C(BEGIN) Z(T) C(SAVEPOINT) Z(T) C(SET) Z(T) "
                 "C(ROLLBACK) Z(T) T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(T) C(COMMIT) Z(I) "
                 "T(pgseek.walk) D(z) C(SHOW) Z(I)",
     FIVE},
    {.name = "a block whose COMMIT is a ROLLBACK",
     .script = "Q begin\nQ set pgseek.walk = 'a'\nQ select missing from missing\nQ commit\nQ set pgseek.walk = "
               "'b'\n" SHOW_WALK,
     .expected =
         "C(BEGIN) Z(T) C(SET) Z(T) E(42P01) Z(E) C(ROLLBACK) Z(I) C(SET) Z(I) T(pgseek.walk) D(b) C(SHOW) Z(I)"},
    {.name = "the same in one group",
     .script = "Q begin\nQ set pgseek.walk = 'a'\nQ select missing from missing\n" EXTENDED("commit")
         EXTENDED("set pgseek.cursor = 'zzz'") "S\nQ " FEED,
     .expected = "C(BEGIN) Z(T) C(SET) Z(T) E(42P01) Z(E) 1 2 C(ROLLBACK) 1 2 C(SET) Z(I) E(PS000) Z(I)",
     FIVE},
    {.name = "a cursor spent in a group behind one that fails",
     .script = "P a " FEED "\nS\nQ begin\nQ set pgseek.cursor = 'zzz'\nP - select 1/0\nB - -\nE - 0\nS\nB - a\nE - "
               "0\nS\nQ rollback\nQ show pgseek.cursor",
     .expected = "1 Z(I) C(BEGIN) Z(T) C(SET) Z(T) 1 2 E(22012) Z(E) E(25P02) Z(E) C(ROLLBACK) Z(I) T(pgseek.cursor) "
                 "D() C(SHOW) Z(I)",
     FIVE},
    {.name = "many groups",
     .script = "P a " BOUND "\nS\nB - a NULL\nE - 0\nS\nB - a zzz\nE - 0\nS\nP b select 1/0\nB - b\nE - 0\nS\nB - a "
               "NULL\nE - 1\nS\nC S a\nS\nB - a\nS",
     .expected = "1 Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) E(PS001) Z(I) 1 2 E(22012) Z(I) 2 "
                 "D(1,b1) [first 1 more next] s Z(I) 3 Z(I) E(26000) Z(I)",
     FIVE},
};

int main(void)
{
    return talk_main_of(talks, sizeof talks / sizeof *talks);
}
