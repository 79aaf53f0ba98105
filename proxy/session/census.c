/* census.c - a locked hash map from names to numbers of clients. */
#include "census.h"

#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#define SLOTS 1024 /* a power of two */

struct census_entry {
    struct census_entry *next;
    size_t slot;
    int clients;
    uint8_t kind; /* enum census_kind */
    char name[];
};

struct census {
    pthread_mutex_t lock;
    uint64_t seed;
    struct census_entry *slots[SLOTS];
};

struct census *census_new(void)
{
    struct census *census = mem_zalloc(sizeof *census);
    if (!census)
        return NULL;
    if (getrandom(&census->seed, sizeof census->seed, 0) == (ssize_t)sizeof census->seed &&
        pthread_mutex_init(&census->lock, NULL) == 0)
        return census;
    mem_free(census);
    return NULL;
}

void census_free(struct census *census)
{
    if (!census)
        return;
    for (size_t i = 0; i < SLOTS; i++) {
        while (census->slots[i]) {
            struct census_entry *entry = census->slots[i];
            census->slots[i] = entry->next;
            mem_free(entry);
        }
    }
    pthread_mutex_destroy(&census->lock);
    mem_free(census);
}

/* FNV-1a, begun at the seed. */
static size_t slot_of(const struct census *census, enum census_kind kind, const char *name)
{
    uint64_t hash = census->seed ^ (uint64_t)kind;
    for (const char *at = name; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 1099511628211u;
    return (size_t)(hash >> 32) & (SLOTS - 1);
}

static struct census_entry *find(const struct census *census, size_t slot, enum census_kind kind, const char *name)
{
    struct census_entry *entry = census->slots[slot];
    while (entry && (entry->kind != kind || strcmp(entry->name, name) != 0))
        entry = entry->next;
    return entry;
}

static struct census_entry *add(struct census *census, size_t slot, enum census_kind kind, const char *name)
{
    size_t len = strlen(name);
    struct census_entry *entry = mem_zalloc(sizeof *entry + len + 1);
    if (!entry)
        return NULL;
    memcpy(entry->name, name, len);
    entry->kind = (uint8_t)kind;
    entry->slot = slot;
    entry->next = census->slots[slot];
    census->slots[slot] = entry;
    return entry;
}

struct census_entry *census_enter(struct census *census, enum census_kind kind, const char *name, int max,
                                  bool *is_out_of_memory)
{
    size_t slot = slot_of(census, kind, name);
    pthread_mutex_lock(&census->lock);
    struct census_entry *entry = find(census, slot, kind, name);
    bool is_full = entry && max > 0 && entry->clients >= max;
    if (!entry)
        entry = add(census, slot, kind, name);
    if (entry && !is_full)
        entry->clients++;
    pthread_mutex_unlock(&census->lock);
    *is_out_of_memory = !entry;
    return is_full ? NULL : entry;
}

void census_leave(struct census *census, struct census_entry *entry)
{
    if (!entry)
        return;
    pthread_mutex_lock(&census->lock);
    bool is_last = --entry->clients == 0;
    if (is_last) {
        struct census_entry **at = &census->slots[entry->slot];
        while (*at != entry)
            at = &(*at)->next;
        *at = entry->next;
    }
    pthread_mutex_unlock(&census->lock);
    if (is_last)
        mem_free(entry);
}
