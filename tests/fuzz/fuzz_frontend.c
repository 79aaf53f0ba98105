/* fuzz_frontend.c - bytes of a client whose session is up: where they are cut changes nothing that is sent on.
 *
 * The first byte says how small the crumbs are, the second how much of the rest is sent before the server's answer to a
 * simple query comes in between. */
#include <stdint.h>
#include <stdlib.h>

#include "twin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct span input)
{
    static const uint8_t answer[] = "C\0\0\0\xdSELECT 0\0Z\0\0\0\5I";
    if (input.len < 2)
        return;
    struct twin *twin = twin_new(1 + input.ptr[0] % 8u);
    size_t first = (input.len - 2) * input.ptr[1] / 255;
    twin_feed(twin, SIDE_FRONTEND, span_of(input.ptr + 2, first));
    twin_feed(twin, SIDE_BACKEND, span_of(answer, sizeof answer - 1));
    twin_feed(twin, SIDE_FRONTEND, span_of(input.ptr + 2 + first, input.len - 2 - first));
    twin_free(twin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    twin_run(check, span_of(data, size));
    return 0;
}
