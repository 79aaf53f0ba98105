/* test_faults.c - what the client is told when something fails: refusals, guards, side queries, the server's own
 * errors.
 *
 * A fault is met by one message of one statement: the context's, the facts', the guard's, the page's or the client's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "talk.h"

#define FEED "select id, body from posts order by id limit 2 /* pgseek */"
#define FEED_BY(cursor) "select id, body from posts order by id limit 2 /* pgseek cursor=" cursor " */"
#define BOUND "select id, body from posts order by id limit 2 /* pgseek cursor=$1 */"

#define CONTEXT "pg_catalog.current_database()::pg_catalog.text, "
#define FACTS "unnest($3"
#define GUARD "SELECT 1 OPERATOR"
#define PAGE "AS pgseek_k1"

#define ON(text, message, state) \
    { \
        .where = text, .on = message, .sqlstate = state \
    }
#define ONCE(text, message, state) \
    { \
        .where = text, .on = message, .sqlstate = state, .times = 1 \
    }
#define SERVER(...) .server = {.rows = 5, .faults = {__VA_ARGS__}}

static void small_statements(struct conf *conf)
{
    conf->max_tagged_size = 1024;
}

static void no_offset(struct conf *conf)
{
    conf->offset_policy = CONF_OFFSET_REJECT;
}

static void shallow_offset(struct conf *conf)
{
    conf->max_offset = 3;
}

static const struct talk talks[] = {
    /* the guard */
    {.name = "guard fails once, simple",
     .script = "Q " FEED "\nwait\nQ select 1",
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     SERVER(ONCE(GUARD, 'E', "22012"))},
    {.name = "guard fails once, extended",
     .script = "P a " FEED "\nB - a\nD P -\nE - 0\nS\nwait\nB - a\nE - 0\nS",
     .expected = "1 2 T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) 2 D(1,b1) D(2,b2) [first 2 more "
                 "next] C(SELECT 2) Z(I)",
     SERVER(ONCE(GUARD, 'E', "22012"))},
    {.name = "guard fails once, warm",
     .script = "P a " FEED "\nB - a\nE - 0\nS\nwait\nB - a\nE - 0\nS\nwait\nQ select 1",
     .expected = "1 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] "
                 "C(SELECT 2) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     SERVER({.where = GUARD, .on = 'E', .sqlstate = "22012", .skip = 1, .times = 1})},
    {.name = "guard fails once, Sync not sent",
     .script = "P a " FEED "\nS\nwait\nB - a\nE - 0\nH\nwait\nS\nwait\nQ select 1",
     .expected = "1 Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     SERVER(ONCE(GUARD, 'E', "22012"))},
    {.name = "guard fails once, Bind flushed alone",
     .script = "P a " FEED "\nS\nwait\nB x a\nH\nwait\nE x 1\nE x 0\nS\nwait\nQ select 1",
     .expected = "1 Z(I) 2 D(1,b1) [first 1 more next] s D(2,b2) [first 2 more next] C(SELECT 1) Z(I) T(?column?) D(1) "
                 "C(SELECT 1) Z(I)",
     SERVER(ONCE(GUARD, 'E', "22012"))},
    {.name = "guard fails once, statement of the group",
     .script = "P - " FEED "\nB - -\nE - 0\nS",
     .expected = "1 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     SERVER(ONCE(GUARD, 'E', "22012"))},
    {.name = "guard fails twice",
     .script = "Q " FEED "\nwait\nQ select 1\nwait\nQ " FEED,
     .expected = "E(PS005) Z(I) T(?column?) D(1) C(SELECT 1) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more next] "
                 "C(SELECT 2) Z(I)",
     SERVER({.where = GUARD, .on = 'E', .sqlstate = "22012", .times = 2})},
    {.name = "guard fails twice, extended",
     .script = "P a " FEED "\nB - a\nE - 0\nS\nwait\nB - a\nE - 0\nS",
     .expected = "1 2 E(PS005) Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     SERVER({.where = GUARD, .on = 'E', .sqlstate = "22012", .times = 2})},
    {.name = "guard is gone",
     .script = "P a " FEED "\nS\nB - a\nE - 0\nS",
     .expected = "1 Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     SERVER(ONCE(GUARD, 'B', "26000"))},
    {.name = "guard fails in a block",
     .script = "Q begin\nQ " FEED "\nwait\nQ select 1\nQ rollback\nQ " FEED,
     .expected = "C(BEGIN) Z(T) E(PS005) Z(E) E(25P02) Z(E) C(ROLLBACK) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more "
                 "next] C(SELECT 2) Z(I)",
     SERVER(ONCE(GUARD, 'E', "22012"))},
    {.name = "guard fails behind another statement",
     .script = "P - select 1\nB - -\nE - 0\nP a " FEED "\nB - a\nE - 0\nS\nwait\nQ " FEED,
     .expected =
         "1 2 D(1) C(SELECT 1) 1 2 E(PS005) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     SERVER(ONCE(GUARD, 'E', "22012"))},
    {.name = "guard fails, another group is under way",
     .script = "P a " FEED "\nS\nwait\nB - a\nE - 0\nS\nwait\nB - a\nE - 0\nS\nB - a\nE - 0\nS",
     .expected = "1 Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) 2 E(PS005) Z(I) 2 D(1,b1) D(2,b2) "
                 "[first 2 more next] C(SELECT 2) Z(I)",
     .is_a_race = true,
     SERVER({.where = GUARD, .on = 'E', .sqlstate = "22012", .skip = 1, .times = 1})},
    {.name = "filter differs",
     .script = "Q " FEED "\nwait\nQ " FEED_BY("{next}") "\nwait\nQ select 1",
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) E(PS004) Z(I) T(?column?) D(1) "
                 "C(SELECT 1) Z(I)",
     SERVER({.where = GUARD, .on = 'E', .sqlstate = "2201F", .skip = 1, .times = 1})},
    {.name = "scope differs",
     .script = "Q begin\nQ " FEED "\nwait\nQ " FEED_BY("{next}") "\nwait\nQ select 1",
     .expected =
         "C(BEGIN) Z(T) T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(T) E(PS004) Z(E) E(25P02) Z(E)",
     SERVER({.where = GUARD, .on = 'E', .sqlstate = "2201E", .skip = 1, .times = 1})},
    {.name = "cancelled in the guard",
     .script = "Q " FEED "\nwait\nQ " FEED,
     .expected = "E(57014) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     SERVER(ONCE(GUARD, 'E', "57014"))},
    {.name = "cancelled in the guard, extended",
     .script = "P a " FEED "\nB - a\nE - 0\nS\nwait\nB - a\nE - 0\nS",
     .expected = "1 2 E(57014) Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     SERVER(ONCE(GUARD, 'P', "57014"))},
    /* side queries */
    {.name = "context fails",
     .script = "Q " FEED "\nwait\nQ " FEED,
     .expected = "T(id,body) D(1,b1) D(2,b2) [pass: facts_failed] C(SELECT 2) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 "
                 "more next] C(SELECT 2) Z(I)",
     SERVER(ONCE(CONTEXT, 'P', "42501"))},
    {.name = "context fails when it is bound",
     .script = "P a " FEED "\nS\nB - a\nE - 0\nS\nwait\nB - a\nE - 0\nS",
     .expected = "1 Z(I) 2 D(1,b1) D(2,b2) [pass: facts_failed] C(SELECT 2) Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] "
                 "C(SELECT 2) Z(I)",
     SERVER(ONCE(CONTEXT, 'B', "42501"))},
    {.name = "facts fail",
     .script = "Q " FEED "\nwait\nQ " FEED,
     .expected = "T(id,body) D(1,b1) D(2,b2) [pass: facts_failed] C(SELECT 2) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 "
                 "more next] C(SELECT 2) Z(I)",
     SERVER(ONCE(FACTS, 'E', "42501"))},
    {.name = "facts fail with the connection",
     .script = "Q " FEED,
     .expected = "E(57P01) T(id,body) D(1,b1) D(2,b2) [pass: facts_failed] C(SELECT 2) Z(I)",
     SERVER(ONCE(FACTS, 'E', "57P01"))},
    {.name = "facts fail with a cursor",
     .script = "Q " FEED "\nwait\nQ select id from posts order by id limit 2 /* pgseek cursor={next} */",
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) E(PS005) Z(I)",
     SERVER({.where = FACTS, .on = 'E', .sqlstate = "57014", .skip = 1})},
    {.name = "facts are asked for once, whatever the cursor",
     .script = "Q " FEED "\nwait\nQ " FEED_BY("{next}") "\nwait\nQ " FEED_BY("{next}"),
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) T(id,body) D(3,b3) D(4,b4) [keyset 2 "
                 "more prev next back] C(SELECT 2) Z(I) T(id,body) D(5,b5) [keyset 1 prev back] C(SELECT 1) Z(I)",
     SERVER({.where = FACTS, .on = 'E', .sqlstate = "57014", .skip = 2})},
    {.name = "facts fail in a block",
     .script = "Q begin\nQ " FEED "\nQ select 1\nQ rollback\nQ " FEED,
     .expected = "C(BEGIN) Z(T) E(57014) Z(E) E(25P02) Z(E) C(ROLLBACK) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more "
                 "next] C(SELECT 2) Z(I)",
     SERVER(ONCE(FACTS, 'E', "57014"))},
    {.name = "facts fail in a block, extended",
     .script = "Q begin\nP a " FEED "\nS\nB - a\nE - 0\nS\nQ rollback\nB - a\nE - 0\nS",
     .expected =
         "C(BEGIN) Z(T) 1 Z(T) E(57014) Z(E) C(ROLLBACK) Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     SERVER(ONCE(FACTS, 'E', "57014"))},
    {.name = "facts fail in the client's group",
     .script = "P a " FEED "\nB - a\nE - 0\nP - select 1\nB - -\nE - 0\nS\nP a " FEED "\nB - a\nE - 0\nS",
     .expected = "1 E(57014) Z(I) E(42P05) Z(I)",
     SERVER(ONCE(FACTS, 'B', "57014"))},
    {.name = "facts fail in a group, Sync is late",
     .script = "P a " FEED "\nB - a\nH\nwait\nE - 0\nS\nQ " FEED,
     .expected = "1 E(57014) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     SERVER(ONCE(FACTS, 'P', "57014"))},
    {.name = "describing the statement fails",
     .script = "P a " FEED "\nS\nB - a\nE - 0\nS\nwait\nB - a\nE - 0\nS",
     .expected = "1 Z(I) 2 D(1,b1) D(2,b2) [pass: facts_failed] C(SELECT 2) Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] "
                 "C(SELECT 2) Z(I)",
     SERVER(ONCE("from posts", 'D', "0A000"))},
    {.name = "the text is wrong",
     .script = "Q select id from posts order by id limit 2 oops /* pgseek */\nQ select id from missing order by id "
               "limit 1 /* pgseek */\nP - selec id /* pgseek */\nB - -\nE - 0\nS",
     .expected = "T(id) D(1) D(2) [pass: syntax] C(SELECT 2) Z(I) E(42P01) Z(I) E(42601) Z(I)",
     SERVER({0})},
    /* the page's own messages */
    {.name = "page cannot be parsed once",
     .script = "P a " FEED "\nB - a\nE - 0\nS\nwait\nQ " FEED,
     .expected = "1 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more "
                 "next] C(SELECT 2) Z(I)",
     SERVER(ONCE(PAGE, 'P', "42703"))},
    {.name = "page cannot be parsed",
     .script = "Q " FEED "\nwait\nP a " FEED "\nB - a\nE - 0\nS\nQ select 1",
     .expected = "E(42703) Z(I) 1 E(42703) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     SERVER(ON(PAGE, 'P', "42703"))},
    {.name = "page cannot be bound",
     .script = "Q " FEED "\nwait\nP a " FEED "\nB - a\nE - 0\nS\nQ select 1",
     .expected = "E(55P03) Z(I) 1 E(55P03) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     SERVER(ON(PAGE, 'B', "55P03"))},
    {.name = "page cannot be described",
     .script = "P a " FEED "\nB - a\nD P -\nE - 0\nS\nwait\nQ " FEED,
     .expected = "1 2 E(XX000) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     SERVER(ONCE(PAGE, 'D', "XX000"))},
    {.name = "page fails when it runs",
     .script = "Q " FEED "\nwait\nP a " FEED "\nB x a\nE x 1\nE x 1\nS\nQ " FEED,
     .expected =
         "T(id,body) E(57014) Z(I) 1 2 E(57014) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     SERVER({.where = PAGE, .on = 'E', .sqlstate = "57014", .times = 2})},
    {.name = "original has changed",
     .script = "P a " FEED "\nB - a\nE - 0\nS\nwait\nB - a\nE - 0\nS\nQ select 1",
     .expected = "1 E(0A000) Z(I) E(0A000) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     SERVER({.where = "from posts order by id limit 2", .on = 'D', .sqlstate = "0A000", .skip = 1})},
    /* refusals */
    {.name = "unknown option",
     .script = "Q select id from posts order by id limit 2 /* pgseek curser=x */\nQ select 1",
     .expected = "E(PS000) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     SERVER({0})},
    {.name = "unknown option, extended",
     .script = "P - select id from posts order by id limit 2 /* pgseek curser=x */\nB - -\nE - 0\nS\nQ select 1",
     .expected = "E(PS000) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     SERVER({0})},
    {.name = "unknown option, named, behind others",
     .script = "P - select 7\nB - -\nE - 0\nP a select 1 /* pgseek curser=x */\nB - a\nS\nB - a\nS\nQ select 1",
     .expected = "1 2 D(7) C(SELECT 1) E(PS000) Z(I) E(26000) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     SERVER({0})},
    {.name = "refused in a block",
     .script = "Q begin\nQ select 1 /* pgseek a=b */\nQ select 1\nQ select 1 /* pgseek a=b */\nP - select 1 /* pgseek "
               "a=b */\nS\nQ rollback\nQ select 2",
     .expected = "C(BEGIN) Z(T) E(PS000) Z(E) E(25P02) Z(E) E(25P02) Z(E) E(25P02) Z(E) C(ROLLBACK) Z(I) T(?column?) "
                 "D(2) C(SELECT 1) Z(I)",
     SERVER({0})},
    {.name = "malformed cursor",
     .script = "Q " FEED_BY("zzz") "\nP a " BOUND "\nB - a zzz\nE - 0\nS\nB - a ''\nE - 0\nS",
     .expected = "E(PS001) Z(I) 1 E(PS001) Z(I) 2 D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     SERVER({0})},
    {.name = "forged cursor",
     .script = "Q " FEED "\nwait\nQ " FEED_BY("{next}AA"),
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) E(PS001) Z(I)",
     SERVER({0})},
    {.name = "another statement's cursor",
     .script = "Q " FEED "\nwait\nQ select id from posts order by id limit 2 /* pgseek cursor={next} */",
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) E(PS004) Z(I)",
     SERVER({0})},
    {.name = "cursor where none can be",
     .script = "Q " FEED "\nwait\nQ select id from posts limit 2 /* pgseek cursor={next} */",
     .expected = "T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) E(PS005) Z(I)",
     SERVER({0})},
    {.name = "strict",
     .script = "Q select id from posts limit 2 /* pgseek strict=on */",
     .expected = "E(PS005) Z(I)",
     SERVER({0})},
    {.name = "parameter in a simple query", .script = "Q " BOUND, .expected = "E(PS000) Z(I)", SERVER({0})},
    {.name = "several statements", .script = "Q select 1; " FEED, .expected = "E(PS000) Z(I)", SERVER({0})},
    {.name = "refused behind an open group",
     .script = "P - select 1\nB - -\nE - 0\nQ select 1 /* pgseek a=b */\nS\nQ select 2",
     .expected = "1 2 D(1) C(SELECT 1) E(PS000) Z(I) Z(I) T(?column?) D(2) C(SELECT 1) Z(I)",
     SERVER({0})},
    {.name = "page behind an open group",
     .script = "P - select 1\nB - -\nE - 0\nQ " FEED "\nQ select 2",
     .expected = "1 2 D(1) C(SELECT 1) T(id,body) D(1,b1) D(2,b2) [pass: pipelined] C(SELECT 2) Z(I) T(?column?) D(2) "
                 "C(SELECT 1) Z(I)",
     SERVER({0})},
    {.name = "offset refused",
     .script = "Q select id from posts order by id limit 2 offset 2 /* pgseek */\nQ select 1",
     .expected = "E(PS006) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     SERVER({0}),
     .configure = no_offset},
    {.name = "offset too deep",
     .script = "Q select id from posts order by id limit 2 offset 3 /* pgseek */\nP - select id from posts order by id "
               "limit 2 offset $1 /* pgseek */\nB - - 4\nE - 0\nS",
     .expected = "T(id) D(4) D(5) [offset 2 prev back] C(SELECT 2) Z(I) 1 E(PS006) Z(I)",
     SERVER({0}),
     .configure = shallow_offset},
    {.name = "EXECUTE of a tagged statement",
     .script = "P a " BOUND "\nS\nQ execute a('x')\nQ explain execute a('x')\nQ select 1",
     .expected = "1 Z(I) E(PS001) Z(I) E(PS001) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     SERVER({0})},
    {.name = "FETCH from a page",
     .script = "Q begin\nP a " FEED "\nB x a\nE x 1\nS\nwait\nQ move forward 1 \"x\"\nQ rollback",
     .expected = "C(BEGIN) Z(T) 1 2 D(1,b1) [first 1 more next] s Z(T) E(PS005) Z(E) C(ROLLBACK) Z(I)",
     SERVER({0})},
    {.name = "too large and tagged",
     .script = "long Q /* pgseek */\nQ select 1",
     .expected = "E(54000) CLOSED",
     SERVER({0}),
     .configure = small_statements,
     .stride = 997},
    {.name = "too large and tagged, extended",
     .script = "long P /* pgseek */\nB - -\nE - 0\nS",
     .expected = "E(54000) CLOSED",
     SERVER({0}),
     .configure = small_statements,
     .stride = 997},
    {.name = "too large and untagged",
     .script = "long Q from pgseek\nlong P where x\nB - -\nS\nQ select 1",
     .expected = "T(?column?) D(<token>) C(SELECT 1) Z(I) 1 2 Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     SERVER({0}),
     .configure = small_statements,
     .stride = 997},
    {.name = "copy fails in the extended protocol",
     .script = "P - copy posts from stdin\nB - -\nE - 0\nS\nd x\nf no\nS\nQ " FEED "\nwait\nQ " FEED,
     .expected = "1 2 G E(57014) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) T(id,body) "
                 "D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     SERVER({0})},
    {.name = "copy cannot start, extended",
     .script = "P - copy posts from stdin\nB - -\nE - 0\nS\nd x\nc\nS\nQ " FEED,
     .expected = "1 2 E(42501) Z(I) Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I)",
     SERVER(ONCE("copy", 'E', "42501"))},
};

static void all_cuts_give_the_same(void **state)
{
    (void)state;
    talk_check(talks, sizeof talks / sizeof *talks);
}

/* ---- one error anywhere ---- */

#define PROBED "select id, body from posts order by id + 0 limit 2 /* pgseek */"
#define AGAIN "\nwait\nQ rollback\nwait\nQ " FEED "\nwait\nQ " FEED "\nwait\nQ " FEED "\nQ select 42"
#define AS_IF_NOTHING_HAD_BEEN \
    "Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2) Z(I) T(?column?) D(42) C(SELECT 1) Z(I)"

static const char *const scripts[] = {
    "Q " FEED AGAIN,
    "Q begin\nQ " FEED AGAIN,
    "Q " PROBED AGAIN,
    "Q begin\nQ " PROBED AGAIN,
    "Q begin\nP - " PROBED "\nB - -\nE - 0\nP - select 1\nB - -\nE - 0\nS" AGAIN,
    "P a " FEED "\nB - a\nD P -\nE - 0\nS" AGAIN,
    "P a " FEED "\nS\nwait\nB x a\nD P x\nE x 1\nE x 1\nS" AGAIN,
    "P a " FEED "\nS\nwait\nB - a\nE - 0\nS\nB - a\nE - 0\nS" AGAIN,
    "Q begin\nP a " FEED "\nB - a\nE - 0\nS\nB - a\nE - 0\nS" AGAIN,
    "P - select 1\nB - -\nE - 0\nP - " FEED "\nB - -\nE - 0\nS\nwait\nQ " FEED AGAIN,
    "P - set pgseek.walk = 'a'\nB - -\nE - 0\nP - show pgseek.walk\nB - -\nE - 0\nS\nP - select 1 /* pgseek a=b "
    "*/\nS" AGAIN,
    "P - select set_config('pgseek.walk', 'a', false)\nB - -\nE - 0\nS\nwait\nQ " FEED AGAIN,
};

static const char *const marks[] = {CONTEXT,
                                    FACTS,
                                    GUARD,
                                    PAGE,
                                    "from posts order by id limit 2",
                                    "SET pgseek.active",
                                    "SAVEPOINT",
                                    "::pg_catalog.text AS"};
static const char messages[] = "PBDE";
static const char *const sqlstates[] = {"57014", "22012", "2201F", "42703", "26000", "08P01"};

/* Whatever failed, the session goes on as if nothing had been: the last page is a first page again. */
static void check_fault(const char *script, const struct backend_fault *fault)
{
    struct talk talk = {.name = fault->where, .script = script, .server = {.rows = 5, .faults = {*fault}}};
    struct talk_cut cut = {.is_prompt = fault->skip % 2 == 0};
    struct talk_result result;
    talk_run(&talk, &cut, &result);
    char *text = talk_text(&result);
    size_t len = strlen(text);
    size_t wanted = strlen(AS_IF_NOTHING_HAD_BEEN);
    if (len < wanted || strcmp(text + len - wanted, AS_IF_NOTHING_HAD_BEEN) != 0)
        fail_msg("%c %s %s, skip %d:\n%s\n%s", fault->on, fault->where, fault->sqlstate, fault->skip, script, text);
    free(text);
    talk_result_fini(&result);
}

static void the_session_goes_on_after_an_error_anywhere(void **state)
{
    (void)state;
    for (size_t script = 0; script < sizeof scripts / sizeof *scripts; script++)
        for (size_t mark = 0; mark < sizeof marks / sizeof *marks; mark++)
            for (const char *message = messages; *message; message++)
                for (size_t i = 0; i < sizeof sqlstates / sizeof *sqlstates; i++)
                    for (int skip = 0; skip < 2; skip++)
                        check_fault(scripts[script], &(struct backend_fault){.where = marks[mark],
                                                                             .on = *message,
                                                                             .sqlstate = sqlstates[i],
                                                                             .skip = skip,
                                                                             .times = 1});
}

static int run(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_cuts_give_the_same),
                                       cmocka_unit_test(the_session_goes_on_after_an_error_anywhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return talk_main(run);
}
