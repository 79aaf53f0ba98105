/* fuzz_rewrite.c - any text as a page: a reason, or shapes that hold what they promise.
 *
 * The catalog is kind: every relation exists, has the same five columns and a primary key, every function is immutable.
 * Properties: a text that is understood twice gives one contract; every shape is made (the check behind it never finds
 * a difference) and is itself a text that may be parsed; every position of a shape maps into the client's text. */
#include "../../parser/tree.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct input {
    const char *text;
    size_t len;
};

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "property: %s\n", what);
    abort();
}

/* ---- the kind catalog ---- */

#define OPERATORS "pg_catalog,<,pg_catalog,<=,pg_catalog,=,pg_catalog,>=,pg_catalog,>"

static void put_row(struct pgseek_facts *facts, const char *what, size_t ord, const char *num, const char *name,
                    const char *fields)
{
    char ord_text[24];
    const char *row[] = {what, ord_text, "1000", num, name, fields};

    snprintf(ord_text, sizeof ord_text, "%zu", ord);
    require(pgseek_facts_row(facts, row, PGSEEK_FACTS_COLUMNS), "facts are taken");
}

static void put_type(struct pgseek_facts *facts, uint32_t oid)
{
    char oid_text[16];
    char fields[256];
    const char *row[] = {"T", "1", oid_text, NULL, "pg_catalog.some", fields};

    snprintf(oid_text, sizeof oid_text, "%u", oid);
    snprintf(fields, sizeof fields, "{%u,b,true," OPERATORS ",NULL}", oid);
    require(pgseek_facts_row(facts, row, PGSEEK_FACTS_COLUMNS), "facts are taken");
}

static void put_relation(struct pgseek_facts *facts, size_t ord, const char *name)
{
    static const char *const columns[][3] = {
        {"1", "id", "{20,true,true,0,NULL,NULL}"},   {"2", "a", "{23,true,true,0,NULL,NULL}"},
        {"3", "b", "{25,true,true,100,true,c}"},     {"4", "c", "{1184,true,true,0,NULL,NULL}"},
        {"5", "d", "{1700,false,true,0,NULL,NULL}"},
    };
    static const uint32_t types[] = {20, 23, 25, 1184, 1700};

    put_row(facts, "R", ord, NULL, name, "{public,r,false,true,true,NULL,NULL,NULL}");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        put_type(facts, types[i]);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        put_row(facts, "C", ord, columns[i][0], columns[i][1], columns[i][2]);
    put_row(facts, "U", ord, NULL, "pkey", "{1,true,false,true}");
}

#define MAX_COLUMNS 256

/* How many columns the text gives, when every star stands for one table. */
static size_t count_columns(const PgQuery__SelectStmt *select)
{
    size_t count = 0;

    while (select->larg)
        select = select->larg;
    if (select->n_values_lists)
        return select->values_lists[0]->list->n_items;
    if (select->n_target_list == 1 && select->n_from_clause == 1 &&
        select->from_clause[0]->node_case == PG_QUERY__NODE__NODE_RANGE_SUBSELECT &&
        tree_column(select->target_list[0]->res_target->val) &&
        tree_is_star(select->target_list[0]->res_target->val->column_ref))
        return count_columns(select->from_clause[0]->range_subselect->subquery->select_stmt);
    for (size_t i = 0; i < select->n_target_list; i++) {
        const PgQuery__ColumnRef *column = tree_column(select->target_list[i]->res_target->val);

        count += column && tree_is_star(column) ? 5 : 1;
    }
    return count;
}

/* All expressions are int8. */
static void describe_probe(struct pgseek_facts *facts)
{
    static struct pgseek_column columns[MAX_COLUMNS];
    struct pgseek_description description = {NULL, 0, columns, 0};
    PgQuery__ParseResult *parsed = NULL;
    size_t len;
    const char *sql = pgseek_facts_probe(facts, &len);

    if (!sql)
        return;
    require(tree_parse(sql, &parsed) == TREE_OK && parsed->n_stmts == 1, "a text to describe parses");
    size_t count = count_columns(parsed->stmts[0]->stmt->select_stmt);
    tree_free(parsed);
    description.ncolumns = count < MAX_COLUMNS ? count : MAX_COLUMNS;
    for (size_t i = 0; i < description.ncolumns; i++)
        columns[i] = (struct pgseek_column){.name = "k", .type_oid = 20, .typmod = -1};
    require(pgseek_facts_described(facts, &description), "a description is taken");
}

static void answer(struct pgseek_facts *facts)
{
    for (size_t i = 0; i < pgseek_facts_asked_count(facts, PGSEEK_ASKED_RELATION); i++)
        put_relation(facts, i + 1, pgseek_facts_asked(facts, PGSEEK_ASKED_RELATION, i));
    for (size_t i = 0; i < pgseek_facts_asked_count(facts, PGSEEK_ASKED_FUNCTION); i++)
        put_row(facts, "F", i + 1, NULL, pgseek_facts_asked(facts, PGSEEK_ASKED_FUNCTION, i),
                "{i,false,false,false,true,NULL}");
    for (size_t i = 0; i < pgseek_facts_asked_count(facts, PGSEEK_ASKED_TYPE); i++)
        put_type(facts, (uint32_t)strtoul(pgseek_facts_asked(facts, PGSEEK_ASKED_TYPE, i), NULL, 10));
    for (size_t i = 0; i < pgseek_facts_asked_count(facts, PGSEEK_ASKED_COLLATION); i++)
        put_row(facts, "L", i + 1, NULL, pgseek_facts_asked(facts, PGSEEK_ASKED_COLLATION, i), "{true,c}");
    describe_probe(facts);
    pgseek_facts_answered(facts);
}

static struct pgseek_plan *make_plan(const struct input *input)
{
    const struct pgseek_reading reading = {.standard_strings = true, .ascii_safe_encoding = true};
    enum pgseek_reason reason = PGSEEK_REASON_NONE;
    struct pgseek_query *query = pgseek_query_new(input->text, input->len, &reading, &reason);

    require((query != NULL) == (reason == PGSEEK_REASON_NONE), "a query or a reason");
    if (!query)
        return NULL;
    struct pgseek_facts *facts = pgseek_facts_new(query);
    struct pgseek_plan *plan = NULL;
    reason = PGSEEK_REASON_MORE;
    for (int round = 0; !plan && reason == PGSEEK_REASON_MORE; round++) {
        require(round < 64, "questions end");
        answer(facts);
        reason = PGSEEK_REASON_NONE;
        plan = pgseek_plan_new(query, facts, NULL, NULL, &reason);
    }
    require((plan != NULL) == (reason == PGSEEK_REASON_NONE), "a plan or a reason");
    pgseek_facts_free(facts);
    pgseek_query_free(query);
    return plan;
}

/* ---- properties ---- */

static void check_contract(const struct pgseek_plan *plan, const struct input *input)
{
    struct pgseek_plan *again = make_plan(input);
    size_t len;
    size_t again_len;
    const uint8_t *bytes = pgseek_plan_contract(plan, &len);

    require(again != NULL, "a second plan");
    const uint8_t *again_bytes = pgseek_plan_contract(again, &again_len);
    require(len == again_len && !memcmp(bytes, again_bytes, len), "one contract");
    pgseek_plan_free(again);
}

/* What a statement of its form may still be refused for. */
static bool may_fail(enum pgseek_reason reason)
{
    /* Our own words may push a text over the limits; a cursor's rows cannot be hidden. */
    return reason == PGSEEK_REASON_TOO_LARGE || reason == PGSEEK_REASON_DECLARE || reason == PGSEEK_REASON_DISTINCT_ON;
}

static void check_shape(const struct pgseek_plan *plan, enum pgseek_seek seek, uint32_t null_mask,
                        const struct input *input)
{
    const struct pgseek_shape_key key = {
        .seek = seek, .look_ahead = seek % 2 == 0, .keep_offset = true, .null_mask = null_mask};
    enum pgseek_reason reason;
    struct pgseek_shape *shape = pgseek_shape_new(plan, &key, &reason);

    require(shape || may_fail(reason), pgseek_reason_name(reason));
    if (!shape)
        return;
    require(shape->len == strlen(shape->sql) && shape->nkeys == pgseek_plan_key_count(plan), "the shape's sizes");
    size_t step = shape->len / 64 + 1;
    for (size_t position = 0; position < shape->len; position += step)
        require(pgseek_shape_position(plan, shape, (int)position) <= (int)input->len,
                "a position in the client's text");
    pgseek_shape_free(shape);
}

/* The mask of a boundary that is NULL wherever it may be. */
static uint32_t nullable_keys(const struct pgseek_plan *plan)
{
    uint32_t mask = 0;

    for (size_t i = 0; i < pgseek_plan_key_count(plan); i++)
        if (pgseek_plan_key(plan, i)->nullable)
            mask |= (uint32_t)1 << i;
    return mask;
}

static void *check_input(void *context)
{
    const struct input *input = context;
    struct pgseek_plan *plan = make_plan(input);

    if (!plan)
        return NULL;
    check_contract(plan, input);
    for (int seek = PGSEEK_SEEK_FIRST; seek <= PGSEEK_SEEK_LAST; seek++)
        check_shape(plan, (enum pgseek_seek)seek, 0, input);
    check_shape(plan, PGSEEK_SEEK_AFTER, nullable_keys(plan), input);
    check_shape(plan, PGSEEK_SEEK_BEFORE, nullable_keys(plan), input);
    char *guard = pgseek_guard_new(plan, NULL, 0);
    require(guard != NULL, "a guard");
    free(guard);
    pgseek_plan_free(plan);
    return NULL;
}

/* The parser recurses, so each input has a thread with the stack that it asks for. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct input input = {(const char *)data, len};
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PGSEEK_STACK_BYTES);
    require(pthread_create(&thread, &attributes, check_input, &input) == 0, "a thread");
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    return 0;
}
