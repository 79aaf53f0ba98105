/* draft.h - the text of a shape while it is made: the level as it is run, and the statement around it.
 *
 * It knows the plan's cuts and keys and must not know values, or how a finished text is checked. For shape.c alone. */
#ifndef PARSER_DRAFT_H
#define PARSER_DRAFT_H

#include "plan.h"
#include "splice.h"

struct draft {
    const struct pgseek_plan *plan;
    const struct pgseek_shape_key *how;
    struct predicate_key *keys; /* in the order in which the level is run; expr as the predicate has it */
    struct splice splice;
    bool has_boundary;
    bool is_turned;     /* it runs backward, and its rows are turned round again */
    bool has_hidden;    /* else ORDER BY stays the client's, with tie-breakers behind it (DECLARE) */
    bool has_having;    /* the predicate goes to HAVING */
    bool spells_order;  /* ORDER BY has the client's own items, and not the hidden columns */
    bool keeps_keys;    /* rows are locked, and may change while they are waited for: see DRAFT_KEPT_NAME */
    size_t nbranches;   /* of a UNION; 1: one text */
    size_t fetch_param; /* n of $n; 0: none */
    size_t limit_param;
};

/* Sorts by the hidden columns, each behind `prefix`. */
void draft_put_order(struct draft *draft, const char *prefix);
/* The level: its own outputs, the hidden columns behind them, in the order in which it runs, LIMIT. */
void draft_put_level(struct draft *draft);
/* Whether a row may come that is not of the page, and so a number to compare with. */
bool draft_has_look_ahead(const struct draft *draft);
/* The page's own LIMIT, as a number or parameter. */
void draft_put_page_limit(struct draft *draft);

/* draft_inner.c: the statement around an inner level, see PGSEEK_ROWS_INNER. */
void draft_put_inner(struct draft *draft);

/* A sub-select behind FROM that has the keys as the snapshot has them. When a lock was waited for, the server gives the
 * row as it is then, in its old place; only what is not locked stays as it was read. A cursor by the new key would skip
 * rows that nobody has touched, or give them twice. */
#define DRAFT_KEPT_NAME "pgseek_s"

/* What an inner level's rows are called where they are kept, and the table that counts them. */
#define DRAFT_PAGE_NAME "pgseek_p"
#define DRAFT_COUNT_NAME "pgseek_m"
#define DRAFT_MARK_NAME "pgseek_row"

#endif
