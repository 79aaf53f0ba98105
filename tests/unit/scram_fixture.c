/* scram_fixture.c - the fixture's values, decoded. */
#include "scram_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct secret secret_of(const char *text)
{
    struct secret secret;
    assert_true(secret_read(span_cstr(text), &secret));
    return secret;
}

void key_of(const char *text, uint8_t key[SCRAM_KEY])
{
    assert_true(secret_read_key(span_cstr(text), key));
}
