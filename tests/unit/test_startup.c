/* test_startup.c - the first packets by kind, and our variables taken out of their parameters and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/protocol/startup.h"

/* A packet with its length in front. */
static void make(struct buf *packet, const void *bytes, size_t len)
{
    buf_clear(packet);
    buf_put_u32(packet, (uint32_t)len + 4);
    buf_put(packet, bytes, len);
}

#define BYTES(text) text, sizeof text - 1

static void kinds(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum startup_kind kind;
    } cases[] = {
        {BYTES("\x04\xd2\x16\x2f"), STARTUP_SSL},
        {BYTES("\x04\xd2\x16\x2fx"), STARTUP_MALFORMED},
        {BYTES("\x04\xd2\x16\x30"), STARTUP_GSSENC},
        {BYTES("\x04\xd2\x16\x2e\0\0\0\1\0\0\0\2"), STARTUP_CANCEL},
        {BYTES("\x04\xd2\x16\x2e\0\0\0\1\x01"), STARTUP_CANCEL},
        {BYTES("\x04\xd2\x16\x2e\0\0\0\1"), STARTUP_MALFORMED},
        {BYTES("\x04\xd2\x16\x2e"), STARTUP_MALFORMED},
        {BYTES("\0\3\0\0\0"), STARTUP_SESSION},
        {BYTES("\0\3\0\0user\0u\0\0"), STARTUP_SESSION},
        {BYTES("\0\3\x27\x0fuser\0u\0\0"), STARTUP_SESSION},
        {BYTES("\0\3\0\0user\0\0\0"), STARTUP_SESSION},
        {BYTES("\0\3\0\0"), STARTUP_MALFORMED},
        {BYTES("\0\3\0\0user\0u\0"), STARTUP_MALFORMED},
        {BYTES("\0\3\0\0user\0u"), STARTUP_MALFORMED},
        {BYTES("\0\3\0\0user\0\0"), STARTUP_MALFORMED},
        {BYTES("\0\3\0\0user\0u\0\0x"), STARTUP_MALFORMED},
        {BYTES("\0\2\0\0user"), STARTUP_UNSUPPORTED},
        {BYTES("\0\4\0\0\0"), STARTUP_UNSUPPORTED},
        {BYTES("\0\0\0\0"), STARTUP_UNSUPPORTED},
    };
    struct buf packet = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct startup startup;
        make(&packet, cases[i].bytes, cases[i].len);
        assert_int_equal(startup_length(buf_span(&packet)), packet.len);
        startup_read(buf_span(&packet), &startup);
        if (startup.kind != cases[i].kind)
            fail_msg("case %zu is of kind %d", i, (int)startup.kind);
    }
    buf_fini(&packet);
}

static void lengths(void **state)
{
    static const struct {
        const char *head;
        size_t len;
    } cases[] = {{"\0\0\0\7", 0},     {"\0\0\0\x8", 8},        {"\0\0\x27\x10", 10000},
                 {"\0\0\x27\x11", 0}, {"\xff\xff\xff\xff", 0}, {"\0\0\0\0", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(startup_length(span_of(cases[i].head, 4)), cases[i].len);
}

static void keys_have_a_longest(void **state)
{
    struct buf packet = {0};
    struct startup startup;
    char bytes[4 + 4 + STARTUP_MAX_CANCEL_KEY + 1] = "\x04\xd2\x16\x2e";
    (void)state;
    make(&packet, bytes, sizeof bytes - 1);
    startup_read(buf_span(&packet), &startup);
    assert_int_equal(startup.kind, STARTUP_CANCEL);
    assert_int_equal(startup.cancel.len, 4 + STARTUP_MAX_CANCEL_KEY);
    make(&packet, bytes, sizeof bytes);
    startup_read(buf_span(&packet), &startup);
    assert_int_equal(startup.kind, STARTUP_MALFORMED);
    buf_fini(&packet);
}

/* ---- surgery ---- */

struct taken {
    char text[256];
    const char *refuses; /* a name that is refused */
};

static bool take(void *arg, const char *name, const char *value)
{
    struct taken *taken = arg;
    size_t len = strlen(taken->text);
    snprintf(taken->text + len, sizeof taken->text - len, "%s=%s;", name, value);
    return !taken->refuses || strcmp(taken->refuses, name) != 0;
}

/* Parameters as name|value|... */
static void make_session(struct buf *packet, const char *parameters)
{
    struct buf bytes = {0};
    buf_put_u32(&bytes, 196608);
    for (; *parameters; parameters++)
        buf_put_u8(&bytes, *parameters == '|' ? 0 : (uint8_t)*parameters);
    buf_put_u8(&bytes, 0);
    make(packet, bytes.ptr, bytes.len);
    buf_fini(&bytes);
}

static const struct {
    const char *before, *after, *taken;
} cuts[] = {
    {"user|u|", "user|u|", ""},
    {"user|u|pgseek.walk|a|database|d|", "user|u|database|d|", "pgseek.walk=a;"},
    {"PgSeek.Walk|a|user|u|", "user|u|", "PgSeek.Walk=a;"},
    {"pgseek.|a|user|pgseek.walk|", "pgseek.|a|user|pgseek.walk|", ""},
    {"user|u|options||", "user|u|options||", ""},
    {"user|u|options|   |", "user|u|options|   |", ""},
    {"options|-c pgseek.walk=a|", "", "pgseek.walk=a;"},
    {"options|-cpgseek.walk=a|", "", "pgseek.walk=a;"},
    {"options|--pgseek.walk=a|", "", "pgseek.walk=a;"},
    {"options|--pgseek.next-thing=a|", "", "pgseek.next_thing=a;"},
    {"options|-c pgseek.walk=a\\ b\\\\c|", "", "pgseek.walk=a b\\c;"},
    {"options|-c pgseek.walk=|", "", "pgseek.walk=;"},
    {"options|-c pgseek.walk=a=b|", "", "pgseek.walk=a=b;"},
    {"options|-c work_mem=1 -c pgseek.walk=a -c a.b=c|", "options|-c work_mem=1  -c a.b=c|", "pgseek.walk=a;"},
    {"options|-c  pgseek.walk=a  --x=y|", "options|  --x=y|", "pgseek.walk=a;"},
    {"options|-c pgseek.a=1 -c pgseek.b=2|", "", "pgseek.a=1;pgseek.b=2;"},
    {"options|-c pgseek.walk|", "options|-c pgseek.walk|", ""}, /* no value: the server's to refuse */
    {"options|-c|", "options|-c|", ""},
    {"options|pgseek.walk=a|", "options|pgseek.walk=a|", ""},
    {"options|-d pgseek.walk=a|", "options|-d pgseek.walk=a|", ""},
    {"options|-c x=pgseek.walk=a|", "options|-c x=pgseek.walk=a|", ""},
    {"options|-c x='pgseek.walk=a'|", "options|-c x='pgseek.walk=a'|", ""},
    {"options|\\|", "options|\\|", ""},
};

static void only_ours_are_cut_out(void **state)
{
    struct buf packet = {0};
    struct buf wanted = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        struct startup startup;
        struct taken taken = {.text = ""};
        struct buf out = {0};
        bool changed;
        make_session(&packet, cuts[i].before);
        make_session(&wanted, cuts[i].after);
        startup_read(buf_span(&packet), &startup);
        assert_int_equal(startup.kind, STARTUP_SESSION);
        assert_true(startup_rewrite(&startup, "pgseek.", NULL, NULL, take, &taken, &out, &changed));
        assert_string_equal(taken.text, cuts[i].taken);
        if (!span_equal(buf_span(&out), buf_span(&wanted)))
            fail_msg("%s is not cut to %s", cuts[i].before, cuts[i].after);
        assert_int_equal(changed, taken.text[0] != '\0');
        buf_fini(&out);
    }
    buf_fini(&packet);
    buf_fini(&wanted);
}

static void a_refused_variable_refuses_the_packet(void **state)
{
    struct buf packet = {0};
    struct buf out = {0};
    struct startup startup;
    struct taken taken = {.refuses = "pgseek.b"};
    bool changed;
    (void)state;
    make_session(&packet, "options|-c pgseek.a=1 -c pgseek.b=2|");
    startup_read(buf_span(&packet), &startup);
    assert_false(startup_rewrite(&startup, "pgseek.", NULL, NULL, take, &taken, &out, &changed));
    buf_fini(&out);
    buf_fini(&packet);
}

static void database_and_user_are_replaced(void **state)
{
    static const struct {
        const char *before, *database, *user, *after;
    } cases[] = {
        {"user|u|database|d|", "x", NULL, "user|u|database|x|"},
        {"user|u|database|d|", NULL, "y", "user|y|database|d|"},
        {"user|u|a|b|", "x", "y", "user|y|a|b|database|x|"},
    };
    struct buf packet = {0};
    struct buf wanted = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct startup startup;
        struct taken taken = {.text = ""};
        struct buf out = {0};
        bool changed;
        make_session(&packet, cases[i].before);
        make_session(&wanted, cases[i].after);
        startup_read(buf_span(&packet), &startup);
        assert_true(
            startup_rewrite(&startup, "pgseek.", cases[i].database, cases[i].user, take, &taken, &out, &changed));
        assert_true(changed && span_equal(buf_span(&out), buf_span(&wanted)));
        assert_true(span_equal_cstr(startup_find(&startup, "user"), "u"));
        assert_null(startup_find(&startup, "nothing").ptr);
        buf_fini(&out);
    }
    buf_fini(&packet);
    buf_fini(&wanted);
}

static void memory_may_run_out(void **state)
{
    struct buf packet = {0};
    struct startup startup;
    bool done = false;
    (void)state;
    make_session(&packet,
                 "user|u|options|-c work_mem=1 -c pgseek.walk=a -c application_name=a_long_name_that_makes_it_grow|");
    startup_read(buf_span(&packet), &startup);
    for (long n = 0; !done; n++) {
        struct taken taken = {.text = ""};
        struct buf out = {0};
        bool changed;
        mem_fail_after(n);
        done = startup_rewrite(&startup, "pgseek.", NULL, NULL, take, &taken, &out, &changed);
        mem_fail_after(-1);
        buf_fini(&out);
        assert_true(n < 100);
    }
    buf_fini(&packet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(lengths),
        cmocka_unit_test(keys_have_a_longest),
        cmocka_unit_test(only_ours_are_cut_out),
        cmocka_unit_test(a_refused_variable_refuses_the_packet),
        cmocka_unit_test(database_and_user_are_replaced),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
