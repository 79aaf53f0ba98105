/* keyring.h - the secret keys behind cursors: the first one seals, all of them open.
 *
 * It knows the key file and how sub-keys are derived, and must not know what a token looks like. A keyring never
 * changes once made, is shared by all threads and counted by references; a reload makes a new one. */
#ifndef KEYRING_H
#define KEYRING_H

#include "../../parser/pgseek.h"
#include "../protocol/bytes.h"
#include "cursor_seal.h"

#define KEYRING_MAX_KEYS 64
#define KEYRING_ID 4      /* bytes of a key's id, which stands in every token */
#define KEYRING_SECRET 32 /* bytes of a key */

/* One key, as its users see it. Each use has a sub-key of its own, so that no key serves two algorithms. */
struct keyring_key {
    uint8_t id[KEYRING_ID];
    struct seal_key seal;
};

struct keyring;

/* Loads a key file; NULL with a sentence in *error (message) when it cannot be used: missing, readable by others,
 * malformed, two keys of one id. */
struct keyring *keyring_load(const char *path, struct pgseek_error *error) MUST_USE;
/* One random key that dies with the process. NULL when randomness or memory is missing. */
struct keyring *keyring_ephemeral(void) MUST_USE;
struct keyring *keyring_ref(struct keyring *keyring);
/* Drops one reference; the last one wipes and releases the keys. NULL is allowed. */
void keyring_free(struct keyring *keyring);

size_t keyring_count(const struct keyring *keyring);
const struct keyring_key *keyring_first(const struct keyring *keyring);
/* For what is no cursor and must be the same wherever the key file is, and after every restart: derived from the last
 * key, which can stay for ever while those in front of it are rotated. */
const uint8_t *keyring_common(const struct keyring *keyring);
/* NULL when there is none of that id. */
const struct keyring_key *keyring_find(const struct keyring *keyring, const uint8_t id[KEYRING_ID]);

/* Puts a fresh key in front of a file's keys, or makes the file with mode 0600. The file is replaced in one step and
 * keeps its owner, mode and comments. False with *error. */
bool keyring_generate(const char *path, struct pgseek_error *error) MUST_USE;

#endif
