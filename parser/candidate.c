/* candidate.c - the keys of a sub-select: which of its outputs tell its rows apart.
 *
 * See source.h. A set of outputs is tried by assuming it in the sub-select's own proof; what is not needed is left out
 * again. Functions that return sets multiply rows, and then nothing is a key. */
#include "source.h"

#include <stdlib.h>
#include <string.h>

/* Bounds for the number of trials: outputs that may be in a key, and starting points. */
#define MAX_TRIED 32
#define MAX_STARTS 16

/* What must be known for two rows to be the same: grouping items, or the expressions of DISTINCT ON. */
struct item {
    bool is_column;
    struct scope_column column;
    size_t output; /* an expression: the output that has it; noutputs: none */
};

struct search {
    struct source *source;
    struct item *groups;
    size_t ngroups;
    struct item *distincts; /* of DISTINCT ON */
    size_t ndistincts;
    bool is_distinct; /* plain DISTINCT: all outputs */
    bool *chosen;     /* per output */
    size_t *tried;    /* outputs that may be in a key */
    size_t ntried;
    struct scope_key keys[SOURCE_MAX_KEYS];
    size_t nkeys;
};

/* ---- functions in expressions ---- */

struct function_search {
    const struct scope *scope;
    bool sets; /* look for set-returning ones, else for volatile ones */
    bool found;
};

static bool does(const struct function_search *search, const struct facts_function *function)
{
    return search->sets ? function->returns_set : function->volatility == 'v';
}

/* A dotted name that is no column of a relation here may call a function on its row: q.f means f(q) then. */
static bool is_such_a_call(const struct function_search *search, const PgQuery__ColumnRef *column)
{
    size_t n = column->n_fields;
    const char *qualifier = n > 1 ? tree_column_part(column, n - 2) : NULL;
    const char *name = n > 1 ? tree_column_part(column, n - 1) : NULL;
    struct scope_column found;

    if (!qualifier || !name || scope_find(search->scope, column, &found) == SCOPE_FOUND)
        return false;
    const struct facts_function *function = facts_ask_function(search->scope->facts, name);
    return function && does(search, function);
}

static enum tree_step function_visit(ProtobufCMessage *message, void *context)
{
    struct function_search *search = context;

    if (tree_is(message, &pg_query__select_stmt__descriptor) && search->sets)
        return TREE_OVER;
    if (tree_is(message, &pg_query__column_ref__descriptor))
        search->found |= is_such_a_call(search, (PgQuery__ColumnRef *)message);
    if (tree_is(message, &pg_query__func_call__descriptor)) {
        const PgQuery__FuncCall *call = (PgQuery__FuncCall *)message;
        const char *name = tree_string(call->funcname[call->n_funcname - 1]);
        const struct facts_function *function = facts_ask_function(search->scope->facts, name);

        search->found |= !function || does(search, function);
    }
    return search->found ? TREE_STOP : TREE_DEEPER;
}

static bool has_function(const struct scope *scope, PgQuery__Node *const *nodes, size_t count, bool sets)
{
    struct function_search search = {.scope = scope, .sets = sets};

    for (size_t i = 0; i < count && !search.found; i++)
        tree_walk(&nodes[i]->base, function_visit, &search);
    return search.found;
}

static bool multiplies_rows(const struct scope *scope, const PgQuery__SelectStmt *select)
{
    return has_function(scope, select->target_list, select->n_target_list, true) ||
           has_function(scope, select->sort_clause, select->n_sort_clause, true) ||
           has_function(scope, select->group_clause, select->n_group_clause, true) ||
           has_function(scope, select->distinct_clause, select->n_distinct_clause, true);
}

/* ---- aggregates: without GROUP BY they leave one row ---- */

/* By its form alone: a name may be an aggregate's and another function's. */
static bool is_surely_aggregate(const PgQuery__FuncCall *call)
{
    return !call->over &&
           (call->agg_star || call->agg_distinct || call->agg_filter || call->n_agg_order || call->agg_within_group);
}

static enum tree_step aggregate_visit(ProtobufCMessage *message, void *context)
{
    struct function_search *search = context;

    if (tree_is(message, &pg_query__select_stmt__descriptor))
        return TREE_OVER;
    if (tree_is(message, &pg_query__func_call__descriptor)) {
        const PgQuery__FuncCall *call = (PgQuery__FuncCall *)message;
        const char *name = tree_string(call->funcname[call->n_funcname - 1]);
        const struct facts_function *function = facts_ask_function(search->scope->facts, name);

        search->found |= is_surely_aggregate(call) || (!call->over && function && function->is_only_aggregate);
    }
    return search->found ? TREE_STOP : TREE_DEEPER;
}

static bool is_one_row(const struct scope *scope, const PgQuery__SelectStmt *select)
{
    struct function_search search = {.scope = scope};

    if (select->n_group_clause)
        return false;
    for (size_t i = 0; i < select->n_target_list && !search.found; i++)
        tree_walk(&select->target_list[i]->base, aggregate_visit, &search);
    return search.found || select->having_clause;
}

/* ---- items of GROUP BY and DISTINCT ON ---- */

static size_t output_of_node(const struct source *source, const PgQuery__Node *node)
{
    size_t i = 0;

    while (i < source->noutputs &&
           (source->outputs[i].is_column || !source->outputs[i].node ||
            source->outputs[i].node->node_case != node->node_case || !tree_same(source->outputs[i].node, node)))
        i++;
    return i;
}

static size_t output_of_name(const struct source *source, const char *name)
{
    size_t i = 0;

    while (i < source->noutputs && (!source->outputs[i].name || strcmp(source->outputs[i].name, name) != 0))
        i++;
    return i;
}

static size_t output_of_position(const struct source *source, const PgQuery__AConst *constant)
{
    bool is_position = !constant->isnull && constant->val_case == PG_QUERY__A__CONST__VAL_IVAL;
    int32_t position = is_position ? constant->ival->ival : 0;

    return position > 0 && (size_t)position <= source->ncertain ? (size_t)position - 1 : source->noutputs;
}

static struct item item_of_output(const struct source *source, size_t output)
{
    struct item item = {.output = output};

    if (output < source->noutputs && source->outputs[output].is_column)
        return (struct item){true, source->outputs[output].column, output};
    return item;
}

/* What a bare name means: in GROUP BY an input column before an output; in DISTINCT ON the other way round, so that
 * only a name that is no output's is taken for a column. */
static struct item read_item(const struct source *source, PgQuery__Node *node, bool is_grouping)
{
    struct item none = {.output = source->noutputs};
    const PgQuery__ColumnRef *column = tree_column(node);
    struct item item = {.is_column = true, .output = source->noutputs};

    if (node->node_case == PG_QUERY__NODE__NODE_A_CONST)
        return item_of_output(source, output_of_position(source, node->a_const));
    if (!column)
        return has_function(&source->scope, &node, 1, false) ? none
                                                             : item_of_output(source, output_of_node(source, node));
    const char *bare = column->n_fields == 1 ? tree_column_part(column, 0) : NULL;
    size_t named = bare ? output_of_name(source, bare) : source->noutputs;
    if (!is_grouping && named < source->noutputs)
        return item_of_output(source, named);
    enum scope_found found = scope_find(&source->scope, column, &item.column);
    if (found == SCOPE_FOUND)
        return item;
    return found == SCOPE_MISSING ? item_of_output(source, named) : none;
}

static struct item *read_items(const struct source *source, PgQuery__Node *const *nodes, size_t count, bool is_grouping)
{
    struct item *items = arena_array(source->scope.arena, count + 1, sizeof *items);

    for (size_t i = 0; items && i < count; i++)
        items[i] = read_item(source, nodes[i], is_grouping);
    return items;
}

/* ---- trials ---- */

static bool item_is_known(const struct search *search, const struct item *item)
{
    if (item->is_column)
        return proof_is_known(&search->source->proof, item->column);
    return item->output < search->source->noutputs && search->chosen[item->output];
}

static bool items_are_known(const struct search *search, const struct item *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!item_is_known(search, &items[i]))
            return false;
    return true;
}

static bool outputs_are_known(const struct search *search)
{
    for (size_t i = 0; i < search->source->noutputs; i++) {
        struct item item = item_of_output(search->source, i);

        if (!search->chosen[i] && !item_is_known(search, &item))
            return false;
    }
    return true;
}

/* Whether the chosen outputs tell all rows apart. */
static bool is_key(const struct search *search)
{
    struct proof *proof = &search->source->proof;

    proof_reset(proof);
    for (size_t i = 0; i < search->source->noutputs; i++)
        if (search->chosen[i] && search->source->outputs[i].is_column)
            proof_assume(proof, search->source->outputs[i].column);
    if (search->ngroups ? items_are_known(search, search->groups, search->ngroups) : proof_is_total(proof))
        return true;
    if (search->ndistincts && items_are_known(search, search->distincts, search->ndistincts))
        return true;
    return search->is_distinct && outputs_are_known(search);
}

static bool same_key(const struct search *search, const struct scope_key *key)
{
    size_t count = 0;

    for (size_t i = 0; i < search->source->noutputs; i++)
        count += search->chosen[i];
    if (count != key->ncolumns)
        return false;
    for (size_t i = 0; i < key->ncolumns; i++)
        if (!search->chosen[key->columns[i]])
            return false;
    return true;
}

/* For people: what makes it a key. */
static const char *key_name(const struct search *search, const struct scope_key *origin)
{
    if (search->ngroups)
        return "GROUP BY";
    if (proof_is_total(&search->source->proof))
        return origin ? origin->name : "a join's keys";
    return search->ndistincts ? "DISTINCT ON" : "DISTINCT";
}

static bool add_key(struct search *search, const struct scope_key *origin)
{
    const struct source *source = search->source;
    size_t *columns = arena_array(source->scope.arena, source->noutputs + 1, sizeof *columns);

    for (size_t i = 0; i < search->nkeys; i++)
        if (same_key(search, &search->keys[i]))
            return true;
    if (!columns || !is_key(search))
        return columns != NULL;
    struct scope_key *key = &search->keys[search->nkeys++];
    *key = (struct scope_key){
        .columns = columns, .is_primary = origin && origin->is_primary, .name = key_name(search, origin)};
    key->rests = proof_rests(&source->proof);
    for (size_t i = 0; i < source->noutputs; i++)
        if (search->chosen[i])
            columns[key->ncolumns++] = i;
    return true;
}

static void leave_out(struct search *search, size_t output)
{
    search->chosen[output] = false;
    search->chosen[output] = !is_key(search);
}

static bool is_of_key(const struct source *source, size_t output, size_t relation, const struct scope_key *key)
{
    const struct source_output *item = &source->outputs[output];

    for (size_t i = 0; key && item->is_column && item->column.relation == relation && i < key->ncolumns; i++)
        if (key->columns[i] == item->column.column)
            return true;
    return false;
}

/* Leaves out one output after the other, those of the given key last, so that its columns stay if they can. */
static bool add_smallest(struct search *search, size_t relation, const struct scope_key *key)
{
    memset(search->chosen, 0, search->source->noutputs);
    for (size_t i = 0; i < search->ntried; i++)
        search->chosen[search->tried[i]] = true;
    if (!is_key(search))
        return true;
    for (size_t i = search->ntried; i-- > 0;)
        if (!is_of_key(search->source, search->tried[i], relation, key))
            leave_out(search, search->tried[i]);
    for (size_t i = search->ntried; i-- > 0;)
        if (is_of_key(search->source, search->tried[i], relation, key))
            leave_out(search, search->tried[i]);
    return add_key(search, key);
}

/* ---- which outputs are worth a trial ---- */

static bool is_in_key(const struct source *source, size_t output)
{
    const struct scope_column column = source->outputs[output].column;
    const struct scope_relation *relation = &source->scope.relations[column.relation];

    for (size_t i = 0; i < relation->nkeys; i++)
        if (is_of_key(source, output, column.relation, &relation->keys[i]))
            return true;
    return false;
}

static bool is_equated(const struct source *source, size_t output)
{
    return source->proof.is_compared[proof_column_id(&source->proof, source->outputs[output].column)];
}

static bool is_in_items(const struct source *source, size_t output, const struct item *items, size_t count)
{
    const struct source_output *out = &source->outputs[output];

    for (size_t i = 0; i < count; i++)
        if (items[i].output == output ||
            (items[i].is_column && out->is_column && scope_same(items[i].column, out->column)))
            return true;
    return false;
}

static bool is_promising(const struct search *search, size_t output)
{
    const struct source *source = search->source;

    if (search->is_distinct || is_in_items(source, output, search->groups, search->ngroups) ||
        is_in_items(source, output, search->distincts, search->ndistincts))
        return true;
    /* A column of no key still tells rows from the NULLs of an outer join. */
    return source->outputs[output].is_column &&
           (is_in_key(source, output) || is_equated(source, output) ||
            proof_column_is_own_non_null(&source->proof, source->outputs[output].column));
}

static void choose_tried(struct search *search)
{
    for (size_t i = 0; i < search->source->noutputs && search->ntried < MAX_TRIED; i++)
        if (is_promising(search, i))
            search->tried[search->ntried++] = i;
}

/* ---- all keys ---- */

static bool find_keys(struct search *search)
{
    const struct scope *scope = &search->source->scope;
    size_t starts = 0;

    choose_tried(search);
    for (size_t r = 0; r < scope->nrelations; r++)
        for (size_t i = 0; i < scope->relations[r].nkeys; i++)
            if (starts++ < MAX_STARTS && search->nkeys < SOURCE_MAX_KEYS &&
                !add_smallest(search, r, &scope->relations[r].keys[i]))
                return false;
    if (search->nkeys < SOURCE_MAX_KEYS && !add_smallest(search, 0, NULL))
        return false;
    if (!search->is_distinct || search->nkeys)
        return true;
    memset(search->chosen, true, search->source->noutputs); /* too many to be tried one by one */
    return add_key(search, NULL);
}

static enum pgseek_reason why_not(const struct source *source)
{
    for (size_t r = 0; r < source->scope.nrelations; r++)
        if (!source->scope.relations[r].nkeys && source->scope.relations[r].why)
            return source->scope.relations[r].why;
    return PGSEEK_REASON_NO_TOTAL_ORDER;
}

/* DISTINCT is a list with one empty node, DISTINCT ON one of expressions. */
static bool is_plain_distinct(const PgQuery__SelectStmt *select)
{
    return select->n_distinct_clause == 1 &&
           (!select->distinct_clause[0] || select->distinct_clause[0]->node_case == PG_QUERY__NODE__NODE__NOT_SET);
}

static bool start_search(struct search *search, struct source *source)
{
    const PgQuery__SelectStmt *select = source->select;
    struct arena *arena = source->scope.arena;

    search->source = source;
    search->is_distinct = is_plain_distinct(select) && source->ncertain == source->noutputs &&
                          !has_function(&source->scope, select->target_list, select->n_target_list, false);
    search->ngroups = select->n_group_clause;
    search->groups = read_items(source, select->group_clause, select->n_group_clause, true);
    search->ndistincts = is_plain_distinct(select) ? 0 : select->n_distinct_clause;
    search->distincts = read_items(source, select->distinct_clause, search->ndistincts, false);
    search->chosen = arena_array(arena, source->noutputs + 1, sizeof *search->chosen);
    search->tried = arena_array(arena, MAX_TRIED, sizeof *search->tried);
    return search->groups && search->distincts && search->chosen && search->tried;
}

static bool take_keys(struct scope_relation *relation, const struct search *search)
{
    struct scope_key *keys = arena_array(search->source->scope.arena, search->nkeys + 1, sizeof *keys);

    if (!keys)
        return false;
    memcpy(keys, search->keys, search->nkeys * sizeof *keys);
    relation->keys = keys;
    relation->nkeys = search->nkeys;
    relation->why = why_not(search->source);
    return !search->source->scope.arena->failed;
}

bool source_find_keys(struct scope_relation *relation, struct source *source)
{
    const PgQuery__SelectStmt *select = source->select;
    struct search search = {0};

    relation->why = PGSEEK_REASON_SRF_KEY;
    if (multiplies_rows(&source->scope, select))
        return true;
    relation->why = PGSEEK_REASON_GROUPING_SETS;
    for (size_t i = 0; i < select->n_group_clause; i++)
        if (select->group_clause[i]->node_case == PG_QUERY__NODE__NODE_GROUPING_SET)
            return true;
    if (!start_search(&search, source))
        return false;
    if (is_one_row(&source->scope, select)) {
        search.keys[search.nkeys++] = (struct scope_key){.name = "aggregate"};
        return take_keys(relation, &search);
    }
    return find_keys(&search) && take_keys(relation, &search);
}
