/* test_snapshot.c - all or nothing: what is loaded, shared, kept over a reload, and announced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/admin/log.h"
#include "../../proxy/auth/credentials.h"
#include "../../proxy/io/snapshot.h"
#include "../../proxy/page/keyring.h"
#include "tls_fixture.h"

#define PAIR "client_tls_cert_file = %/server.crt\nclient_tls_key_file = %/server.key\n"

/* Takes the complaints to `said` (to be freed), or wants none. */
static struct snapshot *load(const char *text, const struct snapshot *old, char **said)
{
    char *complaints = NULL;
    size_t len;
    struct conf *conf = tls_fixture_conf(text);
    FILE *out = open_memstream(&complaints, &len);
    struct snapshot *snapshot = snapshot_new(conf, old, out);
    fclose(out);
    tls_fixture_hide_folder(complaints);
    assert_int_equal(snapshot != NULL, complaints[0] == '\0');
    if (said) {
        *said = complaints;
        return snapshot;
    }
    assert_string_equal(complaints, "");
    free(complaints);
    return snapshot;
}

static void every_fault_is_told(void **state)
{
    char *said;
    (void)state;
    assert_null(load("[pgseek]\ncursor_key_file = %/nowhere\nclient_tls_sslmode = require\n"
                     "server_tls_ca_file = %/nothing\n[databases]\na = host=db1\nb = host=db2\n"
                     "c = host=db1 sslcert=%/alice.crt\nlocal = host=/tmp\n",
                     NULL, &said));
    assert_string_equal(
        said, "%/proxy.conf:2: key file \"%/nowhere\" cannot be opened: No such file or directory\n"
              "%/proxy.conf:3: client_tls_sslmode needs client_tls_cert_file and client_tls_key_file\n"
              "%/proxy.conf:4: server_tls_ca_file \"%/nothing\" cannot be opened: No such file or directory\n"
              "%/proxy.conf:8: sslcert \"%/alice.crt\" is of no use without server_tls_key_file\n"
              "%/proxy.conf:4: server_tls_ca_file \"%/nothing\" cannot be opened: No such file or directory\n");
    free(said);
}

static void lines_share_what_is_alike(void **state)
{
    (void)state;
    struct snapshot *snapshot =
        load("[pgseek]\nclient_tls_sslmode = allow\n" PAIR "server_tls_ca_file = %/ca.crt\n[databases]\n"
             "a = host=db1\nb = host=db2,/tmp dbname=x\nc = host=db1 sslmode=require\nlocal = host=/tmp\n",
             NULL, NULL);
    const struct conf *conf = snapshot->conf;
    struct tls_context *tls[4];
    for (size_t i = 0; i < 4; i++)
        tls[i] = snapshot_tls(snapshot, &conf->databases[i]);
    assert_non_null(snapshot->client_tls);
    assert_non_null(tls[0]);
    assert_ptr_equal(tls[0], tls[1]);
    assert_non_null(tls[2]);
    assert_ptr_not_equal(tls[0], tls[2]);
    assert_null(tls[3]);
    snapshot_unref(snapshot);
}

/* What a reload finds wrong takes nothing away from what is in force. */
static void the_old_one_stays_whole(void **state)
{
    static const char good[] = "[pgseek]\nclient_tls_sslmode = require\n" PAIR "[databases]\n* = host=/tmp\n";
    struct tls_talk talk;
    char *said;
    (void)state;
    struct tls_context *client = tls_fixture_client_role("sslrootcert=%/ca.crt", "");
    struct snapshot *old = load(good, NULL, NULL);
    tls_fixture_make(&(struct tls_recipe){.name = "server", .issuer = "ca", .from_days = -9, .to_days = -1});
    assert_null(load(good, old, &said));
    assert_non_null(strstr(said, "has expired on"));
    free(said);
    tls_talk_shake(&talk, tls_context_ref(old->client_tls), tls_context_ref(client), "db1", false);
    tls_talk_assert(&talk);
    tls_talk_end(&talk);
    /* A good one replaces it, and the connections of before go on. */
    tls_talk_begin(&talk, old->client_tls, client, "db9", false);
    tls_fixture_make(&(struct tls_recipe){.name = "server", .issuer = "ca", .names = "DNS:db9"});
    struct snapshot *fresh = load(good, old, NULL);
    assert_ptr_equal(fresh->keyring, old->keyring); /* made at start: cursors live on, and nobody looks as before */
    assert_memory_equal(fresh->credentials->seed, old->credentials->seed, SCRAM_KEY);
    snapshot_unref(old);
    tls_talk_run(&talk, SIZE_MAX);
    assert_string_equal(tls_why(talk.client), "certificate verify failed: hostname mismatch (CN=server)");
    tls_talk_end(&talk);
    tls_talk_shake(&talk, tls_context_ref(fresh->client_tls), client, "db9", false);
    tls_talk_assert(&talk);
    tls_talk_end(&talk);
    snapshot_unref(fresh);
}

/* The log's warnings about something, from where they name it. */
static char *announce(const char *text, const char *about)
{
    static char kept[4096];
    char line[LOG_LINE_MAX];
    const char *why;
    struct snapshot *snapshot = load(text, NULL, NULL);
    kept[0] = '\0';
    assert_true(log_open(tls_fixture_path("log"), &why));
    snapshot_announce(snapshot, NULL);
    log_close();
    snapshot_unref(snapshot);
    FILE *in = fopen(tls_fixture_path("log"), "r");
    while (fgets(line, sizeof line, in)) {
        const char *at = strstr(line, about);
        if (at && strstr(line, "WARNING"))
            snprintf(kept + strlen(kept), sizeof kept - strlen(kept), "%s", at);
    }
    fclose(in);
    remove(tls_fixture_path("log"));
    return kept;
}

static void open_ways_are_announced(void **state)
{
    static const struct {
        const char *lines;
        const char *said;
    } cases[] = {
        {"a = host=/tmp,127.0.0.1,localhost", ""},
        {"a = host=127.0.0.1 sslmode=disable", ""},
        {"a = host=db1", ""},
        {"a = host=db1 sslmode=verify-ca sslrootcert=%/ca.crt", ""},
        {"a = host=db1 sslmode=require sslrootcert=%/ca.crt", ""},
        {"a = host=db1,::1,db2 sslmode=disable",
         "the connection to db1 is not encrypted: anybody on the way can read and change it (sslmode=verify-full would "
         "protect it)\n"
         "the connection to db2 is not encrypted: anybody on the way can read and change it (sslmode=verify-full would "
         "protect it)\n"},
        {"a = host=db1 sslmode=require\nb = host=db2 sslmode=prefer sslrootcert=%/ca.crt",
         "the connection to db1 is encrypted, but nobody verifies to whom: anybody on the way can pose as the server "
         "(sslmode=verify-full would protect it)\n"
         "the connection to db2 is encrypted only if the server offers it: anybody on the way can prevent that, read "
         "and change it (sslmode=verify-full would protect it)\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "[databases]\n%s\n", cases[i].lines);
        assert_string_equal(announce(text, "the connection to"), cases[i].said);
    }
}

/* Once for each context; nothing is wrong with the configuration. */
static void lists_that_are_out_of_date_are_announced(void **state)
{
    (void)state;
    tls_fixture_make(&(struct tls_recipe){.name = "server", .issuer = "ca"});
    tls_fixture_revoke("late.crl", "ca", NULL, -9, -1);
    const char *said = announce("[pgseek]\nclient_tls_sslmode = require\n" PAIR
                                "client_tls_ca_file = %/ca.crt\nclient_tls_crl_file = %/late.crl\n"
                                "server_tls_ca_file = %/ca.crt\n[databases]\n"
                                "a = host=db1\nb = host=db1 sslcrl=%/late.crl\nc = host=db2 sslcrl=%/late.crl\n"
                                "local = host=/tmp sslcrl=%/late.crl\n",
                                "the revocation list of CN=ca has expired");
    size_t count = 0;
    for (; (said = strstr(said, "all certificates of this authority are refused\n")) != NULL; said++)
        count++;
    assert_int_equal(count, 2);
}

static void memory_may_run_out(void **state)
{
    bool ok = false;
    (void)state;
    tls_fixture_revoke("none.crl", "ca", NULL, -1, 1);
    for (long n = 0; !ok; n++) {
        char *said = NULL;
        size_t len;
        struct conf *conf = tls_fixture_conf("[pgseek]\nclient_tls_sslmode = require\n" PAIR
                                             "client_tls_ca_file = %/ca.crt\nclient_tls_crl_file = %/none.crl\n"
                                             "server_tls_ca_file = %/ca.crt\nserver_tls_crl_file = %/none.crl\n"
                                             "[databases]\na = host=db1\nb = host=db2\n");
        FILE *out = open_memstream(&said, &len);
        mem_fail_after(n);
        struct snapshot *snapshot = snapshot_new(conf, NULL, out);
        mem_fail_after(-1);
        fclose(out);
        ok = snapshot != NULL;
        assert_int_equal(ok, said[0] == '\0');
        snapshot_unref(snapshot);
        free(said);
        assert_true(n < 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_is_told),
        cmocka_unit_test(lines_share_what_is_alike),
        cmocka_unit_test(the_old_one_stays_whole),
        cmocka_unit_test(open_ways_are_announced),
        cmocka_unit_test(lists_that_are_out_of_date_are_announced),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, tls_fixture_setup, tls_fixture_teardown);
}
