/* snapshot.c - settings and keys, counted. */
#include "snapshot.h"

#include "../admin/conf.h"
#include "../admin/log.h"
#include "../page/keyring.h"

static struct keyring *snapshot_load_keys(const char *path)
{
    struct pgseek_error error = {0};
    struct keyring *keyring = keyring_load(path, &error);
    if (keyring)
        log_at(LOG_INFO, "cursors are sealed with the first key of %s", path);
    else
        log_at(LOG_ERROR, "%s%s%s", error.message, error.hint[0] ? "; " : "", error.hint);
    return keyring;
}

static struct keyring *snapshot_make_keys(void)
{
    struct keyring *keyring = keyring_ephemeral();
    if (keyring)
        log_at(LOG_WARNING, "no cursor_key_file: cursors die with this process (\"pgseek keygen FILE\" makes one)");
    else
        log_at(LOG_ERROR, "could not make a key: no randomness or no memory");
    return keyring;
}

static bool snapshot_has_key_file(const struct conf *conf)
{
    return conf->cursor_key_file[0] != '\0';
}

static struct keyring *snapshot_get_keys(const struct conf *conf, const struct snapshot *old)
{
    if (snapshot_has_key_file(conf))
        return snapshot_load_keys(conf->cursor_key_file);
    if (!old || snapshot_has_key_file(old->conf))
        return snapshot_make_keys();
    return keyring_ref(old->keyring); /* a reload must not kill cursors */
}

struct snapshot *snapshot_new(struct conf *conf, const struct snapshot *old)
{
    struct snapshot *snapshot = mem_zalloc(sizeof *snapshot);
    struct keyring *keyring = snapshot ? snapshot_get_keys(conf, old) : NULL;
    if (!keyring) {
        mem_free(snapshot);
        conf_unref(conf);
        return NULL;
    }
    atomic_init(&snapshot->refs, 1);
    snapshot->conf = conf;
    snapshot->keyring = keyring;
    return snapshot;
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
    keyring_free(snapshot->keyring);
    conf_unref(snapshot->conf);
    mem_free(snapshot);
}
