/* test_route.c - every row of the table, word by word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/auth/route.h"

struct row {
    enum conf_sslmode client, server;
    enum conf_auth_type auth;
    const char *text;
};

static const struct row rows[] = {
    {CONF_SSL_DISABLE, CONF_SSL_DISABLE, CONF_AUTH_RELAY,
     "shop: clients without TLS, server without TLS: every method is relayed; no channel can be bound"},
    {CONF_SSL_DISABLE, CONF_SSL_VERIFY_FULL, CONF_AUTH_RELAY,
     "shop: clients without TLS, server with TLS (verify-full): every method is relayed; SCRAM without channel "
     "binding, "
     "which is taken out of the server's offer"},
    {CONF_SSL_DISABLE, CONF_SSL_PREFER, CONF_AUTH_RELAY,
     "shop: clients without TLS, server with or without TLS (prefer): every method is relayed; SCRAM without channel "
     "binding, which is taken out of the server's offer"},
    {CONF_SSL_REQUIRE, CONF_SSL_DISABLE, CONF_AUTH_RELAY,
     "shop: clients with TLS, server without TLS: every method is relayed; channel_binding=require cannot work"},
    {CONF_SSL_ALLOW, CONF_SSL_DISABLE, CONF_AUTH_RELAY,
     "shop: clients with or without TLS, server without TLS: every method is relayed; channel_binding=require cannot "
     "work"},
    {CONF_SSL_PREFER, CONF_SSL_VERIFY_CA, CONF_AUTH_RELAY,
     "shop: clients with or without TLS, server with TLS (verify-ca): every method is relayed; over TLS on both sides "
     "SCRAM works for clients that do not bind the channel: libpq needs channel_binding=disable, unless the proxy has "
     "the server's own certificate and key"},
    {CONF_SSL_VERIFY_FULL, CONF_SSL_ALLOW, CONF_AUTH_RELAY,
     "shop: clients with TLS, server with or without TLS (allow): every method is relayed; over TLS on both sides "
     "SCRAM "
     "works for clients that do not bind the channel: libpq needs channel_binding=disable, unless the proxy has the "
     "server's own certificate and key"},
    {CONF_SSL_DISABLE, CONF_SSL_DISABLE, CONF_AUTH_SCRAM,
     "shop: clients without TLS, server without TLS: SCRAM is verified here, and the server is asked with the client's "
     "key; no channel is bound"},
    {CONF_SSL_DISABLE, CONF_SSL_REQUIRE, CONF_AUTH_SCRAM,
     "shop: clients without TLS, server with TLS (require): SCRAM is verified here, unbound, and the server is asked "
     "with the client's key, bound to its certificate"},
    {CONF_SSL_VERIFY_CA, CONF_SSL_DISABLE, CONF_AUTH_SCRAM,
     "shop: clients with TLS, server without TLS: SCRAM is verified here, bound to the proxy's certificate where the "
     "client binds, and the server is asked with the client's key"},
    {CONF_SSL_REQUIRE, CONF_SSL_VERIFY_FULL, CONF_AUTH_SCRAM,
     "shop: clients with TLS, server with TLS (verify-full): SCRAM is verified here, bound to the proxy's certificate "
     "where the client binds, and the server is asked with the client's key, bound to its own"},
    {CONF_SSL_DISABLE, CONF_SSL_DISABLE, CONF_AUTH_HBA,
     "shop: clients without TLS, server without TLS: auth_hba_file decides. With relay, every method is relayed; no "
     "channel can be bound. With scram-sha-256, SCRAM is verified here, and the server is asked with the client's key; "
     "no channel is bound"},
};

static void each_row_says_what_it_allows(void **state)
{
    char text[ROUTE_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct conf conf = {.client_tls = {.sslmode = rows[i].client}, .auth_type = rows[i].auth};
        route_describe(&conf, "shop", rows[i].server, text);
        assert_string_equal(text, rows[i].text);
    }
}

/* Whatever the modes are, the sentence is whole. */
static void no_row_is_cut_off(void **state)
{
    char text[ROUTE_BYTES];
    char name[200];
    (void)state;
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    for (unsigned client = CONF_SSL_DISABLE; client <= CONF_SSL_VERIFY_FULL; client++)
        for (unsigned server = CONF_SSL_DISABLE; server <= CONF_SSL_INHERIT; server++) {
            struct conf conf = {.client_tls = {.sslmode = (enum conf_sslmode)client}, .auth_type = CONF_AUTH_HBA};
            route_describe(&conf, name, (enum conf_sslmode)server, text);
            assert_true(strlen(text) < ROUTE_BYTES - 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_says_what_it_allows),
        cmocka_unit_test(no_row_is_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
