/* planned.c - makes planned statements and keeps the most recently used ones per worker. */
#include "planned.h"

#include <stdlib.h>
#include <string.h>

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
        struct planned_shape *entry = planned->shapes;
        planned->shapes = entry->next;
        pgseek_shape_free(entry->shape);
        mem_free(entry);
    }
    pgseek_plan_free(planned->plan);
    pgseek_query_free(planned->query);
    description_fini(&planned->description);
    context_fini(&planned->context);
    free(planned->guard);
    buf_fini(&planned->key);
    mem_free(planned);
}

/* The part of the contract that says in which order the keys stand. */
static bool digest_sort(struct planned *planned)
{
    struct buf text = {0};
    bool has_text = false;
    for (size_t i = 0; i < pgseek_plan_key_count(planned->plan); i++) {
        const struct pgseek_key *key = pgseek_plan_key(planned->plan, i);
        has_text |= key->is_text;
        buf_put_format(&text, "%s %d%d%d %s\n", key->type_name, key->descending, key->nulls_first, key->nullable,
                       key->identity ? key->identity : "");
    }
    if (has_text)
        buf_put_text(&text, planned->context.value[PGSEEK_CTX_ENCODING]);
    if (pgseek_plan_depends_on_settings(planned->plan))
        buf_put_format(&text, "\n%s", planned->context.value[PGSEEK_CTX_LOCALE]);
    struct span whole = buf_span(&text);
    bool ok = !text.failed && cursor_digest(&whole, 1, planned->sort_part);
    buf_fini(&text);
    return ok;
}

static bool digest_query(struct planned *planned)
{
    size_t len;
    const uint8_t *contract = pgseek_plan_contract(planned->plan, &len);
    struct span whole = span_of(contract, len);
    return cursor_digest(&whole, 1, planned->query_part);
}

static bool finish_plan(struct planned *planned, const char *const *scope, size_t nscope)
{
    planned->guard = pgseek_guard_new(planned->plan, scope, nscope);
    return planned->guard && digest_sort(planned) && digest_query(planned);
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

static bool same_key(const struct pgseek_shape_key *a, const struct pgseek_shape_key *b)
{
    return a->seek == b->seek && a->null_mask == b->null_mask && a->look_ahead == b->look_ahead &&
           a->keep_offset == b->keep_offset;
}

const struct pgseek_shape *planned_shape(struct planned *planned, const struct pgseek_shape_key *key,
                                         enum pgseek_reason *reason)
{
    for (struct planned_shape *entry = planned->shapes; entry; entry = entry->next)
        if (same_key(&entry->key, key))
            return entry->shape;
    struct planned_shape *entry = mem_zalloc(sizeof *entry);
    if (!entry) {
        *reason = PGSEEK_REASON_NOMEM;
        return NULL;
    }
    entry->key = *key;
    entry->shape = pgseek_shape_new(planned->plan, key, reason);
    if (!entry->shape) {
        mem_free(entry);
        return NULL;
    }
    entry->next = planned->shapes;
    planned->shapes = entry;
    return entry->shape;
}

/* ---- cache ---- */

#define MAX_CACHED_KEY 65536 /* a longer statement is planned anew: it is not what pages look like */

struct plan_cache {
    size_t max, count, nslots;
    struct planned **slots;
    struct planned *newest, *oldest;
};

struct plan_cache *plan_cache_new(size_t max_plans)
{
    struct plan_cache *cache = mem_zalloc(sizeof *cache);
    if (!cache)
        return NULL;
    cache->max = max_plans;
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
        planned_unref(planned);
        return;
    }
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
}
