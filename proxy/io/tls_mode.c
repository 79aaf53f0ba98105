/* tls_mode.c - words of the settings into the mode of one host, or of one line. */
#include "tls_mode.h"

#include <arpa/inet.h>
#include <strings.h>

bool tls_host_is_local(const char *host)
{
    struct in_addr ip4;
    struct in6_addr ip6;
    if (host[0] == '/' || strcasecmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &ip4) == 1)
        return ntohl(ip4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &ip6) != 1)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&ip6) || (IN6_IS_ADDR_V4MAPPED(&ip6) && ip6.s6_addr[12] == 127);
}

enum conf_sslmode tls_mode_for_host(const struct conf *conf, const struct conf_database *database, size_t host)
{
    const char *name = database->hosts[host].host;
    enum conf_sslmode mode = conf_server_leg(conf, database).sslmode;
    if (name[0] == '/')
        return CONF_SSL_DISABLE;
    if (mode != CONF_SSL_AUTO)
        return mode;
    return tls_host_is_local(name) ? CONF_SSL_DISABLE : CONF_SSL_VERIFY_FULL;
}

enum conf_sslmode tls_mode_for_line(const struct conf *conf, const struct conf_database *database)
{
    enum conf_sslmode strictest = CONF_SSL_DISABLE;
    for (size_t i = 0; i < database->nhosts; i++) {
        enum conf_sslmode mode = tls_mode_for_host(conf, database, i);
        if (mode > strictest)
            strictest = mode;
    }
    return strictest;
}
