/* route.c - the table of rows, and the sentence around one. */
#include "route.h"

#include <stdio.h>
#include <string.h>

/* [the proxy verifies][client leg may have TLS][server leg may have TLS] */
static const char *const route_rows[2][2][2] = {
    {{"every method is relayed; no channel can be bound",
      "every method is relayed; SCRAM without channel binding, which is taken out of the server's offer"},
     {"every method is relayed; channel_binding=require cannot work",
      "every method is relayed; over TLS on both sides SCRAM works for clients that do not bind the channel: libpq "
      "needs "
      "channel_binding=disable, unless the proxy has the server's own certificate and key"}},
    {{"SCRAM is verified here, and the server is asked with the client's key; no channel is bound",
      "SCRAM is verified here, unbound, and the server is asked with the client's key, bound to its certificate"},
     {"SCRAM is verified here, bound to the proxy's certificate where the client binds, and the server is asked with "
      "the client's key",
      "SCRAM is verified here, bound to the proxy's certificate where the client binds, and the server is asked with "
      "the client's key, bound to its own"}},
};

static bool route_may_have_tls(enum conf_sslmode mode)
{
    return mode != CONF_SSL_DISABLE;
}

static const char *const route_clients[] = {
    [CONF_SSL_DISABLE] = "without TLS",        [CONF_SSL_ALLOW] = "with or without TLS",
    [CONF_SSL_PREFER] = "with or without TLS", [CONF_SSL_REQUIRE] = "with TLS",
    [CONF_SSL_VERIFY_CA] = "with TLS",         [CONF_SSL_VERIFY_FULL] = "with TLS",
};

static const char *const route_servers[] = {
    [CONF_SSL_DISABLE] = "without TLS",
    [CONF_SSL_ALLOW] = "with or without TLS (allow)",
    [CONF_SSL_PREFER] = "with or without TLS (prefer)",
    [CONF_SSL_REQUIRE] = "with TLS (require)",
    [CONF_SSL_VERIFY_CA] = "with TLS (verify-ca)",
    [CONF_SSL_VERIFY_FULL] = "with TLS (verify-full)",
};

static const char *route_name(const char *const *names, enum conf_sslmode mode)
{
    return mode <= CONF_SSL_VERIFY_FULL ? names[mode] : names[CONF_SSL_VERIFY_FULL];
}

void route_describe(const struct conf *conf, const char *database, enum conf_sslmode server, char text[ROUTE_BYTES])
{
    enum conf_sslmode client = conf->client_tls.sslmode;
    const char *relayed = route_rows[0][route_may_have_tls(client)][route_may_have_tls(server)];
    const char *verified = route_rows[1][route_may_have_tls(client)][route_may_have_tls(server)];
    int len = snprintf(text, ROUTE_BYTES, "%.64s: clients %s, server %s: ", database, route_name(route_clients, client),
                       route_name(route_servers, server));
    size_t room = ROUTE_BYTES - (size_t)len;
    switch (conf->auth_type) {
    case CONF_AUTH_RELAY: snprintf(text + len, room, "%s", relayed); return;
    case CONF_AUTH_SCRAM: snprintf(text + len, room, "%s", verified); return;
    case CONF_AUTH_HBA:
        snprintf(text + len, room, "auth_hba_file decides. With relay, %s. With scram-sha-256, %s", relayed, verified);
        return;
    }
}
