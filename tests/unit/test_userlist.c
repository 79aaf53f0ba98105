/* test_userlist.c - the auth_file: what is read, what is refused with which sentence, and who is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../proxy/auth/userlist.h"
#include "scram_fixture.h"

#define OTHER_SECRET "SCRAM-SHA-256$10000:" SALT "$" SERVER ":" STORED
#define NAME_60 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff"
#define LINE(user) "\"" user "\" \"" SECRET "\"\n"

/* The list, or NULL; `said` gets what was complained about. */
static struct userlist *read_list(struct span text, char *said, size_t size)
{
    FILE *complaints = fmemopen(said, size, "w");
    assert_non_null(complaints);
    said[0] = '\0';
    struct userlist *list = userlist_read(text, "users.txt", complaints);
    fclose(complaints);
    return list;
}

static void good_files_are_read(void **state)
{
    static const struct {
        const char *text;
        size_t count;
        const char *user; /* one who is there */
    } cases[] = {
        {"", 0, NULL},
        {"\n\n", 0, NULL},
        {"; nobody yet", 0, NULL},
        {LINE("ann"), 1, "ann"},
        {"\"ann\" \"" SECRET "\"", 1, "ann"}, /* no newline at the end */
        {LINE("ann") LINE("bob") LINE("eve"), 3, "eve"},
        {"\t\"ann\"\t \"" SECRET "\" \t\r\n\r\n", 1, "ann"},
        {"; a comment\n  ;another\n" LINE("ann"), 1, "ann"},
        {"\"ann\" \"" SECRET "\" ; a remark\n", 1, "ann"},
        {"\"ann\" \"" SECRET "\" \"\"\n" LINE("bob"), 2, "bob"},
        {"\"ann\" \"" SECRET "\" \"\" ; as mkauth has it\n", 1, "ann"},
        {LINE("a\"\"nn"), 1, "a\"nn"},
        {LINE("\"\"\"\""), 1, "\"\""},
        {LINE("an n; x"), 1, "an n; x"},
        {LINE("j\xc3\xbcrgen"), 1, "j\xc3\xbcrgen"},
        {LINE("\xff\\\x01"), 1, "\xff\\\x01"},
        {LINE("ann") LINE("Ann") LINE("ann "), 3, "ann "},
        {LINE(NAME_60 "123"), 1, NAME_60 "123"},
        {LINE(NAME_60 "12\"\""), 1, NAME_60 "12\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char said[512];
        struct userlist *list = read_list(span_cstr(cases[i].text), said, sizeof said);
        if (!list)
            fail_msg("case %zu: %s", i, said);
        assert_string_equal(said, "");
        assert_int_equal(userlist_count(list), cases[i].count);
        assert_null(userlist_find(list, span_cstr("nobody")));
        assert_null(userlist_find(list, span_cstr("")));
        assert_null(userlist_find(list, span_of(NULL, 0)));
        assert_int_equal(userlist_shape(list).iterations, cases[i].count > 0 ? 4096 : 0);
        const struct secret *found = cases[i].user ? userlist_find(list, span_cstr(cases[i].user)) : NULL;
        assert_int_equal(found != NULL, cases[i].user != NULL);
        if (found) {
            struct secret expected = secret_of(SECRET);
            assert_memory_equal(found, &expected, sizeof expected);
        }
        userlist_free(list);
    }
}

static void bad_files_are_explained(void **state)
{
#define IS(literal) .text = TEXT(literal)
    static const struct {
        struct span text;
        const char *why;
    } cases[] = {
        {IS("ann \"" SECRET "\""), "users.txt:1: a line is \"user\" \"secret\""},
        {IS("\"ann\""), "users.txt:1: a line is"},
        {IS("\"ann\" " SECRET), "users.txt:1: a line is"},
        {IS("\"ann\" \"" SECRET), "users.txt:1: a line is"},
        {IS("\"ann\n\" \"" SECRET "\""), "users.txt:1: a line is"}, /* names of two lines */
        {IS("\"ann\"\"" SECRET "\""), "users.txt:1: a line is"},    /* a doubled quote */
        {IS("'ann' '" SECRET "'"), "users.txt:1: a line is"},
        {IS("# ann"), "users.txt:1: a line is"},
        {IS("\xef\xbb\xbf" LINE("ann")), "users.txt:1: a line is"},
        {IS("\n; x\n\n\"ann\""), "users.txt:4: a line is"},
        {IS("\"\" \"" SECRET "\""), "no name"},
        {IS(LINE(NAME_60 "1234")), "63 bytes"},
        {IS(LINE(NAME_60 "123\"\"")), "63 bytes"},
        {IS("\"ann\" \"\""), "users.txt:1: the secret is empty"},
        {IS("\"ann\" \"hunter2\""),
         "users.txt:1: a plain password: only SCRAM-SHA-256 secrets are kept here, take SELECT "
         "rolpassword FROM pg_authid"},
        {IS("\"ann\" \"md5d41d8cd98f00b204e9800998ecf8427\""), "plain password"}, /* 34 bytes */
        {IS("\"ann\" \"md5d41d8cd98f00b204e9800998ecf8427e\""), "password_encryption = 'scram-sha-256'"},
        {IS("\"ann\" \"SCRAM-SHA-256$4096:" SALT "$" STORED "\""), "malformed"},
        {IS("\"ann\" \"SCRAM-SHA-256$0:" SALT "$" STORED ":" SERVER "\""), "malformed"},
        {IS("\"ann\" \" " SECRET "\""), "plain password"},
        {IS("\"ann\" \"" SECRET "\" x"), "something follows"},
        {IS("\"ann\" \"" SECRET "\" \"2030-01-01\""), "no expiry"},
        {IS("\"ann\" \"" SECRET "\" \"\" \"\""), "something follows"},
        {IS("\"ann\" \"" SECRET "\" \""), "quote is missing"},
        {IS("\"ann\" \"" SECRET "\" \"bob\" \"" SECRET "\""), "something follows"},
        {IS(LINE("ann") LINE("bob") LINE("ann")), "users.txt:3: the user was given before, in line 1"},
        {IS(LINE("a\0nn")), "NUL"},
        {IS("\0"), "NUL"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char said[512];
        struct userlist *list = read_list(cases[i].text, said, sizeof said);
        if (list || !strstr(said, cases[i].why))
            fail_msg("case %zu: %s", i, said);
        if (strstr(said, "hunter2") || strstr(said, SALT) || strstr(said, "8427"))
            fail_msg("a secret in a complaint: %s", said);
    }
}

static void every_fault_is_said_up_to_a_bound(void **state)
{
    char said[8192];
    struct buf text = {0};
    (void)state;
    assert_null(read_list(span_cstr("\"a\" \"x\"\n" LINE("b") "\"c\"\n"), said, sizeof said));
    assert_non_null(strstr(said, "users.txt:1:"));
    assert_null(strstr(said, "users.txt:2:"));
    assert_non_null(strstr(said, "users.txt:3:"));
    assert_null(strstr(said, "there may be more"));
    for (int i = 0; i < 100; i++)
        buf_put_text(&text, "root:x:0:0::/root:/bin/sh\n");
    assert_null(read_list(buf_span(&text), said, sizeof said));
    assert_non_null(strstr(said, "users.txt:20:"));
    assert_null(strstr(said, "users.txt:21:"));
    assert_non_null(strstr(said, "there may be more"));
    buf_fini(&text);
}

static void many_users_are_found(void **state)
{
    enum { USERS = 10000 };
    struct buf text = {0};
    struct buf again = {0};
    char said[512];
    char name[16];
    (void)state;
    for (int i = 0; i < USERS; i++)
        buf_put_format(&text, "\"user%d\" \"%s\"\n", i, i % 2 ? SECRET : OTHER_SECRET);
    struct userlist *list = read_list(buf_span(&text), said, sizeof said);
    if (!list)
        fail_msg("%s", said);
    assert_int_equal(userlist_count(list), USERS);
    for (int i = 0; i < USERS; i++) {
        snprintf(name, sizeof name, "user%d", i);
        const struct secret *secret = userlist_find(list, span_cstr(name));
        assert_non_null(secret);
        assert_int_equal(secret->iterations, i % 2 ? 4096 : 10000);
        snprintf(name, sizeof name, "user%d", USERS + i);
        assert_null(userlist_find(list, span_cstr(name)));
        userlist_put(list, (size_t)i, &again);
    }
    assert_true(span_equal(buf_span(&text), buf_span(&again)));
    userlist_free(list);
    buf_fini(&again);
    buf_fini(&text);
}

static void every_allocation_may_fail(void **state)
{
    char said[512];
    (void)state;
    for (long n = 0; n < 100; n++) {
        mem_fail_after(n);
        struct userlist *list = read_list(span_cstr(LINE("ann")), said, sizeof said);
        mem_fail_after(-1);
        if (list) {
            assert_int_equal(n, 3);
            userlist_free(list);
            return;
        }
        assert_string_equal(said, "users.txt: out of memory\n");
    }
    fail();
}

static void a_file_must_be_ours_alone(void **state)
{
    static const struct {
        mode_t mode;
        const char *why; /* NULL: it is taken */
    } cases[] = {{0600, NULL}, {0400, NULL}, {0644, "chmod 0600"}, {0604, "chmod 0600"}, {0666, "chmod 0600"}};
    char path[] = "/tmp/test_userlist.XXXXXX";
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, LINE("ann"), strlen(LINE("ann"))), strlen(LINE("ann")));
    close(fd);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char said[512] = "";
        assert_int_equal(chmod(path, cases[i].mode), 0);
        FILE *complaints = fmemopen(said, sizeof said, "w");
        struct userlist *list = userlist_load(path, complaints);
        fclose(complaints);
        assert_int_equal(list != NULL, cases[i].why == NULL);
        if (cases[i].why && (!strstr(said, cases[i].why) || !strstr(said, path)))
            fail_msg("mode %o: %s", cases[i].mode, said);
        userlist_free(list);
    }
    unlink(path);
    char said[512] = "";
    FILE *complaints = fmemopen(said, sizeof said, "w");
    assert_null(userlist_load(path, complaints));
    fclose(complaints);
    assert_non_null(strstr(said, "No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files_are_read),
        cmocka_unit_test(bad_files_are_explained),
        cmocka_unit_test(every_fault_is_said_up_to_a_bound),
        cmocka_unit_test(many_users_are_found),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_file_must_be_ours_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
