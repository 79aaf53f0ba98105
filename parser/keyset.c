/* keyset.c - whether a statement already seeks by a keyset predicate of its own.
 *
 * See keyset.h. */
#include "keyset.h"

#include <string.h>

static bool is_inequality(const PgQuery__Node *node)
{
    if (node->node_case != PG_QUERY__NODE__NODE_A_EXPR || node->a_expr->kind != PG_QUERY__A__EXPR__KIND__AEXPR_OP)
        return false;
    const char *name = tree_builtin_name(node->a_expr->name, node->a_expr->n_name);
    return name && (!strcmp(name, "<") || !strcmp(name, ">") || !strcmp(name, "<=") || !strcmp(name, ">="));
}

static bool is_first_key(const struct order *order, const PgQuery__Node *node)
{
    const PgQuery__ColumnRef *column = tree_column(node);
    const struct order_key *key = &order->keys[0];
    struct scope_column found;

    if (!key->is_column)
        return tree_same(node, key->node);
    return column && !tree_is_star(column) && scope_find(order->scope, column, &found) == SCOPE_FOUND &&
           scope_same(found, key->column);
}

/* (k1, ...) < (...): a row comparison that starts with the first key. */
static bool is_row_seek(const struct order *order, const PgQuery__Node *node)
{
    const PgQuery__Node *side = node;

    if (!is_inequality(node))
        return false;
    for (int left = 0; left < 2; left++) {
        side = left ? node->a_expr->lexpr : node->a_expr->rexpr;
        if (side && side->node_case == PG_QUERY__NODE__NODE_ROW_EXPR && side->row_expr->n_args > 1 &&
            is_first_key(order, side->row_expr->args[0]))
            return true;
    }
    return false;
}

/* k1 >= (SELECT ...): the boundary row looked up by its id. */
static bool is_lookup_seek(const struct order *order, const PgQuery__Node *node)
{
    return is_inequality(node) && is_first_key(order, node->a_expr->lexpr) && node->a_expr->rexpr &&
           node->a_expr->rexpr->node_case == PG_QUERY__NODE__NODE_SUB_LINK;
}

static bool compares_first_key(const struct order *order, const PgQuery__Node *node)
{
    return is_inequality(node) &&
           (is_first_key(order, node->a_expr->lexpr) || is_first_key(order, node->a_expr->rexpr));
}

static bool equals_first_key(const struct order *order, const PgQuery__Node *node)
{
    if (node->node_case != PG_QUERY__NODE__NODE_A_EXPR || node->a_expr->kind != PG_QUERY__A__EXPR__KIND__AEXPR_OP)
        return false;
    const char *name = tree_builtin_name(node->a_expr->name, node->a_expr->n_name);
    return name && !strcmp(name, "=") &&
           (is_first_key(order, node->a_expr->lexpr) || is_first_key(order, node->a_expr->rexpr));
}

/* k1 = x AND ... */
static bool is_tie_arm(const struct order *order, const PgQuery__Node *arm)
{
    if (arm->node_case != PG_QUERY__NODE__NODE_BOOL_EXPR ||
        arm->bool_expr->boolop != PG_QUERY__BOOL_EXPR_TYPE__AND_EXPR)
        return false;
    for (size_t i = 0; i < arm->bool_expr->n_args; i++)
        if (equals_first_key(order, arm->bool_expr->args[i]))
            return true;
    return false;
}

/* k1 < x OR (k1 = x AND k2 < y): an arm that compares the first key, and another for its ties. */
static bool is_prefix_seek(const struct order *order, const PgQuery__Node *node)
{
    bool has_first = false;
    bool has_ties = false;

    if (node->node_case != PG_QUERY__NODE__NODE_BOOL_EXPR ||
        node->bool_expr->boolop != PG_QUERY__BOOL_EXPR_TYPE__OR_EXPR)
        return false;
    for (size_t i = 0; i < node->bool_expr->n_args; i++) {
        has_first |= compares_first_key(order, node->bool_expr->args[i]);
        has_ties |= is_tie_arm(order, node->bool_expr->args[i]);
    }
    return has_first && has_ties;
}

bool keyset_is_written(const struct order *order)
{
    for (size_t i = 0; i < order->scope->nconjuncts; i++) {
        const PgQuery__Node *node = order->scope->conjuncts[i].node;

        if (is_row_seek(order, node) || is_lookup_seek(order, node) || is_prefix_seek(order, node))
            return true;
    }
    return false;
}
