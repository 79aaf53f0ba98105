/* query.c - one statement, understood without a catalog: its tree, its cuts, and what it mentions.
 *
 * See query.h. Made in one pass of checks that ends at the first reason against it. */
#include "query.h"

#include "classify.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PARAMS 65535

/* ---- what the statement mentions ---- */

struct mention {
    struct pgseek_query *query;
    size_t relation_room;
    size_t function_room;
    bool in_output;
    bool at_level;
    bool has_bad_param; /* $0, or more than the protocol can bind */
};

/* Room for one more item in an arena array that doubles. */
static void *grow(struct arena *arena, void *items, size_t count, size_t *room, size_t item_bytes)
{
    if (count < *room)
        return items;
    size_t wanted = *room ? *room * 2 : 8;
    void *grown = arena_array(arena, wanted, item_bytes);
    if (!grown)
        return NULL;
    if (count)
        memcpy(grown, items, count * item_bytes);
    *room = wanted;
    return grown;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static void mention_relation(struct mention *mention, const PgQuery__RangeVar *var)
{
    struct pgseek_query *query = mention->query;
    const char *schema = *var->schemaname ? var->schemaname : NULL;

    for (size_t i = 0; i < query->nrelations; i++)
        if (same_text(query->relations[i].schema, schema) && same_text(query->relations[i].name, var->relname))
            return;
    struct query_relation *relations =
        grow(&query->arena, query->relations, query->nrelations, &mention->relation_room, sizeof *relations);
    if (!relations)
        return;
    query->relations = relations;
    relations[query->nrelations++] = (struct query_relation){.schema = schema, .name = var->relname};
}

static void mention_function(struct mention *mention, const PgQuery__FuncCall *call)
{
    struct pgseek_query *query = mention->query;
    const char *name = tree_string(call->funcname[call->n_funcname - 1]);
    size_t i = 0;

    while (i < query->nfunctions && !same_text(query->functions[i].name, name))
        i++;
    if (i == query->nfunctions) {
        struct query_function *functions =
            grow(&query->arena, query->functions, query->nfunctions, &mention->function_room, sizeof *functions);
        if (!functions)
            return;
        query->functions = functions;
        functions[query->nfunctions++] = (struct query_function){.name = name};
    }
    query->functions[i].in_output |= mention->in_output;
    query->functions[i].at_level |= mention->at_level;
}

static enum tree_step mention_visit(ProtobufCMessage *message, void *context)
{
    struct mention *mention = context;

    if (tree_is(message, &pg_query__range_var__descriptor))
        mention_relation(mention, (PgQuery__RangeVar *)message);
    if (tree_is(message, &pg_query__func_call__descriptor))
        mention_function(mention, (PgQuery__FuncCall *)message);
    if (tree_is(message, &pg_query__param_ref__descriptor)) {
        int number = ((PgQuery__ParamRef *)message)->number;
        mention->has_bad_param |= number < 1 || number > MAX_PARAMS;
        if (number > mention->query->param_count)
            mention->query->param_count = number;
    }
    return mention->query->arena.failed ? TREE_STOP : TREE_DEEPER;
}

/* Marks functions at the level itself; sub-selects were seen by the walk over everything. */
static enum tree_step level_visit(ProtobufCMessage *message, void *context)
{
    if (tree_is(message, &pg_query__select_stmt__descriptor))
        return TREE_OVER;
    return mention_visit(message, context);
}

static void mention_output(struct mention *mention, PgQuery__Node *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mention->at_level = false;
        tree_walk(&nodes[i]->base, mention_visit, mention);
        mention->at_level = true;
        tree_walk(&nodes[i]->base, level_visit, mention);
    }
}

static enum pgseek_reason collect_mentions(struct pgseek_query *query)
{
    struct mention mention = {.query = query};

    tree_walk(&query->parsed->base, mention_visit, &mention);
    mention.in_output = true;
    mention_output(&mention, query->level->target_list, query->level->n_target_list);
    mention_output(&mention, query->level->sort_clause, query->level->n_sort_clause);
    if (mention.has_bad_param)
        return PGSEEK_REASON_PARAMS_TOO_MANY;
    return query->arena.failed ? PGSEEK_REASON_NOMEM : PGSEEK_REASON_NONE;
}

/* ---- the tree as bytes ---- */

static void drop_node(PgQuery__Node **node)
{
    if (*node)
        pg_query__node__free_unpacked(*node, NULL);
    *node = NULL;
}

static void drop_limits(PgQuery__SelectStmt *level)
{
    drop_node(&level->limit_count);
    drop_node(&level->limit_offset);
    level->limit_option = PG_QUERY__LIMIT_OPTION__LIMIT_OPTION_DEFAULT;
}

bool query_core(PgQuery__SelectStmt *level, struct query_bytes *core)
{
    for (size_t i = 0; i < level->n_sort_clause; i++)
        drop_node(&level->sort_clause[i]);
    level->n_sort_clause = 0;
    drop_limits(level);
    tree_clear_locations(&level->base);
    core->ptr = tree_pack(&level->base, &core->len);
    return core->ptr != NULL;
}

static bool make_core(struct pgseek_query *query)
{
    ProtobufCMessage *copy = tree_copy(&query->level->base);
    bool made = copy && query_core((PgQuery__SelectStmt *)copy, &query->core);

    protobuf_c_message_free_unpacked(copy, NULL);
    return made;
}

/* Numbers parameters by their first use and remembers which they were. */
static enum tree_step renumber_visit(ProtobufCMessage *message, void *context)
{
    struct pgseek_query *query = context;
    size_t i = 0;

    if (!tree_is(message, &pg_query__param_ref__descriptor))
        return TREE_DEEPER;
    PgQuery__ParamRef *param = (PgQuery__ParamRef *)message;
    if (param->number == query->cursor_param) {
        param->number = 0;
        return TREE_OVER;
    }
    while (i < query->nfilter_params && query->filter_params[i] != param->number)
        i++;
    if (i == query->nfilter_params)
        query->filter_params[query->nfilter_params++] = param->number;
    param->number = (int32_t)i + 1;
    return TREE_DEEPER;
}

/* ASC and the null placements that a direction has by itself are spelled out, so that both spellings are one. */
static void spell_out_order(PgQuery__SortBy *sort)
{
    bool descending = sort->sortby_dir == PG_QUERY__SORT_BY_DIR__SORTBY_DESC;

    if (sort->sortby_dir == PG_QUERY__SORT_BY_DIR__SORTBY_USING)
        return;
    if (!descending)
        sort->sortby_dir = PG_QUERY__SORT_BY_DIR__SORTBY_DEFAULT;
    if (sort->sortby_nulls == PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_DEFAULT)
        sort->sortby_nulls =
            descending ? PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_FIRST : PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_LAST;
}

static bool make_contract(struct pgseek_query *query)
{
    PgQuery__SelectStmt *level = (PgQuery__SelectStmt *)tree_copy(&query->level->base);
    bool made = false;

    query->filter_params = arena_array(&query->arena, query->lex.ntokens, sizeof *query->filter_params);
    if (!level || !query->filter_params)
        goto out;
    drop_limits(level);
    for (size_t i = 0; i < level->n_sort_clause; i++)
        spell_out_order(level->sort_clause[i]->sort_by);
    tree_clear_locations(&level->base);
    tree_walk(&level->base, renumber_visit, query);
    query->contract.ptr = tree_pack(&level->base, &query->contract.len);
    made = query->contract.ptr != NULL;
out:
    protobuf_c_message_free_unpacked((ProtobufCMessage *)level, NULL);
    return made;
}

/* ---- making ---- */

static bool has_high_byte(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] >= 0x80)
            return true;
    return false;
}

/* A name without quotes and with letters beyond ASCII: a server of a single-byte encoding folds them, others do not. */
static bool has_folded_name(const struct lex *lex)
{
    for (size_t i = 0; i < lex->ntokens; i++) {
        const struct lex_token *token = &lex->tokens[i];

        if (token->kind == PG_QUERY__TOKEN__IDENT && lex->sql[token->start] != '"' &&
            has_high_byte(lex->sql + token->start, token->end - token->start))
            return true;
    }
    return false;
}

static enum pgseek_reason check_text(const struct lex *lex, const struct pgseek_reading *reading)
{
    if (!reading->standard_strings)
        return PGSEEK_REASON_STRINGS;
    if (has_high_byte(lex->sql, lex->len) && (!reading->ascii_safe_encoding || has_folded_name(lex)))
        return PGSEEK_REASON_ENCODING;
    if (lex->nstatements != 1)
        return lex->nstatements ? PGSEEK_REASON_SEVERAL : PGSEEK_REASON_EMPTY;
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason scan(struct pgseek_query *query, const char *sql, size_t len)
{
    static const enum pgseek_reason reasons[] = {
        [LEX_OK] = PGSEEK_REASON_NONE,
        [LEX_SYNTAX] = PGSEEK_REASON_SYNTAX,
        [LEX_TOO_LARGE] = PGSEEK_REASON_TOO_LARGE,
        [LEX_NOMEM] = PGSEEK_REASON_NOMEM,
    };
    return reasons[lex_init(&query->lex, sql, len)];
}

static enum pgseek_reason parse(struct pgseek_query *query)
{
    static const enum pgseek_reason reasons[] = {
        [TREE_OK] = PGSEEK_REASON_NONE,
        [TREE_SYNTAX] = PGSEEK_REASON_SYNTAX,
        [TREE_NOMEM] = PGSEEK_REASON_NOMEM,
    };
    return reasons[tree_parse(query->lex.sql, &query->parsed)];
}

static enum pgseek_reason build(struct pgseek_query *query, const char *sql, size_t len,
                                const struct pgseek_reading *reading)
{
    enum pgseek_reason reason = scan(query, sql, len);

    query->cursor_param = reading->cursor_param;
    query->verb = reading->verb;
    if (reason == PGSEEK_REASON_NONE)
        reason = check_text(&query->lex, reading);
    if (reason == PGSEEK_REASON_NONE)
        reason = parse(query);
    if (reason == PGSEEK_REASON_NONE)
        reason = classify_statement(query->parsed, &query->level);
    if (reason == PGSEEK_REASON_NONE)
        reason = cut_make(&query->cut, &query->lex);
    if (reason != PGSEEK_REASON_NONE)
        return reason;
    if (!number_make(&query->limit, query->level->limit_count) ||
        !number_make(&query->offset, query->level->limit_offset))
        return PGSEEK_REASON_LIMIT_EXPRESSION;
    reason = collect_mentions(query);
    if (reason != PGSEEK_REASON_NONE)
        return reason;
    bool made = make_core(query) && make_contract(query);
    return made ? PGSEEK_REASON_NONE : PGSEEK_REASON_NOMEM;
}

struct pgseek_query *pgseek_query_new(const char *sql, size_t len, const struct pgseek_reading *reading,
                                      enum pgseek_reason *reason)
{
    struct pgseek_query *query = calloc(1, sizeof *query);

    *reason = query ? build(query, sql, len, reading) : PGSEEK_REASON_NOMEM;
    if (*reason == PGSEEK_REASON_NONE)
        return query;
    pgseek_query_free(query);
    return NULL;
}

void pgseek_query_free(struct pgseek_query *query)
{
    if (!query)
        return;
    free(query->core.ptr);
    free(query->contract.ptr);
    tree_free(query->parsed);
    lex_fini(&query->lex);
    arena_fini(&query->arena);
    free(query);
}

/* ---- questions ---- */

size_t pgseek_query_relation_count(const struct pgseek_query *query)
{
    return query->nrelations;
}

const char *pgseek_query_relation_schema(const struct pgseek_query *query, size_t i)
{
    return query->relations[i].schema;
}

const char *pgseek_query_relation_name(const struct pgseek_query *query, size_t i)
{
    return query->relations[i].name;
}

size_t pgseek_query_function_count(const struct pgseek_query *query)
{
    return query->nfunctions;
}

const char *pgseek_query_function_name(const struct pgseek_query *query, size_t i)
{
    return query->functions[i].name;
}

enum pgseek_verb pgseek_query_verb(const struct pgseek_query *query)
{
    return query->verb;
}

int pgseek_query_param_count(const struct pgseek_query *query)
{
    return query->param_count;
}

static enum tree_step stop_at_param(ProtobufCMessage *message, void *context)
{
    const int *number = context;

    if (!tree_is(message, &pg_query__param_ref__descriptor))
        return TREE_DEEPER;
    return ((PgQuery__ParamRef *)message)->number == *number ? TREE_STOP : TREE_OVER;
}

bool pgseek_query_uses_param(const struct pgseek_query *query, int n)
{
    return !tree_walk(&query->parsed->base, stop_at_param, &n);
}

static const struct number *clause_number(const struct pgseek_query *query, enum pgseek_clause clause)
{
    return clause == PGSEEK_LIMIT ? &query->limit : &query->offset;
}

enum pgseek_number_kind pgseek_query_number_kind(const struct pgseek_query *query, enum pgseek_clause clause)
{
    return clause_number(query, clause)->kind;
}

enum pgseek_eval pgseek_query_number(const struct pgseek_query *query, enum pgseek_clause clause,
                                     const struct pgseek_value *params, size_t nparams, int64_t *out)
{
    return number_value(clause_number(query, clause), params, nparams, out);
}
