/* outputs.h - the output columns of a level: what each comes from, `*` expanded, and what it is called.
 *
 * It knows the select list, the scope and the server's description; it must not know ORDER BY. */
#ifndef PARSER_OUTPUTS_H
#define PARSER_OUTPUTS_H

#include "scope.h"

struct output {
    const char *name;  /* by the server's description */
    uint32_t type_oid; /* by the same: a base type; 0: not known */
    bool is_column;    /* a plain column of the scope, in `column` */
    struct scope_column column;
    PgQuery__Node *node; /* the select item's expression; NULL: it came out of a star, or of a set operation */
    const char *written; /* out of a star, and no column: how the level's rows spell it; else NULL */
    size_t item;         /* which item of the select list it came from */
};

struct outputs {
    struct output *item;
    size_t count;
    bool is_known; /* false: several stars over something opaque; only the names and types are certain */
};

/* Of a set operation or VALUES only names and types are known, of TABLE the columns too. description is that of the
 * level's own text; without one (an explanation without a server) names are those that are written.
 * PGSEEK_REASON_STAR when the list and the description do not fit. */
enum pgseek_reason outputs_make(struct outputs *outputs, const struct pgseek_query *query, const struct scope *scope,
                                const struct pgseek_description *description) PGSEEK_MUST_USE;

#endif
