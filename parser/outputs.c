/* outputs.c - the output columns of a level: what each comes from, `*` expanded, and what it is called.
 *
 * See outputs.h. The names in the server's own description are the truth: implicit output names have rules that
 * nobody should write again. */
#include "outputs.h"

#include <string.h>

/* The list while it is read: a star over something opaque gives as many columns as the description leaves for it. */
struct reading {
    struct outputs *outputs;
    const struct scope *scope;
    const struct pgseek_description *description;
    size_t nstars; /* opaque ones */
    size_t star_at;
    size_t star_item;
    const char *star_prefix; /* "alias." of an opaque star; "" of a bare one */
};

static struct output *add(struct reading *reading)
{
    struct outputs *outputs = reading->outputs;
    return &outputs->item[outputs->count++];
}

static const char *quoted(struct arena *arena, const char *qualifier, const char *name)
{
    struct text text = {0};

    if (qualifier && *qualifier) {
        text_put_ident(&text, qualifier);
        text_putc(&text, '.');
    }
    text_put_ident(&text, name);
    char *copy = text.failed ? NULL : arena_strdup(arena, text.ptr);
    text_fini(&text);
    return copy;
}

/* ---- stars ---- */

static void add_visible(struct reading *reading, size_t item)
{
    for (size_t i = 0; i < reading->scope->nvisible; i++) {
        const struct scope_visible *visible = &reading->scope->visible[i];

        *add(reading) = (struct output){
            .is_column = visible->is_column,
            .column = visible->column,
            .name = visible->name,
            .written = visible->is_column || !visible->name ? NULL : quoted(reading->scope->arena, NULL, visible->name),
            .item = item,
        };
    }
}

static void add_relation(struct reading *reading, size_t relation, size_t item)
{
    for (size_t i = 0; i < reading->scope->relations[relation].nattributes; i++)
        *add(reading) = (struct output){
            .is_column = true,
            .column = {relation, i},
            .name = reading->scope->relations[relation].attributes[i].name,
            .item = item,
        };
}

static void add_opaque(struct reading *reading, const char *qualifier, size_t item)
{
    reading->nstars++;
    reading->star_at = reading->outputs->count;
    reading->star_item = item;
    reading->star_prefix = qualifier;
}

/* `*`, `t.*` or `s.t.*`. False when the relation is not found. */
static bool add_star(struct reading *reading, const PgQuery__ColumnRef *column, size_t item)
{
    const struct scope *scope = reading->scope;

    if (column->n_fields == 1) {
        if (scope->star_is_known)
            add_visible(reading, item);
        else
            add_opaque(reading, NULL, item);
        return true;
    }
    if (column->n_fields > 3)
        return false;
    const char *schema = column->n_fields == 3 ? tree_column_part(column, 0) : NULL;
    const char *qualifier = tree_column_part(column, column->n_fields - 2);
    size_t relation = qualifier ? scope_find_relation(scope, schema, qualifier) : scope->nrelations;
    if (relation == scope->nrelations)
        return false;
    if (scope->relations[relation].is_opaque)
        add_opaque(reading, qualifier, item);
    else
        add_relation(reading, relation, item);
    return true;
}

/* ---- the list ---- */

static void add_target(struct reading *reading, const PgQuery__ResTarget *target, size_t item)
{
    const PgQuery__ColumnRef *column = tree_column(target->val);
    struct output output = {.name = *target->name ? target->name : NULL, .node = target->val, .item = item};

    if (column && !output.name)
        output.name = tree_column_part(column, column->n_fields - 1);
    output.is_column = column && scope_find(reading->scope, column, &output.column) == SCOPE_FOUND;
    *add(reading) = output;
}

static enum pgseek_reason read_list(struct reading *reading, const PgQuery__SelectStmt *level)
{
    for (size_t i = 0; i < level->n_target_list; i++) {
        const PgQuery__ResTarget *target = level->target_list[i]->res_target;
        const PgQuery__ColumnRef *column = tree_column(target->val);

        if (!column || !tree_is_star(column))
            add_target(reading, target, i);
        else if (!add_star(reading, column, i))
            return PGSEEK_REASON_STAR;
    }
    return PGSEEK_REASON_NONE;
}

/* The columns that one opaque star gives are those that the others leave. */
static void fill_star(struct reading *reading)
{
    struct outputs *outputs = reading->outputs;
    size_t total = reading->description->ncolumns;
    size_t width = total - outputs->count;
    size_t behind = outputs->count - reading->star_at;

    memmove(&outputs->item[reading->star_at + width], &outputs->item[reading->star_at], behind * sizeof *outputs->item);
    for (size_t i = 0; i < width; i++) {
        size_t at = reading->star_at + i;
        outputs->item[at] = (struct output){
            .item = reading->star_item,
            .written = quoted(reading->scope->arena, reading->star_prefix, reading->description->columns[at].name),
        };
    }
    outputs->count = total;
}

/* Only names and types: a set operation, VALUES, or several stars that nobody can tell apart. */
static void describe_only(struct reading *reading)
{
    reading->outputs->count = reading->description->ncolumns;
    for (size_t i = 0; i < reading->outputs->count; i++)
        reading->outputs->item[i] = (struct output){0};
}

static enum pgseek_reason describe(struct reading *reading)
{
    struct outputs *outputs = reading->outputs;
    const struct pgseek_description *description = reading->description;

    if (reading->nstars == 1 && description->ncolumns >= outputs->count)
        fill_star(reading);
    else if (reading->nstars > 1)
        describe_only(reading);
    outputs->is_known = reading->nstars <= 1;
    if (description->ncolumns != outputs->count)
        return PGSEEK_REASON_STAR;
    for (size_t i = 0; i < outputs->count; i++) {
        outputs->item[i].name = description->columns[i].name;
        outputs->item[i].type_oid = description->columns[i].type_oid;
    }
    return PGSEEK_REASON_NONE;
}

/* The largest number of columns that the list can give. */
static size_t count_room(const struct pgseek_query *query, const struct scope *scope,
                         const struct pgseek_description *description)
{
    size_t widest = scope->nvisible + 1;

    for (size_t i = 0; i < scope->nrelations; i++)
        widest += scope->relations[i].nattributes;
    return widest * (query->level->n_target_list + 1) + (description ? description->ncolumns : 0);
}

/* The select list that names a set operation's columns. */
static const PgQuery__SelectStmt *first_arm(const PgQuery__SelectStmt *level)
{
    while (level->op != PG_QUERY__SET_OPERATION__SETOP_NONE && level->larg)
        level = level->larg;
    return level;
}

static enum pgseek_reason set_outputs(struct reading *reading, const PgQuery__SelectStmt *level)
{
    const PgQuery__SelectStmt *arm = first_arm(level);

    if (reading->description) {
        describe_only(reading);
        return describe(reading);
    }
    for (size_t i = 0; i < arm->n_target_list; i++) {
        const PgQuery__ResTarget *target = arm->target_list[i]->res_target;
        const PgQuery__ColumnRef *column = tree_column(target->val);

        if (column && tree_is_star(column))
            return PGSEEK_REASON_STAR;
        add(reading)->name = *target->name ? target->name
                             : column      ? tree_column_part(column, column->n_fields - 1)
                                           : NULL;
    }
    return PGSEEK_REASON_NONE;
}

enum pgseek_reason outputs_make(struct outputs *outputs, const struct pgseek_query *query, const struct scope *scope,
                                const struct pgseek_description *description)
{
    const PgQuery__SelectStmt *level = query->level;
    struct reading reading = {.outputs = outputs, .scope = scope, .description = description};
    bool is_set = level->op != PG_QUERY__SET_OPERATION__SETOP_NONE || level->n_values_lists > 0;
    size_t room = count_room(query, scope, description) + first_arm(level)->n_target_list;

    *outputs = (struct outputs){.is_known = true};
    outputs->item = arena_array(scope->arena, room, sizeof *outputs->item);
    if (!outputs->item)
        return PGSEEK_REASON_NOMEM;
    if (is_set)
        return set_outputs(&reading, level);
    enum pgseek_reason reason = read_list(&reading, level);
    if (reason != PGSEEK_REASON_NONE)
        return reason;
    if (description)
        return describe(&reading);
    outputs->is_known = reading.nstars == 0;
    return PGSEEK_REASON_NONE;
}
