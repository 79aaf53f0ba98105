/* hba_fixture.c - see hba_fixture.h. */
#include "hba_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct hba *hba_of(const char *text, size_t len, char **complaints)
{
    size_t size;
    FILE *out = open_memstream(complaints, &size);
    assert_non_null(out);
    struct hba *hba = hba_read(span_of(text, len), "hba", out);
    fclose(out);
    return hba;
}
