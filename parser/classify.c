/* classify.c - may this statement be a page, as far as its tree alone can tell?
 *
 * See classify.h. Checks run from the outside in, so that the reason given is the one that a reader would name first.
 */
#include "classify.h"

#include <string.h>

/* ---- what kind of statement ---- */

static enum pgseek_reason statement_kind(const PgQuery__Node *node)
{
    static const struct {
        PgQuery__Node__NodeCase node_case;
        enum pgseek_reason reason;
    } kinds[] = {
        {PG_QUERY__NODE__NODE_SELECT_STMT, PGSEEK_REASON_NONE},
        {PG_QUERY__NODE__NODE_EXPLAIN_STMT, PGSEEK_REASON_EXPLAIN},
        {PG_QUERY__NODE__NODE_PREPARE_STMT, PGSEEK_REASON_PREPARE},
        {PG_QUERY__NODE__NODE_EXECUTE_STMT, PGSEEK_REASON_EXECUTE},
        {PG_QUERY__NODE__NODE_COPY_STMT, PGSEEK_REASON_COPY},
        {PG_QUERY__NODE__NODE_DECLARE_CURSOR_STMT, PGSEEK_REASON_DECLARE},
        {PG_QUERY__NODE__NODE_CREATE_TABLE_AS_STMT, PGSEEK_REASON_INTO},
    };

    for (size_t i = 0; node && i < sizeof kinds / sizeof *kinds; i++)
        if (node->node_case == kinds[i].node_case)
            return kinds[i].reason;
    return PGSEEK_REASON_NOT_SELECT;
}

/* ---- searching a tree for what spoils a page ---- */

static enum tree_step stop_at_limit(ProtobufCMessage *message, void *context)
{
    (void)context;
    if (!tree_is(message, &pg_query__select_stmt__descriptor))
        return TREE_DEEPER;
    return ((PgQuery__SelectStmt *)message)->limit_count ? TREE_STOP : TREE_DEEPER;
}

static enum tree_step stop_at_change(ProtobufCMessage *message, void *context)
{
    (void)context;
    bool changes = tree_is(message, &pg_query__insert_stmt__descriptor) ||
                   tree_is(message, &pg_query__update_stmt__descriptor) ||
                   tree_is(message, &pg_query__delete_stmt__descriptor);
    return changes ? TREE_STOP : TREE_DEEPER;
}

/* Calls of this level only: a sub-select's windows are its own. */
static enum tree_step stop_at_window(ProtobufCMessage *message, void *context)
{
    (void)context;
    if (tree_is(message, &pg_query__select_stmt__descriptor))
        return TREE_OVER;
    return tree_is(message, &pg_query__window_def__descriptor) ? TREE_STOP : TREE_DEEPER;
}

static bool any_stops(PgQuery__Node *const *nodes, size_t count, tree_visitor visit)
{
    for (size_t i = 0; i < count; i++)
        if (!tree_walk(&nodes[i]->base, visit, NULL))
            return true;
    return false;
}

/* ---- FROM ---- */

static enum pgseek_reason from_item(const PgQuery__Node *node);

static enum pgseek_reason from_join(const PgQuery__JoinExpr *join)
{
    if (join->jointype != PG_QUERY__JOIN_TYPE__JOIN_INNER)
        return PGSEEK_REASON_OUTER_JOIN;
    if (join->is_natural)
        return PGSEEK_REASON_NATURAL_JOIN;
    if (join->alias || join->join_using_alias)
        return PGSEEK_REASON_JOIN_ALIAS;
    enum pgseek_reason reason = from_item(join->larg);
    return reason == PGSEEK_REASON_NONE ? from_item(join->rarg) : reason;
}

static enum pgseek_reason from_item(const PgQuery__Node *node)
{
    switch (node->node_case) {
    case PG_QUERY__NODE__NODE_RANGE_VAR:
        return *node->range_var->catalogname ? PGSEEK_REASON_UNKNOWN_RELATION : PGSEEK_REASON_NONE;
    case PG_QUERY__NODE__NODE_JOIN_EXPR: return from_join(node->join_expr);
    case PG_QUERY__NODE__NODE_RANGE_SUBSELECT:
        return node->range_subselect->lateral ? PGSEEK_REASON_LATERAL : PGSEEK_REASON_FROM_SUBSELECT;
    case PG_QUERY__NODE__NODE_RANGE_TABLE_SAMPLE: return PGSEEK_REASON_TABLESAMPLE;
    default: return PGSEEK_REASON_FROM_FUNCTION;
    }
}

static enum pgseek_reason from_clause(const PgQuery__SelectStmt *level)
{
    enum pgseek_reason reason = level->n_from_clause ? PGSEEK_REASON_NONE : PGSEEK_REASON_NO_FROM;

    for (size_t i = 0; i < level->n_from_clause && reason == PGSEEK_REASON_NONE; i++)
        reason = from_item(level->from_clause[i]);
    return reason;
}

/* ---- the other clauses ---- */

static enum pgseek_reason with_clause(const PgQuery__SelectStmt *level)
{
    if (!level->with_clause)
        return PGSEEK_REASON_NONE;
    bool changes = !tree_walk(&level->with_clause->base, stop_at_change, NULL);
    return changes ? PGSEEK_REASON_CTE_MODIFIES : PGSEEK_REASON_CTE;
}

/* Whether a sub-select of FROM or WITH has the LIMIT that the outermost level lacks. */
static bool has_inner_level(const PgQuery__SelectStmt *level)
{
    if (level->with_clause && !tree_walk(&level->with_clause->base, stop_at_limit, NULL))
        return true;
    return any_stops(level->from_clause, level->n_from_clause, stop_at_limit);
}

static enum pgseek_reason order_and_limit(const PgQuery__SelectStmt *level)
{
    if (!level->limit_count && has_inner_level(level))
        return PGSEEK_REASON_INNER_LEVEL;
    if (!level->n_sort_clause)
        return PGSEEK_REASON_NO_ORDER;
    if (!level->limit_count)
        return PGSEEK_REASON_NO_LIMIT;
    if (level->limit_option == PG_QUERY__LIMIT_OPTION__LIMIT_OPTION_WITH_TIES)
        return PGSEEK_REASON_WITH_TIES;
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason distinct_clause(const PgQuery__SelectStmt *level)
{
    if (!level->n_distinct_clause)
        return PGSEEK_REASON_NONE;
    /* Plain DISTINCT is one empty node. */
    bool plain = level->distinct_clause[0]->node_case == PG_QUERY__NODE__NODE__NOT_SET;
    return plain ? PGSEEK_REASON_DISTINCT : PGSEEK_REASON_DISTINCT_ON;
}

static enum pgseek_reason group_clause(const PgQuery__SelectStmt *level)
{
    for (size_t i = 0; i < level->n_group_clause; i++)
        if (level->group_clause[i]->node_case == PG_QUERY__NODE__NODE_GROUPING_SET)
            return PGSEEK_REASON_GROUPING_SETS;
    return level->n_group_clause || level->having_clause ? PGSEEK_REASON_GROUP_BY : PGSEEK_REASON_NONE;
}

static enum pgseek_reason windows(const PgQuery__SelectStmt *level)
{
    if (any_stops(level->sort_clause, level->n_sort_clause, stop_at_window))
        return PGSEEK_REASON_WINDOW_KEY;
    if (level->n_window_clause || any_stops(level->target_list, level->n_target_list, stop_at_window))
        return PGSEEK_REASON_WINDOW;
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason locking_clause(const PgQuery__SelectStmt *level)
{
    for (size_t i = 0; i < level->n_locking_clause; i++)
        if (level->locking_clause[i]->locking_clause->wait_policy == PG_QUERY__LOCK_WAIT_POLICY__LockWaitSkip)
            return PGSEEK_REASON_LOCKING;
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason form(const PgQuery__SelectStmt *level)
{
    if (level->into_clause)
        return PGSEEK_REASON_INTO;
    if (level->n_values_lists)
        return PGSEEK_REASON_VALUES;
    if (level->op != PG_QUERY__SET_OPERATION__SETOP_NONE)
        return PGSEEK_REASON_SET_OPERATION;
    return PGSEEK_REASON_NONE;
}

enum pgseek_reason classify_statement(const PgQuery__ParseResult *parsed, const PgQuery__SelectStmt **level)
{
    static enum pgseek_reason (*const checks[])(const PgQuery__SelectStmt *) = {
        order_and_limit, form, with_clause, distinct_clause, group_clause, windows, from_clause, locking_clause,
    };
    if (parsed->n_stmts != 1)
        return parsed->n_stmts ? PGSEEK_REASON_SEVERAL : PGSEEK_REASON_EMPTY;
    enum pgseek_reason reason = statement_kind(parsed->stmts[0]->stmt);

    if (reason != PGSEEK_REASON_NONE)
        return reason;
    *level = parsed->stmts[0]->stmt->select_stmt;
    for (size_t i = 0; i < sizeof checks / sizeof *checks && reason == PGSEEK_REASON_NONE; i++)
        reason = checks[i](*level);
    return reason;
}
