/* database.c - reads connection strings with libpq's own parser, so that quoting and names are what DBAs know. */
#include "database.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "option.h"

#define DATABASE_BLANKS " \t\n\v\f\r" /* isspace() in the C locale, as libpq asks it */

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

struct database_values {
    const char *host;
    const char *port;
    const char *dbname;
    const char *user;
    const char *sslmode;
    const char *sslrootcert;
    const char *sslcrl;
    const char *sslcert;
    const char *sslkey;
    char sslnegotiation[16]; /* see database_cut() */
};

#define DATABASE_KEYWORD(name) \
    { \
#name, offsetof(struct database_values, name) \
    }
static const struct {
    const char *keyword;
    size_t offset;
} database_keywords[] = {
    DATABASE_KEYWORD(host),   DATABASE_KEYWORD(port),    DATABASE_KEYWORD(dbname),
    DATABASE_KEYWORD(user),   DATABASE_KEYWORD(sslmode), DATABASE_KEYWORD(sslrootcert),
    DATABASE_KEYWORD(sslcrl), DATABASE_KEYWORD(sslcert), DATABASE_KEYWORD(sslkey),
};

static bool database_sort(const PQconninfoOption *options, struct database_values *values, char why[DATABASE_WHY])
{
    const size_t count = sizeof database_keywords / sizeof *database_keywords;
    for (const PQconninfoOption *at = options; at->keyword; at++) {
        if (!at->val)
            continue;
        size_t i = 0;
        while (i < count && strcmp(at->keyword, database_keywords[i].keyword) != 0)
            i++;
        if (i == count)
            return database_refuse(why,
                                   "has \"%s\", which is not supported in [databases]: use host, port, dbname, user, "
                                   "sslmode, sslrootcert, sslcrl, sslcert, sslkey, sslnegotiation",
                                   at->keyword);
        *(const char **)((char *)values + database_keywords[i].offset) = at->val;
    }
    return true;
}

static bool database_copy(const char *value, char **field, char why[DATABASE_WHY])
{
    if (!value)
        return true;
    *field = mem_strndup(value, strlen(value));
    return *field || database_no_memory(why);
}

/* A word that the option of the same meaning knows; `otherwise` where it is not given. */
static bool database_choose(const char *keyword, const char *word, const char *option, int otherwise, int *value,
                            char why[DATABASE_WHY])
{
    char sentence[OPTION_WHY];
    *value = otherwise;
    if (!word || !word[0] || option_choose(option, word, value, sentence))
        return true;
    return database_refuse(why, "has %s \"%.32s\": it %.180s", keyword, word, sentence);
}

static bool database_fill_tls(const struct database_values *values, struct conf_database *database,
                              char why[DATABASE_WHY])
{
    int sslmode;
    int sslnegotiation;
    if (!database_choose("sslmode", values->sslmode, "server_tls_sslmode", CONF_SSL_INHERIT, &sslmode, why) ||
        !database_choose("sslnegotiation", values->sslnegotiation, "server_tls_sslnegotiation",
                         CONF_SSLNEGOTIATION_INHERIT, &sslnegotiation, why))
        return false;
    database->sslmode = (enum conf_sslmode)sslmode;
    database->sslnegotiation = (enum conf_sslnegotiation)sslnegotiation;
    return database_copy(values->sslrootcert, &database->sslrootcert, why) &&
           database_copy(values->sslcrl, &database->sslcrl, why) &&
           database_copy(values->sslcert, &database->sslcert, why) &&
           database_copy(values->sslkey, &database->sslkey, why);
}

/* A folder has no name that a certificate could be for. */
static bool database_check_names(const struct conf_database *database, char why[DATABASE_WHY])
{
    for (size_t i = 0; i < database->nhosts; i++)
        if (database->hosts[i].host[0] == '/' && database->sslmode == CONF_SSL_VERIFY_FULL)
            return database_refuse(why, "has sslmode=verify-full without a name to verify: %.120s is a Unix socket",
                                   database->hosts[i].host);
    return true;
}

static bool database_fill(const PQconninfoOption *options, struct database_values *values,
                          struct conf_database *database, char why[DATABASE_WHY])
{
    return database_sort(options, values, why) &&
           database_read_hosts(values->host ? values->host : "", database, why) &&
           database_read_ports(values->port ? values->port : "", database, why) &&
           database_copy(values->dbname, &database->dbname, why) && database_copy(values->user, &database->user, why) &&
           database_fill_tls(values, database, why) && database_check_names(database, why);
}

/* ---- the one keyword that libpq may be too old to know ---- */

/* Length of a value as libpq finds its end: in quotes or up to a blank, and a backslash takes the next character with
 * it. 0 when the closing quote is missing. */
static size_t database_value_length(const char *value)
{
    bool is_quoted = *value == '\'';
    const char *at = value + is_quoted;
    while (*at && (is_quoted ? *at != '\'' : !isspace((unsigned char)*at)))
        at += *at == '\\' && at[1] ? 2 : 1;
    if (is_quoted && !*at)
        return 0;
    return (size_t)(at - value) + is_quoted;
}

/* The next keyword and its value, both as they are written. False at the end, and where libpq will complain. */
static bool database_next_word(char **at, struct span *keyword, struct span *value)
{
    *at += strspn(*at, DATABASE_BLANKS);
    *keyword = span_of(*at, strcspn(*at, "=" DATABASE_BLANKS));
    *at += keyword->len;
    *at += strspn(*at, DATABASE_BLANKS);
    if (**at != '=')
        return false;
    ++*at;
    *at += strspn(*at, DATABASE_BLANKS);
    *value = span_of(*at, database_value_length(*at));
    *at += value->len;
    return value->len > 0;
}

/* Takes sslnegotiation=... out of a string of keywords and values, and leaves blanks in its place. */
static void database_cut(char *connection, struct database_values *values)
{
    struct span keyword;
    struct span value;
    for (char *at = connection; database_next_word(&at, &keyword, &value);) {
        if (!span_equal_cstr(keyword, "sslnegotiation"))
            continue;
        size_t quote = value.ptr[0] == '\'';
        snprintf(values->sslnegotiation, sizeof values->sslnegotiation, "%.*s", (int)(value.len - 2 * quote),
                 (const char *)value.ptr + quote);
        char *from = connection + ((const char *)keyword.ptr - connection);
        memset(from, ' ', (size_t)(at - from));
    }
}

static bool database_is_uri(const char *connection)
{
    return strncmp(connection, "postgresql://", 13) == 0 || strncmp(connection, "postgres://", 11) == 0;
}

/* ---- the whole ---- */

static bool database_parse(const char *connection, struct database_values *values, struct conf_database *database,
                           char why[DATABASE_WHY])
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(connection, &message);
    bool ok = options && database_fill(options, values, database, why);
    if (!options) {
        size_t len = message ? strcspn(message, "\n") : 0;
        database_refuse(why, "is not a connection string: %.*s", len ? (int)len : 13, len ? message : "out of memory");
    }
    PQconninfoFree(options);
    PQfreemem(message);
    return ok;
}

bool database_read(const char *name, const char *connection, struct conf_database *database, char why[DATABASE_WHY])
{
    struct database_values values = {0};
    database->sslmode = CONF_SSL_INHERIT;
    database->sslnegotiation = CONF_SSLNEGOTIATION_INHERIT;
    if (!database_copy(name, &database->name, why))
        return false;
    char *copy = mem_strndup(connection, strlen(connection));
    if (!copy)
        return database_no_memory(why);
    if (!database_is_uri(copy))
        database_cut(copy, &values);
    bool ok = database_parse(copy, &values, database, why);
    mem_free(copy);
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
    mem_free(database->sslcrl);
    mem_free(database->sslcert);
    mem_free(database->sslkey);
    *database = (struct conf_database){0};
}
