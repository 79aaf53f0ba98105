/* names.h - a map from names to counted objects: a session's prepared statements, or its portals.
 *
 * It holds one reference to each object and must not know what the objects are. Only names that matter to us are in it;
 * an absent name is a statement or portal that passes untouched. */
#ifndef NAMES_H
#define NAMES_H

#include "../protocol/bytes.h"

/* The head of every object that can stand in a map. */
struct object {
    int refs;
    void (*free)(struct object *object);
};

struct object *object_ref(struct object *object); /* NULL-safe */
void object_unref(struct object *object);         /* NULL-safe */

struct name_entry;
struct names {
    struct name_entry **slots;
    size_t nslots; /* a power of two, or 0 */
    size_t count;
};

void names_fini(struct names *names);
/* Borrowed; NULL when the name is not there. */
struct object *names_get(const struct names *names, struct span name);
/* Puts an object (its reference passes to the map), or removes the name when object is NULL. The reference that the map
 * held before passes to *before, unless before is NULL. False when memory ran out: nothing changed, and the reference
 * stays with the caller. */
bool names_put(struct names *names, struct span name, struct object *object, struct object **before) MUST_USE;
/* Calls fn for every entry; fn must not change the map. */
typedef void names_fn(void *arg, struct span name, struct object *object);
void names_each(const struct names *names, names_fn *fn, void *arg);
void names_clear(struct names *names);

#endif
