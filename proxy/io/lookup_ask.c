/* lookup_ask.c - one connection, one statement, one row. */
#include "lookup_ask.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "../admin/conf.h"
#include "tls_context.h"
#include "tls_mode.h"

/* How soon an abandoned question is noticed. */
#define ASK_SLICE_MS 200
/* For the statement, and where server_connect_timeout is 0. */
#define ASK_SECONDS 15

#define ASK_OPTIONS_MAX 20

#define ASK_KNOWS_NONE "auth_query knows no such user"

/* The search_path is what a function of auth_query would meet; the time-out ends what nobody waits for. */
#define ASK_SERVER_OPTIONS "-c search_path=pg_catalog -c statement_timeout=15s"

struct asking {
    const struct lookup_question *question;
    struct lookup_answer *answer;
    PGconn *conn;
    int64_t deadline_ms;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- how to connect ---- */

struct options {
    const char *names[ASK_OPTIONS_MAX + 1];
    const char *values[ASK_OPTIONS_MAX + 1];
    size_t count;
};

static void option_put(struct options *options, const char *name, const char *value)
{
    if (!value || !value[0] || options->count == ASK_OPTIONS_MAX)
        return;
    options->names[options->count] = name;
    options->values[options->count++] = value;
}

/* libpq before 16 knows no "system". */
static const char *system_authorities(void)
{
    static const char *const files[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                        "/etc/ssl/cert.pem"};
    if (PQlibVersion() >= 160000)
        return CONF_SSLROOTCERT_SYSTEM;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (access(files[i], R_OK) == 0)
            return files[i];
    return files[0]; /* libpq says what is missing */
}

static void put_tls(struct options *options, const struct conf *conf, const struct conf_database *database, size_t host)
{
    static const char *const modes[] = {
        [CONF_SSL_DISABLE] = "disable", [CONF_SSL_ALLOW] = "allow",         [CONF_SSL_PREFER] = "prefer",
        [CONF_SSL_REQUIRE] = "require", [CONF_SSL_VERIFY_CA] = "verify-ca", [CONF_SSL_VERIFY_FULL] = "verify-full"};
    const struct conf_server_leg leg = conf_server_leg(conf, database);
    enum conf_sslmode mode = tls_mode_for_host(conf, database, host);
    bool verifies = mode >= CONF_SSL_VERIFY_CA;
    option_put(options, "sslmode", mode <= CONF_SSL_VERIFY_FULL ? modes[mode] : modes[CONF_SSL_VERIFY_FULL]);
    option_put(options, "sslrootcert", leg.ca_file[0] || !verifies ? leg.ca_file : system_authorities());
    option_put(options, "sslcrl", leg.crl_file);
    option_put(options, "sslcert", leg.cert_file);
    option_put(options, "sslkey", leg.key_file);
    if (leg.sslnegotiation == CONF_SSLNEGOTIATION_DIRECT && PQlibVersion() >= 170000)
        option_put(options, "sslnegotiation", "direct");
    option_put(options, "gssencmode", "disable");
}

static void connect_to_host(struct asking *asking, size_t host)
{
    const struct lookup_question *question = asking->question;
    const struct conf *conf = question->conf;
    const struct conf_database *database = question->database;
    struct options options = {.count = 0};
    char port[16];
    snprintf(port, sizeof port, "%d", database->hosts[host].port);
    option_put(&options, "host", database->hosts[host].host);
    option_put(&options, "port", port);
    option_put(&options, "user", conf->auth_user);
    option_put(&options, "dbname", conf->auth_dbname[0] ? conf->auth_dbname : question->dbname);
    option_put(&options, "options", ASK_SERVER_OPTIONS);
    option_put(&options, "application_name", "pgseek auth_query");
    option_put(&options, "client_encoding", "SQL_ASCII"); /* names are compared as bytes */
    option_put(&options, "target_session_attrs", "any");
    put_tls(&options, conf, database, host);
    asking->conn = PQconnectStartParams(options.names, options.values, 0); /* a database's name is nothing but a name */
}

/* ---- waiting ---- */

static bool is_given_up(const struct asking *asking)
{
    return *asking->question->is_abandoned || now_ms() >= asking->deadline_ms;
}

/* Waits until libpq can go on; false when it is given up. */
static bool wait_for(const struct asking *asking, short events)
{
    struct pollfd file = {.fd = PQsocket(asking->conn), .events = events};
    while (!is_given_up(asking))
        if (poll(&file, 1, ASK_SLICE_MS) != 0)
            return true;
    return false;
}

static bool is_connected(const struct asking *asking)
{
    if (!asking->conn || PQstatus(asking->conn) == CONNECTION_BAD)
        return false;
    for (PostgresPollingStatusType next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;
         next = PQconnectPoll(asking->conn))
        if (next == PGRES_POLLING_FAILED || !wait_for(asking, next == PGRES_POLLING_READING ? POLLIN : POLLOUT))
            return false;
    return true;
}

/* ---- what came of it ---- */

/* One line for the log. libpq's messages end in a newline and may have several. */
static void fail(struct asking *asking, const char *why)
{
    char *out = asking->answer->failed;
    snprintf(out, sizeof asking->answer->failed, "%s", why && why[0] ? why : "out of memory");
    for (char *c = out; *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    for (size_t len = strlen(out); len && out[len - 1] == ' '; len--)
        out[len - 1] = '\0';
}

static void fail_with_connection(struct asking *asking)
{
    fail(asking, is_given_up(asking) ? "no answer in time" : PQerrorMessage(asking->conn));
}

/* The row: the user's name again, and its secret. */
static void read_row(struct asking *asking, PGresult *row)
{
    struct lookup_answer *answer = asking->answer;
    if (PQnfields(row) < 2) {
        fail(asking, "auth_query gives one column, and must give the user and the secret");
        return;
    }
    if (PQgetisnull(row, 0, 0)) { /* what a function gives that has found nothing */
        answer->none = ASK_KNOWS_NONE;
        return;
    }
    if (strcmp(PQgetvalue(row, 0, 0), asking->question->user) != 0) {
        fail(asking, "auth_query gives the row of another user than $1");
        return;
    }
    char *text = PQgetvalue(row, 0, 1);
    size_t len = (size_t)PQgetlength(row, 0, 1);
    if (PQgetisnull(row, 0, 1))
        answer->none = "auth_query gives no secret: none is set, or it has expired";
    else if (secret_read(span_of(text, len), &answer->secret))
        answer->has_secret = true;
    else
        answer->none = "auth_query gives something that is no SCRAM-SHA-256 secret";
    explicit_bzero(text, len);
}

/* The next result, NULL at the end or when it is given up. */
static PGresult *next_result(const struct asking *asking)
{
    while (PQisBusy(asking->conn))
        if (!wait_for(asking, POLLIN) || !PQconsumeInput(asking->conn))
            return NULL;
    return PQgetResult(asking->conn);
}

/* Rows come one by one, so that an answer of very many is given up at the second. */
static void read_answer(struct asking *asking)
{
    PGresult *row = next_result(asking);
    PGresult *end = NULL;
    ExecStatusType status = PQresultStatus(row);
    if (status == PGRES_TUPLES_OK) {
        asking->answer->none = ASK_KNOWS_NONE;
    } else if (status == PGRES_FATAL_ERROR && PQresultErrorField(row, PG_DIAG_MESSAGE_PRIMARY)) {
        fail(asking, PQresultErrorField(row, PG_DIAG_MESSAGE_PRIMARY));
    } else if (status != PGRES_SINGLE_TUPLE) {
        fail_with_connection(asking);
    } else {
        read_row(asking, row);
        end = next_result(asking);
        if (PQresultStatus(end) != PGRES_TUPLES_OK) {
            asking->answer->has_secret = false;
            fail(asking, "auth_query gives more than one row, or fails behind the first");
        }
    }
    PQclear(row);
    PQclear(end);
}

static void run_query(struct asking *asking)
{
    const struct lookup_question *question = asking->question;
    const char *const values[] = {question->user};
    asking->deadline_ms = now_ms() + ASK_SECONDS * 1000;
    if (PQsendQueryParams(asking->conn, question->conf->auth_query, 1, NULL, values, NULL, NULL, 0) &&
        PQsetSingleRowMode(asking->conn))
        read_answer(asking);
    else
        fail_with_connection(asking);
}

/* Where libpq cannot load a revocation list it goes on without one. So the files are loaded here first, as at a start.
 */
static bool can_load_lists(struct asking *asking, size_t host)
{
    const struct conf *conf = asking->question->conf;
    const struct conf_database *database = asking->question->database;
    struct tls_context *context = NULL;
    char *why = NULL;
    size_t len;
    if (tls_mode_for_host(conf, database, host) == CONF_SSL_DISABLE || !conf_server_leg(conf, database).crl_file[0])
        return true;
    FILE *complaints = open_memstream(&why, &len);
    bool ok = complaints && tls_context_for_server(conf, database, &context, complaints);
    if (complaints)
        fclose(complaints);
    if (!ok)
        fail(asking, why);
    tls_context_free(context);
    free(why); /* open_memstream's */
    return ok;
}

/* False where the host cannot be asked, and the next one may. */
static bool ask_host(struct asking *asking, size_t host)
{
    if (!can_load_lists(asking, host))
        return false;
    connect_to_host(asking, host);
    bool ok = is_connected(asking);
    if (ok)
        run_query(asking);
    else
        fail_with_connection(asking);
    PQfinish(asking->conn);
    return ok;
}

void lookup_ask(const struct lookup_question *question, struct lookup_answer *answer)
{
    struct asking asking = {.question = question, .answer = answer};
    int seconds = question->conf->server_connect_timeout;
    *answer = (struct lookup_answer){.none = "auth_query gives nothing"};
    for (size_t host = 0; host < question->database->nhosts && !*question->is_abandoned; host++) {
        asking.deadline_ms = now_ms() + (int64_t)(seconds > 0 ? seconds : ASK_SECONDS) * 1000;
        answer->failed[0] = '\0';
        if (ask_host(&asking, host))
            return;
    }
}
