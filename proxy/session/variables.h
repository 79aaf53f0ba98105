/* variables.h - the session's pgseek.* variables under PostgreSQL's transaction rules.
 *
 * A state is immutable and counted by references: every change makes a new one, so that undoing is going back to a
 * pointer. It must not know messages; who calls it dates the changes. Texts are decoded by the parser's option table.
 */
#ifndef VARIABLES_H
#define VARIABLES_H

#include "../../parser/pgseek.h"
#include "../protocol/bytes.h"

struct variables; /* one state; NULL stands for "never touched": every value at its startup default of none */

struct variables *variables_ref(struct variables *state);
void variables_unref(struct variables *state);

/* Every function below that returns a state takes the reference of `state` and returns a new one. When memory ran out
 * it returns `state` unchanged and sets *failed. */

/* A startup value: what RESET goes back to. */
struct variables *variables_start(struct variables *state, enum pgseek_option option, const char *value, bool *failed);

/* SET and SET LOCAL; value NULL is RESET. Outside a block both live until variables_settle(). */
struct variables *variables_set(struct variables *state, enum pgseek_option option, const char *value, bool local,
                                bool *failed);
struct variables *variables_reset_all(struct variables *state, bool *failed);

struct variables *variables_begin(struct variables *state, bool *failed);
struct variables *variables_commit(struct variables *state, bool and_chain, bool *failed);
struct variables *variables_rollback(struct variables *state, bool and_chain, bool *failed);
struct variables *variables_savepoint(struct variables *state, const char *name, bool *failed);
struct variables *variables_rollback_to(struct variables *state, const char *name, bool *failed);
struct variables *variables_release(struct variables *state, const char *name, bool *failed);

/* Something happened in this transaction that cannot be followed (a savepoint command among several statements, COMMIT
 * in a procedure): values set in it become uncertain. */
struct variables *variables_unfollowed(struct variables *state, bool *failed);

/* The server said ReadyForQuery with this status ('I', 'T', 'E'): an implicit transaction ends with 'I'. */
struct variables *variables_settle(struct variables *state, uint8_t status, bool *failed);
/* An implicit transaction failed: back to its start. In a block nothing changes. */
struct variables *variables_fail(struct variables *state, bool *failed);

/* Takes a used or rejected cursor out: at every level when `everywhere` (a rejection), else as a RESET at this one. */
struct variables *variables_spend_cursor(struct variables *state, bool everywhere, bool *failed);

/* Whether any value was ever set: otherwise transactions mean nothing to us. */
bool variables_matter(const struct variables *state);
/* What was set in the transactions of both states is uncertain from now on. */
struct variables *variables_doubt(struct variables *state, const struct variables *other, bool *failed);

bool variables_in_block(const struct variables *state);
/* Whether a value is in force that may not be what the client thinks. */
bool variables_uncertain(const struct variables *state, enum pgseek_option option);
/* The value in force: LOCAL over session over startup; NULL when none. */
const char *variables_get(const struct variables *state, enum pgseek_option option);

#endif
