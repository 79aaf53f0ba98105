/* classify.h - may this statement be a page, as far as its tree alone can tell?
 *
 * It knows node types and reasons and must not know the catalog or the text. */
#ifndef PARSER_CLASSIFY_H
#define PARSER_CLASSIFY_H

#include "query.h"

/* What the statement does, and its SELECT. PGSEEK_REASON_NONE, or why it is none. */
enum pgseek_reason classify_statement(const PgQuery__ParseResult *parsed, enum pgseek_verb *verb,
                                      PgQuery__SelectStmt **statement) PGSEEK_MUST_USE;

/* Whether the level can be a page of the statement, and how a predicate can be added to it. */
enum pgseek_reason classify_level(const PgQuery__SelectStmt *statement, const PgQuery__SelectStmt *level,
                                  enum query_form *form) PGSEEK_MUST_USE;

#endif
