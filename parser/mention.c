/* mention.c - the relations, functions and parameters that a statement mentions.
 *
 * It knows node types and must not know what a mentioned thing is: that is for the facts. */
#include "query.h"

#include <string.h>

#define MAX_PARAMS 65535

struct mention {
    struct pgseek_query *query;
    size_t relation_room;
    size_t function_room;
    bool in_output;
    bool at_level;
    bool has_bad_param; /* $0, or more than the protocol can bind */
};

/* Room for one more item in an arena array that doubles. */
static void *grow(struct arena *arena, void *items, size_t count, size_t *room, size_t item_bytes)
{
    if (count < *room)
        return items;
    size_t wanted = *room ? *room * 2 : 8;
    void *grown = arena_array(arena, wanted, item_bytes);
    if (!grown)
        return NULL;
    if (count)
        memcpy(grown, items, count * item_bytes);
    *room = wanted;
    return grown;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static void mention_relation(struct mention *mention, const PgQuery__RangeVar *var)
{
    struct pgseek_query *query = mention->query;
    const char *schema = *var->schemaname ? var->schemaname : NULL;

    for (size_t i = 0; i < query->nrelations; i++)
        if (same_text(query->relations[i].schema, schema) && same_text(query->relations[i].name, var->relname))
            return;
    struct query_relation *relations =
        grow(&query->arena, query->relations, query->nrelations, &mention->relation_room, sizeof *relations);
    if (!relations)
        return;
    query->relations = relations;
    relations[query->nrelations++] = (struct query_relation){.schema = schema, .name = var->relname};
}

static void mention_function(struct mention *mention, const PgQuery__FuncCall *call)
{
    struct pgseek_query *query = mention->query;
    const char *name = tree_string(call->funcname[call->n_funcname - 1]);
    size_t i = 0;

    while (i < query->nfunctions && !same_text(query->functions[i].name, name))
        i++;
    if (i == query->nfunctions) {
        struct query_function *functions =
            grow(&query->arena, query->functions, query->nfunctions, &mention->function_room, sizeof *functions);
        if (!functions)
            return;
        query->functions = functions;
        functions[query->nfunctions++] = (struct query_function){.name = name};
    }
    query->functions[i].in_output |= mention->in_output;
    query->functions[i].at_level |= mention->at_level;
}

static enum tree_step mention_visit(ProtobufCMessage *message, void *context)
{
    struct mention *mention = context;

    if (tree_is(message, &pg_query__range_var__descriptor))
        mention_relation(mention, (PgQuery__RangeVar *)message);
    if (tree_is(message, &pg_query__func_call__descriptor))
        mention_function(mention, (PgQuery__FuncCall *)message);
    if (tree_is(message, &pg_query__param_ref__descriptor)) {
        int number = ((PgQuery__ParamRef *)message)->number;
        mention->has_bad_param |= number < 1 || number > MAX_PARAMS;
        if (number > mention->query->param_count)
            mention->query->param_count = number;
    }
    return mention->query->arena.failed ? TREE_STOP : TREE_DEEPER;
}

/* Marks functions at the level itself; sub-selects were seen by the walk over everything. */
static enum tree_step level_visit(ProtobufCMessage *message, void *context)
{
    if (tree_is(message, &pg_query__select_stmt__descriptor))
        return TREE_OVER;
    return mention_visit(message, context);
}

static void mention_output(struct mention *mention, PgQuery__Node *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mention->at_level = false;
        tree_walk(&nodes[i]->base, mention_visit, mention);
        mention->at_level = true;
        tree_walk(&nodes[i]->base, level_visit, mention);
    }
}

/* The select lists of a set operation's arms: called for each row, but not at the level itself. */
static void mention_arms(struct mention *mention, const PgQuery__SelectStmt *select)
{
    if (!select->larg)
        return;
    const PgQuery__SelectStmt *arms[] = {select->larg, select->rarg};
    for (size_t a = 0; a < sizeof arms / sizeof *arms; a++) {
        for (size_t i = 0; i < arms[a]->n_target_list; i++)
            tree_walk(&arms[a]->target_list[i]->base, mention_visit, mention);
        mention_arms(mention, arms[a]);
    }
}

enum pgseek_reason query_collect_mentions(struct pgseek_query *query)
{
    struct mention mention = {.query = query};
    const PgQuery__SelectStmt *level = query->level;

    tree_walk(&query->parsed->base, mention_visit, &mention);
    mention.in_output = true;
    mention_arms(&mention, level);
    for (size_t i = 0; i < level->n_values_lists; i++)
        tree_walk(&level->values_lists[i]->base, mention_visit, &mention);
    mention_output(&mention, level->target_list, level->n_target_list);
    mention_output(&mention, level->sort_clause, level->n_sort_clause);
    if (mention.has_bad_param)
        return PGSEEK_REASON_PARAMS_TOO_MANY;
    return query->arena.failed ? PGSEEK_REASON_NOMEM : PGSEEK_REASON_NONE;
}
