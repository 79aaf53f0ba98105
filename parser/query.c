/* query.c - one statement, understood without a catalog: its tree, its cuts, and what it mentions.
 *
 * See query.h. Made in one pass of checks that ends at the first reason against it. */
#include "query.h"

#include "classify.h"
#include "level.h"
#include "skim.h"
#include "tag.h"

#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

/* A name beyond ASCII that the parser may take for another than the server does. Without quotes, a server of a
 * single-byte encoding folds it and others do not. Longer names are cut, by the server in its own encoding and by the
 * parser in the client's: two would look like one. */
static bool is_misread(const char *sql, const struct lex_token *token)
{
    const char *name = sql + token->start;
    size_t len = token->end - token->start;
    bool is_unicode = token->kind == PG_QUERY__TOKEN__UIDENT;

    if ((token->kind != PG_QUERY__TOKEN__IDENT && !is_unicode) || (!is_unicode && text_is_ascii(name, len)))
        return false;
    return len > SKIM_NAME_BYTES + strlen("\"\"") || (!is_unicode && *name != '"');
}

static bool has_misread_name(const struct lex *lex)
{
    for (size_t i = 0; i < lex->ntokens; i++)
        if (is_misread(lex->sql, &lex->tokens[i]))
            return true;
    return false;
}

static enum pgseek_reason check_text(const struct lex *lex, const struct pgseek_reading *reading)
{
    bool is_readable = text_is_ascii(lex->sql, lex->len) || reading->ascii_safe_encoding;

    if (!is_readable || has_misread_name(lex))
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

/* ---- which level is the page ---- */

/* The innermost level that has the tag in its brackets. */
static const struct level *tagged_level(const struct pgseek_query *query, const struct levels *levels)
{
    const struct level *best = NULL;
    size_t best_len = 0;
    size_t place = 0;

    if (!tag_place(query->lex.sql, query->lex.len, &place))
        return NULL;
    for (size_t i = 0; i < levels->count; i++) {
        int location = level_location(levels->item[i].select);
        const struct cut_range group = cut_group(&query->lex, location);

        if (location < 0 || place < group.start || place >= group.end)
            continue;
        if (best && group.end - group.start >= best_len)
            continue;
        best = &levels->item[i];
        best_len = group.end - group.start;
    }
    return best;
}

/* The level below the statement that is the page; NULL: the statement itself is. */
static enum pgseek_reason choose_level(const struct pgseek_query *query, const struct levels *levels,
                                       const struct level **chosen)
{
    bool has_own = query->statement->limit_count != NULL;
    bool is_single = has_own ? !levels->count && !levels->has_unordered : levels->count == 1;

    *chosen = NULL;
    if (levels->has_too_many)
        return PGSEEK_REASON_SEVERAL_LIMITS;
    if (!is_single && levels->count) {
        *chosen = tagged_level(query, levels);
        return *chosen ? PGSEEK_REASON_NONE : PGSEEK_REASON_SEVERAL_LIMITS;
    }
    if (!is_single && has_own)
        return PGSEEK_REASON_SEVERAL_LIMITS;
    if (!has_own && levels->count)
        *chosen = &levels->item[0];
    if (!has_own && !levels->count && levels->has_correlated)
        return PGSEEK_REASON_CORRELATED;
    return PGSEEK_REASON_NONE;
}

static bool take_own_level(struct pgseek_query *query)
{
    query->level = query->statement;
    query->nwith = query->statement->with_clause ? 1 : 0;
    query->with = arena_array(&query->arena, query->nwith, sizeof *query->with);
    if (query->with && query->nwith)
        query->with[0] = query->statement->with_clause;
    return query->with != NULL;
}

static enum pgseek_reason find_level(struct pgseek_query *query, PgQuery__SelectStmt *statement, int *cte_location)
{
    const struct level *chosen;
    struct levels levels;

    *cte_location = -1;
    query->statement = statement;
    if (!levels_find(&levels, &query->arena, statement))
        return PGSEEK_REASON_NOMEM;
    enum pgseek_reason reason = choose_level(query, &levels, &chosen);
    if (reason != PGSEEK_REASON_NONE)
        return reason;
    if (!chosen)
        return take_own_level(query) ? PGSEEK_REASON_NONE : PGSEEK_REASON_NOMEM;
    if (!chosen->is_carried || chosen->is_recursive || level_location(chosen->select) < 0)
        return PGSEEK_REASON_INNER_LEVEL;
    query->is_inner = true;
    query->reads_outside = statement->with_clause && level_reads(chosen->select, statement->with_clause);
    query->level = chosen->select;
    query->with = chosen->with;
    query->nwith = chosen->nwith;
    query->level_ordinal = level_ordinal(&statement->base, chosen->select);
    *cte_location = chosen->cte_location;
    return PGSEEK_REASON_NONE;
}

static enum pgseek_reason cut_query(struct pgseek_query *query, int cte_location)
{
    const PgQuery__SelectStmt *level = query->level;
    bool has_on = query->form == QUERY_DISTINCT_ON;
    bool *has_alias = arena_array(&query->arena, level->n_target_list, sizeof *has_alias);

    if (!has_alias)
        return PGSEEK_REASON_NOMEM;
    for (size_t i = 0; i < level->n_target_list; i++)
        has_alias[i] = *level->target_list[i]->res_target->name != '\0';
    const struct cut_level tree = {.verb = query->verb,
                                   .cte_location = cte_location,
                                   .first_location = query->is_inner ? level_location(level) : -1,
                                   .is_set = query->form == QUERY_SET,
                                   .has_alias = has_alias,
                                   .ntargets = level->n_target_list,
                                   .nsorts = level->n_sort_clause,
                                   .ngroups = level->n_group_clause,
                                   .ndistincts = has_on ? level->n_distinct_clause : 0};
    return cut_make(&query->cut, &query->arena, &query->lex, &tree);
}

static enum pgseek_reason understand(struct pgseek_query *query)
{
    PgQuery__SelectStmt *statement = NULL;
    int cte_location = -1;
    enum pgseek_reason reason = classify_statement(query->parsed, &query->verb, &statement);

    query->is_framed = query->verb != PGSEEK_VERB_SELECT;
    if (reason == PGSEEK_REASON_NONE)
        reason = find_level(query, statement, &cte_location);
    if (reason == PGSEEK_REASON_NONE)
        reason = classify_level(query->statement, query->level, &query->form);
    return reason == PGSEEK_REASON_NONE ? cut_query(query, cte_location) : reason;
}

static enum pgseek_reason build(struct pgseek_query *query, const char *sql, size_t len,
                                const struct pgseek_reading *reading)
{
    /* With other literals the tokens would be others, too. */
    enum pgseek_reason reason = reading->standard_strings ? scan(query, sql, len) : PGSEEK_REASON_STRINGS;

    query->cursor_param = reading->cursor_param;
    query->has_ascii_trails = reading->has_ascii_trails;
    if (reason == PGSEEK_REASON_NONE)
        reason = check_text(&query->lex, reading);
    if (reason == PGSEEK_REASON_NONE)
        reason = parse(query);
    if (reason == PGSEEK_REASON_NONE)
        reason = understand(query);
    if (reason != PGSEEK_REASON_NONE)
        return reason;
    if (!number_make(&query->limit, query->level->limit_count) ||
        !number_make(&query->offset, query->level->limit_offset))
        return PGSEEK_REASON_LIMIT_EXPRESSION;
    reason = query_collect_mentions(query);
    if (reason != PGSEEK_REASON_NONE)
        return reason;
    if (!query_make_essence(query))
        return PGSEEK_REASON_NOMEM;
    if (reading->verb != PGSEEK_VERB_SELECT)
        query->verb = reading->verb;
    return PGSEEK_REASON_NONE;
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

/* What the tree of a text takes was measured: 180 to 230 bytes for a token and the lengths of its literals. */
#define QUERY_TREE_BYTES 4096
#define QUERY_TOKEN_BYTES 256

size_t pgseek_query_bytes(const struct pgseek_query *query)
{
    size_t texts = query->core.len + query->frame.len + query->contract.len + 2 * query->lex.len;
    size_t tokens = query->lex.ntokens * (sizeof *query->lex.tokens + QUERY_TOKEN_BYTES);

    return sizeof *query + query->arena.total_bytes + texts + tokens + QUERY_TREE_BYTES;
}

void pgseek_query_free(struct pgseek_query *query)
{
    if (!query)
        return;
    free(query->core.ptr);
    free(query->frame.ptr);
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

bool pgseek_query_has_ascii_trails(const struct pgseek_query *query)
{
    return query->has_ascii_trails;
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
