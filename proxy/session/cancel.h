/* cancel.h - which server made which cancel key: shared by all workers.
 *
 * A cancel request comes on a connection of its own and names a session only by the key that the server gave it; with
 * several servers behind the proxy the key alone tells where to go. It must not know sessions; every function may be
 * called from any thread. */
#ifndef CANCEL_H
#define CANCEL_H

#include "../protocol/address.h"
#include "../protocol/bytes.h"

struct cancel_map;
struct conf;
struct conf_database;

/* Where a session is, and how it got there. */
struct cancel_route {
    struct conf *conf;                    /* its settings, counted ... */
    const struct conf_database *database; /* ... and its line of them */
    int host_index;
    struct server_address address; /* a name may stand for other machines the next time */
    bool is_tls;
};

struct cancel_map *cancel_map_new(void);
void cancel_map_free(struct cancel_map *map);

/* Notes a key (process id and secret, as in BackendKeyData); the route is copied, with a reference of its own to the
 * settings. A map that is NULL, or memory that runs out, only means that the request goes nowhere. */
void cancel_map_add(struct cancel_map *map, struct span key, const struct cancel_route *route);
void cancel_map_remove(struct cancel_map *map, struct span key);
/* The reference to the settings is the caller's. False when the key is unknown. */
bool cancel_map_find(struct cancel_map *map, struct span key, struct cancel_route *route) MUST_USE;

#endif
