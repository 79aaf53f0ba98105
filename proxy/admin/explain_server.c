/* explain_server.c - composes the questions for libpq and hands the answers on.
 *
 * See explain_server.h. */
#include "explain_server.h"

#include <string.h>

#define EXPLAIN_OID_TEXT 25
#define EXPLAIN_OID_TEXT_ARRAY 1009

static void ignore_notice(void *unused, const PGresult *result)
{
    (void)unused;
    (void)result;
}

bool explain_server_connect(struct explain_server *server, const char *connection)
{
    const char *const names[] = {"dbname", "client_encoding", "application_name", NULL};
    const char *const values[] = {connection, "UTF8", "pgseek explain", NULL};
    server->conn = PQconnectdbParams(names, values, 1);
    if (PQstatus(server->conn) != CONNECTION_OK)
        return false;
    PQsetNoticeReceiver(server->conn, ignore_notice, NULL);
    return true;
}

const char *explain_server_error(const struct explain_server *server)
{
    return PQerrorMessage(server->conn);
}

bool explain_server_has_standard_strings(const struct explain_server *server)
{
    const char *strings = PQparameterStatus(server->conn, "standard_conforming_strings");
    return !strings || strcmp(strings, "on") == 0;
}

/* ---- descriptions ---- */

static void free_description(struct pgseek_description *description)
{
    mem_free((void *)(uintptr_t)description->param_oids);
    mem_free((void *)(uintptr_t)description->columns);
    *description = (struct pgseek_description){0};
}

void explain_server_fini(struct explain_server *server)
{
    free_description(&server->description);
    PQclear(server->described);
    PQfinish(server->conn);
}

/* The names belong to the result. False when out of memory. */
static bool read_description(const PGresult *described, struct pgseek_description *description)
{
    size_t nparams = (size_t)PQnparams(described);
    size_t ncolumns = (size_t)PQnfields(described);
    uint32_t *oids = mem_zalloc((nparams + 1) * sizeof *oids);
    struct pgseek_column *columns = mem_zalloc((ncolumns + 1) * sizeof *columns);
    *description = (struct pgseek_description){oids, nparams, columns, ncolumns};
    if (!oids || !columns)
        return false;
    for (size_t i = 0; i < nparams; i++)
        oids[i] = PQparamtype(described, (int)i);
    for (size_t i = 0; i < ncolumns; i++)
        columns[i] = (struct pgseek_column){
            .name = PQfname(described, (int)i),
            .table_oid = PQftable(described, (int)i),
            .attnum = (int16_t)PQftablecol(described, (int)i),
            .type_oid = PQftype(described, (int)i),
            .typmod = PQfmod(described, (int)i),
        };
    return true;
}

/* The description of a text; NULL when the server refuses it. */
static PGresult *describe(const struct explain_server *server, const char *sql, const Oid *oids, size_t noids)
{
    PGresult *prepared = PQprepare(server->conn, "", sql, (int)noids, oids);
    bool is_prepared = PQresultStatus(prepared) == PGRES_COMMAND_OK;
    PQclear(prepared);
    PGresult *described = is_prepared ? PQdescribePrepared(server->conn, "") : NULL;
    if (PQresultStatus(described) == PGRES_COMMAND_OK)
        return described;
    PQclear(described);
    return NULL;
}

enum explain_answer explain_server_describe(struct explain_server *server, const char *sql, int cursor_param)
{
    size_t noids = cursor_param > 0 ? (size_t)cursor_param : 0;
    Oid *oids = mem_zalloc((noids + 1) * sizeof *oids);
    if (!oids)
        return EXPLAIN_NOMEM;
    if (noids > 0)
        oids[noids - 1] = EXPLAIN_OID_TEXT;
    server->described = describe(server, sql, oids, noids);
    mem_free(oids);
    if (!server->described)
        return EXPLAIN_REFUSED;
    return read_description(server->described, &server->description) ? EXPLAIN_ANSWERED : EXPLAIN_NOMEM;
}

/* ---- facts ---- */

/* {"a",NULL,"b"}: a text[] as the server reads it. */
static void put_item(struct buf *array, const char *item)
{
    buf_put_text(array, array->len > 0 ? "," : "{");
    if (!item) {
        buf_put_text(array, "NULL");
        return;
    }
    buf_put_u8(array, '"');
    for (; *item; item++) {
        if (*item == '"' || *item == '\\')
            buf_put_u8(array, '\\');
        buf_put_u8(array, (uint8_t)*item);
    }
    buf_put_u8(array, '"');
}

/* NULL when out of memory. */
static PGresult *ask_facts(const struct explain_server *server, const struct pgseek_facts *facts)
{
    struct buf arrays[PGSEEK_ASKED_LISTS] = {0};
    const char *values[PGSEEK_ASKED_LISTS];
    Oid types[PGSEEK_ASKED_LISTS];
    bool failed = false;
    for (size_t list = 0; list < PGSEEK_ASKED_LISTS; list++) {
        for (size_t i = 0; i < pgseek_facts_asked_count(facts, (enum pgseek_asked)list); i++)
            put_item(&arrays[list], pgseek_facts_asked(facts, (enum pgseek_asked)list, i));
        buf_put_cstr(&arrays[list], arrays[list].len > 0 ? "}" : "{}");
        failed |= arrays[list].failed;
        values[list] = (const char *)arrays[list].ptr;
        types[list] = EXPLAIN_OID_TEXT_ARRAY;
    }
    PGresult *result =
        failed ? NULL : PQexecParams(server->conn, pgseek_facts_sql, PGSEEK_ASKED_LISTS, types, values, NULL, NULL, 0);
    for (size_t list = 0; list < PGSEEK_ASKED_LISTS; list++)
        buf_fini(&arrays[list]);
    return result;
}

static bool take_row(struct pgseek_facts *facts, const PGresult *result, int row)
{
    const char *columns[PGSEEK_FACTS_COLUMNS];
    for (int i = 0; i < PGSEEK_FACTS_COLUMNS; i++)
        columns[i] = PQgetisnull(result, row, i) ? NULL : PQgetvalue(result, row, i);
    return pgseek_facts_row(facts, columns, PGSEEK_FACTS_COLUMNS);
}

/* A text that the parser wants described; one that the server refuses has no description. False when out of memory. */
static bool answer_probe(const struct explain_server *server, struct pgseek_facts *facts)
{
    size_t len;
    const char *sql = pgseek_facts_probe(facts, &len);
    struct pgseek_description description = {0};
    PGresult *described =
        sql ? describe(server, sql, server->description.param_oids, server->description.nparams) : NULL;
    if (!described)
        return true;
    bool ok = read_description(described, &description) && pgseek_facts_described(facts, &description);
    free_description(&description);
    PQclear(described);
    return ok;
}

enum explain_answer explain_server_answer(struct explain_server *server, struct pgseek_facts *facts)
{
    PGresult *result = ask_facts(server, facts);
    if (!result)
        return EXPLAIN_NOMEM;
    bool is_known = PQresultStatus(result) == PGRES_TUPLES_OK && PQnfields(result) == PGSEEK_FACTS_COLUMNS;
    for (int row = 0; is_known && row < PQntuples(result); row++)
        is_known = take_row(facts, result, row);
    PQclear(result);
    if (!is_known)
        return EXPLAIN_REFUSED;
    if (!answer_probe(server, facts))
        return EXPLAIN_NOMEM;
    pgseek_facts_answered(facts);
    return EXPLAIN_ANSWERED;
}
