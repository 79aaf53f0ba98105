/* order_key.c - one sort key: what it depends on, whether it may be one, its type, and how it is spelled.
 *
 * See order.h. */
#include "order.h"

#include "probe.h"
#include "reach.h"
#include "tie.h"

#include <string.h>

/* ---- what a key depends on ---- */

/* Nothing is known of it but its name: an arm's column, a star's, one of key=. */
static enum pgseek_reason fill_unknown(const struct order *order, struct order_key *key, bool *is_computed)
{
    key->nullable = true;
    key->is_stable = true;
    key->is_loose = true;
    key->relation = order->scope->nrelations;
    key->collation = expression_all_collations(order->scope);
    *is_computed = true;
    return scope_hides_window(order->scope);
}

static enum pgseek_reason fill_column(const struct order *order, struct order_key *key, bool *is_computed)
{
    const struct scope_attribute *attribute = scope_attribute(order->scope, key->column);
    struct scope_column *use = arena_array(order->scope->arena, 1, sizeof *use);

    if (!use)
        return PGSEEK_REASON_NOMEM;
    *use = key->column;
    key->uses = use;
    key->nuses = 1;
    key->nullable = !proof_is_non_null(&order->proof, key->column);
    key->relation = key->column.relation;
    key->is_stable = attribute->is_computed;
    key->is_loose = !attribute->facts;
    key->collation = attribute->facts && !attribute->is_computed ? attribute->facts->collation
                                                                 : expression_all_collations(order->scope);
    *is_computed = attribute->is_computed;
    if (attribute->is_window)
        return PGSEEK_REASON_WINDOW_KEY;
    return attribute->facts && !attribute->facts->may_select ? PGSEEK_REASON_KEY_PRIVILEGE : PGSEEK_REASON_NONE;
}

static enum pgseek_reason fill_expression(const struct order *order, struct order_key *key, bool *is_computed)
{
    struct expression expression;

    if (!expression_read(&expression, key->node, order->scope, &order->proof))
        return PGSEEK_REASON_NOMEM;
    key->nullable = expression.is_nullable;
    key->is_stable = expression.is_stable;
    key->is_loose = !expression.is_plain;
    key->relation = expression.relation;
    key->collation = expression.collations;
    key->uses = expression.columns;
    key->nuses = expression.ncolumns;
    *is_computed = expression.is_computed;
    return expression.refused;
}

/* The column that sorting by the key tells apart; false: none. */
static bool told_apart(const struct order *order, const struct order_key *key, struct scope_column *column)
{
    *column = key->column;
    return key->is_column || (key->node && expression_is_collated(key->node, order->scope, column));
}

static enum pgseek_reason fill(const struct order *order, struct order_key *key)
{
    bool is_computed = false;
    enum pgseek_reason reason;

    if (key->is_column)
        reason = fill_column(order, key, &is_computed);
    else if (key->node)
        reason = fill_expression(order, key, &is_computed);
    else
        reason = fill_unknown(order, key, &is_computed);
    if (reason == PGSEEK_REASON_NONE && is_computed)
        reason = reach_fickle(order->query, order->scope->facts);
    if (!key->nullable)
        key->nulls_first = key->descending;
    if (reason == PGSEEK_REASON_NONE && !key->collation)
        reason = PGSEEK_REASON_NOMEM;
    return reason;
}

/* ---- spelling ---- */

static bool can_be_named(const struct order *order, struct scope_column column)
{
    const struct scope_relation *relation = &order->scope->relations[column.relation];

    return *relation->qualifier && relation->attributes[column.column].name;
}

static const char *column_text(const struct order *order, struct scope_column column)
{
    const struct scope *scope = order->scope;
    const struct scope_relation *relation = &scope->relations[column.relation];
    struct text text = {0};

    /* Two relations of one name, in two schemas: only the schema tells them apart. */
    if (scope_find_relation(scope, NULL, relation->qualifier) == scope->nrelations && relation->schema) {
        text_put_ident(&text, relation->schema);
        text_putc(&text, '.');
    }
    text_put_ident(&text, relation->qualifier);
    text_putc(&text, '.');
    text_put_ident(&text, relation->attributes[column.column].name);
    const char *copy = text.failed ? NULL : arena_strdup(scope->arena, text.ptr);
    text_fini(&text);
    return copy;
}

/* A column of something that has no name itself is spelled bare, when that is clear. False: it cannot be spelled. */
static bool spell(const struct order *order, struct order_key *key)
{
    struct arena *arena = order->scope->arena;
    struct scope_column found;

    if (order->form == QUERY_SET || key->written || key->text.end > key->text.start)
        return true;
    if (!key->is_column || can_be_named(order, key->column))
        return key->is_column;
    const char *name = scope_attribute(order->scope, key->column)->name;
    if (!name || scope_find_name(order->scope, NULL, name, &found) != SCOPE_FOUND || !scope_same(found, key->column))
        return false;
    struct text text = {0};
    text_put_ident(&text, name);
    key->written = text.failed ? NULL : arena_strdup(arena, text.ptr);
    text_fini(&text);
    return key->written != NULL;
}

const char *order_text(const struct order *order, const struct order_key *key)
{
    struct arena *arena = order->scope->arena;

    if (order->form == QUERY_SET)
        return arena_format(arena, "c%zu", key->output + 1);
    if (key->is_column && can_be_named(order, key->column))
        return column_text(order, key->column);
    if (key->written)
        return key->written;
    return arena_strndup(arena, order->query->lex.sql + key->text.start, key->text.end - key->text.start);
}

bool order_is_spelled(const struct order *order, const struct order_key *key)
{
    if (order->form == QUERY_SET)
        return false;
    if (key->is_column)
        return can_be_named(order, key->column);
    return key->node && !tree_column(key->node) && key->text.end > key->text.start;
}

/* ---- adding ---- */

bool order_same_key(const struct order_key *a, const struct order_key *b)
{
    if (a->is_column && b->is_column)
        return scope_same(a->column, b->column);
    if (a->is_column != b->is_column)
        return false;
    if (a->node && b->node)
        return tree_same(a->node, b->node);
    if (a->written && b->written)
        return !strcmp(a->written, b->written);
    return !a->node && !b->node && !a->written && !b->written && a->output == b->output;
}

bool order_has_key(const struct order *order, const struct order_key *key)
{
    for (size_t i = 0; i < order->nkeys; i++)
        if (order_same_key(&order->keys[i], key))
            return true;
    return false;
}

/* What DISTINCT ON orders by must be written out, whether it sorts or not. */
static bool sorts_nothing(const struct order *order, const struct order_key *key)
{
    if (order_has_key(order, key))
        return true;
    if (order->total == ORDER_ON || order->is_trusted)
        return false;
    return tie_is_broken(order) || (key->is_column && proof_is_known(&order->proof, key->column));
}

/* A wrap sees output columns and nothing else. */
static bool find_output(const struct order *order, struct order_key *key)
{
    for (size_t i = 0; i < order->outputs.count; i++) {
        const struct output *output = &order->outputs.item[i];

        if (!key->is_column || !output->is_column || !scope_same(output->column, key->column))
            continue;
        key->output = i;
        return true;
    }
    return false;
}

static enum pgseek_reason push(struct order *order, struct order_key key)
{
    struct scope_column column;
    bool tells = told_apart(order, &key, &column);
    size_t relation = key.relation;
    bool was_known = relation < order->scope->nrelations && proof_is_relation_known(&order->proof, relation);

    if (order->nkeys == PGSEEK_MAX_KEYS)
        return PGSEEK_REASON_KEYS_TOO_MANY;
    if (tells)
        proof_assume(&order->proof, column);
    key.closes = relation < order->scope->nrelations && !was_known && proof_is_relation_known(&order->proof, relation);
    order->keys[order->nkeys++] = key;
    return PGSEEK_REASON_NONE;
}

enum pgseek_reason order_add(struct order *order, struct order_key key)
{
    if (order->nkeys && sorts_nothing(order, &key))
        return PGSEEK_REASON_NONE;
    if (order->form == QUERY_SET && key.output == SIZE_MAX && !find_output(order, &key))
        return PGSEEK_REASON_ORDER_EXPRESSION;
    if (!spell(order, &key))
        return PGSEEK_REASON_STAR;
    enum pgseek_reason reason = fill(order, &key);
    return reason == PGSEEK_REASON_NONE ? push(order, key) : reason;
}

/* ---- types ---- */

/* Types whose input refuses what their output makes of an empty value: a walk could not go on behind it. */
static bool takes_nothing_empty(uint32_t oid)
{
    enum { INT2VECTOR = 22, OIDVECTOR = 30, TSQUERY = 3615 };

    return oid == INT2VECTOR || oid == OIDVECTOR || oid == TSQUERY;
}

bool order_type_travels(const struct facts_type *type)
{
    if (!type || !type->oid || !type->has_binary || type->kind == 'p') /* record: a row without a type of its own */
        return false;
    if (takes_nothing_empty(type->oid))
        return false;
    for (size_t i = 0; i < FACTS_OPERATORS; i++)
        if (!type->operator[i].name || !type->operator[i].schema)
            return false;
    return true;
}

/* From the column's facts or the description of the output that it is. False: it takes a probe. */
static bool find_type(const struct order *order, struct order_key *key)
{
    const struct facts_column *facts = key->is_column ? scope_attribute(order->scope, key->column)->facts : NULL;
    uint32_t oid = key->output != SIZE_MAX ? order->outputs.item[key->output].type_oid : 0;

    if (facts)
        key->type = facts->type;
    else if (oid)
        key->type = facts_ask_type(order->scope->facts, oid);
    return facts || oid;
}

/* The server describes the level with the keys in its select list. */
static enum pgseek_reason probe(struct order *order, struct order_key *const *keys, size_t nkeys)
{
    const char *exprs[PGSEEK_MAX_KEYS];
    struct text text = {0};

    for (size_t i = 0; i < nkeys; i++)
        exprs[i] = order_text(order, keys[i]);
    bool written = !order->scope->arena->failed && probe_make(&text, order->query, exprs, nkeys) && !text.failed;
    const struct pgseek_description *description =
        written ? facts_ask_description(order->scope->facts, text.ptr, text.len) : NULL;
    text_fini(&text);
    if (!written)
        return PGSEEK_REASON_NOMEM;
    if (!description)
        return facts_is_asking(order->scope->facts) ? PGSEEK_REASON_MORE : PGSEEK_REASON_KEY_TYPE;
    if (description->ncolumns < nkeys)
        return PGSEEK_REASON_DESCRIBE_MISMATCH;
    for (size_t i = 0; i < nkeys; i++)
        keys[i]->type =
            facts_ask_type(order->scope->facts, description->columns[description->ncolumns - nkeys + i].type_oid);
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason check_type(const struct order_key *key)
{
    if (!order_type_travels(key->type))
        return PGSEEK_REASON_KEY_TYPE;
    /* A row of NULLs is NULL to a predicate and not to a sort. */
    return key->type->kind == 'c' && key->nullable ? PGSEEK_REASON_COMPOSITE_KEY : PGSEEK_REASON_NONE;
}

enum pgseek_reason order_resolve_types(struct order *order)
{
    struct order_key *unknown[PGSEEK_MAX_KEYS];
    size_t nunknown = 0;
    enum pgseek_reason reason = PGSEEK_REASON_NONE;

    for (size_t i = 0; i < order->nkeys; i++)
        if (!find_type(order, &order->keys[i]))
            unknown[nunknown++] = &order->keys[i];
    if (nunknown)
        reason = order->form == QUERY_SET ? PGSEEK_REASON_KEY_TYPE : probe(order, unknown, nunknown);
    for (size_t i = 0; i < order->nkeys && reason == PGSEEK_REASON_NONE; i++)
        reason = check_type(&order->keys[i]);
    return facts_is_asking(order->scope->facts) ? PGSEEK_REASON_MORE : reason;
}
