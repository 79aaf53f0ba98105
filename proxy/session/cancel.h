/* cancel.h - which server made which cancel key: shared by all workers.
 *
 * A cancel request comes on a connection of its own and names a session only by the key that the server gave it; with
 * several servers behind the proxy the key alone tells where to go. It must not know sessions; every function may be
 * called from any thread. */
#ifndef CANCEL_H
#define CANCEL_H

#include "../protocol/bytes.h"

struct cancel_map;

struct cancel_map *cancel_map_new(void);
void cancel_map_free(struct cancel_map *map);

/* Notes a key (process id and secret, as in BackendKeyData). A map that is NULL, or memory that runs out, only means
 * that the request goes nowhere. `database` is the name of the [databases] line; `is_tls`: the server was reached with
 * TLS. */
void cancel_map_add(struct cancel_map *map, struct span key, const char *database, int host_index, bool is_tls);
void cancel_map_remove(struct cancel_map *map, struct span key);
/* Copies the line's name to name[size]. False when the key is unknown. */
bool cancel_map_find(struct cancel_map *map, struct span key, char *name, size_t size, int *host_index,
                     bool *is_tls) MUST_USE;

#endif
