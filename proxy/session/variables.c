/* variables.c - immutable states of the session variables, and the transaction rules that lead from one to the next.
 *
 * A state has three layers of values (startup, session, local) and the states to go back to: the one at the start of
 * the transaction, and one per savepoint. */
#include "variables.h"

#include <string.h>

struct text { /* a counted string */
    int refs;
    char chars[];
};

struct savepoint {
    char name[64];
    struct variables *at;    /* the state when it was set */
    struct variables *outer; /* a state whose `savepoint` is the enclosing one; NULL at the outermost */
};

struct variables {
    int refs;
    bool in_block;
    uint32_t touched;   /* options set in this transaction */
    uint32_t uncertain; /* options whose value may not hold */
    bool unfollowed;    /* this transaction did something we could not see whole */
    struct text *start[PGSEEK_OPT_COUNT];
    struct text *session[PGSEEK_OPT_COUNT];
    struct text *local[PGSEEK_OPT_COUNT];
    struct variables *rollback; /* the state that ROLLBACK leads to; NULL outside a transaction that touched anything */
    struct savepoint *savepoint; /* innermost; owned by this state alone */
};

/* ---- counted parts ---- */

static struct text *text_new(const char *chars)
{
    size_t len = strlen(chars) + 1;
    struct text *text = mem_alloc(sizeof *text + len);
    if (!text)
        return NULL;
    text->refs = 1;
    memcpy(text->chars, chars, len);
    return text;
}

static struct text *text_ref(struct text *text)
{
    if (text)
        text->refs++;
    return text;
}

static void text_unref(struct text *text)
{
    if (text && --text->refs == 0)
        mem_free(text);
}

static void layer_copy(struct text **to, struct text *const *from)
{
    for (size_t i = 0; i < PGSEEK_OPT_COUNT; i++)
        to[i] = text_ref(from[i]);
}

static void layer_clear(struct text **layer)
{
    for (size_t i = 0; i < PGSEEK_OPT_COUNT; i++) {
        text_unref(layer[i]);
        layer[i] = NULL;
    }
}

static void savepoint_free(struct savepoint *savepoint)
{
    if (!savepoint)
        return;
    variables_unref(savepoint->at);
    variables_unref(savepoint->outer);
    mem_free(savepoint);
}

struct variables *variables_ref(struct variables *state)
{
    if (state)
        state->refs++;
    return state;
}

/* States hang on each other in a chain as long as the transaction's savepoints are deep: freed by a loop, not by
 * recursion. */
void variables_unref(struct variables *state)
{
    struct variables *todo[3] = {state, NULL, NULL};
    while (todo[0]) {
        struct variables *dead = todo[0];
        todo[0] = todo[1];
        todo[1] = todo[2];
        todo[2] = NULL;
        if (--dead->refs > 0)
            continue;
        layer_clear(dead->start);
        layer_clear(dead->session);
        layer_clear(dead->local);
        struct variables *next[3] = {dead->savepoint ? dead->savepoint->outer : NULL,
                                     dead->savepoint ? dead->savepoint->at : NULL, dead->rollback};
        mem_free(dead->savepoint);
        mem_free(dead);
        for (size_t i = 0; i < 3; i++) {
            if (!next[i])
                continue;
            if (next[i]->refs > 1) {
                next[i]->refs--;
                continue;
            }
            for (size_t slot = 0; slot < 3; slot++) {
                if (todo[slot])
                    continue;
                todo[slot] = next[i];
                next[i] = NULL;
                break;
            }
            variables_unref(next[i]); /* NULL unless three are waiting already */
        }
    }
}

/* ---- making states ---- */

static struct savepoint *savepoint_copy(const struct savepoint *from)
{
    struct savepoint *copy = mem_alloc(sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *from;
    variables_ref(copy->at);
    variables_ref(copy->outer);
    return copy;
}

/* A state of its own, equal to `from` (NULL: nothing ever set). NULL when out of memory. */
static struct variables *state_copy(const struct variables *from)
{
    struct variables *copy = mem_zalloc(sizeof *copy);
    if (!copy)
        return NULL;
    copy->refs = 1;
    if (!from)
        return copy;
    if (from->savepoint) {
        copy->savepoint = savepoint_copy(from->savepoint);
        if (!copy->savepoint) {
            mem_free(copy);
            return NULL;
        }
    }
    copy->in_block = from->in_block;
    copy->touched = from->touched;
    copy->uncertain = from->uncertain;
    copy->unfollowed = from->unfollowed;
    copy->rollback = variables_ref(from->rollback);
    layer_copy(copy->start, from->start);
    layer_copy(copy->session, from->session);
    layer_copy(copy->local, from->local);
    return copy;
}

/* The frame of every change: a copy to work on, or the old state and *failed. */
static struct variables *state_next(struct variables *state, bool *failed)
{
    struct variables *next = state_copy(state);
    if (!next)
        *failed = true;
    return next;
}

static struct variables *state_replace(struct variables *state, struct variables *next)
{
    variables_unref(state);
    return next;
}

/* ---- values ---- */

static void put(struct text **layer, enum pgseek_option option, struct text *text)
{
    text_unref(layer[option]);
    layer[option] = text;
}

/* Outside a block the first change opens an implicit transaction. */
static void open_implicit(struct variables *next, struct variables *before)
{
    if (next->rollback)
        return;
    next->rollback = before ? variables_ref(before) : state_copy(NULL);
}

struct variables *variables_start(struct variables *state, enum pgseek_option option, const char *value, bool *failed)
{
    struct text *text = text_new(value);
    struct variables *next = text ? state_next(state, failed) : NULL;
    if (!next) {
        text_unref(text);
        *failed = true;
        return state;
    }
    put(next->start, option, text);
    return state_replace(state, next);
}

struct variables *variables_set(struct variables *state, enum pgseek_option option, const char *value, bool local,
                                bool *failed)
{
    struct text *text = value ? text_new(value) : NULL;
    struct variables *next = value && !text ? NULL : state_next(state, failed);
    if (!next) {
        text_unref(text);
        *failed = true;
        return state;
    }
    open_implicit(next, state);
    uint32_t bit = 1u << option;
    next->touched |= bit;
    next->uncertain &= ~bit;
    if (!value)
        text = text_ref(next->start[option]);
    if (local) {
        put(next->local, option, text);
        return state_replace(state, next);
    }
    put(next->session, option, text);
    put(next->local, option, NULL);
    return state_replace(state, next);
}

struct variables *variables_reset_all(struct variables *state, bool *failed)
{
    if (!state)
        return NULL;
    struct variables *next = state_next(state, failed);
    if (!next)
        return state;
    open_implicit(next, state);
    for (size_t i = 0; i < PGSEEK_OPT_COUNT; i++) /* what has no value loses none, whatever becomes of this */
        next->touched |= next->local[i] || next->session[i] || (next->uncertain & 1u << i) ? 1u << i : 0;
    layer_clear(next->local);
    layer_clear(next->session);
    next->uncertain = 0;
    return state_replace(state, next);
}

/* ---- transactions ---- */

static void leave_transaction(struct variables *next)
{
    next->in_block = false;
    next->touched = 0;
    next->unfollowed = false;
    variables_unref(next->rollback);
    next->rollback = NULL;
    savepoint_free(next->savepoint);
    next->savepoint = NULL;
    layer_clear(next->local);
}

static void enter_block(struct variables *next, struct variables *back)
{
    next->in_block = true;
    if (!next->rollback)
        next->rollback = variables_ref(back);
}

struct variables *variables_begin(struct variables *state, bool *failed)
{
    if (variables_in_block(state))
        return state;
    /* what an implicit transaction has set so far belongs to the block that takes it over */
    struct variables *back = state ? state_next(state, failed) : state_copy(NULL);
    struct variables *next = back ? state_next(state, failed) : NULL;
    if (!next) {
        variables_unref(back);
        *failed = true;
        return state;
    }
    leave_transaction(back);
    enter_block(next, back);
    variables_unref(back);
    return state_replace(state, next);
}

/* AND CHAIN: the next block starts where this one ended. */
static struct variables *chain(struct variables *state, bool and_chain, bool *failed)
{
    return and_chain ? variables_begin(state, failed) : state;
}

struct variables *variables_commit(struct variables *state, bool and_chain, bool *failed)
{
    if (!state)
        return NULL;
    struct variables *next = state_next(state, failed);
    if (!next)
        return state;
    leave_transaction(next);
    return chain(state_replace(state, next), and_chain, failed);
}

struct variables *variables_rollback(struct variables *state, bool and_chain, bool *failed)
{
    if (!state || !state->rollback)
        return variables_commit(state, and_chain, failed);
    struct variables *next = state_next(state->rollback, failed);
    if (!next)
        return state;
    leave_transaction(next);
    return chain(state_replace(state, next), and_chain, failed);
}

struct variables *variables_savepoint(struct variables *state, const char *name, bool *failed)
{
    struct variables *next = state_next(state, failed);
    struct savepoint *savepoint = next ? mem_zalloc(sizeof *savepoint) : NULL;
    if (!savepoint) {
        variables_unref(next);
        *failed = true;
        return state;
    }
    memcpy(savepoint->name, name, strnlen(name, sizeof savepoint->name - 1));
    savepoint->at = variables_ref(state);
    savepoint->outer = state && state->savepoint ? variables_ref(state) : NULL;
    savepoint_free(next->savepoint);
    next->savepoint = savepoint;
    return state_replace(state, next);
}

/* The innermost savepoint of that name, or NULL. */
static const struct savepoint *find_savepoint(const struct variables *state, const char *name)
{
    while (state && state->savepoint) {
        if (strcmp(state->savepoint->name, name) == 0)
            return state->savepoint;
        state = state->savepoint->outer;
    }
    return NULL;
}

struct variables *variables_rollback_to(struct variables *state, const char *name, bool *failed)
{
    if (state && state->unfollowed)
        state = variables_unfollowed(state, failed);
    const struct savepoint *savepoint = find_savepoint(state, name);
    if (!state || !savepoint) /* set where we could not see it */
        return state ? variables_unfollowed(state, failed) : NULL;
    struct variables *next = state_next(savepoint->at, failed);
    struct savepoint *kept = next ? savepoint_copy(savepoint) : NULL;
    if (!kept) {
        variables_unref(next);
        *failed = true;
        return state;
    }
    if (state->unfollowed)
        next->uncertain |= state->uncertain;
    next->unfollowed = state->unfollowed;
    savepoint_free(next->savepoint);
    next->savepoint = kept;
    return state_replace(state, next);
}

struct variables *variables_release(struct variables *state, const char *name, bool *failed)
{
    const struct savepoint *savepoint = find_savepoint(state, name);
    if (!savepoint)
        return state;
    struct variables *next = state_next(state, failed);
    if (!next)
        return state;
    const struct variables *outer = savepoint->outer;
    struct savepoint *kept = outer ? savepoint_copy(outer->savepoint) : NULL;
    if (outer && !kept) {
        variables_unref(next);
        *failed = true;
        return state;
    }
    savepoint_free(next->savepoint);
    next->savepoint = kept;
    return state_replace(state, next);
}

struct variables *variables_unfollowed(struct variables *state, bool *failed)
{
    struct variables *next = state_next(state, failed);
    if (!next)
        return state;
    next->unfollowed = true;
    next->uncertain |= next->touched;
    return state_replace(state, next);
}

struct variables *variables_doubt(struct variables *state, const struct variables *other, bool *failed)
{
    struct variables *next = state_next(state, failed);
    if (!next)
        return state;
    next->uncertain |= next->touched | (other ? other->touched : 0);
    return state_replace(state, next);
}

struct variables *variables_settle(struct variables *state, uint8_t status, bool *failed)
{
    if (!state || status != 'I' || !(state->rollback || state->in_block))
        return state;
    return variables_commit(state, false, failed);
}

struct variables *variables_fail(struct variables *state, bool *failed)
{
    if (!state || state->in_block || !state->rollback)
        return state;
    return variables_rollback(state, false, failed);
}

/* ---- the cursor ---- */

static void spend_at_every_level(struct variables *state)
{
    for (; state; state = state->rollback) {
        put(state->session, PGSEEK_OPT_CURSOR, NULL);
        put(state->local, PGSEEK_OPT_CURSOR, NULL);
        for (const struct variables *at = state; at && at->savepoint; at = at->savepoint->outer) {
            put(at->savepoint->at->session, PGSEEK_OPT_CURSOR, NULL);
            put(at->savepoint->at->local, PGSEEK_OPT_CURSOR, NULL);
        }
    }
}

struct variables *variables_spend_cursor(struct variables *state, bool everywhere, bool *failed)
{
    if (!state)
        return NULL;
    if (everywhere) {
        spend_at_every_level(state);
        return state;
    }
    return variables_set(state, PGSEEK_OPT_CURSOR, "", false, failed); /* not RESET: a start value is used once, too */
}

/* ---- questions ---- */

bool variables_matter(const struct variables *state)
{
    if (!state)
        return false;
    for (size_t i = 0; i < PGSEEK_OPT_COUNT; i++)
        if (state->start[i] || state->session[i] || state->local[i])
            return true;
    return state->touched != 0;
}

bool variables_in_block(const struct variables *state)
{
    return state && state->in_block;
}

bool variables_uncertain(const struct variables *state, enum pgseek_option option)
{
    return state && (state->uncertain & 1u << option);
}

const char *variables_get(const struct variables *state, enum pgseek_option option)
{
    if (!state)
        return NULL;
    const struct text *text = state->local[option]     ? state->local[option]
                              : state->session[option] ? state->session[option]
                                                       : state->start[option];
    return text ? text->chars : NULL;
}
