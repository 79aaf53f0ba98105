/* census.h - how many clients each database and each user has: shared by all workers.
 *
 * It knows names and numbers and must not know sessions or what a limit is for; every function may be called from any
 * thread. Names come from strangers, so the map's hash has a secret seed, and a name that nobody bears any more is
 * forgotten. */
#ifndef CENSUS_H
#define CENSUS_H

#include "../protocol/bytes.h"

enum census_kind { CENSUS_DATABASE, CENSUS_USER };

struct census;
struct census_entry;

/* NULL when out of memory or randomness. */
struct census *census_new(void);
void census_free(struct census *census);

/* Counts one more client under a name, if there are fewer than `max` (0: no limit) by now. What to give back with
 * census_leave(), or NULL: there are too many, or *is_out_of_memory. */
struct census_entry *census_enter(struct census *census, enum census_kind kind, const char *name, int max,
                                  bool *is_out_of_memory) MUST_USE;
void census_leave(struct census *census, struct census_entry *entry);

#endif
