/* planned.h - one statement's plan with all that is made from it once, and the worker's cache of them.
 *
 * A planned statement holds under one context (database, role, search_path, encoding ...) and one list of declared
 * types; it must not know sessions. It is counted by references and belongs to one worker. */
#ifndef PLANNED_H
#define PLANNED_H

#include "cursor.h"
#include "description.h"

/* What the session's own server says of itself; owned texts, all set or all NULL. */
struct context {
    char *value[PGSEEK_CTX_COUNT];
};
void context_fini(struct context *context);
bool context_is_known(const struct context *context);
bool context_copy(struct context *to, const struct context *from) MUST_USE;
/* Digests two chunks in the client's encoding. Where they are not ASCII the encoding is digested too: the same bytes
 * are other characters in another one. */
bool context_digest(const struct context *context, struct span a, struct span b, bool is_ascii,
                    uint8_t out[CURSOR_DIGEST]) MUST_USE;

/* The text for one kind of page, counted by references: pages on their way and texts kept on the server outlive its
 * place in the plan's list. */
struct planned_shape {
    int refs;
    struct planned_shape *next; /* the one used before */
    struct pgseek_shape_key key;
    struct pgseek_shape *shape;
    bool is_dropped; /* it has left the list and will not be found again */
};
struct planned_shape *planned_shape_ref(struct planned_shape *shape);
void planned_shape_unref(struct planned_shape *shape);

/* NULLs in a cursor choose the shape, so nullable keys make many of them: so many are kept, the last used ones. */
#define PLANNED_MAX_SHAPES 32

struct plan_cache;

struct planned {
    int refs;
    struct buf key;             /* what it is found by */
    enum pgseek_reason reason;  /* NONE: there is a plan */
    struct pgseek_query *query; /* NULL when the reason needs no catalog */
    struct pgseek_plan *plan;
    struct description description;
    struct context context;
    char *guard;
    uint8_t query_part[CURSOR_DIGEST];
    uint8_t sort_part[CURSOR_DIGEST];
    struct planned_shape *shapes; /* newest use first */
    int64_t made_at;              /* seconds since 1970: a reason that the catalog gave does not hold for ever */
    struct plan_cache *cache;     /* that it is kept in; NULL: in none */
    size_t bytes;                 /* what the cache has counted for it */
    struct planned *chain;        /* in its hash slot */
    struct planned *newer, *older;
};

struct planned *planned_ref(struct planned *planned);
void planned_unref(struct planned *planned);

/* What a plan is made of. */
struct plan_source {
    struct pgseek_query **query;     /* taken */
    struct description *description; /* of the statement; taken */
    struct pgseek_facts *facts;
    const struct context *context; /* copied */
    const char *key_option;
    const char *const *scope; /* the settings that the guard digests */
    size_t nscope;
};
/* Makes a planned statement out of what was asked. NULL with *reason: MORE, when the facts have a question now (nothing
 * is taken then), or NOMEM. */
struct planned *planned_new(const struct plan_source *source, enum pgseek_reason *reason) MUST_USE;
/* The text for one kind of page, made at its first use: a new reference. NULL with *reason when it cannot be made. The
 * plan grows by it, so it may have left its cache afterwards. */
struct planned_shape *planned_shape(struct planned *planned, const struct pgseek_shape_key *key,
                                    enum pgseek_reason *reason);

/* Keeps as many plans as stay within both bounds, the last used ones. */
struct plan_cache *plan_cache_new(size_t max_plans, size_t max_bytes);
void plan_cache_free(struct plan_cache *cache);
/* Writes the key of a statement under a context to `out` (cleared first). */
void plan_cache_key(struct buf *out, const struct context *context, const char *key_option, const uint32_t *oids,
                    size_t noids, struct span sql);
/* A new reference, or NULL. */
struct planned *plan_cache_find(struct plan_cache *cache, struct span key);
/* Keeps a reference of its own under `key`; an older entry of that key goes. A failure to keep it is no fault. */
void plan_cache_put(struct plan_cache *cache, struct planned *planned, struct span key);
void plan_cache_drop(struct plan_cache *cache, struct planned *planned);

#endif
