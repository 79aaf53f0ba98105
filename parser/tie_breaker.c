/* tie_breaker.c - the key that is the best to append to an order that is not total yet.
 *
 * See proof_next_key() in proof.h. Each candidate is tried in the proof: the one that makes most relations known wins.
 */
#include "proof.h"

#include <string.h>

struct candidate {
    const struct scope_key *key;
    size_t relation;
    size_t won;
    size_t missing;
};

static size_t missing_columns(const struct proof *proof, size_t relation, const struct scope_key *key)
{
    size_t missing = 0;

    for (size_t i = 0; i < key->ncolumns; i++)
        missing += !proof_is_known(proof, (struct scope_column){relation, key->columns[i]});
    return missing;
}

/* How many relations would be known if the key's columns were, all or all but one. */
static size_t relations_won(struct proof *proof, size_t relation, const struct scope_key *key, size_t left_out)
{
    size_t won = 0;

    proof_try(proof);
    for (size_t i = 0; i < key->ncolumns; i++)
        if (i != left_out)
            proof_assume(proof, (struct scope_column){relation, key->columns[i]});
    for (size_t r = 0; r < proof->scope->nrelations; r++)
        won += proof_is_relation_known(proof, r) && !proof->used_before[r];
    proof_undo(proof);
    return won;
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
    if (!b->key)
        return true;
    if (a->won != b->won)
        return a->won > b->won;
    if (a->missing != b->missing)
        return a->missing < b->missing;
    return a->relation == b->relation && a->key->is_primary && !b->key->is_primary;
}

struct wanted {
    bool (*usable)(const void *context, struct scope_column column);
    const void *context;
};

static bool can_be_used(const struct proof *proof, const struct wanted *wanted, size_t relation,
                        const struct scope_key *key)
{
    for (size_t i = 0; i < key->ncolumns; i++) {
        struct scope_column column = {relation, key->columns[i]};

        if (!proof_is_known(proof, column) && wanted->usable && !wanted->usable(wanted->context, column))
            return false;
    }
    return true;
}

static void look_at_relation(struct proof *proof, const struct wanted *wanted, size_t r, struct candidate *best,
                             bool *denied)
{
    const struct scope_relation *relation = &proof->scope->relations[r];

    for (size_t i = 0; i < relation->nkeys && !proof_is_relation_known(proof, r); i++) {
        struct candidate candidate = {.key = &relation->keys[i], .relation = r};

        if (!proof_key_holds(proof, r, candidate.key))
            continue;
        candidate.missing = missing_columns(proof, r, candidate.key);
        candidate.won = candidate.missing ? relations_won(proof, r, candidate.key, SIZE_MAX) : 0;
        if (!candidate.won)
            continue;
        if (!can_be_used(proof, wanted, r, candidate.key))
            *denied = true;
        else if (is_better(&candidate, best))
            *best = candidate;
    }
}

/* The key without what follows from the rest: of `a LEFT JOIN c ON c.a = a.id` with a known, c.a is a's id or NULL, and
 * any other column of the key shows which. */
static const struct scope_key *smallest(struct proof *proof, const struct candidate *best)
{
    struct scope_key *key = arena_alloc(proof->scope->arena, sizeof *key);
    size_t *columns = arena_array(proof->scope->arena, best->key->ncolumns + 1, sizeof *columns);

    if (!key || !columns)
        return best->key;
    *key = *best->key;
    memcpy(columns, best->key->columns, key->ncolumns * sizeof *columns);
    key->columns = columns;
    for (size_t i = key->ncolumns; i-- > 0;) {
        if (relations_won(proof, best->relation, key, i) < best->won)
            continue;
        key->ncolumns--;
        memmove(columns + i, columns + i + 1, (key->ncolumns - i) * sizeof *columns);
    }
    return key;
}

const struct scope_key *proof_next_key(struct proof *proof, size_t preferred,
                                       bool (*usable)(const void *context, struct scope_column column),
                                       const void *context, size_t *relation, bool *denied)
{
    struct wanted wanted = {usable, context};
    struct candidate best = {0};

    *denied = false;
    /* A relation that an outer join extends seldom tells all rows apart: it has no advantage. */
    if (preferred < proof->scope->nrelations && !proof->scope->relations[preferred].is_null_extended)
        look_at_relation(proof, &wanted, preferred, &best, denied);
    bool decided = best.key != NULL;
    for (size_t r = 0; r < proof->scope->nrelations && !decided; r++)
        look_at_relation(proof, &wanted, r, &best, denied);
    *relation = best.relation;
    return best.key ? smallest(proof, &best) : NULL;
}
