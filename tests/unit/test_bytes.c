/* test_bytes.c - readers never pass their end, buffers survive a full memory, and both remember their first failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/protocol/bytes.h"

/* A copy whose end is the end of its memory, so that a sanitizer sees one byte too many. */
static struct span exact(const void *bytes, size_t len, void **owner)
{
    *owner = malloc(len ? len : 1);
    assert_non_null(*owner);
    memcpy(*owner, bytes, len);
    return span_of(*owner, len);
}

static void spans_compare_by_bytes(void **state)
{
    (void)state;
    assert_true(span_equal(span_of(NULL, 0), span_of("x", 0)));
    assert_true(span_equal_cstr(span_of(NULL, 0), ""));
    assert_true(span_equal(span_of("a\0b", 3), span_of("a\0b", 3)));
    assert_false(span_equal(span_of("a\0b", 3), span_of("a\0c", 3)));
    assert_false(span_equal_cstr(span_of("ab", 2), "abc"));
    assert_false(span_equal_cstr(span_of("ab\0", 3), "ab"));
}

static void integers_are_in_network_order(void **state)
{
    uint8_t bytes[4];
    (void)state;
    set_u16(bytes, 0xfedc);
    assert_memory_equal(bytes, "\xfe\xdc", 2);
    assert_int_equal(get_u16(bytes), 0xfedc);
    set_u32(bytes, 0xfedcba98u);
    assert_memory_equal(bytes, "\xfe\xdc\xba\x98", 4);
    assert_true(get_u32(bytes) == 0xfedcba98u);
}

static void fields_are_read_in_order(void **state)
{
    void *owner;
    struct reader rd = rd_init(exact("\x01\x80\x02\xff\xff\xff\xfe\xff\xff\xff\xff"
                                     "ab\0\0xyz",
                                     18, &owner));
    (void)state;
    assert_int_equal(rd_u8(&rd), 1);
    assert_int_equal(rd_u16(&rd), 0x8002);
    assert_int_equal(rd_i32(&rd), -2);
    assert_true(rd_u32(&rd) == UINT32_MAX);
    assert_true(span_equal_cstr(rd_cstr(&rd), "ab"));
    assert_true(span_equal_cstr(rd_cstr(&rd), ""));
    assert_int_equal(rd_left(&rd), 3);
    assert_false(rd_done(&rd));
    assert_true(span_equal_cstr(rd_bytes(&rd, 3), "xyz"));
    assert_int_equal(rd_bytes(&rd, 0).len, 0);
    assert_true(rd_done(&rd));
    free(owner);
}

static void read_u8(struct reader *rd)
{
    assert_int_equal(rd_u8(rd), 0);
}
static void read_u16(struct reader *rd)
{
    assert_int_equal(rd_u16(rd), 0);
}
static void read_u32(struct reader *rd)
{
    assert_true(rd_u32(rd) == 0);
}
static void read_four(struct reader *rd)
{
    assert_int_equal(rd_bytes(rd, 4).len, 0);
}
static void read_all(struct reader *rd)
{
    assert_int_equal(rd_bytes(rd, SIZE_MAX).len, 0);
}
static void read_cstr(struct reader *rd)
{
    struct span text = rd_cstr(rd);
    assert_int_equal(text.len, 0);
    assert_string_equal((const char *)text.ptr, ""); /* usable even so */
}

/* Every kind of field that is one byte too long fails, gives nothing, and so does all that follows. */
static void short_inputs_fail_for_good(void **state)
{
    static const struct {
        void (*read)(struct reader *rd);
        size_t len;
    } cases[] = {{read_u8, 0},  {read_u16, 1},  {read_u32, 3}, {read_four, 3},
                 {read_all, 3}, {read_cstr, 3}, {read_cstr, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        void *owner;
        struct reader rd = rd_init(exact("\xff\xff\xff", cases[i].len, &owner));
        cases[i].read(&rd);
        assert_true(rd.failed);
        assert_int_equal(rd_left(&rd), 0);
        assert_false(rd_done(&rd));
        for (size_t j = 0; j < sizeof cases / sizeof cases[0]; j++)
            cases[j].read(&rd);
        assert_int_equal(rd_bytes(&rd, 0).len, 0);
        assert_false(rd_done(&rd));
        free(owner);
    }
    struct reader nothing = rd_init(span_of(NULL, 0));
    assert_true(rd_done(&nothing));
    read_u8(&nothing);
    assert_false(rd_done(&nothing));
}

static void buffers_hold_what_was_put(void **state)
{
    struct buf buf = {0};
    (void)state;
    buf_put_u8(&buf, 0xab);
    buf_put_u16(&buf, 0x0102);
    buf_put_u32(&buf, 0x03040506);
    buf_put_i32(&buf, -1);
    buf_put_u64(&buf, 0x0102030405060708u);
    buf_put_cstr(&buf, "c");
    buf_put_text(&buf, "t");
    buf_put_span(&buf, span_of(NULL, 0));
    buf_put(&buf, NULL, 0);
    buf_put_format(&buf, "%s-%d", "f", 7);
    buf_put_format(&buf, "%s", "");
    static const char expected[] = "\xab\x01\x02\x03\x04\x05\x06\xff\xff\xff\xff\x01\x02\x03\x04\x05\x06\x07\x08"
                                   "c\0tf-7";
    assert_int_equal(buf.len, sizeof expected - 1);
    assert_memory_equal(buf.ptr, expected, buf.len);

    buf_consume(&buf, 19);
    assert_true(span_equal(buf_span(&buf), span_of("c\0tf-7", 6)));
    buf_consume(&buf, 0);
    assert_int_equal(buf.len, 6);
    buf_consume(&buf, 7);
    assert_int_equal(buf.len, 0);
    buf_put_text(&buf, "again");
    assert_true(span_equal_cstr(buf_span(&buf), "again"));
    buf_fini(&buf);
    assert_null(buf.ptr);
    buf_consume(&buf, 1);
    buf_put_text(&buf, "usable");
    assert_true(span_equal_cstr(buf_span(&buf), "usable"));
    buf_fini(&buf);
}

static void buffers_grow_and_shrink(void **state)
{
    struct buf buf = {0};
    (void)state;
    for (size_t i = 0; i < 100000; i++)
        buf_put_u8(&buf, (uint8_t)(i * 7));
    for (size_t i = 0; i < 100000; i++)
        assert_int_equal(buf.ptr[i], (uint8_t)(i * 7));
    size_t cap = buf.cap;
    buf_trim(&buf, cap);
    assert_int_equal(buf.len, 0);
    assert_int_equal(buf.cap, cap);
    buf_trim(&buf, cap - 1);
    assert_int_equal(buf.cap, 0);
    assert_null(buf.ptr);
}

/* NULL means failure, so no room is still a place. */
static void no_room_is_not_a_failure(void **state)
{
    struct buf buf = {0};
    (void)state;
    assert_non_null(buf_room(&buf, 0));
    assert_false(buf.failed);
    assert_int_equal(buf.len, 0);
    buf_fini(&buf);
    struct reader rd = rd_init(span_of(NULL, 0));
    assert_non_null(rd_bytes(&rd, 0).ptr);
    assert_true(rd_done(&rd));
}

static void impossible_sizes_fail(void **state)
{
    struct buf buf = {0};
    (void)state;
    buf_put_text(&buf, "kept");
    assert_null(buf_room(&buf, SIZE_MAX));
    assert_true(buf.failed);
    assert_true(span_equal_cstr(buf_span(&buf), "kept"));
    buf_clear(&buf);
    buf_put_text(&buf, "kept");
    assert_null(buf_room(&buf, SIZE_MAX / 2 - 3)); /* with what is there already, one too many */
    assert_true(buf.failed);
    buf_fini(&buf);
}

/* After a failure nothing is appended any more: half a message must never leave. */
static void a_failed_buffer_stays_failed(void **state)
{
    char filler[64];
    struct buf buf = {0};
    (void)state;
    memset(filler, 'x', sizeof filler);
    buf_put(&buf, filler, sizeof filler);
    mem_fail_after(0);
    buf_put_u32(&buf, 1);
    mem_fail_after(-1);
    assert_true(buf.failed);
    buf_put_u8(&buf, 1);
    buf_put_text(&buf, "x");
    buf_put_format(&buf, "%d", 1);
    assert_null(buf_room(&buf, 1));
    assert_int_equal(buf.len, sizeof filler);
    buf_clear(&buf);
    assert_false(buf.failed);
    buf_put_u8(&buf, 1);
    assert_int_equal(buf.len, 1);
    buf_fini(&buf);
}

static void memory_fails_where_it_is_told(void **state)
{
    (void)state;
    mem_fail_after(1);
    void *first = mem_alloc(1);
    void *second = mem_zalloc(1);
    void *third = mem_dup("x", 1);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third); /* one allocation fails, not all that follow */
    mem_fail_after(0);
    assert_null(mem_strndup("x", 1));
    mem_fail_after(0);
    assert_null(mem_realloc(first, 100));
    mem_fail_after(-1);
    mem_free(first); /* still valid */
    mem_free(third);
    mem_free(NULL);
}

static void copies_are_copies(void **state)
{
    (void)state;
    char *text = mem_strndup("abcdef", 3);
    assert_string_equal(text, "abc");
    mem_free(text);
    text = mem_strndup(NULL, 0);
    assert_string_equal(text, "");
    mem_free(text);
    void *nothing = mem_dup(NULL, 0);
    assert_non_null(nothing);
    mem_free(nothing);
    uint64_t *zeros = mem_zalloc(sizeof *zeros);
    assert_true(*zeros == 0);
    mem_free(zeros);
}

static void lines_are_taken_one_by_one(void **state)
{
    (void)state;
    struct span rest = span_cstr("a\n\nb\r\nc");
    static const char *const lines[] = {"a", "", "b\r", "c", "", ""};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_true(span_equal_cstr(span_take_line(&rest), lines[i]));
    assert_int_equal(rest.len, 0);
    rest = span_of(NULL, 0);
    assert_int_equal(span_take_line(&rest).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_taken_one_by_one),    cmocka_unit_test(spans_compare_by_bytes),
        cmocka_unit_test(integers_are_in_network_order), cmocka_unit_test(fields_are_read_in_order),
        cmocka_unit_test(short_inputs_fail_for_good),    cmocka_unit_test(buffers_hold_what_was_put),
        cmocka_unit_test(buffers_grow_and_shrink),       cmocka_unit_test(no_room_is_not_a_failure),
        cmocka_unit_test(impossible_sizes_fail),         cmocka_unit_test(a_failed_buffer_stays_failed),
        cmocka_unit_test(memory_fails_where_it_is_told), cmocka_unit_test(copies_are_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
