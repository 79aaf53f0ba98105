/* test_log.c - the form of a line, what cannot be forged in it, and moving the file away. */
#include <fcntl.h>
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

#include "../../proxy/admin/log.h"

static const struct timespec then = {.tv_sec = 1767225600, .tv_nsec = 7999999}; /* 2026-01-01 */

#define HEAD "2026-01-01 00:00:00.007 UTC [42] LOG "

static void assert_line(const char *text, const char *expected)
{
    char line[LOG_LINE_MAX];
    size_t len = log_format(line, &then, 42, LOG_INFO, text);
    if (len != strlen(expected) || memcmp(line, expected, len) != 0)
        fail_msg("got %.*s", (int)len, line);
}

static void levels_have_names(void **state)
{
    static const char *const names[] = {"DEBUG", "LOG", "WARNING", "ERROR", "FATAL"};
    (void)state;
    for (int level = LOG_DEBUG; level <= LOG_FATAL; level++) {
        char line[LOG_LINE_MAX];
        char expected[128];
        size_t len = log_format(line, &then, 7, (enum log_level)level, "x");
        snprintf(expected, sizeof expected, "2026-01-01 00:00:00.007 UTC [7] %s x\n", names[level]);
        assert_int_equal(len, strlen(expected));
        assert_memory_equal(line, expected, len);
    }
}

static void hostile_texts_stay_in_their_line(void **state)
{
    static const struct {
        const char *text;
        const char *line;
    } cases[] = {
        {"", HEAD "\n"},
        {"login user=joe", HEAD "login user=joe\n"},
        {"a\nb", HEAD "a\\x0ab\n"},
        {"a\r\tb\x7f", HEAD "a\\x0d\\x09b\\x7f\n"},
        {"\x1b[31mred", HEAD "\\x1b[31mred\n"},
        {"M\xc3\xbcller \xe2\x82\xac \xf0\x9f\x90\x98", HEAD "M\xc3\xbcller \xe2\x82\xac \xf0\x9f\x90\x98\n"},
        {"\xc2\x9b"
         "31m",
         HEAD "\\xc2\\x9b31m\n"}, /* CSI as U+009B */
        {"\x9b"
         "31m",
         HEAD "\\x9b31m\n"},               /* and as Latin-1 */
        {"\xc0\x8a", HEAD "\\xc0\\x8a\n"}, /* an overlong newline */
        {"\xe2\x82", HEAD "\\xe2\\x82\n"}, /* cut in the middle */
        {"\xff\xfe", HEAD "\\xff\\xfe\n"},
        {"\xe0\x80\x8a", HEAD "\\xe0\\x80\\x8a\n"},                  /* the same in three bytes ... */
        {"\xf0\x80\x80\x8a", HEAD "\\xf0\\x80\\x80\\x8a\n"},         /* ... and in four */
        {"\xe0\x82\x9b", HEAD "\\xe0\\x82\\x9b\n"},                  /* CSI in three */
        {"\xed\xa0\x80", HEAD "\\xed\\xa0\\x80\n"},                  /* half of a pair */
        {"\xf4\x90\x80\x80", HEAD "\\xf4\\x90\\x80\\x80\n"},         /* beyond the last */
        {"\xf4\x8f\xbf\xbf", HEAD "\xf4\x8f\xbf\xbf\n"},             /* the last */
        {"a\xe2\x80\xa8z", HEAD "a\\xe2\\x80\\xa8z\n"},              /* U+2028 ends a line for some */
        {"a\xe2\x80\xaez", HEAD "a\\xe2\\x80\\xaez\n"},              /* U+202E turns what follows */
        {"a\xe2\x81\xa7z", HEAD "a\\xe2\\x81\\xa7z\n"},              /* U+2067 as well */
        {"a\xe2\x80\xafz\xc2\xa0", HEAD "a\xe2\x80\xafz\xc2\xa0\n"}, /* their neighbours do not */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_line(cases[i].text, cases[i].line);
}

/* Whatever does not fit is cut at a character, and the line says so. */
static void long_texts_are_cut(void **state)
{
    char text[3 * LOG_LINE_MAX];
    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        char line[LOG_LINE_MAX];
        memset(text, 'x', shift);
        for (size_t i = 0; i < LOG_LINE_MAX / 2; i++)
            memcpy(text + shift + 3 * i, "\xe2\x82\xac", 4);
        size_t len = log_format(line, &then, 42, LOG_INFO, text);
        assert_in_range(len, LOG_LINE_MAX - 3, LOG_LINE_MAX);
        assert_memory_equal(line + len - 7, "\xe2\x82\xac...\n", 7);
    }
    memset(text, '\n', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    char line[LOG_LINE_MAX];
    size_t len = log_format(line, &then, 42, LOG_INFO, text);
    assert_memory_equal(line + len - 8, "\\x0a...\n", 8);
    assert_ptr_equal(memchr(line, '\n', len), line + len - 1);
}

static off_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : -1;
}

/* Of a log that is a FIFO nobody may wait for the reader: not at a reload, and not with a line. */
static void a_fifo_stops_nobody(void **state)
{
    char folder[] = "/tmp/test_log.XXXXXX";
    char path[64];
    const char *why = NULL;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/log", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(log_open(path, &why));
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_true(log_open(path, &why));
    for (int i = 0; i < 10000; i++) /* more than it holds */
        log_write(LOG_INFO, "line %d", i);
    log_close();
    close(reader);
    unlink(path);
    rmdir(folder);
}

static void a_moved_file_is_made_again(void **state)
{
    char folder[] = "/tmp/test_log.XXXXXX";
    char path[64];
    char moved[64];
    const char *why = NULL;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(moved, sizeof moved, "%s/log.1", folder);
    assert_true(log_open(path, &why));
    log_write(LOG_INFO, "one %d", 1);
    off_t one = size_of(path);
    assert_true(one > 0);
    assert_int_equal(rename(path, moved), 0);
    log_write(LOG_INFO, "two %d", 2);
    assert_int_equal(size_of(moved), 2 * one);
    assert_true(log_open(path, &why));
    log_write(LOG_INFO, "three");
    assert_int_equal(size_of(moved), 2 * one);
    assert_int_equal(size_of(path), one);

    /* A path that cannot be opened leaves the old file in force. */
    assert_false(log_open("/nonexistent/folder/log", &why));
    assert_non_null(strstr(why, "No such file"));
    log_write(LOG_INFO, "three");
    assert_int_equal(size_of(path), 2 * one);
    log_close();
    log_threshold = LOG_FATAL;
    log_at(LOG_ERROR, "below the threshold: not seen anywhere");
    assert_int_equal(size_of(path), 2 * one);
    unlink(path);
    unlink(moved);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_have_names),          cmocka_unit_test(hostile_texts_stay_in_their_line),
        cmocka_unit_test(long_texts_are_cut),         cmocka_unit_test(a_fifo_stops_nobody),
        cmocka_unit_test(a_moved_file_is_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
