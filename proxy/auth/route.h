/* route.h - how clients can log in: which row of the table of TLS and authentication a configuration is.
 *
 * It knows what the combinations of the two legs mean for SCRAM and must not know files, hosts or connections. */
#ifndef ROUTE_H
#define ROUTE_H

#include "../admin/conf.h"

#define ROUTE_BYTES 768

/* "shop: clients with or without TLS, server with TLS (verify-full): ...", for one line of [databases] and the mode in
 * which a host of it is reached. */
void route_describe(const struct conf *conf, const char *database, enum conf_sslmode server, char text[ROUTE_BYTES]);

#endif
