/* relation_function.c - a function in FROM as a relation: how many columns it gives, and the number of its rows.
 *
 * See relation.h. What a function returns is not asked of the catalog: most are opaque, a few of the server's own are
 * known. */
#include "relation.h"

#include <string.h>

/* Columns of `AS t(a int, b text)`: all that there are. */
static bool read_definitions(struct scope_relation *relation, struct arena *arena, PgQuery__Node *const *definitions,
                             size_t count)
{
    struct scope_attribute *attributes = arena_array(arena, count + 1, sizeof *attributes);

    if (!attributes)
        return false;
    for (size_t i = 0; i < count; i++)
        attributes[i] = (struct scope_attribute){.name = definitions[i]->column_def->colname, .is_computed = true};
    relation->attributes = attributes;
    relation->nattributes = count;
    relation->ncertain = count;
    relation->is_opaque = false;
    return true;
}

/* Types whose arrays unnest to one column. */
static const struct {
    const char *name;
    uint32_t array_oid;
} scalars[] = {{"int2", 1005},      {"int4", 1007},        {"int8", 1016},   {"text", 1009},
               {"varchar", 1015},   {"numeric", 1231},     {"uuid", 2951},   {"date", 1182},
               {"timestamp", 1115}, {"timestamptz", 1185}, {"float8", 1022}, {"bool", 1000}};

static bool is_array_oid(uint32_t oid)
{
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
        if (scalars[i].array_oid == oid)
            return true;
    return false;
}

static bool is_array_type(const PgQuery__TypeName *type)
{
    const char *name = type->n_array_bounds ? tree_builtin_name(type->names, type->n_names) : NULL;

    for (size_t i = 0; name && i < sizeof scalars / sizeof *scalars; i++)
        if (!strcmp(scalars[i].name, name))
            return true;
    return false;
}

static bool is_array_of_literals(const PgQuery__AArrayExpr *array)
{
    for (size_t i = 0; i < array->n_elements; i++)
        if (array->elements[i]->node_case != PG_QUERY__NODE__NODE_A_CONST)
            return false;
    return array->n_elements > 0;
}

/* Of tables that stand before; a bare name has no meaning yet. */
static bool is_array_column(const struct scope *scope, const PgQuery__ColumnRef *column)
{
    struct scope_column found;

    if (column->n_fields < 2 || scope_find(scope, column, &found) != SCOPE_FOUND)
        return false;
    const struct facts_column *facts = scope_attribute(scope, found)->facts;
    return facts && facts->type && is_array_oid(facts->type->oid);
}

static bool is_array(const struct scope *scope, const PgQuery__Node *node)
{
    const struct pgseek_description *description = scope->description;

    switch ((int)node->node_case) {
    case PG_QUERY__NODE__NODE_TYPE_CAST: return is_array_type(node->type_cast->type_name);
    case PG_QUERY__NODE__NODE_A_ARRAY_EXPR: return is_array_of_literals(node->a_array_expr);
    case PG_QUERY__NODE__NODE_COLUMN_REF: return is_array_column(scope, node->column_ref);
    case PG_QUERY__NODE__NODE_PARAM_REF: {
        size_t number = (size_t)node->param_ref->number;
        return description && number >= 1 && number <= description->nparams &&
               is_array_oid(description->param_oids[number - 1]);
    }
    default: return false;
    }
}

/* Whether the function is known to give one column: an array of rows would give more. */
static bool gives_one_column(const struct scope *scope, const PgQuery__FuncCall *call)
{
    static const char *const names[] = {"generate_series",  "generate_subscripts",      "regexp_split_to_table",
                                        "string_to_table",  "json_array_elements",      "jsonb_array_elements",
                                        "json_object_keys", "json_array_elements_text", "jsonb_array_elements_text",
                                        "jsonb_object_keys"};
    const char *name = tree_builtin_name(call->funcname, call->n_funcname);
    const struct facts_function *function = name ? facts_ask_function(scope->facts, name) : NULL;

    if (!function || !function->is_builtin)
        return false;
    if (!strcmp(name, "unnest"))
        return call->n_args == 1 && is_array(scope, call->args[0]);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

/* WITH ORDINALITY: the last column is the row's number within the call. Without column aliases its name is certain, and
 * with them its place has to be. */
static bool read_ordinality(struct scope_relation *relation, const struct scope *scope,
                            const PgQuery__RangeFunction *item, const PgQuery__FuncCall *call)
{
    struct scope_attribute *attributes = arena_array(scope->arena, 2, sizeof *attributes);
    struct scope_key *key = arena_alloc(scope->arena, sizeof *key);
    size_t *column = arena_alloc(scope->arena, sizeof *column);
    bool is_pair = call && item->n_functions == 1 && !item->is_rowsfrom && gives_one_column(scope, call);

    if (!attributes || !key || !column)
        return false;
    if (!item->ordinality || (item->alias && item->alias->n_colnames && !is_pair))
        return true;
    relation->nattributes = is_pair ? 2 : 1;
    relation->is_opaque = !is_pair;
    *column = relation->nattributes - 1;
    attributes[0] = (struct scope_attribute){.is_computed = true};
    attributes[*column] = (struct scope_attribute){.name = "ordinality", .not_null = true, .is_computed = true};
    *key = (struct scope_key){.columns = column, .ncolumns = 1, .name = "ordinality"};
    relation->attributes = attributes;
    relation->keys = key;
    relation->nkeys = 1;
    return true;
}

bool relation_read_function(struct scope_relation *relation, const struct scope *scope,
                            const PgQuery__RangeFunction *item)
{
    const PgQuery__Node *first = item->n_functions ? item->functions[0] : NULL;
    const PgQuery__Node *call = NULL;

    if (first && first->node_case == PG_QUERY__NODE__NODE_LIST && first->list->n_items)
        call = first->list->items[0];
    bool is_call = call && call->node_case == PG_QUERY__NODE__NODE_FUNC_CALL;
    if (is_call)
        relation->qualifier = tree_string(call->func_call->funcname[call->func_call->n_funcname - 1]);
    relation->is_lateral = true;
    relation->is_opaque = true;
    relation->why = PGSEEK_REASON_FROM_FUNCTION;
    if (!read_ordinality(relation, scope, item, is_call ? call->func_call : NULL))
        return false;
    if (item->n_coldeflist && !item->ordinality)
        return read_definitions(relation, scope->arena, item->coldeflist, item->n_coldeflist);
    return true;
}
