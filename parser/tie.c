/* tie.c - what breaks the ties of an order: columns by proof, groups, DISTINCT, or the client's word for it.
 *
 * See tie.h. */
#include "tie.h"

#include "reach.h"

#include <string.h>

/* ---- what tells the rows apart ---- */

struct aggregate_search {
    struct pgseek_facts *facts;
};

/* Calls of this level only. */
static enum tree_step stop_at_aggregate(ProtobufCMessage *message, void *context)
{
    if (tree_is(message, &pg_query__select_stmt__descriptor))
        return TREE_OVER;
    if (!tree_is(message, &pg_query__func_call__descriptor))
        return TREE_DEEPER;
    const PgQuery__FuncCall *call = (PgQuery__FuncCall *)message;
    const struct facts_function *function =
        facts_ask_function(context, tree_string(call->funcname[call->n_funcname - 1]));
    return !call->over && function && function->is_aggregate ? TREE_STOP : TREE_DEEPER;
}

static bool any_aggregate(struct pgseek_facts *facts, PgQuery__Node *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!tree_walk(&nodes[i]->base, stop_at_aggregate, facts))
            return true;
    return false;
}

static bool is_grouped(const struct order *order)
{
    const PgQuery__SelectStmt *level = order->query->level;
    struct pgseek_facts *facts = order->scope->facts;

    return level->n_group_clause || level->having_clause ||
           any_aggregate(facts, level->target_list, level->n_target_list) ||
           any_aggregate(facts, level->sort_clause, level->n_sort_clause);
}

static enum pgseek_reason read_items(struct order *order, PgQuery__Node *const *nodes, size_t count,
                                     const struct cut_range *texts, size_t ntexts, bool input_first)
{
    enum pgseek_reason reason = PGSEEK_REASON_NONE;

    order->groups = arena_array(order->scope->arena, count, sizeof *order->groups);
    if (!order->groups)
        return PGSEEK_REASON_NOMEM;
    for (size_t i = 0; i < count && reason == PGSEEK_REASON_NONE; i++) {
        struct order_key key;
        bool sorts;

        reason = order_item(order, nodes[i], i < ntexts ? texts[i] : (struct cut_range){0}, input_first, &key, &sorts);
        if (reason == PGSEEK_REASON_NONE && sorts)
            order->groups[order->ngroups++] = key;
    }
    return reason;
}

static enum pgseek_reason read_groups(struct order *order)
{
    const PgQuery__SelectStmt *level = order->query->level;
    const struct cut *cut = &order->query->cut;

    if (order->form == QUERY_PLAIN)
        order->form = QUERY_GROUPED;
    order->total = ORDER_GROUPS;
    if (!level->n_group_clause)
        return PGSEEK_REASON_ONE_ROW;
    return read_items(order, level->group_clause, level->n_group_clause, cut->groups, cut->ngroups, true);
}

static enum pgseek_reason read_distinct(struct order *order, bool grouped)
{
    const PgQuery__SelectStmt *level = order->query->level;
    const struct cut *cut = &order->query->cut;
    /* Plain DISTINCT is one empty node. */
    bool plain = level->distinct_clause[0]->node_case == PG_QUERY__NODE__NODE__NOT_SET;

    order->total = plain ? ORDER_OUTPUTS : ORDER_ON;
    if (plain && grouped && order->form == QUERY_DISTINCT)
        order->form = QUERY_GROUPED;
    if (plain)
        return order->outputs.is_known ? PGSEEK_REASON_NONE : PGSEEK_REASON_STAR;
    if (grouped || order->form != QUERY_DISTINCT_ON)
        return PGSEEK_REASON_DISTINCT_ON;
    return read_items(order, level->distinct_clause, level->n_distinct_clause, cut->distincts, cut->ndistincts, false);
}

enum pgseek_reason tie_read(struct order *order)
{
    const PgQuery__SelectStmt *level = order->query->level;

    order->total = ORDER_ROWS;
    if (level->op != PG_QUERY__SET_OPERATION__SETOP_NONE)
        order->total = level->all ? ORDER_NOTHING : ORDER_OUTPUTS;
    else if (level->n_values_lists)
        order->total = ORDER_NOTHING;
    else if (level->n_distinct_clause)
        return read_distinct(order, is_grouped(order));
    else if (is_grouped(order))
        return read_groups(order);
    return PGSEEK_REASON_NONE;
}

/* ---- whether it is told ---- */

/* An expression follows from rows that are known as a whole. (Equal values are not enough: 1.0 and 1.00 are equal and
 * their texts are not.) */
static bool follows(const struct order *order, PgQuery__Node *node)
{
    struct expression expression;

    if (!node || !expression_read(&expression, node, order->scope, &order->proof) || !expression.is_plain ||
        expression.refused != PGSEEK_REASON_NONE)
        return false;
    for (size_t i = 0; i < expression.ncolumns; i++)
        if (!proof_is_relation_known(&order->proof, expression.columns[i].relation))
            return false;
    return true;
}

static bool is_told(const struct order *order, const struct order_key *item)
{
    if (order_has_key(order, item))
        return true;
    if (order->total == ORDER_ON)
        return false;
    if (item->is_column)
        return proof_is_known(&order->proof, item->column);
    return order->form != QUERY_SET &&
           !any_aggregate(order->scope->facts, &(PgQuery__Node *){item->node}, item->node != NULL) &&
           follows(order, item->node);
}

/* The first item that the keys do not tell; false: all are told. */
static bool missing_group(const struct order *order, struct order_key *missing)
{
    for (size_t i = 0; i < order->ngroups; i++) {
        if (is_told(order, &order->groups[i]))
            continue;
        *missing = order->groups[i];
        return true;
    }
    return false;
}

static bool missing_output(const struct order *order, struct order_key *missing, enum pgseek_reason *reason)
{
    *reason = PGSEEK_REASON_NONE;
    for (size_t i = 0; i < order->outputs.count; i++) {
        bool sorts;

        *reason = order_output(order, i, missing, &sorts);
        if (*reason != PGSEEK_REASON_NONE)
            return true;
        if (!is_told(order, missing))
            return true;
    }
    return false;
}

bool tie_is_broken(const struct order *order)
{
    struct order_key missing;
    enum pgseek_reason reason;

    switch (order->total) {
    case ORDER_ROWS: return proof_is_total(&order->proof);
    case ORDER_GROUPS:
    case ORDER_ON: return !missing_group(order, &missing);
    case ORDER_OUTPUTS: return !missing_output(order, &missing, &reason);
    case ORDER_NOTHING: break;
    }
    return false;
}

/* ---- tie-breakers ---- */

/* In the direction of the last key, so that a uniform order stays uniform. */
static enum pgseek_reason append(struct order *order, struct order_key key)
{
    key.descending = order->nkeys && order->keys[order->nkeys - 1].descending;
    key.nulls_first = key.descending;
    key.is_appended = true;
    return order_add(order, key);
}

static enum pgseek_reason append_column(struct order *order, struct scope_column column)
{
    return append(order, (struct order_key){.is_column = true, .column = column, .output = SIZE_MAX});
}

static enum pgseek_reason append_key(struct order *order, size_t relation, const struct scope_key *key)
{
    struct arena *arena = order->scope->arena;

    for (size_t i = 0; i < key->ncolumns; i++) {
        struct scope_column column = {relation, key->columns[i]};

        if (proof_is_known(&order->proof, column))
            continue;
        enum pgseek_reason reason = append_column(order, column);
        if (reason != PGSEEK_REASON_NONE)
            return reason;
    }
    order->tie_breaker = *order->tie_breaker ? arena_format(arena, "%s, %s", order->tie_breaker, key->name) : key->name;
    return order->tie_breaker ? PGSEEK_REASON_NONE : PGSEEK_REASON_NOMEM;
}

/* Columns that can be selected, named, sorted and sent. */
static bool is_usable(const void *context, struct scope_column column)
{
    const struct order *order = context;
    const struct scope_relation *relation = &order->scope->relations[column.relation];
    const struct scope_attribute *attribute = &relation->attributes[column.column];

    if (!*relation->qualifier || !attribute->name || attribute->is_window)
        return false;
    return !attribute->facts || (attribute->facts->may_select && order_type_travels(attribute->facts->type));
}

/* What a DBA should read when nothing tells the rows apart. */
static enum pgseek_reason why_not(const struct order *order, bool denied)
{
    const struct scope *scope = order->scope;

    if (denied)
        return PGSEEK_REASON_KEY_PRIVILEGE;
    for (size_t i = 0; i < scope->nrelations; i++)
        if (!proof_is_relation_known(&order->proof, i) && !scope->relations[i].nkeys &&
            scope->relations[i].why != PGSEEK_REASON_NONE)
            return scope->relations[i].why;
    return PGSEEK_REASON_NO_TOTAL_ORDER;
}

static enum pgseek_reason append_proven(struct order *order)
{
    while (!proof_is_total(&order->proof)) {
        size_t relation;
        bool denied = false;
        size_t before = order->nkeys;
        size_t preferred = before ? order->keys[before - 1].relation : order->scope->nrelations;
        const struct scope_key *key = proof_next_key(&order->proof, preferred, is_usable, order, &relation, &denied);

        if (!key)
            return why_not(order, denied);
        enum pgseek_reason reason = append_key(order, relation, key);
        if (reason != PGSEEK_REASON_NONE)
            return reason;
        if (order->nkeys == before) /* it told nothing new: the proof has no more to give */
            return PGSEEK_REASON_NO_TOTAL_ORDER;
    }
    return PGSEEK_REASON_NONE;
}

/* What is missing must become a key: else nothing would ever be total. */
static enum pgseek_reason append_one(struct order *order, struct order_key missing, const char *origin)
{
    size_t before = order->nkeys;
    enum pgseek_reason reason = append(order, missing);

    if (reason != PGSEEK_REASON_NONE)
        return reason;
    if (order->nkeys == before)
        return PGSEEK_REASON_NO_TOTAL_ORDER;
    order->tie_breaker = origin;
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason append_groups(struct order *order, const char *origin)
{
    enum pgseek_reason reason = PGSEEK_REASON_NONE;
    struct order_key missing;

    while (reason == PGSEEK_REASON_NONE && missing_group(order, &missing))
        reason = append_one(order, missing, origin);
    return reason;
}

static enum pgseek_reason append_outputs(struct order *order, const char *origin)
{
    enum pgseek_reason reason = PGSEEK_REASON_NONE;
    struct order_key missing;

    while (reason == PGSEEK_REASON_NONE && missing_output(order, &missing, &reason))
        if (reason == PGSEEK_REASON_NONE)
            reason = append_one(order, missing, origin);
    return reason;
}

/* ---- key= ---- */

/* One `name` or `qualifier.name` of key=, from token *i on; a bare one has no qualifier. */
static bool read_name(const struct lex *lex, size_t *i, char qualifier[LEX_NAME_BYTES + 1],
                      char name[LEX_NAME_BYTES + 1])
{
    *qualifier = '\0';
    if (!lex_name(lex, *i, name))
        return false;
    ++*i;
    if (!lex_is(lex, *i, '.'))
        return true;
    memcpy(qualifier, name, LEX_NAME_BYTES + 1);
    if (!lex_name(lex, *i + 1, name))
        return false;
    *i += 2;
    return true;
}

static const char *quoted(struct arena *arena, const char *qualifier, const char *name)
{
    struct text text = {0};

    if (*qualifier) {
        text_put_ident(&text, qualifier);
        text_putc(&text, '.');
    }
    text_put_ident(&text, name);
    const char *copy = text.failed ? NULL : arena_strdup(arena, text.ptr);
    text_fini(&text);
    return copy;
}

static enum pgseek_reason append_named_output(struct order *order, const char *name)
{
    struct order_key key;
    size_t found = SIZE_MAX;
    bool sorts;

    for (size_t i = 0; i < order->outputs.count; i++) {
        if (!order->outputs.item[i].name || strcmp(order->outputs.item[i].name, name) != 0)
            continue;
        if (found != SIZE_MAX)
            return PGSEEK_REASON_KEY_COLUMN;
        found = i;
    }
    if (found == SIZE_MAX || order_output(order, found, &key, &sorts) != PGSEEK_REASON_NONE)
        return PGSEEK_REASON_KEY_COLUMN;
    return append(order, key);
}

static enum pgseek_reason append_name(struct order *order, const char *qualifier, const char *name)
{
    struct scope_column column;

    if (order->form == QUERY_SET)
        return *qualifier ? PGSEEK_REASON_KEY_COLUMN : append_named_output(order, name);
    switch (scope_find_name(order->scope, *qualifier ? qualifier : NULL, name, &column)) {
    case SCOPE_FOUND: return append_column(order, column);
    case SCOPE_MISSING: return *qualifier ? PGSEEK_REASON_KEY_COLUMN : append_named_output(order, name);
    case SCOPE_AMBIGUOUS: return PGSEEK_REASON_KEY_COLUMN;
    case SCOPE_OPAQUE: break;
    }
    const char *written = quoted(order->scope->arena, qualifier, name);
    if (!written)
        return PGSEEK_REASON_NOMEM;
    return append(order, (struct order_key){.written = written, .output = SIZE_MAX});
}

static enum pgseek_reason append_named(struct order *order, const char *key_option)
{
    enum pgseek_reason reason = PGSEEK_REASON_KEY_COLUMN;
    char qualifier[LEX_NAME_BYTES + 1];
    char name[LEX_NAME_BYTES + 1];
    struct lex lex;
    size_t i = 0;

    if (lex_init(&lex, key_option, strlen(key_option)) != LEX_OK)
        goto out;
    do {
        reason = read_name(&lex, &i, qualifier, name) ? append_name(order, qualifier, name) : PGSEEK_REASON_KEY_COLUMN;
    } while (reason == PGSEEK_REASON_NONE && lex_is(&lex, i++, ','));
    if (reason == PGSEEK_REASON_NONE && i <= lex.ntokens)
        reason = PGSEEK_REASON_KEY_COLUMN; /* something follows that is no comma */
    order->is_trusted = true;
    order->tie_breaker = "key=";
out:
    lex_fini(&lex);
    return reason;
}

/* ---- all of it ---- */

static enum pgseek_reason append_missing(struct order *order, const char *key_option)
{
    switch (order->total) {
    case ORDER_GROUPS: return append_groups(order, "GROUP BY");
    case ORDER_ON: return append_groups(order, "DISTINCT ON");
    case ORDER_OUTPUTS: return append_outputs(order, order->form == QUERY_SET ? "all columns" : "DISTINCT");
    case ORDER_ROWS: return key_option ? append_named(order, key_option) : append_proven(order);
    case ORDER_NOTHING: break;
    }
    return key_option ? append_named(order, key_option) : PGSEEK_REASON_NO_TOTAL_ORDER;
}

enum pgseek_reason tie_append(struct order *order, const char *key_option)
{
    enum pgseek_reason reason = append_missing(order, key_option);

    /* All is pinned by the statement: at most one row, and still a page. */
    if (reason == PGSEEK_REASON_NONE && !order->nkeys)
        reason = order->has_first ? order_add(order, order->first) : PGSEEK_REASON_ORDER_CONSTANT;
    return reason;
}
