/* cursor_fixture.c - see cursor_fixture.h. */
#include "cursor_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct keyring *cursor_keys(const char *text)
{
    char path[] = "/tmp/test_cursor.XXXXXX";
    struct pgseek_error error;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    struct keyring *keyring = keyring_load(path, &error);
    unlink(path);
    assert_non_null(keyring);
    return keyring;
}

const uint8_t cursor_bytes[CURSOR_MAX_TOKEN] = "\x00\x00\x00\x00\x00\x0d\xbb\xa0 and more";

struct cursor cursor_of_feed(void)
{
    struct cursor cursor = {
        .direction = CURSOR_FORWARD,
        .issued = NOW,
        .nvalues = 2,
        .value = {{.type_oid = 1184, .len = 8, .data = cursor_bytes + 8},
                  {.type_oid = 20, .len = 8, .data = cursor_bytes}},
    };
    for (size_t i = 0; i < CURSOR_PARTS; i++)
        memset(cursor.part[i], (int)(0x10 * (i + 1)), CURSOR_DIGEST);
    return cursor;
}

struct buf cursor_sealed(const struct keyring *keyring, bool sign, const struct cursor *cursor)
{
    struct buf token = {0};
    assert_true(cursor_seal(keyring, sign, cursor, &token));
    return token;
}
