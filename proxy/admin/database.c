/* database.c - reads connection strings with libpq's own parser, so that quoting and names are what DBAs know. */
#include "database.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

static bool database_refuse(char why[DATABASE_WHY], const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool database_refuse(char why[DATABASE_WHY], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, DATABASE_WHY, format, args);
    va_end(args);
    return false;
}

static bool database_no_memory(char why[DATABASE_WHY])
{
    return database_refuse(why, "cannot be stored: out of memory");
}

/* ---- lists ---- */

/* The next element of a list with commas; an empty list has one empty element. False at its end. */
static bool database_next(const char **list, struct span *element)
{
    if (!*list)
        return false;
    size_t len = strcspn(*list, ",");
    *element = span_of(*list, len);
    *list = (*list)[len] ? *list + len + 1 : NULL;
    return true;
}

static bool database_read_hosts(const char *list, struct conf_database *database, char why[DATABASE_WHY])
{
    struct span host;
    while (database_next(&list, &host)) {
        if (database->nhosts == CONF_MAX_HOSTS)
            return database_refuse(why, "has more than %d hosts", CONF_MAX_HOSTS);
        if (host.len == 0)
            host = span_cstr(CONF_DEFAULT_HOST);
        char *copy = mem_strndup((const char *)host.ptr, host.len);
        if (!copy)
            return database_no_memory(why);
        database->hosts[database->nhosts].host = copy;
        database->hosts[database->nhosts].port = CONF_DEFAULT_PORT;
        database->nhosts++;
    }
    return true;
}

static bool database_read_port(struct span text, int *port, char why[DATABASE_WHY])
{
    char digits[16];
    char *end;
    if (text.len == 0) {
        *port = CONF_DEFAULT_PORT;
        return true;
    }
    snprintf(digits, sizeof digits, "%.*s", (int)(text.len < sizeof digits ? text.len : sizeof digits),
             (const char *)text.ptr);
    long number = strtol(digits, &end, 10);
    if (*end || number < 1 || number > 65535)
        return database_refuse(why, "has port \"%s\": it must be 1 to 65535", digits);
    *port = (int)number;
    return true;
}

/* One port for all hosts, or one for each. */
static bool database_read_ports(const char *list, struct conf_database *database, char why[DATABASE_WHY])
{
    struct span text;
    size_t count = 0;
    int port = CONF_DEFAULT_PORT;
    while (database_next(&list, &text)) {
        if (!database_read_port(text, &port, why))
            return false;
        if (count < database->nhosts)
            database->hosts[count].port = port;
        count++;
    }
    if (count != 1 && count != database->nhosts)
        return database_refuse(why, "has %zu ports for %zu hosts: give one, or one for each", count, database->nhosts);
    for (size_t i = count; i < database->nhosts; i++)
        database->hosts[i].port = port;
    return true;
}

/* ---- keywords ---- */

static bool database_copy(const char *value, char **field, char why[DATABASE_WHY])
{
    *field = mem_strndup(value, strlen(value));
    return *field || database_no_memory(why);
}

struct database_values {
    const char *host;
    const char *port;
    const char *dbname;
    const char *user;
};

static bool database_sort(const PQconninfoOption *options, struct database_values *values, char why[DATABASE_WHY])
{
    for (const PQconninfoOption *at = options; at->keyword; at++) {
        if (!at->val)
            continue;
        if (strcmp(at->keyword, "host") == 0)
            values->host = at->val;
        else if (strcmp(at->keyword, "port") == 0)
            values->port = at->val;
        else if (strcmp(at->keyword, "dbname") == 0)
            values->dbname = at->val;
        else if (strcmp(at->keyword, "user") == 0)
            values->user = at->val;
        else
            return database_refuse(
                why, "has \"%s\", which is not supported yet in [databases]: use host, port, dbname, user",
                at->keyword);
    }
    return true;
}

static bool database_fill(const PQconninfoOption *options, struct conf_database *database, char why[DATABASE_WHY])
{
    struct database_values values = {0};
    return database_sort(options, &values, why) && database_read_hosts(values.host ? values.host : "", database, why) &&
           database_read_ports(values.port ? values.port : "", database, why) &&
           (!values.dbname || database_copy(values.dbname, &database->dbname, why)) &&
           (!values.user || database_copy(values.user, &database->user, why));
}

bool database_read(const char *name, const char *connection, struct conf_database *database, char why[DATABASE_WHY])
{
    char *message = NULL;
    database->sslmode = CONF_SSL_INHERIT;
    database->sslnegotiation = CONF_SSLNEGOTIATION_INHERIT;
    if (!database_copy(name, &database->name, why))
        return false;
    PQconninfoOption *options = PQconninfoParse(connection, &message);
    bool ok = options && database_fill(options, database, why);
    if (!options) {
        size_t len = message ? strcspn(message, "\n") : 0;
        database_refuse(why, "is not a connection string: %.*s", len ? (int)len : 13, len ? message : "out of memory");
    }
    PQconninfoFree(options);
    PQfreemem(message);
    return ok;
}

void database_fini(struct conf_database *database)
{
    for (size_t i = 0; i < database->nhosts; i++)
        mem_free(database->hosts[i].host);
    mem_free(database->name);
    mem_free(database->dbname);
    mem_free(database->user);
    mem_free(database->sslrootcert);
    mem_free(database->sslcert);
    mem_free(database->sslkey);
    *database = (struct conf_database){0};
}
