/* decision.h - what the steps that decide about one tagged message hand on to each other.
 *
 * It lives for one run of the handler and must not outlive it: a message that waits is decided about anew. */
#ifndef DECISION_H
#define DECISION_H

#include "internal.h"

struct decision {
    struct session *session;
    const struct request *request;
    struct pgseek_settings settings;
    bool cursor_from_variable;
    struct span token; /* len 0: no cursor */
    struct planned *planned;
    bool is_fresh;                  /* it was made from facts that have just come */
    struct pgseek_execute *execute; /* the arguments of an EXECUTE */
    struct wire_param *params;
    struct pgseek_value *values;
    size_t nparams;
    int64_t limit, offset;
    struct boundary boundary;
    struct pgseek_error error; /* STEP_REFUSE */
    enum pgseek_reason reason; /* STEP_PASS */
};

/* What a step says: go on, or the verdict. */
enum step { STEP_ON, STEP_PASS, STEP_ORIGINAL, STEP_REFUSE, STEP_HOLD, STEP_DONE, STEP_NOMEM };

/* ---- paginate.c ---- */
enum step decision_pass(struct decision *decision, enum pgseek_reason reason);
enum step decision_reject(struct decision *decision, enum pgseek_code code, const char *message, const char *detail,
                          const char *hint);
/* Whether a page that cannot be rewritten is refused: a cursor would be ignored by passing it. */
bool decision_refuses(const struct decision *decision);

/* ---- arguments.c: the values of the page's parameters ---- */
/* Takes what a Bind carries, or reads the arguments of an EXECUTE. */
enum step arguments_read(struct decision *decision);
/* The token that a parameter carries. */
enum step arguments_token(struct decision *decision);
/* Gives the parameters the types that the server has said. */
enum step arguments_bind(struct decision *decision);

/* ---- total.c ---- */
/* The total is at hand, or cannot be had, or is asked for. */
enum step total_step(struct decision *decision);

/* ---- planning.c ---- */
/* How a text of the session is to be read. */
struct pgseek_reading planning_reading(const struct session *session, struct span sql);
/* Finds the plan, or says why there is none, or asks and holds. */
enum step planning_step(struct decision *decision);
/* The plan may be another session's, or older than a change of the catalog, and no guard has looked at it yet: a cursor
 * is refused only for what the server says now. Asks once per message. */
enum step planning_ask_again(struct decision *decision);

#endif
