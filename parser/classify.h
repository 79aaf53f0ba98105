/* classify.h - may this statement be a page, as far as its tree alone can tell?
 *
 * It knows node types and reasons and must not know the catalog or the text. */
#ifndef PARSER_CLASSIFY_H
#define PARSER_CLASSIFY_H

#include "tree.h"

/* PGSEEK_REASON_NONE and the level in *level, or the reason why not. */
enum pgseek_reason classify_statement(const PgQuery__ParseResult *parsed,
                                      const PgQuery__SelectStmt **level) PGSEEK_MUST_USE;

#endif
