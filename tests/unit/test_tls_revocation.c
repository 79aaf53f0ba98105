/* test_tls_revocation.c - lists of revoked certificates: who is refused on either leg, and what the log says of them.
 */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/admin/log.h"
#include "tls_fixture.h"

#define DAYS -1, 9
#define LATE -9, -1
#define EARLY 1, 9

static const struct tls_recipe recipes[] = {
    {.name = "middle", .issuer = "ca", .is_authority = true},
    {.name = "chained", .issuer = "middle"},
    {.name = "other_ca", .is_authority = true},
    {.name = "stranger", .issuer = "other_ca"},
    {.name = "impostor", .subject = "CN=ca", .is_authority = true},
};

/* Lists of one name are one file, in this order. */
static const struct {
    const char *file;
    const char *issuer;
    const char *revoked;
    int from_days, to_days;
} lists[] = {
    {"none", "ca", NULL, DAYS},
    {"server", "ca", "server", DAYS},
    {"alice", "ca", "alice", DAYS},
    {"middle", "ca", "middle", DAYS},
    {"middle", "middle", NULL, DAYS},
    {"both", "middle", NULL, DAYS},
    {"both", "ca", NULL, DAYS},
    {"chained", "ca", NULL, DAYS},
    {"chained", "middle", "chained", DAYS},
    {"other", "other_ca", NULL, DAYS},
    {"other", "ca", NULL, DAYS},
    {"late", "ca", NULL, LATE},
    {"late_middle", "ca", NULL, DAYS},
    {"late_middle", "middle", NULL, LATE},
    {"early", "ca", NULL, EARLY},
    {"for_ever", "ca", "alice", -1, TLS_FOR_EVER},
    /* more than one of an issuer: the newest */
    {"renewed", "ca", NULL, LATE},
    {"renewed", "ca", "server", DAYS},
    {"reversed", "ca", "server", DAYS},
    {"reversed", "ca", NULL, -2, 9},
    {"released", "ca", "server", -2, 9},
    {"released", "ca", NULL, DAYS},
    /* one of that name that another key has signed */
    {"forged", "ca", NULL, LATE},
    {"forged", "impostor", NULL, DAYS},
};

/* Both authorities. */
static void write_authorities(void)
{
    char command[512];
    snprintf(command, sizeof command, "cat '%s' '%s' > '%s'", tls_fixture_path("ca.crt"),
             tls_fixture_path("other_ca.crt"), tls_fixture_path("authorities"));
    assert_int_equal(system(command), 0);
}

static int setup(void **state)
{
    tls_fixture_setup(state);
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        tls_fixture_make(&recipes[i]);
    write_authorities();
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char file[64];
        snprintf(file, sizeof file, "%s.crl", lists[i].file);
        tls_fixture_revoke(file, lists[i].issuer, lists[i].revoked, lists[i].from_days, lists[i].to_days);
    }
    return 0;
}

#define REVOKED "certificate revoked "
#define ALERT_REVOKED "sslv3 alert certificate revoked"
#define MISSING "unable to get certificate CRL "

/* What the certificate is shown to: this list, beside the authorities "ca" and "other_ca". */
static const struct {
    const char *certificate;
    const char *list;
    const char *why;   /* NULL: they talk */
    const char *alert; /* that the peer gets */
} cases[] = {
    {"server", "none", NULL, NULL},
    {"server", "alice", NULL, NULL},
    {"server", "server", REVOKED "(CN=server)", ALERT_REVOKED},
    {"alice", "alice", REVOKED "(CN=alice,O=Shop)", ALERT_REVOKED},
    {"alice", "for_ever", REVOKED "(CN=alice,O=Shop)", ALERT_REVOKED},
    {"server", "for_ever", NULL, NULL},
    /* each certificate of the chain has its list, or is refused */
    {"chained", "both", NULL, NULL},
    {"chained", "middle", REVOKED "(CN=middle)", ALERT_REVOKED},
    {"chained", "chained", REVOKED "(CN=chained)", ALERT_REVOKED},
    {"chained", "none", MISSING "(CN=chained, issued by CN=middle)", "tlsv1 alert unknown ca"},
    {"stranger", "other", NULL, NULL},
    {"stranger", "none", MISSING "(CN=stranger, issued by CN=other_ca)", "tlsv1 alert unknown ca"},
    /* as long as it is good */
    {"server", "late", "CRL has expired (CN=server, issued by CN=ca)", "sslv3 alert certificate expired"},
    {"chained", "late_middle", "CRL has expired (CN=chained, issued by CN=middle)", "sslv3 alert certificate expired"},
    {"server", "late_middle", NULL, NULL},
    {"server", "early", "CRL is not yet valid (CN=server, issued by CN=ca)", "sslv3 alert bad certificate"},
    {"server", "renewed", REVOKED "(CN=server)", ALERT_REVOKED},
    {"server", "reversed", REVOKED "(CN=server)", ALERT_REVOKED},
    {"server", "released", NULL, NULL},
    {"server", "forged", "CRL signature failure (CN=server, issued by CN=ca)", "tlsv1 alert decrypt error"},
};

static void assert_outcome(struct tls_talk *talk, size_t i, const struct tls *verifier, const struct tls *other)
{
    char why[256];
    if (cases[i].why) {
        snprintf(why, sizeof why, "certificate verify failed: %s", cases[i].why);
        assert_string_equal(tls_why(verifier), why);
        assert_string_equal(tls_why(other), cases[i].alert);
    } else {
        tls_talk_assert(talk);
    }
    tls_talk_end(talk);
}

/* In every mode that has authorities, as libpq does. */
static void servers_that_were_revoked_are_refused(void **state)
{
    static const char *modes[] = {"prefer", "require", "verify-ca"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases * 3; i++) {
        struct tls_talk talk;
        char keywords[128];
        snprintf(keywords, sizeof keywords, "sslmode=%s sslcrl=%%/%s.crl", modes[i % 3], cases[i / 3].list);
        tls_talk_shake(&talk, tls_fixture_server_role(cases[i / 3].certificate, ""),
                       tls_fixture_client_role(keywords, "server_tls_ca_file = %/authorities"), "db1", false);
        assert_outcome(&talk, i / 3, talk.client, talk.server);
    }
}

static void clients_that_were_revoked_are_refused(void **state)
{
    static const char *modes[] = {"allow", "require", "verify-ca", "verify-full"};
    static const char *versions[] = {"tlsv1.2", "tlsv1.3"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases * 8; i++) {
        struct tls_talk talk;
        char settings[256];
        char keywords[128];
        const char *certificate = cases[i / 8].certificate;
        snprintf(settings, sizeof settings,
                 "client_tls_sslmode = %s\nclient_tls_protocols = %s\nclient_tls_ca_file = %%/authorities\n"
                 "client_tls_crl_file = %%/%s.crl\n",
                 modes[i % 4], versions[i / 4 % 2], cases[i / 8].list);
        snprintf(keywords, sizeof keywords, "sslmode=require sslcert=%%/%s.crt sslkey=%%/%s.key", certificate,
                 certificate);
        tls_talk_shake(&talk, tls_fixture_server_role("server", settings), tls_fixture_client_role(keywords, ""), "db1",
                       false);
        assert_outcome(&talk, i / 8, talk.server, talk.client);
    }
}

/* Who shows no certificate is not concerned. */
static void clients_without_certificate_are_as_before(void **state)
{
    struct tls_talk talk;
    (void)state;
    tls_talk_shake(&talk,
                   tls_fixture_server_role("server", "client_tls_ca_file = %/ca.crt\nclient_tls_crl_file = %/late.crl"),
                   tls_fixture_client_role("sslmode=require", ""), "db1", false);
    tls_talk_assert(&talk);
    tls_talk_end(&talk);
}

/* ---- the log ---- */

/* What it says, from the levels on. */
static void announce(const char *list, char *said, size_t room)
{
    char settings[256];
    char line[LOG_LINE_MAX];
    char path[128];
    const char *why;
    snprintf(settings, sizeof settings, "client_tls_ca_file = %%/authorities\nclient_tls_crl_file = %%/%s.crl", list);
    snprintf(path, sizeof path, "%s.crl", list);
    struct tls_context *context = tls_fixture_server_role("server", settings);
    assert_true(log_open(tls_fixture_path("log"), &why));
    tls_context_announce(context, path);
    log_close();
    tls_context_free(context);
    FILE *in = fopen(tls_fixture_path("log"), "r");
    said[0] = '\0';
    while (fgets(line, sizeof line, in))
        snprintf(said + strlen(said), room - strlen(said), "%s", strstr(line, "] ") + 2);
    fclose(in);
    remove(tls_fixture_path("log"));
}

#define NONE_OF_OTHER(file) \
    "WARNING " file ": there is no revocation list of CN=other_ca: all certificates of this authority are refused\n"

static void lists_are_announced(void **state)
{
    /* A * in place of dates. */
    static const struct {
        const char *list;
        const char *said;
    } announcements[] = {
        {"other", "LOG other.crl: certificates that CN=* has revoked: 0; its next list is due: 20* UTC\n"
                  "LOG other.crl: certificates that CN=* has revoked: 0; its next list is due: 20* UTC\n"},
        {"alice",
         "LOG alice.crl: certificates that CN=ca has revoked: 1; its next list is due: 20* UTC\n" NONE_OF_OTHER(
             "alice.crl")},
        {"for_ever",
         "LOG for_ever.crl: certificates that CN=ca has revoked: 1; its next list is due: never\n" NONE_OF_OTHER(
             "for_ever.crl")},
        {"late", "WARNING late.crl: the revocation list of CN=ca has expired on 20* UTC: all certificates of this "
                 "authority are refused\n" NONE_OF_OTHER("late.crl")},
        {"early", "WARNING early.crl: the revocation list of CN=ca is not valid before 20* UTC: all certificates of "
                  "this authority are refused\n" NONE_OF_OTHER("early.crl")},
        {"renewed",
         "LOG renewed.crl: certificates that CN=ca has revoked: 1; its next list is due: 20* UTC\n" NONE_OF_OTHER(
             "renewed.crl")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof announcements / sizeof *announcements; i++) {
        char said[2048];
        announce(announcements[i].list, said, sizeof said);
        if (fnmatch(announcements[i].said, said, 0) != 0)
            fail_msg("said\n%sinstead of\n%s", said, announcements[i].said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_that_were_revoked_are_refused),
        cmocka_unit_test(clients_that_were_revoked_are_refused),
        cmocka_unit_test(clients_without_certificate_are_as_before),
        cmocka_unit_test(lists_are_announced),
    };
    return cmocka_run_group_tests(tests, setup, tls_fixture_teardown);
}
