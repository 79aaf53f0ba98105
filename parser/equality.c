/* equality.c - which conditions of a statement equate columns, pin them to one value, or rule NULL out.
 *
 * It fills the first marks of a proof (proof.h) and draws no conclusions. Equality counts only where the server
 * compares values of one type under one deterministic collation: a cast could make two values one. */
#include "proof.h"

#include "oid.h"

#include <string.h>

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

/* The base type, if its order holds those values equal that `=` does: for box, say, `=` compares areas. 0: it does not,
 * or the column is an expression. */
static uint32_t plain_type(const struct facts_column *column)
{
    const struct facts_type *type = column ? column->type : NULL;

    if (!type || !type->operator[FACTS_EQUAL].name || !column->deterministic)
        return 0;
    bool is_plain =
        !strcmp(type->operator[FACTS_EQUAL].name, "=") && !strcmp(type->operator[FACTS_EQUAL].schema, "pg_catalog");
    return is_plain ? type->oid : 0;
}

static bool are_comparable(const struct facts_column *a, const struct facts_column *b)
{
    return comparable(plain_type(a), plain_type(b)) && a->collation_oid == b->collation_oid;
}

static bool is_equality(const struct proof *proof, const PgQuery__Node *node)
{
    if (node->node_case != PG_QUERY__NODE__NODE_A_EXPR || node->a_expr->kind != PG_QUERY__A__EXPR__KIND__AEXPR_OP)
        return false;
    const char *name = tree_builtin_name(node->a_expr->name, node->a_expr->n_name);
    if (!name || strcmp(name, "=") != 0)
        return false;
    return tree_is_qualified(node->a_expr->n_name) || !facts_has_foreign_operators(proof->scope->facts);
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
    uint32_t oid = plain_type(column);

    if (!node || !oid)
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

/* ---- single conditions ---- */

/* Where a condition holds: its names mean relations of [first, end), and what it says of a column counts for those of
 * [about_first, about_end). */
struct place {
    struct proof_case *in; /* the case whose own condition it is */
    size_t first, end;
    size_t about_first, about_end;
};

static bool find_column(const struct proof *proof, const struct place *place, const PgQuery__Node *node,
                        struct scope_column *out)
{
    const PgQuery__ColumnRef *column = tree_column(node);

    return column && scope_find(proof->scope, column, out) == SCOPE_FOUND && out->relation >= place->first &&
           out->relation < place->end;
}

static const struct facts_column *column_facts(const struct proof *proof, struct scope_column column)
{
    return scope_attribute(proof->scope, column)->facts;
}

/* A condition counts in a case when all rows of the case meet it. */
static bool holds_in(const struct proof *proof, const struct place *place, const struct proof_case *in)
{
    if (place->in)
        return place->in == in;
    if (place->first < in->first || place->end > in->end)
        return false;
    for (size_t i = 0; i < proof->scope->njoins; i++) {
        const struct scope_join *join = &proof->scope->joins[i];

        if (join->first >= in->first && join->end <= in->end && proof_join_extends(join, place->first, place->end))
            return false;
    }
    return true;
}

/* The condition is not true of a NULL. So in every row the column is not NULL, or its relation is extended. */
static void rule_out_null(struct proof *proof, const struct place *place, struct scope_column column)
{
    size_t id = proof_column_id(proof, column);

    if (column.relation < place->about_first || column.relation >= place->about_end)
        return;
    proof->by_statement[id] = true;
    proof->non_null[id] |= holds_in(proof, place, &proof->cases[0]);
}

static void add_equality(struct proof *proof, const struct place *place, struct scope_column a, struct scope_column b)
{
    if (!are_comparable(column_facts(proof, a), column_facts(proof, b)))
        return;
    rule_out_null(proof, place, a);
    rule_out_null(proof, place, b);
    proof->is_compared[proof_column_id(proof, a)] = true;
    proof->is_compared[proof_column_id(proof, b)] = true;
    struct scope_column *pair =
        place->in ? place->in->equalities[place->in->nequalities++] : proof->equalities[proof->nequalities++];
    pair[0] = a;
    pair[1] = b;
}

static void pin(struct proof *proof, const struct place *place, struct scope_column column)
{
    rule_out_null(proof, place, column);
    proof->is_compared[proof_column_id(proof, column)] = true;
    for (size_t i = 0; i < proof->ncases; i++) {
        struct proof_case *in = &proof->cases[i];
        size_t id = proof_column_id(proof, column);

        if (holds_in(proof, place, in) && id >= in->first_column && id < in->first_column + in->ncolumns)
            in->known[id - in->first_column] = true;
    }
}

/* ---- columns of a level around this one: for one row of it they are constants ---- */

static bool is_named_here(const struct scope *scope, const char *qualifier)
{
    for (size_t i = 0; i < scope->nrelations; i++)
        if (!strcmp(scope->relations[i].qualifier, qualifier))
            return true;
    return scope->has_hidden_names;
}

/* The column that alias.name means if not one of this level. */
static const struct scope_attribute *find_around(const struct scope *scope, const PgQuery__Node *node)
{
    const PgQuery__ColumnRef *column = tree_column(node);
    const char *qualifier = column && column->n_fields == 2 ? tree_column_part(column, 0) : NULL;
    struct scope_column found;

    if (!qualifier || is_named_here(scope, qualifier))
        return NULL;
    for (scope = scope->around; scope; scope = scope->around)
        if (is_named_here(scope, qualifier))
            return scope_find(scope, column, &found) == SCOPE_FOUND ? scope_attribute(scope, found) : NULL;
    return NULL;
}

static bool pins_from_around(struct proof *proof, const PgQuery__Node *node, const struct facts_column *column)
{
    const struct scope_attribute *attribute = find_around(proof->scope, node);

    if (!attribute || !column || !are_comparable(column, attribute->facts))
        return false;
    struct scope_rest rest = {.relation = attribute->relation, .column = attribute->facts};
    proof->around_rests = scope_rests_join(proof->scope->arena, proof->around_rests, &rest);
    return true;
}

static void read_equality(struct proof *proof, const struct place *place, const PgQuery__AExpr *expr,
                          const struct pgseek_description *description)
{
    struct scope_column left;
    struct scope_column right;
    bool has_left = find_column(proof, place, expr->lexpr, &left);
    bool has_right = find_column(proof, place, expr->rexpr, &right);

    if (has_left && has_right) {
        add_equality(proof, place, left, right);
        return;
    }
    if (!has_left && !has_right)
        return;
    struct scope_column column = has_left ? left : right;
    const PgQuery__Node *other = has_left ? expr->rexpr : expr->lexpr;
    const struct facts_column *facts = column_facts(proof, column);
    if (pins(other, facts, description) || pins_from_around(proof, other, facts))
        pin(proof, place, column);
}

/* IS NOT NULL is false for some composite values, and never true for NULL. */
static void read_condition(struct proof *proof, const struct place *place, const PgQuery__Node *node,
                           const struct pgseek_description *description)
{
    struct scope_column column;

    if (is_equality(proof, node))
        read_equality(proof, place, node->a_expr, description);
    if (node->node_case == PG_QUERY__NODE__NODE_NULL_TEST &&
        node->null_test->nulltesttype == PG_QUERY__NULL_TEST_TYPE__IS_NOT_NULL &&
        find_column(proof, place, node->null_test->arg, &column))
        rule_out_null(proof, place, column);
}

/* ---- all of them ---- */

/* What ON says of the kept side holds only for rows that find a partner. */
static void read_join(struct proof *proof, struct proof_case *in, const struct pgseek_description *description)
{
    const struct scope_join *join = in->join;
    struct place place = {in, join->first, join->end, in->first, in->end};

    for (size_t i = 0; i < join->nconjuncts; i++)
        read_condition(proof, &place, join->conjuncts[i], description);
    for (size_t i = 0; i < join->nmerged && !facts_has_foreign_operators(proof->scope->facts); i++)
        add_equality(proof, &place, join->merged[i][0], join->merged[i][1]);
}

void proof_read_conditions(struct proof *proof, const struct pgseek_description *description)
{
    const struct scope *scope = proof->scope;

    for (size_t i = 0; i < scope->nconjuncts; i++) {
        const struct scope_conjunct *conjunct = &scope->conjuncts[i];
        struct place place = {NULL, conjunct->first, conjunct->end, conjunct->first, conjunct->end};

        read_condition(proof, &place, conjunct->node, description);
    }
    for (size_t i = 0; i < scope->nmerged && !facts_has_foreign_operators(scope->facts); i++) {
        const struct scope_column *pair = scope->merged[i];
        struct place place = {NULL, pair[0].relation, pair[1].relation + 1, pair[0].relation, pair[1].relation + 1};

        add_equality(proof, &place, pair[0], pair[1]);
    }
    for (size_t i = 1; i < proof->ncases; i++)
        read_join(proof, &proof->cases[i], description);
}
