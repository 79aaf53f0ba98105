/* check.h - proof that a rewritten text is still the client's statement.
 *
 * It parses the text again, undoes the edits on the tree and requires the rest to be equal; it must not know how the
 * text was made. */
#ifndef PARSER_CHECK_H
#define PARSER_CHECK_H

#include "query.h"

/* What was done to the level, from the inside out. */
struct check_edits {
    size_t nkeys;          /* hidden columns at the end of the select list */
    const char *key_name;  /* what they are called: this and a number from 1 */
    const char *kept_name; /* the last item of FROM is a sub-select of that name, which has them; NULL: it is not */
    bool has_predicate;    /* a last argument of the clause's AND, or the whole clause */
    bool has_having;       /* the clause is HAVING, else WHERE */
    bool had_clause;
    enum {
        CHECK_NOT_WRAPPED,
        CHECK_WRAPPED,       /* inside SELECT ... FROM (here) ..., which has the predicate */
        CHECK_WRAPPED_OUTPUT /* the same, and the wrap has the hidden columns too */
    } wrap;
    size_t nbranches;     /* more than one: each an arm of a UNION ALL */
    bool is_turned;       /* inside SELECT ... FROM (SELECT ... FROM (here) ...) ... */
    bool is_replaced;     /* an inner level, moved into a CTE */
    size_t level_ordinal; /* which SELECT the level is, if it stands where it stood */
};

/* PGSEEK_REASON_NONE when the text holds the level that `core` stands for, and around it the statement that `frame`
 * stands for (of no length: the level is the whole statement). */
enum pgseek_reason check_rewrite(const char *sql, size_t len, const struct check_edits *edits,
                                 const struct query_bytes *core, const struct query_bytes *frame) PGSEEK_MUST_USE;

/* check_frame.c: takes the level out of where draft_inner.c puts it, and puts the client's statement together again
 * around an empty place. NULL when that cannot be done; the level is the caller's then, to be freed. */
PgQuery__SelectStmt *check_undo_replacement(PgQuery__SelectStmt *statement) PGSEEK_MUST_USE;
/* The sub-select that is the one item of FROM, else NULL. */
PgQuery__SelectStmt *check_unwrap(const PgQuery__SelectStmt *level);

#endif
