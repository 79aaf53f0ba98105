/* outputs.c - the output columns of a level: what each comes from, `*` expanded, and what it is called.
 *
 * See outputs.h. The names in the server's own description are the truth: implicit output names have rules that
 * nobody should write again. */
#include "outputs.h"

#include <string.h>

static void add(struct outputs *outputs, struct output output)
{
    outputs->item[outputs->count++] = output;
}

static void add_column(struct outputs *outputs, struct scope_column column, const char *name)
{
    add(outputs, (struct output){.is_column = true, .column = column, .name = name});
}

/* `*`, `t.*` or `s.t.*`. False when the relation is not found. */
static bool add_star(struct outputs *outputs, const struct scope *scope, const PgQuery__ColumnRef *column)
{
    if (column->n_fields == 1) {
        for (size_t i = 0; i < scope->nvisible; i++)
            add_column(outputs, scope->visible[i], scope->visible_names[i]);
        return true;
    }
    if (column->n_fields > 3)
        return false;
    const char *schema = column->n_fields == 3 ? tree_column_part(column, 0) : NULL;
    const char *qualifier = tree_column_part(column, column->n_fields - 2);
    size_t relation = qualifier ? scope_find_relation(scope, schema, qualifier) : scope->nrelations;
    if (relation == scope->nrelations)
        return false;
    for (size_t i = 0; i < scope->relations[relation].ncolumns; i++)
        add_column(outputs, (struct scope_column){relation, i}, scope->relations[relation].names[i]);
    return true;
}

static void add_target(struct outputs *outputs, const struct scope *scope, const PgQuery__ResTarget *target)
{
    const PgQuery__ColumnRef *column = tree_column(target->val);
    struct output output = {.name = *target->name ? target->name : NULL};

    if (column && !output.name)
        output.name = tree_column_part(column, column->n_fields - 1);
    output.is_column = column && scope_find(scope, column, &output.column) == SCOPE_FOUND;
    add(outputs, output);
}

/* The largest number of columns that the list can give. */
static size_t count_room(const struct pgseek_query *query, const struct scope *scope)
{
    size_t widest = 1;

    for (size_t i = 0; i < scope->nrelations; i++)
        widest += scope->relations[i].ncolumns;
    return widest * (query->level->n_target_list + 1);
}

enum pgseek_reason outputs_make(struct outputs *outputs, const struct pgseek_query *query, const struct scope *scope,
                                const struct pgseek_description *description)
{
    const PgQuery__SelectStmt *level = query->level;

    outputs->count = 0;
    outputs->item = arena_array(scope->arena, count_room(query, scope), sizeof *outputs->item);
    if (!outputs->item)
        return PGSEEK_REASON_NOMEM;
    for (size_t i = 0; i < level->n_target_list; i++) {
        const PgQuery__ResTarget *target = level->target_list[i]->res_target;
        const PgQuery__ColumnRef *column = tree_column(target->val);

        if (!column || !tree_is_star(column))
            add_target(outputs, scope, target);
        else if (!add_star(outputs, scope, column))
            return PGSEEK_REASON_STAR;
    }
    if (!description)
        return PGSEEK_REASON_NONE;
    if (description->ncolumns != outputs->count)
        return PGSEEK_REASON_STAR;
    for (size_t i = 0; i < outputs->count; i++)
        outputs->item[i].name = description->columns[i].name;
    return PGSEEK_REASON_NONE;
}
