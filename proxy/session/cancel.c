/* cancel.c - a locked hash map from cancel keys to servers. */
#include "cancel.h"

#include <pthread.h>
#include <string.h>

#include "../admin/conf.h"

#define SLOTS 4096 /* a power of two */

struct entry {
    struct entry *next;
    struct cancel_route route;
    size_t key_len;
    uint8_t key[];
};

struct cancel_map {
    pthread_mutex_t lock;
    struct entry *slots[SLOTS];
};

struct cancel_map *cancel_map_new(void)
{
    struct cancel_map *map = mem_zalloc(sizeof *map);
    if (map && pthread_mutex_init(&map->lock, NULL) != 0) {
        mem_free(map);
        return NULL;
    }
    return map;
}

static void entry_free(struct entry *entry)
{
    if (!entry)
        return;
    conf_unref(entry->route.conf);
    mem_free(entry);
}

void cancel_map_free(struct cancel_map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < SLOTS; i++) {
        while (map->slots[i]) {
            struct entry *entry = map->slots[i];
            map->slots[i] = entry->next;
            entry_free(entry);
        }
    }
    pthread_mutex_destroy(&map->lock);
    mem_free(map);
}

/* Keys are compared without an early end: how much of a guess was right must not show in the time. */
static bool same_key(const struct entry *entry, struct span key)
{
    if (entry->key_len != key.len)
        return false;
    uint8_t difference = 0;
    for (size_t i = 0; i < key.len; i++)
        difference |= (uint8_t)(entry->key[i] ^ key.ptr[i]);
    return difference == 0;
}

/* The process id, which is no secret, chooses the slot. */
static struct entry **find(struct cancel_map *map, struct span key)
{
    uint32_t pid = key.len >= 4 ? get_u32(key.ptr) : 0;
    struct entry **at = &map->slots[(pid * 2654435761u >> 12) & (SLOTS - 1)];
    while (*at && !same_key(*at, key))
        at = &(*at)->next;
    return at;
}

void cancel_map_add(struct cancel_map *map, struct span key, const struct cancel_route *route)
{
    struct entry *entry = map ? mem_zalloc(sizeof *entry + key.len) : NULL;
    if (!entry)
        return;
    entry->route = *route;
    conf_ref(route->conf);
    entry->key_len = key.len;
    memcpy(entry->key, key.ptr, key.len);
    pthread_mutex_lock(&map->lock);
    struct entry **at = find(map, key);
    if (*at) { /* a server came back with the key of an old one: the new one counts */
        struct entry *old = *at;
        *at = old->next;
        entry_free(old);
        at = find(map, key);
    }
    *at = entry;
    pthread_mutex_unlock(&map->lock);
}

void cancel_map_remove(struct cancel_map *map, struct span key)
{
    if (!map || key.len == 0)
        return;
    pthread_mutex_lock(&map->lock);
    struct entry **at = find(map, key);
    struct entry *entry = *at;
    if (entry)
        *at = entry->next;
    pthread_mutex_unlock(&map->lock);
    entry_free(entry);
}

bool cancel_map_find(struct cancel_map *map, struct span key, struct cancel_route *route)
{
    if (!map)
        return false;
    pthread_mutex_lock(&map->lock);
    const struct entry *entry = *find(map, key);
    if (entry) {
        *route = entry->route;
        conf_ref(route->conf);
    }
    pthread_mutex_unlock(&map->lock);
    return entry != NULL;
}
