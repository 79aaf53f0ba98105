/* claim_walk.c - what the parser claims of statements, told one by one: keys, dependencies, columns without NULL.
 *
 * It reads a SELECT per line and answers with a line of JSON; whether the data agree is for test_claims.py to see.
 * Columns are written as alias.column, so names have to be plain. Usage: claim_walk CONNINFO SCHEMA SEED < statements
 */
#include "../../parser/source.h"
#include "walk_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIALS 3

static unsigned random_state;

static size_t random_below(size_t n)
{
    random_state = random_state * 1103515245U + 12345U;
    return n ? (random_state >> 8) % n : 0;
}

/* A statement, read as a level and as a derived table. */
struct reading {
    struct arena arena;
    struct scope scope;
    struct proof proof;
    struct scope_relation derived;
};

static bool make(struct reading *reading, const PgQuery__SelectStmt *select, struct pgseek_facts *facts)
{
    const PgQuery__WithClause *with[] = {select->with_clause};
    PgQuery__SelectStmt nothing; /* the level that the derived table stands in */
    struct scope outer;

    pg_query__select_stmt__init(&nothing);
    *reading = (struct reading){.derived.qualifier = ""};
    return scope_make(&reading->scope, &reading->arena, NULL, select, with, with[0] != NULL, facts, NULL) ==
               PGSEEK_REASON_NONE &&
           proof_make(&reading->proof, &reading->scope, NULL) &&
           scope_make(&outer, &reading->arena, NULL, &nothing, NULL, 0, facts, NULL) == PGSEEK_REASON_NONE &&
           source_make(&reading->derived, &outer, select, NULL, 0) && !reading->arena.failed;
}

/* ---- columns ---- */

/* Whether the statement can name the column. */
static bool has_name(const struct scope *scope, struct scope_column column)
{
    const char *qualifier = scope->relations[column.relation].qualifier;
    const char *name = scope_attribute(scope, column)->name;
    struct scope_column found;

    return *qualifier && name && scope_find_name(scope, qualifier, name, &found) == SCOPE_FOUND;
}

static bool usable(const void *scope, struct scope_column column)
{
    return has_name(scope, column);
}

static void put_column(const struct scope *scope, struct scope_column column, bool *first)
{
    printf("%s\"%s.%s\"", *first ? "" : ",", scope->relations[column.relation].qualifier,
           scope_attribute(scope, column)->name);
    *first = false;
}

typedef bool (*column_question)(const struct proof *proof, struct scope_column column);

static void put_columns(const struct reading *reading, const char *label, column_question holds)
{
    bool first = true;

    printf("\"%s\":[", label);
    for (size_t r = 0; r < reading->scope.nrelations; r++)
        for (size_t i = 0; i < reading->scope.relations[r].nattributes; i++) {
            struct scope_column column = {r, i};

            if (has_name(&reading->scope, column) && holds(&reading->proof, column))
                put_column(&reading->scope, column, &first);
        }
    printf("]");
}

/* ---- claims ---- */

static void put_positions(const struct scope_key *key)
{
    printf("[");
    for (size_t i = 0; i < key->ncolumns; i++)
        printf("%s%zu", i ? "," : "", key->columns[i]);
    printf("]");
}

static void put_derived(const struct scope_relation *derived)
{
    bool first = true;

    printf("\"columns\":%zu,\"opaque\":%s,\"keys\":[", derived->nattributes, derived->is_opaque ? "true" : "false");
    for (size_t i = 0; i < derived->nkeys; i++) {
        printf("%s", i ? "," : "");
        put_positions(&derived->keys[i]);
    }
    printf("],\"not_null\":[");
    for (size_t i = 0; i < derived->nattributes; i++) {
        if (!derived->attributes[i].not_null)
            continue;
        printf("%s%zu", first ? "" : ",", i);
        first = false;
    }
    printf("]");
}

static void assume(struct reading *reading, struct scope_column column, bool *first)
{
    if (!has_name(&reading->scope, column))
        return;
    put_column(&reading->scope, column, first);
    proof_assume(&reading->proof, column);
}

/* The tie-breakers that an order without any key would get. */
static void put_total(struct reading *reading)
{
    struct proof *proof = &reading->proof;
    bool first = true;

    printf("\"total\":[");
    while (!proof_is_total(proof)) {
        size_t relation;
        bool denied;
        const struct scope_key *key =
            proof_next_key(proof, reading->scope.nrelations, usable, &reading->scope, &relation, &denied);

        if (!key)
            break;
        for (size_t i = 0; i < key->ncolumns; i++) {
            struct scope_column column = {relation, key->columns[i]};

            if (!proof_is_known(proof, column))
                assume(reading, column, &first);
        }
    }
    printf("],\"is_total\":%s", proof_is_total(proof) ? "true" : "false");
}

/* A key's columns, or any column. */
static void assume_some(struct reading *reading, bool *first)
{
    size_t r = random_below(reading->scope.nrelations);
    const struct scope_relation *relation = &reading->scope.relations[r];

    if (relation->nkeys && random_below(4)) {
        const struct scope_key *key = &relation->keys[random_below(relation->nkeys)];

        for (size_t i = 0; i < key->ncolumns; i++)
            assume(reading, (struct scope_column){r, key->columns[i]}, first);
    } else if (relation->nattributes) {
        assume(reading, (struct scope_column){r, random_below(relation->nattributes)}, first);
    }
}

static void put_trials(struct reading *reading)
{
    printf("\"trials\":[");
    for (int trial = 0; trial < TRIALS; trial++) {
        bool first = true;

        proof_reset(&reading->proof);
        printf("%s{\"given\":[", trial ? "," : "");
        for (size_t i = random_below(4); i-- > 0;)
            assume_some(reading, &first);
        printf("],");
        put_columns(reading, "known", proof_is_known);
        printf(",\"is_total\":%s}", proof_is_total(&reading->proof) ? "true" : "false");
    }
    printf("]");
}

static void put_claims(struct reading *reading, bool is_level)
{
    printf("{");
    put_derived(&reading->derived);
    if (is_level) {
        printf(",");
        put_columns(reading, "non_null", proof_is_non_null);
        printf(",");
        put_total(reading);
        printf(",");
        put_trials(reading);
    }
    printf("}\n");
    (void)fflush(stdout);
}

static void answer(const struct pgseek_query *asker, const PgQuery__SelectStmt *select)
{
    struct pgseek_facts *facts = pgseek_facts_new(asker);
    struct reading reading = {0};
    bool made = true;

    do {
        answer_facts(facts);
        pgseek_facts_answered(facts);
        arena_fini(&reading.arena);
        made = make(&reading, select, facts);
    } while (made && facts_is_asking(facts));
    if (!made) {
        printf("not read\n");
        exit(2);
    }
    put_claims(&reading, !select->larg && !select->n_values_lists && select->n_from_clause > 0);
    arena_fini(&reading.arena);
    pgseek_facts_free(facts);
}

static const char *schema_name;

static void *all(void *arg)
{
    static const struct pgseek_reading reading = {.standard_strings = true, .ascii_safe_encoding = true};
    static const char anything[] = "SELECT relname FROM pg_class ORDER BY relname LIMIT 1";
    static char line[1 << 16];
    enum pgseek_reason reason;
    struct pgseek_query *asker = pgseek_query_new(anything, strlen(anything), &reading, &reason);

    (void)arg;
    snprintf(line, sizeof line, "SET search_path = %s", schema_name);
    run(line);
    while (fgets(line, sizeof line, stdin)) {
        PgQuery__ParseResult *parsed;

        line[strcspn(line, "\n")] = '\0';
        if (tree_parse(line, &parsed) != TREE_OK) {
            printf("does not parse: %s\n", line);
            exit(2);
        }
        answer(asker, parsed->stmts[0]->stmt->select_stmt);
        tree_free(parsed);
    }
    pgseek_query_free(asker);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    schema_name = argv[2];
    random_state = (unsigned)strtoul(argv[3], NULL, 10);
    return walk_main(argc, argv, all, NULL);
}
