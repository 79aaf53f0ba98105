/* frame.c - statements around a statement: EXPLAIN, DECLARE and PREPARE, and where the one inside begins.
 *
 * It reads words, by the grammar of those few statements, and must not know what the statement inside is. */
#include "pgseek.h"
#include "skim.h"

/* The text under the eye: one item of it at a time. */
struct reading {
    struct skim skim;
    struct skim_item item;
};

static void step(struct reading *in)
{
    skim_token(&in->skim, &in->item);
}

static bool is_over(const struct reading *in)
{
    return in->item.kind <= SKIM_BROKEN || skim_is_mark(&in->item, ';');
}

static bool accept(struct reading *in, const char *word)
{
    if (!skim_is_word(&in->item, word))
        return false;
    step(in);
    return true;
}

/* Skips what stands in brackets, them included; returns how many items separated by commas there were. */
static int skip_brackets(struct reading *in)
{
    int depth = 0;
    int items = 1;
    do {
        depth += skim_is_mark(&in->item, '(');
        depth -= skim_is_mark(&in->item, ')');
        items += depth == 1 && skim_is_mark(&in->item, ',');
        step(in);
    } while (depth > 0 && !is_over(in));
    return items;
}

/* Whether a bracket behind EXPLAIN holds options and not a statement. */
static bool opens_options(struct reading in)
{
    static const char *const openers[] = {"select", "with", "values", "table"};
    if (!skim_is_mark(&in.item, '('))
        return false;
    step(&in);
    for (size_t i = 0; i < sizeof openers / sizeof *openers; i++)
        if (skim_is_word(&in.item, openers[i]))
            return false;
    return !skim_is_mark(&in.item, '(');
}

/* ---- one function per first word; each starts behind it and ends before the statement inside ---- */

static enum pgseek_frame_kind read_explain(struct reading *in, struct pgseek_frame *frame)
{
    if (opens_options(*in)) {
        (void)skip_brackets(in);
    } else {
        if (!accept(in, "analyze"))
            accept(in, "analyse");
        accept(in, "verbose");
    }
    frame->executes = skim_is_word(&in->item, "execute");
    return PGSEEK_FRAME_EXPLAIN;
}

/* DECLARE name ... CURSOR ... FOR: no name before it can be the unquoted word FOR. */
static enum pgseek_frame_kind read_declare(struct reading *in, struct pgseek_frame *frame)
{
    (void)skim_name(&in->item, frame->name);
    while (!is_over(in) && !accept(in, "for"))
        step(in);
    return PGSEEK_FRAME_DECLARE;
}

/* PREPARE name [(types)] AS; PREPARE TRANSACTION 'gid' has no AS. */
static enum pgseek_frame_kind read_prepare(struct reading *in, struct pgseek_frame *frame)
{
    (void)skim_name(&in->item, frame->name);
    step(in);
    if (skim_is_mark(&in->item, '('))
        frame->types = skip_brackets(in);
    return accept(in, "as") ? PGSEEK_FRAME_PREPARE : PGSEEK_FRAME_NONE;
}

void pgseek_frame_read(const char *sql, size_t len, struct pgseek_frame *frame)
{
    static const struct {
        enum pgseek_word word;
        enum pgseek_frame_kind (*read)(struct reading *in, struct pgseek_frame *frame);
    } readers[] = {
        {PGSEEK_WORD_EXPLAIN, read_explain}, {PGSEEK_WORD_DECLARE, read_declare}, {PGSEEK_WORD_PREPARE, read_prepare}};
    *frame = (struct pgseek_frame){.kind = PGSEEK_FRAME_NONE};
    enum pgseek_word word = pgseek_first_word(sql, len);
    const char *start = skim_lead(sql, len);
    struct reading in = {.skim = skim_init(start, len - (size_t)(start - sql))};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        if (readers[i].word != word)
            continue;
        step(&in);
        step(&in);
        enum pgseek_frame_kind kind = readers[i].read(&in, frame);
        if (!is_over(&in))
            frame->kind = kind;
        frame->inner = (size_t)(in.item.start - sql);
    }
}

int pgseek_highest_param(const char *sql, size_t len)
{
    struct skim skim = skim_init(sql, len);
    struct skim_item item;
    int highest = 0;
    while (skim_token(&skim, &item) > SKIM_BROKEN)
        if (skim_param(&item) > highest)
            highest = skim_param(&item);
    return highest;
}
