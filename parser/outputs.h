/* outputs.h - the output columns of a level: what each comes from, `*` expanded, and what it is called.
 *
 * It knows the select list, the scope and the server's description; it must not know ORDER BY. */
#ifndef PARSER_OUTPUTS_H
#define PARSER_OUTPUTS_H

#include "scope.h"

struct output {
    bool is_column; /* a plain column, in `column`; else an expression */
    struct scope_column column;
    const char *name; /* by the server's description, else as far as the text tells; may be NULL */
};

struct outputs {
    struct output *item;
    size_t count;
};

/* description may be NULL. PGSEEK_REASON_STAR when the select list and the description do not fit together. */
enum pgseek_reason outputs_make(struct outputs *outputs, const struct pgseek_query *query, const struct scope *scope,
                                const struct pgseek_description *description) PGSEEK_MUST_USE;

#endif
