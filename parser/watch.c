/* watch.c - what a plan has relied on, so that the guard can see whether it still holds.
 *
 * It reads the scope and the proof and must not know how the guard asks. Only what was used is watched: that costs a
 * tenth of comparing everything. */
#include "plan.h"

#include <string.h>

static const char *quoted_name(struct pgseek_plan *plan, const char *schema, const char *name)
{
    struct text text = {0};

    if (schema) {
        text_put_ident(&text, schema);
        text_putc(&text, '.');
    }
    text_put_ident(&text, name);
    char *copy = text.failed ? NULL : arena_strdup(&plan->arena, text.ptr);
    text_fini(&text);
    return copy;
}

/* ---- room: lists of unknown length ---- */

static void *grow(struct arena *arena, const void *items, size_t count, size_t item_bytes)
{
    /* Full at each power of two. */
    bool is_full = count == 0 || (count & (count - 1)) == 0;
    if (!is_full)
        return NULL;
    void *grown = arena_array(arena, count ? count * 2 : 1, item_bytes);
    if (grown && count)
        memcpy(grown, items, count * item_bytes);
    return grown;
}

/* ---- relations ---- */

static struct plan_relation *add_relation(struct pgseek_plan *plan, struct plan_relation relation)
{
    struct plan_relation *grown = grow(&plan->arena, plan->relations, plan->nrelations, sizeof *grown);

    if (grown)
        plan->relations = grown;
    if (plan->arena.failed)
        return NULL;
    plan->relations[plan->nrelations] = relation;
    return &plan->relations[plan->nrelations++];
}

static struct plan_relation resolved(struct pgseek_plan *plan, const char *written, const struct facts_relation *facts)
{
    return (struct plan_relation){
        .written = written,
        .resolved_schema = arena_strdup(&plan->arena, facts->schema),
        .resolved_name = arena_strdup(&plan->arena, facts->name),
        .oid = facts->oid,
        .rule_xmin = facts->kind == 'v' && facts->rule_xmin ? arena_strdup(&plan->arena, facts->rule_xmin) : NULL,
    };
}

/* What the statement names must still mean the same. The order is that of the text: it is part of the contract. */
static bool watch_names(struct pgseek_plan *plan, const struct pgseek_query *query, const struct scope *scope)
{
    for (size_t i = 0; i < query->nrelations; i++) {
        size_t ord;
        const char *written = quoted_name(plan, query->relations[i].schema, query->relations[i].name);
        const struct facts_relation *facts =
            facts_ask_relation(scope->facts, query->relations[i].schema, query->relations[i].name, &ord);

        if (!add_relation(plan, facts ? resolved(plan, written, facts) : (struct plan_relation){.written = written}))
            return false;
    }
    plan->nnames = plan->nrelations;
    return true;
}

static struct plan_relation *find_relation(struct pgseek_plan *plan, uint32_t oid)
{
    for (size_t i = 0; i < plan->nrelations; i++)
        if (plan->relations[i].oid == oid)
            return &plan->relations[i];
    return NULL;
}

/* A relation that is relied on, named in the text or inside of a view. */
static void watch_relation(struct pgseek_plan *plan, const struct facts_relation *facts)
{
    struct plan_relation *relation = find_relation(plan, facts->oid);

    if (!relation)
        relation = add_relation(plan, resolved(plan, quoted_name(plan, facts->schema, facts->name), facts));
    if (relation)
        relation->must_be_childless |= facts->kind == 'r' && !facts->has_children;
}

/* ---- columns and indexes ---- */

static void watch_column(struct pgseek_plan *plan, const struct facts_relation *relation,
                         const struct facts_column *facts, bool must_be_not_null)
{
    for (size_t i = 0; i < plan->ncolumns; i++)
        if (plan->columns[i].relation_oid == relation->oid && plan->columns[i].attnum == facts->attnum) {
            plan->columns[i].must_be_not_null |= must_be_not_null;
            return;
        }
    struct plan_column *grown = grow(&plan->arena, plan->columns, plan->ncolumns, sizeof *grown);
    if (grown)
        plan->columns = grown;
    if (plan->arena.failed)
        return;
    plan->columns[plan->ncolumns++] = (struct plan_column){
        .relation_oid = relation->oid,
        .attnum = facts->attnum,
        .name = arena_strdup(&plan->arena, facts->name),
        .type_oid = facts->type_oid,
        .collation_oid = facts->collation_oid,
        .must_be_not_null = must_be_not_null,
    };
}

static void watch_index(struct pgseek_plan *plan, const struct facts_relation *relation,
                        const struct facts_unique *unique)
{
    for (size_t i = 0; i < plan->nindexes; i++)
        if (plan->indexes[i].oid == unique->index_oid)
            return;
    struct plan_index *grown = grow(&plan->arena, plan->indexes, plan->nindexes, sizeof *grown);
    if (grown)
        plan->indexes = grown;
    if (plan->arena.failed)
        return;
    plan->indexes[plan->nindexes++] = (struct plan_index){
        .oid = unique->index_oid,
        .relation_oid = relation->oid,
        .attnums = arena_strdup(&plan->arena, unique->attnums_text),
    };
}

static void watch_rests(struct pgseek_plan *plan, const struct scope_rest *rests)
{
    for (const struct scope_rest *rest = rests; rest; rest = rest->next) {
        watch_relation(plan, rest->relation);
        if (rest->unique)
            watch_index(plan, rest->relation, rest->unique);
        if (rest->column)
            watch_column(plan, rest->relation, rest->column, rest->must_be_not_null);
    }
}

/* The columns that a key is made of keep their types; one that is not nullable keeps its constraint. */
static void watch_key(struct pgseek_plan *plan, const struct order *order, const struct order_key *key)
{
    for (size_t i = 0; i < key->nuses; i++) {
        const struct scope_attribute *attribute = scope_attribute(order->scope, key->uses[i]);

        if (!attribute->facts || !attribute->relation)
            continue;
        watch_relation(plan, attribute->relation);
        watch_column(plan, attribute->relation, attribute->facts, false);
        if (!key->nullable)
            watch_rests(plan, proof_non_null_rests(&order->proof, key->uses[i]));
    }
}

/* ---- collations and enums ---- */

/* A column of a type without text in it sorts under no collation. */
static void watch_collations(struct pgseek_plan *plan, const struct pgseek_facts *facts, const struct order *order)
{
    bool has_any = false;
    size_t count;

    for (size_t i = 0; i < order->nkeys; i++)
        has_any |= plan->keys[i].is.is_text || !order->keys[i].is_column;
    const struct facts_collation *collations = has_any ? facts_collations(facts, &plan->arena, &count) : NULL;
    plan->collations = collations ? arena_array(&plan->arena, count, sizeof *plan->collations) : NULL;
    for (size_t i = 0; plan->collations && i < count; i++)
        plan->collations[plan->ncollations++] = (struct plan_identity){
            .oid = collations[i].oid,
            .text = arena_strdup(&plan->arena, collations[i].identity),
        };
}

static void watch_enums(struct pgseek_plan *plan, const struct order *order)
{
    plan->enums = arena_array(&plan->arena, order->nkeys, sizeof *plan->enums);
    for (size_t i = 0; plan->enums && i < order->nkeys; i++)
        if (*order->keys[i].type->labels)
            plan->enums[plan->nenums++] = (struct plan_identity){
                .oid = order->keys[i].type->oid,
                .text = arena_strdup(&plan->arena, order->keys[i].type->labels),
            };
}

/* ---- functions ---- */

/* Volatility and order rest on them. */
static void watch_functions(struct pgseek_plan *plan, const struct pgseek_facts *facts)
{
    size_t count;
    const struct facts_function *functions = facts_functions(facts, &count);

    plan->functions = arena_array(&plan->arena, count, sizeof *plan->functions);
    for (size_t i = 0; plan->functions && i < count; i++)
        if (functions[i].version)
            plan->functions[plan->nfunctions++] = (struct plan_function){
                .name = arena_strdup(&plan->arena, functions[i].name),
                .version = arena_strdup(&plan->arena, functions[i].version),
            };
}

/* ---- layouts ---- */

static enum tree_step stop_at_star(ProtobufCMessage *message, void *context)
{
    (void)context;
    return tree_is(message, &pg_query__a__star__descriptor) ? TREE_STOP : TREE_DEEPER;
}

/* DISTINCT and UNION, at any depth, tell rows apart by all that their list gives. */
static enum tree_step stop_at_distinct(ProtobufCMessage *message, void *context)
{
    (void)context;
    if (!tree_is(message, &pg_query__select_stmt__descriptor))
        return TREE_DEEPER;
    const PgQuery__SelectStmt *select = (PgQuery__SelectStmt *)message;
    return select->n_distinct_clause || select->op != PG_QUERY__SET_OPERATION__SETOP_NONE ? TREE_STOP : TREE_DEEPER;
}

/* Whether it matters which columns a `*` gives, and whether what a key is made of can only be watched as a whole. */
static bool needs_layouts(const struct pgseek_plan *plan, const struct pgseek_query *query, const struct order *order)
{
    bool counts = order->has_position || plan->is_inner || plan->form == QUERY_SET || plan->form == QUERY_WINDOW ||
                  !tree_walk(&query->parsed->base, stop_at_distinct, NULL);

    for (size_t i = 0; i < order->nkeys; i++)
        if (order->keys[i].is_loose)
            return true;
    return counts && !tree_walk(&query->parsed->base, stop_at_star, NULL);
}

static const char *layout(struct pgseek_plan *plan, const struct facts_column *columns, size_t count)
{
    struct text text = {0};

    for (size_t i = 0; i < count; i++)
        text_format(&text, "%s%d:%u:%u:%s", i ? "," : "", columns[i].attnum, columns[i].type_oid,
                    columns[i].collation_oid, columns[i].name);
    const char *copy = text.failed ? NULL : arena_strdup(&plan->arena, text.ptr ? text.ptr : "");
    text_fini(&text);
    return copy;
}

static void watch_layouts(struct pgseek_plan *plan, const struct pgseek_query *query, const struct scope *scope)
{
    for (size_t i = 0; i < query->nrelations; i++) {
        size_t ord;
        size_t count = 0;
        const struct facts_relation *facts =
            facts_ask_relation(scope->facts, query->relations[i].schema, query->relations[i].name, &ord);
        const struct facts_column *columns = facts ? facts_columns(scope->facts, ord, &count) : NULL;

        if (count)
            plan->relations[i].layout = layout(plan, columns, count);
    }
}

bool plan_watch(struct pgseek_plan *plan, const struct pgseek_query *query, const struct scope *scope,
                const struct order *order)
{
    if (!watch_names(plan, query, scope))
        return false;
    for (size_t i = 0; i < order->nkeys; i++)
        watch_key(plan, order, &order->keys[i]);
    watch_rests(plan, proof_rests(&order->proof));
    watch_collations(plan, scope->facts, order);
    watch_enums(plan, order);
    watch_functions(plan, scope->facts);
    if (needs_layouts(plan, query, order))
        watch_layouts(plan, query, scope);
    return !plan->arena.failed;
}
