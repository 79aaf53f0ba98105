/* fuzz_backend.c - bytes of a server behind what a client has asked for: where they are cut changes nothing that either
 * side is sent, and nothing that they say does harm.
 *
 * The first byte says how small the crumbs are, the second what the client has sent. */
#include <stdint.h>
#include <stdlib.h>

#include "../../proxy/protocol/wire.h"
#include "twin.h"

#define FEED "select id, body from posts order by id limit 2 /* pgseek */"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_bind(struct buf *out, const char *portal, const char *statement)
{
    size_t at = wire_open(out, 'B');
    buf_put_cstr(out, portal);
    buf_put_cstr(out, statement);
    buf_put(out, "\0\0\0\0\0\0", 6);
    wire_close(out, at);
}

static void put_statement(struct buf *out, const char *name, const char *sql, int32_t rows)
{
    wire_put_parse(out, name, span_cstr(sql), NULL, 0);
    put_bind(out, "", name);
    wire_put_target(out, 'D', 'P', span_cstr(""));
    wire_put_execute(out, span_cstr(""), rows);
}

/* What the client has sent; a few ways to make a session expect something. */
static void put_question(struct buf *out, unsigned kind)
{
    switch (kind % 6) {
    case 0:
        wire_put_query(out, FEED);
        wire_put_query(out, "select 1");
        break;
    case 1:
        put_statement(out, "a", FEED, 0);
        wire_put_empty(out, 'S');
        break;
    case 2:
        put_statement(out, "", FEED, 1);
        wire_put_execute(out, span_cstr(""), 1);
        wire_put_empty(out, 'H');
        break;
    case 3:
        put_statement(out, "", "set pgseek.walk = 'a'", 0);
        put_statement(out, "", "show pgseek.walk", 0);
        put_statement(out, "", "begin", 0);
        wire_put_empty(out, 'S');
        wire_put_query(out, "rollback");
        break;
    case 4:
        put_statement(out, "a", "select 1", 0);
        wire_put_empty(out, 'S');
        wire_put_empty(out, 'c');
        wire_put_empty(out, 'S');
        wire_put_query(out, "copy t from stdin");
        break;
    default:
        wire_put_query(out, "select 1 /* pgseek oops=1 */");
        put_statement(out, "", "select 1 /* pgseek oops=1 */", 0);
        wire_put_empty(out, 'S');
        break;
    }
}

/* Message by message: a server does not answer what it has not been asked, and what waits is asked between messages. */
static void feed_messages(struct twin *twin, struct span bytes)
{
    while (bytes.len >= WIRE_HEADER) {
        size_t len = (size_t)get_u32(bytes.ptr + 1) + 1;
        len = len > bytes.len ? bytes.len : len;
        twin_feed(twin, SIDE_BACKEND, span_of(bytes.ptr, len));
        bytes = span_of(bytes.ptr + len, bytes.len - len);
    }
    twin_feed(twin, SIDE_BACKEND, bytes);
}

static void check(struct span input)
{
    if (input.len < 2)
        return;
    struct buf question = {0};
    struct twin *twin = twin_new(1 + input.ptr[0] % 8u);
    put_question(&question, input.ptr[1]);
    twin_feed(twin, SIDE_FRONTEND, buf_span(&question));
    feed_messages(twin, span_of(input.ptr + 2, input.len - 2));
    buf_fini(&question);
    twin_free(twin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    twin_run(check, span_of(data, size));
    return 0;
}
