/* pending.c - a growing ring of expected replies. */
#include "pending.h"

#define PENDING_SMALL 16

bool pending_ends_group(enum pending_kind kind)
{
    return kind == PENDING_SYNC || kind == PENDING_QUERY || kind == PENDING_FUNCTION || kind == PENDING_STARTUP;
}

void pending_fini(struct pending_queue *queue)
{
    mem_free(queue->ring);
    *queue = (struct pending_queue){0};
}

struct pending *pending_at(const struct pending_queue *queue, uint32_t i)
{
    return &queue->ring[(queue->first + i) & (queue->cap - 1)];
}

struct pending *pending_head(const struct pending_queue *queue)
{
    return queue->count ? pending_at(queue, 0) : NULL;
}

static bool grow(struct pending_queue *queue)
{
    uint32_t cap = queue->cap ? queue->cap * 2 : PENDING_SMALL;
    struct pending *ring = mem_alloc(cap * sizeof *ring);
    if (!ring)
        return false;
    for (uint32_t i = 0; i < queue->count; i++)
        ring[i] = *pending_at(queue, i);
    mem_free(queue->ring);
    queue->ring = ring;
    queue->cap = cap;
    queue->first = 0;
    return true;
}

struct pending *pending_push(struct pending_queue *queue, enum pending_kind kind, enum pending_role role)
{
    if (queue->count == queue->cap && !grow(queue))
        return NULL;
    struct pending *entry = pending_at(queue, queue->count++);
    *entry = (struct pending){.kind = (uint8_t)kind, .role = (uint8_t)role};
    queue->readies += pending_ends_group(kind);
    return entry;
}

void pending_pop(struct pending_queue *queue)
{
    queue->readies -= pending_ends_group(pending_at(queue, 0)->kind);
    queue->first = (queue->first + 1) & (queue->cap - 1);
    queue->count--;
}

void pending_remove(struct pending_queue *queue, uint32_t i)
{
    queue->readies -= pending_ends_group(pending_at(queue, i)->kind);
    for (; i + 1 < queue->count; i++)
        *pending_at(queue, i) = *pending_at(queue, i + 1);
    queue->count--;
}

void pending_shrink(struct pending_queue *queue)
{
    if (queue->count == 0 && queue->cap > PENDING_SMALL)
        pending_fini(queue);
}
