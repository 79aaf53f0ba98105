/* relation.c - one item of FROM that is no plain join, as a relation: a table, view, CTE, sub-select, function.
 *
 * See relation.h. Whatever is not understood has no keys and is opaque: less is known then, and nothing is wrong. */
#include "relation.h"

#include "source.h"

#include <string.h>

bool relation_is_join(const PgQuery__Node *node)
{
    return node->node_case == PG_QUERY__NODE__NODE_JOIN_EXPR && !node->join_expr->alias;
}

static void set_opaque(struct scope_relation *relation, enum pgseek_reason why)
{
    relation->is_opaque = true;
    relation->why = why;
}

/* ---- column aliases ---- */

/* An alias names one more of the columns that are not known. */
static struct scope_attribute hidden_attribute(const struct scope_relation *relation)
{
    return (struct scope_attribute){.is_window = relation->has_window, .is_computed = true};
}

/* Aliases rename the first columns. Behind those whose place is certain, nothing is known but the alias itself. */
static bool rename_columns(struct scope_relation *relation, struct arena *arena, PgQuery__Node *const *names,
                           size_t nnames)
{
    size_t kept = relation->is_opaque ? relation->ncertain : relation->nattributes;
    size_t count = relation->is_opaque && nnames > kept ? nnames : kept;

    if (!nnames)
        return true;
    struct scope_attribute *attributes = arena_array(arena, count + 1, sizeof *attributes);
    if (!attributes)
        return false;
    for (size_t i = 0; i < count; i++) {
        attributes[i] = i < kept ? relation->attributes[i] : hidden_attribute(relation);
        if (i < nnames)
            attributes[i].name = tree_string(names[i]);
    }
    if (kept < relation->nattributes)
        relation->nkeys = 0; /* their columns may have gone */
    relation->attributes = attributes;
    relation->nattributes = count;
    relation->ncertain = count;
    return true;
}

static bool apply_alias(struct scope_relation *relation, struct arena *arena, const PgQuery__Alias *alias)
{
    if (!alias)
        return true;
    relation->qualifier = alias->aliasname;
    relation->schema = NULL;
    return rename_columns(relation, arena, alias->colnames, alias->n_colnames);
}

/* ---- tables ---- */

static const struct scope_rest *column_rest(struct arena *arena, const struct facts_relation *relation,
                                            const struct facts_column *column, bool must_be_not_null,
                                            const struct scope_rest *next)
{
    struct scope_rest *rest = arena_alloc(arena, sizeof *rest);

    if (rest)
        *rest = (struct scope_rest){next, relation, NULL, column, must_be_not_null};
    return rest;
}

static bool add_attributes(struct scope_relation *relation, struct arena *arena, const struct facts_column *columns,
                           size_t ncolumns, bool may_trust)
{
    struct scope_attribute *attributes = arena_array(arena, ncolumns + 1, sizeof *attributes);

    if (!attributes)
        return false;
    for (size_t i = 0; i < ncolumns; i++) {
        attributes[i] = (struct scope_attribute){
            .name = columns[i].name,
            .facts = &columns[i],
            .relation = relation->facts,
            .not_null = may_trust && columns[i].not_null,
        };
        if (attributes[i].not_null)
            attributes[i].rests = column_rest(arena, relation->facts, &columns[i], true, NULL);
    }
    relation->attributes = attributes;
    relation->nattributes = ncolumns;
    relation->ncertain = ncolumns;
    return true;
}

static size_t find_attnum(const struct scope_relation *relation, int attnum)
{
    size_t i = 0;

    while (i < relation->nattributes && relation->attributes[i].facts->attnum != attnum)
        i++;
    return i;
}

/* False when the index is not usable, or memory is out, which the arena remembers. */
static bool read_key(struct scope_key *key, const struct scope_relation *relation, struct arena *arena,
                     const struct facts_unique *unique)
{
    size_t *columns = arena_array(arena, unique->nattnums + 1, sizeof *columns);
    struct scope_rest *rest = arena_alloc(arena, sizeof *rest);

    if (!columns || !rest || !unique->is_sort_unique || !unique->nattnums)
        return false;
    *rest = (struct scope_rest){.relation = relation->facts, .unique = unique};
    const struct scope_rest *rests = rest;
    for (size_t i = 0; i < unique->nattnums; i++) {
        columns[i] = find_attnum(relation, unique->attnums[i]);
        if (columns[i] == relation->nattributes)
            return false;
        rests = column_rest(arena, relation->facts, relation->attributes[columns[i]].facts, false, rests);
    }
    *key = (struct scope_key){
        .columns = columns,
        .ncolumns = unique->nattnums,
        .nulls_distinct = !unique->nulls_not_distinct,
        .is_primary = unique->is_primary,
        .name = unique->name,
        .rests = rests,
    };
    return true;
}

static bool add_keys(struct scope_relation *relation, struct arena *arena, const struct facts_unique *uniques,
                     size_t nuniques)
{
    struct scope_key *keys = arena_array(arena, nuniques + 1, sizeof *keys);

    if (!keys)
        return false;
    for (size_t i = 0; i < nuniques; i++)
        if (read_key(&keys[relation->nkeys], relation, arena, &uniques[i]))
            relation->nkeys++;
    relation->keys = keys;
    relation->why = PGSEEK_REASON_NO_TOTAL_ORDER;
    return !arena->failed;
}

/* ---- views: derived tables whose text the server keeps ---- */

static const PgQuery__SelectStmt *only_select(const PgQuery__ParseResult *parsed)
{
    const PgQuery__Node *node = parsed->n_stmts == 1 ? parsed->stmts[0]->stmt : NULL;

    return node && node->node_case == PG_QUERY__NODE__NODE_SELECT_STMT ? node->select_stmt : NULL;
}

/* The catalog is certain about names and types; the definition adds what it proves. */
static bool take_over(struct scope_relation *view, struct arena *arena, const struct scope_relation *inner)
{
    struct scope_attribute *attributes = arena_array(arena, view->nattributes + 1, sizeof *attributes);
    struct scope_key *keys = arena_array(arena, inner->nkeys + 1, sizeof *keys);
    struct scope_rest *rule = arena_alloc(arena, sizeof *rule);

    if (!attributes || !keys || !rule)
        return false;
    *rule = (struct scope_rest){.relation = view->facts};
    for (size_t i = 0; i < view->nattributes; i++) {
        attributes[i] = view->attributes[i];
        attributes[i].not_null = inner->attributes[i].not_null;
        attributes[i].is_window = inner->attributes[i].is_window;
        attributes[i].is_computed = inner->attributes[i].is_computed;
        if (attributes[i].not_null)
            attributes[i].rests = scope_rests_join(arena, inner->attributes[i].rests, rule);
    }
    for (size_t i = 0; i < inner->nkeys; i++) {
        keys[i] = inner->keys[i];
        keys[i].rests = scope_rests_join(arena, keys[i].rests, rule);
    }
    view->attributes = attributes;
    view->keys = keys;
    view->nkeys = inner->nkeys;
    view->has_window = inner->has_window;
    view->why = inner->why;
    return !arena->failed;
}

/* The definition says nothing about single columns: any of them may be what only some are. */
static bool doubt_columns(struct scope_relation *view, struct arena *arena, bool has_window)
{
    struct scope_attribute *attributes = arena_array(arena, view->nattributes + 1, sizeof *attributes);

    if (!attributes)
        return false;
    for (size_t i = 0; i < view->nattributes; i++) {
        attributes[i] = view->attributes[i];
        attributes[i].is_window = has_window;
        attributes[i].is_computed = true;
    }
    view->attributes = attributes;
    view->has_window = has_window;
    return true;
}

/* What a view or a CTE stands in when it is read: its names mean nothing there. */
static struct scope nowhere(const struct scope *scope)
{
    struct scope empty = *scope;

    empty.around = NULL;
    empty.nrelations = 0;
    empty.has_hidden_names = false;
    return empty;
}

static bool follow(struct scope_relation *view, const struct scope *scope, const PgQuery__SelectStmt *select)
{
    struct scope_relation inner = {.qualifier = ""};
    struct scope empty = nowhere(scope);

    if (!source_make(&inner, &empty, select, NULL, 0))
        return false;
    if (inner.nattributes == view->nattributes && !inner.is_opaque)
        return take_over(view, scope->arena, &inner);
    return doubt_columns(view, scope->arena, inner.has_window);
}

static bool read_view(struct scope_relation *view, const struct scope *scope)
{
    const char *definition = view->facts->definition;
    PgQuery__ParseResult *parsed = NULL;
    enum tree_result result = TREE_SYNTAX;
    bool made = true;
    struct lex lex;

    if (lex_init(&lex, definition, strlen(definition)) == LEX_OK)
        result = tree_parse(lex.sql, &parsed);
    const PgQuery__SelectStmt *select = parsed ? only_select(parsed) : NULL;
    if (select)
        made = follow(view, scope, select);
    tree_free(parsed);
    lex_fini(&lex);
    return made && result != TREE_NOMEM;
}

/* ---- names in FROM: CTEs come before relations ---- */

static bool read_kind(struct scope_relation *relation, const struct scope *scope, const PgQuery__RangeVar *var,
                      size_t ord)
{
    char kind = relation->facts->kind;
    bool is_table = kind == 'r' || kind == 'p';
    bool is_parent = kind == 'r' && relation->facts->has_children && var->inh;
    size_t ncolumns;
    size_t nuniques;
    const struct facts_column *columns = facts_columns(scope->facts, ord, &ncolumns);
    const struct facts_unique *uniques = facts_uniques(scope->facts, ord, &nuniques);

    if (!add_attributes(relation, scope->arena, columns, ncolumns, is_table && !is_parent))
        return false;
    relation->why = is_parent ? PGSEEK_REASON_INHERITANCE : PGSEEK_REASON_RELATION_KIND;
    if (is_table && !is_parent)
        return add_keys(relation, scope->arena, uniques, nuniques);
    return kind == 'v' && relation->facts->definition ? read_view(relation, scope) : true;
}

static bool read_table(struct scope_relation *relation, const struct scope *scope, const PgQuery__RangeVar *var)
{
    size_t ord;

    relation->qualifier = var->relname;
    relation->facts = facts_ask_relation(scope->facts, *var->schemaname ? var->schemaname : NULL, var->relname, &ord);
    if (!relation->facts) {
        set_opaque(relation, PGSEEK_REASON_UNKNOWN_RELATION);
        return true;
    }
    relation->schema = relation->facts->schema;
    return read_kind(relation, scope, var, ord);
}

/* The WITH clause as the body of its i-th query sees it: the ones before it, or with RECURSIVE all of them, where the
 * query's own name stands for rows that nobody can know. The parser never sets the mark that is used for it. */
static const PgQuery__WithClause *seen_by(struct arena *arena, const PgQuery__WithClause *with, size_t i)
{
    PgQuery__WithClause *seen = arena_alloc(arena, sizeof *seen);

    if (!seen)
        return NULL;
    *seen = *with;
    if (!with->recursive) {
        seen->n_ctes = i;
        return seen;
    }
    PgQuery__CommonTableExpr *own = arena_alloc(arena, sizeof *own);
    PgQuery__Node *node = arena_alloc(arena, sizeof *node);
    seen->ctes = arena_array(arena, with->n_ctes, sizeof *seen->ctes);
    if (!own || !node || !seen->ctes)
        return NULL;
    memcpy(seen->ctes, with->ctes, with->n_ctes * sizeof(PgQuery__Node *));
    *own = *with->ctes[i]->common_table_expr;
    own->cterecursive = true;
    *node = *with->ctes[i];
    node->common_table_expr = own;
    seen->ctes[i] = node;
    return seen;
}

static enum tree_step stop_at_name(ProtobufCMessage *message, void *context)
{
    const char *name = context;

    return tree_is(message, &pg_query__range_var__descriptor) && !strcmp(((PgQuery__RangeVar *)message)->relname, name)
               ? TREE_STOP
               : TREE_DEEPER;
}

/* A query that reads itself: what one column is, any may become. */
static bool spread_windows(struct scope_relation *relation, struct arena *arena, const PgQuery__CommonTableExpr *cte)
{
    if (!relation->has_window || tree_walk(&cte->ctequery->base, stop_at_name, cte->ctename))
        return true;
    return doubt_columns(relation, arena, true);
}

static bool read_body(struct scope_relation *relation, const struct scope *scope, size_t clause, size_t i)
{
    const PgQuery__WithClause *own = scope->with[clause];
    const PgQuery__CommonTableExpr *cte = own->ctes[i]->common_table_expr;
    size_t nwith = scope->nwith - clause;
    struct scope empty = nowhere(scope);
    const PgQuery__WithClause **with = arena_array(scope->arena, nwith, sizeof *with);

    if (!with)
        return false;
    memcpy(with, scope->with + clause, nwith * sizeof(const PgQuery__WithClause *));
    with[0] = seen_by(scope->arena, own, i);
    if (!with[0] || !source_make(relation, &empty, cte->ctequery->select_stmt, with, nwith))
        return false;
    relation->is_opaque |= cte->search_clause || cte->cycle_clause; /* they add columns */
    return own->recursive ? spread_windows(relation, scope->arena, cte) : true;
}

static bool read_cte(struct scope_relation *relation, const struct scope *scope, size_t clause, size_t i)
{
    const PgQuery__CommonTableExpr *cte = scope->with[clause]->ctes[i]->common_table_expr;
    bool is_select = cte->ctequery && cte->ctequery->node_case == PG_QUERY__NODE__NODE_SELECT_STMT;

    relation->qualifier = cte->ctename;
    if (cte->cterecursive || !is_select)
        set_opaque(relation, PGSEEK_REASON_NO_TOTAL_ORDER);
    else if (!read_body(relation, scope, clause, i))
        return false;
    return rename_columns(relation, scope->arena, cte->aliascolnames, cte->n_aliascolnames);
}

static bool read_name(struct scope_relation *relation, const struct scope *scope, const PgQuery__RangeVar *var)
{
    for (size_t clause = 0; clause < scope->nwith && !*var->schemaname; clause++)
        for (size_t i = 0; i < scope->with[clause]->n_ctes; i++)
            if (!strcmp(scope->with[clause]->ctes[i]->common_table_expr->ctename, var->relname))
                return read_cte(relation, scope, clause, i);
    return read_table(relation, scope, var);
}

/* ---- the rest ---- */

/* `SELECT * FROM a JOIN b ...`, which is what a join with an alias of its own is: its tables' names are not seen. */
static const PgQuery__SelectStmt *select_all(struct arena *arena, const PgQuery__JoinExpr *join)
{
    struct parts {
        PgQuery__SelectStmt select;
        PgQuery__JoinExpr join;
        PgQuery__ResTarget target;
        PgQuery__ColumnRef column;
        PgQuery__AStar star;
        PgQuery__Node node[4];
        PgQuery__Node *list[4];
    } *parts = arena_alloc(arena, sizeof *parts);

    if (!parts)
        return NULL;
    pg_query__select_stmt__init(&parts->select);
    pg_query__res_target__init(&parts->target);
    pg_query__column_ref__init(&parts->column);
    pg_query__a__star__init(&parts->star);
    for (size_t i = 0; i < 4; i++) {
        pg_query__node__init(&parts->node[i]);
        parts->list[i] = &parts->node[i];
    }
    parts->join = *join;
    parts->join.alias = NULL;
    parts->node[0].node_case = PG_QUERY__NODE__NODE_JOIN_EXPR;
    parts->node[0].join_expr = &parts->join;
    parts->node[1].node_case = PG_QUERY__NODE__NODE_RES_TARGET;
    parts->node[1].res_target = &parts->target;
    parts->node[2].node_case = PG_QUERY__NODE__NODE_COLUMN_REF;
    parts->node[2].column_ref = &parts->column;
    parts->node[3].node_case = PG_QUERY__NODE__NODE_A_STAR;
    parts->node[3].a_star = &parts->star;
    parts->select.n_from_clause = 1;
    parts->select.from_clause = &parts->list[0];
    parts->select.n_target_list = 1;
    parts->select.target_list = &parts->list[1];
    parts->target.val = &parts->node[2];
    parts->column.n_fields = 1;
    parts->column.fields = &parts->list[3];
    return &parts->select;
}

static bool read_select(struct scope_relation *relation, const struct scope *scope, const PgQuery__SelectStmt *select,
                        const PgQuery__Alias *alias)
{
    return select && source_make(relation, scope, select, scope->with, scope->nwith) &&
           apply_alias(relation, scope->arena, alias);
}

static bool read_sample(struct scope_relation *relation, const struct scope *scope,
                        const PgQuery__RangeTableSample *sample)
{
    if (!relation_make(relation, scope, sample->relation))
        return false;
    if (sample->repeatable)
        return true;
    relation->nkeys = 0; /* each page would see other rows */
    relation->why = PGSEEK_REASON_TABLESAMPLE;
    return true;
}

bool relation_make(struct scope_relation *relation, const struct scope *scope, const PgQuery__Node *node)
{
    *relation = (struct scope_relation){.qualifier = ""};
    switch ((int)node->node_case) {
    case PG_QUERY__NODE__NODE_RANGE_VAR:
        return read_name(relation, scope, node->range_var) &&
               apply_alias(relation, scope->arena, node->range_var->alias);
    case PG_QUERY__NODE__NODE_RANGE_SUBSELECT:
        relation->is_lateral = node->range_subselect->lateral;
        return read_select(relation, scope,
                           node->range_subselect->subquery ? node->range_subselect->subquery->select_stmt : NULL,
                           node->range_subselect->alias);
    case PG_QUERY__NODE__NODE_JOIN_EXPR:
        relation->is_lateral = true; /* something in it may be */
        return read_select(relation, scope, select_all(scope->arena, node->join_expr), node->join_expr->alias);
    case PG_QUERY__NODE__NODE_RANGE_FUNCTION:
        return relation_read_function(relation, scope, node->range_function) &&
               apply_alias(relation, scope->arena, node->range_function->alias);
    case PG_QUERY__NODE__NODE_RANGE_TABLE_SAMPLE: return read_sample(relation, scope, node->range_table_sample);
    case PG_QUERY__NODE__NODE_RANGE_TABLE_FUNC:
        relation->is_lateral = true;
        set_opaque(relation, PGSEEK_REASON_FROM_FUNCTION);
        return apply_alias(relation, scope->arena, node->range_table_func->alias);
    default: set_opaque(relation, PGSEEK_REASON_FROM_FUNCTION); return true;
    }
}
