/* sorting.c - makes the marks of an order and compares a cursor's with them. */
#include "sorting.h"

#include <stdio.h>
#include <string.h>

#include "planned.h"

/* ---- what each mark is made of ---- */

/* Which columns they are matters for tie-breakers: with another index the same statement has others. */
static void put_keys(struct buf *text, const struct pgseek_plan *plan, const struct context *context)
{
    (void)context;
    for (size_t i = 0; i < pgseek_plan_key_count(plan); i++) {
        const struct pgseek_key *key = pgseek_plan_key(plan, i);
        buf_put_format(text, "%s %d %s\n", key->type_name, key->descending, key->column);
    }
}

static void put_labels(struct buf *text, const struct pgseek_plan *plan, const struct context *context)
{
    (void)context;
    for (size_t i = 0; i < pgseek_plan_key_count(plan); i++) {
        const char *identity = pgseek_plan_key(plan, i)->identity;
        buf_put_format(text, "%s\n", identity ? identity : "");
    }
}

static bool has_text(const struct pgseek_plan *plan)
{
    for (size_t i = 0; i < pgseek_plan_key_count(plan); i++)
        if (pgseek_plan_key(plan, i)->is_text)
            return true;
    return false;
}

/* Every setting that decides how keys travel or compare is named here. */
static void put_settings(struct buf *text, const struct pgseek_plan *plan, const struct context *context)
{
    if (has_text(plan))
        buf_put_format(text, "client_encoding %s\n", context->value[PGSEEK_CTX_ENCODING]);
    if (pgseek_plan_depends_on_settings(plan))
        buf_put_format(text, "settings %s\n", context->value[PGSEEK_CTX_LOCALE]);
}

struct nulls {
    unsigned nullable, first; /* bit i: key i */
};

static struct nulls nulls_of(const struct pgseek_plan *plan)
{
    struct nulls nulls = {0};
    for (size_t i = 0; i < pgseek_plan_key_count(plan); i++) {
        const struct pgseek_key *key = pgseek_plan_key(plan, i);
        nulls.nullable |= key->nullable ? 1u << i : 0;
        nulls.first |= key->nullable && key->nulls_first ? 1u << i : 0;
    }
    return nulls;
}

typedef void put_fn(struct buf *text, const struct pgseek_plan *plan, const struct context *context);

static bool put_mark(put_fn *put, const struct pgseek_plan *plan, const struct context *context, uint8_t *mark)
{
    uint8_t digest[CURSOR_DIGEST];
    struct buf text = {0};
    put(&text, plan, context);
    bool ok = !text.failed &&
              context_digest(context, buf_span(&text), span_of(NULL, 0), span_is_ascii(buf_span(&text)), digest);
    if (ok)
        memcpy(mark, digest, SORTING_MARK);
    buf_fini(&text);
    return ok;
}

bool sorting_digest(const struct pgseek_plan *plan, const struct context *context, uint8_t out[CURSOR_DIGEST])
{
    static put_fn *const digested[SORTING_MARKS] = {
        [SORTING_KEYS] = put_keys, [SORTING_LABELS] = put_labels, [SORTING_SETTINGS] = put_settings};
    struct nulls nulls = nulls_of(plan);
    for (size_t i = 0; i < SORTING_MARKS; i++)
        if (digested[i] && !put_mark(digested[i], plan, context, out + i * SORTING_MARK))
            return false;
    set_u32(out + SORTING_NULLS * SORTING_MARK, (uint32_t)(nulls.nullable << 16 | nulls.first));
    return true;
}

/* ---- what has changed ---- */

static bool same_mark(const uint8_t *a, const uint8_t *b, enum sorting_mark mark)
{
    return memcmp(a + mark * SORTING_MARK, b + mark * SORTING_MARK, SORTING_MARK) == 0;
}

/* A sentence about one key. It is told by its number too, since `expr` may be a tie-breaker's. */
static bool say_key(const struct pgseek_plan *plan, size_t i, const char *what, char *detail, size_t size)
{
    snprintf(detail, size, "Sort key %zu, %.200s, %s.", i + 1, pgseek_plan_key(plan, i)->expr, what);
    return false;
}

static bool say(const char *what, char *detail, size_t size)
{
    snprintf(detail, size, "%s", what);
    return false;
}

/* The cursor's values against the keys that they are to be values of. */
static bool values_fit(const struct pgseek_plan *plan, const struct cursor *cursor, char *detail, size_t size)
{
    size_t nkeys = pgseek_plan_key_count(plan);
    if (cursor->nvalues == 0)
        return true; /* the very start or end */
    if (cursor->nvalues != nkeys) {
        snprintf(detail, size, "It holds %zu sort keys, and the statement has %zu now.", cursor->nvalues, nkeys);
        return false;
    }
    for (size_t i = 0; i < nkeys; i++) {
        const struct pgseek_key *key = pgseek_plan_key(plan, i);
        char what[160];
        if (cursor->value[i].type_oid == key->type_oid)
            continue;
        snprintf(what, sizeof what, "is of type %.100s now, and was of another", key->type_name);
        return say_key(plan, i, what, detail, size);
    }
    return true;
}

static bool nulls_fit(const struct pgseek_plan *plan, const uint8_t *part, const struct cursor *cursor, char *detail,
                      size_t size)
{
    struct nulls now = nulls_of(plan);
    uint32_t then = get_u32(part + SORTING_NULLS * SORTING_MARK);
    for (size_t i = 0; i < pgseek_plan_key_count(plan); i++) {
        bool was_nullable = then >> 16 >> i & 1u;
        bool is_nullable = now.nullable >> i & 1u;
        bool is_null = cursor->nvalues && cursor->value[i].len < 0;
        if (is_nullable && !was_nullable)
            return say_key(plan, i, "may be NULL now, and was NOT NULL", detail, size);
        if (is_null && !is_nullable)
            return say_key(plan, i, "is NOT NULL now, and the cursor holds a NULL", detail, size);
        if (is_nullable && (then >> i & 1u) != (now.first >> i & 1u))
            return say_key(plan, i, "has its NULLs at the other end now", detail, size);
    }
    return true;
}

bool sorting_fits(const struct pgseek_plan *plan, const struct context *context, const uint8_t part[CURSOR_DIGEST],
                  const struct cursor *cursor, char *detail, size_t size)
{
    const uint8_t *then = cursor->part[CURSOR_SORT];
    if (!values_fit(plan, cursor, detail, size))
        return false;
    if (!same_mark(then, part, SORTING_KEYS))
        return say("The sort keys, their types or directions have changed.", detail, size);
    if (!nulls_fit(plan, then, cursor, detail, size))
        return false;
    if (!same_mark(then, part, SORTING_LABELS))
        return say(
            "The collation of a sort key, its version, the labels of an enum, or a function in a key have changed.",
            detail, size);
    if (same_mark(then, part, SORTING_SETTINGS))
        return true;
    if (pgseek_plan_depends_on_settings(plan))
        return say(
            "A sort key depends on settings (TimeZone, DateStyle, lc_* ... or client_encoding), and one of them has "
            "changed.",
            detail, size);
    snprintf(detail, size,
             "client_encoding is %.60s now, and was another when the cursor was made: a sort key is text.",
             context->value[PGSEEK_CTX_ENCODING]);
    return false;
}
