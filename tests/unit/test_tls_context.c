/* test_tls_context.c - settings and files in, contexts or complaints out. */
#include <fnmatch.h>
#include <pthread.h>
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

#include <openssl/evp.h>
#include <openssl/pem.h>

#include "../../proxy/io/tls_mode.h"
#include "tls_fixture.h"

static const struct tls_recipe recipes[] = {
    {.name = "late", .issuer = "ca", .from_days = -9, .to_days = -1},
    {.name = "early", .issuer = "ca", .from_days = 1, .to_days = 9},
    {.name = "middle", .issuer = "ca", .is_authority = true},
    {.name = "chained", .issuer = "middle"},
    {.name = "other_ca", .is_authority = true},
    {.name = "impostor", .subject = "CN=ca", .is_authority = true},
};

static void copy_file(const char *from, const char *to, const char *tail, unsigned mode)
{
    char text[16384];
    FILE *in = fopen(tls_fixture_path(from), "r");
    assert_non_null(in);
    size_t len = fread(text, 1, sizeof text - 1, in);
    fclose(in);
    text[len] = '\0';
    snprintf(text + len, sizeof text - len, "%s", tail);
    tls_fixture_write(to, text, mode);
}

static void encrypt_key(const char *from, const char *to)
{
    FILE *in = fopen(tls_fixture_path(from), "r");
    EVP_PKEY *key = PEM_read_PrivateKey(in, NULL, NULL, NULL);
    fclose(in);
    FILE *out = fopen(tls_fixture_path(to), "w");
    assert_int_equal(PEM_write_PrivateKey(out, key, EVP_aes_128_cbc(), NULL, 0, NULL, (char[]){"secret"}), 1);
    fclose(out);
    chmod(tls_fixture_path(to), 0600);
    EVP_PKEY_free(key);
}

static int setup(void **state)
{
    tls_fixture_setup(state);
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        tls_fixture_make(&recipes[i]);
    copy_file("server.key", "open.key", "", 0640);
    encrypt_key("server.key", "encrypted.key");
    tls_fixture_write("empty", "", 0600);
    tls_fixture_write("text", "no PEM at all\n", 0600);
    tls_fixture_write("damaged", "-----BEGIN CERTIFICATE-----\nMIIBAAAA\n-----END CERTIFICATE-----\n", 0600);
    copy_file("ca.crt", "ca_and_damaged", "-----BEGIN CERTIFICATE-----\nMIIBAAAA\n-----END CERTIFICATE-----\n", 0644);
    copy_file("server.crt", "server_and_damaged", "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n",
              0644);
    tls_fixture_revoke("none.crl", "ca", NULL, -1, 1);
    tls_fixture_revoke("late.crl", "ca", "alice", -9, -1);
    tls_fixture_revoke("other.crl", "other_ca", NULL, -1, 1);
    tls_fixture_revoke("middle.crl", "middle", NULL, -1, 1);
    tls_fixture_revoke("impostor.crl", "impostor", NULL, -1, 1);
    copy_file("none.crl", "none_and_damaged.crl", "-----BEGIN X509 CRL-----\nMII\n-----END X509 CRL-----\n", 0644);
    assert_int_equal(mkfifo(tls_fixture_path("fifo"), 0600), 0);
    return 0;
}

/* ---- the client leg ---- */

#define PAIR "client_tls_cert_file = %/server.crt\nclient_tls_key_file = %/server.key\n"
#define MODE "client_tls_sslmode = require\n"
#define AUTHORITY "client_tls_ca_file = %/ca.crt\n"
#define NO_LIST " holds no revocation list in PEM (openssl crl -inform DER makes it from what authorities publish)\n"
#define NOT_OURS " holds no list that an authority of client_tls_ca_file \"%/ca.crt\" has signed\n"

/* Settings from line 2 on, and complaints behind "%/proxy.conf:", with * for what differs from day to day. */
static const struct {
    const char *settings;
    const char *complaints;
} client_faults[] = {
    {MODE, "2: client_tls_sslmode needs client_tls_cert_file and client_tls_key_file\n"},
    {MODE "client_tls_cert_file = %/server.crt\n",
     "3: client_tls_cert_file \"%/server.crt\" is of no use without client_tls_key_file\n"},
    {MODE "client_tls_key_file = %/server.key\n",
     "3: client_tls_key_file \"%/server.key\" is of no use without client_tls_cert_file\n"},
    {MODE "client_tls_cert_file = %/server.crt\nclient_tls_key_file = %/nowhere\n",
     "4: client_tls_key_file \"%/nowhere\" cannot be opened: No such file or directory\n"},
    {MODE "client_tls_cert_file = %/nowhere\nclient_tls_key_file = %/server.key\n",
     "3: client_tls_cert_file \"%/nowhere\" cannot be opened: No such file or directory\n"},
    {MODE "client_tls_cert_file = %/nowhere\nclient_tls_key_file = %/no_place\n",
     "4: client_tls_key_file \"%/no_place\" cannot be opened: No such file or directory\n"
     "%/proxy.conf:3: client_tls_cert_file \"%/nowhere\" cannot be opened: No such file or directory\n"},
    {MODE "client_tls_cert_file = %/server.crt\nclient_tls_key_file = %\n",
     "4: client_tls_key_file \"%\" is not a regular file\n"},
    {MODE "client_tls_cert_file = %/fifo\nclient_tls_key_file = %/server.key\n",
     "3: client_tls_cert_file \"%/fifo\" is not a regular file\n"},
    {MODE "client_tls_cert_file = %/server.crt\nclient_tls_key_file = %/alice.key\n",
     "4: client_tls_key_file \"%/alice.key\" does not match the certificate of client_tls_cert_file\n"},
    {MODE "client_tls_cert_file = %/server.crt\nclient_tls_key_file = %/encrypted.key\n",
     "4: client_tls_key_file \"%/encrypted.key\" is encrypted, and nobody is asked for a passphrase: decrypt it with "
     "openssl pkey\n"},
    {MODE "client_tls_cert_file = %/server.crt\nclient_tls_key_file = %/text\n",
     "4: client_tls_key_file \"%/text\" holds no private key in PEM\n"},
    {MODE "client_tls_cert_file = %/text\nclient_tls_key_file = %/server.key\n",
     "3: client_tls_cert_file \"%/text\" holds no certificate in PEM\n"},
    {MODE "client_tls_cert_file = %/server.key\nclient_tls_key_file = %/server.key\n",
     "3: client_tls_cert_file \"%/server.key\" holds no certificate in PEM\n"},
    {MODE "client_tls_cert_file = %/empty\nclient_tls_key_file = %/server.key\n",
     "3: client_tls_cert_file \"%/empty\" holds no certificate in PEM\n"},
    {MODE "client_tls_cert_file = %/damaged\nclient_tls_key_file = %/server.key\n",
     "3: client_tls_cert_file \"%/damaged\" holds a certificate that is damaged\n"},
    {MODE "client_tls_cert_file = %/server_and_damaged\nclient_tls_key_file = %/server.key\n",
     "3: client_tls_cert_file \"%/server_and_damaged\" holds a certificate that is damaged\n"},
    {MODE "client_tls_cert_file = %/late.crt\nclient_tls_key_file = %/late.key\n",
     "3: client_tls_cert_file \"%/late.crt\" has expired on 20* UTC\n"},
    {MODE "client_tls_cert_file = %/early.crt\nclient_tls_key_file = %/early.key\n",
     "3: client_tls_cert_file \"%/early.crt\" is not valid before 20* UTC\n"},
    {MODE PAIR "client_tls_ca_file = %/nowhere\n",
     "5: client_tls_ca_file \"%/nowhere\" cannot be opened: No such file or directory\n"},
    {MODE PAIR "client_tls_ca_file = %/text\n", "5: client_tls_ca_file \"%/text\" holds no certificate in PEM\n"},
    {MODE PAIR "client_tls_ca_file = %/ca.key\n", "5: client_tls_ca_file \"%/ca.key\" holds no certificate in PEM\n"},
    {MODE PAIR "client_tls_ca_file = %/ca_and_damaged\n",
     "5: client_tls_ca_file \"%/ca_and_damaged\" holds a certificate that is damaged\n"},
    {MODE PAIR AUTHORITY "client_tls_crl_file = %/nowhere\n",
     "6: client_tls_crl_file \"%/nowhere\" cannot be opened: No such file or directory\n"},
    {MODE PAIR AUTHORITY "client_tls_crl_file = %/empty\n", "6: client_tls_crl_file \"%/empty\"" NO_LIST},
    {MODE PAIR AUTHORITY "client_tls_crl_file = %/ca.crt\n", "6: client_tls_crl_file \"%/ca.crt\"" NO_LIST},
    {MODE PAIR AUTHORITY "client_tls_crl_file = %/none_and_damaged.crl\n",
     "6: client_tls_crl_file \"%/none_and_damaged.crl\" holds a revocation list that is damaged\n"},
    {MODE PAIR "client_tls_crl_file = %/none.crl\n",
     "5: client_tls_crl_file \"%/none.crl\" is of no use without client_tls_ca_file\n"},
    {MODE PAIR AUTHORITY "client_tls_crl_file = %/other.crl\n", "6: client_tls_crl_file \"%/other.crl\"" NOT_OURS},
    {MODE PAIR AUTHORITY "client_tls_crl_file = %/middle.crl\n", "6: client_tls_crl_file \"%/middle.crl\"" NOT_OURS},
    {MODE PAIR AUTHORITY "client_tls_crl_file = %/impostor.crl\n",
     "6: client_tls_crl_file \"%/impostor.crl\"" NOT_OURS},
    {MODE PAIR "client_tls_ca_file = %/nowhere\nclient_tls_crl_file = %/other.crl\n",
     "5: client_tls_ca_file \"%/nowhere\" cannot be opened: No such file or directory\n"},
    {"client_tls_sslmode = verify-ca\n" PAIR,
     "2: client_tls_sslmode needs client_tls_ca_file: nothing else says whose certificates are good\n"},
    {"client_tls_sslmode = verify-full\n" PAIR,
     "2: client_tls_sslmode needs client_tls_ca_file: nothing else says whose certificates are good\n"},
    {MODE PAIR "client_tls_ciphers = NO-SUCH-CIPHER\n",
     "5: client_tls_ciphers \"NO-SUCH-CIPHER\" names no cipher that OpenSSL knows\n"},
    {MODE PAIR "client_tls_ciphers = ALL:aNULL:@SECLEVEL=0\n",
     "5: client_tls_ciphers \"ALL:aNULL:@SECLEVEL=0\" allows * which protects nothing\n"},
    {MODE PAIR "client_tls_ciphers = eNULL:@SECLEVEL=0\n",
     "5: client_tls_ciphers \"eNULL:@SECLEVEL=0\" allows * which protects nothing\n"},
    {MODE PAIR "client_tls13_ciphers = TLS_NULL\n",
     "5: client_tls13_ciphers \"TLS_NULL\" names a cipher of TLS 1.3 that OpenSSL does not know\n"},
    {MODE PAIR "client_tls13_ciphers = TLS_NULL\nclient_tls_ciphers = X\nclient_tls_ca_file = %/nowhere\n",
     "6: client_tls_ciphers \"X\" names no cipher that OpenSSL knows\n"
     "%/proxy.conf:5: client_tls13_ciphers \"TLS_NULL\" names a cipher of TLS 1.3 that OpenSSL does not know\n"
     "%/proxy.conf:7: client_tls_ca_file \"%/nowhere\" cannot be opened: No such file or directory\n"},
};

static void assert_complaints(const char *said, const char *expected)
{
    char pattern[1024];
    snprintf(pattern, sizeof pattern, "%%/proxy.conf:%s", expected);
    if (fnmatch(pattern, said, 0) != 0)
        fail_msg("said\n%sinstead of\n%s", said, pattern);
}

static void faults_of_the_client_leg_are_sentences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof client_faults / sizeof *client_faults; i++) {
        char text[1024];
        char *said;
        snprintf(text, sizeof text, "[pgseek]\n%s[databases]\n* = host=/tmp\n", client_faults[i].settings);
        assert_null(tls_fixture_clients(text, &said));
        assert_complaints(said, client_faults[i].complaints);
        free(said);
    }
}

static void what_is_not_wanted_is_not_read(void **state)
{
    (void)state;
    assert_null(tls_fixture_clients("[pgseek]\nclient_tls_cert_file = /nowhere\nclient_tls_crl_file = /nowhere\n"
                                    "[databases]\n* = host=x\n",
                                    NULL));
    static const char *lines[] = {"host=/tmp", "host=127.0.0.1", "host=localhost,::1", "host=x sslmode=disable",
                                  "host=/tmp sslmode=require"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "[pgseek]\nserver_tls_ca_file = /nowhere\nserver_tls_crl_file = /nowhere\n[databases]\n* = %s\n",
                 lines[i]);
        assert_null(tls_fixture_server(text, "*", NULL));
    }
}

/* Somebody else's file, and one that others can read: root may start a proxy that becomes the owner. */
static void keys_are_for_their_owner_alone(void **state)
{
    static const char text[] = "[pgseek]\n" MODE "client_tls_cert_file = %/server.crt\n"
                               "client_tls_key_file = %/open.key\n[databases]\n* = host=/tmp\n";
    char *said;
    (void)state;
    if (geteuid() == 0) /* root's own may be readable by a group */
        chmod(tls_fixture_path("open.key"), 0644);
    assert_null(tls_fixture_clients(text, &said));
    assert_complaints(said, "4: client_tls_key_file \"%/open.key\" has mode 06??, others could use what it holds: "
                            "chmod 0600 it\n");
    free(said);
    chmod(tls_fixture_path("open.key"), 0600);
    tls_context_free(tls_fixture_clients(text, NULL));
}

/* ---- the server leg ---- */

#define NO_USE \
    " is of no use to database \"*\", which has no file of authorities: give it one (sslrootcert=, or " \
    "server_tls_ca_file), or no list (sslcrl='')\n"

/* Line 2 is the settings' (which may be empty), line 4 is the database's. */
static const struct {
    const char *setting;
    const char *keywords;
    const char *complaints;
} server_faults[] = {
    {"", "host=db1 sslmode=verify-ca",
     "4: sslmode verify-ca without authorities of your own would take every certificate that anybody's authority has "
     "issued: use verify-full, or give server_tls_ca_file\n"},
    {"server_tls_sslmode = verify-ca", "host=db1",
     "2: server_tls_sslmode verify-ca without authorities of your own would take every certificate that anybody's "
     "authority has issued: use verify-full, or give server_tls_ca_file\n"},
    {"server_tls_ca_file = %/ca.crt", "host=db1 sslmode=require sslrootcert=system",
     "4: sslmode is too weak for sslrootcert=system: use verify-full\n"},
    {"server_tls_sslnegotiation = direct", "host=db1 sslmode=prefer",
     "4: sslmode is too weak for sslnegotiation=direct, which cannot go on without TLS: use require or stricter\n"},
    {"server_tls_sslmode = allow", "host=db1 sslnegotiation=direct",
     "2: server_tls_sslmode is too weak for sslnegotiation=direct, which cannot go on without TLS: use require or "
     "stricter\n"},
    {"server_tls_ca_file = %/nowhere", "host=db1",
     "2: server_tls_ca_file \"%/nowhere\" cannot be opened: No such file or directory\n"},
    {"server_tls_ca_file = %/ca.crt", "host=db1 sslrootcert=%/nowhere",
     "4: sslrootcert \"%/nowhere\" cannot be opened: No such file or directory\n"},
    {"", "host=db1 sslcert=%/alice.crt", "4: sslcert \"%/alice.crt\" is of no use without server_tls_key_file\n"},
    {"server_tls_key_file = %/server.key", "host=db1 sslcert=%/alice.crt",
     "2: server_tls_key_file \"%/server.key\" does not match the certificate of sslcert\n"},
    {"server_tls_cert_file = %/alice.crt", "host=db1 sslkey=%/server.key",
     "4: sslkey \"%/server.key\" does not match the certificate of server_tls_cert_file\n"},
    {"", "host=db1 sslcert=%/late.crt sslkey=%/late.key", "4: sslcert \"%/late.crt\" has expired on *\n"},
    {"server_tls_ciphers = X", "host=db1", "2: server_tls_ciphers \"X\" names no cipher that OpenSSL knows\n"},
    {"server_tls_crl_file = %/none.crl", "host=db1", "2: server_tls_crl_file \"%/none.crl\"" NO_USE},
    {"server_tls_crl_file = %/none.crl", "host=db1 sslrootcert=system", "2: server_tls_crl_file \"%/none.crl\"" NO_USE},
    {"server_tls_crl_file = %/none.crl", "host=db1 sslmode=require", "2: server_tls_crl_file \"%/none.crl\"" NO_USE},
    {"", "host=db1 sslmode=prefer sslcrl=%/none.crl", "4: sslcrl \"%/none.crl\"" NO_USE},
    {"server_tls_ca_file = %/ca.crt", "host=db1 sslcrl=%/text",
     "4: sslcrl \"%/text\" holds no revocation list in PEM (*)\n"},
    {"server_tls_crl_file = %/none.crl", "host=db1 sslrootcert=%/other_ca.crt",
     "2: server_tls_crl_file \"%/none.crl\" holds no list that an authority of sslrootcert \"%/other_ca.crt\" has "
     "signed\n"},
    {"server_tls_ca_file = %/text", "host=/tmp,127.0.0.1,db1",
     "2: server_tls_ca_file \"%/text\" holds no certificate in PEM\n"},
};

static void faults_of_the_server_leg_are_sentences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof server_faults / sizeof *server_faults; i++) {
        char text[1024];
        char *said;
        snprintf(text, sizeof text, "[pgseek]\n%s\n[databases]\n* = %s\n", server_faults[i].setting,
                 server_faults[i].keywords);
        assert_null(tls_fixture_server(text, "*", &said));
        assert_complaints(said, server_faults[i].complaints);
        free(said);
    }
}

static void each_host_has_its_mode(void **state)
{
    static const struct {
        const char *option, *keywords;
        enum conf_sslmode expected[4];
    } cases[] = {
        {"auto",
         "host=/tmp,127.0.0.1,::1,localhost",
         {CONF_SSL_DISABLE, CONF_SSL_DISABLE, CONF_SSL_DISABLE, CONF_SSL_DISABLE}},
        {"auto",
         "host=127.9.9.9,LOCALHOST,::ffff:127.0.0.1,db1",
         {CONF_SSL_DISABLE, CONF_SSL_DISABLE, CONF_SSL_DISABLE, CONF_SSL_VERIFY_FULL}},
        {"auto",
         "host=128.0.0.1,localhost.org,::2,::ffff:10.0.0.1",
         {CONF_SSL_VERIFY_FULL, CONF_SSL_VERIFY_FULL, CONF_SSL_VERIFY_FULL, CONF_SSL_VERIFY_FULL}},
        {"auto",
         "host=127.1,2130706433,0x7f.1,localhost4",
         {CONF_SSL_VERIFY_FULL, CONF_SSL_VERIFY_FULL, CONF_SSL_VERIFY_FULL, CONF_SSL_VERIFY_FULL}},
        {"require",
         "host=/tmp,127.0.0.1,db1,::1",
         {CONF_SSL_DISABLE, CONF_SSL_REQUIRE, CONF_SSL_REQUIRE, CONF_SSL_REQUIRE}},
        {"require",
         "host=/tmp,127.0.0.1,db1,::1 sslmode=auto",
         {CONF_SSL_DISABLE, CONF_SSL_DISABLE, CONF_SSL_VERIFY_FULL, CONF_SSL_DISABLE}},
        {"verify-full",
         "host=db1,db2,/tmp,db4 sslmode=disable",
         {CONF_SSL_DISABLE, CONF_SSL_DISABLE, CONF_SSL_DISABLE, CONF_SSL_DISABLE}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text, "[pgseek]\nserver_tls_sslmode = %s\n[databases]\n* = %s\n", cases[i].option,
                 cases[i].keywords);
        struct conf *conf = tls_fixture_conf(text);
        for (size_t host = 0; host < 4; host++)
            assert_int_equal(tls_mode_for_host(conf, &conf->databases[0], host), cases[i].expected[host]);
        conf_unref(conf);
    }
}

static void lines_that_differ_are_not_alike(void **state)
{
    (void)state;
    struct conf *conf = tls_fixture_conf("[pgseek]\nserver_tls_ca_file = /ca\n[databases]\na = host=x\n"
                                         "same = host=y port=1 user=z sslmode=auto sslrootcert=/ca\n"
                                         "local = host=/tmp\nweak = host=x sslmode=require\n"
                                         "system = host=x sslrootcert=system\nother = host=x sslrootcert=/cb\n"
                                         "cert = host=x sslcert=/c\nkey = host=x sslkey=/k\n"
                                         "crl = host=x sslcrl=/l\ndirect = host=x sslnegotiation=direct\n");
    for (size_t i = 0; i < conf->ndatabases; i++)
        assert_int_equal(tls_context_is_alike(conf, &conf->databases[0], &conf->databases[i]), i <= 1);
    conf_unref(conf);
}

/* Contexts that clients and threads share outlive their snapshot. */
static void references_are_counted(void **state)
{
    (void)state;
    struct tls_context *context = tls_fixture_clients(tls_fixture_plain, NULL);
    assert_ptr_equal(tls_context_ref(context), context);
    struct tls *tls = tls_accept(context, false);
    tls_context_free(context);
    tls_context_free(context);
    assert_int_equal(tls_state(tls), TLS_HANDSHAKE);
    tls_free(tls);
    assert_null(tls_context_ref(NULL));
    tls_context_free(NULL);
}

#define THREADS 4
#define HANDSHAKES 25

/* Each thread has references of its own, and lets go of them while the others are at work. */
struct busy {
    pthread_t thread;
    struct tls_context *server, *client;
    int talked;
};

static void *be_busy(void *arg)
{
    struct busy *busy = arg;
    for (int i = 0; i < HANDSHAKES; i++) {
        struct tls_talk talk;
        struct channel channel;
        tls_talk_begin(&talk, busy->server, busy->client, "db1", false);
        tls_talk_run(&talk, SIZE_MAX);
        if (tls_state(talk.server) == TLS_OPEN && tls_state(talk.client) == TLS_OPEN) {
            tls_describe(talk.server, &channel);
            busy->talked += channel.binding_len == 32;
        }
        tls_talk_end(&talk);
    }
    tls_context_free(busy->server);
    tls_context_free(busy->client);
    return NULL;
}

static void threads_share_contexts(void **state)
{
    struct busy busy[THREADS] = {0};
    (void)state;
    struct tls_context *server = tls_fixture_clients(tls_fixture_plain, NULL);
    struct tls_context *client = tls_fixture_server(tls_fixture_plain, "*", NULL);
    for (size_t i = 0; i < THREADS; i++) {
        busy[i].server = tls_context_ref(server);
        busy[i].client = tls_context_ref(client);
        assert_int_equal(pthread_create(&busy[i].thread, NULL, be_busy, &busy[i]), 0);
    }
    tls_context_free(server);
    tls_context_free(client);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(busy[i].thread, NULL);
        assert_int_equal(busy[i].talked, HANDSHAKES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_of_the_client_leg_are_sentences),
        cmocka_unit_test(what_is_not_wanted_is_not_read),
        cmocka_unit_test(keys_are_for_their_owner_alone),
        cmocka_unit_test(faults_of_the_server_leg_are_sentences),
        cmocka_unit_test(each_host_has_its_mode),
        cmocka_unit_test(lines_that_differ_are_not_alike),
        cmocka_unit_test(references_are_counted),
        cmocka_unit_test(threads_share_contexts),
    };
    return cmocka_run_group_tests(tests, setup, tls_fixture_teardown);
}
