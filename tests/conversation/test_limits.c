/* test_limits.c - a page read in pieces: every LIMIT, number of rows and row limit of Execute, beside the server's own
 * answers to the original statement. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "talk.h"

#define RUNS 4 /* Executes of one portal */

/* Four Executes of at most `fetch` rows each. */
static void write_script(char *script, size_t size, const char *sql, int fetch)
{
    int len = snprintf(script, size, "P a %s\nB x a\nD P x\n", sql);
    for (int i = 0; i < RUNS; i++)
        len += snprintf(script + len, size - (size_t)len, "E x %d\n", fetch);
    snprintf(script + len, size - (size_t)len, "S");
}

/* What the client received, without what pgseek adds. */
static char *original_text(const struct talk_result *result)
{
    struct span all = buf_span(&result->to_client);
    return talk_print(span_of(all.ptr + result->greeting, all.len - result->greeting), 0, true);
}

static void compare(const char *page, const char *original, int rows, int fetch)
{
    char script[512];
    char direct_script[512];
    struct talk talk = {.name = page, .script = script, .server = {.rows = rows}};
    struct talk direct = {.name = original, .script = direct_script, .server = {.rows = rows}};
    struct talk_cut whole = {0};
    struct talk_result got;
    struct talk_result wanted;
    write_script(script, sizeof script, page, fetch);
    write_script(direct_script, sizeof direct_script, original, fetch);
    talk_run(&talk, &whole, &got);
    talk_directly(&direct, &wanted);
    char *got_text = original_text(&got);
    char *wanted_text = original_text(&wanted);
    if (strcmp(got_text, wanted_text) != 0)
        print_error("%s: %d rows, %d a run\n", page, rows, fetch);
    assert_string_equal(got_text, wanted_text);
    assert_int_equal(got.end, TALK_OPEN);
    free(got_text);
    free(wanted_text);
    talk_result_fini(&got);
    talk_result_fini(&wanted);
}

static void each_case(void (*check)(int limit, int rows, int fetch))
{
    for (int limit = 0; limit <= 5; limit++)
        for (int rows = 0; rows <= limit + 5; rows++)
            for (int fetch = -1; fetch <= limit + 2; fetch++)
                check(limit, rows, fetch);
}

static void check_first(int limit, int rows, int fetch)
{
    char sql[128];
    snprintf(sql, sizeof sql, "select id, body from posts order by id limit %d /* pgseek */", limit);
    compare(sql, sql, rows, fetch);
}

static void check_offset(int limit, int rows, int fetch)
{
    char sql[128];
    snprintf(sql, sizeof sql, "select body from posts order by id desc limit %d offset 2 /* pgseek */", limit);
    compare(sql, sql, rows, fetch);
}

/* The last rows in their order are an OFFSET that somebody has counted. */
static void check_last(int limit, int rows, int fetch)
{
    char page[128];
    char original[128];
    snprintf(page, sizeof page, "select id from posts order by id limit %d /* pgseek page=last */", limit);
    snprintf(original, sizeof original, "select id from posts order by id limit %d offset %d", limit,
             rows > limit ? rows - limit : 0);
    compare(page, original, rows, fetch);
}

static void first_pages(void **state)
{
    (void)state;
    each_case(check_first);
}

static void pages_by_offset(void **state)
{
    (void)state;
    each_case(check_offset);
}

static void last_pages(void **state)
{
    (void)state;
    each_case(check_last);
}

/* ---- walks ---- */

/* Appends the ids of the rows that came in to `ids`. */
static void note_rows(const struct talk_result *result, char *ids, size_t size)
{
    char *text = original_text(result);
    size_t len = strlen(ids);
    for (const char *at = strstr(text, "D("); at; at = strstr(at + 1, "D("))
        len += (size_t)snprintf(ids + len, size - len, "%d ", atoi(at + 2));
    free(text);
}

/* Walks forward to the end and back again: every row once each way, whatever the page's size. */
static void walk(int limit, int rows)
{
    char sql[128];
    char script[2048] = "";
    char ids[512] = "";
    char wanted[512] = "";
    int pages = (rows + limit - 1) / limit;
    struct talk talk = {.name = "walk", .script = script, .server = {.rows = rows}};
    struct talk_cut whole = {0};
    struct talk_result result;
    for (int i = 0; i < 2 * pages - 1; i++) {
        const char *cursor = i == 0 ? "" : i < pages ? "{next}" : "{prev}";
        snprintf(sql, sizeof sql, "Q select id from posts order by id limit %d /* pgseek cursor='%s' */\nwait\n", limit,
                 cursor);
        strcat(script, sql);
    }
    for (int page = 0; page < 2 * pages - 1; page++) {
        int first = (page < pages ? page : 2 * pages - 2 - page) * limit;
        for (int i = first; i < first + limit && i < rows; i++)
            snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%d ", i + 1);
    }
    talk_run(&talk, &whole, &result);
    note_rows(&result, ids, sizeof ids);
    assert_string_equal(ids, wanted);
    talk_result_fini(&result);
}

static void walks_forward_and_back(void **state)
{
    (void)state;
    for (int limit = 1; limit <= 4; limit++)
        for (int rows = 1; rows <= 7; rows++)
            walk(limit, rows);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_pages),
        cmocka_unit_test(pages_by_offset),
        cmocka_unit_test(last_pages),
        cmocka_unit_test(walks_forward_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return talk_main(run);
}
