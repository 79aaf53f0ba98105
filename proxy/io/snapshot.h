/* snapshot.h - what a reload replaces as one: the settings, and all that is made of the files they name.
 *
 * It counts references and must not know who holds it. Workers keep the one that they serve; a failed reload leaves it
 * in force. */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include <stdatomic.h>
#include <stdio.h>

#include "../protocol/bytes.h"

struct conf;
struct conf_database;
struct credentials;
struct keyring;
struct tls_context;

struct snapshot {
    _Atomic int refs;
    struct conf *conf;
    struct keyring *keyring;
    struct credentials *credentials;
    struct tls_context *client_tls;  /* NULL: clients are answered "no" */
    struct tls_context **server_tls; /* one for each line of [databases]: see snapshot_tls() */
};

/* Takes the settings over (also on failure: they are released then) and loads everything that they name: the keys of
 * cursors, certificates and keys of TLS, rules and secrets of log-ins. Without a key file it makes one that dies with
 * the process, or keeps the one that `old` (may be NULL) has made. NULL after writing a line to `complaints` for each
 * fault: a start, a reload and a mere check find the same ones. */
struct snapshot *snapshot_new(struct conf *conf, const struct snapshot *old, FILE *complaints) MUST_USE;
struct snapshot *snapshot_ref(struct snapshot *snapshot);
void snapshot_unref(struct snapshot *snapshot);

/* Logs what an operator should know of it: which key seals, which ways to servers are not protected, until when
 * revocation lists are good, and how clients can log in. */
void snapshot_announce(const struct snapshot *snapshot, const struct snapshot *old);

/* What connections to the servers of this line are made from; NULL when none of them has TLS. For a line of other
 * settings than snapshot->conf it is what the line of that name is now. */
struct tls_context *snapshot_tls(const struct snapshot *snapshot, const struct conf_database *database);

#endif
