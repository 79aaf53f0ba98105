/* classify.c - may this statement be a page, as far as its tree alone can tell?
 *
 * See classify.h. Checks run from the outside in, so that the reason given is the one that a reader would name first.
 */
#include "classify.h"

/* ---- what kind of statement ---- */

static enum pgseek_reason statement_kind(const PgQuery__Node *node)
{
    static const struct {
        PgQuery__Node__NodeCase node_case;
        enum pgseek_reason reason;
    } kinds[] = {
        {PG_QUERY__NODE__NODE_PREPARE_STMT, PGSEEK_REASON_PREPARE},
        {PG_QUERY__NODE__NODE_EXECUTE_STMT, PGSEEK_REASON_EXECUTE},
        {PG_QUERY__NODE__NODE_COPY_STMT, PGSEEK_REASON_COPY},
        {PG_QUERY__NODE__NODE_CREATE_TABLE_AS_STMT, PGSEEK_REASON_INTO},
    };

    for (size_t i = 0; node && i < sizeof kinds / sizeof *kinds; i++)
        if (node->node_case == kinds[i].node_case)
            return kinds[i].reason;
    return PGSEEK_REASON_NOT_SELECT;
}

/* The query below EXPLAIN or DECLARE CURSOR; the node itself when it is neither. */
static const PgQuery__Node *query_of(const PgQuery__Node *node, enum pgseek_verb *verb)
{
    *verb = PGSEEK_VERB_SELECT;
    if (!node)
        return NULL;
    if (node->node_case == PG_QUERY__NODE__NODE_EXPLAIN_STMT) {
        *verb = PGSEEK_VERB_EXPLAIN;
        return node->explain_stmt->query;
    }
    if (node->node_case == PG_QUERY__NODE__NODE_DECLARE_CURSOR_STMT) {
        *verb = PGSEEK_VERB_DECLARE;
        return node->declare_cursor_stmt->query;
    }
    return node;
}

enum pgseek_reason classify_statement(const PgQuery__ParseResult *parsed, enum pgseek_verb *verb,
                                      PgQuery__SelectStmt **statement)
{
    if (parsed->n_stmts != 1)
        return parsed->n_stmts ? PGSEEK_REASON_SEVERAL : PGSEEK_REASON_EMPTY;
    const PgQuery__Node *query = query_of(parsed->stmts[0]->stmt, verb);

    if (!query || query->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
        return statement_kind(query);
    *statement = query->select_stmt;
    return PGSEEK_REASON_NONE;
}

/* ---- searching a tree for what spoils a page ---- */

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

static enum tree_step stop_at_lock(ProtobufCMessage *message, void *context)
{
    (void)context;
    if (!tree_is(message, &pg_query__select_stmt__descriptor))
        return TREE_DEEPER;
    return ((PgQuery__SelectStmt *)message)->n_locking_clause ? TREE_STOP : TREE_DEEPER;
}

static bool any_stops(PgQuery__Node *const *nodes, size_t count, tree_visitor visit)
{
    for (size_t i = 0; i < count; i++)
        if (!tree_walk(&nodes[i]->base, visit, NULL))
            return true;
    return false;
}

/* ---- the clauses ---- */

static enum pgseek_reason into_and_changes(const PgQuery__SelectStmt *statement)
{
    if (statement->into_clause)
        return PGSEEK_REASON_INTO;
    bool changes = statement->with_clause && !tree_walk(&statement->with_clause->base, stop_at_change, NULL);
    return changes ? PGSEEK_REASON_CTE_MODIFIES : PGSEEK_REASON_NONE;
}

static enum pgseek_reason order_and_limit(const PgQuery__SelectStmt *level)
{
    if (!level->n_sort_clause)
        return PGSEEK_REASON_NO_ORDER;
    if (!level->limit_count)
        return PGSEEK_REASON_NO_LIMIT;
    if (level->limit_option == PG_QUERY__LIMIT_OPTION__LIMIT_OPTION_WITH_TIES)
        return PGSEEK_REASON_WITH_TIES;
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason group_clause(const PgQuery__SelectStmt *level)
{
    for (size_t i = 0; i < level->n_group_clause; i++)
        if (level->group_clause[i]->node_case == PG_QUERY__NODE__NODE_GROUPING_SET)
            return PGSEEK_REASON_GROUPING_SETS;
    return PGSEEK_REASON_NONE;
}

static bool has_windows(const PgQuery__SelectStmt *level)
{
    return level->n_window_clause || any_stops(level->target_list, level->n_target_list, stop_at_window);
}

static enum pgseek_reason windows(const PgQuery__SelectStmt *level)
{
    if (any_stops(level->sort_clause, level->n_sort_clause, stop_at_window))
        return PGSEEK_REASON_WINDOW_KEY;
    /* A wrap adds hidden columns, which would be part of what is distinct. */
    return level->n_distinct_clause && has_windows(level) ? PGSEEK_REASON_WINDOW : PGSEEK_REASON_NONE;
}

static enum pgseek_reason locking_clause(const PgQuery__SelectStmt *level)
{
    for (size_t i = 0; i < level->n_locking_clause; i++)
        if (level->locking_clause[i]->locking_clause->wait_policy == PG_QUERY__LOCK_WAIT_POLICY__LockWaitSkip)
            return PGSEEK_REASON_LOCKING;
    return PGSEEK_REASON_NONE;
}

/* TABLE x parses as SELECT * FROM x, of which nothing stands in the text. */
static bool is_table(const PgQuery__SelectStmt *level)
{
    return level->n_target_list == 1 && level->target_list[0]->node_case == PG_QUERY__NODE__NODE_RES_TARGET &&
           level->target_list[0]->res_target->location < 0;
}

static bool is_set(const PgQuery__SelectStmt *level)
{
    return level->op != PG_QUERY__SET_OPERATION__SETOP_NONE || level->n_values_lists || is_table(level);
}

static enum pgseek_reason from_clause(const PgQuery__SelectStmt *level)
{
    return level->n_from_clause || is_set(level) ? PGSEEK_REASON_NONE : PGSEEK_REASON_NO_FROM;
}

static enum query_form form_of(const PgQuery__SelectStmt *level)
{
    if (is_set(level))
        return QUERY_SET;
    if (has_windows(level))
        return QUERY_WINDOW;
    /* Plain DISTINCT is one empty node. */
    if (level->n_distinct_clause && level->distinct_clause[0]->node_case != PG_QUERY__NODE__NODE__NOT_SET)
        return QUERY_DISTINCT_ON;
    if (level->n_group_clause || level->having_clause)
        return QUERY_GROUPED;
    return level->n_distinct_clause ? QUERY_DISTINCT : QUERY_PLAIN;
}

/* A lock reaches into sub-selects of FROM, and would not reach the one that is moved away. */
static bool has_lock(const PgQuery__SelectStmt *statement)
{
    return statement->n_locking_clause || any_stops(statement->from_clause, statement->n_from_clause, stop_at_lock) ||
           (statement->with_clause && !tree_walk(&statement->with_clause->base, stop_at_lock, NULL));
}

enum pgseek_reason classify_level(const PgQuery__SelectStmt *statement, const PgQuery__SelectStmt *level,
                                  enum query_form *form)
{
    static enum pgseek_reason (*const checks[])(const PgQuery__SelectStmt *) = {
        order_and_limit, into_and_changes, group_clause, windows, from_clause, locking_clause,
    };
    enum pgseek_reason reason = into_and_changes(statement);

    for (size_t i = 0; i < sizeof checks / sizeof *checks && reason == PGSEEK_REASON_NONE; i++)
        reason = checks[i](level);
    if (reason == PGSEEK_REASON_NONE && statement != level && has_lock(statement))
        reason = PGSEEK_REASON_LOCKING;
    *form = form_of(level);
    return reason;
}
