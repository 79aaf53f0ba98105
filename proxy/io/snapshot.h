/* snapshot.h - what a reload replaces as one: the settings and the keys that cursors are sealed with.
 *
 * It counts references and must not know who holds it. Workers keep the one that they serve; a failed reload leaves it
 * in force. */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include <stdatomic.h>

#include "../protocol/bytes.h"

struct conf;
struct keyring;

struct snapshot {
    _Atomic int refs;
    struct conf *conf;
    struct keyring *keyring;
};

/* Takes the settings over (also on failure: they are released then) and loads the keys they name. Without a key file it
 * makes one that dies with the process, or keeps the one that `old` (may be NULL) has made. NULL after
 * logging why. */
struct snapshot *snapshot_new(struct conf *conf, const struct snapshot *old) MUST_USE;
struct snapshot *snapshot_ref(struct snapshot *snapshot);
void snapshot_unref(struct snapshot *snapshot);

#endif
