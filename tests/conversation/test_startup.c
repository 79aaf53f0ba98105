/* test_startup.c - the first packets: what is answered, what goes on to the server, and what must never get there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "talk.h"

#define START "start user=u|database=d"
#define FEED "select id, body from posts order by id limit 2 /* pgseek */"

static void only_one_database(struct conf *conf)
{
    conf->databases[0].name[0] = 'x'; /* instead of "*" */
}

static const struct talk talks[] = {
    {.name = "login", .script = START, .expected = "R S(client_encoding) S(standard_conforming_strings) K Z(I)"},
    {.name = "login and a query at once",
     .script = START "\nQ select 1",
     .expected = "R S(client_encoding) S(standard_conforming_strings) K Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "login and a page at once",
     .script = START "\nQ " FEED "\nQ select 2",
     .expected = "R S(client_encoding) S(standard_conforming_strings) K Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more "
                 "next] C(SELECT 2) Z(I) T(?column?) D(2) C(SELECT 1) Z(I)",
     .server = {.rows = 3}},
    {.name = "password",
     .script = "start user=secret|database=d\nwait\np word\nwait\nQ select 1",
     .expected = "R R S(client_encoding) S(standard_conforming_strings) K Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "encryption declined",
     .script = "ssl\nwait\n" START "\nwait\nQ select 1",
     .expected = "no R S(client_encoding) S(standard_conforming_strings) K Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "both encryptions declined",
     .script = "gss\nwait\nssl\nwait\n" START,
     .expected = "no no R S(client_encoding) S(standard_conforming_strings) K Z(I)"},
    {.name = "encryption asked twice", .script = "ssl\nwait\nssl", .expected = "no CLOSED"},
    {.name = "bytes behind the request", .script = "ssl\n" START, .expected = " CLOSED", .is_a_race = true},
    {.name = "cancel", .script = "cancel", .expected = ""},
    {.name = "cancel with an unknown key", .script = "raw 00000010 04d2162e 00001267 01010101", .expected = " CLOSED"},
    {.name = "cancel behind a declined encryption", .script = "ssl\nwait\ncancel", .expected = "no"},
    {.name = "protocol 3.2",
     .script = "start3 user=u|database=d\nwait\nQ select 1",
     .expected = "v R S(client_encoding) S(standard_conforming_strings) K Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "protocol 2.0", .script = "start2 user=u|database=d", .expected = "E(0A000) CLOSED"},
    {.name = "too short", .script = "raw 00000007", .expected = " CLOSED"},
    {.name = "too long", .script = "raw 00010000", .expected = " CLOSED"},
    {.name = "Terminate before anything", .script = "raw 5800000004", .expected = " CLOSED"},
    {.name = "not terminated", .script = "raw 0000000d 00030000 75736572 00", .expected = "E(08P01) CLOSED"},
    {.name = "no user",
     .script = "raw 00000009 00030000 00\nwait\nQ select 1",
     .expected = "R S(client_encoding) S(standard_conforming_strings) K Z(I) T(?column?) D(1) C(SELECT 1) Z(I)"},
    {.name = "bytes behind the end", .script = "raw 0000000e 00030000 7500 7500 00 00", .expected = "E(08P01) CLOSED"},
    {.name = "no such database", .script = START, .expected = "E(3D000) CLOSED", .configure = only_one_database},
    {.name = "replication",
     .script = "start user=u|database=d|replication=true\nwait\nQ start_replication 0/0\nwait\nd feedback\nd "
               "more\nc\nwait\nQ " FEED,
     .expected = "R S(client_encoding) S(standard_conforming_strings) K Z(I) W d(wal) c C(COPY 2) Z(I) T(id,body) "
                 "D(1,b1) D(2,b2) C(SELECT 2) Z(I) BUSY",
     .server = {.rows = 3}},
    {.name = "no replication after all",
     .script = "start user=u|database=d|replication=OFF\nwait\nQ " FEED,
     .expected = "R S(client_encoding) S(standard_conforming_strings) K Z(I) T(id,body) D(1,b1) D(2,b2) [first 2 more "
                 "next] C(SELECT 2) Z(I)",
     .server = {.rows = 3}},
};

static void all_cuts_give_the_same(void **state)
{
    (void)state;
    talk_check(talks, sizeof talks / sizeof *talks);
}

/* ---- what the server is told ---- */

struct forwarded {
    const char *script;
    const char *packet; /* the parameters that reach the server, joined by | */
};

static void our_parameters_stay_here(void **state)
{
    static const struct forwarded cases[] = {
        {"start user=u|database=d", "user|u|database|d|"},
        {"start user=u|pgseek.walk=a|database=d", "user|u|database|d|"},
        {"start user=u|PGSEEK.walk=a", "user|u|"},
        {"start user=u|options=-c pgseek.walk=a", "user|u|"},
        {"start user=u|options=-cpgseek.walk=a --work-mem=1", "user|u|options| --work-mem=1|"},
        {"start user=u|options=-c work_mem=1 --pgseek.walk=a  -c b=\\ c", "user|u|options|-c work_mem=1   -c b=\\ c|"},
        {"start user=u|options=-c pgseek.walk=a\\ b -c x=pgseek.walk", "user|u|options| -c x=pgseek.walk|"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct talk talk = {.name = cases[i].script, .script = cases[i].script};
        struct talk_cut whole = {0};
        struct talk_result result;
        char text[256];
        talk_run(&talk, &whole, &result);
        size_t len = result.to_server.len - 9;
        assert_in_range(len, 1, sizeof text - 1);
        memcpy(text, result.to_server.ptr + 8, len);
        text[len] = '\0';
        for (size_t c = 0; c < len; c++)
            text[c] = text[c] ? text[c] : '|';
        assert_string_equal(text, cases[i].packet);
        talk_result_fini(&result);
    }
}

/* A session that meets no tag sends the server exactly what the client sent. */
static void untagged_bytes_are_the_clients_own(void **state)
{
    static const char script[] =
        "Q select 1\nP a:23 select 2\nB x a ; 1\nD S a\nD P x\nE x 3\nC P x\nC S a\nH\nS\nQ begin\nQ "
        "savepoint s\nQ rollback\nF\nQ copy posts from stdin\nd one\nc\nX";
    struct talk talk = {.name = "untagged", .script = script};
    struct talk_cut whole = {.front_chunk = 5};
    struct talk_result result;
    struct buf sent = {0};
    (void)state;
    talk_run(&talk, &whole, &result);
    for (const char *line = script; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != 0))
        talk_encode(line, strcspn(line, "\n"), "", "", &sent);
    assert_int_equal(result.to_server.len - result.server_greeting, sent.len);
    assert_memory_equal(result.to_server.ptr + result.server_greeting, sent.ptr, sent.len);
    buf_fini(&sent);
    talk_result_fini(&result);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_cuts_give_the_same),
        cmocka_unit_test(our_parameters_stay_here),
        cmocka_unit_test(untagged_bytes_are_the_clients_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return talk_main(run);
}
