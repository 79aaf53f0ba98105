/* routes.c - walks the lines and their hosts. */
#include "routes.h"

#include "../admin/conf.h"
#include "../auth/route.h"
#include "../protocol/bytes.h"
#include "tls_mode.h"

static void routes_tell_line(const struct conf *conf, const struct conf_database *database,
                             void (*tell)(const char *sentence))
{
    unsigned told = 0; /* bits of enum conf_sslmode */
    for (size_t host = 0; host < database->nhosts; host++) {
        char sentence[ROUTE_BYTES];
        enum conf_sslmode mode = tls_mode_for_host(conf, database, host);
        if (told & 1u << mode)
            continue;
        told |= 1u << mode;
        route_describe(conf, database->name, mode, sentence);
        tell(sentence);
    }
}

void routes_tell(const struct conf *conf, void (*tell)(const char *sentence))
{
    for (size_t i = 0; i < conf->ndatabases; i++)
        routes_tell_line(conf, &conf->databases[i], tell);
}
