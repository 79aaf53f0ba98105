/* expression.c - what an expression of a level depends on: columns, settings, the clock; and whether it may be NULL.
 *
 * See expression.h. */
#include "expression.h"

#include "reach.h"

#include <stdlib.h>
#include <string.h>

/* ---- collations ---- */

/* Each identity once, in the order of their first use. */
static void add_identity(struct text *text, const char *identity)
{
    if (!identity || !*identity || (text->ptr && strstr(text->ptr, identity)))
        return;
    text_puts(text, text->len ? "; " : "");
    text_puts(text, identity);
}

static void add_default(struct text *text, struct pgseek_facts *facts)
{
    const struct facts_collation *collation = facts_ask_collation(facts, "pg_catalog", "default");

    if (collation)
        add_identity(text, collation->identity);
}

static const char *keep(struct text *text, struct arena *arena)
{
    const char *copy = text->failed ? NULL : arena_strdup(arena, text->ptr ? text->ptr : "");

    text_fini(text);
    return copy;
}

struct collating {
    struct text text;
    struct pgseek_facts *facts;
};

static void add_collate(struct collating *collating, const PgQuery__CollateClause *clause)
{
    size_t n = clause->n_collname;
    const struct facts_collation *collation = facts_ask_collation(
        collating->facts, n > 1 ? tree_string(clause->collname[n - 2]) : NULL, tree_string(clause->collname[n - 1]));

    if (collation)
        add_identity(&collating->text, collation->identity);
}

/* A function that is replaced sorts otherwise, as a collation of another version does. */
static void add_function(struct collating *collating, const struct facts_function *function)
{
    struct text identity = {0};

    if (!function || !function->version)
        return;
    text_format(&identity, "%s %s", function->name, function->version);
    collating->text.failed |= identity.failed;
    add_identity(&collating->text, identity.ptr);
    text_fini(&identity);
}

static enum tree_step visit_identity(ProtobufCMessage *message, void *context)
{
    struct collating *collating = context;

    if (tree_is(message, &pg_query__collate_clause__descriptor))
        add_collate(collating, (PgQuery__CollateClause *)message);
    if (tree_is(message, &pg_query__func_call__descriptor)) {
        const PgQuery__FuncCall *call = (PgQuery__FuncCall *)message;
        add_function(collating,
                     facts_ask_function(collating->facts, tree_string(call->funcname[call->n_funcname - 1])));
    }
    return TREE_DEEPER;
}

/* Those of views, too. */
static void add_all_functions(struct collating *collating)
{
    size_t count;
    const struct facts_function *functions = facts_functions(collating->facts, &count);

    for (size_t i = 0; i < count; i++)
        add_function(collating, &functions[i]);
}

const char *expression_all_collations(const struct scope *scope)
{
    struct collating collating = {.facts = scope->facts};
    const struct pgseek_query *query = scope->query;

    add_default(&collating.text, scope->facts);
    for (size_t i = 0; i < query->nrelations; i++) {
        size_t ord = 0;
        size_t count = 0;
        const struct facts_relation *relation =
            facts_ask_relation(scope->facts, query->relations[i].schema, query->relations[i].name, &ord);
        const struct facts_column *columns = relation ? facts_columns(scope->facts, ord, &count) : NULL;

        for (size_t c = 0; c < count; c++)
            add_identity(&collating.text, columns[c].collation);
    }
    (void)tree_walk(&query->parsed->base, visit_identity, &collating);
    add_all_functions(&collating);
    return keep(&collating.text, scope->arena);
}

/* ---- reading ---- */

struct reader {
    struct expression *out;
    const struct scope *scope;
    const struct proof *proof;
    bool has_operator;
    bool has_function;
    bool has_sub_select;
    size_t room;
};

static void refuse(struct reader *reader, enum pgseek_reason reason)
{
    if (reader->out->refused == PGSEEK_REASON_NONE)
        reader->out->refused = reason;
}

/* Types whose operators and casts among themselves ask no setting. */
static bool is_settled(const struct facts_type *type)
{
    static const uint32_t oids[] = {16, 18, 19, 20, 21, 23, 25, 26, 1042, 1043, 1700, 2950};

    for (size_t i = 0; type && i < sizeof oids / sizeof *oids; i++)
        if (type->oid == oids[i])
            return true;
    return false;
}

static void add_column(struct reader *reader, struct scope_column column)
{
    struct expression *out = reader->out;
    const struct scope_attribute *attribute = scope_attribute(reader->scope, column);

    if (attribute->is_window)
        refuse(reader, PGSEEK_REASON_WINDOW_KEY);
    out->is_computed |= attribute->is_computed;
    out->is_stable |= attribute->is_computed || !attribute->facts || !is_settled(attribute->facts->type);
    for (size_t i = 0; i < out->ncolumns; i++)
        if (scope_same(out->columns[i], column))
            return;
    if (out->ncolumns == reader->room) {
        size_t room = reader->room ? reader->room * 2 : 8;
        struct scope_column *columns = arena_array(reader->scope->arena, room, sizeof *columns);

        if (!columns)
            return;
        if (out->ncolumns)
            memcpy(columns, out->columns, out->ncolumns * sizeof *columns);
        out->columns = columns;
        reader->room = room;
    }
    out->columns[out->ncolumns++] = column;
}

static void read_column(struct reader *reader, const PgQuery__ColumnRef *column)
{
    struct scope_column found;

    if (tree_is_star(column)) {
        refuse(reader, PGSEEK_REASON_SYSTEM_COLUMN);
        return;
    }
    switch (scope_find(reader->scope, column, &found)) {
    case SCOPE_FOUND: add_column(reader, found); return;
    case SCOPE_AMBIGUOUS: refuse(reader, PGSEEK_REASON_ORDER_AMBIGUOUS); return;
    case SCOPE_MISSING: refuse(reader, PGSEEK_REASON_SYSTEM_COLUMN); return;
    case SCOPE_OPAQUE: break;
    }
    refuse(reader, scope_hides_window(reader->scope));
    reader->out->is_plain = false;
    reader->out->is_computed = true;
    reader->out->is_stable = true;
}

static void read_call(struct reader *reader, const PgQuery__FuncCall *call)
{
    const struct facts_function *function =
        facts_ask_function(reader->scope->facts, tree_string(call->funcname[call->n_funcname - 1]));

    reader->has_function = true;
    if (call->over)
        refuse(reader, PGSEEK_REASON_WINDOW_KEY);
    if (function && function->volatility == 'v')
        refuse(reader, PGSEEK_REASON_VOLATILE);
    if (function && function->returns_set)
        refuse(reader, PGSEEK_REASON_SRF_KEY);
    reader->out->is_stable |= !function || function->volatility != 'i';
}

static enum tree_step visit_deep(ProtobufCMessage *message, void *context)
{
    if (reach_is_clock(message))
        refuse(context, PGSEEK_REASON_CLOCK_KEY);
    return TREE_DEEPER;
}

static enum tree_step visit(ProtobufCMessage *message, void *context)
{
    struct reader *reader = context;

    if (tree_is(message, &pg_query__select_stmt__descriptor)) {
        reader->has_sub_select = true;
        reader->out->is_plain = false;
        reader->out->is_computed = true;
        reader->out->is_stable = true;
        return TREE_OVER;
    }
    if (tree_is(message, &pg_query__column_ref__descriptor))
        read_column(reader, (PgQuery__ColumnRef *)message);
    else if (tree_is(message, &pg_query__func_call__descriptor))
        read_call(reader, (PgQuery__FuncCall *)message);
    else if (tree_is(message, &pg_query__a__expr__descriptor))
        reader->has_operator = true;
    else if (tree_is(message, &pg_query__type_cast__descriptor) ||
             tree_is(message, &pg_query__sqlvalue_function__descriptor))
        reader->out->is_stable = true;
    return TREE_DEEPER;
}

/* ---- NULL ---- */

/* A literal, perhaps cast to a built-in type. */
static bool is_non_null_literal(const PgQuery__Node *node)
{
    if (node && node->node_case == PG_QUERY__NODE__NODE_TYPE_CAST &&
        tree_builtin_name(node->type_cast->type_name->names, node->type_cast->type_name->n_names))
        node = node->type_cast->arg;
    return node && node->node_case == PG_QUERY__NODE__NODE_A_CONST && !node->a_const->isnull;
}

static bool is_non_null(const struct reader *reader, const PgQuery__Node *node);

static bool is_non_null_column(const struct reader *reader, const PgQuery__ColumnRef *column)
{
    struct scope_column found;

    return !tree_is_star(column) && scope_find(reader->scope, column, &found) == SCOPE_FOUND &&
           proof_is_non_null(reader->proof, found);
}

static bool has_non_null_argument(const struct reader *reader, const PgQuery__CoalesceExpr *coalesce)
{
    for (size_t i = 0; i < coalesce->n_args; i++)
        if (is_non_null(reader, coalesce->args[i]))
            return true;
    return false;
}

/* count(*) and nothing else: other functions are known by name only. */
static bool is_count(const PgQuery__FuncCall *call)
{
    const char *name = tree_builtin_name(call->funcname, call->n_funcname);

    return name && !strcmp(name, "count") && call->agg_star && !call->over;
}

static bool is_non_null(const struct reader *reader, const PgQuery__Node *node)
{
    if (!node)
        return false;
    switch (node->node_case) {
    case PG_QUERY__NODE__NODE_COLUMN_REF: return is_non_null_column(reader, node->column_ref);
    case PG_QUERY__NODE__NODE_COALESCE_EXPR: return has_non_null_argument(reader, node->coalesce_expr);
    case PG_QUERY__NODE__NODE_COLLATE_CLAUSE: return is_non_null(reader, node->collate_clause->arg);
    case PG_QUERY__NODE__NODE_FUNC_CALL: return is_count(node->func_call);
    case PG_QUERY__NODE__NODE_NULL_TEST:
    case PG_QUERY__NODE__NODE_BOOLEAN_TEST: return true;
    case PG_QUERY__NODE__NODE_SUB_LINK: return node->sub_link->sub_link_type == PG_QUERY__SUB_LINK_TYPE__EXISTS_SUBLINK;
    default: return is_non_null_literal(node);
    }
}

/* ---- all of it ---- */

static size_t one_relation(const struct reader *reader)
{
    const struct expression *out = reader->out;
    size_t none = reader->scope->nrelations;

    if (!out->is_plain || !out->ncolumns)
        return none;
    for (size_t i = 1; i < out->ncolumns; i++)
        if (out->columns[i].relation != out->columns[0].relation)
            return none;
    return out->columns[0].relation;
}

static const char *collations(const struct reader *reader, PgQuery__Node *node)
{
    struct collating collating = {.facts = reader->scope->facts};

    add_default(&collating.text, reader->scope->facts);
    for (size_t i = 0; i < reader->out->ncolumns; i++) {
        const struct scope_attribute *attribute = scope_attribute(reader->scope, reader->out->columns[i]);
        if (attribute->facts)
            add_identity(&collating.text, attribute->facts->collation);
    }
    (void)tree_walk(&node->base, visit_identity, &collating);
    return keep(&collating.text, reader->scope->arena);
}

bool expression_read(struct expression *out, PgQuery__Node *node, const struct scope *scope, const struct proof *proof)
{
    struct reader reader = {.out = out, .scope = scope, .proof = proof};

    *out = (struct expression){.is_plain = true, .refused = PGSEEK_REASON_NONE};
    (void)tree_walk(&node->base, visit, &reader);
    (void)tree_walk(&node->base, visit_deep, &reader);
    out->is_stable |= reader.has_operator && reader.has_function;
    out->is_nullable = !is_non_null(&reader, node);
    out->relation = one_relation(&reader);
    out->collations = out->is_plain && !out->is_computed ? collations(&reader, node) : expression_all_collations(scope);
    return out->collations && !scope->arena->failed;
}

bool expression_is_collated(const PgQuery__Node *node, const struct scope *scope, struct scope_column *column)
{
    if (!node || node->node_case != PG_QUERY__NODE__NODE_COLLATE_CLAUSE)
        return false;
    const PgQuery__CollateClause *clause = node->collate_clause;
    const PgQuery__ColumnRef *inner = tree_column(clause->arg);
    size_t n = clause->n_collname;
    if (!inner || tree_is_star(inner) || scope_find(scope, inner, column) != SCOPE_FOUND)
        return false;
    const struct facts_collation *collation = facts_ask_collation(
        scope->facts, n > 1 ? tree_string(clause->collname[n - 2]) : NULL, tree_string(clause->collname[n - 1]));
    return collation && collation->deterministic;
}
