/* test_probes.c - texts of ours that are only described: what they tell, and what a refusal costs the client: nothing.
 */
#include "talk.h"

/* The key's type is known to the server alone. */
#define FEED "select id, body from posts order by id + 0 limit 2 /* pgseek */"
#define PROBE "AS pgseek_k1"
#define FIRST "D(1,b1) D(2,b2) [first 2 more next] C(SELECT 2)"
#define PASSED "D(1,b1) D(2,b2) [pass: key_type] C(SELECT 2)"

#define SERVER(...) .server = {.rows = 5, .faults = {{.where = PROBE, .on = __VA_ARGS__, .times = 1}}}

static const struct talk talks[] = {
    {.name = "simple",
     .script = "Q " FEED "\nwait\nQ " FEED,
     .expected = "T(id,body) " FIRST " Z(I) T(id,body) " FIRST " Z(I)",
     .server = {.rows = 5}},
    {.name = "extended, one group",
     .script = "P - " FEED "\nB - -\nD P -\nE - 0\nS\nwait\nP - select 1\nB - -\nE - 0\nS",
     .expected = "1 2 T(id,body) " FIRST " Z(I) 1 2 D(1) C(SELECT 1) Z(I)",
     .server = {.rows = 5}},
    {.name = "extended, described before",
     .script = "P a " FEED "\nD S a\nS\nwait\nB - a\nE - 0\nS",
     .expected = "1 t() T(id,body) Z(I) 2 " FIRST " Z(I)",
     .server = {.rows = 5}},
    {.name = "in a block",
     .script = "Q begin\nQ " FEED "\nQ select 1\nQ commit",
     .expected = "C(BEGIN) Z(T) T(id,body) " FIRST " Z(T) T(?column?) D(1) C(SELECT 1) Z(T) C(COMMIT) Z(I)",
     .server = {.rows = 5}},
    {.name = "in a block, extended",
     .script = "Q begin\nP - " FEED "\nB - -\nE - 0\nS\nwait\nQ commit",
     .expected = "C(BEGIN) Z(T) 1 2 " FIRST " Z(T) C(COMMIT) Z(I)",
     .server = {.rows = 5}},
    {.name = "behind what has run",
     .script = "P - select 1\nB - -\nE - 0\nP - " FEED "\nB - -\nE - 0\nS\nwait\nP - " FEED "\nB - -\nE - 0\nS",
     .expected = "1 2 D(1) C(SELECT 1) 1 2 D(1,b1) D(2,b2) [pass: facts_failed] C(SELECT 2) Z(I) 1 2 " FIRST " Z(I)",
     .server = {.rows = 5}},
    /* refused */
    {.name = "refused, simple",
     .script = "Q " FEED "\nQ select 1",
     .expected = "T(id,body) " PASSED " Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     SERVER('P', .sqlstate = "42703")},
    {.name = "refused, extended",
     .script = "P - " FEED "\nB - -\nE - 0\nP - select 1\nB - -\nE - 0\nS\nQ select 1",
     .expected = "1 2 " PASSED " 1 2 D(1) C(SELECT 1) Z(I) T(?column?) D(1) C(SELECT 1) Z(I)",
     SERVER('P', .sqlstate = "42703")},
    {.name = "refused when described",
     .script = "P - " FEED "\nB - -\nE - 0\nS",
     .expected = "1 2 " PASSED " Z(I)",
     SERVER('D', .sqlstate = "57014")},
    {.name = "refused in a block",
     .script = "Q begin\nQ " FEED "\nQ select 1\nQ commit",
     .expected = "C(BEGIN) Z(T) T(id,body) " PASSED " Z(T) T(?column?) D(1) C(SELECT 1) Z(T) C(COMMIT) Z(I)",
     SERVER('P', .sqlstate = "42703")},
    {.name = "refused in a block, extended",
     .script =
         "Q begin\nP a select 7\nB x a\nE x 0\nS\nP - " FEED "\nB - -\nE - 0\nP - select 1\nB - -\nE - 0\nS\nQ commit",
     .expected = "C(BEGIN) Z(T) 1 2 D(7) C(SELECT 1) Z(T) 1 2 " PASSED " 1 2 D(1) C(SELECT 1) Z(T) C(COMMIT) Z(I)",
     SERVER('D', .sqlstate = "42703")},
    {.name = "the way back fails",
     .script = "Q begin\nQ " FEED "\nQ select 1\nQ rollback",
     .expected = "C(BEGIN) Z(T) E(57P05) Z(E) E(25P02) Z(E) C(ROLLBACK) Z(I)",
     .server = {.rows = 5,
                .faults = {{.where = PROBE, .on = 'P', .sqlstate = "42703", .times = 1},
                           {.where = "ROLLBACK TO", .on = 'E', .sqlstate = "57P05"}}}},
    {.name = "the savepoint fails",
     .script = "Q begin\nQ " FEED "\nQ select 1\nQ rollback",
     .expected = "C(BEGIN) Z(T) E(57P05) Z(E) E(25P02) Z(E) C(ROLLBACK) Z(I)",
     .server = {.rows = 5, .faults = {{.where = "SAVEPOINT", .on = 'E', .sqlstate = "57P05"}}}},
};

int main(void)
{
    return talk_main_of(talks, sizeof talks / sizeof *talks);
}
