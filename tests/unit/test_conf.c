/* test_conf.c - configuration files in, settings or complaints out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../proxy/admin/conf.h"
#include "../../proxy/admin/option.h"
#include "../../proxy/admin/reference.h"
#include "../../proxy/protocol/bytes.h"

static char path[] = "/tmp/test_conf.XXXXXX";

static int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

/* Loads a text. *complaints is to be freed, with "FILE" in the place of the path. */
static struct conf *load_bytes(const char *text, size_t len, char **complaints)
{
    size_t size;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    fclose(file);
    FILE *out = open_memstream(complaints, &size);
    assert_non_null(out);
    struct conf *conf = conf_load(path, out);
    fclose(out);
    return conf;
}

static struct conf *load(const char *text)
{
    char *complaints;
    struct conf *conf = load_bytes(text, strlen(text), &complaints);
    if (!conf)
        fail_msg("%s", complaints);
    assert_string_equal(complaints, "");
    free(complaints);
    return conf;
}

#define DATABASES "[databases]\n* = host=127.0.0.1\n"

static void defaults_are_the_contract(void **state)
{
    (void)state;
    struct conf *conf = load(DATABASES);
    assert_string_equal(conf->listen_addr, "127.0.0.1");
    assert_int_equal(conf->listen_port, 6432);
    assert_string_equal(conf->unix_socket_dir, "/var/run/postgresql");
    assert_int_equal(conf->unix_socket_mode, 0777);
    assert_int_equal(conf->workers, 1);
    assert_int_equal(conf->max_client_conn, 1000);
    assert_int_equal(conf->client_login_timeout, 60);
    assert_int_equal(conf->server_connect_timeout, 15);
    assert_int_equal(conf->max_tagged_size, 1024 * 1024);
    assert_int_equal(conf->plan_cache_size, 1000);
    assert_true(conf->tcp_keepalive);
    assert_string_equal(conf->cursor_key_file, "");
    assert_int_equal(conf->cursor_ttl, 86400);
    assert_int_equal(conf->cursor_protection, CONF_PROTECT_ENCRYPT);
    assert_int_equal(conf->mode, PGSEEK_MODE_REWRITE);
    assert_false(conf->strict);
    assert_int_equal(conf->deliver, PGSEEK_DELIVER_STATUS);
    assert_int_equal(conf->offset_policy, CONF_OFFSET_RUN);
    assert_int_equal(conf->max_offset, 0);
    assert_int_equal(conf->nscope, 0);
    assert_true(conf->log_connections && conf->log_disconnections);
    conf_unref(conf);
}

static void values_of_every_type(void **state)
{
    (void)state;
    struct conf *conf = load("\xef\xbb\xbf; the file begins with a byte order mark\r\n"
                             "# and has comments of both kinds\n"
                             "[pgseek]\r\n"
                             "listen_addr = 10.0.0.1, ::1\n"
                             "  LISTEN_PORT=7000\n" /* a blank in front is no continuation */
                             "\tunix_socket_dir =\n"
                             "unix_socket_mode = 0770\n"
                             "tcp_keepalive = No ; said twice\n"
                             "tcp_keepidle = 5min\n"
                             "client_login_timeout = 90\n"
                             "cursor_ttl = 7 d\n"
                             "max_tagged_size = 64kb\n"
                             "max_offset = 9223372036854775807\n"
                             "cursor_protection = SIGN\n"
                             "mode = off\n"
                             "strict = 1\n"
                             "deliver = status ,columns\n"
                             "offset_policy = reject\n"
                             "scope = app.tenant_id, role ,a.b$c.d_1\n" DATABASES);
    assert_string_equal(conf->listen_addr, "10.0.0.1, ::1");
    assert_int_equal(conf->listen_port, 7000);
    assert_string_equal(conf->unix_socket_dir, "");
    assert_int_equal(conf->unix_socket_mode, 0770);
    assert_false(conf->tcp_keepalive);
    assert_int_equal(conf->tcp_keepidle, 300);
    assert_int_equal(conf->client_login_timeout, 90);
    assert_int_equal(conf->cursor_ttl, 7 * 86400);
    assert_int_equal(conf->max_tagged_size, 65536);
    assert_true(conf->max_offset == INT64_MAX);
    assert_int_equal(conf->cursor_protection, CONF_PROTECT_SIGN);
    assert_int_equal(conf->mode, PGSEEK_MODE_OFF);
    assert_true(conf->strict);
    assert_int_equal(conf->deliver, PGSEEK_DELIVER_STATUS | PGSEEK_DELIVER_COLUMNS);
    assert_int_equal(conf->offset_policy, CONF_OFFSET_REJECT);
    assert_int_equal(conf->nscope, 3);
    assert_string_equal(conf->scope[0], "app.tenant_id");
    assert_string_equal(conf->scope[1], "role");
    assert_string_equal(conf->scope[2], "a.b$c.d_1");
    conf_unref(conf);
}

/* One fault per file: the line it is in, and what is said about it. */
static const struct {
    const char *text;
    const char *complaint; /* without the path */
} faults[] = {
    {"[pgseek]\ncurser_ttl = 1d\n", ":2: unknown option \"curser_ttl\", did you mean \"cursor_ttl\"?\n"},
    {"[pgseek]\nlistenport = 1\n", ":2: unknown option \"listenport\", did you mean \"listen_port\"?\n"},
    {"[pgseek]\nzzz = 1\n", ":2: unknown option \"zzz\"\n"},
    {"[pgseek]\n\nlisten_port = 1\n\nlisten_port = 2\n", ":5: listen_port is already set in line 3\n"},
    {"[pgseek]\nlisten_port = 0\n", ":2: listen_port is out of range: 1 to 65535\n"},
    {"[pgseek]\nlisten_port = 65536\n", ":2: listen_port is out of range: 1 to 65535\n"},
    {"[pgseek]\nlisten_port = 99999999999999999999\n", ":2: listen_port must be a whole number\n"},
    {"[pgseek]\nlisten_port = 64x\n", ":2: listen_port must be a whole number\n"},
    {"[pgseek]\nlisten_port =\n", ":2: listen_port must be a whole number\n"},
    {"[pgseek]\nlisten_port = 0x10\n", ":2: listen_port must be a whole number\n"},
    {"[pgseek]\nunix_socket_mode = 0888\n", ":2: unix_socket_mode must be an octal number\n"},
    {"[pgseek]\nunix_socket_mode = 1777\n", ":2: unix_socket_mode is out of range: 0000 to 0777\n"},
    {"[pgseek]\nunix_socket_mode = -1\n", ":2: unix_socket_mode is out of range: 0000 to 0777\n"},
    {"[pgseek]\ncursor_ttl = 5m\n", ":2: cursor_ttl must be a whole number of seconds, or one with s, min, h or d\n"},
    {"[pgseek]\ncursor_ttl = 1.5h\n", ":2: cursor_ttl must be a whole number of seconds, or one with s, min, h or d\n"},
    {"[pgseek]\ncursor_ttl = -1\n", ":2: cursor_ttl is out of range: 0 to 36500d\n"},
    {"[pgseek]\ncursor_ttl = 9223372036854775807d\n",
     ":2: cursor_ttl must be a whole number of seconds, or one with s, min, h or d\n"},
    {"[pgseek]\nmax_tagged_size = 1GB\n", ":2: max_tagged_size is out of range: 1kB to 16MB\n"},
    {"[pgseek]\nmax_offset = -1\n", ":2: max_offset is out of range: 0 or more\n"},
    {"[pgseek]\nstrict = maybe\n", ":2: strict must be one of: on, off, yes, no, true, false, 1, 0\n"},
    {"[pgseek]\nmode = fast\n", ":2: mode must be one of: rewrite, off\n"},
    {"[pgseek]\nmode = verify\n",
     ":2: mode cannot be \"verify\": this version cannot verify yet: use rewrite or off\n"},
    {"[pgseek]\noffset_policy = anchor\n",
     ":2: offset_policy cannot be \"anchor\": this version has no anchors yet: use offset or reject\n"},
    {"[pgseek]\ndeliver = status, , notice\n", ":2: deliver must be one of: status, notice, columns\n"},
    {"[pgseek]\ndeliver =\n", ":2: deliver must be one of: status, notice, columns\n"},
    {"[pgseek]\nscope = app.tenant_id,\n",
     ":2: scope must be a list of settings such as app.tenant_id: \"\" is none\n"},
    {"[pgseek]\nscope = a..b\n", ":2: scope must be a list of settings such as app.tenant_id: \"a..b\" is none\n"},
    {"[pgseek]\nscope = a'b\n", ":2: scope must be a list of settings such as app.tenant_id: \"a'b\" is none\n"},
    {"[pgseek]\nscope = role, ROLE\n", ":2: scope names \"ROLE\" twice\n"},
    {"[pgseek]\nscope = pgseek.cursor\n",
     ":2: scope cannot hold \"pgseek.cursor\": the server never sees pgseek's own variables\n"},
    {"[pgseek]\nscope = a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q\n", ":2: scope can hold at most 16 settings\n"},
    {"[pgbouncer]\nlisten_port = 1\n\n", ":1: unknown section [pgbouncer]: there are [pgseek] and [databases]\n"},
    {"[empty]\n", ":1: unknown section [empty]: there are [pgseek] and [databases]\n"},
    {"[databases] a = host=x\n", ":1: something stands behind the section's name: settings have lines of their own\n"},
    {"[pgseek\nlisten_port = 1\n", ":1: a section's name must end in \"]\"\n"},
    {"listen_port = 1\n", ":1: settings belong into a section: [pgseek] or [databases]\n"},
    {"[pgseek]\nlisten_port 1\n", ":2: expected name = value\n"},
    {"[pgseek]\nlisten_port : 1\n", ":2: expected name = value\n"},
    {"[pgseek]\nlisten_port ; = 1\n", ":2: expected name = value\n"},
    {"[pgseek]\n%include other\n", ":2: expected name = value\n"},
    {"[pgseek]\nlisten_addr =\nunix_socket_dir =\n",
     ":5: nothing to listen on: listen_addr and unix_socket_dir are both empty\n"},
};

static void assert_complaint(const char *text, size_t len, const char *expected)
{
    char *complaints;
    char whole[512];
    struct conf *conf = load_bytes(text, len, &complaints);
    snprintf(whole, sizeof whole, "%s%s", path, expected);
    if (conf || strcmp(complaints, whole) != 0)
        fail_msg("%s\ncomplained: %s\nexpected: %s", text, complaints, whole);
    free(complaints);
}

static void every_fault_is_explained(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s" DATABASES, faults[i].text);
        assert_complaint(text, strlen(text), faults[i].complaint);
    }
    assert_complaint("[pgseek]\nlogfile = a\0b\n", 23, ":2: the line holds a NUL character\n");
    assert_complaint("", 0, ":0: [databases] is empty: add a line such as \"* = host=127.0.0.1 port=5432\"\n");
}

static void all_faults_are_reported(void **state)
{
    char *complaints;
    (void)state;
    static const char text[] =
        "[pgseek]\nmode = fast\nnonsense\nworkers = 0\n[databases]\na = hots=x\na = host=x\nb = port=0\n";
    assert_null(load_bytes(text, strlen(text), &complaints));
    unsigned lines = 0;
    for (const char *at = complaints; *at; at++)
        lines += *at == '\n';
    assert_int_equal(lines, 5); /* a's first line failed, so its second one is the first that counts */
    free(complaints);

    FILE *out = open_memstream(&complaints, &(size_t){0});
    assert_null(conf_load("/nonexistent/proxy.conf", out));
    fclose(out);
    assert_string_equal(complaints, "/nonexistent/proxy.conf: cannot be opened: No such file or directory\n");
    free(complaints);
}

/* A line is taken whole or is an error, never cut. */
static void long_lines_are_never_cut(void **state)
{
    (void)state;
    for (size_t len = 4000; len < 4200; len++) {
        char text[5000];
        char *complaints;
        int at = snprintf(text, sizeof text, DATABASES "[pgseek]\nlogfile = ");
        memset(text + at, 'x', len);
        text[(size_t)at + len] = '\0';
        struct conf *conf = load_bytes(text, strlen(text), &complaints);
        if (conf)
            assert_int_equal(strlen(conf->logfile), len);
        else
            assert_non_null(strstr(complaints, ":4: the line is longer than 4096 characters\n"));
        assert_int_equal(conf != NULL, len + strlen("logfile = ") <= 4096);
        conf_unref(conf);
        free(complaints);
    }
}

static void databases_are_connection_strings(void **state)
{
    (void)state;
    struct conf *conf = load("[databases]\n"
                             "shop = host=db1,db2 port=5433 dbname=shop_live user='o\\'neil'\n"
                             "log = host=/tmp,::1 port=1,2\n"
                             "plain =\n"
                             "uri = postgresql://db3:7777/there\n"
                             "* = host=127.0.0.1\n");
    const struct conf_database *shop = conf_find_database(conf, "shop");
    assert_int_equal(shop->nhosts, 2);
    assert_string_equal(shop->hosts[0].host, "db1");
    assert_string_equal(shop->hosts[1].host, "db2");
    assert_int_equal(shop->hosts[0].port, 5433);
    assert_int_equal(shop->hosts[1].port, 5433);
    assert_string_equal(shop->dbname, "shop_live");
    assert_string_equal(shop->user, "o'neil");
    const struct conf_database *log = conf_find_database(conf, "log");
    assert_string_equal(log->hosts[0].host, "/tmp");
    assert_string_equal(log->hosts[1].host, "::1");
    assert_int_equal(log->hosts[0].port, 1);
    assert_int_equal(log->hosts[1].port, 2);
    const struct conf_database *plain = conf_find_database(conf, "plain");
    assert_int_equal(plain->nhosts, 1);
    assert_string_equal(plain->hosts[0].host, "/var/run/postgresql");
    assert_int_equal(plain->hosts[0].port, 5432);
    assert_null(plain->dbname);
    assert_null(plain->user);
    assert_int_equal(conf_find_database(conf, "uri")->hosts[0].port, 7777);
    assert_string_equal(conf_find_database(conf, "uri")->dbname, "there");
    assert_string_equal(conf_find_database(conf, "other")->name, "*");
    assert_string_equal(conf_find_database(conf, "")->name, "*");
    conf_unref(conf);

    conf = load("[databases]\nshop = host=db1\n");
    assert_null(conf_find_database(conf, "Shop"));
    assert_null(conf_find_database(conf, "*"));
    conf_unref(conf);
}

static void assert_text(const char *text, const char *expected)
{
    if (expected)
        assert_string_equal(text, expected);
    else
        assert_null(text);
}

static void databases_have_tls_of_their_own(void **state)
{
    static const struct {
        const char *line;
        enum conf_sslmode sslmode;
        enum conf_sslnegotiation sslnegotiation;
        const char *sslrootcert, *sslcrl, *sslcert, *sslkey;
    } cases[] = {
        {"host=x", CONF_SSL_INHERIT, CONF_SSLNEGOTIATION_INHERIT, NULL, NULL, NULL, NULL},
        {"host=x sslmode=AUTO", CONF_SSL_AUTO, CONF_SSLNEGOTIATION_INHERIT, NULL, NULL, NULL, NULL},
        {"host=x sslmode=disable", CONF_SSL_DISABLE, CONF_SSLNEGOTIATION_INHERIT, NULL, NULL, NULL, NULL},
        {"sslnegotiation=direct sslmode=verify-full host=x sslrootcert=system", CONF_SSL_VERIFY_FULL,
         CONF_SSLNEGOTIATION_DIRECT, "system", NULL, NULL, NULL},
        {"host=x sslcert='/a b/c.crt' sslnegotiation = 'postgres' sslkey=/a\\ b/c.key sslmode=require",
         CONF_SSL_REQUIRE, CONF_SSLNEGOTIATION_POSTGRES, NULL, NULL, "/a b/c.crt", "/a b/c.key"},
        {"host=x sslnegotiation=postgres sslnegotiation=direct", CONF_SSL_INHERIT, CONF_SSLNEGOTIATION_DIRECT, NULL,
         NULL, NULL, NULL},
        {"host=x dbname='sslnegotiation=direct'", CONF_SSL_INHERIT, CONF_SSLNEGOTIATION_INHERIT, NULL, NULL, NULL,
         NULL},
        {"postgresql://x/d?sslmode=verify-ca&sslrootcert=/ca&sslcrl=/crl", CONF_SSL_VERIFY_CA,
         CONF_SSLNEGOTIATION_INHERIT, "/ca", "/crl", NULL, NULL},
        {"host=x sslcrl=''", CONF_SSL_INHERIT, CONF_SSLNEGOTIATION_INHERIT, NULL, "", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "[databases]\n* = %s\n", cases[i].line);
        struct conf *conf = load(text);
        const struct conf_database *database = conf_find_database(conf, "any");
        assert_string_equal(database->hosts[0].host, "x");
        assert_int_equal(database->sslmode, cases[i].sslmode);
        assert_int_equal(database->sslnegotiation, cases[i].sslnegotiation);
        assert_text(database->sslrootcert, cases[i].sslrootcert);
        assert_text(database->sslcrl, cases[i].sslcrl);
        assert_text(database->sslcert, cases[i].sslcert);
        assert_text(database->sslkey, cases[i].sslkey);
        conf_unref(conf);
    }
}

/* What a line does not say is the option's. */
static void server_legs_inherit(void **state)
{
    (void)state;
    struct conf *conf = load("[pgseek]\nserver_tls_sslmode = require\nserver_tls_ca_file = /ca\n"
                             "server_tls_crl_file = /crl\n"
                             "server_tls_cert_file = /cert\nserver_tls_key_file = /key\n"
                             "server_tls_sslnegotiation = direct\n"
                             "[databases]\nplain = host=x\nown = host=x sslmode=verify-full sslrootcert=system "
                             "sslcrl=/l sslcert=/c sslkey=/k sslnegotiation=postgres\nwithout = host=x sslcrl=''\n");
    struct conf_server_leg plain = conf_server_leg(conf, conf_find_database(conf, "plain"));
    assert_int_equal(plain.sslmode, CONF_SSL_REQUIRE);
    assert_int_equal(plain.sslnegotiation, CONF_SSLNEGOTIATION_DIRECT);
    assert_string_equal(plain.ca_file, "/ca");
    assert_string_equal(plain.crl_file, "/crl");
    assert_string_equal(plain.cert_file, "/cert");
    assert_string_equal(plain.key_file, "/key");
    assert_false(plain.is_system_ca);
    struct conf_server_leg own = conf_server_leg(conf, conf_find_database(conf, "own"));
    assert_int_equal(own.sslmode, CONF_SSL_VERIFY_FULL);
    assert_int_equal(own.sslnegotiation, CONF_SSLNEGOTIATION_POSTGRES);
    assert_string_equal(own.ca_file, "");
    assert_string_equal(own.crl_file, "/l");
    assert_string_equal(own.cert_file, "/c");
    assert_string_equal(own.key_file, "/k");
    assert_true(own.is_system_ca);
    assert_string_equal(conf_server_leg(conf, conf_find_database(conf, "without")).crl_file, "");
    conf_unref(conf);
}

#define NOT_SUPPORTED \
    "not supported in [databases]: use host, port, dbname, user, sslmode, sslrootcert, sslcrl, sslcert, sslkey, " \
    "sslnegotiation\n"

static void bad_databases_are_explained(void **state)
{
    static const struct {
        const char *text;
        const char *complaint;
    } cases[] = {
        {"a = hots=x", ":2: database \"a\" is not a connection string: invalid connection option \"hots\"\n"},
        {"a = host",
         ":2: database \"a\" is not a connection string: missing \"=\" after \"host\" in connection info string\n"},
        {"a = host=x password=y", ":2: database \"a\" has \"password\", which is " NOT_SUPPORTED},
        {"a = host=x target_session_attrs=read-write",
         ":2: database \"a\" has \"target_session_attrs\", which is " NOT_SUPPORTED},
        {"a = hostaddr=127.0.0.1", ":2: database \"a\" has \"hostaddr\", which is " NOT_SUPPORTED},
        {"a = host=x sslmode=on", ":2: database \"a\" has sslmode \"on\": it must be one of: auto, disable, allow, "
                                  "prefer, require, verify-ca, verify-full\n"},
        {"a = sslnegotiation=gss host=x",
         ":2: database \"a\" has sslnegotiation \"gss\": it must be one of: postgres, direct\n"},
        {"a = host=x sslnegotiation='direct",
         ":2: database \"a\" is not a connection string: unterminated quoted string in connection info string\n"},
        {"a = host=x sslnegotiation='direct' sslnegotiatio=x",
         ":2: database \"a\" is not a connection string: invalid connection option \"sslnegotiatio\"\n"},
        {"a = host=x sslnegotiation", ":2: database \"a\" is not a connection string: missing \"=\" after "
                                      "\"sslnegotiation\" in connection info string\n"},
        {"a = host=db1,/tmp sslmode=verify-full",
         ":2: database \"a\" has sslmode=verify-full without a name to verify: /tmp is a Unix socket\n"},
        {"a = sslmode=verify-full",
         ":2: database \"a\" has sslmode=verify-full without a name to verify: /var/run/postgresql is a Unix "
         "socket\n"},
        {"a = port=0", ":2: database \"a\" has port \"0\": it must be 1 to 65535\n"},
        {"a = port=65536", ":2: database \"a\" has port \"65536\": it must be 1 to 65535\n"},
        {"a = port=54x", ":2: database \"a\" has port \"54x\": it must be 1 to 65535\n"},
        {"a = host=x,y port=1,2,3", ":2: database \"a\" has 3 ports for 2 hosts: give one, or one for each\n"},
        {"a = host=1,2,3,4,5,6,7,8,9", ":2: database \"a\" has more than 8 hosts\n"},
        {"a = host=x\na = host=y", ":3: database \"a\" is there already\n"},
        {" = host=x", ":2: a database's name has 1 to 63 bytes\n"},
        {"a123456789012345678901234567890123456789012345678901234567890123 = host=x",
         ":2: a database's name has 1 to 63 bytes\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "[databases]\n%s\n", cases[i].text);
        assert_complaint(text, strlen(text), cases[i].complaint);
    }
}

static void changes_that_need_a_restart_are_named(void **state)
{
    const char *names[2] = {NULL, NULL};
    (void)state;
    struct conf *running = load(DATABASES);
    struct conf *same = load("[pgseek]\nlisten_port = 6432\ncursor_ttl = 2d\nmode = off\n" DATABASES);
    struct conf *other = load("[pgseek]\nlisten_port = 1\nlisten_addr = *\nworkers = 2\nstrict = on\n" DATABASES);
    assert_int_equal(conf_restart_needed(running, same, names, 2), 0);
    assert_int_equal(conf_restart_needed(running, other, names, 2), 3);
    assert_string_equal(names[0], "listen_addr");
    assert_string_equal(names[1], "listen_port");
    conf_unref(running);
    conf_unref(same);
    conf_unref(other);
}

static void snapshots_are_counted(void **state)
{
    (void)state;
    struct conf *conf = conf_default("/tmp/x y", 1234);
    assert_non_null(conf);
    assert_ptr_equal(conf_ref(conf), conf);
    conf_unref(conf);
    assert_string_equal(conf->databases[0].hosts[0].host, "/tmp/x y");
    assert_int_equal(conf->databases[0].hosts[0].port, 1234);
    conf_unref(conf);
    conf_unref(NULL);
}

/* Every row of the table is sound: its default is one of its own values, its help a sentence. */
static void the_table_is_sound(void **state)
{
    (void)state;
    struct conf *conf = conf_default("x", 1);
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &option_table[i];
        char why[OPTION_WHY] = "";
        char bounds[256];
        if (!option_put(option, conf, option->initial, why))
            fail_msg("%s = %s: %s", option->name, option->initial, why);
        assert_true(option->help && option->help[strlen(option->help) - 1] == '.');
        assert_int_equal(option_find(option->name), i);
        option_bounds(option, bounds, sizeof bounds);
        assert_true(strlen(option_type_name(option->type)) > 0);
        assert_true(option->min == option->max || strlen(bounds) > 0);
    }
    conf_unref(conf);
}

/* The example as it is, and with every setting's comment sign removed, gives the defaults. */
static void the_example_is_the_defaults(void **state)
{
    char *example;
    size_t len;
    (void)state;
    FILE *out = open_memstream(&example, &len);
    assert_non_null(out);
    conf_print_example(out);
    fclose(out);
    for (int bare = 0; bare < 2; bare++) {
        struct conf *conf = load(example);
        struct conf *defaults = conf_default("127.0.0.1", 5432);
        for (size_t i = 0; i < option_count; i++)
            if (!option_equal(&option_table[i], conf, defaults))
                fail_msg("%s differs", option_table[i].name);
        assert_string_equal(conf_find_database(conf, "*")->hosts[0].host, "127.0.0.1");
        assert_int_equal(conf->ndatabases, bare ? 2 : 1);
        conf_unref(conf);
        conf_unref(defaults);
        for (char *at = example; (at = strstr(at, "\n;")) != NULL; at++)
            if (at[2] != ' ')
                at[1] = ' ';
    }
    free(example);
}

static void memory_may_run_out(void **state)
{
    static const char text[] =
        "[pgseek]\nlogfile = x\nscope = a.b, c\n[databases]\na = host=x,y dbname=z user=u sslcert=a "
        "sslkey=b sslrootcert=c sslcrl=d\n* =\n";
    bool ok = false;
    (void)state;
    for (long n = 0; !ok; n++) {
        char *complaints;
        mem_fail_after(n);
        struct conf *conf = load_bytes(text, strlen(text), &complaints);
        mem_fail_after(-1);
        ok = conf != NULL;
        assert_true(ok || strstr(complaints, "memory"));
        conf_unref(conf);
        free(complaints);
        assert_true(n < 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_contract),   cmocka_unit_test(values_of_every_type),
        cmocka_unit_test(every_fault_is_explained),    cmocka_unit_test(all_faults_are_reported),
        cmocka_unit_test(long_lines_are_never_cut),    cmocka_unit_test(databases_are_connection_strings),
        cmocka_unit_test(bad_databases_are_explained), cmocka_unit_test(databases_have_tls_of_their_own),
        cmocka_unit_test(server_legs_inherit),         cmocka_unit_test(changes_that_need_a_restart_are_named),
        cmocka_unit_test(snapshots_are_counted),       cmocka_unit_test(the_table_is_sound),
        cmocka_unit_test(the_example_is_the_defaults), cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
