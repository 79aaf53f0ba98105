/* scope.c - what the names of a level mean: the relations of its FROM, their columns, and what is known of every row.
 *
 * See scope.h. The order of `*` and the merging of USING columns follow the server's rules. */
#include "scope.h"

#include "relation.h"

#include <string.h>

/* More relations than any level joins, and than any statement reads with all its views: bounds for the proof's work. */
#define MAX_RELATIONS 64
#define MAX_RELATIONS_READ 256
#define MAX_DEPTH 32
#define MAX_STEPS ((size_t)8 * 1000 * 1000)

/* The columns that one item of FROM shows, in order. */
struct columns {
    struct scope_visible *item;
    size_t count;
    bool are_known; /* these are all, and all their names are known */
};

static enum pgseek_reason read_item(struct scope *scope, const PgQuery__Node *node, bool is_extended,
                                    struct columns *out);

static bool same_name(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

/* ---- room: lists are made as large as they can become ---- */

static enum tree_step count_visit(ProtobufCMessage *message, void *context)
{
    (void)message;
    ++*(size_t *)context;
    return TREE_DEEPER;
}

/* Messages in FROM and WHERE: a bound for the number of conjuncts. */
static size_t count_messages(const PgQuery__SelectStmt *level)
{
    size_t count = 0;

    for (size_t i = 0; i < level->n_from_clause; i++)
        tree_walk(&level->from_clause[i]->base, count_visit, &count);
    if (level->where_clause)
        tree_walk(&level->where_clause->base, count_visit, &count);
    return count;
}

static bool columns_room(struct arena *arena, struct columns *columns, size_t count)
{
    *columns = (struct columns){.are_known = true};
    columns->item = arena_array(arena, count + 1, sizeof *columns->item);
    return columns->item != NULL;
}

/* ---- conditions ---- */

static bool is_and(const PgQuery__Node *node)
{
    return node->node_case == PG_QUERY__NODE__NODE_BOOL_EXPR &&
           node->bool_expr->boolop == PG_QUERY__BOOL_EXPR_TYPE__AND_EXPR;
}

static void add_conjuncts(struct scope *scope, const PgQuery__Node *node, struct scope_conjunct as)
{
    if (!node)
        return;
    if (!is_and(node)) {
        as.node = node;
        scope->conjuncts[scope->nconjuncts++] = as;
        return;
    }
    for (size_t i = 0; i < node->bool_expr->n_args; i++)
        add_conjuncts(scope, node->bool_expr->args[i], as);
}

/* ---- single relations ---- */

static bool has_all_names(const struct scope_relation *relation)
{
    for (size_t i = 0; i < relation->nattributes; i++)
        if (!relation->attributes[i].name)
            return false;
    return !relation->is_opaque;
}

static enum pgseek_reason read_relation(struct scope *scope, const PgQuery__Node *node, bool is_extended,
                                        struct columns *out)
{
    if (scope->nrelations == MAX_RELATIONS || !scope->budget->relations)
        return PGSEEK_REASON_TOO_LARGE;
    scope->budget->relations--;
    size_t index = scope->nrelations++;
    struct scope_relation *relation = &scope->relations[index];
    if (!relation_make(relation, scope, node) || !columns_room(scope->arena, out, relation->nattributes))
        return PGSEEK_REASON_NOMEM;
    relation->is_null_extended = is_extended;
    scope->star_is_known &= !relation->is_opaque;
    out->are_known = has_all_names(relation);
    for (size_t i = 0; i < relation->nattributes; i++)
        out->item[out->count++] = (struct scope_visible){relation->attributes[i].name, true, {index, i}};
    return PGSEEK_REASON_NONE;
}

/* ---- columns that USING and NATURAL merge ---- */

/* The two sides of a join, while its columns are put together. */
struct sides {
    struct columns left;
    struct columns right;
    PgQuery__JoinType type;
    struct scope_column (*merged)[2]; /* those that are columns on both sides */
    size_t nmerged;
};

/* The only column of that name; count when there is none, or more than one: then the server will complain. */
static size_t columns_find(const struct columns *columns, const char *name)
{
    size_t found = columns->count;

    for (size_t i = 0; i < columns->count; i++) {
        if (!same_name(columns->item[i].name, name))
            continue;
        if (found < columns->count)
            return columns->count;
        found = i;
    }
    return found;
}

/* No column has an empty name: it has been merged, and is not shown a second time. */
static struct scope_visible take(struct columns *columns, size_t i)
{
    struct scope_visible taken = {0};

    if (i == columns->count)
        return taken;
    taken = columns->item[i];
    columns->item[i].name = "";
    return taken;
}

static bool have_one_type(const struct scope *scope, struct scope_column a, struct scope_column b)
{
    const struct facts_column *left = scope_attribute(scope, a)->facts;
    const struct facts_column *right = scope_attribute(scope, b)->facts;

    return left && right && left->type_oid == right->type_oid;
}

/* One column of USING: shown once, in front. Its value is the left side's, of a RIGHT JOIN the right side's; a column
 * of two types, or of a FULL JOIN, is neither. */
static void merge_column(const struct scope *scope, struct sides *sides, const char *name, struct columns *out)
{
    struct scope_visible left = take(&sides->left, columns_find(&sides->left, name));
    struct scope_visible right = take(&sides->right, columns_find(&sides->right, name));
    struct scope_visible shown = sides->type == PG_QUERY__JOIN_TYPE__JOIN_RIGHT ? right : left;
    bool both = left.is_column && right.is_column;

    if (both) {
        sides->merged[sides->nmerged][0] = left.column;
        sides->merged[sides->nmerged++][1] = right.column;
    }
    shown.name = name;
    shown.is_column =
        both && sides->type != PG_QUERY__JOIN_TYPE__JOIN_FULL && have_one_type(scope, left.column, right.column);
    out->item[out->count++] = shown;
}

static void merge_common(const struct scope *scope, struct sides *sides, struct columns *out)
{
    for (size_t i = 0; i < sides->left.count; i++) {
        const char *name = sides->left.item[i].name;

        if (name && *name && columns_find(&sides->right, name) < sides->right.count)
            merge_column(scope, sides, name, out);
    }
}

static void add_rest(const struct columns *columns, struct columns *out)
{
    out->are_known &= columns->are_known;
    for (size_t i = 0; i < columns->count; i++)
        if (!columns->item[i].name || *columns->item[i].name)
            out->item[out->count++] = columns->item[i];
}

static bool join_columns(const struct scope *scope, const PgQuery__JoinExpr *join, struct sides *sides,
                         struct columns *out)
{
    size_t total = sides->left.count + sides->right.count + join->n_using_clause;
    bool is_guess = join->is_natural && !(sides->left.are_known && sides->right.are_known);

    sides->merged = arena_array(scope->arena, total + 1, sizeof *sides->merged);
    if (!sides->merged || !columns_room(scope->arena, out, total))
        return false;
    for (size_t i = 0; i < join->n_using_clause; i++)
        merge_column(scope, sides, tree_string(join->using_clause[i]), out);
    if (join->is_natural && !is_guess)
        merge_common(scope, sides, out);
    add_rest(&sides->left, out);
    add_rest(&sides->right, out);
    for (size_t i = 0; i < out->count && is_guess; i++)
        out->item[i].is_column = false;
    return true;
}

/* ---- joins ---- */

static bool add_merged(struct scope *scope, const struct sides *sides)
{
    size_t total = scope->nmerged + sides->nmerged;
    struct scope_column(*merged)[2] = arena_array(scope->arena, total + 1, sizeof *merged);

    if (!merged)
        return false;
    if (scope->nmerged)
        memcpy(merged, scope->merged, scope->nmerged * sizeof *merged);
    if (sides->nmerged)
        memcpy(merged + scope->nmerged, sides->merged, sides->nmerged * sizeof *merged);
    scope->merged = merged;
    scope->nmerged = total;
    return true;
}

/* ON is kept with the join: it does not hold for rows that the join extends. */
static bool add_outer_join(struct scope *scope, const PgQuery__JoinExpr *join, const struct sides *sides,
                           struct scope_join outer)
{
    size_t start = scope->nconjuncts;

    add_conjuncts(scope, join->quals, (struct scope_conjunct){0});
    outer.nconjuncts = scope->nconjuncts - start;
    outer.conjuncts = arena_array(scope->arena, outer.nconjuncts + 1, sizeof *outer.conjuncts);
    if (!outer.conjuncts)
        return false;
    for (size_t i = 0; i < outer.nconjuncts; i++)
        outer.conjuncts[i] = scope->conjuncts[start + i].node;
    scope->nconjuncts = start;
    outer.is_full = sides->type == PG_QUERY__JOIN_TYPE__JOIN_FULL;
    outer.is_right = sides->type == PG_QUERY__JOIN_TYPE__JOIN_RIGHT;
    outer.merged = sides->merged;
    outer.nmerged = sides->nmerged;
    scope->joins[scope->njoins++] = outer;
    return true;
}

static enum pgseek_reason read_join(struct scope *scope, const PgQuery__JoinExpr *join, bool is_extended,
                                    struct columns *out)
{
    bool is_full = join->jointype == PG_QUERY__JOIN_TYPE__JOIN_FULL;
    bool is_left = join->jointype == PG_QUERY__JOIN_TYPE__JOIN_LEFT;
    bool is_right = join->jointype == PG_QUERY__JOIN_TYPE__JOIN_RIGHT;
    struct scope_join range = {.first = scope->nrelations};
    struct sides sides = {.type = join->jointype};
    enum pgseek_reason reason = read_item(scope, join->larg, is_extended || is_right || is_full, &sides.left);

    range.middle = scope->nrelations;
    if (reason == PGSEEK_REASON_NONE)
        reason = read_item(scope, join->rarg, is_extended || is_left || is_full, &sides.right);
    range.end = scope->nrelations;
    if (reason != PGSEEK_REASON_NONE)
        return reason;
    if (!join_columns(scope, join, &sides, out))
        return PGSEEK_REASON_NOMEM;
    scope->has_hidden_names |= join->join_using_alias != NULL;
    if (is_full || is_left || is_right)
        return add_outer_join(scope, join, &sides, range) ? PGSEEK_REASON_NONE : PGSEEK_REASON_NOMEM;
    add_conjuncts(scope, join->quals,
                  (struct scope_conjunct){.is_extended = is_extended, .first = range.first, .end = range.end});
    return add_merged(scope, &sides) ? PGSEEK_REASON_NONE : PGSEEK_REASON_NOMEM;
}

static enum pgseek_reason read_item(struct scope *scope, const PgQuery__Node *node, bool is_extended,
                                    struct columns *out)
{
    if (relation_is_join(node))
        return read_join(scope, node->join_expr, is_extended, out);
    return read_relation(scope, node, is_extended, out);
}

/* ---- the whole FROM ---- */

static enum pgseek_reason read_from(struct scope *scope, const PgQuery__SelectStmt *level)
{
    struct columns all = {.are_known = true};

    for (size_t i = 0; i < level->n_from_clause; i++) {
        struct columns item;
        struct columns before = all;
        enum pgseek_reason reason = read_item(scope, level->from_clause[i], false, &item);

        if (reason != PGSEEK_REASON_NONE)
            return reason;
        if (!columns_room(scope->arena, &all, before.count + item.count))
            return PGSEEK_REASON_NOMEM;
        add_rest(&before, &all);
        add_rest(&item, &all);
    }
    scope->visible = all.item;
    scope->nvisible = all.count;
    scope->names_are_known = all.are_known;
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason read_level(struct scope *scope, const PgQuery__SelectStmt *level)
{
    scope->star_is_known = true;
    scope->relations = arena_array(scope->arena, MAX_RELATIONS, sizeof *scope->relations);
    scope->joins = arena_array(scope->arena, MAX_RELATIONS, sizeof *scope->joins);
    scope->conjuncts = arena_array(scope->arena, count_messages(level) + 1, sizeof *scope->conjuncts);
    if (!scope->relations || !scope->joins || !scope->conjuncts)
        return PGSEEK_REASON_NOMEM;
    enum pgseek_reason reason = read_from(scope, level);
    add_conjuncts(scope, level->where_clause, (struct scope_conjunct){.end = scope->nrelations});
    return reason;
}

enum pgseek_reason scope_make(struct scope *scope, struct arena *arena, const struct pgseek_query *query,
                              const PgQuery__SelectStmt *level, const PgQuery__WithClause *const *with, size_t nwith,
                              struct pgseek_facts *facts, const struct pgseek_description *description)
{
    *scope = (struct scope){
        .facts = facts,
        .arena = arena,
        .query = query,
        .description = description,
        .with = with,
        .nwith = nwith,
        .budget = arena_alloc(arena, sizeof *scope->budget),
    };
    if (!scope->budget)
        return PGSEEK_REASON_NOMEM;
    *scope->budget = (struct scope_budget){MAX_RELATIONS_READ, MAX_STEPS};
    return read_level(scope, level);
}

enum pgseek_reason scope_make_within(struct scope *scope, const struct scope *outer, const PgQuery__SelectStmt *level,
                                     const PgQuery__WithClause *const *with, size_t nwith)
{
    *scope = (struct scope){
        .facts = outer->facts,
        .arena = outer->arena,
        .query = outer->query,
        .description = outer->description,
        .around = outer,
        .with = with,
        .nwith = nwith,
        .budget = outer->budget,
        .depth = outer->depth + 1,
    };
    return scope->depth > MAX_DEPTH ? PGSEEK_REASON_TOO_LARGE : read_level(scope, level);
}

/* ---- names ---- */

size_t scope_find_relation(const struct scope *scope, const char *schema, const char *qualifier)
{
    size_t found = scope->nrelations;

    for (size_t i = 0; i < scope->nrelations; i++) {
        const struct scope_relation *relation = &scope->relations[i];

        if (strcmp(relation->qualifier, qualifier) != 0 || (schema && !same_name(relation->schema, schema)))
            continue;
        if (found < scope->nrelations)
            return scope->nrelations;
        found = i;
    }
    return found;
}

static enum scope_found find_visible(const struct scope *scope, const char *name, struct scope_column *out)
{
    size_t found = scope->nvisible;

    for (size_t i = 0; i < scope->nvisible; i++) {
        if (!same_name(scope->visible[i].name, name))
            continue;
        if (found < scope->nvisible)
            return SCOPE_AMBIGUOUS;
        found = i;
    }
    if (found == scope->nvisible)
        return scope->names_are_known ? SCOPE_MISSING : SCOPE_OPAQUE;
    *out = scope->visible[found].column;
    return scope->visible[found].is_column ? SCOPE_FOUND : SCOPE_OPAQUE;
}

static enum scope_found find_in_relation(const struct scope *scope, size_t index, const char *name,
                                         struct scope_column *out)
{
    enum scope_found found = SCOPE_MISSING;

    if (index == scope->nrelations)
        return scope->has_hidden_names ? SCOPE_OPAQUE : SCOPE_MISSING;
    const struct scope_relation *relation = &scope->relations[index];
    for (size_t i = 0; i < relation->nattributes; i++) {
        if (!same_name(relation->attributes[i].name, name))
            continue;
        if (found == SCOPE_FOUND)
            return SCOPE_AMBIGUOUS;
        *out = (struct scope_column){index, i};
        found = SCOPE_FOUND;
    }
    return found == SCOPE_MISSING && !has_all_names(relation) ? SCOPE_OPAQUE : found;
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

/* ---- rests ---- */

static bool same_rest(const struct scope_rest *a, const struct scope_rest *b)
{
    return a->relation == b->relation && a->unique == b->unique && a->column == b->column &&
           a->must_be_not_null >= b->must_be_not_null;
}

static bool has_rest(const struct scope_rest *list, const struct scope_rest *rest)
{
    for (; list; list = list->next)
        if (same_rest(list, rest))
            return true;
    return false;
}

const struct scope_rest *scope_rests_join(struct arena *arena, const struct scope_rest *list,
                                          const struct scope_rest *more)
{
    for (; more; more = more->next) {
        if (has_rest(list, more))
            continue;
        struct scope_rest *copy = arena_alloc(arena, sizeof *copy);
        if (!copy)
            return list; /* the arena remembers */
        *copy = *more;
        copy->next = list;
        list = copy;
    }
    return list;
}

enum pgseek_reason scope_hides_window(const struct scope *scope)
{
    enum pgseek_reason reason = PGSEEK_REASON_NONE;

    for (size_t i = 0; i < scope->nrelations; i++) {
        const struct scope_relation *relation = &scope->relations[i];

        if (relation->has_window && reason != PGSEEK_REASON_WINDOW_KEY)
            reason = relation->why == PGSEEK_REASON_TOO_LARGE ? PGSEEK_REASON_TOO_LARGE : PGSEEK_REASON_WINDOW_KEY;
    }
    return reason;
}
