/* essence.c - a statement's trees as bytes: what a rewrite must keep, and what a cursor is bound to.
 *
 * It knows which parts of a tree say nothing (places, spellings, the page's own numbers) and must not know texts. */
#include "level.h"
#include "query.h"

#include <stdlib.h>
#include <string.h>

static void drop_node(PgQuery__Node **node)
{
    if (*node)
        pg_query__node__free_unpacked(*node, NULL);
    *node = NULL;
}

static void drop_limits(PgQuery__SelectStmt *level)
{
    drop_node(&level->limit_count);
    drop_node(&level->limit_offset);
    level->limit_option = PG_QUERY__LIMIT_OPTION__LIMIT_OPTION_DEFAULT;
}

bool query_core(PgQuery__SelectStmt *level, struct query_bytes *core)
{
    for (size_t i = 0; i < level->n_sort_clause; i++)
        drop_node(&level->sort_clause[i]);
    level->n_sort_clause = 0;
    drop_limits(level);
    tree_clear_locations(&level->base);
    core->ptr = tree_pack(&level->base, &core->len);
    return core->ptr != NULL;
}

static bool make_core(struct pgseek_query *query)
{
    ProtobufCMessage *copy = tree_copy(&query->level->base);
    bool made = copy && query_core((PgQuery__SelectStmt *)copy, &query->core);

    protobuf_c_message_free_unpacked(copy, NULL);
    return made;
}

/* Numbers parameters by their first use and remembers which they were. */
static enum tree_step renumber_visit(ProtobufCMessage *message, void *context)
{
    struct pgseek_query *query = context;
    size_t i = 0;

    if (!tree_is(message, &pg_query__param_ref__descriptor))
        return TREE_DEEPER;
    PgQuery__ParamRef *param = (PgQuery__ParamRef *)message;
    if (param->number == query->cursor_param) {
        param->number = 0;
        return TREE_OVER;
    }
    while (i < query->nfilter_params && query->filter_params[i] != param->number)
        i++;
    if (i == query->nfilter_params)
        query->filter_params[query->nfilter_params++] = param->number;
    param->number = (int32_t)i + 1;
    return TREE_DEEPER;
}

/* ASC and the null placements that a direction has by itself are spelled out, so that both spellings are one. */
static void spell_out_order(PgQuery__SortBy *sort)
{
    bool descending = sort->sortby_dir == PG_QUERY__SORT_BY_DIR__SORTBY_DESC;

    if (sort->sortby_dir == PG_QUERY__SORT_BY_DIR__SORTBY_USING)
        return;
    if (!descending)
        sort->sortby_dir = PG_QUERY__SORT_BY_DIR__SORTBY_DEFAULT;
    if (sort->sortby_nulls == PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_DEFAULT)
        sort->sortby_nulls =
            descending ? PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_FIRST : PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_LAST;
}

static bool make_contract(struct pgseek_query *query)
{
    PgQuery__SelectStmt *statement = (PgQuery__SelectStmt *)tree_copy(&query->statement->base);
    bool made = false;

    query->filter_params = arena_array(&query->arena, query->lex.ntokens, sizeof *query->filter_params);
    if (!statement || !query->filter_params)
        goto out;
    PgQuery__SelectStmt *level = level_by_ordinal(&statement->base, query->level_ordinal);
    drop_limits(level);
    for (size_t i = 0; i < level->n_sort_clause; i++)
        spell_out_order(level->sort_clause[i]->sort_by);
    tree_clear_locations(&statement->base);
    tree_walk(&statement->base, renumber_visit, query);
    query->contract.ptr = tree_pack(&statement->base, &query->contract.len);
    made = query->contract.ptr != NULL;
out:
    protobuf_c_message_free_unpacked((ProtobufCMessage *)statement, NULL);
    return made;
}

/* ---- what stands around the level ---- */

bool query_frame(PgQuery__Node *statement, struct query_bytes *frame)
{
    tree_clear_locations(&statement->base);
    frame->ptr = tree_pack(&statement->base, &frame->len);
    return frame->ptr != NULL;
}

static bool make_frame(struct pgseek_query *query)
{
    if (!query->is_inner && query->verb == PGSEEK_VERB_SELECT)
        return true;
    PgQuery__Node *copy = (PgQuery__Node *)tree_copy(&query->parsed->stmts[0]->stmt->base);
    if (!copy)
        return false;
    PgQuery__SelectStmt *level = level_take(level_by_ordinal(&copy->base, query->level_ordinal));
    bool made = level && query_frame(copy, &query->frame);

    if (level)
        pg_query__select_stmt__free_unpacked(level, NULL);
    pg_query__node__free_unpacked(copy, NULL);
    return made;
}

bool query_make_essence(struct pgseek_query *query)
{
    return make_core(query) && make_frame(query) && make_contract(query);
}
