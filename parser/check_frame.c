/* check_frame.c - the statement around an inner level, put together again from the rewritten one.
 *
 * See check.h. The level was moved into a CTE, its place reads from there, and the statement without its WITH clause
 * stands in a sub-select of a join: all of that is undone, node by node. */
#include "check.h"
#include "draft.h"
#include "level.h"

#include <string.h>

static PgQuery__CommonTableExpr *cte_of(const PgQuery__Node *node)
{
    return node->node_case == PG_QUERY__NODE__NODE_COMMON_TABLE_EXPR ? node->common_table_expr : NULL;
}

/* Where the clause's CTE of that name is; its count when there is none. */
static size_t find_cte(const PgQuery__WithClause *with, const char *name)
{
    size_t i = 0;

    while (i < with->n_ctes && !(cte_of(with->ctes[i]) && !strcmp(cte_of(with->ctes[i])->ctename, name)))
        i++;
    return i;
}

/* Takes two neighbours out of the clause and frees them. */
static void drop_ctes(PgQuery__WithClause *with, size_t first)
{
    for (size_t i = first; i < first + 2; i++)
        pg_query__node__free_unpacked(with->ctes[i], NULL);
    memmove(with->ctes + first, with->ctes + first + 2, (with->n_ctes - first - 2) * sizeof *with->ctes);
    with->n_ctes -= 2;
}

/* The level: what the page's CTE numbers. */
static PgQuery__SelectStmt *kept_level(const PgQuery__WithClause *with, size_t *place)
{
    size_t i = find_cte(with, DRAFT_PAGE_NAME);

    if (i + 1 >= with->n_ctes || find_cte(with, DRAFT_COUNT_NAME) != i + 1)
        return NULL;
    const PgQuery__Node *query = cte_of(with->ctes[i])->ctequery;
    *place = i;
    return query && query->node_case == PG_QUERY__NODE__NODE_SELECT_STMT ? check_unwrap(query->select_stmt) : NULL;
}

/* The FROM item that holds the client's statement: SELECT ... FROM (here) x, at the right end of the joins. */
static PgQuery__Node **kept_statement(const PgQuery__SelectStmt *statement)
{
    if (statement->n_from_clause != 1 || statement->from_clause[0]->node_case != PG_QUERY__NODE__NODE_JOIN_EXPR)
        return NULL;
    const PgQuery__Node *right = statement->from_clause[0]->join_expr->rarg;
    if (!right || right->node_case != PG_QUERY__NODE__NODE_RANGE_SUBSELECT)
        return NULL;
    const PgQuery__Node *query = right->range_subselect->subquery;
    if (!query || query->node_case != PG_QUERY__NODE__NODE_SELECT_STMT || !check_unwrap(query->select_stmt))
        return NULL;
    return &query->select_stmt->from_clause[0]->range_subselect->subquery;
}

static enum tree_step stop_at_replacement(ProtobufCMessage *message, void *context)
{
    PgQuery__SelectStmt **found = context;

    if (!tree_is(message, &pg_query__select_stmt__descriptor))
        return TREE_DEEPER;
    PgQuery__SelectStmt *select = (PgQuery__SelectStmt *)message;
    if (select->n_from_clause != 1 || select->from_clause[0]->node_case != PG_QUERY__NODE__NODE_RANGE_VAR ||
        strcmp(select->from_clause[0]->range_var->relname, DRAFT_PAGE_NAME) != 0)
        return TREE_DEEPER;
    *found = select;
    return TREE_STOP;
}

/* The statement's WITH clause goes back to where it came from, if the client had one. */
static bool move_with(PgQuery__SelectStmt *from, PgQuery__SelectStmt *to)
{
    if (to->with_clause)
        return false;
    if (from->with_clause->n_ctes) {
        to->with_clause = from->with_clause;
        from->with_clause = NULL;
    }
    return true;
}

/* The client's statement takes the place of the whole. */
static void raise(PgQuery__SelectStmt *statement, PgQuery__Node **kept)
{
    PgQuery__Node *node = *kept;
    const PgQuery__SelectStmt inner = *node->select_stmt;

    *kept = NULL;
    *node->select_stmt = *statement;
    *statement = inner;
    pg_query__node__free_unpacked(node, NULL); /* what is ours: the joins, and the clause if it was */
}

PgQuery__SelectStmt *check_undo_replacement(PgQuery__SelectStmt *statement)
{
    PgQuery__SelectStmt *replacement = NULL;
    size_t place = 0;

    if (!statement->with_clause)
        return NULL;
    PgQuery__SelectStmt *level = kept_level(statement->with_clause, &place);
    PgQuery__Node **kept = kept_statement(statement);
    if (!level || !kept || !*kept || (*kept)->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
        return NULL;
    level = level_take(level);
    if (!level)
        return NULL;
    drop_ctes(statement->with_clause, place);
    if (!move_with(statement, (*kept)->select_stmt))
        goto fail;
    raise(statement, kept);
    tree_walk(&statement->base, stop_at_replacement, &replacement);
    if (!replacement)
        goto fail;
    replacement = level_take(replacement);
    if (!replacement)
        goto fail;
    pg_query__select_stmt__free_unpacked(replacement, NULL);
    return level;
fail:
    pg_query__select_stmt__free_unpacked(level, NULL);
    return NULL;
}
