/* test_word.c - first words, mentions, and what a command does to the session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../parser/pgseek.h"

static const struct {
    const char *sql;
    enum pgseek_word word;
} words[] = {
    {"", PGSEEK_WORD_OTHER},
    {"begin", PGSEEK_WORD_BEGIN},
    {"START TRANSACTION", PGSEEK_WORD_START},
    {"commit;", PGSEEK_WORD_COMMIT},
    {"end", PGSEEK_WORD_END},
    {"rollback to x", PGSEEK_WORD_ROLLBACK},
    {"ABORT", PGSEEK_WORD_ABORT},
    {"savepoint s", PGSEEK_WORD_SAVEPOINT},
    {"release s", PGSEEK_WORD_RELEASE},
    {"prepare p as select 1", PGSEEK_WORD_PREPARE},
    {"execute p", PGSEEK_WORD_EXECUTE},
    {"deallocate p", PGSEEK_WORD_DEALLOCATE},
    {"discard all", PGSEEK_WORD_DISCARD},
    {"set x = 1", PGSEEK_WORD_SET},
    {"reset x", PGSEEK_WORD_RESET},
    {"show x", PGSEEK_WORD_SHOW},
    {"fetch x", PGSEEK_WORD_FETCH},
    {"move x", PGSEEK_WORD_MOVE},
    {"close x", PGSEEK_WORD_CLOSE},
    {"call p()", PGSEEK_WORD_CALL},
    {"do $$x$$", PGSEEK_WORD_DO},
    {"explain select", PGSEEK_WORD_EXPLAIN},
    {"create table", PGSEEK_WORD_CREATE},
    {"declare c", PGSEEK_WORD_DECLARE},
    {"SELECT 1", PGSEEK_WORD_SELECT},
    {"select*from t", PGSEEK_WORD_SELECT},
    {"select", PGSEEK_WORD_SELECT},
    {"selects 1", PGSEEK_WORD_OTHER},
    {"select1", PGSEEK_WORD_OTHER},
    {"sel", PGSEEK_WORD_OTHER},
    {"insert into t", PGSEEK_WORD_OTHER},
    {"zzz", PGSEEK_WORD_OTHER},
    {"(select 1)", PGSEEK_WORD_OTHER},
    {"\"set\" x", PGSEEK_WORD_OTHER},
    {"\303\251", PGSEEK_WORD_OTHER},
    {" \t\n-- set\n/* a /* b */ show */ commit", PGSEEK_WORD_COMMIT},
    {"/*x*/commit/*y*/", PGSEEK_WORD_COMMIT},
    {" ; ;commit", PGSEEK_WORD_COMMIT}, /* an empty statement in front is none */
    {"/* commit", PGSEEK_WORD_OTHER},
    {"-- commit", PGSEEK_WORD_OTHER},
    {"- commit", PGSEEK_WORD_OTHER},
};

static void first_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (pgseek_first_word(words[i].sql, strlen(words[i].sql)) != words[i].word)
            fail_msg("%s", words[i].sql);
}

/* At every place of a text of every length that the windows may see, in mixed case. */
static void mentions_are_found_anywhere(void **state)
{
    (void)state;
    for (size_t len = 6; len < 40; len++) {
        for (size_t at = 0; at + 6 <= len; at++) {
            char sql[48];
            memset(sql, "pgsek"[at % 5], sizeof sql);
            memcpy(sql + at, at % 2 ? "PgSeEk" : "pgseek", 6);
            assert_true(pgseek_mentions(sql, len));
            assert_false(pgseek_mentions(sql, at + 5)); /* cut within the word */
        }
    }
    assert_false(pgseek_mentions("", 0));
    assert_false(pgseek_mentions("pgsee", 5));
    assert_false(pgseek_mentions("pgseepgseepgseepkgseek", 22));
}

static void config_calls_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        bool may_be;
    } calls[] = {
        {"select set_config($1, $2, $3)", true},
        {"SELECT Pg_Catalog.SET_CONFIG($1,$2,$3)", true},
        {"select current_setting($1)", true},
        {"select CURRENT_SETTING($1, true)", true},
        {"select set_confg($1)", false},
        {"select current_settin($1)", false},
        {"select abalance from pgbench_accounts where aid = 1", false},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_int_equal(pgseek_may_be_config_call(calls[i].sql, strlen(calls[i].sql)), calls[i].may_be);

    char *sql = malloc(1025);
    memset(sql, ' ', 1025);
    memcpy(sql + 500, "set_config", 10);
    assert_true(pgseek_may_be_config_call(sql, 1024));
    assert_false(pgseek_may_be_config_call(sql, 1025));
    free(sql);
}

static const struct {
    const char *sql;
    struct pgseek_command command;
} commands[] = {
    {"begin isolation level serializable", {.kind = PGSEEK_CMD_BEGIN}},
    {"start transaction read only", {.kind = PGSEEK_CMD_BEGIN}},
    {"commit", {.kind = PGSEEK_CMD_COMMIT}},
    {"end work", {.kind = PGSEEK_CMD_COMMIT}},
    {"commit and chain", {.kind = PGSEEK_CMD_COMMIT, .and_chain = true}},
    {"commit transaction and no chain", {.kind = PGSEEK_CMD_COMMIT}},
    {"rollback work and chain", {.kind = PGSEEK_CMD_ROLLBACK, .and_chain = true}},
    {"abort", {.kind = PGSEEK_CMD_ROLLBACK}},
    {"commit prepared 'x'", {.kind = PGSEEK_CMD_COMMIT_PREPARED}},
    {"rollback prepared 'x'", {.kind = PGSEEK_CMD_COMMIT_PREPARED}},
    {"prepare transaction 'x'", {.kind = PGSEEK_CMD_PREPARE_TRANSACTION}},
    {"savepoint S1", {.kind = PGSEEK_CMD_SAVEPOINT, .name = "s1"}},
    {"savepoint \"S\"\"1\"", {.kind = PGSEEK_CMD_SAVEPOINT, .name = "S\"1"}},
    {"savepoint U&\"x\"", {.kind = PGSEEK_CMD_SAVEPOINT, .name = ""}},
    {"rollback to s1", {.kind = PGSEEK_CMD_ROLLBACK_TO, .name = "s1"}},
    {"rollback /* */ transaction to savepoint s1;", {.kind = PGSEEK_CMD_ROLLBACK_TO, .name = "s1"}},
    {"rollback to savepoint", {.kind = PGSEEK_CMD_ROLLBACK_TO, .name = "savepoint"}},
    {"release s1", {.kind = PGSEEK_CMD_RELEASE, .name = "s1"}},
    {"release savepoint s1", {.kind = PGSEEK_CMD_RELEASE, .name = "s1"}},
    {"release savepoint", {.kind = PGSEEK_CMD_RELEASE, .name = "savepoint"}},
    {"prepare Q (int) as select 1", {.kind = PGSEEK_CMD_PREPARE, .name = "q"}},
    {"prepare transaction as select 1", {.kind = PGSEEK_CMD_PREPARE, .name = "transaction"}},
    {"execute q(1, 'x')", {.kind = PGSEEK_CMD_EXECUTE, .name = "q"}},
    {"explain execute q", {.kind = PGSEEK_CMD_EXECUTE, .name = "q"}},
    {"explain (analyze, buffers) execute q(1)", {.kind = PGSEEK_CMD_EXECUTE, .name = "q"}},
    {"explain analyze verbose execute q", {.kind = PGSEEK_CMD_EXECUTE, .name = "q"}},
    {"explain select execute from q", {.kind = PGSEEK_CMD_OTHER}},
    {"create table t as execute Q(1)", {.kind = PGSEEK_CMD_EXECUTE, .name = "q", .into = true}},
    {"CREATE TEMP TABLE t (a, b) ON COMMIT DROP AS/**/EXECUTE q WITH NO DATA",
     {.kind = PGSEEK_CMD_EXECUTE, .name = "q", .into = true}},
    {"explain (costs off) create table t as execute q", {.kind = PGSEEK_CMD_EXECUTE, .name = "q", .into = true}},
    {"explain analyze create table t as execute q; select 1",
     {.kind = PGSEEK_CMD_EXECUTE, .name = "q", .into = true, .several = true}},
    {"create view v as select 1; execute q", {.kind = PGSEEK_CMD_OTHER, .several = true}},
    {"create view v as; execute q", {.kind = PGSEEK_CMD_OTHER, .several = true}},
    {"create trigger t after insert on x execute function q()", {.kind = PGSEEK_CMD_OTHER}},
    {"deallocate q", {.kind = PGSEEK_CMD_DEALLOCATE, .name = "q"}},
    {"deallocate prepare q", {.kind = PGSEEK_CMD_DEALLOCATE, .name = "q"}},
    {"deallocate prepare", {.kind = PGSEEK_CMD_DEALLOCATE, .name = "prepare"}},
    {"deallocate all", {.kind = PGSEEK_CMD_DEALLOCATE_ALL}},
    {"deallocate prepare all", {.kind = PGSEEK_CMD_DEALLOCATE_ALL}},
    {"deallocate \"all\"", {.kind = PGSEEK_CMD_DEALLOCATE, .name = "all"}},
    {"discard all", {.kind = PGSEEK_CMD_DISCARD_ALL}},
    {"discard plans", {.kind = PGSEEK_CMD_OTHER}},
    {"set search_path = x", {.kind = PGSEEK_CMD_SET}},
    {"reset search_path", {.kind = PGSEEK_CMD_RESET}},
    {"reset all", {.kind = PGSEEK_CMD_RESET_ALL}},
    {"fetch forward 5 from c1", {.kind = PGSEEK_CMD_FETCH, .name = "c1"}},
    {"fetch c1", {.kind = PGSEEK_CMD_FETCH, .name = "c1"}},
    {"MOVE FORWARD 2 \"C1\"; ", {.kind = PGSEEK_CMD_FETCH, .name = "C1"}},
    {"close c1", {.kind = PGSEEK_CMD_CLOSE, .name = "c1"}},
    {"close all", {.kind = PGSEEK_CMD_CLOSE_ALL}},
    {"select 1", {.kind = PGSEEK_CMD_OTHER}},
    {"commit; begin", {.kind = PGSEEK_CMD_COMMIT, .several = true}},
    {";commit;;", {.kind = PGSEEK_CMD_COMMIT}},
    {"commit; -- x", {.kind = PGSEEK_CMD_COMMIT}},
    {"select 1; commit", {.kind = PGSEEK_CMD_OTHER, .several = true}},
    {"savepoint s; select 1", {.kind = PGSEEK_CMD_SAVEPOINT, .several = true, .name = "s"}},
    {"commit; select 'open", {.kind = PGSEEK_CMD_OTHER}}, /* the server refuses the whole text */
};

static void commands_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct pgseek_command got;
        const struct pgseek_command *want = &commands[i].command;
        pgseek_command_read(commands[i].sql, strlen(commands[i].sql), true, &got);
        if (got.kind != want->kind || got.and_chain != want->and_chain || got.several != want->several ||
            got.into != want->into || strcmp(got.name, want->name) != 0)
            fail_msg("%s: kind %d, chain %d, several %d, name %s", commands[i].sql, (int)got.kind, got.and_chain,
                     got.several, got.name);
    }
}

static const struct {
    const char *sql;
    const char *names; /* with a blank behind each */
    bool strings_off;
} executes[] = {
    {.sql = "", .names = ""},
    {.sql = "select 1", .names = ""},
    {.sql = "execute p", .names = "p "},
    {.sql = "execute p; execute q(1);; explain analyze execute \"R\"", .names = "p q R "},
    {.sql = ";;select 1; /* ; */ execute p -- ;\n", .names = "p "},
    {.sql = "create table t as execute p; explain create table u as execute q", .names = "p q "},
    {.sql = "select 'x; execute p'; grant execute on function f() to r", .names = ""},
    {.sql = "select execute; explain select 1; create view v as; execute p", .names = "p "},
    {.sql = "execute p; select 'open; execute q", .names = "p "},
    {.sql = "select '\\'; execute p; --'", .names = "p "},
    {.sql = "select '\\'; execute p; --'", .names = "", .strings_off = true},
    {.sql = "select '\\''; execute p", .names = "p ", .strings_off = true},
};

static void executes_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof executes / sizeof *executes; i++) {
        const char *sql = executes[i].sql;
        char names[64] = "";
        size_t at = 0;
        struct pgseek_command command;
        while (pgseek_command_next_execute(sql, strlen(sql), !executes[i].strings_off, &at, &command)) {
            assert_true(pgseek_mentions_execute(sql, strlen(sql)));
            strcat(strcat(names, command.name), " ");
        }
        if (strcmp(names, executes[i].names) != 0)
            fail_msg("%s: %s", sql, names);
    }
    assert_true(pgseek_mentions_execute("xExEcUtEx", 9));
    assert_false(pgseek_mentions_execute("xExEcUt", 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_words),
        cmocka_unit_test(mentions_are_found_anywhere),
        cmocka_unit_test(config_calls_are_found),
        cmocka_unit_test(commands_are_read),
        cmocka_unit_test(executes_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
