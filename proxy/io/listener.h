/* listener.h - the sockets that clients come to: bound all at once at start, handed to the workers.
 *
 * It knows addresses and must not know workers or sessions. Every worker has a socket of its own for each TCP address
 * (SO_REUSEPORT: the kernel spreads the clients); the Unix socket is one, and all workers accept from it. */
#ifndef LISTENER_H
#define LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "../protocol/address.h"

struct conf;

#define LISTENER_SHARED (-1)
#define LISTENER_NAME_BYTES 128

struct listener {
    int fd;
    int worker; /* whose it is, from 0, or LISTENER_SHARED */
    bool is_unix;
    dev_t device; /* of the Unix socket's file, to remove only what we made */
    ino_t inode;
    char name[LISTENER_NAME_BYTES]; /* "127.0.0.1:6432", "/run/postgresql/.s.PGSQL.6432" */
};

struct listener_set {
    struct listener *listeners;
    size_t count;
};

/* Binds and listens on everything that the settings name, and logs each address. False, with the reason in the log and
 * nothing left open, when an address cannot be had or there is none at all. A missing directory of the Unix socket is
 * only a warning. */
bool listener_open_all(struct listener_set *set, const struct conf *conf) MUST_USE;
/* Closes, and removes the Unix socket's file if it is still ours. */
void listener_close_all(struct listener_set *set);

/* Refuses all who come from now on, at once; the descriptor stays open. Idempotent. */
void listener_stop(const struct listener *listener);

/* Where a client comes from, and which of our addresses it has reached. */
struct listener_peer {
    char name[LISTENER_NAME_BYTES]; /* "127.0.0.1:53211", "unix" */
    struct address from, to;
};

/* One waiting client's descriptor (non-blocking), or a negative errno: -EAGAIN when none waits, that or -EINVAL behind
 * listener_stop(). */
int listener_accept(const struct listener *listener, struct listener_peer *peer) MUST_USE;

#endif
