/* test_facts.c - the question to the catalog in rounds, and the rows of its answers: what is taken, what is refused. */
#include "../../parser/facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

#define RELATION "{public,r,false,true,true,NULL,NULL,NULL}"
#define COLUMN "{25,true,true,100,false,\"ci i 1.2\"}"
#define TYPE "{25,b,true,pg_catalog,<,pg_catalog,<=,pg_catalog,=,pg_catalog,>=,pg_catalog,>,NULL}"
#define NO_ORDER "{114,b,true,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL}"

/* Two relations, two functions. */
static struct pgseek_facts *ask(void)
{
    enum pgseek_reason reason;
    struct pgseek_query *query =
        fixture_query("SELECT random(), lower(a) FROM post, blog.post p ORDER BY id LIMIT 1", &reason);
    assert_non_null(query);
    struct pgseek_facts *facts = pgseek_facts_new(query);
    assert_non_null(facts);
    pgseek_query_free(query);
    return facts;
}

static bool take(struct pgseek_facts *facts, const char *what, const char *ord, const char *rel, const char *num,
                 const char *name, const char *fields)
{
    const char *row[] = {what, ord, rel, num, name, fields};

    return pgseek_facts_row(facts, row, PGSEEK_FACTS_COLUMNS);
}

/* Where a character may end in a backslash, quoting by bytes would end a literal: nothing beyond ASCII is taken. */
static void what_cannot_be_quoted_is_noticed(void **state)
{
    static const struct {
        bool has_ascii_trails;
        const char *name, *fields;
        bool are_readable;
    } cases[] = {
        {true, "post", RELATION, true},
        {true, "\223\\", RELATION, false},
        {true, "post", "{\223\\,r,false,true,true,NULL,NULL,NULL}", false},
        {false, "\223\\", RELATION, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct pgseek_reading reading = {.standard_strings = true, .has_ascii_trails = cases[i].has_ascii_trails};
        static const char sql[] = "SELECT a FROM post ORDER BY id LIMIT 1";
        enum pgseek_reason reason;
        struct pgseek_query *query = pgseek_query_new(sql, strlen(sql), &reading, &reason);
        assert_non_null(query);
        struct pgseek_facts *facts = pgseek_facts_new(query);
        assert_true(take(facts, "R", "1", "100", NULL, cases[i].name, cases[i].fields));
        assert_int_equal(facts_are_readable(facts), cases[i].are_readable);
        const struct pgseek_column column = {.name = "\223\\"};
        facts_note_names(facts, &(struct pgseek_description){.columns = &column, .ncolumns = 1});
        assert_int_equal(facts_are_readable(facts), !cases[i].has_ascii_trails);
        struct pgseek_plan *plan = pgseek_plan_new(query, facts, NULL, NULL, &reason);
        assert_int_equal(reason == PGSEEK_REASON_ENCODING, cases[i].has_ascii_trails);
        pgseek_plan_free(plan);
        pgseek_facts_free(facts);
        pgseek_query_free(query);
    }
}

/* ---- the question ---- */

static size_t count_asked(const struct pgseek_facts *facts)
{
    size_t count = 0;

    for (size_t list = 0; list < PGSEEK_ASKED_LISTS; list++)
        count += pgseek_facts_asked_count(facts, (enum pgseek_asked)list);
    return count;
}

static void the_text_is_asked_for_first(void **state)
{
    struct pgseek_facts *facts = ask();
    size_t ord;

    (void)state;
    assert_true(facts_is_asking(facts));
    assert_int_equal(pgseek_facts_asked_count(facts, PGSEEK_ASKED_RELATION), 2);
    assert_null(pgseek_facts_asked(facts, PGSEEK_ASKED_SCHEMA, 0));
    assert_string_equal(pgseek_facts_asked(facts, PGSEEK_ASKED_SCHEMA, 1), "blog");
    assert_string_equal(pgseek_facts_asked(facts, PGSEEK_ASKED_RELATION, 1), "post");
    assert_int_equal(pgseek_facts_asked_count(facts, PGSEEK_ASKED_FUNCTION), 2);
    assert_null(facts_ask_relation(facts, "blog", "post", &ord)); /* it is asked already */
    assert_int_equal(ord, 2);
    assert_int_equal(count_asked(facts), 6);
    pgseek_facts_free(facts);
}

/* What was asked for and did not come does not exist; what is new is asked alone, and counted on. */
static void rounds_go_on(void **state)
{
    struct pgseek_facts *facts = ask();
    size_t ord;
    size_t count;

    (void)state;
    assert_true(take(facts, "R", "1", "77", NULL, "post", RELATION));
    pgseek_facts_answered(facts);
    assert_false(facts_is_asking(facts));
    assert_int_equal(count_asked(facts), 0);
    assert_int_equal(facts_ask_relation(facts, NULL, "post", &ord)->oid, 77);
    assert_null(facts_ask_relation(facts, "blog", "post", &ord));
    assert_null(facts_ask_function(facts, "lower"));
    assert_false(facts_is_asking(facts));

    assert_null(facts_ask_relation(facts, NULL, "tag", &ord));
    assert_int_equal(ord, 3);
    assert_null(facts_ask_type(facts, 25));
    assert_null(facts_ask_type(facts, 25));
    assert_null(facts_ask_type(facts, 0));
    assert_null(facts_ask_collation(facts, NULL, "ci"));
    assert_null(facts_ask_collation(facts, "public", "ci"));
    assert_int_equal(pgseek_facts_asked_count(facts, PGSEEK_ASKED_RELATION), 1);
    assert_int_equal(pgseek_facts_asked_count(facts, PGSEEK_ASKED_TYPE), 1);
    assert_string_equal(pgseek_facts_asked(facts, PGSEEK_ASKED_TYPE, 0), "25");
    assert_int_equal(pgseek_facts_asked_count(facts, PGSEEK_ASKED_COLLATION), 2);

    assert_true(take(facts, "C", "1", "78", "1", "id", COLUMN));
    assert_true(take(facts, "L", "2", "900", NULL, "ci", "{false,\"ci i 1.2\"}"));
    assert_true(take(facts, "R", "1", "78", NULL, "tag", RELATION));
    assert_true(take(facts, "T", "1", "25", NULL, "pg_catalog.text", TYPE));
    pgseek_facts_answered(facts);
    assert_false(facts_is_asking(facts));
    assert_int_equal(facts_ask_relation(facts, NULL, "tag", &ord)->oid, 78);
    assert_int_equal(facts_relation(facts, 3)->oid, 78);
    const struct facts_column *columns = facts_columns(facts, 3, &count);
    assert_int_equal(count, 1);
    assert_ptr_equal(columns[0].type, facts_ask_type(facts, 25));
    assert_null(facts_ask_collation(facts, NULL, "ci"));
    assert_int_equal(facts_ask_collation(facts, "public", "ci")->oid, 900);
    assert_string_equal(facts_ask_collation(facts, "public", "ci")->identity, "ci i 1.2");
    assert_false(facts_is_asking(facts));
    pgseek_facts_free(facts);
}

static void texts_are_described_one_a_round(void **state)
{
    static const uint32_t oids[] = {23};
    char name[] = "k";
    struct pgseek_column columns[] = {{.name = name, .type_oid = 25, .typmod = -1}};
    const struct pgseek_description description = {oids, 1, columns, 1};
    struct pgseek_facts *facts = ask();
    size_t len;

    (void)state;
    pgseek_facts_answered(facts);
    assert_null(pgseek_facts_probe(facts, &len));
    assert_null(facts_ask_description(facts, "SELECT 1, and more", 8));
    assert_null(facts_ask_description(facts, "SELECT 2", 8)); /* in another round */
    assert_true(facts_is_asking(facts));
    assert_string_equal(pgseek_facts_probe(facts, &len), "SELECT 1");
    assert_int_equal(len, 8);
    assert_true(pgseek_facts_described(facts, &description));
    pgseek_facts_answered(facts);
    name[0] = 'x'; /* it was copied */
    const struct pgseek_description *described = facts_ask_description(facts, "SELECT 1", 8);
    assert_string_equal(described->columns[0].name, "k");
    assert_int_equal(described->param_oids[0], 23);
    assert_false(facts_is_asking(facts));

    assert_null(facts_ask_description(facts, "SELECT 2", 8));
    assert_string_equal(pgseek_facts_probe(facts, &len), "SELECT 2");
    pgseek_facts_answered(facts); /* the server refused it */
    assert_null(facts_ask_description(facts, "SELECT 2", 8));
    assert_null(pgseek_facts_probe(facts, &len));
    assert_false(facts_is_asking(facts));
    assert_ptr_equal(facts_ask_description(facts, "SELECT 1", 8), described);
    pgseek_facts_free(facts);
}

static void questions_are_bounded(void **state)
{
    struct pgseek_facts *facts = ask();
    char name[32];
    size_t ord = 0;

    (void)state;
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "n%d", i);
        (void)facts_ask_relation(facts, NULL, name, &ord);
        (void)facts_ask_function(facts, name);
        (void)facts_ask_type(facts, 50000 + (uint32_t)i);
        (void)facts_ask_collation(facts, NULL, name);
    }
    assert_true(count_asked(facts) < 4000);
    assert_int_equal(ord, 0);
    assert_int_equal(facts_ask_function(facts, name)->volatility, 'v'); /* the worst */
    pgseek_facts_answered(facts);
    (void)facts_ask_relation(facts, NULL, name, &ord);
    assert_int_equal(facts_ask_function(facts, name)->volatility, 'v');
    assert_false(facts_is_asking(facts));
    pgseek_facts_free(facts);
}

/* ---- rows ---- */

static void rows_are_taken(void **state)
{
    struct pgseek_facts *facts = ask();
    size_t count;

    (void)state;
    assert_true(take(facts, "C", "1", "77", "1", "title", COLUMN));
    assert_true(take(facts, "C", "2", "78", "3", "title", "{16410,false,false,0,NULL,NULL}"));
    assert_true(take(facts, "F", "1", NULL, NULL, "random", "{v,false,false,false,true,NULL}"));
    assert_true(take(facts, "O", "1", NULL, NULL, "foreign operators", "{true}"));
    assert_true(take(facts, "R", "1", "77", NULL, "post", RELATION));
    assert_true(take(facts, "R", "2", "78", NULL, "p", "{public,v,false,true,true,\" SELECT 1;\",733,\"2 0\"}"));
    assert_true(take(facts, "T", "1", "25", NULL, "pg_catalog.text", TYPE));
    assert_true(take(facts, "T", "1", "16410", NULL, "pg_catalog.text", TYPE)); /* a domain over it */
    assert_true(take(facts, "T", "1", "114", NULL, "pg_catalog.json", NO_ORDER));
    assert_true(take(facts, "U", "1", "4294967295", NULL, "post_pkey", "{\"3 1\",true,false,true}"));
    pgseek_facts_answered(facts);

    assert_int_equal(facts_relation(facts, 1)->kind, 'r');
    assert_string_equal(facts_relation(facts, 1)->schema, "public");
    assert_null(facts_relation(facts, 1)->definition);
    assert_int_equal(facts_relation(facts, 1)->npartition_attnums, 0);
    assert_string_equal(facts_relation(facts, 2)->definition, " SELECT 1;");
    assert_string_equal(facts_relation(facts, 2)->rule_xmin, "733");
    assert_int_equal(facts_relation(facts, 2)->npartition_attnums, 2);
    assert_int_equal(facts_relation(facts, 2)->partition_attnums[0], 2);
    assert_null(facts_relation(facts, 3));

    const struct facts_column *columns = facts_columns(facts, 1, &count);
    assert_int_equal(count, 1);
    assert_true(columns[0].not_null && columns[0].may_select && !columns[0].deterministic);
    assert_string_equal(columns[0].collation, "ci i 1.2");
    columns = facts_columns(facts, 2, &count);
    assert_int_equal(count, 1);
    assert_int_equal(columns[0].attnum, 3);
    assert_int_equal(columns[0].type_oid, 16410);
    assert_true(!columns[0].not_null && !columns[0].may_select && columns[0].deterministic);
    assert_string_equal(columns[0].collation, "");
    assert_ptr_equal(columns[0].type, facts_ask_type(facts, 25));
    assert_string_equal(columns[0].type->operator[FACTS_GREATER_EQUAL].name, ">=");
    assert_string_equal(columns[0].type->labels, "");
    assert_null(facts_ask_type(facts, 114)->operator[FACTS_LESS].name);
    assert_null(facts_columns(facts, 3, &count));

    const struct facts_unique *uniques = facts_uniques(facts, 1, &count);
    assert_int_equal(count, 1);
    assert_int_equal(uniques[0].index_oid, 4294967295U);
    assert_int_equal(uniques[0].nattnums, 2);
    assert_int_equal(uniques[0].attnums[0], 3);
    assert_null(facts_uniques(facts, 2, &count));
    assert_int_equal(facts_ask_function(facts, "random")->volatility, 'v');
    assert_true(facts_ask_function(facts, "random")->is_builtin);
    assert_true(facts_has_foreign_operators(facts));
    pgseek_facts_free(facts);
}

static void array_elements_are_unescaped(void **state)
{
    struct pgseek_facts *facts = ask();

    (void)state;
    assert_true(take(facts, "R", "1", "77", NULL, "t", "{\"a \\\"b\\\", {c}\\\\\",r,false,true,true,NULL,NULL,NULL}"));
    assert_string_equal(facts_relation(facts, 1)->schema, "a \"b\", {c}\\");
    /* NULL in quotes is a name. */
    assert_true(take(facts, "R", "2", "78", NULL, "t", "{\"NULL\",r,false,true,true,NULL,NULL,NULL}"));
    assert_string_equal(facts_relation(facts, 2)->schema, "NULL");
    pgseek_facts_free(facts);
}

static void other_rows_are_refused(void **state)
{
    static const char *const rows[][PGSEEK_FACTS_COLUMNS] = {
        {NULL, "1", "77", NULL, "t", RELATION},
        {"X", "1", "77", NULL, "t", RELATION},
        {"RR", "1", "77", NULL, "t", RELATION},
        {"R", NULL, "77", NULL, "t", RELATION},
        {"R", "one", "77", NULL, "t", RELATION},
        {"R", "0", "77", NULL, "t", RELATION}, /* nobody asked for these */
        {"R", "3", "77", NULL, "t", RELATION},
        {"L", "1", "77", NULL, "t", "{true,c}"},
        {"R", "1", NULL, NULL, "t", RELATION},
        {"R", "1", "-1", NULL, "t", RELATION},
        {"R", "1", "4294967296", NULL, "t", RELATION},
        {"R", "1", "77", NULL, NULL, RELATION},
        {"R", "1", "77", NULL, "t", NULL},
        {"R", "1", "77", NULL, "t", ""},
        {"R", "1", "77", NULL, "t", "{}"},
        {"R", "1", "77", NULL, "t", "{public,r,false,true,true,NULL,NULL,NULL"},
        {"R", "1", "77", NULL, "t", "{public,r,false,true,true,NULL,NULL}"},
        {"R", "1", "77", NULL, "t", "{public,r,false,true,true,NULL,NULL,NULL,NULL}"},
        {"R", "1", "77", NULL, "t", "{public,r,false,true,true,NULL,NULL,NULL} "},
        {"R", "1", "77", NULL, "t", "{\"public,r,false,true,true,NULL,NULL,NULL}"},
        {"R", "1", "77", NULL, "t", "{NULL,r,false,true,true,NULL,NULL,NULL}"},
        {"R", "1", "77", NULL, "t", "{public,NULL,false,true,true,NULL,NULL,NULL}"},
        {"R", "1", "77", NULL, "t", "{public,r,false,true,true,NULL,NULL,\"1 x\"}"},
        {"C", "1", "77", NULL, "t", COLUMN},
        {"C", "1", "77", "1", "t", RELATION},
        {"C", "1", "77", "1", "t", "{NULL,true,true,0,NULL,NULL}"},
        {"T", "1", "25", NULL, "t", RELATION},
        {"T", "1", "25", NULL, "t", "{NULL,b,true,a,<,a,<=,a,=,a,>=,a,>,NULL}"},
        {"U", "1", "77", NULL, "i", "{NULL,true,false,true}"},
        {"U", "1", "77", NULL, "i", "{\"\",true,false,true}"},
        {"U", "1", "77", NULL, "i", "{\"1 x\",true,false,true}"},
        {"U", "1", "77", NULL, "i", "{\"99999\",true,false,true}"},
    };
    const char *const good[] = {"R", "1", "77", NULL, "t", RELATION};
    struct pgseek_facts *facts = ask();

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (pgseek_facts_row(facts, rows[i], PGSEEK_FACTS_COLUMNS))
            fail_msg("row %zu is taken", i);
    assert_false(pgseek_facts_row(facts, good, PGSEEK_FACTS_COLUMNS - 1));
    assert_true(pgseek_facts_row(facts, good, PGSEEK_FACTS_COLUMNS));
    pgseek_facts_answered(facts);
    assert_false(pgseek_facts_row(facts, good, PGSEEK_FACTS_COLUMNS)); /* too late */
    pgseek_facts_free(facts);
}

/* Nothing in the statements may be looked up in the client's search_path. */
static void statements_are_qualified(void **state)
{
    static const char *const forbidden[] = {" IN (",    " BETWEEN ", "NULLIF", "DISTINCT FROM", "NATURAL", "USING (",
                                            "regclass", "CASE k",    " = ",    " <> ",          " < ",     " || "};

    (void)state;
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        if (strstr(pgseek_facts_sql, forbidden[i]) || strstr(pgseek_context_sql, forbidden[i]))
            fail_msg("%s", forbidden[i]);
}

static int run(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(what_cannot_be_quoted_is_noticed),
        cmocka_unit_test(the_text_is_asked_for_first),
        cmocka_unit_test(rounds_go_on),
        cmocka_unit_test(texts_are_described_one_a_round),
        cmocka_unit_test(questions_are_bounded),
        cmocka_unit_test(rows_are_taken),
        cmocka_unit_test(array_elements_are_unescaped),
        cmocka_unit_test(other_rows_are_refused),
        cmocka_unit_test(statements_are_qualified),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return fixture_run(run);
}
