/* level.c - which SELECT of a statement is the page: the one that owns ORDER BY and LIMIT.
 *
 * See level.h. */
#include "level.h"

#include <stdlib.h>
#include <string.h>

/* What is seen from where the search has come to. */
struct sight {
    struct levels *levels;
    struct arena *arena;
    const PgQuery__WithClause **with; /* outermost first */
    size_t nwith;
    size_t depth;     /* WITH clauses entered: the statement's own is the first */
    bool has_own;     /* the statement has one */
    int cte_location; /* in the statement's own */
    bool is_recursive;
};

static void find_in(const struct sight *sight, PgQuery__SelectStmt *select, bool is_statement);

/* ---- what a level sees ---- */

static void add_level(const struct sight *sight, PgQuery__SelectStmt *select)
{
    struct levels *levels = sight->levels;

    if (levels->count == LEVEL_MAX) {
        levels->has_too_many = true;
        return;
    }
    struct level *level = &levels->item[levels->count++];
    *level = (struct level){.select = select,
                            .nwith = sight->nwith + (select->with_clause ? 1 : 0),
                            .cte_location = sight->cte_location,
                            .is_carried = sight->nwith <= (sight->has_own ? 1 : 0),
                            .is_recursive = sight->is_recursive};
    level->with = arena_array(sight->arena, level->nwith, sizeof *level->with);
    if (!level->with)
        return;
    size_t n = 0;
    if (select->with_clause)
        level->with[n++] = select->with_clause;
    for (size_t i = sight->nwith; i > 0; i--)
        level->with[n++] = sight->with[i - 1];
}

/* The sight from below, with one clause more; cut off at its n-th CTE unless it is recursive. */
static bool see_more(struct sight *below, const struct sight *sight, PgQuery__WithClause *clause, size_t n)
{
    *below = *sight;
    PgQuery__WithClause *seen = arena_alloc(sight->arena, sizeof *seen);
    below->with = arena_array(sight->arena, sight->nwith + 1, sizeof *below->with);
    if (!seen || !below->with)
        return false;
    *seen = *clause;
    if (!clause->recursive)
        seen->n_ctes = n;
    if (sight->nwith)
        memcpy(below->with, sight->with, sight->nwith * sizeof *below->with);
    below->with[below->nwith++] = seen;
    return true;
}

/* ---- the search ---- */

static void find_in_from(const struct sight *sight, const PgQuery__Node *node)
{
    if (!node)
        return;
    if (node->node_case == PG_QUERY__NODE__NODE_JOIN_EXPR) {
        find_in_from(sight, node->join_expr->larg);
        find_in_from(sight, node->join_expr->rarg);
    }
    if (node->node_case != PG_QUERY__NODE__NODE_RANGE_SUBSELECT)
        return;
    const PgQuery__Node *query = node->range_subselect->subquery;
    if (!query || query->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
        return;
    if (node->range_subselect->lateral)
        sight->levels->has_correlated |= query->select_stmt->limit_count && query->select_stmt->n_sort_clause;
    else
        find_in(sight, query->select_stmt, false);
}

static enum tree_step stop_at_name(ProtobufCMessage *message, void *context)
{
    if (!tree_is(message, &pg_query__range_var__descriptor))
        return TREE_DEEPER;
    return strcmp(((PgQuery__RangeVar *)message)->relname, context) ? TREE_OVER : TREE_STOP;
}

static void find_in_with(const struct sight *sight, PgQuery__WithClause *clause, bool is_statement)
{
    for (size_t i = 0; i < clause->n_ctes; i++) {
        PgQuery__CommonTableExpr *cte = clause->ctes[i]->common_table_expr;
        struct sight below;

        if (cte->ctequery->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
            continue;
        if (!see_more(&below, sight, clause, i))
            return;
        if (is_statement)
            below.cte_location = cte->location;
        below.is_recursive |= clause->recursive && !tree_walk(&cte->ctequery->base, stop_at_name, cte->ctename);
        find_in(&below, cte->ctequery->select_stmt, false);
    }
}

static void find_in(const struct sight *sight, PgQuery__SelectStmt *select, bool is_statement)
{
    struct sight below = *sight;

    if (!is_statement && select->limit_count) {
        if (select->n_sort_clause)
            add_level(sight, select);
        else
            sight->levels->has_unordered = true;
    }
    if (select->with_clause) {
        find_in_with(sight, select->with_clause, is_statement);
        if (!see_more(&below, sight, select->with_clause, select->with_clause->n_ctes))
            return;
    }
    for (size_t i = 0; i < select->n_from_clause; i++)
        find_in_from(&below, select->from_clause[i]);
}

bool levels_find(struct levels *levels, struct arena *arena, PgQuery__SelectStmt *statement)
{
    const struct sight sight = {
        .levels = levels, .arena = arena, .has_own = statement->with_clause != NULL, .cte_location = -1};

    *levels = (struct levels){0};
    find_in(&sight, statement, true);
    return !arena->failed;
}

static enum tree_step stop_at_cte(ProtobufCMessage *message, void *context)
{
    const PgQuery__WithClause *with = context;

    if (!tree_is(message, &pg_query__range_var__descriptor))
        return TREE_DEEPER;
    const PgQuery__RangeVar *var = (PgQuery__RangeVar *)message;
    for (size_t i = 0; !*var->schemaname && i < with->n_ctes; i++)
        if (!strcmp(with->ctes[i]->common_table_expr->ctename, var->relname))
            return TREE_STOP;
    return TREE_OVER;
}

bool level_reads(PgQuery__SelectStmt *level, const PgQuery__WithClause *with)
{
    PgQuery__WithClause seen = *with; /* a visitor's context may be written to */

    return !tree_walk(&level->base, stop_at_cte, &seen);
}

/* ---- places ---- */

static enum tree_step stop_at_target(ProtobufCMessage *message, void *context)
{
    int *location = context;

    if (!tree_is(message, &pg_query__res_target__descriptor))
        return TREE_DEEPER;
    *location = ((PgQuery__ResTarget *)message)->location;
    return TREE_STOP;
}

static enum tree_step stop_at_constant(ProtobufCMessage *message, void *context)
{
    int *location = context;

    if (!tree_is(message, &pg_query__a__const__descriptor))
        return TREE_DEEPER;
    *location = ((PgQuery__AConst *)message)->location;
    return TREE_STOP;
}

int level_location(const PgQuery__SelectStmt *select)
{
    int location = -1;

    while (select->larg)
        select = select->larg;
    if (select->n_values_lists)
        tree_walk(&select->values_lists[0]->base, stop_at_constant, &location);
    else if (select->n_target_list)
        tree_walk(&select->target_list[0]->base, stop_at_target, &location);
    return location;
}

struct ordinal {
    const PgQuery__SelectStmt *select; /* the one that is looked for, or NULL */
    PgQuery__SelectStmt *found;
    size_t count; /* SELECTs to go */
};

static enum tree_step count_select(ProtobufCMessage *message, void *context)
{
    struct ordinal *ordinal = context;

    if (!tree_is(message, &pg_query__select_stmt__descriptor))
        return TREE_DEEPER;
    if ((PgQuery__SelectStmt *)message == ordinal->select)
        return TREE_STOP;
    ordinal->count++;
    return TREE_DEEPER;
}

size_t level_ordinal(ProtobufCMessage *root, const PgQuery__SelectStmt *select)
{
    struct ordinal ordinal = {.select = select};

    tree_walk(root, count_select, &ordinal);
    return ordinal.count;
}

static enum tree_step stop_at_ordinal(ProtobufCMessage *message, void *context)
{
    struct ordinal *ordinal = context;

    if (!tree_is(message, &pg_query__select_stmt__descriptor))
        return TREE_DEEPER;
    if (ordinal->count-- > 0)
        return TREE_DEEPER;
    ordinal->found = (PgQuery__SelectStmt *)message;
    return TREE_STOP;
}

PgQuery__SelectStmt *level_by_ordinal(ProtobufCMessage *root, size_t ordinal)
{
    struct ordinal wanted = {.count = ordinal};

    tree_walk(root, stop_at_ordinal, &wanted);
    return wanted.found;
}

PgQuery__SelectStmt *level_take(PgQuery__SelectStmt *level)
{
    PgQuery__SelectStmt *taken = malloc(sizeof *taken);

    if (!taken)
        return NULL;
    *taken = *level;
    pg_query__select_stmt__init(level);
    return taken;
}
