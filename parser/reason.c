/* reason.c - the names and texts of reasons and SQLSTATEs.
 *
 * It holds tables that documents, metrics and messages are made from; it must not know when a reason applies. */
#include "pgseek.h"

#include <assert.h>

struct reason_text {
    const char *name;
    const char *why;
    const char *hint;
};

static const struct reason_text reasons[PGSEEK_REASON_COUNT] = {
#define PGSEEK_REASON(id, name, why, hint) [PGSEEK_REASON_##id] = {name, why, hint},
#include "reason.def"
#undef PGSEEK_REASON
};

static const struct code_text {
    const char *sqlstate;
    const char *meaning;
} codes[PGSEEK_CODE_COUNT] = {
    [PGSEEK_PS000] = {"PS000", "The tag or variable is bad: an unknown option, a bad value, or two tags."},
    [PGSEEK_PS001] = {"PS001", "The cursor is malformed: its length, alphabet or version is wrong."},
    [PGSEEK_PS002] = {"PS002", "The cursor is not sealed with a known key, or was altered."},
    [PGSEEK_PS003] = {"PS003", "The cursor has expired."},
    [PGSEEK_PS004] = {"PS004", "The cursor belongs to another query, filter, sort, user or scope."},
    [PGSEEK_PS005] = {"PS005", "The statement cannot be paginated (strict is on, or a cursor was given)."},
    [PGSEEK_PS006] = {"PS006", "The OFFSET is refused by policy."},
};

static const struct reason_text *reason_at(enum pgseek_reason reason)
{
    assert((unsigned)reason < PGSEEK_REASON_COUNT);
    return &reasons[reason];
}

const char *pgseek_reason_name(enum pgseek_reason reason)
{
    return reason_at(reason)->name;
}

const char *pgseek_reason_why(enum pgseek_reason reason)
{
    return reason_at(reason)->why;
}

const char *pgseek_reason_hint(enum pgseek_reason reason)
{
    return reason_at(reason)->hint;
}

const char *pgseek_code_sqlstate(enum pgseek_code code)
{
    assert((unsigned)code < PGSEEK_CODE_COUNT);
    return codes[code].sqlstate;
}

const char *pgseek_code_meaning(enum pgseek_code code)
{
    assert((unsigned)code < PGSEEK_CODE_COUNT);
    return codes[code].meaning;
}
