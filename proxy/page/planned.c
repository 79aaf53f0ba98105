/* planned.c - makes planned statements and keeps the most recently used ones per worker. */
#include "planned.h"

#include <stdlib.h>
#include <string.h>

#include "sorting.h"

/* ---- context ---- */

void context_fini(struct context *context)
{
    for (size_t i = 0; i < PGSEEK_CTX_COUNT; i++)
        mem_free(context->value[i]);
    *context = (struct context){0};
}

bool context_is_known(const struct context *context)
{
    return context->value[0] != NULL;
}

bool context_copy(struct context *to, const struct context *from)
{
    *to = (struct context){0};
    for (size_t i = 0; i < PGSEEK_CTX_COUNT; i++) {
        to->value[i] = from->value[i] ? mem_strndup(from->value[i], strlen(from->value[i])) : NULL;
        if (from->value[i] && !to->value[i]) {
            context_fini(to);
            return false;
        }
    }
    return true;
}

bool context_digest(const struct context *context, struct span a, struct span b, bool is_ascii,
                    uint8_t out[CURSOR_DIGEST])
{
    const struct span chunks[] = {a, b, span_cstr(context->value[PGSEEK_CTX_ENCODING])};
    return cursor_digest(chunks, is_ascii ? 2 : 3, out);
}

/* ---- planned ---- */

struct planned *planned_ref(struct planned *planned)
{
    if (planned)
        planned->refs++;
    return planned;
}

void planned_unref(struct planned *planned)
{
    if (!planned || --planned->refs > 0)
        return;
    while (planned->shapes) {
        struct planned_shape *shape = planned->shapes;
        planned->shapes = shape->next;
        planned_shape_unref(shape);
    }
    pgseek_plan_free(planned->plan);
    pgseek_query_free(planned->query);
    description_fini(&planned->description);
    context_fini(&planned->context);
    free(planned->guard);
    buf_fini(&planned->key);
    mem_free(planned);
}

static bool digest_query(struct planned *planned)
{
    size_t len;
    const uint8_t *contract = pgseek_plan_contract(planned->plan, &len);
    return context_digest(&planned->context, span_of(contract, len), span_of(NULL, 0),
                          pgseek_plan_is_ascii(planned->plan), planned->query_part);
}

static bool finish_plan(struct planned *planned, const char *const *scope, size_t nscope)
{
    planned->guard = pgseek_guard_new(planned->plan, scope, nscope);
    return planned->guard && sorting_digest(planned->plan, &planned->context, planned->sort_part) &&
           digest_query(planned);
}

struct planned *planned_new(const struct plan_source *source, enum pgseek_reason *reason)
{
    struct pgseek_description view = description_view(source->description);
    struct pgseek_plan *plan = pgseek_plan_new(*source->query, source->facts, &view, source->key_option, reason);
    if (!plan && (*reason == PGSEEK_REASON_MORE || *reason == PGSEEK_REASON_NOMEM))
        return NULL;
    struct planned *planned = mem_zalloc(sizeof *planned);
    if (!planned || !context_copy(&planned->context, source->context)) {
        pgseek_plan_free(plan);
        mem_free(planned);
        *reason = PGSEEK_REASON_NOMEM;
        return NULL;
    }
    planned->refs = 1;
    planned->plan = plan;
    planned->reason = plan ? PGSEEK_REASON_NONE : *reason;
    planned->query = *source->query;
    planned->description = *source->description;
    *source->query = NULL;
    *source->description = (struct description){0};
    if (!plan || finish_plan(planned, source->scope, source->nscope))
        return planned;
    planned_unref(planned);
    *reason = PGSEEK_REASON_NOMEM;
    return NULL;
}

/* ---- shapes ---- */

struct planned_shape *planned_shape_ref(struct planned_shape *shape)
{
    if (shape)
        shape->refs++;
    return shape;
}

void planned_shape_unref(struct planned_shape *shape)
{
    if (!shape || --shape->refs > 0)
        return;
    pgseek_shape_free(shape->shape);
    mem_free(shape);
}

static bool same_key(const struct pgseek_shape_key *a, const struct pgseek_shape_key *b)
{
    return a->seek == b->seek && a->null_mask == b->null_mask && a->look_ahead == b->look_ahead &&
           a->keep_offset == b->keep_offset;
}

/* Takes the shape of a key out of the list; without one the list loses what stands behind its last place. */
static struct planned_shape *take_shape(struct planned *planned, const struct pgseek_shape_key *key)
{
    size_t count = 0;
    struct planned_shape **at = &planned->shapes;
    for (; *at; at = &(*at)->next, count++)
        if (same_key(&(*at)->key, key) || count == PLANNED_MAX_SHAPES - 1)
            break;
    struct planned_shape *shape = *at;
    if (!shape)
        return NULL;
    *at = shape->next;
    if (same_key(&shape->key, key))
        return shape;
    shape->is_dropped = true;
    planned_shape_unref(shape);
    return NULL;
}

static struct planned_shape *make_shape(struct planned *planned, const struct pgseek_shape_key *key,
                                        enum pgseek_reason *reason)
{
    struct planned_shape *shape = mem_zalloc(sizeof *shape);
    if (!shape) {
        *reason = PGSEEK_REASON_NOMEM;
        return NULL;
    }
    shape->refs = 1;
    shape->key = *key;
    shape->shape = pgseek_shape_new(planned->plan, key, reason);
    if (shape->shape)
        return shape;
    mem_free(shape);
    return NULL;
}

static void plan_cache_weigh(struct planned *planned);

struct planned_shape *planned_shape(struct planned *planned, const struct pgseek_shape_key *key,
                                    enum pgseek_reason *reason)
{
    struct planned_shape *shape = take_shape(planned, key);
    bool is_new = !shape;
    if (is_new)
        shape = make_shape(planned, key, reason);
    if (!shape)
        return NULL;
    shape->next = planned->shapes;
    planned->shapes = shape;
    planned_shape_ref(shape);
    if (is_new)
        plan_cache_weigh(planned);
    return shape;
}

/* ---- cache ---- */

#define MAX_CACHED_KEY 65536 /* a longer statement is planned anew: it is not what pages look like */

struct plan_cache {
    size_t max, count, nslots;
    size_t max_bytes, bytes;
    struct planned **slots;
    struct planned *newest, *oldest;
};

struct plan_cache *plan_cache_new(size_t max_plans, size_t max_bytes)
{
    struct plan_cache *cache = mem_zalloc(sizeof *cache);
    if (!cache)
        return NULL;
    cache->max = max_plans;
    cache->max_bytes = max_bytes;
    cache->nslots = 16;
    while (cache->nslots < max_plans)
        cache->nslots *= 2;
    cache->slots = mem_zalloc(cache->nslots * sizeof(struct planned *));
    if (!cache->slots) {
        mem_free(cache);
        return NULL;
    }
    return cache;
}

static struct planned **slot_of(struct plan_cache *cache, struct span key)
{
    return &cache->slots[span_hash(key) & (cache->nslots - 1)];
}

static void unlink_age(struct plan_cache *cache, struct planned *planned)
{
    *(planned->newer ? &planned->newer->older : &cache->newest) = planned->older;
    *(planned->older ? &planned->older->newer : &cache->oldest) = planned->newer;
    planned->newer = planned->older = NULL;
}

static void link_newest(struct plan_cache *cache, struct planned *planned)
{
    planned->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = planned;
    cache->newest = planned;
}

void plan_cache_drop(struct plan_cache *cache, struct planned *planned)
{
    if (planned->key.len == 0)
        return;
    for (struct planned **at = slot_of(cache, buf_span(&planned->key)); *at; at = &(*at)->chain) {
        if (*at != planned)
            continue;
        *at = planned->chain;
        planned->chain = NULL;
        unlink_age(cache, planned);
        buf_fini(&planned->key);
        cache->count--;
        cache->bytes -= planned->bytes;
        planned->bytes = 0;
        planned->cache = NULL;
        planned_unref(planned);
        return;
    }
}

static size_t planned_bytes(const struct planned *planned)
{
    size_t bytes = sizeof *planned + planned->key.cap;
    for (const struct planned_shape *shape = planned->shapes; shape; shape = shape->next)
        bytes += sizeof *shape + pgseek_shape_bytes(shape->shape);
    for (size_t i = 0; i < PGSEEK_CTX_COUNT; i++)
        bytes += planned->context.value[i] ? strlen(planned->context.value[i]) : 0;
    bytes += planned->query ? pgseek_query_bytes(planned->query) : 0;
    bytes += planned->plan ? pgseek_plan_bytes(planned->plan) : 0;
    bytes += planned->guard ? strlen(planned->guard) : 0;
    return bytes + planned->description.nparams * sizeof *planned->description.param_oids +
           planned->description.ncolumns * sizeof *planned->description.columns;
}

/* What it holds now, in the sum. It may be dropped for that, so whoever calls needs a reference of his own. */
static void plan_cache_weigh(struct planned *planned)
{
    struct plan_cache *cache = planned->cache;
    if (!cache)
        return;
    size_t bytes = planned_bytes(planned);
    cache->bytes += bytes - planned->bytes;
    planned->bytes = bytes;
    while (cache->bytes > cache->max_bytes)
        plan_cache_drop(cache, cache->oldest);
}

void plan_cache_free(struct plan_cache *cache)
{
    if (!cache)
        return;
    while (cache->oldest)
        plan_cache_drop(cache, cache->oldest);
    mem_free(cache->slots);
    mem_free(cache);
}

void plan_cache_key(struct buf *out, const struct context *context, const char *key_option, const uint32_t *oids,
                    size_t noids, struct span sql)
{
    buf_clear(out);
    for (size_t i = 0; i < PGSEEK_CTX_COUNT; i++)
        buf_put_cstr(out, context->value[i] ? context->value[i] : "");
    buf_put_cstr(out, key_option ? key_option : "");
    buf_put_u32(out, (uint32_t)noids);
    for (size_t i = 0; i < noids; i++)
        buf_put_u32(out, oids[i]);
    buf_put_span(out, sql);
}

static struct planned *find(struct plan_cache *cache, struct span key)
{
    for (struct planned *at = *slot_of(cache, key); at; at = at->chain)
        if (span_equal(buf_span(&at->key), key))
            return at;
    return NULL;
}

struct planned *plan_cache_find(struct plan_cache *cache, struct span key)
{
    struct planned *planned = find(cache, key);
    if (!planned)
        return NULL;
    unlink_age(cache, planned);
    link_newest(cache, planned);
    return planned_ref(planned);
}

void plan_cache_put(struct plan_cache *cache, struct planned *planned, struct span key)
{
    struct planned *old = find(cache, key);
    if (old)
        plan_cache_drop(cache, old);
    if (cache->max == 0 || planned->key.len || key.len > MAX_CACHED_KEY)
        return;
    buf_put_span(&planned->key, key);
    if (planned->key.failed) {
        buf_fini(&planned->key);
        return;
    }
    if (cache->count == cache->max)
        plan_cache_drop(cache, cache->oldest);
    struct planned **slot = slot_of(cache, key);
    planned->chain = *slot;
    *slot = planned_ref(planned);
    link_newest(cache, planned);
    cache->count++;
    planned->cache = cache;
    plan_cache_weigh(planned);
}
