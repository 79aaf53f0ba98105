/* test_tls_names.c - whose certificate is taken for what, by each role, and what is known of it afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/evp.h>

#include "tls_fixture.h"

static const struct tls_recipe recipes[] = {
    {.name = "other_ca", .is_authority = true},
    {.name = "middle", .issuer = "ca", .is_authority = true},
    {.name = "chained", .issuer = "middle", .names = "DNS:db1"},
    {.name = "unchained", .issuer = "middle", .names = "DNS:db1", .is_bare = true},
    {.name = "stranger", .issuer = "other_ca", .names = "DNS:db1"},
    {.name = "self", .names = "DNS:db1"},
    {.name = "common", .issuer = "ca", .subject = "CN=db1"},
    {.name = "covered", .issuer = "ca", .subject = "CN=db1", .names = "DNS:db2"},
    {.name = "common_ip", .issuer = "ca", .subject = "CN=10.1.2.3"},
    {.name = "common_with_ip", .issuer = "ca", .subject = "CN=db1", .names = "IP:10.1.2.3"},
    {.name = "ip_as_name", .issuer = "ca", .names = "DNS:10.1.2.3"},
    {.name = "wild", .issuer = "ca", .names = "DNS:*.example.org"},
    {.name = "partial", .issuer = "ca", .names = "DNS:d*.example.org"},
    {.name = "six", .issuer = "ca", .names = "IP:2001:db8::1"},
    {.name = "nameless", .issuer = "ca", .subject = ""},
    {.name = "rsa", .issuer = "ca", .names = "DNS:db1", .key = TLS_KEY_RSA},
    {.name = "ed", .names = "DNS:db1", .key = TLS_KEY_ED25519, .digest = "", .is_authority = true},
    {.name = "sha384", .issuer = "ca", .names = "DNS:db1", .digest = "SHA384"},
    {.name = "sha512", .issuer = "ca", .names = "DNS:db1", .digest = "SHA512"},
    {.name = "bob", .issuer = "other_ca"},
    {.name = "carol", .issuer = "middle"},
    {.name = "late", .issuer = "ca", .from_days = -9, .to_days = -1},
    {.name = "early", .issuer = "ca", .from_days = 1, .to_days = 9},
    {.name = "two_names", .issuer = "ca", .subject = "CN=alice/CN=bob"},
    {.name = "nul_name", .issuer = "ca", .subject = "CN=alice%00.evil"},
    {.name = "no_name", .issuer = "ca", .subject = "O=Shop"},
    {.name = "odd_name", .issuer = "ca", .subject = "O=a\nb/CN=\xc3\xbcser, x"},
};

static int setup(void **state)
{
    tls_fixture_setup(state);
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        tls_fixture_make(&recipes[i]);
    return 0;
}

/* ---- our client role ---- */

/* A server that shows what ours would not. */
static struct tls_context *careless_server(const char *certificate)
{
    struct tls_context *context = tls_fixture_server_role("server", "");
    tls_fixture_swap_certificate(context, certificate);
    return context;
}

#define VERIFY_FAILED "certificate verify failed: "
#define CA "server_tls_ca_file = %/ca.crt"

static const struct {
    const char *certificate; /* that the server shows */
    const char *host;
    const char *keywords;
    const char *settings;
    const char *why; /* NULL: they talk */
} server_cases[] = {
    /* names */
    {"server", "db1", "sslmode=verify-full", CA, NULL},
    {"server", "DB1", "sslmode=verify-full", CA, NULL},
    {"server", "db1.", "sslmode=verify-full", CA, NULL},
    {"server", "10.1.2.3", "sslmode=verify-full", CA, NULL},
    {"server", "db2", "sslmode=verify-full", CA, VERIFY_FAILED "hostname mismatch (CN=server)"},
    {"server", "server", "sslmode=verify-full", CA, VERIFY_FAILED "hostname mismatch (CN=server)"},
    {"server", "db1.org", "sslmode=verify-full", CA, VERIFY_FAILED "hostname mismatch (CN=server)"},
    {"server", "10.1.2.4", "sslmode=verify-full", CA, VERIFY_FAILED "IP address mismatch (CN=server)"},
    {"server", "db2", "sslmode=verify-ca", CA, NULL},
    {"common", "db1", "sslmode=verify-full", CA, NULL},
    {"covered", "db1", "sslmode=verify-full", CA, VERIFY_FAILED "hostname mismatch (CN=db1)"},
    {"covered", "db2", "sslmode=verify-full", CA, NULL},
    {"common_ip", "10.1.2.3", "sslmode=verify-full", CA, VERIFY_FAILED "IP address mismatch (CN=10.1.2.3)"},
    {"common_with_ip", "db1", "sslmode=verify-full", CA, NULL},
    {"ip_as_name", "10.1.2.3", "sslmode=verify-full", CA, VERIFY_FAILED "IP address mismatch (CN=ip_as_name)"},
    {"six", "2001:db8::1", "sslmode=verify-full", CA, NULL},
    {"six", "2001:0db8:0::0001", "sslmode=verify-full", CA, NULL},
    {"six", "2001:db8::1%eth0", "sslmode=verify-full", CA, NULL},
    {"six", "2001:db8::2", "sslmode=verify-full", CA, VERIFY_FAILED "IP address mismatch (CN=six)"},
    {"wild", "db1.example.org", "sslmode=verify-full", CA, NULL},
    {"wild", "example.org", "sslmode=verify-full", CA, VERIFY_FAILED "hostname mismatch (CN=wild)"},
    {"wild", "a.b.example.org", "sslmode=verify-full", CA, VERIFY_FAILED "hostname mismatch (CN=wild)"},
    {"partial", "db1.example.org", "sslmode=verify-full", CA, VERIFY_FAILED "hostname mismatch (CN=partial)"},
    {"nameless", "db1", "sslmode=verify-full", CA, VERIFY_FAILED "hostname mismatch ()"},
    /* chains */
    {"chained", "db1", "sslmode=verify-full", CA, NULL},
    {"unchained", "db1", "sslmode=verify-full", CA,
     VERIFY_FAILED "unable to get local issuer certificate (CN=unchained)"},
    {"stranger", "db1", "sslmode=verify-full", CA,
     VERIFY_FAILED "unable to get local issuer certificate (CN=stranger)"},
    {"stranger", "db1", "sslmode=verify-ca", CA, VERIFY_FAILED "unable to get local issuer certificate (CN=stranger)"},
    {"self", "db1", "sslmode=verify-full", CA, VERIFY_FAILED "self-signed certificate (CN=self)"},
    {"late", "late", "sslmode=verify-full", CA, VERIFY_FAILED "certificate has expired (CN=late)"},
    {"early", "db1", "sslmode=verify-ca", CA, VERIFY_FAILED "certificate is not yet valid (CN=early)"},
    {"server", "db1", "sslmode=verify-full", "", VERIFY_FAILED "unable to get local issuer certificate (CN=server)"},
    {"server", "db1", "sslmode=verify-full sslrootcert=system", CA,
     VERIFY_FAILED "unable to get local issuer certificate (CN=server)"},
    {"stranger", "db1", "sslmode=verify-full sslrootcert=%/other_ca.crt", CA, NULL},
    /* modes: authorities that are given are asked, as libpq does */
    {"server", "db1", "", CA, NULL},
    {"server", "db2", "", CA, VERIFY_FAILED "hostname mismatch (CN=server)"},
    {"stranger", "other", "sslmode=require", "", NULL},
    {"stranger", "other", "sslmode=prefer", "", NULL},
    {"late", "other", "sslmode=allow", "", NULL},
    {"stranger", "db1", "sslmode=require", CA, VERIFY_FAILED "unable to get local issuer certificate (CN=stranger)"},
    {"stranger", "db1", "sslmode=prefer", CA, VERIFY_FAILED "unable to get local issuer certificate (CN=stranger)"},
    {"server", "other", "sslmode=require", CA, NULL},
};

static void servers_are_who_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof server_cases / sizeof *server_cases; i++)
        for (size_t step = 1; step <= 100000; step += 99999) {
            struct tls_talk talk;
            struct tls_context *server = careless_server(server_cases[i].certificate);
            struct tls_context *client = tls_fixture_client_role(server_cases[i].keywords, server_cases[i].settings);
            tls_talk_begin(&talk, server, client, server_cases[i].host, false);
            tls_context_free(server);
            tls_context_free(client);
            tls_talk_run(&talk, step);
            if (server_cases[i].why) {
                assert_int_equal(tls_state(talk.client), TLS_FAILED);
                assert_string_equal(tls_why(talk.client), server_cases[i].why);
                assert_int_equal(tls_state(talk.server), TLS_FAILED); /* it was told */
            } else {
                tls_talk_assert(&talk);
            }
            tls_talk_end(&talk);
        }
}

/* ---- our server role ---- */

#define MODE(mode) "client_tls_sslmode = " mode "\nclient_tls_ca_file = %/ca.crt"

static const struct {
    const char *mode;
    const char *certificate; /* that the client shows; NULL: none */
    const char *why;         /* NULL: they talk */
    bool is_verified;
    const char *cn;
    const char *dn;
} client_cases[] = {
    {MODE("require"), NULL, NULL, false, "", ""},
    {MODE("require"), "alice", NULL, true, "alice", "CN=alice,O=Shop"},
    {MODE("allow"), "alice", NULL, true, "alice", "CN=alice,O=Shop"},
    {MODE("verify-ca"), NULL, "the client sent no certificate", false, "", ""},
    {MODE("verify-full"), NULL, "the client sent no certificate", false, "", ""},
    {MODE("verify-ca"), "alice", NULL, true, "alice", "CN=alice,O=Shop"},
    {MODE("verify-full"), "carol", NULL, true, "carol", "CN=carol"},
    {MODE("require"), "bob", VERIFY_FAILED "unable to get local issuer certificate (CN=bob)", false, "", ""},
    {MODE("prefer"), "self", VERIFY_FAILED "self-signed certificate (CN=self)", false, "", ""},
    {MODE("verify-ca"), "bob", VERIFY_FAILED "unable to get local issuer certificate (CN=bob)", false, "", ""},
    {MODE("verify-ca"), "two_names", NULL, true, "", "CN=bob,CN=alice"},
    {MODE("verify-ca"), "nul_name", NULL, true, "", "CN=alice\\00.evil"},
    {MODE("verify-ca"), "no_name", NULL, true, "", "O=Shop"},
    {MODE("verify-ca"), "odd_name", NULL, true, "\xc3\xbcser, x", "CN=\\C3\\BCser\\, x,O=a\\0Ab"},
    {"client_tls_sslmode = require", "alice", NULL, false, "", ""}, /* nobody asks for it */
};

static void clients_are_who_they_say(void **state)
{
    static const char *versions[] = {"tlsv1.2", "tlsv1.3"};
    (void)state;
    for (size_t i = 0; i < sizeof client_cases / sizeof *client_cases * 2; i++) {
        struct tls_talk talk;
        struct channel channel;
        char settings[512];
        char keywords[128] = "sslmode=verify-ca";
        const char *certificate = client_cases[i / 2].certificate;
        snprintf(settings, sizeof settings, "client_tls_protocols = %s\n%s", versions[i % 2], client_cases[i / 2].mode);
        if (certificate)
            snprintf(keywords, sizeof keywords, "sslmode=verify-ca sslcert=%%/%s.crt sslkey=%%/%s.key", certificate,
                     certificate);
        tls_talk_shake(&talk, tls_fixture_server_role("server", settings), tls_fixture_client_role(keywords, CA), "db1",
                       false);
        if (client_cases[i / 2].why) {
            assert_int_equal(tls_state(talk.server), TLS_FAILED);
            assert_string_equal(tls_why(talk.server), client_cases[i / 2].why);
            assert_int_equal(tls_state(talk.client), TLS_FAILED);
            assert_non_null(strstr(tls_why(talk.client), "alert"));
        } else {
            tls_talk_assert(&talk);
            tls_describe(talk.server, &channel);
            assert_int_equal(channel.is_verified, client_cases[i / 2].is_verified);
            assert_string_equal(channel.peer_cn, client_cases[i / 2].cn);
            assert_string_equal(channel.peer_dn, client_cases[i / 2].dn);
        }
        tls_talk_end(&talk);
    }
}

/* ---- what is known ---- */

static void versions_and_ciphers_are_told(void **state)
{
    static const struct {
        const char *settings;
        const char *version, *cipher;
    } cases[] = {
        {"client_tls_protocols = tlsv1.3\nclient_tls13_ciphers = TLS_AES_128_GCM_SHA256", "TLSv1.3",
         "TLS_AES_128_GCM_SHA256"},
        {"client_tls_protocols = tlsv1.2\nclient_tls_ciphers = ECDHE-ECDSA-CHACHA20-POLY1305", "TLSv1.2",
         "ECDHE-ECDSA-CHACHA20-POLY1305"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tls_talk talk;
        struct channel channel;
        tls_talk_shake(&talk, tls_fixture_server_role("server", cases[i].settings), tls_fixture_client_role("", CA),
                       "db1", false);
        tls_describe(talk.client, &channel);
        assert_string_equal(channel.version, cases[i].version);
        assert_string_equal(channel.cipher, cases[i].cipher);
        assert_true(channel.is_verified);
        assert_string_equal(channel.peer_cn, "server");
        tls_describe(talk.server, &channel);
        assert_string_equal(channel.version, cases[i].version);
        assert_string_equal(channel.cipher, cases[i].cipher);
        tls_talk_end(&talk);
    }
}

/* The hash of a certificate's DER, taken from its PEM without a look at its inside. */
static size_t hash_of_file(const char *name, const char *digest, uint8_t hash[EVP_MAX_MD_SIZE])
{
    char file[64];
    char line[128];
    char text[8192];
    uint8_t der[8192];
    size_t len = 0;
    unsigned int hash_len = 0;
    snprintf(file, sizeof file, "%s.crt", name);
    FILE *in = fopen(tls_fixture_path(file), "r");
    assert_non_null(in);
    while (fgets(line, sizeof line, in) && strncmp(line, "-----END", 8) != 0)
        if (line[0] != '-') {
            memcpy(text + len, line, strcspn(line, "\n"));
            len += strcspn(line, "\n");
        }
    fclose(in);
    text[len] = '\0';
    int der_len = EVP_DecodeBlock(der, (const uint8_t *)text, (int)len);
    for (size_t i = len; i > 0 && text[i - 1] == '='; i--)
        der_len--;
    assert_int_equal(EVP_Digest(der, (size_t)der_len, hash, &hash_len, EVP_get_digestbyname(digest), NULL), 1);
    return hash_len;
}

static void both_ends_bind_to_the_servers_certificate(void **state)
{
    static const struct {
        const char *certificate;
        const char *digest; /* NULL: nothing to bind to */
    } cases[] = {
        {"server", "SHA256"}, {"rsa", "SHA256"},     {"sha384", "SHA384"},
        {"sha512", "SHA512"}, {"chained", "SHA256"}, {"ed", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tls_talk talk;
        struct channel channels[2];
        uint8_t hash[EVP_MAX_MD_SIZE];
        char keywords[64];
        snprintf(keywords, sizeof keywords, "sslrootcert=%%/%s.crt", cases[i].digest ? "ca" : "ed");
        tls_talk_shake(&talk, tls_fixture_server_role(cases[i].certificate, ""), tls_fixture_client_role(keywords, ""),
                       "db1", false);
        tls_talk_assert(&talk);
        tls_describe(talk.client, &channels[0]);
        tls_describe(talk.server, &channels[1]);
        size_t len = cases[i].digest ? hash_of_file(cases[i].certificate, cases[i].digest, hash) : 0;
        for (size_t end = 0; end < 2; end++)
            assert_true(span_equal(span_of(channels[end].binding, channels[end].binding_len), span_of(hash, len)));
        tls_talk_end(&talk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_are_who_they_say),
        cmocka_unit_test(clients_are_who_they_say),
        cmocka_unit_test(versions_and_ciphers_are_told),
        cmocka_unit_test(both_ends_bind_to_the_servers_certificate),
    };
    return cmocka_run_group_tests(tests, setup, tls_fixture_teardown);
}
