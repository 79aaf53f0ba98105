/* test_tag.c - tags are found where they are, nowhere else, and no misspelt one is overlooked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../parser/arena.h"
#include "../../parser/pgseek.h"

/* ---- where a tag is ---- */

static const struct {
    const char *sql;
    enum pgseek_found found;
} places[] = {
    {"", PGSEEK_FOUND_NONE},
    {"select 1", PGSEEK_FOUND_NONE},
    {"select 1 /* pgseek */", PGSEEK_FOUND_SOME},
    {"/*pgseek*/ select 1", PGSEEK_FOUND_SOME},
    {"select /* PgSeek */ 1", PGSEEK_FOUND_SOME},
    {"-- pgseek\nselect 1", PGSEEK_FOUND_SOME},
    {"--pgseek\r\nselect 1", PGSEEK_FOUND_SOME},
    {"select 1 -- pgseek", PGSEEK_FOUND_SOME},
    {"select 1 -- pgseek page=last", PGSEEK_FOUND_SOME},
    {"select 1 /*\n\tpgseek,\n\tpage=last,\n*/", PGSEEK_FOUND_SOME},
    {"select 1 /* other */ /* pgseek */", PGSEEK_FOUND_SOME},
    {"-- SQLAlchemy: users\n-- pgseek\nselect 1", PGSEEK_FOUND_SOME},
    /* no comments of ours */
    {"select '/* pgseek */'", PGSEEK_FOUND_NONE},
    {"select 'it''s -- pgseek'", PGSEEK_FOUND_NONE},
    {"select E'\\'/* pgseek */'", PGSEEK_FOUND_NONE},
    {"select $$/* pgseek */$$", PGSEEK_FOUND_NONE},
    {"select $a$/* pgseek */$b$$a$", PGSEEK_FOUND_NONE},
    {"select \"/* pgseek */\"", PGSEEK_FOUND_NONE},
    {"select U&'/* pgseek */'", PGSEEK_FOUND_NONE},
    {"select 'a' -- pgseek\n 'b'", PGSEEK_FOUND_NONE}, /* within a continued literal */
    {"select pgseek from pgseek", PGSEEK_FOUND_NONE},
    {"select 1 /* pgseekfoo */", PGSEEK_FOUND_NONE},
    {"select 1 /* pgseek-proxy */", PGSEEK_FOUND_NONE},
    {"select 1 /* see pgseek docs */", PGSEEK_FOUND_NONE},
    {"select 1 /* see the docs, pgseek knows */", PGSEEK_FOUND_NONE},
    {"select 1 /* /* pgseek */ */", PGSEEK_FOUND_NONE},
    {"select 1 /*+ pgseek */", PGSEEK_FOUND_NONE},
    {"select 1 /* pgseek", PGSEEK_FOUND_NONE}, /* the server refuses these */
    {"select ' /* pgseek */", PGSEEK_FOUND_NONE},
    {"select 1 /* pgseek */ 'open", PGSEEK_FOUND_NONE},
    /* sqlcommenter */
    {"select 1 /*pgseek='on'*/", PGSEEK_FOUND_SOME},
    {"select 1 /*pgseek='off'*/", PGSEEK_FOUND_NONE},
    {"select 1 /*pgseek='off',pgseek_cursor='abc'*/", PGSEEK_FOUND_NONE},
    {"select 1 /*pgseek_page='last'*/", PGSEEK_FOUND_SOME},
    {"select 1 /*action='x',pgseek='1',route='%2Fposts'*/", PGSEEK_FOUND_SOME},
    {"select 1 /* a='b', pgseek='on' */", PGSEEK_FOUND_SOME},
    {"select 1 /*a='it\\'s',pgseek='on'*/", PGSEEK_FOUND_SOME},
    {"select 1 /*a='pgseek_cursor'*/", PGSEEK_FOUND_NONE},
    {"select 1 /*a='x,pgseek=on'*/", PGSEEK_FOUND_NONE},
    {"select 1 /*pgseekfoo='on'*/", PGSEEK_FOUND_NONE},
    {"-- pgseek='on'\nselect 1", PGSEEK_FOUND_SOME},
};

static void tags_are_found_where_they_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct pgseek_tag tag;
        struct pgseek_error error;
        enum pgseek_found found = pgseek_tag_read(places[i].sql, strlen(places[i].sql), true, &tag, &error);
        if (found != places[i].found)
            fail_msg("%s: %d", places[i].sql, (int)found);
        if (found == PGSEEK_FOUND_SOME)
            pgseek_tag_fini(&tag);
    }
}

/* What a backslash means decides where a literal ends, and so where a comment begins. */
static void tags_are_found_as_the_session_reads(void **state)
{
    static const struct {
        const char *sql;
        enum pgseek_found standard, off;
    } cases[] = {
        {"select 'it\\'s' /* pgseek */", PGSEEK_FOUND_NONE, PGSEEK_FOUND_SOME},
        {"select 'a\\' /* pgseek */", PGSEEK_FOUND_SOME, PGSEEK_FOUND_NONE},
        {"select 'a\\' /* pgseek */ -- '", PGSEEK_FOUND_SOME, PGSEEK_FOUND_NONE},
        {"select N'it\\'s' /* pgseek */", PGSEEK_FOUND_NONE, PGSEEK_FOUND_SOME},
        {"select E'it\\'s' /* pgseek */", PGSEEK_FOUND_SOME, PGSEEK_FOUND_SOME},
        {"select B'1\\' /* pgseek */", PGSEEK_FOUND_SOME, PGSEEK_FOUND_SOME},
        {"select \"a\\\" /* pgseek */", PGSEEK_FOUND_SOME, PGSEEK_FOUND_SOME},
        {"select 'it''s' /* pgseek */", PGSEEK_FOUND_SOME, PGSEEK_FOUND_SOME},
    };
    struct pgseek_tag tag;
    struct pgseek_error error;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int standard = 0; standard < 2; standard++) {
            enum pgseek_found wanted = standard ? cases[i].standard : cases[i].off;
            enum pgseek_found found = pgseek_tag_read(cases[i].sql, strlen(cases[i].sql), standard == 1, &tag, &error);
            if (found != wanted)
                fail_msg("%s: %d, standard %d", cases[i].sql, (int)found, standard);
            if (found == PGSEEK_FOUND_SOME)
                pgseek_tag_fini(&tag);
        }
}

/* ---- what a tag says ---- */

static const struct {
    const char *sql;
    struct pgseek_settings settings;
} tags[] = {
#define GIVEN(id) (1u << PGSEEK_OPT_##id)
    {"select 1 /* pgseek */", {0}},
    {"/* pgseek cursor=AbC-_ */", {.given = GIVEN(CURSOR), .cursor_kind = PGSEEK_CURSOR_TEXT, .cursor = "AbC-_"}},
    {"/* pgseek cursor='AbC' */", {.given = GIVEN(CURSOR), .cursor_kind = PGSEEK_CURSOR_TEXT, .cursor = "AbC"}},
    {"/* pgseek CURSOR='a''b c,d' */",
     {.given = GIVEN(CURSOR), .cursor_kind = PGSEEK_CURSOR_TEXT, .cursor = "a'b c,d"}},
    {"/* pgseek cursor= */", {.given = GIVEN(CURSOR)}},
    {"/* pgseek cursor= page=last */", {.given = GIVEN(CURSOR) | GIVEN(PAGE), .page = PGSEEK_PAGE_LAST}},
    {"/* pgseek cursor='' */", {.given = GIVEN(CURSOR)}},
    {"/* pgseek cursor=NULL */", {.given = GIVEN(CURSOR)}},
    {"/* pgseek cursor='NULL' */", {.given = GIVEN(CURSOR), .cursor_kind = PGSEEK_CURSOR_TEXT, .cursor = "NULL"}},
    {"/* pgseek cursor=$3 */", {.given = GIVEN(CURSOR), .cursor_kind = PGSEEK_CURSOR_PARAM, .cursor_param = 3}},
    {"/* pgseek cursor='$3' */", {.given = GIVEN(CURSOR), .cursor_kind = PGSEEK_CURSOR_TEXT, .cursor = "$3"}},
    {"-- pgseek page=last,strict=on tail=yes\nselect 1",
     {.given = GIVEN(PAGE) | GIVEN(STRICT) | GIVEN(TAIL), .page = PGSEEK_PAGE_LAST, .strict = true, .tail = true}},
    {"/* pgseek key='a.id, b.id' walk=w1 */", {.given = GIVEN(KEY) | GIVEN(WALK), .key = "a.id, b.id", .walk = "w1"}},
    {"/* pgseek key=\"Id\" */", {.given = GIVEN(KEY), .key = "\"Id\""}},
    {"/* pgseek total=exact mode=observe */",
     {.given = GIVEN(TOTAL) | GIVEN(MODE), .total = PGSEEK_TOTAL_EXACT, .mode = PGSEEK_MODE_OBSERVE}},
    {"/* pgseek deliver='notice,columns' */",
     {.given = GIVEN(DELIVER), .deliver = PGSEEK_DELIVER_NOTICE | PGSEEK_DELIVER_COLUMNS}},
    {"/* pgseek deliver=status+columns */",
     {.given = GIVEN(DELIVER), .deliver = PGSEEK_DELIVER_STATUS | PGSEEK_DELIVER_COLUMNS}},
    {"/*pgseek='on',pgseek_cursor='AbC%2B%27'*/",
     {.given = GIVEN(CURSOR), .cursor_kind = PGSEEK_CURSOR_TEXT, .cursor = "AbC+'"}},
    {"/*pgseek_key='a%20b',pgseek_walk='it\\'s'*/", {.given = GIVEN(KEY) | GIVEN(WALK), .key = "a b", .walk = "it's"}},
    {"/*pgseek_cursor='$3'*/", {.given = GIVEN(CURSOR), .cursor_kind = PGSEEK_CURSOR_TEXT, .cursor = "$3"}},
    {"/*pgseek_cursor=''*/", {.given = GIVEN(CURSOR)}},
#undef GIVEN
};

static void assert_same_text(const char *sql, const char *got, const char *want)
{
    if (!got != !want || (got && strcmp(got, want) != 0))
        fail_msg("%s: %s, not %s", sql, got ? got : "NULL", want ? want : "NULL");
}

static void tags_say_what_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        struct pgseek_tag tag;
        struct pgseek_error error = {.code = PGSEEK_PS000};
        const struct pgseek_settings *want = &tags[i].settings;
        const struct pgseek_settings *got = &tag.settings;
        if (pgseek_tag_read(tags[i].sql, strlen(tags[i].sql), true, &tag, &error) != PGSEEK_FOUND_SOME)
            fail_msg("%s: %s", tags[i].sql, error.detail);
        unsigned deliver = want->deliver ? want->deliver : PGSEEK_DELIVER_STATUS;
        if (got->given != want->given || got->cursor_kind != want->cursor_kind || got->page != want->page ||
            got->total != want->total || got->mode != want->mode || got->strict != want->strict ||
            got->deliver != deliver || got->tail != want->tail || got->cursor_param != want->cursor_param)
            fail_msg("%s", tags[i].sql);
        assert_same_text(tags[i].sql, got->cursor, want->cursor);
        assert_same_text(tags[i].sql, got->key, want->key);
        assert_same_text(tags[i].sql, got->walk, want->walk);
        pgseek_tag_fini(&tag);
    }
}

/* ---- what is refused ---- */

static const struct {
    const char *sql;
    const char *says; /* in message, detail or hint */
} faults[] = {
    {"/* pgseek curser=abc */", "Did you mean \"cursor\"?"},
    {"/* pgseek frobnicate=1 */", "\"frobnicate\" is no option"},
    {"/* pgseek cursor */", "key=value is expected at \"cursor"},
    {"/* pgseek cursor =abc */", "key=value"},
    {"/* pgseek cursor= abc */", "key=value is expected at \"abc"},
    {"/* pgseek the best */", "key=value"},
    {"/* pgseek: cursor=abc */", "key=value"},
    {"/* pgseek.cursor=abc */", "key=value"},
    {"/* pgseek cursor='abc */", "quotes"},
    {"/* pgseek cursor=a'b */", "quotes"},
    {"/* pgseek cursor='a'b */", "quotes"},
    {"/* pgseek key=a, b */", "key=value is expected at \"b"},
    {"/* pgseek page=2 */", "first, last"},
    {"/* pgseek cursor=$0 */", "\"$0\" is no value of cursor"},
    {"/* pgseek cursor=a cursor=b */", "given twice"},
    {"/* pgseek cursor=a CURSOR= */", "given twice"},
    {"/* pgseek paginate=on */", "session variable"},
    {"/* pgseek */ select 1 /* pgseek */", "two pgseek tags"},
    {"/* pgseek */ select 1 -- pgseek page=last", "two pgseek tags"},
    {"/* pgseek */ select 1 /*pgseek='on'*/", "two pgseek tags"},
    {"/* pgseek */ select 1; select 2 /* pgseek */", "two pgseek tags"},
    {"/*pgseek='perhaps'*/", "pgseek='on'"},
    {"/*pgseek_curser='x'*/", "Did you mean \"cursor\"?"},
    {"/*pgseek_cursor='a',pgseek_cursor='b'*/", "given twice"},
    {"/*pgseek_cursor='%zz'*/", "Percent-encode"},
    {"/*pgseek_cursor='%00'*/", "Percent-encode"},
    {"/*pgseek_cursor='%4'*/", "Percent-encode"},
    {"/*pgseek_='x'*/", "unknown"},
    {"/*pgseek=\"on\"*/", "neither a tag"},
    {"/*application:Shop,pgseek:on,pgseek_cursor:abc*/", "neither a tag"},
    {"/* pgseek_cursor = 'x' */", "neither a tag"},
    {"/*a='b',pgseek_cursor='open*/", "neither a tag"},
};

static void mistakes_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct pgseek_tag tag;
        struct pgseek_error error;
        enum pgseek_found found = pgseek_tag_read(faults[i].sql, strlen(faults[i].sql), true, &tag, &error);
        if (found != PGSEEK_FOUND_BAD)
            fail_msg("%s: %d", faults[i].sql, (int)found);
        assert_int_equal(error.code, PGSEEK_PS000);
        assert_true(error.message[0] && error.detail[0] && error.hint[0]);
        if (!strstr(error.message, faults[i].says) && !strstr(error.detail, faults[i].says) &&
            !strstr(error.hint, faults[i].says))
            fail_msg("%s: %s / %s / %s", faults[i].sql, error.message, error.detail, error.hint);
        assert_null(tag.texts);
    }
}

static void statements_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        bool several;
    } counts[] = {
        {"select 1 /* pgseek */", false},     {"select 1; /* pgseek */", false},
        {";select 1;; /* pgseek */;", false}, {"/* pgseek */ select 1; select 2", true},
        {"select ';' /* pgseek */", false},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct pgseek_tag tag;
        struct pgseek_error error;
        assert_int_equal(pgseek_tag_read(counts[i].sql, strlen(counts[i].sql), true, &tag, &error), PGSEEK_FOUND_SOME);
        assert_int_equal(tag.several, counts[i].several);
        pgseek_tag_fini(&tag);
    }
}

/* A cursor in a text beyond every limit of the lexer still counts: to overlook it would return page 1. */
static void long_texts_keep_their_tag(void **state)
{
    (void)state;
    struct text sql = {0};
    struct pgseek_tag tag;
    struct pgseek_error error;
    text_puts(&sql, "select ");
    for (size_t i = 0; i < 700000; i++)
        text_puts(&sql, "(+");
    text_puts(&sql, "/* pgseek cursor=abc */");
    assert_int_equal(pgseek_tag_read(sql.ptr, sql.len, true, &tag, &error), PGSEEK_FOUND_SOME);
    assert_string_equal(tag.settings.cursor, "abc");
    pgseek_tag_fini(&tag);
    text_fini(&sql);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_are_found_where_they_are), cmocka_unit_test(tags_are_found_as_the_session_reads),
        cmocka_unit_test(tags_say_what_they_say),        cmocka_unit_test(mistakes_are_refused),
        cmocka_unit_test(statements_are_counted),        cmocka_unit_test(long_texts_keep_their_tag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
