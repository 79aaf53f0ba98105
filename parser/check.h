/* check.h - proof that a rewritten text is still the client's statement.
 *
 * It parses the text again, undoes the edits on the tree and requires the rest to be equal; it must not know how the
 * text was made. */
#ifndef PARSER_CHECK_H
#define PARSER_CHECK_H

#include "query.h"

/* What was done to the statement. */
struct check_edits {
    size_t nkeys;         /* hidden columns at the end of the select list */
    const char *key_name; /* what they are called: this and a number from 1 */
    bool has_predicate;   /* a last argument of WHERE's AND, or the whole WHERE */
    bool had_where;
    bool is_wrapped; /* inside SELECT ... FROM (SELECT ... FROM (here) ...) ... */
};

/* PGSEEK_REASON_NONE when the text holds the level that `core` stands for. */
enum pgseek_reason check_rewrite(const char *sql, size_t len, const struct check_edits *edits,
                                 const struct query_bytes *core) PGSEEK_MUST_USE;

#endif
