/* test_negotiation.c - who may ask for encryption, when, and what the log-in is then; both links.
 *
 * There is no TLS here: the handshake is over as soon as the session asks for it, and the bytes go on as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "talk.h"

#define START "start user=u|database=d"
#define UP "R S(client_encoding) S(standard_conforming_strings) K Z(I)"
#define ROW "T(?column?) D(1) C(SELECT 1) Z(I)"

static void client_require(struct conf *conf)
{
    conf->client_tls.sslmode = CONF_SSL_REQUIRE;
}

static void client_verify_ca(struct conf *conf)
{
    conf->client_tls.sslmode = CONF_SSL_VERIFY_CA;
}

static void client_verify_full(struct conf *conf)
{
    conf->client_tls.sslmode = CONF_SSL_VERIFY_FULL;
}

static void server_allow(struct conf *conf)
{
    conf->server_tls.sslmode = CONF_SSL_ALLOW;
}

static void server_prefer(struct conf *conf)
{
    conf->server_tls.sslmode = CONF_SSL_DISABLE; /* the line's own counts */
    conf->databases[0].sslmode = CONF_SSL_PREFER;
}

static void server_require(struct conf *conf)
{
    conf->server_tls.sslmode = CONF_SSL_REQUIRE;
}

static void server_socket(struct conf *conf)
{
    server_allow(conf);
    conf->databases[0].hosts[0].host[0] = '/';
}

/* ---- the client's link ---- */

static const struct talk client_talks[] = {
    {.name = "TLS", .script = "ssl\nwait\n" START "\nwait\nQ select 1", .expected = "yes " UP " " ROW, .has_tls = true},
    {.name = "no TLS on a Unix socket", .script = "ssl\nwait\n" START, .expected = "no " UP},
    {.name = "clear text where TLS is offered", .script = START, .expected = UP, .has_tls = true},
    {.name = "GSSAPI first", .script = "gss\nwait\nssl\nwait\n" START, .expected = "no yes " UP, .has_tls = true},
    {.name = "GSSAPI after a declined TLS", .script = "ssl\nwait\ngss\nwait\n" START, .expected = "no no " UP},
    {.name = "GSSAPI twice", .script = "gss\nwait\ngss", .expected = "no CLOSED", .has_tls = true},
    {.name = "TLS inside TLS", .script = "ssl\nwait\nssl", .expected = "yes CLOSED", .has_tls = true},
    {.name = "GSSAPI inside TLS", .script = "ssl\nwait\ngss", .expected = "yes CLOSED", .has_tls = true},
    {.name = "TLS asked behind GSSAPI, and again",
     .script = "gss\nwait\nssl\nwait\nssl",
     .expected = "no yes CLOSED",
     .has_tls = true},
    {.name = "bytes behind SSLRequest",
     .script = "ssl\n" START,
     .expected = " CLOSED",
     .has_tls = true,
     .is_a_race = true},
    {.name = "one byte behind SSLRequest",
     .script = "ssl\nraw 16",
     .expected = " CLOSED",
     .has_tls = true,
     .is_a_race = true},
    {.name = "bytes behind GSSENCRequest",
     .script = "gss\nssl",
     .expected = " CLOSED",
     .has_tls = true,
     .is_a_race = true},
    {.name = "bytes behind GSSENCRequest, without TLS",
     .script = "gss\n" START,
     .expected = " CLOSED",
     .is_a_race = true},
    {.name = "direct TLS", .script = "tls\nwait\n" START "\nwait\nQ select 1", .expected = UP " " ROW, .has_tls = true},
    {.name = "direct TLS on a Unix socket", .script = "tls\nwait\n" START, .expected = " CLOSED"},
    {.name = "SSLRequest inside direct TLS", .script = "tls\nwait\nssl", .expected = " CLOSED", .has_tls = true},
    {.name = "GSSENCRequest inside direct TLS", .script = "tls\nwait\ngss", .expected = " CLOSED", .has_tls = true},
    {.name = "a cancel request under TLS", .script = "ssl\nwait\ncancel", .expected = "yes", .has_tls = true},
    {.name = "a cancel request in clear text", .script = "cancel", .expected = "", .has_tls = true},
    {.name = "protocol 2.0 under TLS",
     .script = "ssl\nwait\nstart2 user=u|database=d",
     .expected = "yes E(0A000) CLOSED",
     .has_tls = true},
    {.name = "a malformed packet under TLS",
     .script = "ssl\nwait\nraw 00000007",
     .expected = "yes CLOSED",
     .has_tls = true},
    {.name = "require, with",
     .script = "ssl\nwait\n" START,
     .expected = "yes " UP,
     .configure = client_require,
     .has_tls = true},
    {.name = "require, direct",
     .script = "tls\nwait\n" START,
     .expected = UP,
     .configure = client_require,
     .has_tls = true},
    {.name = "require, without",
     .script = START,
     .expected = "E(28000) CLOSED",
     .configure = client_require,
     .has_tls = true},
    {.name = "require, on a Unix socket", .script = START, .expected = UP, .configure = client_require},
    {.name = "require, and a cancel request",
     .script = "cancel",
     .expected = "",
     .configure = client_require,
     .has_tls = true},
    {.name = "verify-ca, without",
     .script = "gss\nwait\n" START,
     .expected = "no E(28000) CLOSED",
     .configure = client_verify_ca,
     .has_tls = true},
    {.name = "verify-ca, another's certificate",
     .script = "ssl\nwait\n" START,
     .expected = "yes " UP,
     .configure = client_verify_ca,
     .has_tls = true,
     .certificate = "other"},
    {.name = "verify-full",
     .script = "ssl\nwait\n" START,
     .expected = "yes " UP,
     .configure = client_verify_full,
     .has_tls = true,
     .certificate = "u"},
    {.name = "verify-full, another's certificate",
     .script = "ssl\nwait\n" START,
     .expected = "yes E(28000) CLOSED",
     .configure = client_verify_full,
     .has_tls = true,
     .certificate = "other"},
    {.name = "verify-full, the beginning of the name",
     .script = "ssl\nwait\nstart user=user2|database=d",
     .expected = "yes E(28000) CLOSED",
     .configure = client_verify_full,
     .has_tls = true,
     .certificate = "user"},
    {.name = "verify-full, a certificate without a name",
     .script = "ssl\nwait\n" START,
     .expected = "yes E(28000) CLOSED",
     .configure = client_verify_full,
     .has_tls = true,
     .certificate = ""},
    {.name = "verify-full, on a Unix socket", .script = START, .expected = UP, .configure = client_verify_full},
};

/* ---- the server's link ---- */

static const struct talk server_talks[] = {
    {.name = "allow, taken", .script = START "\nQ select 1", .expected = UP " " ROW, .configure = server_allow},
    {.name = "allow, refused without",
     .script = START "\nwait\nQ select 1",
     .expected = UP " " ROW,
     .configure = server_allow,
     .server.refuses_plain = "28000"},
    {.name = "allow, refused without, a query sent at once",
     .script = START "\nQ select 1",
     .expected = UP " " ROW,
     .configure = server_allow,
     .server.refuses_plain = "28000"},
    {.name = "allow, a password at once",
     .script = "start user=secret|database=d\nwait\np word\nQ select 1",
     .expected = "R " UP " " ROW,
     .configure = server_allow,
     .server.refuses_plain = "28000"},
    {.name = "allow, refused both ways",
     .script = START,
     .expected = "E(28000)",
     .configure = server_allow,
     .server = {.refuses_plain = "28000", .refuses_tls = "28000"}},
    {.name = "allow, refused for another reason",
     .script = START,
     .expected = "E(3D000)",
     .configure = server_allow,
     .server.refuses_plain = "3D000"},
    {.name = "allow, on a Unix socket",
     .script = START,
     .expected = "E(28000)",
     .configure = server_socket,
     .server.refuses_plain = "28000"},
    {.name = "prefer, refused with",
     .script = START "\nwait\nQ select 1",
     .expected = UP " " ROW,
     .configure = server_prefer,
     .is_server_tls = true,
     .server.refuses_tls = "28000"},
    {.name = "prefer, declined and then refused",
     .script = START,
     .expected = "E(28000)",
     .configure = server_prefer,
     .server.refuses_plain = "28000"},
    {.name = "require, refused",
     .script = START,
     .expected = "E(28000)",
     .configure = server_require,
     .is_server_tls = true,
     .server.refuses_tls = "28000"},
};

static void the_clients_link(void **state)
{
    (void)state;
    talk_check(client_talks, sizeof client_talks / sizeof *client_talks);
}

static void the_servers_link(void **state)
{
    (void)state;
    talk_check(server_talks, sizeof server_talks / sizeof *server_talks);
}

/* Whatever allocation fails: the session ends, or goes on; nothing is lost or freed twice. */
static void memory_runs_out_anywhere(void **state)
{
    static const struct talk talks[] = {
        {.script = "gss\nwait\nssl\nwait\n" START "\nwait\nQ select 1",
         .configure = client_verify_full,
         .has_tls = true,
         .is_server_tls = true,
         .certificate = "u"},
        {.script = START "\nQ select 1", .configure = server_allow, .server.refuses_plain = "28000"},
    };
    struct talk_cut whole = {0};
    (void)state;
    for (size_t i = 0; i < sizeof talks / sizeof *talks; i++) {
        bool fails = true;
        for (long n = 0; fails; n++) {
            struct talk_result result;
            talk_run_failing(&talks[i], &whole, n, &result);
            fails = result.met_failure;
            assert_true(fails || result.end == TALK_OPEN);
            talk_result_fini(&result);
        }
    }
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clients_link),
        cmocka_unit_test(the_servers_link),
        cmocka_unit_test(memory_runs_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return talk_main(run);
}
