/* pair.h - a client's link, its server's link, and the session that decides what passes between them.
 *
 * It moves bytes and events, bounds time and memory, and must not know messages: what bytes mean is the session's. All
 * pairs of a worker share one read buffer and two sinks, so a pair owns memory only for what it cannot pass on. */
#ifndef PAIR_H
#define PAIR_H

#include <stdatomic.h>
#include <uv.h>

#include "../session/session.h"
#include "link.h"
#include "lookup.h"

#define PAIR_BUFFER_BYTES ((size_t)64 * 1024)
/* Clients above max_client_conn that are heard out, so that they read why they are refused; those above are cut off. */
#define PAIR_REFUSED_MAX 64

/* Clients of a worker that are waited for after their last message; those above are closed as soon as it is sent. */
#define PAIR_LINGERING_MAX 256

struct pair;
struct snapshot;
struct upstream;

/* What all workers count together. */
struct pair_counts {
    _Atomic int clients; /* at most max_client_conn */
    _Atomic int refused; /* at most PAIR_REFUSED_MAX */
    _Atomic uint64_t last_id;
};

struct pair_list {
    struct pair *first;
    size_t count;
};

/* What a worker lends to its pairs. */
struct pair_env {
    struct session_env session;
    struct snapshot *snapshot; /* what `session` was filled from; pairs keep it until they have logged in */
    uv_loop_t *loop;
    uint8_t *buffer; /* PAIR_BUFFER_BYTES */
    struct pair_counts *counts;
    struct lookup_queue lookups;
    struct pair_list starting; /* not logged in yet */
    struct pair_list running;
    struct pair_list leaving; /* running, and the client has sent its last */
    struct pair_list closing;
    bool is_draining;                        /* sessions end as soon as they are idle */
    void (*on_change)(struct pair_env *env); /* a list has grown or shrunk */
};

/* Takes over an accepted descriptor, and closes it when there is no room for it. `peer` is copied. */
void pair_accept(struct pair_env *env, int fd, const struct session_peer *peer);

/* To be called about once a second while anything is starting, leaving or closing: time-outs. */
void pair_tick(struct pair_env *env);

/* Ends the sessions that are idle or not logged in; the others end when they become idle. */
void pair_drain(struct pair_env *env);
/* Ends all; those whose clients do not take their last words are cut off after a while. */
void pair_end_all(struct pair_env *env);
/* Cuts all off. */
void pair_kill_all(struct pair_env *env);

#endif
