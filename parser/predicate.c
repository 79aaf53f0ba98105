/* predicate.c - the condition for "after this row", written as SQL.
 *
 * See predicate.h. Keys fall into runs: neighbours of one direction, one operator and one relation, with values that
 * are not NULL. From the right, each run gives one branch, and each nullable key that sorts its NULLs last one more;
 * branches are disjoint. One branch is the whole condition; several are bounded from below by the leading run. */
#include "predicate.h"

#include <string.h>

void predicate_reverse(struct predicate_key *keys, size_t nkeys)
{
    for (size_t i = 0; i < nkeys; i++) {
        keys[i].descending = !keys[i].descending;
        keys[i].nulls_first = !keys[i].nulls_first;
    }
}

/* ---- words ---- */

static const struct facts_operator *after_operator(const struct predicate_key *key)
{
    return &key->operators[key->descending ? FACTS_LESS : FACTS_GREATER];
}

static const struct facts_operator *bound_operator(const struct predicate_key *key)
{
    return &key->operators[key->descending ? FACTS_LESS_EQUAL : FACTS_GREATER_EQUAL];
}

static bool same_operator(const struct facts_operator *a, const struct facts_operator *b)
{
    return !strcmp(a->name, b->name) && !strcmp(a->schema, b->schema);
}

static void put_operator(struct text *out, const struct facts_operator *operator)
{
    text_puts(out, " OPERATOR(");
    if (!strcmp(operator->schema, "pg_catalog"))
        text_puts(out, operator->schema);
    else
        text_put_ident(out, operator->schema);
    text_format(out, ".%s) ", operator->name);
}

/* Keys from first to last, one bare or several as a row, against their values. */
static void put_comparison(struct text *out, const struct predicate_key *keys, size_t first, size_t last,
                           const struct facts_operator *operator)
{
    const char *open = first < last ? "(" : "";
    const char *close = first < last ? ")" : "";

    text_puts(out, open);
    for (size_t i = first; i <= last; i++)
        text_format(out, "%s%s", i > first ? ", " : "", keys[i].expr);
    text_puts(out, close);
    put_operator(out, operator);
    text_puts(out, open);
    for (size_t i = first; i <= last; i++)
        text_format(out, "%s$%u", i > first ? ", " : "", keys[i].param);
    text_puts(out, close);
}

/* The keys from `from` on and before `count` are those of the boundary. */
static void put_prefix(struct text *out, const struct predicate_key *keys, size_t from, size_t count)
{
    for (size_t i = from; i < count; i++) {
        if (keys[i].value_is_null)
            text_format(out, "%s IS NULL", keys[i].expr);
        else
            put_comparison(out, keys, i, i, &keys[i].operators[FACTS_EQUAL]);
        text_puts(out, " AND ");
    }
}

/* ---- runs ---- */

/* Whether two keys may stand in one row value: relation is for the planner, the rest for the meaning. */
static bool same_way(const struct predicate_key *a, const struct predicate_key *b)
{
    return a->descending == b->descending && same_operator(after_operator(a), after_operator(b));
}

static bool has_tail(const struct predicate_key *key)
{
    return key->nullable && !key->nulls_first;
}

static size_t run_start(const struct predicate_key *keys, size_t last)
{
    size_t first = last;

    while (first > 0 && !keys[first - 1].value_is_null && same_way(&keys[first - 1], &keys[last]) &&
           keys[first - 1].relation == keys[last].relation)
        first--;
    return first;
}

/* A key with a block of NULLs behind it bounds nothing. */
size_t predicate_bound_length(const struct predicate_key *keys, size_t nkeys)
{
    size_t count = 0;

    while (count < nkeys && !keys[count].value_is_null && !has_tail(&keys[count]) && same_way(&keys[0], &keys[count]) &&
           keys[count].relation == keys[0].relation)
        count++;
    return count;
}

/* ---- branches ---- */

/* One branch: the keys before `first` are those of the boundary, and then ... */
struct branch {
    enum {
        BRANCH_AFTER,    /* ... the run from first to last lies behind it */
        BRANCH_NOT_NULL, /* ... `first` is not NULL, as it is at the boundary, where NULLs are first */
        BRANCH_NULL      /* ... `first` is NULL, and NULLs are last */
    } kind;
    size_t first;
    size_t last;
};

/* A run gives one branch, each key one more at most. */
struct branches {
    struct branch item[2 * PGSEEK_MAX_KEYS];
    size_t count;
};

static void add_branch(struct branches *branches, struct branch branch)
{
    if (branches->count < sizeof branches->item / sizeof *branches->item)
        branches->item[branches->count++] = branch;
}

static void find_branches(struct branches *branches, const struct predicate_key *keys, size_t nkeys)
{
    branches->count = 0;
    for (size_t end = nkeys; end > 0;) {
        size_t last = end - 1;

        if (keys[last].value_is_null) {
            end = last;
            if (keys[last].nulls_first) /* nothing sorts behind NULLs that are last */
                add_branch(branches, (struct branch){.kind = BRANCH_NOT_NULL, .first = last, .last = last});
            continue;
        }
        size_t first = run_start(keys, last);
        add_branch(branches, (struct branch){.kind = BRANCH_AFTER, .first = first, .last = last});
        for (size_t j = first; j <= last; j++)
            if (has_tail(&keys[j]))
                add_branch(branches, (struct branch){.kind = BRANCH_NULL, .first = j, .last = j});
        end = first;
    }
}

/* The keys before `known` need not be told from the boundary's. */
static void put_branch(struct text *out, const struct predicate_key *keys, const struct branch *branch, size_t known)
{
    put_prefix(out, keys, known, branch->first);
    switch (branch->kind) {
    case BRANCH_AFTER:
        put_comparison(out, keys, branch->first, branch->last, after_operator(&keys[branch->last]));
        break;
    case BRANCH_NOT_NULL: text_format(out, "%s IS NOT NULL", keys[branch->first].expr); break;
    case BRANCH_NULL: text_format(out, "%s IS NULL", keys[branch->first].expr); break;
    }
}

size_t predicate_branch_count(const struct predicate_key *keys, size_t nkeys)
{
    struct branches branches;

    find_branches(&branches, keys, nkeys);
    return branches.count;
}

void predicate_write_branch(struct text *out, const struct predicate_key *keys, size_t nkeys, size_t branch,
                            bool leading_bound)
{
    struct branches branches;

    find_branches(&branches, keys, nkeys);
    if (branch >= branches.count) {
        text_puts(out, "FALSE");
        return;
    }
    const struct branch *chosen = &branches.item[branch];
    if (leading_bound && chosen->kind == BRANCH_AFTER && chosen->first == 0 && chosen->last > 0) {
        put_comparison(out, keys, 0, 0, bound_operator(keys));
        text_puts(out, " AND ");
    }
    put_branch(out, keys, chosen, 0);
}

/* ---- the condition ---- */

/* One row value over all keys says it all. */
static bool is_uniform(const struct predicate_key *keys, size_t nkeys)
{
    for (size_t i = 0; i < nkeys; i++)
        if (keys[i].value_is_null || has_tail(&keys[i]) || !same_way(&keys[0], &keys[i]) ||
            keys[i].relation != keys[0].relation)
            return false;
    return true;
}

static void put_bounds(struct text *out, const struct predicate_key *keys, size_t nkeys, size_t bound,
                       bool leading_bound)
{
    if (leading_bound && nkeys > 1 && bound > 1) {
        put_comparison(out, keys, 0, 0, bound_operator(keys));
        text_puts(out, " AND ");
    }
    if (bound > 0 && bound < nkeys) {
        put_comparison(out, keys, 0, bound - 1, bound_operator(keys));
        text_puts(out, " AND ");
    }
}

static void put_either(struct text *out, const struct predicate_key *keys, const struct branches *branches)
{
    text_putc(out, '(');
    for (size_t i = 0; i < branches->count; i++) {
        text_puts(out, i ? " OR " : "");
        put_branch(out, keys, &branches->item[i], 0);
    }
    text_putc(out, ')');
}

/* Behind a bound the keys in it are behind the boundary's or equal to them, so no branch need say that they are equal.
 * CASE is OR that no index serves and whose rows the planner takes to be many: of an OR it makes a BitmapOr and sorts
 * all that is left, and a comparison over two relations it takes to find one row. */
static void put_cases(struct text *out, const struct predicate_key *keys, const struct branches *branches, size_t bound)
{
    text_puts(out, "CASE");
    for (size_t i = branches->count - 1; i > 0; i--) {
        text_puts(out, " WHEN ");
        put_branch(out, keys, &branches->item[i], bound);
        text_puts(out, " THEN true");
    }
    text_puts(out, " ELSE ");
    put_branch(out, keys, &branches->item[0], bound);
    text_puts(out, " END");
}

void predicate_write(struct text *out, const struct predicate_key *keys, size_t nkeys, bool leading_bound)
{
    size_t bound = predicate_bound_length(keys, nkeys);
    struct branches branches;

    find_branches(&branches, keys, nkeys);
    if (is_uniform(keys, nkeys)) {
        put_bounds(out, keys, nkeys, bound, leading_bound);
        put_comparison(out, keys, 0, nkeys - 1, after_operator(keys));
    } else if (branches.count == 0) {
        text_puts(out, "FALSE");
    } else if (branches.count == 1) {
        put_branch(out, keys, &branches.item[0], 0);
    } else {
        put_bounds(out, keys, nkeys, bound, leading_bound);
        if (bound > 0)
            put_cases(out, keys, &branches, bound);
        else
            put_either(out, keys, &branches);
    }
}
