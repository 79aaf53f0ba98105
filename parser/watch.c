/* watch.c - what a plan has relied on, so that the guard can see whether it still holds.
 *
 * It reads the scope and the proof and must not know how the guard asks. Only what was used is watched: that costs a
 * tenth of comparing everything. */
#include "plan.h"

#include <string.h>

static const char *written_name(struct pgseek_plan *plan, const struct query_relation *relation)
{
    struct text text = {0};

    if (relation->schema) {
        text_put_ident(&text, relation->schema);
        text_putc(&text, '.');
    }
    text_put_ident(&text, relation->name);
    char *copy = text.failed ? NULL : arena_strdup(&plan->arena, text.ptr);
    text_fini(&text);
    return copy;
}

static bool is_in_from(const struct scope *scope, size_t ord)
{
    for (size_t i = 0; i < scope->nrelations; i++)
        if (scope->relations[i].facts->ord == ord)
            return true;
    return false;
}

static bool watch_relations(struct pgseek_plan *plan, const struct pgseek_query *query, const struct scope *scope)
{
    plan->relations = arena_array(&plan->arena, query->nrelations, sizeof *plan->relations);
    for (size_t i = 0; plan->relations && i < query->nrelations; i++) {
        const struct facts_relation *facts = facts_relation(scope->facts, i + 1);
        struct plan_relation *relation = &plan->relations[plan->nrelations++];

        relation->written = written_name(plan, &query->relations[i]);
        if (!facts)
            continue;
        relation->resolved_schema = arena_strdup(&plan->arena, facts->schema);
        relation->resolved_name = arena_strdup(&plan->arena, facts->name);
        relation->oid = facts->oid;
        relation->must_be_childless = facts->kind == 'r' && is_in_from(scope, i + 1);
    }
    return !plan->arena.failed;
}

static void watch_column(struct pgseek_plan *plan, const struct proof *proof, struct scope_column column)
{
    const struct facts_column *facts = scope_facts(proof->scope, column);
    uint32_t oid = proof->scope->relations[column.relation].facts->oid;
    bool by_statement = proof->by_statement[proof->base[column.relation] + column.column];

    for (size_t i = 0; i < plan->ncolumns; i++)
        if (plan->columns[i].relation_oid == oid && plan->columns[i].attnum == facts->attnum) {
            plan->columns[i].must_be_not_null |= facts->not_null && !by_statement;
            return;
        }
    plan->columns[plan->ncolumns++] = (struct plan_column){
        .relation_oid = oid,
        .attnum = facts->attnum,
        .name = arena_strdup(&plan->arena, facts->name),
        .type_oid = facts->type_oid,
        .collation_oid = facts->collation_oid,
        .must_be_not_null = facts->not_null && !by_statement,
    };
}

static void watch_index(struct pgseek_plan *plan, const struct proof *proof, size_t relation)
{
    const struct facts_unique *unique = proof->used[relation];

    plan->indexes[plan->nindexes++] = (struct plan_index){
        .oid = unique->index_oid,
        .relation_oid = proof->scope->relations[relation].facts->oid,
        .attnums = arena_strdup(&plan->arena, unique->attnums_text),
    };
    for (size_t i = 0; i < unique->nattnums; i++) {
        struct scope_column column;

        if (proof_column(proof->scope, relation, unique->attnums[i], &column))
            watch_column(plan, proof, column);
    }
}

static size_t watched_columns_room(const struct order *order)
{
    size_t room = order->nkeys + order->proof.ncolumns;

    for (size_t r = 0; r < order->proof.scope->nrelations; r++)
        room += order->proof.used[r] ? order->proof.used[r]->nattnums : 0;
    return room;
}

/* Columns that the statement compares: the proof relies on their types. */
static void watch_compared(struct pgseek_plan *plan, const struct proof *proof)
{
    for (size_t r = 0; r < proof->scope->nrelations; r++)
        for (size_t i = 0; i < proof->scope->relations[r].ncolumns; i++)
            if (proof->by_statement[proof->base[r] + i])
                watch_column(plan, proof, (struct scope_column){r, i});
}

static bool watch_proof(struct pgseek_plan *plan, const struct scope *scope, const struct order *order)
{
    plan->indexes = arena_array(&plan->arena, scope->nrelations, sizeof *plan->indexes);
    plan->columns = arena_array(&plan->arena, watched_columns_room(order), sizeof *plan->columns);
    if (!plan->indexes || !plan->columns)
        return false;
    for (size_t i = 0; i < order->nkeys; i++)
        watch_column(plan, &order->proof, order->keys[i].column);
    watch_compared(plan, &order->proof);
    for (size_t r = 0; r < scope->nrelations && !order->is_trusted; r++)
        watch_index(plan, &order->proof, r);
    return !plan->arena.failed;
}

static bool has_star(const struct pgseek_query *query)
{
    for (size_t i = 0; i < query->level->n_target_list; i++) {
        const PgQuery__ColumnRef *column = tree_column(query->level->target_list[i]->res_target->val);

        if (column && tree_is_star(column))
            return true;
    }
    return false;
}

/* A position over `*` means another column once a column before it has gone. Attribute numbers are never used again, so
 * their count and the last of them tell whether anything has changed. */
static void watch_layouts(struct pgseek_plan *plan, const struct pgseek_query *query, const struct scope *scope,
                          const struct order *order)
{
    if (!order->has_position || !has_star(query))
        return;
    for (size_t r = 0; r < scope->nrelations; r++) {
        const struct scope_relation *relation = &scope->relations[r];

        if (!relation->ncolumns)
            continue;
        plan->relations[relation->facts->ord - 1].layout_count = relation->ncolumns;
        plan->relations[relation->facts->ord - 1].layout_last = relation->columns[relation->ncolumns - 1].attnum;
    }
}

bool plan_watch(struct pgseek_plan *plan, const struct pgseek_query *query, const struct scope *scope,
                const struct order *order)
{
    if (!watch_relations(plan, query, scope) || !watch_proof(plan, scope, order))
        return false;
    watch_layouts(plan, query, scope, order);
    return true;
}
