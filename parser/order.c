/* order.c - the sort keys of a page: what ORDER BY means, and the tie-breakers that make it total.
 *
 * See order.h. A bare name means an output column first and an input column only when there is none; an integer is a
 * position; everything else belongs to the input. */
#include "order.h"

#include "outputs.h"

#include <string.h>

/* ---- what an item of ORDER BY means ---- */

static enum pgseek_reason output_column(const struct outputs *outputs, size_t index, struct scope_column *out)
{
    if (!outputs->item[index].is_column)
        return PGSEEK_REASON_ORDER_EXPRESSION;
    *out = outputs->item[index].column;
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason input_column(const struct scope *scope, const PgQuery__ColumnRef *column,
                                       struct scope_column *out)
{
    switch (scope_find(scope, column, out)) {
    case SCOPE_FOUND: return PGSEEK_REASON_NONE;
    case SCOPE_AMBIGUOUS: return PGSEEK_REASON_ORDER_AMBIGUOUS;
    case SCOPE_MISSING: break;
    }
    return PGSEEK_REASON_SYSTEM_COLUMN;
}

static enum pgseek_reason bare_name(const struct outputs *outputs, const struct scope *scope,
                                    const PgQuery__ColumnRef *column, struct scope_column *out)
{
    const char *name = tree_column_part(column, 0);
    bool found = false;

    for (size_t i = 0; i < outputs->count; i++) {
        struct scope_column candidate;

        if (!outputs->item[i].name || strcmp(outputs->item[i].name, name) != 0)
            continue;
        enum pgseek_reason reason = output_column(outputs, i, &candidate);
        if (found && (reason != PGSEEK_REASON_NONE || !scope_same(candidate, *out)))
            return PGSEEK_REASON_ORDER_AMBIGUOUS;
        if (reason != PGSEEK_REASON_NONE)
            return reason;
        *out = candidate;
        found = true;
    }
    return found ? PGSEEK_REASON_NONE : input_column(scope, column, out);
}

static enum pgseek_reason position(const struct outputs *outputs, const PgQuery__AConst *constant,
                                   struct scope_column *out)
{
    if (constant->isnull || constant->val_case != PG_QUERY__A__CONST__VAL_IVAL)
        return PGSEEK_REASON_ORDER_CONSTANT;
    int32_t number = constant->ival->ival;
    if (number < 1 || (size_t)number > outputs->count)
        return PGSEEK_REASON_ORDER_POSITION;
    return output_column(outputs, (size_t)number - 1, out);
}

static enum pgseek_reason item_column(const struct outputs *outputs, const struct scope *scope,
                                      const PgQuery__Node *node, struct scope_column *out)
{
    switch (node->node_case) {
    case PG_QUERY__NODE__NODE_A_CONST: return position(outputs, node->a_const, out);
    case PG_QUERY__NODE__NODE_PARAM_REF: return PGSEEK_REASON_ORDER_CONSTANT;
    case PG_QUERY__NODE__NODE_COLLATE_CLAUSE: return PGSEEK_REASON_ORDER_COLLATE;
    case PG_QUERY__NODE__NODE_COLUMN_REF:
        if (tree_is_star(node->column_ref))
            return PGSEEK_REASON_SYSTEM_COLUMN;
        if (node->column_ref->n_fields == 1)
            return bare_name(outputs, scope, node->column_ref, out);
        return input_column(scope, node->column_ref, out);
    case PG_QUERY__NODE__NODE_A_EXPR:
        return tree_is_qualified(node->a_expr->n_name) ? PGSEEK_REASON_USER_OPERATOR : PGSEEK_REASON_ORDER_EXPRESSION;
    case PG_QUERY__NODE__NODE_SQLVALUE_FUNCTION: return PGSEEK_REASON_CLOCK_KEY;
    default: return PGSEEK_REASON_ORDER_EXPRESSION;
    }
}

/* USING is understood only when it names pg_catalog's operator and that is the type's default order. */
static enum pgseek_reason direction(const PgQuery__SortBy *sort, const struct facts_column *facts, bool *descending)
{
    *descending = sort->sortby_dir == PG_QUERY__SORT_BY_DIR__SORTBY_DESC;
    if (sort->sortby_dir != PG_QUERY__SORT_BY_DIR__SORTBY_USING)
        return PGSEEK_REASON_NONE;
    const char *name = tree_builtin_name(sort->use_op, sort->n_use_op);
    if (!name || !tree_is_qualified(sort->n_use_op))
        return PGSEEK_REASON_ORDER_OPERATOR;
    const struct facts_operator *less = &facts->operator[FACTS_LESS];
    const struct facts_operator *greater = &facts->operator[FACTS_GREATER];
    *descending = greater->name && !strcmp(name, greater->name) && !strcmp(greater->schema, "pg_catalog");
    bool ascending = less->name && !strcmp(name, less->name) && !strcmp(less->schema, "pg_catalog");
    return *descending || ascending ? PGSEEK_REASON_NONE : PGSEEK_REASON_ORDER_OPERATOR;
}

/* ---- keys ---- */

static bool has_key(const struct order *order, struct scope_column column)
{
    for (size_t i = 0; i < order->nkeys; i++)
        if (scope_same(order->keys[i].column, column))
            return true;
    return false;
}

static enum pgseek_reason check_key(const struct order *order, const struct scope *scope, struct scope_column column)
{
    const struct facts_column *facts = scope_facts(scope, column);

    for (size_t i = 0; i < FACTS_OPERATORS; i++)
        if (!facts->operator[i].name || !facts->operator[i].schema)
            return PGSEEK_REASON_KEY_TYPE;
    if (!facts->base_oid || !facts->has_binary)
        return PGSEEK_REASON_KEY_TYPE;
    if (!facts->may_select)
        return PGSEEK_REASON_KEY_PRIVILEGE;
    return proof_is_non_null(&order->proof, column) ? PGSEEK_REASON_NONE : PGSEEK_REASON_NULLABLE_KEY;
}

static enum pgseek_reason add_key(struct order *order, const struct scope *scope, struct order_key key)
{
    if (has_key(order, key.column)) /* a later key on the same column sorts nothing */
        return PGSEEK_REASON_NONE;
    enum pgseek_reason reason = check_key(order, scope, key.column);
    if (reason != PGSEEK_REASON_NONE)
        return reason;
    if (order->nkeys == PGSEEK_MAX_KEYS)
        return PGSEEK_REASON_KEYS_TOO_MANY;
    if (order->nkeys && order->keys[order->nkeys - 1].descending != key.descending)
        return PGSEEK_REASON_ORDER_MIXED;
    order->keys[order->nkeys++] = key;
    proof_assume(&order->proof, key.column);
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason read_sort(struct order *order, const struct outputs *outputs, const struct scope *scope,
                                    const PgQuery__SortBy *sort)
{
    struct order_key key = {0};

    order->has_position |= sort->node->node_case == PG_QUERY__NODE__NODE_A_CONST;
    enum pgseek_reason reason = item_column(outputs, scope, sort->node, &key.column);

    if (reason == PGSEEK_REASON_NONE)
        reason = direction(sort, scope_facts(scope, key.column), &key.descending);
    return reason == PGSEEK_REASON_NONE ? add_key(order, scope, key) : reason;
}

/* ---- tie-breakers ---- */

static enum pgseek_reason append_key(struct order *order, const struct scope *scope, struct scope_column column)
{
    bool descending = order->nkeys && order->keys[order->nkeys - 1].descending;

    return add_key(order, scope, (struct order_key){.column = column, .descending = descending, .is_appended = true});
}

static enum pgseek_reason append_index(struct order *order, const struct scope *scope, size_t relation,
                                       const struct facts_unique *unique)
{
    for (size_t i = 0; i < unique->nattnums; i++) {
        struct scope_column column;

        if (!proof_column(scope, relation, unique->attnums[i], &column) || proof_is_known(&order->proof, column))
            continue;
        enum pgseek_reason reason = append_key(order, scope, column);
        if (reason != PGSEEK_REASON_NONE)
            return reason;
    }
    order->tie_breaker =
        *order->tie_breaker ? arena_format(scope->arena, "%s, %s", order->tie_breaker, unique->name) : unique->name;
    return order->tie_breaker ? PGSEEK_REASON_NONE : PGSEEK_REASON_NOMEM;
}

static enum pgseek_reason append_proven(struct order *order, const struct scope *scope)
{
    size_t preferred = order->nkeys ? order->keys[order->nkeys - 1].column.relation : scope->nrelations;

    while (!proof_is_total(&order->proof)) {
        size_t relation;
        bool denied;
        const struct facts_unique *unique = proof_next_key(&order->proof, preferred, &relation, &denied);

        if (!unique)
            return denied ? PGSEEK_REASON_KEY_PRIVILEGE : PGSEEK_REASON_NO_TOTAL_ORDER;
        enum pgseek_reason reason = append_index(order, scope, relation, unique);
        if (reason != PGSEEK_REASON_NONE)
            return reason;
    }
    return PGSEEK_REASON_NONE;
}

/* One `name` or `qualifier.name` of key=, from token *i on. */
static bool key_name(const struct scope *scope, const struct lex *lex, size_t *i, struct scope_column *out)
{
    char first[LEX_NAME_BYTES + 1];
    char second[LEX_NAME_BYTES + 1];

    if (!lex_name(lex, *i, first))
        return false;
    ++*i;
    if (!lex_is(lex, *i, '.'))
        return scope_find_name(scope, NULL, first, out) == SCOPE_FOUND;
    if (!lex_name(lex, *i + 1, second))
        return false;
    *i += 2;
    return scope_find_name(scope, first, second, out) == SCOPE_FOUND;
}

static enum pgseek_reason append_named(struct order *order, const struct scope *scope, const char *key_option)
{
    enum pgseek_reason reason = PGSEEK_REASON_KEY_COLUMN;
    struct lex lex;
    size_t i = 0;

    if (lex_init(&lex, key_option, strlen(key_option)) != LEX_OK)
        goto out;
    do {
        struct scope_column column;

        if (!key_name(scope, &lex, &i, &column)) {
            reason = PGSEEK_REASON_KEY_COLUMN;
            goto out;
        }
        reason = append_key(order, scope, column);
    } while (reason == PGSEEK_REASON_NONE && lex_is(&lex, i++, ','));
    if (reason == PGSEEK_REASON_NONE && i <= lex.ntokens)
        reason = PGSEEK_REASON_KEY_COLUMN; /* something follows that is no comma */
    order->is_trusted = true;
    order->tie_breaker = "key=";
out:
    lex_fini(&lex);
    return reason;
}

enum pgseek_reason order_make(struct order *order, const struct pgseek_query *query, const struct scope *scope,
                              const struct pgseek_description *description, const char *key_option)
{
    struct outputs outputs;
    enum pgseek_reason reason = outputs_make(&outputs, query, scope, description);

    order->nkeys = 0;
    order->tie_breaker = "";
    order->is_trusted = false;
    order->has_position = false;
    if (reason != PGSEEK_REASON_NONE)
        return reason;
    if (!proof_make(&order->proof, scope, description))
        return PGSEEK_REASON_NOMEM;
    for (size_t i = 0; i < query->level->n_sort_clause && reason == PGSEEK_REASON_NONE; i++)
        reason = read_sort(order, &outputs, scope, query->level->sort_clause[i]->sort_by);
    if (reason != PGSEEK_REASON_NONE)
        return reason;
    if (key_option)
        return append_named(order, scope, key_option);
    return append_proven(order, scope);
}
