/* test_hba.c - rule files in, verdicts out. What a line may say is in test_hba_rule.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "hba_fixture.h"

static struct hba *load(const char *text)
{
    char *complaints;
    struct hba *hba = hba_of(text, strlen(text), &complaints);
    if (!hba)
        fail_msg("%s\n%s", text, complaints);
    assert_string_equal(complaints, "");
    free(complaints);
    return hba;
}

/* ---- verdicts ---- */

static struct address address_of(const char *text)
{
    struct address address = {.family = ADDRESS_UNIX};
    if (inet_pton(AF_INET, text, address.bytes) == 1)
        address.family = ADDRESS_IP4;
    else if (inet_pton(AF_INET6, text, address.bytes) == 1)
        address.family = ADDRESS_IP6;
    return address;
}

static const char rules[] =
    /*  1 */ "local    shop        web                 relay\n"
             /*  2 */ "local    sameuser    all                 scram-sha-256\n"
             /*  3 */ "local    replication standby             relay\n"
             /*  4 */ "host     shop        evil     all        reject\n"
             /*  5 */ "host     \"all\"     all      10.9.0.0/16 relay\n"
             /*  6 */ "hostssl  shop,log    web,app  10.0.0.0/8 cert map=m\n"
             /*  7 */ "hostnossl shop       web      10.0.0.0/8 scram-sha-256\n"
             /*  8 */ "hostssl  all         all      2001:db8::/33 relay clientcert=verify-ca\n"
             /*  9 */ "host     log         all      samehost   relay\n"
             /* 10 */ "host     all         \"all\"  0.0.0.0/0  relay\n"
             /* 11 */ "host     replication all      192.168.1.7/32 relay\n"
             /* 12 */ "host     odd         all      192.0.0.1 255.0.0.255 relay\n"
             /* 13 */ "host     sameuser    all      ::/0       relay\n"
             /* 14 */ "host     \"replication\",\"sameuser\" all all relay\n";

static const struct {
    const char *from;
    const char *to;
    const char *database;
    const char *user;
    bool is_tls;
    bool is_replication;
    unsigned line;
    enum hba_method method;
} verdicts[] = {
    {"", "", "shop", "web", false, false, 1, HBA_RELAY},
    {"", "", "web", "web", false, false, 2, HBA_SCRAM},
    {"", "", "shop", "app", false, false, 0, HBA_NO_LINE},
    {"", "", "", "standby", false, true, 3, HBA_RELAY},
    {"", "", "standby", "standby", false, false, 2, HBA_SCRAM},
    {"", "", "shop", "web", false, true, 0, HBA_NO_LINE},
    {"", "", "replication", "standby", false, false, 0, HBA_NO_LINE},
    {"", "", "sameuser", "web", false, false, 0, HBA_NO_LINE}, /* a keyword is no name */
    {"10.1.1.1", "10.0.0.1", "shop", "evil", true, false, 4, HBA_REJECT},
    {"10.9.1.1", "10.0.0.1", "all", "x", false, false, 5, HBA_RELAY},
    {"10.9.1.1", "10.0.0.1", "other", "x", false, false, 0, HBA_NO_LINE}, /* "all" is a name */
    {"10.9.1.1", "10.0.0.1", "shop", "all", false, false, 10, HBA_RELAY},
    {"10.1.1.1", "10.0.0.1", "shop", "web", true, false, 6, HBA_CERT},
    {"10.1.1.1", "10.0.0.1", "log", "app", true, false, 6, HBA_CERT},
    {"10.1.1.1", "10.0.0.1", "shop", "web", false, false, 7, HBA_SCRAM},
    {"11.1.1.1", "10.0.0.1", "shop", "web", true, false, 0, HBA_NO_LINE},
    {"10.1.1.1", "10.0.0.1", "shop", "Web", true, false, 0, HBA_NO_LINE},
    {"10.1.1.1", "10.0.0.1", "shop", "web ", true, false, 0, HBA_NO_LINE},
    {"2001:db8:7fff::1", "2001:db8::2", "shop", "web", true, false, 8, HBA_RELAY},
    {"2001:db8:8000::1", "2001:db8::2", "shop", "web", true, false, 0, HBA_NO_LINE},
    {"2001:db8:7fff::1", "2001:db8::2", "shop", "web", false, false, 0, HBA_NO_LINE},
    {"192.0.2.200", "192.0.2.200", "log", "web", false, false, 9, HBA_RELAY}, /* an address of ours: it was reached */
    {"127.0.0.1", "127.0.0.1", "log", "web", false, false, 9, HBA_RELAY},
    {"127.0.0.1", "198.51.100.9", "log", "web", false, false, 9, HBA_RELAY}, /* the loopback interface's */
    {"198.51.100.8", "198.51.100.9", "log", "web", false, false, 0, HBA_NO_LINE},
    {"192.168.1.7", "192.168.1.1", "", "x", false, true, 11, HBA_RELAY},
    {"192.168.1.8", "192.168.1.1", "", "x", false, true, 0, HBA_NO_LINE},
    {"192.5.6.1", "192.0.0.9", "odd", "x", false, false, 12, HBA_RELAY},
    {"192.5.6.2", "192.0.0.9", "odd", "x", false, false, 0, HBA_NO_LINE},
    {"2001:dead::1", "2001:dead::2", "u", "u", false, false, 13, HBA_RELAY},
    {"203.0.113.1", "10.0.0.1", "u", "u", false, false, 0, HBA_NO_LINE},
    {"203.0.113.1", "10.0.0.1", "sameuser", "u", false, false, 14, HBA_RELAY},
    {"203.0.113.1", "10.0.0.1", "replication", "u", false, false, 14, HBA_RELAY},
    {"203.0.113.1", "10.0.0.1", "replication", "u", false, true, 0, HBA_NO_LINE},
};

static void the_first_line_that_matches_decides(void **state)
{
    (void)state;
    struct hba *hba = load(rules);
    for (size_t i = 0; i < sizeof verdicts / sizeof verdicts[0]; i++) {
        struct hba_client client = {.from = address_of(verdicts[i].from),
                                    .to = address_of(verdicts[i].to),
                                    .is_tls = verdicts[i].is_tls,
                                    .is_replication = verdicts[i].is_replication,
                                    .database = verdicts[i].database,
                                    .user = verdicts[i].user};
        struct hba_verdict verdict = hba_decide(hba, &client);
        if (verdict.line != verdicts[i].line || verdict.method != verdicts[i].method)
            fail_msg("case %zu (%s %s@%s): line %u, expected %u", i, verdicts[i].database, verdicts[i].user,
                     verdicts[i].from, verdict.line, verdicts[i].line);
    }
    hba_free(hba);
}

static void a_verdict_tells_what_is_to_be_proved(void **state)
{
    (void)state;
    struct hba *hba = load("hostssl all a all cert map=names\nhostssl all b all relay clientcert=verify-ca\n"
                           "hostssl all c all scram-sha-256 clientcert=verify-full\nhostssl all d all relay\n");
    static const struct {
        const char *user;
        enum hba_clientcert clientcert;
        const char *map;
    } cases[] = {{"a", HBA_CLIENTCERT_FULL, "names"},
                 {"b", HBA_CLIENTCERT_CA, NULL},
                 {"c", HBA_CLIENTCERT_FULL, NULL},
                 {"d", HBA_CLIENTCERT_NONE, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hba_client client = {
            .from = address_of("10.0.0.1"), .is_tls = true, .database = "x", .user = cases[i].user};
        struct hba_verdict verdict = hba_decide(hba, &client);
        assert_int_equal(verdict.line, i + 1);
        assert_int_equal(verdict.clientcert, cases[i].clientcert);
        assert_true(cases[i].map ? strcmp(verdict.map, cases[i].map) == 0 : !verdict.map);
    }
    hba_free(hba);
}

/* The server would cut such a name to 63 bytes, and then it might be one that a line has rejected. */
static void names_that_the_server_would_cut_match_nothing(void **state)
{
    (void)state;
    struct hba *hba = load("local all all relay\n");
    char name[80];
    for (int len = 60; len < 70; len++) {
        snprintf(name, sizeof name, "%0*d", len, 0);
        struct hba_client as_user = {.database = "x", .user = name};
        struct hba_client as_database = {.database = name, .user = "x"};
        assert_int_equal(hba_decide(hba, &as_user).line, len <= 63);
        assert_int_equal(hba_decide(hba, &as_database).line, len <= 63);
    }
    hba_free(hba);
}

static bool note_map(void *arg, const char *map, unsigned line)
{
    char *noted = arg;
    size_t len = strlen(noted);
    snprintf(noted + len, 64 - len, "%s:%u ", map, line);
    return line < 3;
}

static void needs_are_told_with_their_line(void **state)
{
    (void)state;
    char noted[64] = "";
    struct hba *hba = load("local all all relay\nhost all all all reject\n");
    assert_int_equal(hba_needs_secrets(hba), 0);
    assert_int_equal(hba_needs_certificates(hba), 0);
    assert_true(hba_each_map(hba, note_map, noted));
    hba_free(hba);
    hba = load("\nhostssl all all all cert map=a\nhostssl all all all cert map=b\n"
               "local all all scram-sha-256\nhostssl all all all cert map=c\n");
    assert_int_equal(hba_needs_secrets(hba), 4);
    assert_int_equal(hba_needs_certificates(hba), 2);
    assert_false(hba_each_map(hba, note_map, noted));
    assert_string_equal(noted, "a:2 b:3 ");
    hba_free(hba);
}

/* ---- files and memory ---- */

static void files_are_loaded_or_explained(void **state)
{
    (void)state;
    char path[] = "/tmp/test_hba.XXXXXX";
    char expected[256];
    char *complaints;
    size_t size;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "local all all relay\n", 20), 20);
    close(fd);
    FILE *out = open_memstream(&complaints, &size);
    struct hba *hba = hba_load(path, out);
    assert_non_null(hba);
    hba_free(hba);
    unlink(path);
    assert_null(hba_load(path, out));
    assert_int_equal(mkfifo(path, 0600), 0); /* is refused at once, not waited for */
    assert_null(hba_load(path, out));
    unlink(path);
    assert_null(hba_load("/tmp", out));
    fclose(out);
    snprintf(
        expected, sizeof expected,
        "%s: cannot be opened: No such file or directory\n%s: is not a regular file\n/tmp: is not a regular file\n",
        path, path);
    assert_string_equal(complaints, expected);
    free(complaints);
}

static void failed_allocations_leave_nothing_behind(void **state)
{
    (void)state;
    struct hba *hba = NULL;
    long n = 0;
    for (; !hba; n++) {
        char *complaints;
        mem_fail_after(n);
        hba = hba_of(rules, strlen(rules), &complaints);
        mem_fail_after(-1);
        if (!hba && !strstr(complaints, "emory") && !strstr(complaints, "cannot be told"))
            fail_msg("allocation %ld failed, and the complaint is: %s", n, complaints);
        free(complaints);
    }
    assert_true(n > 14);
    hba_free(hba);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_line_that_matches_decides),
        cmocka_unit_test(a_verdict_tells_what_is_to_be_proved),
        cmocka_unit_test(names_that_the_server_would_cut_match_nothing),
        cmocka_unit_test(needs_are_told_with_their_line),
        cmocka_unit_test(files_are_loaded_or_explained),
        cmocka_unit_test(failed_allocations_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
