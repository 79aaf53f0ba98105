/* proof.c - which columns of a joined row follow from others, so that an order can be shown to be total.
 *
 * See proof.h. It compares any two rows of the result that agree on what was assumed, and asks what else they must
 * agree on. Closing over equalities and unique keys gives what candidate keys per join node would give. */
#include "proof.h"

#include <string.h>

/* In place of a key: an outer join made the relation known. */
static const struct scope_key by_join;

bool proof_is_relation_known(const struct proof *proof, size_t relation)
{
    return proof->used[relation] != NULL;
}

bool proof_is_known(const struct proof *proof, struct scope_column column)
{
    return proof_is_relation_known(proof, column.relation) || proof->known[proof_column_id(proof, column)];
}

bool proof_is_non_null(const struct proof *proof, struct scope_column column)
{
    return proof->non_null[proof_column_id(proof, column)];
}

bool proof_is_total(const struct proof *proof)
{
    for (size_t r = 0; r < proof->scope->nrelations; r++)
        if (!proof_is_relation_known(proof, r))
            return false;
    return true;
}

/* ---- questions within a case ---- */

static bool relation_is_known(const struct proof *proof, const struct proof_case *in, size_t relation)
{
    if (relation >= in->first && relation < in->end)
        return in->used[relation - in->first] != NULL;
    if (relation >= in->kept_first && relation < in->kept_end)
        return true;
    return in->join && relation_is_known(proof, &proof->cases[in->around], relation);
}

static bool column_is_known(const struct proof *proof, const struct proof_case *in, struct scope_column column)
{
    if (relation_is_known(proof, in, column.relation))
        return true;
    if (column.relation >= in->first && column.relation < in->end)
        return in->known[proof_column_id(proof, column) - in->first_column];
    return in->join && column_is_known(proof, &proof->cases[in->around], column);
}

static bool are_known(const struct proof *proof, const struct proof_case *in, size_t first, size_t end)
{
    for (size_t r = first; r < end; r++)
        if (!relation_is_known(proof, in, r))
            return false;
    return true;
}

/* Whether two rows may still differ in a join having found a partner for the relation. They may not once the other side
 * is known: it either finds partners or does not. */
static bool may_be_extended(const struct proof *proof, const struct proof_case *in, size_t relation)
{
    for (size_t i = 0; i < proof->scope->njoins; i++) {
        const struct scope_join *join = &proof->scope->joins[i];
        bool is_left = relation < join->middle;

        if (join->first < in->first || join->end > in->end || !proof_join_extends(join, relation, relation + 1))
            continue;
        if (!are_known(proof, in, is_left ? join->middle : join->first, is_left ? join->end : join->middle))
            return true;
    }
    return false;
}

/* Whether a known column tells the relation's rows from the NULLs of an outer join. */
static bool shows_extension(const struct proof *proof, const struct proof_case *in, size_t relation)
{
    for (size_t i = 0; i < proof->scope->relations[relation].nattributes; i++) {
        struct scope_column column = {relation, i};

        if (proof->own_non_null[proof_column_id(proof, column)] && column_is_known(proof, in, column))
            return true;
    }
    return false;
}

bool proof_key_holds(const struct proof *proof, size_t relation, const struct scope_key *key)
{
    for (size_t i = 0; i < key->ncolumns && key->nulls_distinct; i++)
        if (!proof->own_non_null[proof_column_id(proof, (struct scope_column){relation, key->columns[i]})])
            return false;
    return true;
}

static bool key_is_known(const struct proof *proof, const struct proof_case *in, size_t relation,
                         const struct scope_key *key)
{
    for (size_t i = 0; i < key->ncolumns; i++)
        if (!column_is_known(proof, in, (struct scope_column){relation, key->columns[i]}))
            return false;
    return proof_key_holds(proof, relation, key);
}

/* ---- conclusions: each says whether it found something new ---- */

static bool set_known(const struct proof *proof, struct proof_case *in, struct scope_column column)
{
    if (column.relation < in->first || column.relation >= in->end || column_is_known(proof, in, column))
        return false;
    in->known[proof_column_id(proof, column) - in->first_column] = true;
    return true;
}

static bool set_relation_known(struct proof_case *in, size_t relation, const struct scope_key *key)
{
    in->used[relation - in->first] = key;
    return true;
}

/* What holds around the case holds in it. */
static bool inherit(const struct proof *proof, struct proof_case *in)
{
    const struct proof_case *around = &proof->cases[in->around];
    bool changed = false;

    for (size_t r = in->first; r < in->end; r++)
        if (!relation_is_known(proof, in, r) && relation_is_known(proof, around, r))
            changed |= set_relation_known(in, r, &by_join);
    for (size_t i = 0; i < in->ncolumns; i++) {
        bool known = around->known[in->first_column + i - around->first_column];

        changed |= known && !in->known[i];
        in->known[i] |= known;
    }
    return changed;
}

static bool close_equalities(const struct proof *proof, struct proof_case *in, struct scope_column (*equalities)[2],
                             size_t count)
{
    bool changed = false;

    for (size_t i = 0; i < count; i++) {
        struct scope_column a = equalities[i][0];
        struct scope_column b = equalities[i][1];

        if (column_is_known(proof, in, a))
            changed |= set_known(proof, in, b);
        else if (column_is_known(proof, in, b))
            changed |= set_known(proof, in, a);
    }
    return changed;
}

static bool close_relation(const struct proof *proof, struct proof_case *in, size_t r)
{
    const struct scope_relation *relation = &proof->scope->relations[r];

    if (relation_is_known(proof, in, r) || (relation->is_lateral && !are_known(proof, in, 0, r)))
        return false;
    for (size_t i = 0; i < relation->nkeys; i++) {
        if (!key_is_known(proof, in, r, &relation->keys[i]))
            continue;
        if (!may_be_extended(proof, in, r) || shows_extension(proof, in, r))
            return set_relation_known(in, r, &relation->keys[i]);
    }
    return false;
}

/* An outer join directly within the case: with its kept side known, either no row of the other side fits, or the join's
 * own case says which. */
static bool close_join(const struct proof *proof, struct proof_case *in, const struct proof_case *of_join)
{
    bool changed = false;

    if (!are_known(proof, in, of_join->kept_first, of_join->kept_end) ||
        !are_known(proof, of_join, of_join->first, of_join->end))
        return false;
    for (size_t r = of_join->first; r < of_join->end; r++)
        if (!relation_is_known(proof, in, r))
            changed |= set_relation_known(in, r, &by_join);
    return changed;
}

static bool close_case(const struct proof *proof, struct proof_case *in)
{
    bool changed = in->join ? inherit(proof, in) : false;

    changed |= close_equalities(proof, in, proof->equalities, proof->nequalities);
    changed |= close_equalities(proof, in, in->equalities, in->nequalities);
    for (size_t r = in->first; r < in->end; r++)
        changed |= close_relation(proof, in, r);
    for (size_t i = 1; i < proof->ncases; i++)
        if (&proof->cases[proof->cases[i].around] == in)
            changed |= close_join(proof, in, &proof->cases[i]);
    return changed;
}

/* What closing the case costs; false when it may not be spent any more. */
static bool spend(const struct proof *proof, const struct proof_case *in)
{
    size_t *left = &proof->scope->budget->steps;
    size_t cost = 1 + (in->end - in->first) + in->nequalities + proof->nequalities;

    *left -= cost < *left ? cost : *left;
    return *left > 0;
}

/* Knowledge goes inwards by inheritance and outwards by joins; inner joins' cases come first. */
static void conclude(struct proof *proof)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (size_t i = 0; i < 2 * proof->ncases; i++) {
            struct proof_case *in = &proof->cases[i < proof->ncases ? i : 2 * proof->ncases - 1 - i];

            if (!spend(proof, in))
                return;
            changed |= close_case(proof, in);
        }
    }
}

void proof_assume(struct proof *proof, struct scope_column column)
{
    proof->known[proof_column_id(proof, column)] = true;
    conclude(proof);
}

/* ---- making ---- */

static void keep_marks(const struct proof *proof, bool *known, const struct scope_key **used)
{
    memcpy(known, proof->known, proof->nknown * sizeof *known);
    for (size_t i = 0; i < proof->nused; i++)
        used[i] = proof->used[i];
}

static void restore_marks(struct proof *proof, const bool *known, const struct scope_key *const *used)
{
    memcpy(proof->known, known, proof->nknown * sizeof *known);
    for (size_t i = 0; i < proof->nused; i++)
        proof->used[i] = used[i];
}

void proof_reset(struct proof *proof)
{
    restore_marks(proof, proof->known_at_first, proof->used_at_first);
}

void proof_try(const struct proof *proof)
{
    keep_marks(proof, proof->known_before, proof->used_before);
}

void proof_undo(struct proof *proof)
{
    restore_marks(proof, proof->known_before, proof->used_before);
}

/* The case of an outer join. A FULL JOIN has none: nothing follows from its condition. */
static struct proof_case join_case(const struct scope_join *join)
{
    struct proof_case in = {.join = join, .first = join->middle, .end = join->end};

    in.kept_first = join->first;
    in.kept_end = join->middle;
    if (join->is_right) {
        in.first = join->first;
        in.end = join->middle;
        in.kept_first = join->middle;
        in.kept_end = join->end;
    }
    return in;
}

/* The smallest case that the whole join stands in. */
static size_t case_around(const struct proof *proof, const struct scope_join *join)
{
    size_t found = 0;

    for (size_t i = 1; i < proof->ncases; i++) {
        const struct proof_case *in = &proof->cases[i];

        if (in->join != join && join->first >= in->first && join->end <= in->end &&
            in->end - in->first < proof->cases[found].end - proof->cases[found].first)
            found = i;
    }
    return found;
}

static bool make_cases(struct proof *proof)
{
    const struct scope *scope = proof->scope;

    proof->cases = arena_array(scope->arena, scope->njoins + 1, sizeof *proof->cases);
    if (!proof->cases)
        return false;
    proof->cases[proof->ncases++] = (struct proof_case){.end = scope->nrelations};
    for (size_t i = 0; i < scope->njoins; i++)
        if (!scope->joins[i].is_full)
            proof->cases[proof->ncases++] = join_case(&scope->joins[i]);
    for (size_t i = 0; i < proof->ncases; i++) {
        struct proof_case *in = &proof->cases[i];
        size_t room = in->join ? in->join->nconjuncts + in->join->nmerged : 0;

        in->around = in->join ? case_around(proof, in->join) : 0;
        in->first_column = in->first < scope->nrelations ? proof->base[in->first] : 0;
        in->ncolumns = (in->end < scope->nrelations ? proof->base[in->end] : proof->ncolumns) - in->first_column;
        in->equalities = arena_array(scope->arena, room + 1, sizeof *in->equalities);
        proof->nknown += in->ncolumns;
        proof->nused += in->end - in->first;
    }
    return !scope->arena->failed;
}

static bool make_marks(struct proof *proof)
{
    struct arena *arena = proof->scope->arena;
    size_t known = 0;
    size_t used = 0;

    proof->known = arena_array(arena, proof->nknown + 1, sizeof *proof->known);
    proof->known_at_first = arena_array(arena, proof->nknown + 1, sizeof *proof->known);
    proof->known_before = arena_array(arena, proof->nknown + 1, sizeof *proof->known);
    proof->used = arena_array(arena, proof->nused + 1, sizeof *proof->used);
    proof->used_at_first = arena_array(arena, proof->nused + 1, sizeof *proof->used);
    proof->used_before = arena_array(arena, proof->nused + 1, sizeof *proof->used);
    if (!proof->known || !proof->known_at_first || !proof->known_before || !proof->used || !proof->used_at_first ||
        !proof->used_before)
        return false;
    for (size_t i = 0; i < proof->ncases; i++) {
        proof->cases[i].known = proof->known + known;
        proof->cases[i].used = proof->used + used;
        known += proof->cases[i].ncolumns;
        used += proof->cases[i].end - proof->cases[i].first;
    }
    return true;
}

static bool make_columns(struct proof *proof)
{
    const struct scope *scope = proof->scope;

    proof->base = arena_array(scope->arena, scope->nrelations + 1, sizeof *proof->base);
    if (!proof->base)
        return false;
    for (size_t r = 0; r < scope->nrelations; r++) {
        proof->base[r] = proof->ncolumns;
        proof->ncolumns += scope->relations[r].nattributes;
    }
    proof->non_null = arena_array(scope->arena, proof->ncolumns + 1, sizeof *proof->non_null);
    proof->own_non_null = arena_array(scope->arena, proof->ncolumns + 1, sizeof *proof->own_non_null);
    proof->by_statement = arena_array(scope->arena, proof->ncolumns + 1, sizeof *proof->by_statement);
    proof->is_compared = arena_array(scope->arena, proof->ncolumns + 1, sizeof *proof->is_compared);
    proof->equalities = arena_array(scope->arena, scope->nconjuncts + scope->nmerged + 1, sizeof *proof->equalities);
    return proof->non_null && proof->own_non_null && proof->by_statement && proof->is_compared && proof->equalities;
}

static void set_non_null(struct proof *proof)
{
    const struct scope *scope = proof->scope;

    for (size_t r = 0; r < scope->nrelations; r++) {
        for (size_t i = 0; i < scope->relations[r].nattributes; i++) {
            size_t id = proof->base[r] + i;

            proof->own_non_null[id] = scope->relations[r].attributes[i].not_null || proof->by_statement[id];
            proof->non_null[id] |= proof->own_non_null[id] && !scope->relations[r].is_null_extended;
        }
    }
}

bool proof_make(struct proof *proof, const struct scope *scope, const struct pgseek_description *description)
{
    *proof = (struct proof){.scope = scope};
    if (!make_columns(proof) || !make_cases(proof) || !make_marks(proof))
        return false;
    proof_read_conditions(proof, description);
    set_non_null(proof);
    conclude(proof);
    keep_marks(proof, proof->known_at_first, proof->used_at_first);
    return true;
}

/* ---- what it rests on ---- */

static const struct scope_rest *add_comparison(const struct proof *proof, const struct scope_attribute *attribute,
                                               const struct scope_rest *rests)
{
    struct scope_rest rest = {.relation = attribute->relation, .column = attribute->facts};

    return scope_rests_join(proof->scope->arena, rests, &rest);
}

const struct scope_rest *proof_non_null_rests(const struct proof *proof, struct scope_column column)
{
    const struct scope_attribute *attribute = scope_attribute(proof->scope, column);
    size_t id = proof_column_id(proof, column);

    if (proof->by_statement[id])
        return proof->is_compared[id] ? add_comparison(proof, attribute, NULL) : NULL;
    return proof->own_non_null[id] ? attribute->rests : NULL;
}

static const struct scope_rest *key_rests(const struct proof *proof, size_t relation, const struct scope_key *key,
                                          const struct scope_rest *rests)
{
    struct arena *arena = proof->scope->arena;

    rests = scope_rests_join(arena, rests, key->rests);
    for (size_t i = 0; i < key->ncolumns && key->nulls_distinct; i++)
        rests = scope_rests_join(arena, rests,
                                 proof_non_null_rests(proof, (struct scope_column){relation, key->columns[i]}));
    return rests;
}

/* Columns that were compared, and those that were assumed or followed: of them NOT NULL may have counted. */
static const struct scope_rest *column_rests(const struct proof *proof, struct scope_column column,
                                             const struct scope_rest *rests)
{
    size_t id = proof_column_id(proof, column);

    if (proof->is_compared[id])
        rests = add_comparison(proof, scope_attribute(proof->scope, column), rests);
    if (proof->known[id])
        rests = scope_rests_join(proof->scope->arena, rests, proof_non_null_rests(proof, column));
    return rests;
}

const struct scope_rest *proof_rests(const struct proof *proof)
{
    const struct scope_rest *rests = scope_rests_join(proof->scope->arena, NULL, proof->around_rests);

    for (size_t i = 0; i < proof->ncases; i++)
        for (size_t r = proof->cases[i].first; r < proof->cases[i].end; r++) {
            const struct scope_key *key = proof->cases[i].used[r - proof->cases[i].first];

            if (key)
                rests = key_rests(proof, r, key, rests);
        }
    for (size_t r = 0; r < proof->scope->nrelations; r++)
        for (size_t i = 0; i < proof->scope->relations[r].nattributes; i++)
            rests = column_rests(proof, (struct scope_column){r, i}, rests);
    return rests;
}
