/* plan.c - everything about one page that does not depend on a cursor: keys, cuts, contract, what the guard watches.
 *
 * See plan.h. Made from a query and the facts; both may be freed afterwards. */
#include "plan.h"

#include "keyset.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PARAMS 65535
#define MAX_COLUMNS 1664
/* Parameters of ours beside the keys: in a shape the numbers of rows, in the guard what it expects. */
#define MORE_PARAMS 8

/* ---- checks that need facts ---- */

/* Functions that are called for each fetched row: one too many would be called for the look-ahead row. */
static enum pgseek_reason check_functions(const struct pgseek_query *query, const struct pgseek_facts *facts)
{
    for (size_t i = 0; i < query->nfunctions; i++) {
        const struct query_function *function = &query->functions[i];
        const struct facts_function *fact = facts_function(facts, function->name);

        if (!function->in_output)
            continue;
        if (!fact)
            return PGSEEK_REASON_UNKNOWN_FUNCTION;
        if (function->at_level && fact->is_aggregate)
            return PGSEEK_REASON_GROUP_BY;
        if (function->at_level && fact->returns_set)
            return PGSEEK_REASON_SRF_KEY;
        if (fact->volatility == 'v')
            return PGSEEK_REASON_VOLATILE;
    }
    return PGSEEK_REASON_NONE;
}

static bool is_reserved(const char *name)
{
    return name && !strncmp(name, "pgseek_", strlen("pgseek_"));
}

static enum tree_step stop_at_reserved(ProtobufCMessage *message, void *context)
{
    (void)context;
    if (tree_is(message, &pg_query__a__const__descriptor))
        return TREE_OVER;
    if (tree_is(message, &pg_query__string__descriptor))
        return is_reserved(((PgQuery__String *)message)->sval) ? TREE_STOP : TREE_DEEPER;
    if (tree_is(message, &pg_query__res_target__descriptor))
        return is_reserved(((PgQuery__ResTarget *)message)->name) ? TREE_STOP : TREE_DEEPER;
    return TREE_DEEPER;
}

static enum pgseek_reason check_names(const struct pgseek_query *query, const struct pgseek_facts *facts)
{
    if (!tree_walk(&query->parsed->base, stop_at_reserved, NULL))
        return PGSEEK_REASON_RESERVED_NAME;
    for (size_t i = 0; i < facts->ncolumns; i++)
        if (is_reserved(facts->columns[i].name))
            return PGSEEK_REASON_RESERVED_NAME;
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason check_numbers(const struct pgseek_query *query, const struct pgseek_facts *facts)
{
    bool has_operator = query->limit.has_operator || query->offset.has_operator;

    return has_operator && facts->has_foreign_operators ? PGSEEK_REASON_LIMIT_EXPRESSION : PGSEEK_REASON_NONE;
}

/* ---- keys ---- */

/* Two relations of one name, in two schemas: only the schema tells them apart. */
static bool needs_schema(const struct scope *scope, const struct scope_relation *relation)
{
    return scope_find_relation(scope, NULL, relation->qualifier) == scope->nrelations;
}

static const char *column_text(struct pgseek_plan *plan, const struct scope *scope, struct scope_column column)
{
    const struct scope_relation *relation = &scope->relations[column.relation];
    struct text text = {0};

    if (needs_schema(scope, relation)) {
        text_put_ident(&text, relation->facts->schema);
        text_putc(&text, '.');
    }
    text_put_ident(&text, relation->qualifier);
    text_putc(&text, '.');
    text_put_ident(&text, relation->names[column.column]);
    char *copy = text.failed ? NULL : arena_strdup(&plan->arena, text.ptr);
    text_fini(&text);
    return copy;
}

/* Types whose binary form is the same under every client_encoding. */
static bool is_encoding_free(const struct facts_column *facts)
{
    static const uint32_t oids[] = {16,   17,   18,   20,   21,   23,   26,   27,   28,   29,   650,  700,
                                    701,  774,  790,  829,  869,  1082, 1083, 1114, 1184, 1186, 1266, 1560,
                                    1562, 1700, 2950, 3220, 3904, 3906, 3908, 3910, 3912, 3926, 5069};

    for (size_t i = 0; i < sizeof oids / sizeof *oids; i++)
        if (facts->base_oid == oids[i])
            return true;
    return false;
}

static bool make_key(struct pgseek_plan *plan, const struct scope *scope, const struct order *order, size_t i)
{
    const struct order_key *from = &order->keys[i];
    const struct facts_column *facts = scope_facts(scope, from->column);
    struct plan_key *key = &plan->keys[i];

    key->relation = from->column.relation;
    key->is = (struct pgseek_key){
        .type_oid = facts->base_oid,
        .type_name = arena_strdup(&plan->arena, facts->type_name),
        .descending = from->descending,
        .nulls_first = from->descending, /* NOT NULL: the placement that the direction has by itself */
        .nullable = false,
        .is_text = !is_encoding_free(facts),
        .expr = column_text(plan, scope, from->column),
        .identity = arena_format(&plan->arena, "%s|%s", facts->collation, facts->labels),
    };
    for (size_t s = 0; s < FACTS_OPERATORS; s++)
        key->operators[s] = (struct facts_operator){.schema = arena_strdup(&plan->arena, facts->operator[s].schema),
                                                    .name = arena_strdup(&plan->arena, facts->operator[s].name)};
    return !plan->arena.failed;
}

static bool make_keys(struct pgseek_plan *plan, const struct scope *scope, const struct order *order)
{
    plan->nkeys = order->nkeys;
    plan->keys = arena_array(&plan->arena, order->nkeys, sizeof *plan->keys);
    if (!plan->keys)
        return false;
    for (size_t i = 0; i < order->nkeys; i++)
        if (!make_key(plan, scope, order, i))
            return false;
    plan->is_partitioned = scope->relations[order->keys[0].column.relation].facts->kind == 'p';
    return true;
}

/* A name as a person would write it: quoted only where it has to be. */
static void put_name(struct text *text, const char *name)
{
    bool plain = *name == '_' || (*name >= 'a' && *name <= 'z');

    for (const char *at = name; *at && plain; at++)
        plain = *at == '_' || (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9');
    if (plain)
        text_puts(text, name);
    else
        text_put_ident(text, name);
}

static bool make_summary(struct pgseek_plan *plan, const struct scope *scope, const struct order *order)
{
    struct text text = {0};

    for (size_t i = 0; i < order->nkeys; i++) {
        const struct scope_column *column = &order->keys[i].column;

        text_puts(&text, i ? ", " : "");
        if (scope->nrelations > 1) {
            put_name(&text, scope->relations[column->relation].qualifier);
            text_putc(&text, '.');
        }
        put_name(&text, scope->relations[column->relation].names[column->column]);
        text_puts(&text, order->keys[i].descending ? " DESC" : "");
    }
    if (*order->tie_breaker)
        text_format(&text, " (tie-breaker: %s)", order->tie_breaker);
    plan->summary = text.failed ? NULL : arena_strdup(&plan->arena, text.ptr);
    text_fini(&text);
    return plan->summary != NULL;
}

/* ---- making ---- */

static bool copy_bytes(struct pgseek_plan *plan, const struct query_bytes *from, struct query_bytes *to)
{
    to->ptr = arena_alloc(&plan->arena, from->len + 1);
    to->len = from->len;
    if (to->ptr && from->len)
        memcpy(to->ptr, from->ptr, from->len);
    return to->ptr != NULL;
}

static bool copy_query(struct pgseek_plan *plan, const struct pgseek_query *query,
                       const struct pgseek_description *description)
{
    plan->len = query->lex.len;
    plan->sql = arena_strndup(&plan->arena, query->lex.sql, query->lex.len);
    plan->cut = query->cut;
    plan->has_targets = query->level->n_target_list > 0;
    plan->is_locking = query->level->n_locking_clause > 0;
    plan->limit_kind = query->limit.kind;
    if (query->limit.kind == PGSEEK_NUMBER_LITERAL)
        (void)number_value(&query->limit, NULL, 0, &plan->limit);
    plan->nparams = description ? description->nparams : (size_t)query->param_count;
    plan->param_oids = arena_array(&plan->arena, plan->nparams, sizeof *plan->param_oids);
    for (size_t i = 0; plan->param_oids && description && i < plan->nparams; i++)
        plan->param_oids[i] = description->param_oids[i];
    return !plan->arena.failed && copy_bytes(plan, &query->core, &plan->core);
}

static enum pgseek_reason check_sizes(const struct pgseek_plan *plan, const struct pgseek_description *description)
{
    if (plan->nparams + plan->nkeys + MORE_PARAMS > MAX_PARAMS)
        return PGSEEK_REASON_PARAMS_TOO_MANY;
    if (description && description->ncolumns + plan->nkeys + 1 > MAX_COLUMNS)
        return PGSEEK_REASON_COLUMNS_TOO_MANY;
    return PGSEEK_REASON_NONE;
}

/* The checks, in the order in which a reader would name them; scratch is the memory of scope and proof. */
static enum pgseek_reason understand(const struct pgseek_query *query, const struct pgseek_facts *facts,
                                     const struct pgseek_description *description, const char *key_option,
                                     struct scope *scope, struct order *order, struct arena *scratch)
{
    enum pgseek_reason reason = scope_make(scope, scratch, query, facts);

    if (reason == PGSEEK_REASON_NONE)
        reason = check_functions(query, facts);
    if (reason == PGSEEK_REASON_NONE)
        reason = check_names(query, facts);
    if (reason == PGSEEK_REASON_NONE)
        reason = check_numbers(query, facts);
    if (reason == PGSEEK_REASON_NONE)
        reason = order_make(order, query, scope, description, key_option);
    if (reason == PGSEEK_REASON_NONE)
        reason = keyset_is_written(order, scope) ? PGSEEK_REASON_ALREADY_KEYSET : PGSEEK_REASON_NONE;
    return scratch->failed ? PGSEEK_REASON_NOMEM : reason;
}

static enum pgseek_reason fill(struct pgseek_plan *plan, const struct pgseek_query *query, const struct scope *scope,
                               const struct order *order, const struct pgseek_description *description)
{
    bool made = copy_query(plan, query, description) && make_keys(plan, scope, order) &&
                make_summary(plan, scope, order) && plan_watch(plan, query, scope, order) &&
                plan_make_contract(plan, query);

    return made ? check_sizes(plan, description) : PGSEEK_REASON_NOMEM;
}

struct pgseek_plan *pgseek_plan_new(const struct pgseek_query *query, const struct pgseek_facts *facts,
                                    const struct pgseek_description *description, const char *key_option,
                                    enum pgseek_reason *reason)
{
    struct pgseek_plan *plan = calloc(1, sizeof *plan);
    struct arena scratch = {0};
    struct scope scope;
    struct order order;

    *reason = PGSEEK_REASON_NOMEM;
    if (!plan)
        return NULL;
    *reason = understand(query, facts, description, key_option, &scope, &order, &scratch);
    if (*reason == PGSEEK_REASON_NONE)
        *reason = fill(plan, query, &scope, &order, description);
    arena_fini(&scratch);
    if (*reason == PGSEEK_REASON_NONE)
        return plan;
    pgseek_plan_free(plan);
    return NULL;
}

void pgseek_plan_free(struct pgseek_plan *plan)
{
    if (!plan)
        return;
    arena_fini(&plan->arena);
    free(plan);
}

/* ---- questions ---- */

size_t pgseek_plan_key_count(const struct pgseek_plan *plan)
{
    return plan->nkeys;
}

const struct pgseek_key *pgseek_plan_key(const struct pgseek_plan *plan, size_t i)
{
    return &plan->keys[i].is;
}

bool pgseek_plan_is_locking(const struct pgseek_plan *plan)
{
    return plan->is_locking;
}

const char *pgseek_plan_summary(const struct pgseek_plan *plan)
{
    return plan->summary;
}
