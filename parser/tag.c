/* tag.c - the tag of a statement: a comment that speaks to pgseek.
 *
 * It reads the two spellings, `pgseek key=value ...` and sqlcommenter's `pgseek_key='value'`, and must not know what an
 * option does. Comments are found by skim.h, so a tag counts in texts of any size, and never inside a literal. */
#include "fault.h"
#include "option.h"
#include "skim.h"
#include "tag.h"

#include <stdlib.h>
#include <string.h>

#define WORD "pgseek"
#define WORD_BYTES (sizeof WORD - 1)

/* A comment without its introducer, and where reading it has come to. */
struct comment {
    const char *at;
    const char *end;
};

/* A tag in the making. */
struct builder {
    struct pgseek_tag *tag;
    struct pgseek_error *error;
    char *room; /* where the next value goes: behind the values so far, in the tag's own storage */
};

/* ---- pieces of a comment ---- */

static bool is_over(const struct comment *comment)
{
    return comment->at >= comment->end;
}

static void skip_blanks(struct comment *comment)
{
    while (!is_over(comment) && skim_is_blank(*comment->at))
        comment->at++;
}

static void skip_separators(struct comment *comment)
{
    while (!is_over(comment) && (skim_is_blank(*comment->at) || *comment->at == ','))
        comment->at++;
}

static bool accept(struct comment *comment, char c)
{
    if (is_over(comment) || *comment->at != c)
        return false;
    comment->at++;
    return true;
}

/* Takes the letters, digits and underscores from here. */
static size_t take_word(struct comment *comment, const char **word)
{
    *word = comment->at;
    while (!is_over(comment) && skim_goes_on_name(*comment->at))
        comment->at++;
    return (size_t)(comment->at - *word);
}

static struct comment comment_of(const struct skim_item *item)
{
    bool is_block = item->kind == SKIM_BLOCK_COMMENT;
    return (struct comment){.at = item->start + 2, .end = item->end - (is_block ? 2 : 0)};
}

/* ---- options into the tag ---- */

/* Ends the value that was written at builder->room and puts it into the settings. */
static bool put_value(struct builder *to, const char *name, size_t name_len, char *value_end, bool may_param)
{
    const char *value = to->room;
    *value_end = '\0';
    to->room = value_end + 1;

    enum pgseek_option option = PGSEEK_OPT_COUNT;
    if (!pgseek_option_find(name, name_len, &option))
        return option_unknown(to->error, name, name_len);
    if (option == PGSEEK_OPT_PAGINATE) {
        fault(to->error, "bad pgseek tag");
        fault_detail(to->error, "paginate is a session variable.");
        return fault_hint(to->error, "Use SET pgseek.paginate, or leave the option out: the tag says it already.");
    }
    if (to->tag->settings.given & 1u << option) {
        fault(to->error, "bad pgseek tag");
        fault_detail(to->error, "The option %s is given twice.", pgseek_option_name(option));
        return fault_hint(to->error, "Give each option once.");
    }
    return pgseek_settings_put(&to->tag->settings, option, value, may_param, to->error);
}

/* The values of a comment, each with its NUL, are never longer than the comment and one NUL: every value follows a
 * '=' that is not copied. */
static bool make_room(struct builder *to, const struct comment *comment)
{
    free(to->tag->texts);
    pgseek_settings_init(&to->tag->settings);
    to->tag->texts = to->room = malloc((size_t)(comment->end - comment->at) + 2);
    if (!to->room)
        fault(to->error, "out of memory");
    return to->room != NULL;
}

/* ---- pgseek key=value key='value' ---- */

/* A quoted value, behind its opening quote; '' is a quote. Returns its end in the room, or NULL when it is not closed.
 */
static char *copy_quoted(struct comment *comment, char *to)
{
    while (!is_over(comment)) {
        char c = *comment->at++;
        if (c == '\'' && !accept(comment, '\''))
            return to;
        *to++ = c;
    }
    return NULL;
}

static char *copy_bare(struct comment *comment, char *to)
{
    while (!is_over(comment) && !skim_is_blank(*comment->at) && *comment->at != ',' && *comment->at != '\'')
        *to++ = *comment->at++;
    return to;
}

static bool read_plain_option(struct builder *to, struct comment *comment)
{
    const char *name = NULL;
    const char *start = comment->at;
    size_t name_len = take_word(comment, &name);
    if (name_len == 0 || !accept(comment, '=')) {
        fault(to->error, "bad pgseek tag");
        fault_detail(to->error, "key=value is expected at \"%s\".",
                     fault_excerpt(start, (size_t)(comment->end - start)).text);
        return fault_hint(to->error,
                          "Write options as key=value without spaces around \"=\"; put a value that has spaces or "
                          "commas into single quotes.");
    }
    bool is_quoted = accept(comment, '\'');
    char *value_end = is_quoted ? copy_quoted(comment, to->room) : copy_bare(comment, to->room);
    bool is_ended = is_over(comment) || skim_is_blank(*comment->at) || *comment->at == ',';
    if (!value_end || !is_ended) {
        fault(to->error, "bad pgseek tag");
        fault_detail(to->error, "The quotes of the value of \"%s\" do not match.", fault_excerpt(name, name_len).text);
        return fault_hint(to->error, "Put the whole value into single quotes, and double a quote inside it.");
    }
    return put_value(to, name, name_len, value_end, !is_quoted);
}

/* Whether the first word is ours: followed by a blank, a comma or the end. "pgseek:" and "pgseek.x" are meant for us as
 * well, and refused, since to overlook them would return page 1. `pgseek=` and `pgseek_` belong to sqlcommenter. */
static bool is_plain_tag(struct comment *comment)
{
    skip_blanks(comment);
    if ((size_t)(comment->end - comment->at) < WORD_BYTES || !skim_same(comment->at, WORD_BYTES, WORD))
        return false;
    comment->at += WORD_BYTES;
    return is_over(comment) || skim_is_blank(*comment->at) || strchr(",:.", *comment->at);
}

static enum pgseek_found read_plain(struct builder *to, struct comment comment)
{
    if (!is_plain_tag(&comment))
        return PGSEEK_FOUND_NONE;
    if (!make_room(to, &comment))
        return PGSEEK_FOUND_BAD;
    for (skip_separators(&comment); !is_over(&comment); skip_separators(&comment))
        if (!read_plain_option(to, &comment))
            return PGSEEK_FOUND_BAD;
    return PGSEEK_FOUND_SOME;
}

/* ---- sqlcommenter: key='value',key='value', percent-encoded ---- */

struct pair {
    const char *key;
    size_t key_len;
    const char *value; /* between the quotes */
    const char *value_end;
};

/* The next pair; false when the comment is not well-formed here. */
static bool take_pair(struct comment *comment, struct pair *pair)
{
    skip_blanks(comment);
    pair->key = comment->at;
    while (!is_over(comment) && !strchr("='\", \t\r\n", *comment->at))
        comment->at++;
    pair->key_len = (size_t)(comment->at - pair->key);
    if (pair->key_len == 0 || !accept(comment, '=') || !accept(comment, '\''))
        return false;
    pair->value = comment->at;
    while (!is_over(comment) && *comment->at != '\'')
        comment->at += *comment->at == '\\' && comment->end - comment->at >= 2 ? 2 : 1;
    pair->value_end = comment->at;
    if (!accept(comment, '\''))
        return false;
    skip_blanks(comment);
    return is_over(comment) || accept(comment, ',');
}

/* Behind our word in a key: "" for pgseek itself, the option for pgseek_<option>, NULL when the key is not ours. */
static const char *our_option(const struct pair *pair)
{
    if (pair->key_len < WORD_BYTES || !skim_same(pair->key, WORD_BYTES, WORD))
        return NULL;
    if (pair->key_len == WORD_BYTES)
        return pair->key + WORD_BYTES;
    return pair->key[WORD_BYTES] == '_' ? pair->key + WORD_BYTES + 1 : NULL;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c ? strchr(digits, skim_fold(c)) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* Decodes a value into the room: \' and %xx. Returns its end, or NULL for what is no encoding, or hides a NUL. */
static char *copy_decoded(const struct pair *pair, char *to)
{
    for (const char *at = pair->value; at < pair->value_end; at++) {
        char c = *at;
        if (c == '\\' && pair->value_end - at >= 2) {
            c = *++at;
        } else if (c == '%') {
            int high = pair->value_end - at >= 3 ? hex_digit(at[1]) : -1;
            int low = high >= 0 ? hex_digit(at[2]) : -1;
            if (low < 0 || high + low == 0)
                return NULL;
            c = (char)(high * 16 + low);
            at += 2;
        }
        *to++ = c;
    }
    return to;
}

static bool bad_pair(struct builder *to, const struct pair *pair, const char *hint)
{
    fault(to->error, "bad pgseek tag");
    fault_detail(to->error, "The value of \"%s\" cannot be read.", fault_excerpt(pair->key, pair->key_len).text);
    return fault_hint(to->error, "%s", hint);
}

/* One pair with a key of ours. *is_off is set by pgseek='off'. */
static bool read_pair(struct builder *to, const struct pair *pair, bool *is_off)
{
    const char *option = our_option(pair);
    char *value_end = copy_decoded(pair, to->room);
    if (!value_end)
        return bad_pair(to, pair, "Percent-encode the value, as sqlcommenter does.");
    if (pair->key_len > WORD_BYTES)
        return put_value(to, option, (size_t)(pair->key + pair->key_len - option), value_end, false);

    bool is_on = false;
    *value_end = '\0';
    if (!option_boolean(to->room, &is_on))
        return bad_pair(to, pair, "Write pgseek='on' or pgseek='off'.");
    *is_off |= !is_on;
    return true;
}

/* Whether a key of ours seems to stand in a comment that is not sqlcommenter's: at its start or behind a comma, with
 * '=' or ':' behind it. Rails' older format writes pgseek_cursor:abc, and to overlook that would return page 1. */
static bool has_misplaced_key(struct comment comment)
{
    while (!is_over(&comment)) {
        skip_separators(&comment);
        struct pair pair = {.key = comment.at};
        const char *word = NULL;
        pair.key_len = take_word(&comment, &word);
        skip_blanks(&comment);
        if (our_option(&pair) && !is_over(&comment) && (*comment.at == '=' || *comment.at == ':'))
            return true;
        while (!is_over(&comment) && *comment.at != ',')
            comment.at++;
    }
    return false;
}

static enum pgseek_found misplaced(struct builder *to)
{
    fault(to->error, "bad pgseek tag");
    fault_detail(to->error, "A comment names pgseek, and is neither a tag of its own nor a sqlcommenter comment.");
    fault_hint(to->error,
               "Write /* pgseek cursor=... */, or /*pgseek='on',pgseek_cursor='...'*/ with percent-encoded values.");
    return PGSEEK_FOUND_BAD;
}

/* Counts the keys of ours in a well-formed comment; false when it is not well-formed. */
static bool count_keys(struct comment comment, size_t *ours)
{
    *ours = 0;
    struct pair pair;
    while (!is_over(&comment)) {
        if (!take_pair(&comment, &pair))
            return false;
        *ours += our_option(&pair) != NULL;
    }
    return true;
}

static enum pgseek_found read_commenter(struct builder *to, struct comment comment)
{
    size_t ours = 0;
    if (!count_keys(comment, &ours))
        return has_misplaced_key(comment) ? misplaced(to) : PGSEEK_FOUND_NONE;
    if (ours == 0)
        return PGSEEK_FOUND_NONE;
    if (!make_room(to, &comment))
        return PGSEEK_FOUND_BAD;

    bool is_off = false;
    bool is_good = true;
    struct pair pair;
    while (!is_over(&comment) && take_pair(&comment, &pair))
        if (our_option(&pair) && is_good)
            is_good = read_pair(to, &pair, &is_off);
    if (!is_good)
        return PGSEEK_FOUND_BAD;
    return is_off ? PGSEEK_FOUND_NONE : PGSEEK_FOUND_SOME;
}

/* ---- the text ---- */

static enum pgseek_found read_comment(const struct skim_item *item, struct pgseek_tag *tag, struct pgseek_error *error)
{
    struct comment comment = comment_of(item);
    if (!pgseek_mentions(comment.at, (size_t)(comment.end - comment.at)))
        return PGSEEK_FOUND_NONE;
    struct builder to = {.tag = tag, .error = error};
    enum pgseek_found found = read_plain(&to, comment);
    return found == PGSEEK_FOUND_NONE ? read_commenter(&to, comment) : found;
}

static enum pgseek_found two_tags(struct pgseek_error *error)
{
    fault(error, "two pgseek tags in one text");
    fault_detail(error, "Each statement takes one tag.");
    fault_hint(error, "Put all options into one comment, and send each page alone.");
    return PGSEEK_FOUND_BAD;
}

/* Whether the statements of a text are more than one, asked item by item. */
struct statement_count {
    size_t ended;
    bool is_begun;
};

static void count_item(struct statement_count *count, const struct skim_item *item)
{
    bool is_end = skim_is_mark(item, ';');
    count->ended += is_end && count->is_begun;
    count->is_begun = !is_end;
}

/* Reads the comments one by one; *tag holds the last tag found. */
static enum pgseek_found read_text(struct skim skim, struct pgseek_tag *tag, struct pgseek_error *error)
{
    const char *sql = skim.at;
    struct skim_item item;
    struct statement_count count = {0};
    enum pgseek_found found = PGSEEK_FOUND_NONE;
    while (skim_next(&skim, &item) > SKIM_BROKEN) {
        if (!skim_is_comment(&item)) {
            count_item(&count, &item);
            continue;
        }
        struct pgseek_tag another = {0};
        enum pgseek_found now = read_comment(&item, &another, error);
        if (now == PGSEEK_FOUND_SOME && found == PGSEEK_FOUND_SOME)
            now = two_tags(error);
        if (now != PGSEEK_FOUND_SOME)
            pgseek_tag_fini(&another);
        else
            *tag = another;
        if (now == PGSEEK_FOUND_BAD)
            return PGSEEK_FOUND_BAD;
        if (now == PGSEEK_FOUND_SOME) {
            tag->start = (size_t)(item.start - sql);
            tag->end = (size_t)(item.end - sql);
            found = now;
        }
    }
    tag->several = count.ended + count.is_begun > 1;
    return item.kind == SKIM_END ? found : PGSEEK_FOUND_NONE;
}

enum pgseek_found pgseek_tag_read(const char *sql, size_t len, bool standard_strings, struct pgseek_tag *tag,
                                  struct pgseek_error *error)
{
    *tag = (struct pgseek_tag){0};
    pgseek_settings_init(&tag->settings);
    if (!pgseek_mentions(sql, len))
        return PGSEEK_FOUND_NONE;
    struct skim skim = skim_init(sql, len);
    skim.has_backslashes = !standard_strings;
    enum pgseek_found found = read_text(skim, tag, error);
    if (found != PGSEEK_FOUND_SOME)
        pgseek_tag_fini(tag);
    return found;
}

bool tag_place(const char *sql, size_t len, size_t *place)
{
    struct pgseek_tag tag = {0};
    struct pgseek_error error = {0};
    bool found = pgseek_tag_read(sql, len, true, &tag, &error) == PGSEEK_FOUND_SOME;
    *place = tag.start;
    pgseek_tag_fini(&tag);
    return found;
}

void pgseek_tag_fini(struct pgseek_tag *tag)
{
    free(tag->texts);
    tag->texts = NULL;
    pgseek_settings_init(&tag->settings);
}
