/* test_variable.c - statements about our variables are read whole, and found where they hide in larger ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../parser/arena.h"
#include "../../parser/pgseek.h"

/* A variable as one line: verb name [value] [local] [AS output] [n]. */
static void put_arg(struct text *line, const struct pgseek_arg *arg)
{
    if (arg->kind == PGSEEK_ARG_TEXT)
        text_format(line, " '%s'", arg->text);
    else if (arg->kind == PGSEEK_ARG_NULL)
        text_puts(line, " null");
    else if (arg->kind == PGSEEK_ARG_PARAM)
        text_format(line, " $%d", arg->param);
}

static void put_variable(struct text *line, const struct pgseek_variable *variable)
{
    static const char *const verbs[] = {"set", "set_local", "reset", "show", "set_config", "current_setting"};
    text_puts(line, verbs[variable->verb]);
    put_arg(line, &variable->name);
    put_arg(line, &variable->value);
    put_arg(line, &variable->local);
    if (variable->output_name[0])
        text_format(line, " as %s", variable->output_name);
    if (variable->param_count)
        text_format(line, " [%d]", variable->param_count);
}

static const struct {
    const char *sql;
    const char *line;
} goods[] = {
    {"set pgseek.cursor = 'AbC'", "set 'cursor' 'AbC'"},
    {"SET SESSION PgSeek.Cursor TO 'AbC';", "set 'cursor' 'AbC'"},
    {"set local pgseek.cursor='AbC'", "set_local 'cursor' 'AbC'"},
    {"/* a */ set -- b\n pgseek . cursor = /* c */ 'x' -- d", "set 'cursor' 'x'"},
    {"set \"PGSEEK\".\"Cursor\" = ''", "set 'cursor' ''"},
    {"set pgseek.strict = on", "set 'strict' 'on'"},
    {"set pgseek.strict = TRUE", "set 'strict' 'true'"},
    {"set pgseek.strict = 1", "set 'strict' '1'"},
    {"set pgseek.page to LAST", "set 'page' 'last'"},
    {"set pgseek.walk to \"W\"", "set 'walk' 'W'"},
    {"set pgseek.cursor = E'a\\'b'", "set 'cursor' 'a'b'"},
    {"set pgseek.cursor = U&'\\0061'", "set 'cursor' 'a'"},
    {"set pgseek.cursor = $$a$$", "set 'cursor' 'a'"},
    {"set pgseek.cursor = 'NULL'", "set 'cursor' 'NULL'"},
    {"set pgseek.paginate = on", "set 'paginate' 'on'"},
    {"set pgseek.cursor to default", "set 'cursor'"},
    {"set session pgseek.cursor = default", "set 'cursor'"},
    {"set local pgseek.cursor to default", "set_local 'cursor'"},
    {"reset pgseek.cursor", "reset 'cursor'"},
    {";; reset PGSEEK.CURSOR ;;", "reset 'cursor'"},
    {"show pgseek.cursor", "show 'cursor'"},
    {"show pgseek.next_cursor", "show 'next_cursor'"},
    {"SHOW pgseek.page_id;", "show 'page_id'"},
    {"select set_config('pgseek.cursor', 'x', true)", "set_config 'cursor' 'x' 't' as set_config"},
    {"SELECT pg_catalog.set_config('PGSEEK.Cursor', 'x', 'off');", "set_config 'cursor' 'x' 'f' as set_config"},
    {"select set_config('pgseek.cursor', null, null)", "set_config 'cursor' null 'f' as set_config"},
    {"select set_config('pgseek.cursor', $1, false)", "set_config 'cursor' $1 'f' as set_config [1]"},
    {"select set_config($1, $2, $3)", "set_config $1 $2 $3 as set_config [3]"},
    {"SELECT set_config($1::VARCHAR, $2::VARCHAR, $3::BOOLEAN) AS set_config_1",
     "set_config $1 $2 $3 as set_config_1 [3]"},
    {"select set_config(cast('pgseek.page' as text), 'last'::pg_catalog.text, 't'::bool) \"Out\"",
     "set_config 'page' 'last' 't' as Out"},
    {"select set_config('pgseek.cursor', ('tok'), ('t'::bool))", "set_config 'cursor' 'tok' 't' as set_config"},
    {"select set_config((('pgseek.cursor'))::text, ('a')::varchar, (true))",
     "set_config 'cursor' 'a' 't' as set_config"},
    {"select set_config($1::character varying, $2, true)", "set_config $1 $2 't' as set_config [2]"},
    {"select set_config(E'pgseek\\x2ecursor', '', true)", "set_config 'cursor' '' 't' as set_config"},
    {"select set_config('pgseek.'\n'cursor', '', true)", "set_config 'cursor' '' 't' as set_config"},
    {"select current_setting('pgseek.next_cursor')", "current_setting 'next_cursor' as current_setting"},
    {"select current_setting('pgseek.has_more', true) as more", "current_setting 'has_more' 't' as more"},
    {"select current_setting($1)", "current_setting $1 as current_setting [1]"},
    {"select current_setting($1, $2)", "current_setting $1 $2 as current_setting [2]"},
};

static void statements_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof goods / sizeof *goods; i++) {
        struct pgseek_variable variable;
        struct pgseek_error error = {.code = PGSEEK_PS000};
        struct text line = {0};
        enum pgseek_found found = pgseek_variable_read(goods[i].sql, strlen(goods[i].sql), &variable, &error);
        if (found != PGSEEK_FOUND_SOME)
            fail_msg("%s: %d, %s %s", goods[i].sql, (int)found, error.detail, error.hint);
        put_variable(&line, &variable);
        assert_string_equal(line.ptr, goods[i].line);
        text_fini(&line);
        pgseek_variable_fini(&variable);
    }
}

static const char *const nones[] = {
    "",
    "select 1",
    "set search_path = pgseek",
    "set pgseek = 'x'",
    "reset pgseek",
    "show pgseek",
    "set x.pgseek = 'y'",
    "select * from t where body like '%pgseek.cursor%'",
    "select 'set pgseek.cursor = 1'",
    "select 1 -- set pgseek.cursor = 'x'",
    "/* pgseek */ select 1",
    "select pgseek.id from pgseek",
    "insert into pgseek.pages values (1)",
    "select set_config('app.x', 'pgseek.cursor', true)",
    "select set_config('pgseekx.cursor', 'x', true)",
    "select set_config('pgseek', 'x', true)",
    "select my_set_config('pgseek.cursor', 'x', true)",
    "select \"SET_CONFIG\"('pgseek.cursor', 'x', true)",
    "select set_config",
    "select set_config from t where pgseek = 1",
    "select set_config($1, $2, $3), x from t", /* cannot be told before it is bound */
    "select set_config($1 || 'x', $2, $3)",
    "select current_setting('search_path')",
    "select current_setting($1); select 1",
    "alter role r set pgseek.cursor = 'x'",
    "create function f() returns int language sql set pgseek.page = 'last' as $$ select 1 $$",
    "do $$ begin perform set_config('pgseek.cursor', 'x', true); end $$",
    "set pgseek.cursor = 'open",
    "set pgseek.cursor = 1 /* open",
};

static void other_statements_are_left_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nones / sizeof *nones; i++) {
        struct pgseek_variable variable;
        struct pgseek_error error = {.code = PGSEEK_PS000};
        if (pgseek_variable_read(nones[i], strlen(nones[i]), &variable, &error) != PGSEEK_FOUND_NONE)
            fail_msg("%s: %s", nones[i], error.detail);
    }
}

static const struct {
    const char *sql;
    const char *says;
} bads[] = {
    {"set pgseek.curser = 'x'", "Did you mean \"cursor\"?"},
    {"show pgseek.nothing", "\"nothing\" is no option"},
    {"set pgseek.next_cursor = 'x'", "Read it with SHOW"},
    {"reset pgseek.rows", "Read it with SHOW"},
    {"set pgseek.active = 'x'", "pgseek's own"},
    {"show pgseek.active", "pgseek's own"},
    {"set pgseek.page = '2'", "first, last"},
    {"set pgseek.cursor = a, b", "cannot be read"},
    {"set pgseek.cursor from current", "cannot be read"},
    {"set pgseek.cursor = null", "cannot be read"},
    {"set pgseek.cursor = $1", "cannot be read"},
    {"set pgseek.cursor = -1", "cannot be read"},
    {"set pgseek.cursor =", "cannot be read"},
    {"set pgseek.cursor 'x'", "cannot be read"},
    {"set pgseek.a.b = 'x'", "cannot be read"},
    {"reset pgseek.cursor x", "cannot be read"},
    {"begin; set local pgseek.cursor = 'x'", "Send it alone"},
    {"set pgseek.cursor = 'x'; select 1", "Send it alone"},
    {"select 1; show pgseek.next_cursor", "Send it alone"},
    {"select set_config('pgseek.cursor', 'x', true), y from t", "Send it alone"},
    {"select set_config('pgseek.cursor', 'x', true) where true", "Send it alone"},
    {"select * from set_config('pgseek.cursor', 'x', true)", "Send it alone"},
    {"select x, set_config(('PGSEEK.cursor'), 'x', true)", "Send it alone"},
    {"select set_config(setting_name => 'pgseek.cursor', new_value => 'x', is_local => true)", "Send it alone"},
    {"select set_config('pgseek.' || 'cursor', 'x', true)", "Send it alone"},
    {"select set_config('pgseek.cursor', 'x')", "Send it alone"},
    {"select set_config('pgseek.cursor', 'x', 'perhaps')", "Send it alone"},
    {"select current_setting('pgseek.cursor') || 'x'", "Send it alone"},
    {"with x as (select pg_catalog.set_config('pgseek.cursor', 'x', true)) select * from x", "Send it alone"},
    {"prepare p as select set_config('pgseek.cursor', $1, true)", "Send it alone"},
    {"select set_config('pgseek.curser', 'x', true)", "Did you mean \"cursor\"?"},
    {"select set_config('pgseek.', 'x', true)", "is no option"},
    {"select set_config('pgseek.page', 'x', true)", "first, last"},
    {"select set_config('pgseek.rows', '1', true)", "Read it with SHOW"},
};

static void what_cannot_be_kept_track_of_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        struct pgseek_variable variable;
        struct pgseek_error error;
        enum pgseek_found found = pgseek_variable_read(bads[i].sql, strlen(bads[i].sql), &variable, &error);
        if (found != PGSEEK_FOUND_BAD)
            fail_msg("%s: %d", bads[i].sql, (int)found);
        assert_int_equal(error.code, PGSEEK_PS000);
        assert_true(error.message[0] && error.detail[0] && error.hint[0]);
        if (!strstr(error.detail, bads[i].says) && !strstr(error.hint, bads[i].says))
            fail_msg("%s: %s / %s", bads[i].sql, error.detail, error.hint);
        assert_null(variable.name.text);
    }
}

/* A hostile text: calls in calls must not make the search for a name quadratic. Ends by the test's own time-out. */
static void nested_calls_are_searched_in_linear_time(void **state)
{
    (void)state;
    struct text sql = {0};
    struct pgseek_variable variable;
    struct pgseek_error error;
    text_puts(&sql, "select pgseek, ");
    for (size_t i = 0; i < 100000; i++)
        text_puts(&sql, "set_config(");
    assert_int_equal(pgseek_variable_read(sql.ptr, sql.len, &variable, &error), PGSEEK_FOUND_NONE);
    text_fini(&sql);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_are_read),
        cmocka_unit_test(other_statements_are_left_alone),
        cmocka_unit_test(what_cannot_be_kept_track_of_is_refused),
        cmocka_unit_test(nested_calls_are_searched_in_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
