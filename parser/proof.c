/* proof.c - which columns of a joined row follow from others, so that an order can be shown to be total.
 *
 * See proof.h. For inner joins, closing over equalities and unique keys gives what candidate keys per join node would
 * give. Equality counts only where the server compares values of one type under one deterministic collation. */
#include "proof.h"

#include <string.h>

enum {
    OID_BOOL = 16,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_DATE = 1082,
    OID_TIMESTAMP = 1114,
    OID_TIMESTAMPTZ = 1184,
    OID_VARCHAR = 1043,
    OID_NUMERIC = 1700,
    OID_UUID = 2950,
    OID_FIRST_USER = 16384
};

static size_t column_id(const struct proof *proof, struct scope_column column)
{
    return proof->base[column.relation] + column.column;
}

bool proof_is_known(const struct proof *proof, struct scope_column column)
{
    return proof->known[column_id(proof, column)];
}

bool proof_is_non_null(const struct proof *proof, struct scope_column column)
{
    return proof->non_null[column_id(proof, column)];
}

bool proof_column(const struct scope *scope, size_t relation, int attnum, struct scope_column *out)
{
    const struct scope_relation *in = &scope->relations[relation];

    for (size_t i = 0; i < in->ncolumns; i++) {
        if (in->columns[i].attnum != attnum)
            continue;
        *out = (struct scope_column){relation, i};
        return true;
    }
    return false;
}

/* ---- which comparisons are equality of values ---- */

static bool is_int(uint32_t oid)
{
    return oid == OID_INT2 || oid == OID_INT4 || oid == OID_INT8;
}

static bool is_text(uint32_t oid)
{
    return oid == OID_TEXT || oid == OID_VARCHAR;
}

/* Types whose values the server compares as they are, without a cast that could make two of them one. */
static bool comparable(uint32_t a, uint32_t b)
{
    if (a >= OID_FIRST_USER || b >= OID_FIRST_USER || !a || !b)
        return false;
    return a == b || (is_int(a) && is_int(b)) || (is_text(a) && is_text(b));
}

static bool columns_comparable(const struct facts_column *a, const struct facts_column *b)
{
    return comparable(a->base_oid, b->base_oid) && a->deterministic && b->deterministic &&
           a->collation_oid == b->collation_oid;
}

static bool is_equality(const struct proof *proof, const PgQuery__Node *node)
{
    if (node->node_case != PG_QUERY__NODE__NODE_A_EXPR || node->a_expr->kind != PG_QUERY__A__EXPR__KIND__AEXPR_OP)
        return false;
    const char *name = tree_builtin_name(node->a_expr->name, node->a_expr->n_name);
    if (!name || strcmp(name, "=") != 0)
        return false;
    return tree_is_qualified(node->a_expr->n_name) || !proof->scope->facts->has_foreign_operators;
}

static uint32_t cast_oid(const PgQuery__TypeName *type)
{
    static const struct {
        const char *name;
        uint32_t oid;
    } types[] = {{"bool", OID_BOOL},           {"int2", OID_INT2},
                 {"int4", OID_INT4},           {"int8", OID_INT8},
                 {"text", OID_TEXT},           {"varchar", OID_VARCHAR},
                 {"uuid", OID_UUID},           {"date", OID_DATE},
                 {"timestamp", OID_TIMESTAMP}, {"timestamptz", OID_TIMESTAMPTZ},
                 {"numeric", OID_NUMERIC}};
    const char *name = tree_builtin_name(type->names, type->n_names);

    for (size_t i = 0; name && !type->n_array_bounds && i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name))
            return types[i].oid;
    return 0;
}

static bool literal_pins(const PgQuery__AConst *literal, uint32_t oid)
{
    switch (literal->val_case) {
    case PG_QUERY__A__CONST__VAL_SVAL: /* takes the column's type */ return oid < OID_FIRST_USER && !literal->isnull;
    case PG_QUERY__A__CONST__VAL_IVAL: return is_int(oid) || oid == OID_NUMERIC;
    case PG_QUERY__A__CONST__VAL_FVAL: return oid == OID_NUMERIC;
    case PG_QUERY__A__CONST__VAL_BOOLVAL: return oid == OID_BOOL;
    default: return false;
    }
}

/* Whether `column = node` leaves one value of the column. */
static bool pins(const PgQuery__Node *node, const struct facts_column *column,
                 const struct pgseek_description *description)
{
    uint32_t oid = column->base_oid;

    if (!node || !column->deterministic || !oid)
        return false;
    if (node->node_case == PG_QUERY__NODE__NODE_A_CONST)
        return literal_pins(node->a_const, oid);
    if (node->node_case == PG_QUERY__NODE__NODE_PARAM_REF) {
        size_t number = (size_t)node->param_ref->number;
        if (!description)
            return oid < OID_FIRST_USER;
        return number >= 1 && number <= description->nparams && comparable(description->param_oids[number - 1], oid);
    }
    if (node->node_case != PG_QUERY__NODE__NODE_TYPE_CAST)
        return false;
    const PgQuery__Node *arg = node->type_cast->arg;
    bool constant =
        arg && (arg->node_case == PG_QUERY__NODE__NODE_A_CONST || arg->node_case == PG_QUERY__NODE__NODE_PARAM_REF);
    return constant && comparable(cast_oid(node->type_cast->type_name), oid);
}

/* ---- what the statement says about every row ---- */

static bool find_column(const struct proof *proof, const PgQuery__Node *node, struct scope_column *out)
{
    const PgQuery__ColumnRef *column = tree_column(node);

    return column && scope_find(proof->scope, column, out) == SCOPE_FOUND;
}

static void set_non_null(struct proof *proof, struct scope_column column)
{
    proof->non_null[column_id(proof, column)] = true;
    proof->by_statement[column_id(proof, column)] = true;
}

static void add_equality(struct proof *proof, struct scope_column a, struct scope_column b)
{
    if (!columns_comparable(scope_facts(proof->scope, a), scope_facts(proof->scope, b)))
        return;
    set_non_null(proof, a);
    set_non_null(proof, b);
    proof->equalities[proof->nequalities++] = (struct scope_equality){a, b};
}

static void read_equality(struct proof *proof, const PgQuery__AExpr *expr, const struct pgseek_description *description)
{
    struct scope_column left;
    struct scope_column right;
    bool has_left = find_column(proof, expr->lexpr, &left);
    bool has_right = find_column(proof, expr->rexpr, &right);

    if (has_left && has_right) {
        add_equality(proof, left, right);
        return;
    }
    if (!has_left && !has_right)
        return;
    struct scope_column column = has_left ? left : right;
    if (!pins(has_left ? expr->rexpr : expr->lexpr, scope_facts(proof->scope, column), description))
        return;
    set_non_null(proof, column);
    proof->known[column_id(proof, column)] = true;
}

static void read_conjunct(struct proof *proof, const PgQuery__Node *node, const struct pgseek_description *description)
{
    struct scope_column column;

    if (is_equality(proof, node))
        read_equality(proof, node->a_expr, description);
    if (node->node_case == PG_QUERY__NODE__NODE_NULL_TEST &&
        node->null_test->nulltesttype == PG_QUERY__NULL_TEST_TYPE__IS_NOT_NULL &&
        find_column(proof, node->null_test->arg, &column) && scope_facts(proof->scope, column)->type_kind != 'c')
        set_non_null(proof, column);
}

/* ---- closing ---- */

static bool index_is_usable(const struct proof *proof, size_t relation, const struct facts_unique *unique)
{
    if (!unique->is_sort_unique || unique->relation_ord != proof->scope->relations[relation].facts->ord)
        return false;
    for (size_t i = 0; i < unique->nattnums; i++) {
        struct scope_column column;

        if (!proof_column(proof->scope, relation, unique->attnums[i], &column))
            return false;
        if (!proof_is_non_null(proof, column) && !unique->nulls_not_distinct)
            return false;
    }
    return true;
}

static size_t missing_columns(const struct proof *proof, size_t relation, const struct facts_unique *unique)
{
    size_t missing = 0;

    for (size_t i = 0; i < unique->nattnums; i++) {
        struct scope_column column;

        if (proof_column(proof->scope, relation, unique->attnums[i], &column))
            missing += !proof_is_known(proof, column);
    }
    return missing;
}

static void set_relation_known(struct proof *proof, size_t relation, const struct facts_unique *unique)
{
    proof->used[relation] = unique;
    for (size_t i = 0; i < proof->scope->relations[relation].ncolumns; i++)
        proof->known[proof->base[relation] + i] = true;
}

static bool close_equalities(struct proof *proof)
{
    bool changed = false;

    for (size_t i = 0; i < proof->nequalities; i++) {
        bool *a = &proof->known[column_id(proof, proof->equalities[i].a)];
        bool *b = &proof->known[column_id(proof, proof->equalities[i].b)];

        changed |= *a != *b;
        *a = *b = *a || *b;
    }
    return changed;
}

static bool close_relations(struct proof *proof)
{
    const struct pgseek_facts *facts = proof->scope->facts;
    bool changed = false;

    for (size_t r = 0; r < proof->scope->nrelations; r++) {
        for (size_t i = 0; i < facts->nuniques && !proof->used[r]; i++) {
            const struct facts_unique *unique = &facts->uniques[i];

            if (!index_is_usable(proof, r, unique) || missing_columns(proof, r, unique) > 0)
                continue;
            set_relation_known(proof, r, unique);
            changed = true;
        }
    }
    return changed;
}

static void conclude(struct proof *proof)
{
    bool changed = true;

    while (changed) {
        changed = close_equalities(proof);
        changed |= close_relations(proof);
    }
}

void proof_assume(struct proof *proof, struct scope_column column)
{
    proof->known[column_id(proof, column)] = true;
    conclude(proof);
}

bool proof_is_total(const struct proof *proof)
{
    for (size_t r = 0; r < proof->scope->nrelations; r++)
        if (!proof->used[r])
            return false;
    return true;
}

bool proof_make(struct proof *proof, const struct scope *scope, const struct pgseek_description *description)
{
    struct arena *arena = scope->arena;

    *proof = (struct proof){.scope = scope};
    proof->base = arena_array(arena, scope->nrelations, sizeof *proof->base);
    proof->used = arena_array(arena, scope->nrelations, sizeof *proof->used);
    if (!proof->base)
        return false;
    for (size_t r = 0; r < scope->nrelations; r++) {
        proof->base[r] = proof->ncolumns;
        proof->ncolumns += scope->relations[r].ncolumns;
    }
    proof->known = arena_array(arena, proof->ncolumns, sizeof *proof->known);
    proof->non_null = arena_array(arena, proof->ncolumns, sizeof *proof->non_null);
    proof->by_statement = arena_array(arena, proof->ncolumns, sizeof *proof->by_statement);
    proof->equalities = arena_array(arena, scope->nconjuncts + scope->nmerged, sizeof *proof->equalities);
    if (!proof->base || !proof->used || !proof->known || !proof->non_null || !proof->by_statement || !proof->equalities)
        return false;
    for (size_t r = 0; r < scope->nrelations; r++)
        for (size_t i = 0; i < scope->relations[r].ncolumns; i++)
            proof->non_null[proof->base[r] + i] = scope->relations[r].columns[i].not_null;
    for (size_t i = 0; i < scope->nconjuncts; i++)
        read_conjunct(proof, scope->conjuncts[i], description);
    for (size_t i = 0; i < scope->nmerged && !scope->facts->has_foreign_operators; i++)
        add_equality(proof, scope->merged[i].a, scope->merged[i].b);
    conclude(proof);
    return true;
}

/* ---- choosing tie-breakers ---- */

/* Whether the columns that are missing can be selected, sorted and sent. */
static bool index_can_travel(const struct proof *proof, size_t relation, const struct facts_unique *unique)
{
    for (size_t i = 0; i < unique->nattnums; i++) {
        struct scope_column column;

        if (!proof_column(proof->scope, relation, unique->attnums[i], &column))
            return false;
        const struct facts_column *facts = scope_facts(proof->scope, column);
        if (!proof_is_known(proof, column) && (!facts->may_select || !facts->has_binary))
            return false;
    }
    return true;
}

/* How many relations would be known if the index's columns were. */
static size_t relations_won(const struct proof *proof, size_t relation, const struct facts_unique *unique)
{
    struct proof trial = *proof;
    size_t nrelations = proof->scope->nrelations;
    size_t won = 0;

    trial.known = arena_array(proof->scope->arena, proof->ncolumns, sizeof *trial.known);
    trial.used = arena_array(proof->scope->arena, nrelations, sizeof *trial.used);
    if (!trial.known || !trial.used)
        return 0;
    memcpy(trial.known, proof->known, proof->ncolumns * sizeof *trial.known);
    for (size_t r = 0; r < nrelations; r++)
        trial.used[r] = proof->used[r];
    set_relation_known(&trial, relation, unique);
    conclude(&trial);
    for (size_t r = 0; r < nrelations; r++)
        won += trial.used[r] != NULL;
    return won;
}

struct candidate {
    const struct facts_unique *unique;
    size_t relation;
    size_t won;
    size_t missing;
};

static bool is_better(const struct candidate *a, const struct candidate *b)
{
    if (!b->unique)
        return true;
    if (a->won != b->won)
        return a->won > b->won;
    if (a->missing != b->missing)
        return a->missing < b->missing;
    return a->relation == b->relation && a->unique->is_primary && !b->unique->is_primary;
}

static void look_at_relation(const struct proof *proof, size_t relation, struct candidate *best, bool *denied)
{
    const struct pgseek_facts *facts = proof->scope->facts;

    for (size_t i = 0; i < facts->nuniques; i++) {
        struct candidate candidate = {.unique = &facts->uniques[i], .relation = relation};

        if (!index_is_usable(proof, relation, candidate.unique))
            continue;
        if (!index_can_travel(proof, relation, candidate.unique)) {
            *denied = true;
            continue;
        }
        candidate.won = relations_won(proof, relation, candidate.unique);
        candidate.missing = missing_columns(proof, relation, candidate.unique);
        if (is_better(&candidate, best))
            *best = candidate;
    }
}

const struct facts_unique *proof_next_key(struct proof *proof, size_t preferred, size_t *relation, bool *denied)
{
    struct candidate best = {0};

    *denied = false;
    if (preferred < proof->scope->nrelations && !proof->used[preferred])
        look_at_relation(proof, preferred, &best, denied);
    bool decided = best.unique != NULL;
    for (size_t r = 0; r < proof->scope->nrelations && !decided; r++)
        if (!proof->used[r])
            look_at_relation(proof, r, &best, denied);
    *relation = best.relation;
    return best.unique;
}
