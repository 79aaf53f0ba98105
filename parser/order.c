/* order.c - the sort keys of a page: what ORDER BY means.
 *
 * See order.h. A bare name means an output column first and an input column only when there is none (GROUP BY has it
 * the other way round); an integer is a position; everything else belongs to the input. */
#include "order.h"

#include "tie.h"

#include <string.h>

/* ---- what an item means ---- */

static bool is_set(const struct order *order)
{
    return order->form == QUERY_SET;
}

static struct order_key expression_key(PgQuery__Node *node, struct cut_range text)
{
    return (struct order_key){.node = node, .text = text, .output = SIZE_MAX};
}

enum pgseek_reason order_output(const struct order *order, size_t index, struct order_key *key, bool *sorts)
{
    const struct output *output = &order->outputs.item[index];

    *sorts = true;
    *key = (struct order_key){.is_column = output->is_column,
                              .column = output->column,
                              .node = output->node,
                              .written = output->written,
                              .output = index};
    if (is_set(order))
        return PGSEEK_REASON_NONE;
    if (output->node && output->item < order->query->cut.ntargets)
        key->text = order->query->cut.targets[output->item];
    return output->is_column || output->node || output->written ? PGSEEK_REASON_NONE : PGSEEK_REASON_STAR;
}

static enum pgseek_reason input_column(const struct order *order, PgQuery__Node *node, struct cut_range text,
                                       struct order_key *key)
{
    struct scope_column column;

    if (is_set(order) && order->total != ORDER_ROWS)
        return PGSEEK_REASON_ORDER_EXPRESSION;
    *key = expression_key(node, text);
    switch (scope_find(order->scope, node->column_ref, &column)) {
    case SCOPE_FOUND:
        key->is_column = true;
        key->column = column;
        return PGSEEK_REASON_NONE;
    case SCOPE_OPAQUE: return PGSEEK_REASON_NONE;
    case SCOPE_AMBIGUOUS: return PGSEEK_REASON_ORDER_AMBIGUOUS;
    case SCOPE_MISSING: break;
    }
    return PGSEEK_REASON_SYSTEM_COLUMN;
}

/* Several output columns of a name are one when they are the same column or expression. */
static enum pgseek_reason named_output(const struct order *order, const char *name, struct order_key *key, bool *sorts,
                                       bool *found)
{
    *found = false;
    for (size_t i = 0; i < order->outputs.count; i++) {
        struct order_key candidate;

        if (!order->outputs.item[i].name || strcmp(order->outputs.item[i].name, name) != 0)
            continue;
        enum pgseek_reason reason = order_output(order, i, &candidate, sorts);
        if (*found && (reason != PGSEEK_REASON_NONE || !order_same_key(&candidate, key)))
            return PGSEEK_REASON_ORDER_AMBIGUOUS;
        if (reason != PGSEEK_REASON_NONE)
            return reason;
        if (!*found)
            *key = candidate;
        *found = true;
    }
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason bare_name(const struct order *order, PgQuery__Node *node, struct cut_range text,
                                    bool input_first, struct order_key *key, bool *sorts)
{
    const char *name = tree_column_part(node->column_ref, 0);
    struct scope_column column;
    bool found = false;

    if (input_first && scope_find(order->scope, node->column_ref, &column) != SCOPE_MISSING)
        return input_column(order, node, text, key);
    enum pgseek_reason reason = named_output(order, name, key, sorts, &found);
    if (reason != PGSEEK_REASON_NONE || found)
        return reason;
    return input_column(order, node, text, key);
}

static enum pgseek_reason position(struct order *order, const PgQuery__AConst *constant, struct order_key *key,
                                   bool *sorts)
{
    order->has_position = true;
    if (constant->isnull || constant->val_case != PG_QUERY__A__CONST__VAL_IVAL)
        return PGSEEK_REASON_ORDER_CONSTANT;
    int32_t number = constant->ival->ival;
    if (number < 1 || (size_t)number > order->outputs.count)
        return PGSEEK_REASON_ORDER_POSITION;
    return order_output(order, (size_t)number - 1, key, sorts);
}

enum pgseek_reason order_item(struct order *order, PgQuery__Node *node, struct cut_range text, bool input_first,
                              struct order_key *key, bool *sorts)
{
    const PgQuery__ColumnRef *column = tree_column(node);
    enum pgseek_reason reason = PGSEEK_REASON_NONE;

    *sorts = true;
    if (node->node_case == PG_QUERY__NODE__NODE_A_CONST)
        reason = position(order, node->a_const, key, sorts);
    else if (column && tree_is_star(column))
        reason = PGSEEK_REASON_SYSTEM_COLUMN;
    else if (column && column->n_fields == 1)
        reason = bare_name(order, node, text, input_first, key, sorts);
    else if (column)
        reason = input_column(order, node, text, key);
    else if (is_set(order))
        reason = PGSEEK_REASON_ORDER_EXPRESSION;
    else
        *key = expression_key(node, text);
    if (reason == PGSEEK_REASON_NONE && !key->is_column && tree_is_constant(key->node))
        *sorts = false;
    return reason;
}

/* ---- direction ---- */

/* A built-in type's comparison is found before any other of that name: its argument types fit exactly. */
static bool is_exact(const struct facts_type *type)
{
    static const uint32_t oids[] = {16, 17, 20, 21, 23, 25, 26, 700, 701, 1082, 1083, 1114, 1184, 1186, 1700, 2950};

    for (size_t i = 0; i < sizeof oids / sizeof *oids; i++)
        if (type->oid == oids[i])
            return true;
    return false;
}

static bool is_operator(const PgQuery__SortBy *sort, const struct facts_operator *operator)
{
    const char *name = tree_string(sort->use_op[sort->n_use_op - 1]);
    const char *schema = sort->n_use_op > 1 ? tree_string(sort->use_op[sort->n_use_op - 2]) : "pg_catalog";

    return operator->name && name && schema && !strcmp(name, operator->name) && !strcmp(schema, operator->schema);
}

/* USING is understood only when it is certain to name the type's default order. */
static enum pgseek_reason using_direction(const struct order *order, const PgQuery__SortBy *sort,
                                          const struct facts_type *type, bool *descending)
{
    if (!type || !sort->n_use_op)
        return PGSEEK_REASON_ORDER_OPERATOR;
    bool is_bare = sort->n_use_op == 1;
    if (is_bare && (!is_exact(type) || facts_has_foreign_operators(order->scope->facts)))
        return PGSEEK_REASON_ORDER_OPERATOR;
    *descending = is_operator(sort, &type->operator[FACTS_GREATER]);
    return *descending || is_operator(sort, &type->operator[FACTS_LESS]) ? PGSEEK_REASON_NONE
                                                                         : PGSEEK_REASON_ORDER_OPERATOR;
}

/* The type that is known without a probe. */
static const struct facts_type *early_type(const struct order *order, const struct order_key *key)
{
    const struct scope_attribute *attribute = key->is_column ? scope_attribute(order->scope, key->column) : NULL;

    if (attribute && attribute->facts)
        return attribute->facts->type;
    uint32_t oid = key->output != SIZE_MAX ? order->outputs.item[key->output].type_oid : 0;
    return oid ? facts_ask_type(order->scope->facts, oid) : NULL;
}

static enum pgseek_reason set_direction(const struct order *order, const PgQuery__SortBy *sort, struct order_key *key)
{
    enum pgseek_reason reason = PGSEEK_REASON_NONE;

    key->descending = sort->sortby_dir == PG_QUERY__SORT_BY_DIR__SORTBY_DESC;
    if (sort->sortby_dir == PG_QUERY__SORT_BY_DIR__SORTBY_USING)
        reason = using_direction(order, sort, early_type(order, key), &key->descending);
    key->nulls_first = sort->sortby_nulls == PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_FIRST ||
                       (sort->sortby_nulls != PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_LAST && key->descending);
    return reason;
}

/* ---- ORDER BY ---- */

static enum pgseek_reason read_sort(struct order *order, size_t i, struct order_key *key, bool *sorts)
{
    const PgQuery__SortBy *sort = order->query->level->sort_clause[i]->sort_by;
    struct cut_range text = i < order->query->cut.nsorts ? order->query->cut.sorts[i] : (struct cut_range){0};
    enum pgseek_reason reason = order_item(order, sort->node, text, false, key, sorts);

    return reason == PGSEEK_REASON_NONE && *sorts ? set_direction(order, sort, key) : reason;
}

static bool is_on_item(const struct order *order, const struct order_key *key)
{
    for (size_t i = 0; i < order->ngroups; i++)
        if (order_same_key(&order->groups[i], key))
            return true;
    return false;
}

/* The first items are DISTINCT ON's own; what follows chooses the row of each group and is no key. */
static enum pgseek_reason read_on_sorts(struct order *order)
{
    const struct cut *cut = &order->query->cut;
    enum pgseek_reason reason = PGSEEK_REASON_NONE;

    for (size_t i = 0; i < cut->nsorts && reason == PGSEEK_REASON_NONE; i++) {
        struct order_key key;
        bool sorts;

        reason = read_sort(order, i, &key, &sorts);
        if (reason == PGSEEK_REASON_NONE && (!sorts || !is_on_item(order, &key))) {
            if (i == 0)
                return PGSEEK_REASON_DISTINCT_ON;
            order->rest = (struct cut_range){cut->sort_items[i - 1].end, cut->sort_items[cut->nsorts - 1].end};
            return PGSEEK_REASON_NONE;
        }
        if (reason == PGSEEK_REASON_NONE)
            reason = order_add(order, key);
    }
    return reason;
}

static enum pgseek_reason read_sorts(struct order *order)
{
    size_t count = order->query->level->n_sort_clause;
    enum pgseek_reason reason = PGSEEK_REASON_NONE;

    for (size_t i = 0; i < count && reason == PGSEEK_REASON_NONE; i++) {
        struct order_key key;
        bool sorts;

        reason = read_sort(order, i, &key, &sorts);
        if (reason != PGSEEK_REASON_NONE || !sorts)
            continue;
        if (!order->has_first)
            order->first = key;
        order->has_first = true;
        reason = order_add(order, key);
    }
    return reason == PGSEEK_REASON_NONE && !order->has_first ? PGSEEK_REASON_ORDER_CONSTANT : reason;
}

enum pgseek_reason order_make(struct order *order, const struct pgseek_query *query, const struct scope *scope,
                              const struct pgseek_description *description, const char *key_option)
{
    *order = (struct order){
        .query = query, .scope = scope, .description = description, .form = query->form, .tie_breaker = ""};
    enum pgseek_reason reason = outputs_make(&order->outputs, query, scope, description);
    if (reason != PGSEEK_REASON_NONE)
        return reason;
    if (!proof_make(&order->proof, scope, description))
        return PGSEEK_REASON_NOMEM;
    reason = tie_read(order);
    if (reason == PGSEEK_REASON_NONE)
        reason = order->total == ORDER_ON ? read_on_sorts(order) : read_sorts(order);
    if (reason == PGSEEK_REASON_NONE)
        reason = tie_append(order, key_option);
    return reason == PGSEEK_REASON_NONE ? order_resolve_types(order) : reason;
}
