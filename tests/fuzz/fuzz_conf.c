/* fuzz_conf.c - configuration files: what loads is silent, and loads again from what it says about itself; what does
 * not load names a line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxy/admin/conf.h"
#include "../../proxy/admin/option.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct conf *read_text(struct span text, char **complaints)
{
    size_t len;
    FILE *out = open_memstream(complaints, &len);
    require(out != NULL);
    struct conf *conf = conf_read(text, "conf", out);
    fclose(out);
    return conf;
}

/* Each line is "conf:<number>: sentence", where a control character may have come from the file. */
static void check_complaints(const char *complaints)
{
    require(complaints[0] != '\0');
    for (const char *end; (end = strchr(complaints, '\n')); complaints = end + 1) {
        size_t digits = strncmp(complaints, "conf:", 5) == 0 ? strspn(complaints + 5, "0123456789") : 0;
        require(digits > 0 && strncmp(complaints + 5 + digits, ": ", 2) == 0 && complaints + 7 + digits < end);
    }
    require(complaints[0] == '\0');
}

/* What holds of every snapshot, whatever the file said. */
static void check_settings(const struct conf *conf)
{
    require(conf->ndatabases > 0);
    require(conf->listen_port >= 1 && conf->listen_port <= 65535 && conf->workers >= 1);
    require(conf->nscope <= CONF_MAX_SCOPE && conf->deliver != 0);
    require(conf->client_tls.sslmode <= CONF_SSL_VERIFY_FULL && conf->server_tls.sslmode <= CONF_SSL_AUTO);
    for (size_t i = 0; i < conf->ndatabases; i++) {
        const struct conf_database *database = &conf->databases[i];
        require(database->name[0] && database->line > 0 && conf_find_database(conf, database->name) == database);
        require(database->nhosts >= 1 && database->nhosts <= CONF_MAX_HOSTS);
        for (size_t j = 0; j < database->nhosts; j++)
            require(database->hosts[j].host[0] && database->hosts[j].port >= 1 && database->hosts[j].port <= 65535);
    }
}

/* The line that a setting says it is from sets that setting, and no other line sets anything. */
static void check_lines(const struct conf *conf, struct span text)
{
    unsigned number = 0;
    for (const uint8_t *at = text.ptr; at < text.ptr + text.len; number++) {
        const uint8_t *end = memchr(at, '\n', (size_t)(text.ptr + text.len - at));
        at = end ? end + 1 : text.ptr + text.len;
    }
    for (size_t i = 0; i < option_count; i++) {
        require(conf->lines[i] <= number);
        for (size_t j = 0; j < i; j++)
            require(conf->lines[i] != conf->lines[j] || conf->lines[i] == 0);
    }
}

/* The same text twice is the same settings. */
static void check_again(const struct conf *conf, struct span text)
{
    char *complaints;
    struct conf *again = read_text(text, &complaints);
    require(again && complaints[0] == '\0');
    for (size_t i = 0; i < option_count; i++)
        require(option_equal(&option_table[i], conf, again) && conf->lines[i] == again->lines[i]);
    require(conf_restart_needed(conf, again, NULL, 0) == 0 && conf->ndatabases == again->ndatabases);
    conf_unref(again);
    free(complaints);
}

/* Line ends of another system, and comments, change nothing. */
static void check_respelled(const struct conf *conf, struct span text)
{
    char *complaints;
    struct buf respelled = {0};
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\n')
            buf_put_text(&respelled, "\t\r\n  ; nothing");
        buf_put_u8(&respelled, text.ptr[i]);
    }
    struct conf *again = read_text(buf_span(&respelled), &complaints);
    require(again != NULL);
    for (size_t i = 0; i < option_count; i++)
        require(option_equal(&option_table[i], conf, again));
    conf_unref(again);
    free(complaints);
    buf_fini(&respelled);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *complaints;
    struct span text = span_of(data, size);
    struct conf *conf = read_text(text, &complaints);
    if (!conf)
        check_complaints(complaints);
    else {
        require(complaints[0] == '\0');
        check_settings(conf);
        check_lines(conf, text);
        check_again(conf, text);
        check_respelled(conf, text);
    }
    conf_unref(conf);
    free(complaints);
    return 0;
}
