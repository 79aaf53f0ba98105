/* scope.c - what the names of a level mean: the relations of its FROM, their columns, and what is known of every row.
 *
 * See scope.h. The order of `*` and the merging of USING columns follow the server's rules for inner joins. */
#include "scope.h"

#include <string.h>

/* More tables than any page joins: a bound for the work of the proof. */
#define MAX_RELATIONS 64

/* The columns that one item of FROM shows, in order. */
struct columns {
    struct scope_column *item;
    const char **name;
    size_t count;
};

static enum pgseek_reason read_item(struct scope *scope, const PgQuery__Node *node, struct columns *out);

const struct facts_column *scope_facts(const struct scope *scope, struct scope_column column)
{
    return &scope->relations[column.relation].columns[column.column];
}

/* ---- room: every list is made as large as it can become ---- */

static enum tree_step count_visit(ProtobufCMessage *message, void *context)
{
    (void)message;
    ++*(size_t *)context;
    return TREE_DEEPER;
}

/* Messages below the level: a bound for the numbers of its relations, conjuncts and merged columns. */
static size_t count_messages(const struct pgseek_query *query)
{
    size_t count = 0;

    tree_walk(&query->parsed->base, count_visit, &count);
    return count;
}

static bool columns_room(struct arena *arena, struct columns *columns, size_t count)
{
    columns->count = 0;
    columns->item = arena_array(arena, count, sizeof *columns->item);
    columns->name = arena_array(arena, count, sizeof *columns->name);
    return columns->item && columns->name;
}

static void columns_add(struct columns *columns, struct scope_column item, const char *name)
{
    columns->item[columns->count] = item;
    columns->name[columns->count++] = name;
}

/* ---- conditions ---- */

static void add_conjuncts(struct scope *scope, const PgQuery__Node *node)
{
    if (!node)
        return;
    if (node->node_case != PG_QUERY__NODE__NODE_BOOL_EXPR ||
        node->bool_expr->boolop != PG_QUERY__BOOL_EXPR_TYPE__AND_EXPR) {
        scope->conjuncts[scope->nconjuncts++] = node;
        return;
    }
    for (size_t i = 0; i < node->bool_expr->n_args; i++)
        add_conjuncts(scope, node->bool_expr->args[i]);
}

/* ---- relations ---- */

static size_t relation_ord(const struct pgseek_query *query, const PgQuery__RangeVar *var)
{
    for (size_t i = 0; i < query->nrelations; i++) {
        const char *schema = query->relations[i].schema;
        if (!strcmp(query->relations[i].name, var->relname) && !strcmp(schema ? schema : "", var->schemaname))
            return i + 1;
    }
    return 0;
}

static enum pgseek_reason check_kind(const struct facts_relation *relation)
{
    if (!relation)
        return PGSEEK_REASON_UNKNOWN_RELATION;
    if (relation->kind != 'r' && relation->kind != 'p')
        return PGSEEK_REASON_RELATION_KIND;
    if (relation->kind == 'r' && relation->has_children)
        return PGSEEK_REASON_INHERITANCE;
    return PGSEEK_REASON_NONE;
}

static const char *column_name(const struct scope_relation *relation, size_t i)
{
    const PgQuery__Alias *alias = relation->var->alias;

    if (alias && i < alias->n_colnames)
        return tree_string(alias->colnames[i]);
    return relation->columns[i].name;
}

/* Before the FROM is read as a whole, relations are taken in the order of the text. */
static enum pgseek_reason read_relation(struct scope *scope, const PgQuery__RangeVar *var, struct columns *out)
{
    size_t index = 0;

    while (scope->relations[index].var != var)
        index++;
    const struct scope_relation *relation = &scope->relations[index];
    if (!columns_room(scope->arena, out, relation->ncolumns))
        return PGSEEK_REASON_NOMEM;
    for (size_t i = 0; i < relation->ncolumns; i++)
        columns_add(out, (struct scope_column){index, i}, relation->names[i]);
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason add_relation(struct scope *scope, const struct pgseek_query *query,
                                       const PgQuery__RangeVar *var)
{
    if (scope->nrelations == MAX_RELATIONS)
        return PGSEEK_REASON_TOO_LARGE;
    struct scope_relation *relation = &scope->relations[scope->nrelations++];
    size_t ord = relation_ord(query, var);
    size_t ncolumns;
    const struct facts_column *columns = facts_columns(scope->facts, ord, &ncolumns);

    *relation = (struct scope_relation){
        .var = var,
        .qualifier = var->alias ? var->alias->aliasname : var->relname,
        .facts = facts_relation(scope->facts, ord),
        .columns = columns,
        .ncolumns = ncolumns,
    };
    enum pgseek_reason reason = check_kind(relation->facts);
    if (reason != PGSEEK_REASON_NONE)
        return reason;
    relation->names = arena_array(scope->arena, relation->ncolumns, sizeof *relation->names);
    if (!relation->names)
        return PGSEEK_REASON_NOMEM;
    for (size_t i = 0; i < relation->ncolumns; i++)
        relation->names[i] = column_name(relation, i);
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason add_relations(struct scope *scope, const struct pgseek_query *query,
                                        const PgQuery__Node *node)
{
    if (node->node_case == PG_QUERY__NODE__NODE_RANGE_VAR)
        return add_relation(scope, query, node->range_var);
    enum pgseek_reason reason = add_relations(scope, query, node->join_expr->larg);
    return reason == PGSEEK_REASON_NONE ? add_relations(scope, query, node->join_expr->rarg) : reason;
}

/* ---- joins ---- */

static size_t columns_find(const struct columns *columns, const char *name)
{
    size_t found = columns->count;

    for (size_t i = 0; i < columns->count; i++) {
        if (strcmp(columns->name[i], name) != 0)
            continue;
        if (found < columns->count)
            return columns->count; /* twice: the server will complain */
        found = i;
    }
    return found;
}

/* One column of USING: shown once, in front, with the left side's value. */
static enum pgseek_reason merge_column(struct scope *scope, const char *name, struct columns *left,
                                       struct columns *right, struct columns *out)
{
    size_t a = columns_find(left, name);
    size_t b = columns_find(right, name);

    if (a == left->count || b == right->count)
        return PGSEEK_REASON_UNKNOWN_COLUMN;
    if (scope_facts(scope, left->item[a])->type_oid != scope_facts(scope, right->item[b])->type_oid)
        return PGSEEK_REASON_USING_TYPES;
    scope->merged[scope->nmerged++] = (struct scope_equality){left->item[a], right->item[b]};
    columns_add(out, left->item[a], name);
    left->name[a] = ""; /* no column has that name: taken */
    right->name[b] = "";
    return PGSEEK_REASON_NONE;
}

static void add_rest(const struct columns *columns, struct columns *out)
{
    for (size_t i = 0; i < columns->count; i++)
        if (*columns->name[i])
            columns_add(out, columns->item[i], columns->name[i]);
}

static enum pgseek_reason read_join(struct scope *scope, const PgQuery__JoinExpr *join, struct columns *out)
{
    struct columns left;
    struct columns right;
    enum pgseek_reason reason = read_item(scope, join->larg, &left);

    if (reason == PGSEEK_REASON_NONE)
        reason = read_item(scope, join->rarg, &right);
    if (reason != PGSEEK_REASON_NONE)
        return reason;
    if (!columns_room(scope->arena, out, left.count + right.count))
        return PGSEEK_REASON_NOMEM;
    for (size_t i = 0; i < join->n_using_clause && reason == PGSEEK_REASON_NONE; i++)
        reason = merge_column(scope, tree_string(join->using_clause[i]), &left, &right, out);
    add_rest(&left, out);
    add_rest(&right, out);
    add_conjuncts(scope, join->quals);
    return reason;
}

static enum pgseek_reason read_item(struct scope *scope, const PgQuery__Node *node, struct columns *out)
{
    if (node->node_case == PG_QUERY__NODE__NODE_RANGE_VAR)
        return read_relation(scope, node->range_var, out);
    return read_join(scope, node->join_expr, out);
}

/* ---- the whole FROM ---- */

static enum pgseek_reason read_from(struct scope *scope, const PgQuery__SelectStmt *level)
{
    size_t total = 0;
    struct columns visible;

    for (size_t i = 0; i < scope->nrelations; i++)
        total += scope->relations[i].ncolumns;
    if (!columns_room(scope->arena, &visible, total))
        return PGSEEK_REASON_NOMEM;
    for (size_t i = 0; i < level->n_from_clause; i++) {
        struct columns item;
        enum pgseek_reason reason = read_item(scope, level->from_clause[i], &item);

        if (reason != PGSEEK_REASON_NONE)
            return reason;
        add_rest(&item, &visible);
    }
    scope->visible = visible.item;
    scope->visible_names = visible.name;
    scope->nvisible = visible.count;
    return PGSEEK_REASON_NONE;
}

enum pgseek_reason scope_make(struct scope *scope, struct arena *arena, const struct pgseek_query *query,
                              const struct pgseek_facts *facts)
{
    size_t room = count_messages(query);

    *scope = (struct scope){.facts = facts, .arena = arena};
    scope->relations = arena_array(arena, MAX_RELATIONS, sizeof *scope->relations);
    scope->conjuncts = arena_array(arena, room, sizeof *scope->conjuncts);
    scope->merged = arena_array(arena, room, sizeof *scope->merged);
    if (!scope->relations || !scope->conjuncts || !scope->merged)
        return PGSEEK_REASON_NOMEM;
    for (size_t i = 0; i < query->level->n_from_clause; i++) {
        enum pgseek_reason reason = add_relations(scope, query, query->level->from_clause[i]);
        if (reason != PGSEEK_REASON_NONE)
            return reason;
    }
    add_conjuncts(scope, query->level->where_clause);
    return read_from(scope, query->level);
}

/* ---- names ---- */

size_t scope_find_relation(const struct scope *scope, const char *schema, const char *qualifier)
{
    size_t found = scope->nrelations;

    for (size_t i = 0; i < scope->nrelations; i++) {
        const struct scope_relation *relation = &scope->relations[i];

        if (strcmp(relation->qualifier, qualifier) != 0)
            continue;
        if (schema && (relation->var->alias || strcmp(relation->facts->schema, schema) != 0))
            continue;
        if (found < scope->nrelations)
            return scope->nrelations;
        found = i;
    }
    return found;
}

static enum scope_found find_visible(const struct scope *scope, const char *name, struct scope_column *out)
{
    enum scope_found found = SCOPE_MISSING;

    for (size_t i = 0; i < scope->nvisible; i++) {
        if (strcmp(scope->visible_names[i], name) != 0)
            continue;
        if (found == SCOPE_FOUND)
            return SCOPE_AMBIGUOUS;
        *out = scope->visible[i];
        found = SCOPE_FOUND;
    }
    return found;
}

static enum scope_found find_in_relation(const struct scope *scope, size_t index, const char *name,
                                         struct scope_column *out)
{
    enum scope_found found = SCOPE_MISSING;

    if (index == scope->nrelations)
        return SCOPE_MISSING;
    for (size_t i = 0; i < scope->relations[index].ncolumns; i++) {
        if (strcmp(scope->relations[index].names[i], name) != 0)
            continue;
        if (found == SCOPE_FOUND)
            return SCOPE_AMBIGUOUS;
        *out = (struct scope_column){index, i};
        found = SCOPE_FOUND;
    }
    return found;
}

enum scope_found scope_find_name(const struct scope *scope, const char *qualifier, const char *name,
                                 struct scope_column *out)
{
    if (!qualifier)
        return find_visible(scope, name, out);
    return find_in_relation(scope, scope_find_relation(scope, NULL, qualifier), name, out);
}

enum scope_found scope_find(const struct scope *scope, const PgQuery__ColumnRef *column, struct scope_column *out)
{
    const char *part[3];

    if (column->n_fields < 1 || column->n_fields > 3)
        return SCOPE_MISSING;
    for (size_t i = 0; i < column->n_fields; i++) {
        part[i] = tree_column_part(column, i);
        if (!part[i])
            return SCOPE_MISSING;
    }
    if (column->n_fields == 1)
        return find_visible(scope, part[0], out);
    if (column->n_fields == 2)
        return find_in_relation(scope, scope_find_relation(scope, NULL, part[0]), part[1], out);
    return find_in_relation(scope, scope_find_relation(scope, part[0], part[1]), part[2], out);
}
