/* test_wire.c - decoders take a message whole or not at all, however it is cut; what is built is read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/protocol/wire.h"

/* The body of the one message in `buf`. */
static struct span body_of(const struct buf *buf)
{
    assert_true(buf->len >= WIRE_HEADER);
    assert_int_equal(get_u32(buf->ptr + 1), buf->len - 1);
    return span_of(buf->ptr + WIRE_HEADER, buf->len - WIRE_HEADER);
}

/* ---- frontend ---- */

static bool reads_parse(struct span body)
{
    struct wire_parse parse;
    return wire_read_parse(body, &parse);
}

static bool reads_bind(struct span body)
{
    struct wire_bind bind;
    return wire_read_bind(body, &bind);
}

static bool reads_target(struct span body)
{
    struct wire_target target;
    return wire_read_target(body, &target);
}

static bool reads_execute(struct span body)
{
    struct wire_execute execute;
    return wire_read_execute(body, &execute);
}

static bool reads_query(struct span body)
{
    struct span sql;
    return wire_read_query(body, &sql);
}

static const struct {
    const char *name;
    bool (*read)(struct span body);
    const char *body;
    size_t len;
} whole[] = {
    {"Parse", reads_parse, "a\0select\0\0\2\0\0\0\x17\0\0\0\0", 19},
    {"Parse without types", reads_parse, "\0\0\0\0", 4},
    {"Bind", reads_bind, "p\0s\0\0\1\0\1\0\2\0\0\0\1x\xff\xff\xff\xff\0\1\0\1", 23},
    {"empty Bind", reads_bind, "\0\0\0\0\0\0\0\0", 8},
    {"Describe", reads_target, "Sname\0", 6},
    {"Execute", reads_execute, "x\0\0\0\0\5", 6},
    {"Query", reads_query, "select 1\0", 9},
};

/* Every beginning of a message, and every message with more behind it, is refused. */
static void messages_are_read_whole_or_not_at_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        uint8_t *longer = malloc(whole[i].len + 1);
        memcpy(longer, whole[i].body, whole[i].len);
        longer[whole[i].len] = 0;
        assert_true(whole[i].read(span_of(longer, whole[i].len)));
        assert_false(whole[i].read(span_of(longer, whole[i].len + 1)));
        free(longer);
        for (size_t len = 0; len < whole[i].len; len++) {
            uint8_t *cut = malloc(len ? len : 1); /* of its own, so that a reader that goes on is caught */
            memcpy(cut, whole[i].body, len);
            if (whole[i].read(span_of(cut, len)))
                fail_msg("%s was read from %zu bytes", whole[i].name, len);
            free(cut);
        }
    }
}

static void bind_fields(void **state)
{
    struct wire_bind bind;
    struct wire_param param[3];
    (void)state;
    assert_true(wire_read_bind(span_of("p\0s\0\0\1\0\1\0\2\0\0\0\1x\xff\xff\xff\xff\0\1\0\1", 23), &bind));
    assert_true(span_equal_cstr(bind.portal, "p") && span_equal_cstr(bind.statement, "s"));
    assert_int_equal(bind.nparams, 2);
    assert_int_equal(bind.nresults, 1);
    assert_true(wire_bind_params(&bind, param));
    assert_int_equal(param[0].format, 1);
    assert_int_equal(param[0].len, 1);
    assert_memory_equal(param[0].data, "x", 1);
    assert_int_equal(param[1].format, 1);
    assert_int_equal(param[1].len, -1);
}

/* Format codes: none, one for all, one each; any other number is the server's to complain about. */
static void format_counts(void **state)
{
    static const struct {
        uint16_t formats, params;
        bool fits;
    } cases[] = {{0, 0, true},  {0, 3, true},  {1, 3, true}, {3, 3, true},
                 {2, 3, false}, {4, 3, false}, {1, 0, true}, {2, 0, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf body = {0};
        struct wire_bind bind;
        struct wire_param param[3];
        buf_put(&body, "\0\0", 2);
        buf_put_u16(&body, cases[i].formats);
        for (uint16_t n = 0; n < cases[i].formats; n++)
            buf_put_u16(&body, (uint16_t)(n % 2));
        buf_put_u16(&body, cases[i].params);
        for (uint16_t n = 0; n < cases[i].params; n++)
            buf_put_i32(&body, 0);
        buf_put_u16(&body, 0);
        assert_true(wire_read_bind(buf_span(&body), &bind));
        assert_int_equal(wire_bind_params(&bind, param), cases[i].fits);
        buf_fini(&body);
    }
}

static void lengths_below_null_are_malformed(void **state)
{
    struct wire_bind bind;
    (void)state;
    assert_false(wire_read_bind(span_of("\0\0\0\0\0\1\xff\xff\xff\xfe\0\0", 12), &bind));
    assert_false(wire_read_bind(span_of("\0\0\0\0\0\1\x7f\xff\xff\xff\0\0", 12), &bind));
    assert_false(wire_read_bind(span_of("\0\0\0\0\xff\xff\0\0", 8), &bind));
}

static void names_of_a_bind_come_first(void **state)
{
    struct span portal, statement;
    (void)state;
    assert_true(wire_peek_bind(span_of("p\0st\0\0", 6), &portal, &statement));
    assert_true(span_equal_cstr(portal, "p") && span_equal_cstr(statement, "st"));
    assert_false(wire_peek_bind(span_of("p\0st", 4), &portal, &statement));
    assert_false(wire_peek_bind(span_of("", 0), &portal, &statement));
}

/* ---- backend ---- */

static void error_fields(void **state)
{
    static const char body[] = "SERROR\0C42601\0Mwhat\0"; /* the last zero byte ends it */
    struct span value;
    (void)state;
    assert_true(wire_error_field(span_of(body, sizeof body), 'C', &value));
    assert_true(span_equal_cstr(value, "42601"));
    assert_false(wire_error_field(span_of(body, sizeof body), 'P', &value));
    for (size_t len = 0; len < 14; len++)
        assert_false(wire_error_field(span_of(body, len), 'C', &value));
    assert_false(wire_error_field(span_of("", 0), 'C', &value));
    assert_false(wire_error_field(span_of("\0C42601\0", 8), 'C', &value));
}

static void columns_are_checked(void **state)
{
    int32_t len;
    const uint8_t *data;
    struct reader rd = rd_init(span_of("\0\0\0\2xy\xff\xff\xff\xff\0\0\0\0\0\0\0\1", 18));
    (void)state;
    assert_true(wire_read_column(&rd, &len, &data) && len == 2 && memcmp(data, "xy", 2) == 0);
    assert_true(wire_read_column(&rd, &len, &data) && len == -1);
    assert_true(wire_read_column(&rd, &len, &data) && len == 0);
    assert_false(wire_read_column(&rd, &len, &data));
    assert_false(rd_done(&rd));
}

/* ---- building ---- */

static void what_is_built_is_read_back(void **state)
{
    static const uint32_t oids[] = {23, 0, 0xffffffff};
    struct buf buf = {0};
    struct wire_parse parse;
    struct wire_target target;
    struct wire_execute execute;
    struct span sql;
    (void)state;
    wire_put_parse(&buf, "name", span_cstr("select 1"), oids, 3);
    assert_true(wire_read_parse(body_of(&buf), &parse));
    assert_true(span_equal_cstr(parse.name, "name") && span_equal_cstr(parse.sql, "select 1"));
    assert_int_equal(parse.noids, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(get_u32(parse.oids + 4 * i), oids[i]);
    buf_clear(&buf);
    wire_put_target(&buf, 'D', 'P', span_cstr("x"));
    assert_true(wire_read_target(body_of(&buf), &target));
    assert_true(target.kind == 'P' && span_equal_cstr(target.name, "x"));
    buf_clear(&buf);
    wire_put_execute(&buf, span_cstr(""), -7);
    assert_true(wire_read_execute(body_of(&buf), &execute));
    assert_true(execute.portal.len == 0 && execute.max_rows == -7);
    buf_clear(&buf);
    wire_put_query(&buf, "begin");
    assert_true(wire_read_query(body_of(&buf), &sql) && span_equal_cstr(sql, "begin"));
    buf_clear(&buf);
    wire_put_empty(&buf, 'S');
    assert_int_equal(body_of(&buf).len, 0);
    buf_clear(&buf);
    wire_put_ready(&buf, 'T');
    assert_true(span_equal_cstr(body_of(&buf), "T"));
    buf_fini(&buf);
}

static void errors_leave_out_what_is_empty(void **state)
{
    struct buf buf = {0};
    struct span value;
    (void)state;
    wire_put_error(&buf, 'E',
                   &(struct wire_error){.severity = "ERROR", .sqlstate = "PS001", .message = "no", .detail = ""});
    assert_true(wire_error_field(body_of(&buf), 'S', &value) && span_equal_cstr(value, "ERROR"));
    assert_true(wire_error_field(body_of(&buf), 'V', &value) && span_equal_cstr(value, "ERROR"));
    assert_true(wire_error_field(body_of(&buf), 'C', &value) && span_equal_cstr(value, "PS001"));
    assert_false(wire_error_field(body_of(&buf), 'D', &value));
    assert_false(wire_error_field(body_of(&buf), 'H', &value));
    assert_int_equal(buf.ptr[buf.len - 1], 0);
    buf_fini(&buf);
}

static void text_rows(void **state)
{
    struct buf buf = {0};
    struct wire_field field;
    (void)state;
    wire_put_text_description(&buf, "name");
    struct reader rd = rd_init(body_of(&buf));
    assert_int_equal(wire_field_count(&rd), 1);
    wire_read_field(&rd, &field);
    assert_true(rd_done(&rd) && span_equal_cstr(field.name, "name"));
    assert_int_equal(field.type_oid, 25);
    assert_int_equal(field.typmod, -1);
    assert_int_equal(field.format, 0);
    buf_clear(&buf);
    wire_put_text_row(&buf, "v");
    assert_memory_equal(body_of(&buf).ptr, "\0\1\0\0\0\1v", 7);
    buf_clear(&buf);
    wire_put_text_row(&buf, NULL);
    assert_memory_equal(body_of(&buf).ptr, "\0\1\xff\xff\xff\xff", 6);
    buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_read_whole_or_not_at_all),
        cmocka_unit_test(bind_fields),
        cmocka_unit_test(format_counts),
        cmocka_unit_test(lengths_below_null_are_malformed),
        cmocka_unit_test(names_of_a_bind_come_first),
        cmocka_unit_test(error_fields),
        cmocka_unit_test(columns_are_checked),
        cmocka_unit_test(what_is_built_is_read_back),
        cmocka_unit_test(errors_leave_out_what_is_empty),
        cmocka_unit_test(text_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
