/* check.c - proof that a rewritten text is still the client's statement.
 *
 * See check.h. Fingerprints would not do: they are equal for texts that mean different things. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static PgQuery__SelectStmt *select_of(const PgQuery__Node *node)
{
    return node && node->node_case == PG_QUERY__NODE__NODE_SELECT_STMT ? node->select_stmt : NULL;
}

/* The sub-select that is the one item of FROM. */
static PgQuery__SelectStmt *unwrap(const PgQuery__SelectStmt *level)
{
    if (!level || level->n_from_clause != 1 || level->from_clause[0]->node_case != PG_QUERY__NODE__NODE_RANGE_SUBSELECT)
        return NULL;
    return select_of(level->from_clause[0]->range_subselect->subquery);
}

static bool drop_last_target(PgQuery__SelectStmt *level, const char *key_name, size_t number)
{
    char name[32];

    if (!level->n_target_list)
        return false;
    PgQuery__Node *last = level->target_list[level->n_target_list - 1];
    snprintf(name, sizeof name, "%s%zu", key_name, number);
    if (last->node_case != PG_QUERY__NODE__NODE_RES_TARGET || strcmp(last->res_target->name, name) != 0)
        return false;
    pg_query__node__free_unpacked(last, NULL);
    level->n_target_list--;
    return true;
}

/* Takes the last argument off the top AND; what is left alone stands for itself. */
static bool drop_predicate(PgQuery__SelectStmt *level, bool had_where)
{
    PgQuery__Node *where = level->where_clause;

    if (!where)
        return false;
    if (!had_where) {
        pg_query__node__free_unpacked(where, NULL);
        level->where_clause = NULL;
        return true;
    }
    if (where->node_case != PG_QUERY__NODE__NODE_BOOL_EXPR ||
        where->bool_expr->boolop != PG_QUERY__BOOL_EXPR_TYPE__AND_EXPR || where->bool_expr->n_args < 2)
        return false;
    PgQuery__BoolExpr *conjunction = where->bool_expr;
    pg_query__node__free_unpacked(conjunction->args[--conjunction->n_args], NULL);
    if (conjunction->n_args > 1)
        return true;
    level->where_clause = conjunction->args[0];
    conjunction->n_args = 0;
    pg_query__node__free_unpacked(where, NULL);
    return true;
}

static bool undo(PgQuery__SelectStmt *level, const struct check_edits *edits)
{
    for (size_t i = edits->nkeys; i > 0; i--)
        if (!drop_last_target(level, edits->key_name, i))
            return false;
    return !edits->has_predicate || drop_predicate(level, edits->had_where);
}

static enum pgseek_reason compare(const PgQuery__ParseResult *parsed, const struct check_edits *edits,
                                  const struct query_bytes *core)
{
    struct query_bytes found = {0};
    PgQuery__SelectStmt *level = parsed->n_stmts == 1 ? select_of(parsed->stmts[0]->stmt) : NULL;

    if (edits->is_wrapped)
        level = unwrap(unwrap(level));
    if (!level || !undo(level, edits))
        return PGSEEK_REASON_REWRITE_CHECK;
    if (!query_core(level, &found))
        return PGSEEK_REASON_NOMEM;
    bool equal = found.len == core->len && !memcmp(found.ptr, core->ptr, core->len);
    free(found.ptr);
    return equal ? PGSEEK_REASON_NONE : PGSEEK_REASON_REWRITE_CHECK;
}

enum pgseek_reason check_rewrite(const char *sql, size_t len, const struct check_edits *edits,
                                 const struct query_bytes *core)
{
    static const enum pgseek_reason lex_reasons[] = {
        [LEX_OK] = PGSEEK_REASON_NONE,
        [LEX_SYNTAX] = PGSEEK_REASON_REWRITE_CHECK,
        [LEX_TOO_LARGE] = PGSEEK_REASON_TOO_LARGE,
        [LEX_NOMEM] = PGSEEK_REASON_NOMEM,
    };
    static const enum pgseek_reason tree_reasons[] = {
        [TREE_OK] = PGSEEK_REASON_NONE,
        [TREE_SYNTAX] = PGSEEK_REASON_REWRITE_CHECK,
        [TREE_NOMEM] = PGSEEK_REASON_NOMEM,
    };
    PgQuery__ParseResult *parsed = NULL;
    struct lex lex;
    enum pgseek_reason reason = lex_reasons[lex_init(&lex, sql, len)]; /* the limits, before anybody parses */

    if (reason == PGSEEK_REASON_NONE)
        reason = tree_reasons[tree_parse(lex.sql, &parsed)];
    if (reason == PGSEEK_REASON_NONE)
        reason = compare(parsed, edits, core);
    tree_free(parsed);
    lex_fini(&lex);
    return reason;
}
