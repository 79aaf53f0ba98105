/* reach.c - everything that a statement runs: its own tree, and those of the views that it reads, at any depth.
 *
 * See reach.h. Definitions of views are parsed each time: this is asked once for a plan. */
#include "reach.h"

#include <string.h>
#include <strings.h>

#define MAX_DEPTH 8
#define MAX_VIEWS 64

struct reach {
    struct pgseek_facts *facts;
    tree_visitor visit;
    void *context;
    const struct facts_relation *seen[MAX_VIEWS];
    size_t nseen;
    unsigned depth;
    bool stopped;
};

static void walk_tree(struct reach *reach, ProtobufCMessage *root);

static bool is_seen(const struct reach *reach, const struct facts_relation *view)
{
    for (size_t i = 0; i < reach->nseen; i++)
        if (reach->seen[i] == view)
            return true;
    return reach->nseen == MAX_VIEWS || reach->depth == MAX_DEPTH;
}

static void walk_view(struct reach *reach, const struct facts_relation *view)
{
    PgQuery__ParseResult *tree = NULL;
    struct lex lex;

    if (!view || view->kind != 'v' || !view->definition || is_seen(reach, view))
        return;
    reach->seen[reach->nseen++] = view;
    if (lex_init(&lex, view->definition, strlen(view->definition)) == LEX_OK &&
        tree_parse(view->definition, &tree) == TREE_OK) {
        reach->depth++;
        walk_tree(reach, &tree->base);
        reach->depth--;
        tree_free(tree);
    }
    lex_fini(&lex);
}

static enum tree_step visit(ProtobufCMessage *message, void *context)
{
    struct reach *reach = context;
    size_t ord;

    if (tree_is(message, &pg_query__range_var__descriptor)) {
        const PgQuery__RangeVar *var = (PgQuery__RangeVar *)message;
        walk_view(reach,
                  facts_ask_relation(reach->facts, *var->schemaname ? var->schemaname : NULL, var->relname, &ord));
    }
    if (reach->stopped)
        return TREE_STOP;
    enum tree_step step = reach->visit(message, reach->context);
    reach->stopped = step == TREE_STOP;
    return step;
}

static void walk_tree(struct reach *reach, ProtobufCMessage *root)
{
    (void)tree_walk(root, visit, reach);
}

bool reach_walk(const struct pgseek_query *query, struct pgseek_facts *facts, tree_visitor visitor, void *context)
{
    struct reach reach = {.facts = facts, .visit = visitor, .context = context};

    walk_tree(&reach, &query->parsed->base);
    return !reach.stopped;
}

/* ---- the clock ---- */

static bool is_clock_call(const PgQuery__FuncCall *call)
{
    static const char *const names[] = {"now",       "transaction_timestamp", "statement_timestamp",
                                        "timeofday", "clock_timestamp",       "pg_postmaster_start_time"};
    const char *name = tree_string(call->funcname[call->n_funcname - 1]);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return !strcmp(name, "age") && call->n_args == 1;
}

static bool is_clock_value(const PgQuery__SQLValueFunction *value)
{
    switch (value->op) {
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_ROLE:
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_USER:
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_USER:
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_SESSION_USER:
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_CATALOG:
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_SCHEMA: return false;
    default: return true;
    }
}

/* 'now'::timestamptz and its like; the spelling may have blanks around it. */
static bool is_clock_literal(const PgQuery__TypeCast *cast)
{
    static const char *const words[] = {"now", "today", "tomorrow", "yesterday"};
    const PgQuery__Node *arg = cast->arg;

    if (!arg || arg->node_case != PG_QUERY__NODE__NODE_A_CONST ||
        arg->a_const->val_case != PG_QUERY__A__CONST__VAL_SVAL)
        return false;
    const char *text = arg->a_const->sval->sval;
    text += strspn(text, " \t\r\n");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strncasecmp(text, words[i], strlen(words[i])))
            return true;
    return false;
}

bool reach_is_clock(const ProtobufCMessage *message)
{
    if (tree_is(message, &pg_query__func_call__descriptor))
        return is_clock_call((const PgQuery__FuncCall *)message);
    if (tree_is(message, &pg_query__sqlvalue_function__descriptor))
        return is_clock_value((const PgQuery__SQLValueFunction *)message);
    if (tree_is(message, &pg_query__type_cast__descriptor))
        return is_clock_literal((const PgQuery__TypeCast *)message);
    return false;
}

/* ---- what changes by itself ---- */

struct fickle {
    const struct pgseek_query *query;
    struct pgseek_facts *facts;
    enum pgseek_reason reason;
};

static bool is_volatile(struct pgseek_facts *facts, const ProtobufCMessage *message)
{
    if (!tree_is(message, &pg_query__func_call__descriptor))
        return false;
    const PgQuery__FuncCall *call = (const PgQuery__FuncCall *)message;
    const struct facts_function *function =
        facts_ask_function(facts, tree_string(call->funcname[call->n_funcname - 1]));
    return function && function->volatility == 'v';
}

static enum tree_step stop_at_fickle(ProtobufCMessage *message, void *context)
{
    struct fickle *fickle = context;

    if (reach_is_clock(message))
        fickle->reason = PGSEEK_REASON_CLOCK_KEY;
    else if (is_volatile(fickle->facts, message))
        fickle->reason = PGSEEK_REASON_VOLATILE;
    return fickle->reason == PGSEEK_REASON_NONE ? TREE_DEEPER : TREE_STOP;
}

/* What a sub-select gives: its list, its rows of VALUES, what it groups by. The level's own list is looked at by the
 * keys themselves. */
static enum tree_step stop_at_fickle_list(ProtobufCMessage *message, void *context)
{
    struct fickle *fickle = context;

    if (!tree_is(message, &pg_query__select_stmt__descriptor))
        return TREE_DEEPER;
    PgQuery__SelectStmt *select = (PgQuery__SelectStmt *)message;
    bool is_level = select == fickle->query->level;
    for (size_t i = 0; !is_level && i < select->n_target_list; i++)
        (void)tree_walk(&select->target_list[i]->base, stop_at_fickle, fickle);
    for (size_t i = 0; i < select->n_values_lists; i++)
        (void)tree_walk(&select->values_lists[i]->base, stop_at_fickle, fickle);
    for (size_t i = 0; i < select->n_group_clause; i++)
        (void)tree_walk(&select->group_clause[i]->base, stop_at_fickle, fickle);
    return fickle->reason == PGSEEK_REASON_NONE ? TREE_DEEPER : TREE_STOP;
}

enum pgseek_reason reach_fickle(const struct pgseek_query *query, struct pgseek_facts *facts)
{
    struct fickle fickle = {.query = query, .facts = facts, .reason = PGSEEK_REASON_NONE};

    (void)reach_walk(query, facts, stop_at_fickle_list, &fickle);
    return fickle.reason;
}

static enum tree_step stop_at_volatile(ProtobufCMessage *message, void *context)
{
    return is_volatile(context, message) ? TREE_STOP : TREE_DEEPER;
}

bool reach_has_volatile(const struct pgseek_query *query, struct pgseek_facts *facts)
{
    return !reach_walk(query, facts, stop_at_volatile, facts);
}

static enum tree_step stop_at_sample(ProtobufCMessage *message, void *context)
{
    (void)context;
    if (!tree_is(message, &pg_query__range_table_sample__descriptor))
        return TREE_DEEPER;
    return ((PgQuery__RangeTableSample *)message)->repeatable ? TREE_DEEPER : TREE_STOP;
}

bool reach_has_sample(const struct pgseek_query *query, struct pgseek_facts *facts)
{
    return !reach_walk(query, facts, stop_at_sample, NULL);
}

struct choice {
    const struct pgseek_query *query;
    bool skips_list;                   /* the level's select list: a row's own business, unless a key is made of it */
    const PgQuery__SelectStmt *exists; /* the last sub-select of an EXISTS: any row will do there */
};

static bool is_in_list(const PgQuery__SelectStmt *level, const ProtobufCMessage *message)
{
    for (size_t i = 0; i < level->n_target_list; i++)
        if (&level->target_list[i]->res_target->base == message)
            return true;
    return false;
}

static bool chooses(const struct choice *choice, const PgQuery__SelectStmt *select)
{
    bool is_on = select->n_distinct_clause && select->distinct_clause[0]->node_case != PG_QUERY__NODE__NODE__NOT_SET;
    bool has_limit = select->limit_count && select != choice->exists;

    return select != choice->query->level && (has_limit || select->limit_offset || is_on);
}

/* Which rows a LIMIT leaves, which one DISTINCT ON takes and how a window numbers ties is the server's choice, and it
 * may choose anew each time. */
static enum tree_step stop_at_choice(ProtobufCMessage *message, void *context)
{
    struct choice *choice = context;

    if (tree_is(message, &pg_query__window_def__descriptor))
        return TREE_STOP;
    if (tree_is(message, &pg_query__select_stmt__descriptor))
        return chooses(choice, (PgQuery__SelectStmt *)message) ? TREE_STOP : TREE_DEEPER;
    if (tree_is(message, &pg_query__res_target__descriptor) && choice->skips_list &&
        is_in_list(choice->query->level, message))
        return TREE_OVER;
    if (tree_is(message, &pg_query__sub_link__descriptor)) {
        const PgQuery__SubLink *link = (PgQuery__SubLink *)message;
        if (link->sub_link_type == PG_QUERY__SUB_LINK_TYPE__EXISTS_SUBLINK && link->subselect)
            choice->exists = link->subselect->select_stmt;
    }
    return TREE_DEEPER;
}

bool reach_has_choice(const struct pgseek_query *query, struct pgseek_facts *facts, bool in_keys)
{
    struct choice choice = {.query = query, .skips_list = !in_keys};

    return !reach_walk(query, facts, stop_at_choice, &choice);
}
