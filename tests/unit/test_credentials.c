/* test_credentials.c - settings and files against each other: what fits is loaded, what does not is explained. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../proxy/admin/conf.h"
#include "../../proxy/auth/credentials.h"

#define SALT "W22ZaJ0SNY7soEsUEjb6gQ=="
#define STORED "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
#define SERVER "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
#define SECRET "SCRAM-SHA-256$4096:" SALT "$" STORED ":" SERVER
#define USERS "\"web\" \"" SECRET "\"\n"

static char folder[] = "/tmp/test_credentials.XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static const char *const files[] = {"proxy.conf", "hba", "ident", "users"};

static int tear_down(void **state)
{
    char path[64];
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static void write_file(const char *name, const char *text, mode_t mode)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    if (!text)
        return;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

/* A text with the folder's name in the place of each @. */
static char *in_folder(const char *text)
{
    char *made;
    size_t len;
    FILE *out = open_memstream(&made, &len);
    assert_non_null(out);
    for (; *text; text++)
        if (*text == '@')
            fputs(folder, out);
        else
            fputc(*text, out);
    fclose(out);
    return made;
}

/* The configuration that these lines of [pgseek] make. */
static struct conf *load_conf(const char *lines)
{
    char path[64];
    char *text = in_folder(lines);
    char whole[2048];
    snprintf(whole, sizeof whole, "[pgseek]\n%s[databases]\n* = host=127.0.0.1\n", text);
    free(text);
    write_file("proxy.conf", whole, 0600);
    snprintf(path, sizeof path, "%s/proxy.conf", folder);
    struct conf *conf = conf_load(path, stderr);
    assert_non_null(conf);
    return conf;
}

static const uint8_t seed[SCRAM_KEY] = {1};

/* *complaints is to be freed. */
static struct credentials *load(const struct conf *conf, char **complaints)
{
    size_t size;
    FILE *out = open_memstream(complaints, &size);
    assert_non_null(out);
    struct credentials *credentials = credentials_load(conf, seed, out);
    fclose(out);
    return credentials;
}

#define ALL_SET \
    "auth_type = hba\nauth_hba_file = @/hba\nauth_ident_file = @/ident\nauth_file = @/users\n" \
    "client_tls_sslmode = prefer\nclient_tls_ca_file = @/ca\n"

static const struct {
    const char *settings; /* line 2 and on; @ is the folder */
    const char *hba;
    const char *ident;
    const char *users;
    const char *complaints; /* "": loads */
} cases[] = {
    {"", NULL, NULL, NULL, ""},
    {"auth_type = scram-sha-256\nauth_file = @/users\n", NULL, NULL, USERS, ""},
    {"auth_type = scram-sha-256\nauth_user = asker\nauth_dbname = d\n", NULL, NULL, NULL, ""},
    {"auth_type = hba\nauth_hba_file = @/hba\n", "local all all relay\n", NULL, NULL, ""},
    {"auth_type = hba\nauth_hba_file = @/hba\nauth_user = asker\nauth_dbname = d\n", "local all all scram-sha-256\n",
     NULL, NULL, ""},
    {ALL_SET, "hostssl all all all cert map=m\nlocal all all scram-sha-256\n", "m /^(.*)@x$ \\1\n", USERS, ""},
    {"auth_user = asker\nauth_query = SELECT 1, f($1)\nauth_dbname = d\n", NULL, NULL, NULL, ""},
    {"auth_user = asker\nauth_query = SELECT 1, f($10, $1)\nauth_dbname = d\n", NULL, NULL, NULL, ""},
    /* one setting without the other */
    {"\nauth_type = hba\n", NULL, NULL, NULL, "@/proxy.conf:3: auth_type hba needs auth_hba_file\n"},
    {"auth_hba_file = @/hba\n", "local all all relay\n", NULL, NULL,
     "@/proxy.conf:2: auth_hba_file is read with auth_type = hba only: set it, or remove the file\n"},
    {"auth_ident_file = @/ident\n", NULL, "m a b\n", NULL,
     "@/proxy.conf:2: auth_ident_file is for maps of auth_hba_file: set auth_type = hba, or remove it\n"},
    {"auth_type = scram-sha-256\n", NULL, NULL, NULL,
     "@/proxy.conf:2: auth_type scram-sha-256 needs secrets: set auth_file or auth_user\n"},
    {"auth_user = asker\n", NULL, NULL, NULL,
     "@/proxy.conf:2: auth_user would ask in any database that a stranger names, since [databases] has a line for *: "
     "set "
     "auth_dbname\n"},
    {"auth_user = asker\nauth_query =\n", NULL, NULL, NULL,
     "@/proxy.conf:2: auth_user asks auth_query, which is empty\n"},
    {"auth_user = asker\nauth_query = SELECT 1, $2, $10\n", NULL, NULL, NULL,
     "@/proxy.conf:3: auth_query does not mention $1, the user\n"},
    /* a rule without what it needs */
    {"auth_type = hba\nauth_hba_file = @/hba\n", "local all all relay\nlocal all all scram-sha-256\n", NULL, NULL,
     "@/hba:2: method scram-sha-256 needs secrets: set auth_file or auth_user\n"},
    {"auth_type = hba\nauth_hba_file = @/hba\n", "\n\nhostssl all all all cert\n", NULL, NULL,
     "@/hba:3: a client certificate needs TLS: client_tls_sslmode is disable\n"},
    {"auth_type = hba\nauth_hba_file = @/hba\nclient_tls_sslmode = require\n",
     "hostssl all all all relay clientcert=verify-ca\n", NULL, NULL,
     "@/hba:1: a client certificate needs client_tls_ca_file to verify it\n"},
    {"auth_type = hba\nauth_hba_file = @/hba\nclient_tls_sslmode = require\nclient_tls_ca_file = @/ca\n",
     "hostssl all a all cert map=m\nhostssl all b all cert\nhostssl all c all cert map=n\n", NULL, NULL,
     "@/hba:1: a map needs auth_ident_file\n@/hba:3: a map needs auth_ident_file\n"},
    {ALL_SET, "hostssl all all all cert map=n\n", "m a b\n", USERS, "@/hba:1: auth_ident_file has no map \"n\"\n"},
    /* files */
    {"auth_type = hba\nauth_hba_file = @/hba\n", NULL, NULL, NULL,
     "@/hba: cannot be opened: No such file or directory\n@/proxy.conf:3: the file cannot be used\n"},
    {"auth_type = hba\nauth_hba_file = @/hba\n", "local all all trust\n", NULL, NULL,
     "@/hba:1: method \"trust\" lets anybody in: write relay here, and the server decides by its pg_hba.conf\n"
     "@/proxy.conf:3: the file cannot be used\n"},
    {ALL_SET, "hostssl all all all cert map=n\nlocal all all scram-sha-256\n", "m a\n", "\"web\" \"secret\"\n",
     "@/ident:1: a line is three words: map, name of the certificate, user; quote one with a comma or a blank in it\n"
     "@/users:1: a plain password: only SCRAM-SHA-256 secrets are kept here, take SELECT rolpassword FROM pg_authid\n"
     "@/proxy.conf:4: the file cannot be used\n@/proxy.conf:5: the file cannot be used\n"},
    {"auth_file = @/users\n", NULL, NULL, NULL,
     "@/users: cannot be opened: No such file or directory\n@/proxy.conf:2: the file cannot be used\n"},
};

static void settings_and_files_are_checked_against_each_other(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *complaints;
        struct conf *conf = load_conf(cases[i].settings);
        write_file("hba", cases[i].hba, 0644);
        write_file("ident", cases[i].ident, 0644);
        write_file("users", cases[i].users, 0600);
        struct credentials *credentials = load(conf, &complaints);
        char *expected = in_folder(cases[i].complaints);
        if (strcmp(complaints, expected) != 0 || !credentials != (*expected != '\0'))
            fail_msg("%s\ncomplained: %s\nexpected:   %s", cases[i].settings, complaints, expected);
        credentials_free(credentials);
        conf_unref(conf);
        free(expected);
        free(complaints);
    }
}

static void secrets_that_others_can_read_are_refused(void **state)
{
    (void)state;
    char *complaints;
    struct conf *conf = load_conf("auth_type = scram-sha-256\nauth_file = @/users\n");
    write_file("users", USERS, 0604);
    assert_null(load(conf, &complaints));
    assert_non_null(strstr(complaints, "users: has mode 0604, others could use what it holds: chmod 0600 it\n"));
    free(complaints);
    conf_unref(conf);
}

static void without_rules_everybody_does_the_same(void **state)
{
    static const struct {
        const char *settings;
        enum hba_method method;
    } types[] = {{"auth_type = relay\n", HBA_RELAY},
                 {"auth_type = scram-sha-256\nauth_user = asker\nauth_dbname = d\n", HBA_SCRAM}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char *complaints;
        struct hba_client client = {.database = "shop", .user = "web"};
        struct conf *conf = load_conf(types[i].settings);
        struct credentials *credentials = load(conf, &complaints);
        assert_int_equal(credentials_decide(credentials, &client).method, types[i].method);
        credentials_free(credentials);
        conf_unref(conf);
        free(complaints);
    }
}

static void with_rules_they_decide(void **state)
{
    (void)state;
    char *complaints;
    struct conf *conf = load_conf("auth_type = hba\nauth_hba_file = @/hba\nauth_user = asker\nauth_dbname = d\n");
    write_file("hba", "local shop web scram-sha-256\nlocal shop evil reject\n", 0644);
    struct credentials *credentials = load(conf, &complaints);
    struct hba_client client = {.database = "shop", .user = "web"};
    assert_int_equal(credentials_decide(credentials, &client).method, HBA_SCRAM);
    client.user = "evil";
    assert_int_equal(credentials_decide(credentials, &client).line, 2);
    client.user = "other";
    assert_int_equal(credentials_decide(credentials, &client).method, HBA_NO_LINE);
    credentials_free(credentials);
    conf_unref(conf);
    free(complaints);
}

static void failed_allocations_leave_nothing_behind(void **state)
{
    (void)state;
    struct conf *conf = load_conf(ALL_SET);
    struct credentials *credentials = NULL;
    long n = 0;
    write_file("hba", "hostssl all all all cert map=m\nlocal all all scram-sha-256\n", 0644);
    write_file("ident", "m /^(.*)@x$ \\1\n", 0644);
    write_file("users", USERS, 0600);
    for (; !credentials; n++) {
        char *complaints;
        mem_fail_after(n);
        credentials = load(conf, &complaints);
        mem_fail_after(-1);
        if (!credentials && !strstr(complaints, "memory"))
            fail_msg("allocation %ld failed, and the complaint is: %s", n, complaints);
        free(complaints);
    }
    assert_true(n > 10);
    credentials_free(credentials);
    conf_unref(conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_and_files_are_checked_against_each_other),
        cmocka_unit_test(secrets_that_others_can_read_are_refused),
        cmocka_unit_test(without_rules_everybody_does_the_same),
        cmocka_unit_test(with_rules_they_decide),
        cmocka_unit_test(failed_allocations_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
