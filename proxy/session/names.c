/* names.c - a chained hash map from names to counted objects. */
#include "names.h"

#include <string.h>

struct name_entry {
    struct name_entry *next;
    struct object *object;
    size_t len;
    uint8_t name[];
};

struct object *object_ref(struct object *object)
{
    if (object)
        object->refs++;
    return object;
}

void object_unref(struct object *object)
{
    if (object && --object->refs == 0)
        object->free(object);
}

static struct name_entry **find(const struct names *names, struct span name)
{
    struct name_entry **at = &names->slots[span_hash(name) & (names->nslots - 1)];
    while (*at && !span_equal(span_of((*at)->name, (*at)->len), name))
        at = &(*at)->next;
    return at;
}

struct object *names_get(const struct names *names, struct span name)
{
    if (names->count == 0)
        return NULL;
    struct name_entry *entry = *find(names, name);
    return entry ? entry->object : NULL;
}

static bool grow(struct names *names)
{
    if (names->count < names->nslots)
        return true;
    struct names bigger = {.nslots = names->nslots ? names->nslots * 2 : 8};
    bigger.slots = mem_zalloc(bigger.nslots * sizeof(struct name_entry *));
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < names->nslots; i++) {
        for (struct name_entry *entry = names->slots[i], *next; entry; entry = next) {
            next = entry->next;
            struct name_entry **at = find(&bigger, span_of(entry->name, entry->len));
            entry->next = NULL;
            *at = entry;
        }
    }
    mem_free(names->slots);
    names->slots = bigger.slots;
    names->nslots = bigger.nslots;
    return true;
}

static struct object *take_out(struct names *names, struct name_entry **at)
{
    struct name_entry *entry = *at;
    struct object *object = entry->object;
    *at = entry->next;
    mem_free(entry);
    names->count--;
    return object;
}

static void hand_over(struct object *object, struct object **before)
{
    if (before)
        *before = object;
    else
        object_unref(object);
}

bool names_put(struct names *names, struct span name, struct object *object, struct object **before)
{
    if (before)
        *before = NULL;
    struct name_entry **at = names->nslots ? find(names, name) : NULL;
    if (at && *at) {
        struct object *old = (*at)->object;
        if (object)
            (*at)->object = object;
        else
            old = take_out(names, at);
        hand_over(old, before);
        return true;
    }
    if (!object)
        return true;
    struct name_entry *entry = grow(names) ? mem_alloc(sizeof *entry + name.len) : NULL;
    if (!entry)
        return false;
    entry->next = NULL;
    entry->object = object;
    entry->len = name.len;
    if (name.len)
        memcpy(entry->name, name.ptr, name.len);
    *find(names, name) = entry;
    names->count++;
    return true;
}

void names_each(const struct names *names, names_fn *fn, void *arg)
{
    for (size_t i = 0; i < names->nslots; i++)
        for (struct name_entry *entry = names->slots[i]; entry; entry = entry->next)
            fn(arg, span_of(entry->name, entry->len), entry->object);
}

void names_clear(struct names *names)
{
    for (size_t i = 0; i < names->nslots; i++)
        while (names->slots[i])
            object_unref(take_out(names, &names->slots[i]));
}

void names_fini(struct names *names)
{
    names_clear(names);
    mem_free(names->slots);
    *names = (struct names){0};
}
