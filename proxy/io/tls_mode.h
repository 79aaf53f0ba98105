/* tls_mode.h - how the server at a host is to be reached: without TLS, with it, or verified.
 *
 * It reads settings and must not know certificates or connections. */
#ifndef TLS_MODE_H
#define TLS_MODE_H

#include "../admin/conf.h"

/* Whether a host is on this machine: a Unix socket, a loopback address, or "localhost". */
bool tls_host_is_local(const char *host);
/* How the server at this host of the line is to be reached: CONF_SSL_AUTO is resolved (disable on this machine, else
 * verify-full), Unix sockets are always `disable`. */
enum conf_sslmode tls_mode_for_host(const struct conf *conf, const struct conf_database *database, size_t host);
/* The strictest mode of the line's hosts. They differ in no other way than having no TLS. */
enum conf_sslmode tls_mode_for_line(const struct conf *conf, const struct conf_database *database);

#endif
