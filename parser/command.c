/* command.c - what a statement of the short list does to the session: transactions, savepoints and names.
 *
 * It reads words and names, by the grammar of those few statements, and must not know what the session keeps. */
#include "pgseek.h"
#include "skim.h"

#include <string.h>

/* The statement under the eye: one item of it at a time. */
struct reading {
    struct skim skim;
    struct skim_item item;
};

static void step(struct reading *in)
{
    skim_token(&in->skim, &in->item);
}

static bool accept(struct reading *in, const char *word)
{
    if (!skim_is_word(&in->item, word))
        return false;
    step(in);
    return true;
}

static bool is_over(const struct reading *in)
{
    return in->item.kind <= SKIM_BROKEN || skim_is_mark(&in->item, ';');
}

/* A word that the grammar lets stand in front of a name, unless it is the name itself (RELEASE savepoint). */
static void accept_noise(struct reading *in, const char *word)
{
    struct reading ahead = *in;
    if (accept(&ahead, word) && !is_over(&ahead))
        *in = ahead;
}

static void read_name(const struct reading *in, struct pgseek_command *command)
{
    (void)skim_name(&in->item, command->name);
}

/* ---- one function per first word; each starts behind it ---- */

static void read_end(struct reading *in, struct pgseek_command *command, enum pgseek_command_kind kind)
{
    command->kind = kind;
    if (accept(in, "prepared")) {
        command->kind = PGSEEK_CMD_COMMIT_PREPARED;
        return;
    }
    if (!accept(in, "work"))
        accept(in, "transaction");
    command->and_chain = accept(in, "and") && accept(in, "chain");
}

static void read_begin(struct reading *in, struct pgseek_command *command)
{
    (void)in;
    command->kind = PGSEEK_CMD_BEGIN;
}

static void read_commit(struct reading *in, struct pgseek_command *command)
{
    read_end(in, command, PGSEEK_CMD_COMMIT);
}

static void read_rollback(struct reading *in, struct pgseek_command *command)
{
    struct reading ahead = *in;
    read_end(in, command, PGSEEK_CMD_ROLLBACK);
    if (!accept(&ahead, "work"))
        accept(&ahead, "transaction");
    if (!accept(&ahead, "to"))
        return;
    accept_noise(&ahead, "savepoint");
    command->kind = PGSEEK_CMD_ROLLBACK_TO;
    read_name(&ahead, command);
}

static void read_savepoint(struct reading *in, struct pgseek_command *command)
{
    command->kind = PGSEEK_CMD_SAVEPOINT;
    read_name(in, command);
}

static void read_release(struct reading *in, struct pgseek_command *command)
{
    accept_noise(in, "savepoint");
    command->kind = PGSEEK_CMD_RELEASE;
    read_name(in, command);
}

static void read_prepare(struct reading *in, struct pgseek_command *command)
{
    struct reading ahead = *in;
    if (accept(&ahead, "transaction") && ahead.item.kind == SKIM_STRING) {
        command->kind = PGSEEK_CMD_PREPARE_TRANSACTION;
        return;
    }
    command->kind = PGSEEK_CMD_PREPARE;
    read_name(in, command);
}

static void read_execute(struct reading *in, struct pgseek_command *command)
{
    command->kind = PGSEEK_CMD_EXECUTE;
    read_name(in, command);
}

/* CREATE [kind of] TABLE name ... AS EXECUTE name; any other CREATE is none of our list. */
static void read_create(struct reading *in, struct pgseek_command *command)
{
    for (; !is_over(in); step(in)) {
        struct reading ahead = *in;
        if (!accept(&ahead, "as") || !accept(&ahead, "execute"))
            continue;
        command->into = true;
        read_execute(&ahead, command);
        return;
    }
}

/* EXPLAIN [(options)] [ANALYZE] [VERBOSE] EXECUTE name, or CREATE TABLE AS; any other is none of our list. */
static void read_explain(struct reading *in, struct pgseek_command *command)
{
    size_t depth = 0;
    do {
        depth += skim_is_mark(&in->item, '(');
        depth -= depth && skim_is_mark(&in->item, ')');
        if (!depth && accept(in, "execute")) {
            read_execute(in, command);
            return;
        }
        if (!depth && accept(in, "create")) {
            read_create(in, command);
            return;
        }
        if (!depth && !skim_is_mark(&in->item, ')') && !skim_is_word(&in->item, "verbose") &&
            !skim_is_word(&in->item, "analyze") && !skim_is_word(&in->item, "analyse"))
            return;
        step(in);
    } while (!is_over(in));
}

static void read_deallocate(struct reading *in, struct pgseek_command *command)
{
    accept_noise(in, "prepare");
    command->kind = skim_is_word(&in->item, "all") ? PGSEEK_CMD_DEALLOCATE_ALL : PGSEEK_CMD_DEALLOCATE;
    if (command->kind == PGSEEK_CMD_DEALLOCATE)
        read_name(in, command);
}

static void read_discard(struct reading *in, struct pgseek_command *command)
{
    command->kind = skim_is_word(&in->item, "all") ? PGSEEK_CMD_DISCARD_ALL : PGSEEK_CMD_OTHER;
}

static void read_set(struct reading *in, struct pgseek_command *command)
{
    (void)in;
    command->kind = PGSEEK_CMD_SET;
}

static void read_reset(struct reading *in, struct pgseek_command *command)
{
    command->kind = skim_is_word(&in->item, "all") ? PGSEEK_CMD_RESET_ALL : PGSEEK_CMD_RESET;
}

/* The cursor's name is the last word, whatever directions and counts stand before it. */
static void read_fetch(struct reading *in, struct pgseek_command *command)
{
    command->kind = PGSEEK_CMD_FETCH;
    for (; !is_over(in); step(in))
        read_name(in, command);
}

static void read_close(struct reading *in, struct pgseek_command *command)
{
    command->kind = skim_is_word(&in->item, "all") ? PGSEEK_CMD_CLOSE_ALL : PGSEEK_CMD_CLOSE;
    if (command->kind == PGSEEK_CMD_CLOSE)
        read_name(in, command);
}

typedef void (*read_fn)(struct reading *in, struct pgseek_command *command);

static const read_fn readers[PGSEEK_WORD_COUNT] = {
    [PGSEEK_WORD_BEGIN] = read_begin,         [PGSEEK_WORD_START] = read_begin,
    [PGSEEK_WORD_COMMIT] = read_commit,       [PGSEEK_WORD_END] = read_commit,
    [PGSEEK_WORD_ROLLBACK] = read_rollback,   [PGSEEK_WORD_ABORT] = read_rollback,
    [PGSEEK_WORD_SAVEPOINT] = read_savepoint, [PGSEEK_WORD_RELEASE] = read_release,
    [PGSEEK_WORD_PREPARE] = read_prepare,     [PGSEEK_WORD_EXECUTE] = read_execute,
    [PGSEEK_WORD_EXPLAIN] = read_explain,     [PGSEEK_WORD_DEALLOCATE] = read_deallocate,
    [PGSEEK_WORD_DISCARD] = read_discard,     [PGSEEK_WORD_SET] = read_set,
    [PGSEEK_WORD_RESET] = read_reset,         [PGSEEK_WORD_FETCH] = read_fetch,
    [PGSEEK_WORD_MOVE] = read_fetch,          [PGSEEK_WORD_CLOSE] = read_close,
    [PGSEEK_WORD_CREATE] = read_create,
};

/* Whether anything but semicolons and comments follows the first statement. False in *is_closed when the text ends
 * inside a literal or comment: the server will refuse it whole. */
static bool has_more(struct reading *in, bool *is_closed)
{
    bool is_behind = false;
    bool has_second = false;
    for (; in->item.kind > SKIM_BROKEN; step(in)) {
        bool is_semicolon = skim_is_mark(&in->item, ';');
        is_behind |= is_semicolon;
        has_second |= is_behind && !is_semicolon;
    }
    *is_closed = in->item.kind == SKIM_END;
    return has_second;
}

/* At the first word of the first statement. */
static struct reading open_reading(const char *sql, size_t len, bool standard_strings)
{
    const char *start = skim_lead(sql, len);
    struct reading in = {.skim = skim_init(start, len - (size_t)(start - sql))};
    in.skim.has_backslashes = !standard_strings;
    step(&in);
    return in;
}

/* The statement that begins at the item in hand. */
static void read_statement(struct reading in, struct pgseek_command *command)
{
    *command = (struct pgseek_command){.kind = PGSEEK_CMD_OTHER};
    read_fn reader = readers[pgseek_first_word(in.item.start, (size_t)(in.skim.end - in.item.start))];
    if (!reader)
        return;
    step(&in);
    reader(&in, command);
}

bool pgseek_command_next_execute(const char *sql, size_t len, bool standard_strings, size_t *at,
                                 struct pgseek_command *command)
{
    struct reading in = open_reading(sql + *at, len - *at, standard_strings);
    while (in.item.kind > SKIM_BROKEN) {
        read_statement(in, command);
        while (!is_over(&in))
            step(&in);
        *at = (size_t)(in.item.start - sql);
        if (command->kind == PGSEEK_CMD_EXECUTE)
            return true;
        while (skim_is_mark(&in.item, ';'))
            step(&in);
    }
    return false;
}

void pgseek_command_read(const char *sql, size_t len, bool standard_strings, struct pgseek_command *command)
{
    struct reading rest = open_reading(sql, len, standard_strings);
    read_statement(rest, command);
    bool is_closed = true;
    bool is_several = has_more(&rest, &is_closed);
    if (!is_closed)
        *command = (struct pgseek_command){.kind = PGSEEK_CMD_OTHER};
    command->several = is_several && is_closed;
}
