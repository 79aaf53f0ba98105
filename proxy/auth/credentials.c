/* credentials.c - loads the files, and checks settings and files against each other. */
#include "credentials.h"

#include <stdarg.h>
#include <string.h>

#include "../admin/conf.h"
#include "../protocol/vault.h"

/* What is being loaded. */
struct credentials_loading {
    const struct conf *conf;
    struct credentials *made;
    FILE *complaints;
    unsigned faults;
};

/* ---- complaints ---- */

static void credentials_complain(struct credentials_loading *loading, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void credentials_complain(struct credentials_loading *loading, const char *where, const char *format, ...)
{
    va_list args;
    loading->faults++;
    fprintf(loading->complaints, "%s: ", where);
    va_start(args, format);
    vfprintf(loading->complaints, format, args);
    va_end(args);
    fputc('\n', loading->complaints);
}

/* About a setting; `field` is its address in the settings. */
static void credentials_complain_setting(struct credentials_loading *loading, const void *field, const char *sentence)
{
    char where[CONF_WHERE_BYTES];
    conf_where(loading->conf, field, where);
    credentials_complain(loading, where, "%s", sentence);
}

/* About a line of the hba file. */
static void credentials_complain_rule(struct credentials_loading *loading, unsigned line, const char *sentence)
{
    char where[CONF_WHERE_BYTES];
    snprintf(where, sizeof where, "%s:%u", loading->conf->auth_hba_file, line);
    credentials_complain(loading, where, "%s", sentence);
}

/* ---- files ---- */

/* The file's own faults were told; this is where it was asked for. */
static void credentials_check_loaded(struct credentials_loading *loading, char *const *field, const void *loaded)
{
    if ((*field)[0] && !loaded)
        credentials_complain_setting(loading, field, "the file cannot be used");
}

static void credentials_load_files(struct credentials_loading *loading)
{
    const struct conf *conf = loading->conf;
    struct credentials *made = loading->made;
    if (conf->auth_hba_file[0])
        made->hba = hba_load(conf->auth_hba_file, loading->complaints);
    if (conf->auth_ident_file[0])
        made->ident = ident_load(conf->auth_ident_file, loading->complaints);
    if (conf->auth_file[0])
        made->users = userlist_load(conf->auth_file, loading->complaints);
    credentials_check_loaded(loading, &conf->auth_hba_file, made->hba);
    credentials_check_loaded(loading, &conf->auth_ident_file, made->ident);
    credentials_check_loaded(loading, &conf->auth_file, made->users);
}

/* ---- settings ---- */

/* A file that nothing reads would look like a protection that is there. */
static void credentials_check_type(struct credentials_loading *loading)
{
    const struct conf *conf = loading->conf;
    bool is_hba = conf->auth_type == CONF_AUTH_HBA;
    if (is_hba && !conf->auth_hba_file[0])
        credentials_complain_setting(loading, &conf->auth_type, "auth_type hba needs auth_hba_file");
    if (!is_hba && conf->auth_hba_file[0])
        credentials_complain_setting(loading, &conf->auth_hba_file,
                                     "auth_hba_file is read with auth_type = hba only: set it, or remove the file");
    if (!is_hba && conf->auth_ident_file[0])
        credentials_complain_setting(loading, &conf->auth_ident_file,
                                     "auth_ident_file is for maps of auth_hba_file: set auth_type = hba, or remove it");
}

static bool credentials_has_secrets(const struct conf *conf)
{
    return conf->auth_file[0] || conf->auth_user[0];
}

static bool credentials_query_takes_user(const char *query)
{
    for (const char *at = query; (at = strstr(at, "$1")); at += 2)
        if (!strchr("0123456789", at[2]) || !at[2])
            return true;
    return false;
}

/* Before a client has proved anything: whoever owns a database could prepare there what auth_query runs, and strangers
 * would learn which databases exist. */
static bool credentials_asks_anywhere(const struct conf *conf)
{
    for (size_t i = 0; i < conf->ndatabases; i++)
        if (strcmp(conf->databases[i].name, "*") == 0 && !conf->databases[i].dbname)
            return !conf->auth_dbname[0];
    return false;
}

static void credentials_check_secrets(struct credentials_loading *loading)
{
    const struct conf *conf = loading->conf;
    if (conf->auth_type == CONF_AUTH_SCRAM && !credentials_has_secrets(conf))
        credentials_complain_setting(loading, &conf->auth_type,
                                     "auth_type scram-sha-256 needs secrets: set auth_file or auth_user");
    if (!conf->auth_user[0])
        return;
    if (!conf->auth_query[0])
        credentials_complain_setting(loading, &conf->auth_user, "auth_user asks auth_query, which is empty");
    else if (!credentials_query_takes_user(conf->auth_query))
        credentials_complain_setting(loading, &conf->auth_query, "auth_query does not mention $1, the user");
    else if (credentials_asks_anywhere(conf))
        credentials_complain_setting(loading, &conf->auth_user,
                                     "auth_user would ask in any database that a stranger names, since [databases] has "
                                     "a line for *: set auth_dbname");
}

/* ---- rules ---- */

static bool credentials_check_map(void *arg, const char *map, unsigned line)
{
    struct credentials_loading *loading = arg;
    const struct ident *ident = loading->made->ident;
    char sentence[CONF_WHERE_BYTES];
    if (!loading->conf->auth_ident_file[0])
        credentials_complain_rule(loading, line, "a map needs auth_ident_file");
    else if (ident && !ident_has_map(ident, map)) { /* else its own faults were told */
        snprintf(sentence, sizeof sentence, "auth_ident_file has no map \"%s\"", map);
        credentials_complain_rule(loading, line, sentence);
    }
    return true;
}

static void credentials_check_rules(struct credentials_loading *loading)
{
    const struct conf *conf = loading->conf;
    const struct hba *hba = loading->made->hba;
    if (!hba)
        return;
    unsigned line = hba_needs_secrets(hba);
    if (line && !credentials_has_secrets(conf))
        credentials_complain_rule(loading, line, "method scram-sha-256 needs secrets: set auth_file or auth_user");
    line = hba_needs_certificates(hba);
    if (line && conf->client_tls.sslmode == CONF_SSL_DISABLE)
        credentials_complain_rule(loading, line, "a client certificate needs TLS: client_tls_sslmode is disable");
    else if (line && !conf->client_tls.ca_file[0])
        credentials_complain_rule(loading, line, "a client certificate needs client_tls_ca_file to verify it");
    hba_each_map(hba, credentials_check_map, loading);
}

/* ---- the whole ---- */

struct credentials *credentials_load(const struct conf *conf, const uint8_t seed[SCRAM_KEY], FILE *complaints)
{
    struct credentials_loading loading = {.conf = conf, .complaints = complaints};
    loading.made = vault_new(sizeof *loading.made);
    if (!loading.made) {
        fputs("credentials cannot be loaded: out of memory\n", complaints);
        return NULL;
    }
    memcpy(loading.made->seed, seed, SCRAM_KEY);
    loading.made->otherwise = conf->auth_type == CONF_AUTH_SCRAM ? HBA_SCRAM : HBA_RELAY;
    credentials_load_files(&loading);
    credentials_check_type(&loading);
    credentials_check_secrets(&loading);
    credentials_check_rules(&loading);
    if (loading.faults == 0)
        return loading.made;
    credentials_free(loading.made);
    return NULL;
}

void credentials_free(struct credentials *credentials)
{
    if (!credentials)
        return;
    hba_free(credentials->hba);
    ident_free(credentials->ident);
    userlist_free(credentials->users);
    vault_free(credentials);
}

struct hba_verdict credentials_decide(const struct credentials *credentials, const struct hba_client *client)
{
    if (credentials->hba)
        return hba_decide(credentials->hba, client);
    return (struct hba_verdict){.method = credentials->otherwise};
}
