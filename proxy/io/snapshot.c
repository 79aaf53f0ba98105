/* snapshot.c - loads all or nothing, and counts who uses it. */
#include "snapshot.h"

#include <string.h>

#include "../admin/conf.h"
#include "../admin/log.h"
#include "../auth/credentials.h"
#include "../page/keyring.h"
#include "routes.h"
#include "tls_context.h"
#include "tls_mode.h"

/* ---- the keys of cursors ---- */

static bool snapshot_has_key_file(const struct conf *conf)
{
    return conf->cursor_key_file[0] != '\0';
}

static struct keyring *snapshot_load_keys(const struct conf *conf, FILE *complaints)
{
    struct pgseek_error error = {0};
    char where[CONF_WHERE_BYTES];
    struct keyring *keyring = keyring_load(conf->cursor_key_file, &error);
    conf_where(conf, &conf->cursor_key_file, where);
    if (!keyring)
        fprintf(complaints, "%s: %s%s%s\n", where, error.message, error.hint[0] ? "; " : "", error.hint);
    return keyring;
}

static bool snapshot_keeps_keys(const struct conf *conf, const struct snapshot *old)
{
    return !snapshot_has_key_file(conf) && old && !snapshot_has_key_file(old->conf);
}

static bool snapshot_get_keys(struct snapshot *snapshot, const struct snapshot *old, FILE *complaints)
{
    if (snapshot_has_key_file(snapshot->conf)) {
        snapshot->keyring = snapshot_load_keys(snapshot->conf, complaints);
        return snapshot->keyring;
    }
    /* A reload must not kill cursors. */
    snapshot->keyring = snapshot_keeps_keys(snapshot->conf, old) ? keyring_ref(old->keyring) : keyring_ephemeral();
    if (!snapshot->keyring)
        fputs("could not make a key for cursors: no randomness or no memory\n", complaints);
    return snapshot->keyring;
}

/* ---- TLS ---- */

/* The first line that asks for the same: it was loaded, or complained about, already. */
static size_t snapshot_find_alike(const struct conf *conf, size_t line)
{
    size_t i = 0;
    while (i < line && !tls_context_is_alike(conf, &conf->databases[i], &conf->databases[line]))
        i++;
    return i;
}

static bool snapshot_get_tls(struct snapshot *snapshot, FILE *complaints)
{
    const struct conf *conf = snapshot->conf;
    bool ok = tls_context_for_clients(conf, &snapshot->client_tls, complaints);
    snapshot->server_tls = mem_zalloc(conf->ndatabases * sizeof(struct tls_context *));
    if (!snapshot->server_tls) {
        fputs("out of memory\n", complaints);
        return false;
    }
    for (size_t i = 0; i < conf->ndatabases; i++) {
        size_t first = snapshot_find_alike(conf, i);
        if (first < i)
            snapshot->server_tls[i] = tls_context_ref(snapshot->server_tls[first]);
        else if (!tls_context_for_server(conf, &conf->databases[i], &snapshot->server_tls[i], complaints))
            ok = false;
    }
    return ok;
}

struct tls_context *snapshot_tls(const struct snapshot *snapshot, const struct conf_database *database)
{
    const struct conf *conf = snapshot->conf;
    for (size_t i = 0; i < conf->ndatabases; i++)
        if (&conf->databases[i] == database)
            return snapshot->server_tls[i];
    for (size_t i = 0; i < conf->ndatabases; i++)
        if (strcmp(conf->databases[i].name, database->name) == 0)
            return snapshot->server_tls[i];
    return NULL;
}

/* ---- log-ins ---- */

_Static_assert(KEYRING_SECRET == SCRAM_KEY, "the seed of mock secrets comes from the keys of cursors");

/* What users are shown that do not exist depends on the key file alone. Without keys it is only looked for faults. */
static bool snapshot_get_credentials(struct snapshot *snapshot, FILE *complaints)
{
    static const uint8_t none[SCRAM_KEY];
    const uint8_t *seed = snapshot->keyring ? keyring_common(snapshot->keyring) : none;
    snapshot->credentials = credentials_load(snapshot->conf, seed, complaints);
    return snapshot->credentials;
}

/* ---- its life ---- */

struct snapshot *snapshot_new(struct conf *conf, const struct snapshot *old, FILE *complaints)
{
    struct snapshot *snapshot = mem_zalloc(sizeof *snapshot);
    if (!snapshot) {
        conf_unref(conf);
        fputs("out of memory\n", complaints);
        return NULL;
    }
    atomic_init(&snapshot->refs, 1);
    snapshot->conf = conf;
    bool ok = snapshot_get_keys(snapshot, old, complaints);
    ok = snapshot_get_tls(snapshot, complaints) && ok; /* all faults at once */
    ok = snapshot_get_credentials(snapshot, complaints) && ok;
    if (ok)
        return snapshot;
    snapshot_unref(snapshot);
    return NULL;
}

struct snapshot *snapshot_ref(struct snapshot *snapshot)
{
    atomic_fetch_add(&snapshot->refs, 1);
    return snapshot;
}

void snapshot_unref(struct snapshot *snapshot)
{
    if (!snapshot || atomic_fetch_sub(&snapshot->refs, 1) > 1)
        return;
    for (size_t i = 0; snapshot->server_tls && i < snapshot->conf->ndatabases; i++)
        tls_context_free(snapshot->server_tls[i]);
    mem_free(snapshot->server_tls);
    tls_context_free(snapshot->client_tls);
    credentials_free(snapshot->credentials);
    keyring_free(snapshot->keyring);
    conf_unref(snapshot->conf);
    mem_free(snapshot);
}

/* ---- what is said about it ---- */

/* What each mode leaves open on a way that others can reach; NULL: nothing. */
static const char *snapshot_weakness(const struct conf *conf, const struct conf_database *database, size_t host)
{
    enum conf_sslmode mode = tls_mode_for_host(conf, database, host);
    if (tls_host_is_local(database->hosts[host].host) || mode >= CONF_SSL_VERIFY_CA)
        return NULL;
    if (mode == CONF_SSL_DISABLE)
        return "is not encrypted: anybody on the way can read and change it";
    if (mode < CONF_SSL_REQUIRE)
        return "is encrypted only if the server offers it: anybody on the way can prevent that, read and change it";
    if (conf_server_leg(conf, database).ca_file[0])
        return NULL;
    return "is encrypted, but nobody verifies to whom: anybody on the way can pose as the server";
}

static void snapshot_warn_of_servers(const struct conf *conf)
{
    for (size_t i = 0; i < conf->ndatabases; i++)
        for (size_t host = 0; host < conf->databases[i].nhosts; host++) {
            const char *weakness = snapshot_weakness(conf, &conf->databases[i], host);
            if (weakness)
                log_at(LOG_WARNING, "database \"%s\": the connection to %s %s (sslmode=verify-full would protect it)",
                       conf->databases[i].name, conf->databases[i].hosts[host].host, weakness);
        }
}

static void snapshot_announce_lists(const struct snapshot *snapshot)
{
    const struct conf *conf = snapshot->conf;
    if (snapshot->client_tls && conf->client_tls.crl_file[0])
        tls_context_announce(snapshot->client_tls, conf->client_tls.crl_file);
    for (size_t i = 0; i < conf->ndatabases; i++) {
        const char *crl_file = conf_server_leg(conf, &conf->databases[i]).crl_file;
        if (snapshot->server_tls[i] && crl_file[0] && snapshot_find_alike(conf, i) == i)
            tls_context_announce(snapshot->server_tls[i], crl_file);
    }
}

static void snapshot_log(const char *sentence)
{
    log_at(LOG_INFO, "database %s", sentence);
}

void snapshot_announce(const struct snapshot *snapshot, const struct snapshot *old)
{
    if (snapshot_has_key_file(snapshot->conf))
        log_at(LOG_INFO, "cursors are sealed with the first key of %s", snapshot->conf->cursor_key_file);
    else if (!snapshot_keeps_keys(snapshot->conf, old))
        log_at(LOG_WARNING, "no cursor_key_file: cursors die with this process (\"pgseek keygen FILE\" makes one)");
    snapshot_warn_of_servers(snapshot->conf);
    snapshot_announce_lists(snapshot);
    routes_tell(snapshot->conf, snapshot_log);
}
