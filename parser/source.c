/* source.c - a sub-select, CTE or view as a relation: its columns and the keys that its own proof gives.
 *
 * See source.h. Outputs without a written name keep none: the server's rules for implicit names are its own. */
#include "source.h"

#include <string.h>

/* More columns than the server lets a result have. */
#define MAX_OUTPUTS 1664

/* ---- expressions ---- */

static bool scope_has_window(const struct scope *scope)
{
    return scope_hides_window(scope) != PGSEEK_REASON_NONE;
}

struct window_search {
    const struct scope *scope;
    bool in_query; /* a sub-select: it may read what the statement's WITH gives */
    bool found;
};

static enum tree_step window_visit(ProtobufCMessage *message, void *context)
{
    struct window_search *search = context;
    struct scope_column column;

    if (tree_is(message, &pg_query__sub_link__descriptor) && !search->in_query) {
        struct window_search inner = {search->scope, true, false};

        for (size_t i = 0; i < search->scope->nwith && !search->found; i++) {
            const PgQuery__WithClause *with = search->scope->with[i];

            for (size_t j = 0; j < with->n_ctes && !inner.found; j++)
                tree_walk(&with->ctes[j]->base, window_visit, &inner);
            search->found |= inner.found;
        }
    }
    if (tree_is(message, &pg_query__func_call__descriptor))
        search->found |= ((PgQuery__FuncCall *)message)->over != NULL;
    if (tree_is(message, &pg_query__column_ref__descriptor)) {
        enum scope_found found = scope_find(search->scope, (PgQuery__ColumnRef *)message, &column);

        search->found |= found == SCOPE_FOUND && scope_attribute(search->scope, column)->is_window;
        search->found |= found == SCOPE_OPAQUE && scope_has_window(search->scope);
    }
    return search->found ? TREE_STOP : TREE_DEEPER;
}

/* Whether a value depends on a window function; rather too often than not. */
static bool depends_on_window(const struct scope *scope, PgQuery__Node *node)
{
    struct window_search search = {.scope = scope};

    tree_walk(&node->base, window_visit, &search);
    return search.found;
}

static bool is_literal(const PgQuery__Node *node)
{
    return node->node_case == PG_QUERY__NODE__NODE_A_CONST && !node->a_const->isnull;
}

static bool is_count(const struct scope *scope, const PgQuery__FuncCall *call)
{
    const char *name = tree_builtin_name(call->funcname, call->n_funcname);

    if (!name || strcmp(name, "count") != 0)
        return false;
    const struct facts_function *function = facts_ask_function(scope->facts, name);
    return function && function->is_builtin;
}

static bool is_never_null(const struct scope *scope, const PgQuery__Node *node)
{
    if (node->node_case == PG_QUERY__NODE__NODE_FUNC_CALL)
        return is_count(scope, node->func_call);
    if (node->node_case != PG_QUERY__NODE__NODE_COALESCE_EXPR)
        return is_literal(node);
    for (size_t i = 0; i < node->coalesce_expr->n_args; i++)
        if (is_literal(node->coalesce_expr->args[i]))
            return true;
    return false;
}

/* ---- outputs ---- */

static bool add_output(struct source *source, struct source_output output)
{
    if (source->noutputs == MAX_OUTPUTS)
        return false;
    source->outputs[source->noutputs++] = output;
    return true;
}

/* Everything that FROM shows. False when there may be more than is known. */
static bool add_visible(struct source *source)
{
    const struct scope *scope = &source->scope;
    bool added = true;

    for (size_t i = 0; i < scope->nvisible; i++) {
        const struct scope_visible *shown = &scope->visible[i];

        added &= add_output(source, (struct source_output){shown->name, NULL, shown->is_column, shown->column});
    }
    return added && scope->star_is_known;
}

static bool add_relation(struct source *source, size_t r)
{
    const struct scope_relation *relation = &source->scope.relations[r];
    bool added = true;

    for (size_t i = 0; i < relation->nattributes; i++)
        added &= add_output(source, (struct source_output){relation->attributes[i].name, NULL, true, {r, i}});
    return added && !relation->is_opaque;
}

static bool add_star(struct source *source, const PgQuery__ColumnRef *column)
{
    size_t n = column->n_fields;

    if (n == 1)
        return add_visible(source);
    const char *qualifier = tree_column_part(column, n - 2);
    const char *schema = n == 3 ? tree_column_part(column, 0) : NULL;
    if (n > 3 || !qualifier || (n == 3 && !schema))
        return false;
    size_t r = scope_find_relation(&source->scope, schema, qualifier);
    return r < source->scope.nrelations && add_relation(source, r);
}

/* `(value).*`: as many columns as the type has. */
static bool is_expansion(const PgQuery__Node *node)
{
    const PgQuery__AIndirection *value =
        node->node_case == PG_QUERY__NODE__NODE_A_INDIRECTION ? node->a_indirection : NULL;

    return value && value->n_indirection &&
           value->indirection[value->n_indirection - 1]->node_case == PG_QUERY__NODE__NODE_A_STAR;
}

static bool add_target(struct source *source, const PgQuery__ResTarget *target)
{
    const PgQuery__ColumnRef *column = tree_column(target->val);
    struct source_output output = {.name = *target->name ? target->name : NULL, .node = target->val};

    if (column && tree_is_star(column))
        return add_star(source, column);
    if (is_expansion(target->val))
        return false;
    if (column && !output.name)
        output.name = tree_column_part(column, column->n_fields - 1);
    output.is_column = column && scope_find(&source->scope, column, &output.column) == SCOPE_FOUND;
    return add_output(source, output);
}

static bool make_outputs(struct source *source)
{
    const PgQuery__SelectStmt *select = source->select;
    size_t widest = source->scope.nvisible + 1;
    bool is_certain = true;

    for (size_t r = 0; r < source->scope.nrelations; r++)
        widest += source->scope.relations[r].nattributes;
    size_t room = widest * (select->n_target_list + 1);
    source->outputs =
        arena_array(source->scope.arena, room < MAX_OUTPUTS ? room : MAX_OUTPUTS, sizeof *source->outputs);
    if (!source->outputs)
        return false;
    for (size_t i = 0; i < select->n_target_list; i++) {
        is_certain &= add_target(source, select->target_list[i]->res_target);
        if (is_certain)
            source->ncertain = source->noutputs;
    }
    return true;
}

/* ---- attributes ---- */

static bool has_grouping_sets(const PgQuery__SelectStmt *select)
{
    for (size_t i = 0; i < select->n_group_clause; i++)
        if (select->group_clause[i]->node_case == PG_QUERY__NODE__NODE_GROUPING_SET)
            return true;
    return false;
}

static struct scope_attribute make_attribute(const struct source *source, const struct source_output *output)
{
    bool may_null = has_grouping_sets(source->select);
    struct scope_attribute attribute = {.name = output->name, .is_computed = true};

    if (!output->is_column) {
        attribute.is_window =
            output->node ? depends_on_window(&source->scope, output->node) : scope_has_window(&source->scope);
        attribute.not_null = output->node && !may_null && is_never_null(&source->scope, output->node);
        return attribute;
    }
    attribute = *scope_attribute(&source->scope, output->column);
    attribute.name = output->name;
    attribute.not_null = !may_null && proof_is_non_null(&source->proof, output->column);
    attribute.rests = attribute.not_null ? proof_non_null_rests(&source->proof, output->column) : NULL;
    return attribute;
}

static bool make_attributes(struct scope_relation *relation, struct source *source)
{
    struct scope_attribute *attributes = arena_array(source->scope.arena, source->noutputs + 1, sizeof *attributes);

    if (!attributes)
        return false;
    relation->has_window = scope_has_window(&source->scope);
    for (size_t i = 0; i < source->noutputs; i++) {
        attributes[i] = make_attribute(source, &source->outputs[i]);
        relation->has_window |= attributes[i].is_window;
    }
    relation->attributes = attributes;
    relation->nattributes = source->noutputs;
    relation->ncertain = source->ncertain;
    relation->is_opaque |= source->ncertain < source->noutputs || !source->noutputs;
    return true;
}

/* ---- plain selects ---- */

static bool set_opaque(struct scope_relation *relation)
{
    relation->is_opaque = true;
    relation->has_window = true;
    relation->why = PGSEEK_REASON_TOO_LARGE;
    return true;
}

static bool make_select(struct scope_relation *relation, const struct scope *outer, const PgQuery__SelectStmt *select,
                        const PgQuery__WithClause *const *with, size_t nwith)
{
    struct source *source = arena_alloc(outer->arena, sizeof *source);

    if (!source)
        return false;
    source->select = select;
    enum pgseek_reason reason = scope_make_within(&source->scope, outer, select, with, nwith);
    if (reason == PGSEEK_REASON_TOO_LARGE)
        return set_opaque(relation);
    return reason == PGSEEK_REASON_NONE && proof_make(&source->proof, &source->scope, outer->description) &&
           make_outputs(source) && make_attributes(relation, source) && source_find_keys(relation, source);
}

/* ---- VALUES ---- */

static bool make_values(struct scope_relation *relation, struct arena *arena, const PgQuery__SelectStmt *select)
{
    const PgQuery__Node *first = select->values_lists[0];
    size_t count = first->node_case == PG_QUERY__NODE__NODE_LIST ? first->list->n_items : 0;
    struct scope_attribute *attributes = arena_array(arena, count + 1, sizeof *attributes);

    if (!attributes)
        return false;
    for (size_t i = 0; i < count; i++)
        attributes[i] = (struct scope_attribute){.name = arena_format(arena, "column%zu", i + 1), .is_computed = true};
    relation->attributes = attributes;
    relation->nattributes = count;
    relation->ncertain = count;
    relation->why = PGSEEK_REASON_FROM_FUNCTION;
    return !arena->failed;
}

/* ---- set operations ---- */

bool source_key_of_all(struct scope_relation *relation, struct arena *arena, const char *name)
{
    struct scope_key *key = arena_alloc(arena, sizeof *key);
    size_t *columns = arena_array(arena, relation->nattributes + 1, sizeof *columns);

    if (!key || !columns)
        return false;
    for (size_t i = 0; i < relation->nattributes; i++)
        columns[i] = i;
    *key = (struct scope_key){.columns = columns, .ncolumns = relation->nattributes, .name = name};
    relation->keys = key;
    relation->nkeys = 1;
    return true;
}

/* A column of both arms: named by the first one. The type is a common one, so it is no arm's column. */
static struct scope_attribute combine(const struct scope *outer, const PgQuery__SelectStmt *select,
                                      const struct scope_attribute *left, const struct scope_attribute *right)
{
    bool right_counts = select->op != PG_QUERY__SET_OPERATION__SETOP_EXCEPT;
    struct scope_attribute attribute = {.name = left->name, .is_computed = true};

    attribute.not_null = left->not_null && (!right_counts || (right && right->not_null));
    attribute.is_window = left->is_window || !right || right->is_window;
    if (attribute.not_null)
        attribute.rests = scope_rests_join(outer->arena, left->rests, right_counts && right ? right->rests : NULL);
    return attribute;
}

static bool make_set(struct scope_relation *relation, const struct scope *outer, const PgQuery__SelectStmt *select,
                     const PgQuery__WithClause *const *with, size_t nwith)
{
    struct scope_relation left = {.qualifier = ""};
    struct scope_relation right = {.qualifier = ""};

    if (!source_make(&left, outer, select->larg, with, nwith) || !source_make(&right, outer, select->rarg, with, nwith))
        return false;
    struct scope_attribute *attributes = arena_array(outer->arena, left.nattributes + 1, sizeof *attributes);
    if (!attributes)
        return false;
    bool is_paired = !left.is_opaque && !right.is_opaque && left.nattributes == right.nattributes;
    relation->has_window = left.has_window || right.has_window;
    for (size_t i = 0; i < left.nattributes; i++)
        attributes[i] = combine(outer, select, &left.attributes[i], is_paired ? &right.attributes[i] : NULL);
    for (size_t i = 0; i < left.nattributes && !is_paired; i++)
        attributes[i].is_window = relation->has_window;
    relation->attributes = attributes;
    relation->nattributes = left.nattributes;
    relation->ncertain = left.ncertain;
    relation->is_opaque = left.is_opaque;
    relation->why = PGSEEK_REASON_NO_TOTAL_ORDER;
    if (select->all || left.is_opaque)
        return true;
    return source_key_of_all(relation, outer->arena, "UNION, INTERSECT, EXCEPT");
}

/* ---- all of them ---- */

/* LIMIT 1, or 0. */
static bool has_one_row(const PgQuery__SelectStmt *select)
{
    const PgQuery__Node *count = select->limit_count;

    return count && select->limit_option != PG_QUERY__LIMIT_OPTION__LIMIT_OPTION_WITH_TIES && is_literal(count) &&
           count->a_const->val_case == PG_QUERY__A__CONST__VAL_IVAL && count->a_const->ival->ival <= 1;
}

static bool set_one_row(struct scope_relation *relation, struct arena *arena)
{
    struct scope_key *key = arena_alloc(arena, sizeof *key);

    if (!key)
        return false;
    *key = (struct scope_key){.name = "LIMIT 1"};
    relation->keys = key;
    relation->nkeys = 1;
    return true;
}

static bool make_any(struct scope_relation *relation, const struct scope *outer, const PgQuery__SelectStmt *select,
                     const PgQuery__WithClause *const *with, size_t nwith)
{
    if (select->n_values_lists)
        return make_values(relation, outer->arena, select);
    if (select->larg && select->rarg)
        return make_set(relation, outer, select, with, nwith);
    return make_select(relation, outer, select, with, nwith);
}

bool source_make(struct scope_relation *relation, const struct scope *outer, const PgQuery__SelectStmt *select,
                 const PgQuery__WithClause *const *with, size_t nwith)
{
    const PgQuery__WithClause **seen = arena_array(outer->arena, nwith + 1, sizeof *seen);
    size_t nseen = 0;

    if (!seen)
        return false;
    if (!outer->budget->relations)
        return set_opaque(relation);
    outer->budget->relations--;
    if (select->with_clause)
        seen[nseen++] = select->with_clause;
    for (size_t i = 0; i < nwith; i++)
        seen[nseen++] = with[i];
    if (!make_any(relation, outer, select, seen, nseen))
        return false;
    return has_one_row(select) ? set_one_row(relation, outer->arena) : true;
}
