/* plan.c - everything about one page that does not depend on a cursor: keys, cuts, contract, what the guard watches.
 *
 * See plan.h. Made from a query and the facts; both may be freed afterwards. */
#include "plan.h"

#include "keyset.h"
#include "reach.h"
#include "summary.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PARAMS 65535
#define MAX_COLUMNS 1664
/* Parameters of ours beside the keys: in a shape the numbers of rows, in the guard what it expects. */
#define MORE_PARAMS 8

/* ---- checks that need facts ---- */

/* Functions that are called for each fetched row: one too many would be called for the look-ahead row. */
static enum pgseek_reason check_functions(const struct pgseek_query *query, struct pgseek_facts *facts)
{
    enum pgseek_reason reason = PGSEEK_REASON_NONE;

    for (size_t i = 0; i < query->nfunctions && reason == PGSEEK_REASON_NONE; i++) {
        const struct query_function *function = &query->functions[i];
        const struct facts_function *fact = facts_ask_function(facts, function->name);

        if (!function->in_output)
            continue;
        if (!fact)
            reason = PGSEEK_REASON_UNKNOWN_FUNCTION;
        else if (function->at_level && fact->returns_set)
            reason = PGSEEK_REASON_SRF_KEY;
        else if (fact->volatility == 'v')
            reason = PGSEEK_REASON_VOLATILE;
    }
    return reason;
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
    if (tree_is(message, &pg_query__common_table_expr__descriptor))
        return is_reserved(((PgQuery__CommonTableExpr *)message)->ctename) ? TREE_STOP : TREE_DEEPER;
    return TREE_DEEPER;
}

static enum pgseek_reason check_names(const struct pgseek_query *query, struct pgseek_facts *facts)
{
    if (!tree_walk(&query->parsed->base, stop_at_reserved, NULL))
        return PGSEEK_REASON_RESERVED_NAME;
    for (size_t r = 0; r < query->nrelations; r++) {
        size_t ord;
        size_t count = 0;
        const struct facts_relation *relation =
            facts_ask_relation(facts, query->relations[r].schema, query->relations[r].name, &ord);
        const struct facts_column *columns = relation ? facts_columns(facts, ord, &count) : NULL;

        if (relation && !relation->may_use)
            return PGSEEK_REASON_KEY_PRIVILEGE; /* a statement prepared before runs on: the server asks only once */
        for (size_t i = 0; i < count; i++)
            if (is_reserved(columns[i].name))
                return PGSEEK_REASON_RESERVED_NAME;
    }
    return PGSEEK_REASON_NONE;
}

static bool is_mentioned(const struct pgseek_query *query, struct pgseek_facts *facts, uint32_t table_oid)
{
    for (size_t r = 0; r < query->nrelations; r++) {
        size_t ord;
        const struct facts_relation *relation =
            facts_ask_relation(facts, query->relations[r].schema, query->relations[r].name, &ord);

        if (relation && relation->oid == table_oid)
            return true;
    }
    return false;
}

/* A statement that was prepared before keeps the tables that its names meant then, until the server has a reason to
 * look again; a new table of that name in front of the old one is none. A page's text would read the new one. */
static enum pgseek_reason check_tables(const struct pgseek_query *query, struct pgseek_facts *facts,
                                       const struct pgseek_description *description)
{
    for (size_t i = 0; description && i < description->ncolumns; i++)
        if (description->columns[i].table_oid && !is_mentioned(query, facts, description->columns[i].table_oid))
            return PGSEEK_REASON_STALE_NAMES;
    return PGSEEK_REASON_NONE;
}

static enum tree_step stop_at_lock(ProtobufCMessage *message, void *context)
{
    if (!tree_is(message, &pg_query__select_stmt__descriptor) || message == context)
        return TREE_DEEPER;
    return ((PgQuery__SelectStmt *)message)->n_locking_clause ? TREE_STOP : TREE_DEEPER;
}

/* Rows locked beside the level: the look-ahead row's too, and once for each branch of a UNION. */
static enum pgseek_reason check_locks(const struct pgseek_query *query)
{
    ProtobufCMessage *level = (ProtobufCMessage *)(uintptr_t)query->level;

    return tree_walk(&query->parsed->base, stop_at_lock, level) ? PGSEEK_REASON_NONE : PGSEEK_REASON_LOCKING;
}

static enum pgseek_reason check_numbers(const struct pgseek_query *query, const struct pgseek_facts *facts)
{
    bool has_operator = query->limit.has_operator || query->offset.has_operator;

    return has_operator && facts_has_foreign_operators(facts) ? PGSEEK_REASON_LIMIT_EXPRESSION : PGSEEK_REASON_NONE;
}

/* ---- keys ---- */

/* Types whose binary form is the same under every client_encoding. */
static bool is_encoding_free(const struct facts_type *type)
{
    static const uint32_t oids[] = {16,   17,   18,   20,   21,   23,   26,   27,   28,   29,   650,  700,
                                    701,  774,  790,  829,  869,  1082, 1083, 1114, 1184, 1186, 1266, 1560,
                                    1562, 1700, 2950, 3220, 3904, 3906, 3908, 3910, 3912, 3926, 5069};

    for (size_t i = 0; i < sizeof oids / sizeof *oids; i++)
        if (type->oid == oids[i])
            return true;
    return false;
}

/* Operators of enums, ranges and rows take any type of the kind, but no domain over one. Of what is no column it is not
 * known whether it is a domain's. NULL: no cast is needed, or it cannot be written. */
static const char *base_cast(struct pgseek_plan *plan, const struct scope *scope, const struct order_key *key)
{
    const struct facts_column *facts = key->is_column ? scope_attribute(scope, key->column)->facts : NULL;
    const char *dot = strchr(key->type->name, '.');
    struct text text = {0};

    if (key->type->kind == 'b' || (facts && facts->type_oid == key->type->oid) || !dot || strchr(dot + 1, '.'))
        return NULL;
    const char *schema = arena_strndup(&plan->arena, key->type->name, (size_t)(dot - key->type->name));
    if (!schema)
        return NULL;
    text_put_ident(&text, schema);
    text_putc(&text, '.');
    text_put_ident(&text, dot + 1);
    const char *copy = text.failed ? NULL : arena_strdup(&plan->arena, text.ptr);
    text_fini(&text);
    return copy;
}

static bool make_key(struct pgseek_plan *plan, const struct order *order, size_t i)
{
    const struct order_key *from = &order->keys[i];
    struct plan_key *key = &plan->keys[i];
    const char *text = order_text(order, from);

    if (!text)
        return false;
    key->relation = from->relation;
    key->closes = from->closes;
    key->is_appended = from->is_appended;
    key->cast = base_cast(plan, order->scope, from);
    key->is_spelled = order_is_spelled(order, from);
    key->is = (struct pgseek_key){
        .type_oid = from->type->oid,
        .type_name = arena_strdup(&plan->arena, from->type->name),
        .descending = from->descending,
        .nulls_first = from->nulls_first,
        .nullable = from->nullable,
        .is_text = !is_encoding_free(from->type),
        .expr = arena_strdup(&plan->arena, text),
        .column = arena_strdup(&plan->arena, from->node && !from->is_column ? "" : text),
        .identity = arena_format(&plan->arena, "%s|%s", from->collation, from->type->labels),
    };
    for (size_t s = 0; s < FACTS_OPERATORS; s++)
        key->operators[s] =
            (struct facts_operator){.schema = arena_strdup(&plan->arena, from->type->operator[s].schema),
                                    .name = arena_strdup(&plan->arena, from->type->operator[s].name)};
    plan->depends_on_settings |= from->is_stable;
    return !plan->arena.failed;
}

/* The server prunes partitions by a comparison of the first column of their key, and not by a row value. */
static bool is_partitioned_by(const struct scope *scope, const struct order_key *key)
{
    if (!key->is_column)
        return false;
    const struct facts_relation *relation = scope->relations[key->column.relation].facts;
    const struct facts_column *column = scope_attribute(scope, key->column)->facts;

    return relation && column && relation->kind == 'p' && relation->npartition_attnums > 0 &&
           relation->partition_attnums[0] == column->attnum;
}

static bool make_keys(struct pgseek_plan *plan, const struct scope *scope, const struct order *order)
{
    plan->nkeys = order->nkeys;
    plan->keys = arena_array(&plan->arena, order->nkeys, sizeof *plan->keys);
    if (!plan->keys)
        return false;
    for (size_t i = 0; i < order->nkeys; i++)
        if (!make_key(plan, order, i))
            return false;
    plan->is_partitioned = is_partitioned_by(scope, &order->keys[0]);
    return true;
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

static bool copy_params(struct pgseek_plan *plan, const struct pgseek_query *query,
                        const struct pgseek_description *description)
{
    plan->nparams = description ? description->nparams : (size_t)query->param_count;
    plan->param_oids = arena_array(&plan->arena, plan->nparams, sizeof *plan->param_oids);
    for (size_t i = 0; plan->param_oids && description && i < plan->nparams; i++)
        plan->param_oids[i] = description->param_oids[i];
    return !plan->arena.failed;
}

/* Where `*` without a relation stands in the select list. */
static enum plan_star find_star(const PgQuery__SelectStmt *level)
{
    enum plan_star found = PLAN_STAR_NONE;

    for (size_t i = 0; i < level->n_target_list; i++) {
        const PgQuery__ColumnRef *column = tree_column(level->target_list[i]->res_target->val);

        if (!column || !tree_is_star(column) || column->n_fields > 1)
            continue;
        if (found != PLAN_STAR_NONE || i + 1 < level->n_target_list)
            return PLAN_STAR_AMONG;
        found = PLAN_STAR_LAST;
    }
    return found;
}

/* A lock that was waited for may change a row's keys; those of before are kept in a relation of ours, which would show
 * among the columns of a bare star. */
static enum pgseek_reason check_lock(const struct pgseek_plan *plan)
{
    bool is_page = plan->is_locking && plan->verb != PGSEEK_VERB_DECLARE;

    return is_page && plan->star == PLAN_STAR_AMONG ? PGSEEK_REASON_LOCKING : PGSEEK_REASON_NONE;
}

static bool copy_query(struct pgseek_plan *plan, const struct pgseek_query *query)
{
    plan->len = query->lex.len;
    plan->sql = arena_strndup(&plan->arena, query->lex.sql, query->lex.len);
    plan->verb = query->verb;
    plan->has_targets = query->level->n_target_list > 0;
    plan->is_locking = query->level->n_locking_clause > 0;
    plan->star = find_star(query->level);
    plan->is_inner = query->is_inner;
    plan->reads_outside = query->reads_outside;
    plan->level_ordinal = query->level_ordinal;
    plan->limit_kind = query->limit.kind;
    if (query->limit.kind == PGSEEK_NUMBER_LITERAL)
        (void)number_value(&query->limit, NULL, 0, &plan->limit);
    return plan->sql && cut_copy(&plan->cut, &plan->arena, &query->cut) &&
           copy_bytes(plan, &query->core, &plan->core) && copy_bytes(plan, &query->frame, &plan->frame);
}

static bool copy_order(struct pgseek_plan *plan, const struct order *order)
{
    plan->form = order->form;
    plan->order_rest = order->rest;
    plan->noutputs = order->outputs.count;
    if (!plan->is_inner)
        return true;
    plan->nlevel_names = order->outputs.count;
    plan->level_names = arena_array(&plan->arena, plan->nlevel_names, sizeof *plan->level_names);
    for (size_t i = 0; plan->level_names && i < plan->nlevel_names; i++)
        plan->level_names[i] = arena_strdup(&plan->arena, order->outputs.item[i].name);
    return !plan->arena.failed;
}

static enum pgseek_reason check_sizes(const struct pgseek_plan *plan)
{
    size_t hidden = plan->is_inner ? 2 * plan->nkeys + 2 : plan->nkeys + 1;

    if (plan->nparams + plan->nkeys + MORE_PARAMS > MAX_PARAMS)
        return PGSEEK_REASON_PARAMS_TOO_MANY;
    return plan->noutputs + hidden > MAX_COLUMNS ? PGSEEK_REASON_COLUMNS_TOO_MANY : PGSEEK_REASON_NONE;
}

/* ---- understanding ---- */

/* What one attempt works with; all of it goes when the attempt ends. */
struct attempt {
    const struct pgseek_query *query;
    struct pgseek_facts *facts;
    const struct pgseek_description *description; /* of the whole statement, may be NULL */
    struct arena scratch;
    struct pgseek_description level; /* of the level's own text */
    bool has_level;
    struct scope scope;
    struct order order;
};

/* Inside of another statement the level's names are only told by a description of its own. */
static enum pgseek_reason describe_level(struct attempt *attempt)
{
    const struct pgseek_query *query = attempt->query;
    struct text text = {0};

    if (!query->is_inner && !query->is_framed) {
        attempt->has_level = attempt->description != NULL;
        if (attempt->description)
            attempt->level = *attempt->description;
        return PGSEEK_REASON_NONE;
    }
    bool made = probe_make(&text, query, NULL, 0) && !text.failed;
    const struct pgseek_description *description =
        made ? facts_ask_description(attempt->facts, text.ptr, text.len) : NULL;
    text_fini(&text);
    if (!made)
        return PGSEEK_REASON_NOMEM;
    if (!description)
        return facts_is_asking(attempt->facts) ? PGSEEK_REASON_MORE : PGSEEK_REASON_DESCRIBE_MISMATCH;
    attempt->has_level = true;
    attempt->level = *description;
    attempt->level.param_oids = attempt->description ? attempt->description->param_oids : NULL;
    attempt->level.nparams = attempt->description ? attempt->description->nparams : 0;
    return PGSEEK_REASON_NONE;
}

/* Asks as much as can be asked at once, so that there are few rounds. */
static enum pgseek_reason read_scope(struct attempt *attempt)
{
    const struct pgseek_query *query = attempt->query;
    enum pgseek_reason described = describe_level(attempt);
    enum pgseek_reason reason = scope_make(&attempt->scope, &attempt->scratch, query, query->level, query->with,
                                           query->nwith, attempt->facts, attempt->description);

    if (reason != PGSEEK_REASON_NONE)
        return reason;
    reason = check_functions(query, attempt->facts);
    if (facts_is_asking(attempt->facts))
        return PGSEEK_REASON_MORE;
    return described == PGSEEK_REASON_NONE ? reason : described;
}

/* The checks, in the order in which a reader would name them. */
static enum pgseek_reason understand(struct attempt *attempt, const char *key_option)
{
    const struct pgseek_query *query = attempt->query;

    if (attempt->description)
        facts_note_names(attempt->facts, attempt->description);
    if (!facts_are_readable(attempt->facts))
        return PGSEEK_REASON_ENCODING;
    enum pgseek_reason reason = read_scope(attempt);
    if (reason == PGSEEK_REASON_NONE)
        reason = check_names(query, attempt->facts);
    if (reason == PGSEEK_REASON_NONE)
        reason = check_tables(query, attempt->facts, attempt->description);
    if (reason == PGSEEK_REASON_NONE)
        reason = check_locks(query);
    if (reason == PGSEEK_REASON_NONE)
        reason = check_numbers(query, attempt->facts);
    if (reason == PGSEEK_REASON_NONE && reach_has_sample(query, attempt->facts))
        reason = PGSEEK_REASON_TABLESAMPLE;
    if (reason == PGSEEK_REASON_NONE)
        reason = order_make(&attempt->order, query, &attempt->scope, attempt->has_level ? &attempt->level : NULL,
                            key_option);
    if (reason == PGSEEK_REASON_NONE && keyset_is_written(&attempt->order))
        reason = PGSEEK_REASON_ALREADY_KEYSET;
    if (facts_is_asking(attempt->facts))
        reason = PGSEEK_REASON_MORE;
    return attempt->scratch.failed ? PGSEEK_REASON_NOMEM : reason;
}

static bool has_loose_key(const struct order *order)
{
    for (size_t i = 0; i < order->nkeys; i++)
        if (order->keys[i].is_loose)
            return true;
    return false;
}

static enum pgseek_reason fill(struct pgseek_plan *plan, struct attempt *attempt)
{
    const struct pgseek_query *query = attempt->query;
    const struct order *order = &attempt->order;
    bool made = copy_query(plan, query) && copy_params(plan, query, attempt->description) && copy_order(plan, order) &&
                make_keys(plan, &attempt->scope, order);

    plan->has_volatile =
        reach_has_volatile(query, attempt->facts) || reach_has_choice(query, attempt->facts, has_loose_key(order));
    plan->summary = made ? summary_make(&plan->arena, order) : NULL;
    if (!plan->summary || !plan_watch(plan, query, &attempt->scope, order) || !plan_make_contract(plan, query))
        return PGSEEK_REASON_NOMEM;
    if (facts_is_asking(attempt->facts))
        return PGSEEK_REASON_MORE;
    enum pgseek_reason reason = check_lock(plan);
    return reason == PGSEEK_REASON_NONE ? check_sizes(plan) : reason;
}

struct pgseek_plan *pgseek_plan_new(const struct pgseek_query *query, struct pgseek_facts *facts,
                                    const struct pgseek_description *description, const char *key_option,
                                    enum pgseek_reason *reason)
{
    struct pgseek_plan *plan = calloc(1, sizeof *plan);
    struct attempt attempt = {.query = query, .facts = facts, .description = description};

    *reason = PGSEEK_REASON_NOMEM;
    if (!plan)
        return NULL;
    *reason = understand(&attempt, key_option);
    if (*reason == PGSEEK_REASON_NONE)
        *reason = fill(plan, &attempt);
    arena_fini(&attempt.scratch);
    if (*reason == PGSEEK_REASON_NONE)
        return plan;
    pgseek_plan_free(plan);
    return NULL;
}

size_t pgseek_plan_bytes(const struct pgseek_plan *plan)
{
    return sizeof *plan + plan->arena.total_bytes;
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

bool pgseek_plan_depends_on_settings(const struct pgseek_plan *plan)
{
    return plan->depends_on_settings;
}
