/* test_facts.c - rows of the facts statement: what is taken, and what is refused. */
#include "../../parser/facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define RELATION "{public,r,false,true,true}"
#define COLUMN \
    "{25,true,true,100,false,\"ci i 1.2\",25,b,true,pg_catalog.text,pg_catalog,<,pg_catalog,<=,pg_catalog,=," \
    "pg_catalog,>=,pg_catalog,>,NULL}"

static bool take(struct pgseek_facts *facts, const char *what, const char *ord, const char *rel, const char *num,
                 const char *name, const char *fields)
{
    const char *row[] = {what, ord, rel, num, name, fields};

    return pgseek_facts_row(facts, row, PGSEEK_FACTS_COLUMNS);
}

static void rows_are_taken(void **state)
{
    struct pgseek_facts *facts = pgseek_facts_new();
    size_t count;

    (void)state;
    assert_true(take(facts, "C", "1", "77", "1", "title", COLUMN));
    assert_true(take(facts, "C", "2", "78", "3", "title", COLUMN));
    assert_true(take(facts, "F", "1", NULL, NULL, "random", "{v,false,false}"));
    assert_true(take(facts, "O", "1", NULL, NULL, "foreign operators", "{true}"));
    assert_true(take(facts, "R", "1", "77", NULL, "post", RELATION));
    assert_true(take(facts, "U", "1", "4294967295", NULL, "post_pkey", "{\"3 1\",true,false,true}"));

    const struct facts_relation *relation = facts_relation(facts, 1);
    assert_non_null(relation);
    assert_int_equal(relation->oid, 77);
    assert_int_equal(relation->kind, 'r');
    assert_string_equal(relation->schema, "public");
    assert_null(facts_relation(facts, 2));

    const struct facts_column *columns = facts_columns(facts, 2, &count);
    assert_int_equal(count, 1);
    assert_int_equal(columns[0].attnum, 3);
    assert_true(columns[0].not_null);
    assert_false(columns[0].deterministic);
    assert_string_equal(columns[0].collation, "ci i 1.2");
    assert_string_equal(columns[0].operator[FACTS_GREATER_EQUAL].name, ">=");
    assert_string_equal(columns[0].labels, "");
    assert_null(facts_columns(facts, 3, &count));

    assert_int_equal(facts->uniques[0].index_oid, 4294967295U);
    assert_int_equal(facts->uniques[0].nattnums, 2);
    assert_int_equal(facts->uniques[0].attnums[0], 3);
    assert_int_equal(facts_function(facts, "random")->volatility, 'v');
    assert_null(facts_function(facts, "lower"));
    assert_true(facts->has_foreign_operators);
    pgseek_facts_free(facts);
}

static void array_elements_are_unescaped(void **state)
{
    struct pgseek_facts *facts = pgseek_facts_new();

    (void)state;
    assert_true(take(facts, "R", "1", "77", NULL, "t", "{\"a \\\"b\\\", {c}\\\\\",r,false,true,true}"));
    assert_string_equal(facts_relation(facts, 1)->schema, "a \"b\", {c}\\");
    /* NULL in quotes is a name. */
    assert_true(take(facts, "R", "2", "78", NULL, "t", "{\"NULL\",r,false,true,true}"));
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
        {"R", "1", NULL, NULL, "t", RELATION},
        {"R", "1", "-1", NULL, "t", RELATION},
        {"R", "1", "4294967296", NULL, "t", RELATION},
        {"R", "1", "77", NULL, NULL, RELATION},
        {"R", "1", "77", NULL, "t", NULL},
        {"R", "1", "77", NULL, "t", ""},
        {"R", "1", "77", NULL, "t", "{}"},
        {"R", "1", "77", NULL, "t", "{public,r,false,true"},
        {"R", "1", "77", NULL, "t", "{public,r,false,true}"},
        {"R", "1", "77", NULL, "t", "{public,r,false,true,true,true}"},
        {"R", "1", "77", NULL, "t", "{public,r,false,true,true} "},
        {"R", "1", "77", NULL, "t", "{\"public,r,false,true,true}"},
        {"R", "1", "77", NULL, "t", "{NULL,r,false,true,true}"},
        {"R", "1", "77", NULL, "t", "{public,NULL,false,true,true}"},
        {"C", "1", "77", NULL, "t", COLUMN},
        {"C", "1", "77", "1", "t", RELATION},
        {"U", "1", "77", NULL, "i", "{NULL,true,false,true}"},
        {"U", "1", "77", NULL, "i", "{\"\",true,false,true}"},
        {"U", "1", "77", NULL, "i", "{\"1 x\",true,false,true}"},
        {"U", "1", "77", NULL, "i", "{\"99999\",true,false,true}"},
    };
    struct pgseek_facts *facts = pgseek_facts_new();

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (pgseek_facts_row(facts, rows[i], PGSEEK_FACTS_COLUMNS))
            fail_msg("row %zu is taken", i);
    const char *const good[] = {"R", "1", "77", NULL, "t", RELATION};
    assert_false(pgseek_facts_row(facts, good, PGSEEK_FACTS_COLUMNS - 1));
    assert_true(pgseek_facts_row(facts, good, PGSEEK_FACTS_COLUMNS));
    pgseek_facts_free(facts);
}

/* Nothing in the statement may be looked up in the client's search_path. */
static void statement_is_qualified(void **state)
{
    static const char *const forbidden[] = {" IN (",    " BETWEEN ", "NULLIF", "DISTINCT FROM", "NATURAL", "USING (",
                                            "regclass", "CASE k",    " = ",    " <> ",          " < ",     " || "};

    (void)state;
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        if (strstr(pgseek_facts_sql, forbidden[i]))
            fail_msg("%s", forbidden[i]);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(rows_are_taken),
        cmocka_unit_test(array_elements_are_unescaped),
        cmocka_unit_test(other_rows_are_refused),
        cmocka_unit_test(statement_is_qualified),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}
