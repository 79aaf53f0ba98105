/* conf.c - the life of a snapshot: defaults, references, look-ups. conf_file.c reads files. */
#include "conf.h"

#include <string.h>

#include "../protocol/bytes.h"
#include "conf_file.h"
#include "database.h"
#include "option.h"

static void conf_free(struct conf *conf)
{
    for (size_t i = 0; i < option_count; i++)
        option_release(&option_table[i], conf);
    for (size_t i = 0; i < conf->ndatabases; i++)
        database_fini(&conf->databases[i]);
    mem_free(conf->databases);
    mem_free(conf->path);
    mem_free(conf);
}

struct conf *conf_new(void)
{
    char why[OPTION_WHY];
    struct conf *conf = mem_zalloc(sizeof *conf);
    if (!conf)
        return NULL;
    atomic_init(&conf->refs, 1);
    for (size_t i = 0; i < option_count; i++)
        if (!option_put(&option_table[i], conf, option_table[i].initial, why)) {
            conf_free(conf);
            return NULL;
        }
    return conf;
}

struct conf *conf_ref(struct conf *conf)
{
    atomic_fetch_add_explicit(&conf->refs, 1, memory_order_relaxed);
    return conf;
}

void conf_unref(struct conf *conf)
{
    if (conf && atomic_fetch_sub_explicit(&conf->refs, 1, memory_order_acq_rel) == 1)
        conf_free(conf);
}

bool conf_add_database(struct conf *conf, const char *name, const char *connection, char *why, size_t why_size)
{
    char sentence[DATABASE_WHY];
    struct conf_database added = {0};
    bool ok = database_read(name, connection, &added, sentence);
    struct conf_database *grown = NULL;
    if (ok) {
        grown = mem_realloc(conf->databases, (conf->ndatabases + 1) * sizeof *grown);
        snprintf(sentence, sizeof sentence, "cannot be stored: out of memory");
    }
    if (!grown) {
        snprintf(why, why_size, "%s", sentence);
        database_fini(&added);
        return false;
    }
    conf->databases = grown;
    conf->databases[conf->ndatabases++] = added;
    return true;
}

struct conf *conf_default(const char *host, int port)
{
    char connection[512];
    char why[DATABASE_WHY];
    struct conf *conf = conf_new();
    snprintf(connection, sizeof connection, "host='%s' port=%d", host, port);
    if (conf && !conf_add_database(conf, "*", connection, why, sizeof why)) {
        conf_unref(conf);
        return NULL;
    }
    return conf;
}

/* Exactly that name: "*" is a name here. */
static const struct conf_database *conf_find_exact(const struct conf *conf, const char *name)
{
    for (size_t i = 0; i < conf->ndatabases; i++)
        if (strcmp(conf->databases[i].name, name) == 0)
            return &conf->databases[i];
    return NULL;
}

const struct conf_database *conf_find_database(const struct conf *conf, const char *name)
{
    const struct conf_database *exact = conf_find_exact(conf, name);
    return exact ? exact : conf_find_exact(conf, "*");
}

struct conf_server_leg conf_server_leg(const struct conf *conf, const struct conf_database *database)
{
    const struct conf_tls *tls = &conf->server_tls;
    const char *ca_file = database->sslrootcert ? database->sslrootcert : tls->ca_file;
    bool is_system_ca = strcmp(ca_file, CONF_SSLROOTCERT_SYSTEM) == 0;
    return (struct conf_server_leg){
        .sslmode = database->sslmode == CONF_SSL_INHERIT ? tls->sslmode : database->sslmode,
        .sslnegotiation = database->sslnegotiation == CONF_SSLNEGOTIATION_INHERIT ? conf->server_tls_sslnegotiation
                                                                                  : database->sslnegotiation,
        .is_system_ca = is_system_ca,
        .ca_file = is_system_ca ? "" : ca_file,
        .crl_file = database->sslcrl ? database->sslcrl : tls->crl_file,
        .cert_file = database->sslcert ? database->sslcert : tls->cert_file,
        .key_file = database->sslkey ? database->sslkey : tls->key_file,
    };
}

static void conf_write_where(const struct conf *conf, unsigned line, char where[CONF_WHERE_BYTES])
{
    const char *path = conf->path ? conf->path : "the configuration";
    if (line > 0)
        snprintf(where, CONF_WHERE_BYTES, "%s:%u", path, line);
    else
        snprintf(where, CONF_WHERE_BYTES, "%s", path);
}

void conf_where(const struct conf *conf, const void *field, char where[CONF_WHERE_BYTES])
{
    unsigned line = 0;
    for (size_t i = 0; i < option_count; i++)
        if ((const char *)conf + option_table[i].offset == (const char *)field)
            line = conf->lines[i];
    conf_write_where(conf, line, where);
}

void conf_where_database(const struct conf *conf, const struct conf_database *database, char where[CONF_WHERE_BYTES])
{
    conf_write_where(conf, database->line, where);
}

size_t conf_restart_needed(const struct conf *running, const struct conf *loaded, const char **names, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < option_count; i++) {
        if (option_table[i].is_reloadable || option_equal(&option_table[i], running, loaded))
            continue;
        if (count < max)
            names[count] = option_table[i].name;
        count++;
    }
    return count;
}
