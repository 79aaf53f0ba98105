/* check.c - proof that a rewritten text is still the client's statement.
 *
 * See check.h. Fingerprints would not do: they are equal for texts that mean different things. */
#include "check.h"

#include "level.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static PgQuery__SelectStmt *select_of(const PgQuery__Node *node)
{
    return node && node->node_case == PG_QUERY__NODE__NODE_SELECT_STMT ? node->select_stmt : NULL;
}

PgQuery__SelectStmt *check_unwrap(const PgQuery__SelectStmt *level)
{
    if (!level || level->n_from_clause != 1 || level->from_clause[0]->node_case != PG_QUERY__NODE__NODE_RANGE_SUBSELECT)
        return NULL;
    return select_of(level->from_clause[0]->range_subselect->subquery);
}

/* ---- undoing what was done to a SELECT ---- */

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

static bool drop_hidden(PgQuery__SelectStmt *level, const struct check_edits *edits)
{
    for (size_t i = edits->nkeys; i > 0; i--)
        if (!drop_last_target(level, edits->key_name, i))
            return false;
    return true;
}

/* Takes the last argument off the clause's top AND; what is left alone stands for itself. */
static bool drop_predicate(PgQuery__Node **clause, bool had_clause)
{
    PgQuery__Node *whole = *clause;

    if (!whole)
        return false;
    if (!had_clause) {
        pg_query__node__free_unpacked(whole, NULL);
        *clause = NULL;
        return true;
    }
    if (whole->node_case != PG_QUERY__NODE__NODE_BOOL_EXPR ||
        whole->bool_expr->boolop != PG_QUERY__BOOL_EXPR_TYPE__AND_EXPR || whole->bool_expr->n_args < 2)
        return false;
    PgQuery__BoolExpr *conjunction = whole->bool_expr;
    pg_query__node__free_unpacked(conjunction->args[--conjunction->n_args], NULL);
    if (conjunction->n_args > 1)
        return true;
    *clause = conjunction->args[0];
    conjunction->n_args = 0;
    pg_query__node__free_unpacked(whole, NULL);
    return true;
}

/* The sub-select behind FROM; it reads the columns before it and no table. */
static bool drop_kept(PgQuery__SelectStmt *level, const char *name)
{
    if (level->n_from_clause < 2)
        return false;
    PgQuery__Node *last = level->from_clause[level->n_from_clause - 1];
    if (last->node_case != PG_QUERY__NODE__NODE_RANGE_SUBSELECT || !last->range_subselect->lateral ||
        !last->range_subselect->alias || strcmp(last->range_subselect->alias->aliasname, name) != 0)
        return false;
    const PgQuery__SelectStmt *inside = select_of(last->range_subselect->subquery);
    if (!inside || inside->n_from_clause > 0)
        return false;
    pg_query__node__free_unpacked(last, NULL);
    level->n_from_clause--;
    return true;
}

static bool undo(PgQuery__SelectStmt *level, const struct check_edits *edits)
{
    if (!drop_hidden(level, edits) || (edits->kept_name && !drop_kept(level, edits->kept_name)))
        return false;
    if (!edits->has_predicate)
        return true;
    return drop_predicate(edits->has_having ? &level->having_clause : &level->where_clause, edits->had_clause);
}

/* The wrap's own parts are ours, but for the columns that it adds. */
static PgQuery__SelectStmt *undo_wrap(PgQuery__SelectStmt *wrap, const struct check_edits *edits)
{
    PgQuery__SelectStmt *level = check_unwrap(wrap);
    bool adds_columns = edits->wrap == CHECK_WRAPPED_OUTPUT;

    if (!level || !drop_hidden(adds_columns ? wrap : level, edits))
        return NULL;
    return level;
}

/* ---- comparing ---- */

static enum pgseek_reason compare(struct query_bytes found, bool made, const struct query_bytes *wanted)
{
    if (!made)
        return PGSEEK_REASON_NOMEM;
    bool equal = found.len == wanted->len && !memcmp(found.ptr, wanted->ptr, wanted->len);
    free(found.ptr);
    return equal ? PGSEEK_REASON_NONE : PGSEEK_REASON_REWRITE_CHECK;
}

static enum pgseek_reason check_core(PgQuery__SelectStmt *level, const struct query_bytes *core)
{
    struct query_bytes found = {0};
    bool made = query_core(level, &found);

    return compare(found, made, core);
}

static enum pgseek_reason check_select(PgQuery__SelectStmt *level, const struct check_edits *edits,
                                       const struct query_bytes *core)
{
    if (edits->wrap != CHECK_NOT_WRAPPED)
        level = undo_wrap(level, edits);
    else if (!undo(level, edits))
        level = NULL;
    return level ? check_core(level, core) : PGSEEK_REASON_REWRITE_CHECK;
}

static enum pgseek_reason check_level(PgQuery__SelectStmt *level, const struct check_edits *edits,
                                      const struct query_bytes *core)
{
    if (edits->is_turned)
        level = check_unwrap(check_unwrap(level));
    for (size_t i = edits->nbranches; i > 1; i--) {
        if (!level || level->op != PG_QUERY__SET_OPERATION__SETOP_UNION || !level->all)
            return PGSEEK_REASON_REWRITE_CHECK;
        enum pgseek_reason reason = check_select(level->rarg, edits, core);
        if (reason != PGSEEK_REASON_NONE)
            return reason;
        level = level->larg;
    }
    return level ? check_select(level, edits, core) : PGSEEK_REASON_REWRITE_CHECK;
}

/* The level inside a statement that goes on around it; what is left of the statement is the frame. */
static enum pgseek_reason check_framed(PgQuery__Node *statement, const struct check_edits *edits,
                                       const struct query_bytes *core, const struct query_bytes *frame)
{
    struct query_bytes found = {0};
    PgQuery__SelectStmt *level = NULL;

    if (edits->is_replaced) {
        PgQuery__SelectStmt *select = level_by_ordinal(&statement->base, 0);
        level = select ? check_undo_replacement(select) : NULL;
    } else {
        PgQuery__SelectStmt *select = level_by_ordinal(&statement->base, edits->level_ordinal);
        level = select ? level_take(select) : NULL;
    }
    if (!level)
        return PGSEEK_REASON_REWRITE_CHECK;
    enum pgseek_reason reason = check_level(level, edits, core);
    pg_query__select_stmt__free_unpacked(level, NULL);
    if (reason != PGSEEK_REASON_NONE)
        return reason;
    bool made = query_frame(statement, &found);
    return compare(found, made, frame);
}

static enum pgseek_reason check_tree(const PgQuery__ParseResult *parsed, const struct check_edits *edits,
                                     const struct query_bytes *core, const struct query_bytes *frame)
{
    if (parsed->n_stmts != 1)
        return PGSEEK_REASON_REWRITE_CHECK;
    if (frame->len)
        return check_framed(parsed->stmts[0]->stmt, edits, core, frame);
    return check_level(select_of(parsed->stmts[0]->stmt), edits, core);
}

enum pgseek_reason check_rewrite(const char *sql, size_t len, const struct check_edits *edits,
                                 const struct query_bytes *core, const struct query_bytes *frame)
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
    enum pgseek_reason reason = lex_reasons[lex_init_ours(&lex, sql, len)]; /* the limits, before anybody parses */

    if (reason == PGSEEK_REASON_NONE)
        reason = tree_reasons[tree_parse(lex.sql, &parsed)];
    if (reason == PGSEEK_REASON_NONE)
        reason = check_tree(parsed, edits, core, frame);
    tree_free(parsed);
    lex_fini(&lex);
    return reason;
}
