/* lookup_ask.c - one connection, one statement, one row; and the connection swept for whoever asks next. */
#include "lookup_ask.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "../admin/conf.h"
#include "tls_context.h"
#include "tls_mode.h"

/* For the statement, and where server_connect_timeout is 0. */
#define ASK_MS 15000
/* For the statement over a connection that was kept: its server may have vanished without a word. */
#define ASK_KEPT_MS 5000
/* For what is under way when nobody waits any more: an answer that comes at once leaves a connection for the next one,
 * or strangers who hang up early would make the server begin a process for each of them. */
#define ASK_ABANDONED_MS 200
/* A connection is not kept for ever, however often it is used: a new one sees what the role, its database and the
 * server's rules have become, and tries the hosts from the first one on. */
#define ASK_KEPT_FOR_MS (10 * 60 * 1000)
/* What a server may send in a connection's life, roughly: libpq keeps much of it. Half of it is for the next answer. */
#define ASK_HEARD_MAX ((size_t)16 * 1024 * 1024)

#define ASK_OPTIONS_MAX 20

#define ASK_GIVES_NOTHING "auth_query gives nothing"
#define ASK_KNOWS_NONE "auth_query knows no such user"

/* The search_path is what a function of auth_query would meet; the time-out ends what nobody waits for. */
#define ASK_SERVER_OPTIONS "-c search_path=pg_catalog -c statement_timeout=15s"
/* Settings go back to the above, whatever the query and the functions in it have done; a role that was taken, locks,
 * temporary tables and prepared statements go. */
#define ASK_SWEEP "DISCARD ALL"

struct lookup_conn {
    PGconn *pg;
    const struct conf *conf; /* compared, never followed: the one who keeps connections sees to it that it lives */
    const struct conf_database *database;
    int64_t born_ms;
    size_t heard; /* bytes */
    char dbname[64];
};

struct asking {
    const struct lookup_question *question;
    struct lookup_answer *answer;
    struct lookup_conn *conn; /* NULL between two */
    int64_t deadline_ms;
    bool is_abandoned;
    const char *gave_up; /* why, when it was not libpq that failed; static */
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

static const char *asked_dbname(const struct lookup_question *question)
{
    return question->conf->auth_dbname[0] ? question->conf->auth_dbname : question->dbname;
}

/* Nobody reads what a server says by the way; libpq's own would write it to standard error. */
static void ignore_notice(void *unused, const PGresult *notice)
{
    (void)unused;
    (void)notice;
}

static PGconn *connect_start(const struct lookup_question *question, size_t host)
{
    const struct conf *conf = question->conf;
    const struct conf_database *database = question->database;
    struct options options = {.count = 0};
    char port[16];
    snprintf(port, sizeof port, "%d", database->hosts[host].port);
    option_put(&options, "host", database->hosts[host].host);
    option_put(&options, "port", port);
    option_put(&options, "user", conf->auth_user);
    option_put(&options, "dbname", asked_dbname(question));
    option_put(&options, "options", ASK_SERVER_OPTIONS);
    option_put(&options, "application_name", "pgseek auth_query");
    option_put(&options, "client_encoding", "SQL_ASCII"); /* names are compared as bytes */
    option_put(&options, "target_session_attrs", "any");
    put_tls(&options, conf, database, host);
    PGconn *pg = PQconnectStartParams(options.names, options.values, 0); /* a database's name is nothing but a name */
    PQsetNoticeReceiver(pg, ignore_notice, NULL);
    return pg;
}

static struct lookup_conn *conn_new(const struct lookup_question *question, size_t host)
{
    struct lookup_conn *conn = mem_zalloc(sizeof *conn);
    if (!conn)
        return NULL;
    conn->conf = question->conf;
    conn->database = question->database;
    conn->born_ms = now_ms();
    snprintf(conn->dbname, sizeof conn->dbname, "%s", asked_dbname(question));
    conn->pg = connect_start(question, host);
    if (conn->pg)
        return conn;
    mem_free(conn);
    return NULL;
}

bool lookup_conn_fits(const struct lookup_conn *conn, const struct lookup_question *question)
{
    return conn->conf == question->conf && conn->database == question->database &&
           strcmp(conn->dbname, asked_dbname(question)) == 0;
}

void lookup_conn_close(struct lookup_conn *conn)
{
    if (!conn)
        return;
    PQfinish(conn->pg);
    mem_free(conn);
}

static void drop(struct asking *asking)
{
    lookup_conn_close(asking->conn);
    asking->conn = NULL;
}

/* ---- waiting ---- */

static void set_patience(struct asking *asking, int64_t ms)
{
    if (!asking->is_abandoned)
        asking->deadline_ms = now_ms() + ms;
}

static void hear_bell(struct asking *asking)
{
    int64_t last_ms = now_ms() + ASK_ABANDONED_MS;
    asking->is_abandoned = true;
    if (asking->deadline_ms > last_ms)
        asking->deadline_ms = last_ms;
}

/* Counts what is there to be read, more than once if libpq does not take it all. */
static bool is_too_much(struct asking *asking)
{
    int bytes = 0;
    if (ioctl(PQsocket(asking->conn->pg), FIONREAD, &bytes) == 0 && bytes > 0)
        asking->conn->heard += (size_t)bytes;
    return asking->conn->heard > ASK_HEARD_MAX;
}

/* Waits until libpq can go on; false when it is given up. */
static bool wait_for(struct asking *asking, short events)
{
    struct pollfd files[] = {{.fd = PQsocket(asking->conn->pg), .events = events},
                             {.fd = asking->question->bell, .events = POLLIN}};
    while (files[0].fd >= 0) {
        int64_t left_ms = asking->deadline_ms - now_ms();
        if (left_ms <= 0) {
            asking->gave_up = "no answer in time";
            return false;
        }
        if (poll(files, 2, (int)left_ms) < 0 && errno != EINTR)
            return false;
        if (files[0].revents && is_too_much(asking)) {
            asking->gave_up = "the server sends too much";
            return false;
        }
        if (files[0].revents)
            return true;
        if (files[1].revents) {
            hear_bell(asking);
            files[1].fd = -1;
        }
    }
    return false;
}

static bool is_connected(struct asking *asking)
{
    if (!asking->conn || PQstatus(asking->conn->pg) == CONNECTION_BAD)
        return false;
    for (PostgresPollingStatusType next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;
         next = PQconnectPoll(asking->conn->pg))
        if (next == PGRES_POLLING_FAILED || !wait_for(asking, next == PGRES_POLLING_READING ? POLLIN : POLLOUT))
            return false;
    return PQsetnonblocking(asking->conn->pg, 1) == 0; /* sending must not wait: that is wait_for()'s */
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
    const char *said = asking->conn ? PQerrorMessage(asking->conn->pg) : NULL;
    fail(asking, asking->gave_up ? asking->gave_up : said);
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
static PGresult *next_result(struct asking *asking)
{
    PGconn *pg = asking->conn->pg;
    while (PQisBusy(pg)) {
        int unsent = PQflush(pg);
        if (unsent < 0 || !wait_for(asking, unsent ? POLLIN | POLLOUT : POLLIN) || !PQconsumeInput(pg))
            return NULL;
    }
    return PQgetResult(pg);
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
    PGconn *pg = asking->conn->pg;
    if (!PQsendQueryParams(pg, question->conf->auth_query, 1, NULL, values, NULL, NULL, 0) || !PQsetSingleRowMode(pg)) {
        fail_with_connection(asking);
        return;
    }
    read_answer(asking);
    const char *iterations = PQparameterStatus(pg, "scram_iterations"); /* from PostgreSQL 16 on */
    asking->answer->usual = secret_shape_usual(span_cstr(iterations ? iterations : ""));
}

/* ---- kept connections ---- */

/* Nothing more comes of the last statement, and no transaction is open. */
static bool is_at_rest(struct asking *asking)
{
    PGresult *more = next_result(asking);
    PQclear(more);
    return !more && PQtransactionStatus(asking->conn->pg) == PQTRANS_IDLE;
}

/* Leaves a connection that may be asked again, or none. The sweep is sent and not waited for: the log-in goes on. */
static void leave(struct asking *asking)
{
    const struct lookup_conn *conn = asking->conn;
    bool is_fit = !asking->answer->failed[0] && is_at_rest(asking) && conn->heard <= ASK_HEARD_MAX / 2 &&
                  now_ms() - conn->born_ms < ASK_KEPT_FOR_MS && PQsendQuery(conn->pg, ASK_SWEEP);
    if (!is_fit)
        drop(asking);
}

/* What leave() has sent was done, and nothing has happened to the connection since. */
static bool is_swept(struct asking *asking)
{
    PGresult *swept = next_result(asking);
    bool ok = PQresultStatus(swept) == PGRES_COMMAND_OK;
    PQclear(swept);
    return ok && is_at_rest(asking);
}

/* False when there is no answer; then neither is the connection. */
static bool ask_kept(struct asking *asking)
{
    set_patience(asking, ASK_KEPT_MS);
    if (is_swept(asking))
        run_query(asking);
    else
        fail_with_connection(asking);
    leave(asking);
    return !asking->answer->failed[0];
}

/* ---- the whole ---- */

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

/* Whether this host has said all that there is to be said, be it an error. */
static bool ask_host(struct asking *asking, size_t host)
{
    int seconds = asking->question->conf->server_connect_timeout;
    *asking->answer = (struct lookup_answer){.none = ASK_GIVES_NOTHING};
    asking->gave_up = NULL;
    set_patience(asking, seconds > 0 ? (int64_t)seconds * 1000 : ASK_MS);
    if (!can_load_lists(asking, host))
        return false;
    asking->conn = conn_new(asking->question, host);
    if (!is_connected(asking)) {
        fail_with_connection(asking);
        drop(asking);
        return false;
    }
    set_patience(asking, ASK_MS);
    run_query(asking);
    leave(asking);
    return true;
}

void lookup_ask(const struct lookup_question *question, struct lookup_conn **conn, struct lookup_answer *answer)
{
    struct asking asking = {.question = question, .answer = answer, .conn = *conn};
    *answer = (struct lookup_answer){.none = ASK_GIVES_NOTHING};
    bool is_done = asking.conn && ask_kept(&asking);
    for (size_t host = 0; host < question->database->nhosts && !is_done && !asking.is_abandoned; host++)
        is_done = ask_host(&asking, host);
    *conn = asking.conn;
}
