/* reading_fixture.c - see reading_fixture.h. */
#include "reading_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const char schema[] = "table public.a\n"
                             "  id int4 notnull\n"
                             "  b_id int4\n"
                             "  f float8\n"
                             "  w text notnull\n"
                             "  primary a_pkey (id)\n"
                             "table public.b\n"
                             "  id int4 notnull\n"
                             "  u int8 notnull\n"
                             "  n int4\n"
                             "  primary b_pkey (id)\n"
                             "  unique b_u (u)\n"
                             "table public.c\n"
                             "  x int4 notnull\n"
                             "  y int4 notnull\n"
                             "  z int4\n"
                             "  primary c_pkey (x, y)\n"
                             "table public.maybe\n"
                             "  x int4\n"
                             "  y int4 notnull\n"
                             "  unique maybe_x (x)\n"
                             "table public.once\n"
                             "  x int4\n"
                             "  unique once_x (x) nnd\n"
                             "table public.bag\n"
                             "  v int4 notnull\n"
                             "  g int4\n"
                             "table public.word\n"
                             "  w text notnull ci\n"
                             "  primary word_pkey (w)\n"
                             "parent public.par\n"
                             "  id int4 notnull\n"
                             "  primary par_pkey (id)\n"
                             "partitioned public.part BY 1\n"
                             "  id int4 notnull\n"
                             "  primary part_pkey (id)\n"
                             "matview public.mat\n"
                             "  id int4\n"
                             "  unique mat_id (id)\n"
                             "view public.plain AS SELECT a.id, b.u FROM a LEFT JOIN b ON b.id = a.b_id\n"
                             "  id int4\n"
                             "  u int8\n"
                             "view public.numbered AS SELECT a.id, row_number() OVER () AS no FROM a\n"
                             "  id int4\n"
                             "  no int8\n"
                             "view public.secret\n"
                             "  id int4\n"
                             "function count i aggregate\n"
                             "function sum i aggregate\n"
                             "function row_number i\n"
                             "function lower i\n"
                             "function random v\n"
                             "function mine i set user\n"
                             "function unnest i set\n";

static void read_once(struct reading *reading)
{
    const PgQuery__SelectStmt *select = reading->parsed->stmts[0]->stmt->select_stmt;
    const PgQuery__WithClause *with[] = {select->with_clause};

    arena_fini(&reading->arena);
    reading->derived = (struct scope_relation){.qualifier = "q"};
    assert_int_equal(
        scope_make(&reading->outer, &reading->arena, reading->asker, &reading->nothing, NULL, 0, reading->facts, NULL),
        PGSEEK_REASON_NONE);
    assert_true(source_make(&reading->derived, &reading->outer, select, NULL, 0));
    assert_int_equal(scope_make(&reading->scope, &reading->arena, reading->asker, select, with, with[0] != NULL,
                                reading->facts, NULL),
                     PGSEEK_REASON_NONE);
    assert_true(proof_make(&reading->proof, &reading->scope, NULL));
}

void reading_start(struct reading *reading, const char *sql)
{
    enum pgseek_reason reason;

    *reading = (struct reading){.asker = fixture_query("SELECT id FROM a ORDER BY id LIMIT 1", &reason)};
    assert_non_null(reading->asker);
    pg_query__select_stmt__init(&reading->nothing);
    reading->facts = fixture_facts(schema, reading->asker);
    if (tree_parse(sql, &reading->parsed) != TREE_OK)
        fail_msg("does not parse: %s", sql);
    read_once(reading);
    while (facts_is_asking(reading->facts)) {
        fixture_answer(schema, reading->facts);
        read_once(reading);
    }
    assert_false(reading->arena.failed);
}

void reading_finish(struct reading *reading)
{
    arena_fini(&reading->arena);
    tree_free(reading->parsed);
    pgseek_facts_free(reading->facts);
    pgseek_query_free(reading->asker);
}

struct scope_column reading_find(const struct reading *reading, const char *dotted)
{
    struct scope_column column = {0, 0};
    char qualifier[32];
    char name[32];

    if (sscanf(dotted, "%31[^.].%31s", qualifier, name) != 2 ||
        scope_find_name(&reading->scope, qualifier, name, &column) != SCOPE_FOUND)
        fail_msg("no column %s", dotted);
    return column;
}
