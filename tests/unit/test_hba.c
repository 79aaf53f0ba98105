/* test_hba.c - rule files in; rules, complaints and verdicts out. */
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

#include "../../proxy/auth/hba.h"
#include "../../proxy/auth/hba_rule.h"

/* *complaints is to be freed. */
static struct hba *read_text(const char *text, size_t len, char **complaints)
{
    size_t size;
    FILE *out = open_memstream(complaints, &size);
    assert_non_null(out);
    struct hba *hba = hba_read(span_of(text, len), "hba", out);
    fclose(out);
    return hba;
}

static struct hba *load(const char *text)
{
    char *complaints;
    struct hba *hba = read_text(text, strlen(text), &complaints);
    if (!hba)
        fail_msg("%s\n%s", text, complaints);
    assert_string_equal(complaints, "");
    free(complaints);
    return hba;
}

static void assert_complaint(const char *text, size_t len, const char *expected)
{
    char *complaints;
    struct hba *hba = read_text(text, len, &complaints);
    if (hba || strcmp(complaints, expected) != 0)
        fail_msg("%s\ncomplained: %s\nexpected:   %s", text, complaints, expected);
    free(complaints);
}

/* ---- fields ---- */

static void write_names(char *out, size_t size, const struct rule_field *names)
{
    out[0] = '\0';
    for (size_t i = 0; i < names->count; i++) {
        size_t len = strlen(out);
        snprintf(out + len, size - len, "%s%s%s", i ? "," : "", names->tokens[i].is_quoted ? "'" : "",
                 names->tokens[i].text);
    }
}

static void write_where(char *out, size_t size, const struct hba_rule *rule)
{
    static const char *const words[] = {[HBA_ANYWHERE] = "any", [HBA_SAMEHOST] = "host", [HBA_SAMENET] = "net"};
    char address[INET6_ADDRSTRLEN];
    char mask[INET6_ADDRSTRLEN];
    int family = rule->range.address.family == ADDRESS_IP4 ? AF_INET : AF_INET6;
    if (rule->where != HBA_RANGE) {
        snprintf(out, size, "%s", words[rule->where]);
        return;
    }
    inet_ntop(family, rule->range.address.bytes, address, sizeof address);
    inet_ntop(family, rule->range.mask, mask, sizeof mask);
    snprintf(out, size, "%s/%s", address, mask);
}

/* A rule in one canonical line: connections databases users where method clientcert map. */
static void write_rule(char *out, size_t size, const struct hba_rule *rule)
{
    static const char *const methods[] = {
        [HBA_RELAY] = "relay", [HBA_SCRAM] = "scram", [HBA_CERT] = "cert", [HBA_REJECT] = "reject"};
    char databases[600];
    char users[600];
    char where[128];
    write_names(databases, sizeof databases, &rule->databases);
    write_names(users, sizeof users, &rule->users);
    write_where(where, sizeof where, rule);
    snprintf(out, size, "%u %s %s %s %s %u %s", rule->connections, databases, users, where, methods[rule->method],
             (unsigned)rule->clientcert, rule->map ? rule->map : "-");
}

static const struct {
    const char *text;
    const char *rule;
} good[] = {
    {"local all all relay", "1 all all any relay 0 -"},
    {"local all all reject", "1 all all any reject 0 -"},
    {"host all all all scram-sha-256", "6 all all any scram 0 -"},
    {"host all all 10.0.0.0/8 relay", "6 all all 10.0.0.0/255.0.0.0 relay 0 -"},
    {"host all all 10.1.2.3/8 relay", "6 all all 10.1.2.3/255.0.0.0 relay 0 -"},
    {"host all all 10.0.0.0 255.0.0.0 relay", "6 all all 10.0.0.0/255.0.0.0 relay 0 -"},
    {"host all all 10.0.0.0 255.0.255.0 relay", "6 all all 10.0.0.0/255.0.255.0 relay 0 -"},
    {"host all all 0.0.0.0/0 relay", "6 all all 0.0.0.0/0.0.0.0 relay 0 -"},
    {"host all all \"10.0.0.1/32\" relay", "6 all all 10.0.0.1/255.255.255.255 relay 0 -"},
    {"host all all 10.0.0.1/032 relay", "6 all all 10.0.0.1/255.255.255.255 relay 0 -"},
    {"host all all ::1/128 relay", "6 all all ::1/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff relay 0 -"},
    {"host all all fe80::/10 relay", "6 all all fe80::/ffc0:: relay 0 -"},
    {"host all all ::/0 relay", "6 all all ::/:: relay 0 -"},
    {"host all all 2001:db8:: ffff:ffff:: relay", "6 all all 2001:db8::/ffff:ffff:: relay 0 -"},
    {"hostssl all all samehost relay", "4 all all host relay 0 -"},
    {"hostnossl all all samenet relay", "2 all all net relay 0 -"},
    {"host db1,db2 a,b,c all relay", "6 db1,db2 a,b,c any relay 0 -"},
    {"host db1, db2 a,\tb all relay", "6 db1,db2 a,b any relay 0 -"},
    {"host \"all\" \"sameuser\",\"+x\" all relay", "6 'all 'sameuser,'+x any relay 0 -"},
    {"host \"a b\" \"c,d\" all relay", "6 'a b 'c,d any relay 0 -"},
    {"host \"a\"\"b\" \"#\"x all relay", "6 'a\"b '#x any relay 0 -"},
    {"host a\" \"b x all relay", "6 a b x any relay 0 -"},
    {"\"host\" all all all \"relay\"", "6 all all any relay 0 -"},
    {"local replication all relay", "1 replication all any relay 0 -"},
    {"local sameuser all relay", "1 sameuser all any relay 0 -"},
    {"local \"samerole\" all relay", "1 'samerole all any relay 0 -"},
    {"local \"@x\" all relay", "1 '@x all any relay 0 -"},
    {"hostssl all all all cert", "4 all all any cert 2 -"},
    {"hostssl all all all cert clientcert=verify-full", "4 all all any cert 2 -"},
    {"hostssl all all all cert map=m", "4 all all any cert 2 m"},
    {"hostssl all all all cert map=\"a b\"", "4 all all any cert 2 a b"},
    {"hostssl all all all cert \"map=a b\"", "4 all all any cert 2 a b"},
    {"hostssl all all all relay clientcert=verify-ca", "4 all all any relay 1 -"},
    {"hostssl all all all scram-sha-256 clientcert=verify-full map=m", "4 all all any scram 2 m"},
    {"hostssl all all all relay map=m,clientcert=verify-full", "4 all all any relay 2 m"},
    {"  local all all relay # local all all reject", "1 all all any relay 0 -"},
    {"local all all relay#reject", "1 all all any relay 0 -"},
    {"local all \\\n all relay", "1 all all any relay 0 -"},
    {"local all al\\\nl relay", "1 all all any relay 0 -"},
    {"local all all relay\r\n", "1 all all any relay 0 -"},
    {"local all all relay\\", "1 all all any relay 0 -"},
    {"\xef\xbb\xbflocal all all relay", "1 all all any relay 0 -"},
    {"local \xc3\xa9t\xc3\xa9 all relay", "1 \xc3\xa9t\xc3\xa9 all any relay 0 -"},
};

static void lines_become_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct rule_reading reading;
        struct hba_rule rule = {0};
        char got[1600];
        char *complaints;
        size_t size;
        FILE *out = open_memstream(&complaints, &size);
        rule_reading_init(&reading, span_cstr(good[i].text), "hba", out);
        bool ok = rule_next(&reading, &rule.line) && hba_rule_read(&reading, &rule);
        fclose(out);
        if (!ok)
            fail_msg("%s: %s", good[i].text, complaints);
        write_rule(got, sizeof got, &rule);
        assert_string_equal(got, good[i].rule);
        rule_line_fini(&rule.line);
        free(complaints);
    }
}

/* ---- faults ---- */

#define ROLES ": who is a member of a role only the server knows: list the users\n"
#define SERVER " is asked by the server: write relay here, and the method in its pg_hba.conf\n"
#define PROXY_ITSELF \
    " would tell the server who runs the proxy, not who the client is: write relay, scram-sha-256 or cert\n"
#define INCLUDED " files are not included: write the lines here\n"
#define NO_ADDRESS " is not an address: host names are not looked up, write an IP address\n"
#define LONG_NAME "a234567890123456789012345678901234567890123456789012345678901234" /* 64 */

static const struct {
    const char *text;
    const char *complaint;
} bad[] = {
    {"", "hba:1: there is no rule, so nobody could connect\n"},
    {"# nothing\n\n", "hba:3: there is no rule, so nobody could connect\n"},
    {"hots all all all relay",
     "hba:1: unknown connection type \"hots\": there are local, host, hostssl and hostnossl\n"},
    {"HOST all all all relay",
     "hba:1: unknown connection type \"HOST\": there are local, host, hostssl and hostnossl\n"},
    {"hostgssenc all all all relay",
     "hba:1: connection type \"hostgssenc\" GSSAPI encryption cannot pass a proxy: write host or hostssl\n"},
    {"hostnogssenc all all all relay",
     "hba:1: connection type \"hostnogssenc\" GSSAPI encryption never passes the proxy: write host\n"},
    {"include other.conf", "hba:1: connection type \"include\"" INCLUDED},
    {"include_if_exists other.conf", "hba:1: connection type \"include_if_exists\"" INCLUDED},
    {"include_dir conf.d", "hba:1: connection type \"include_dir\"" INCLUDED},
    {"@other", "hba:1: unknown connection type \"@other\": there are local, host, hostssl and hostnossl\n"},
    {"local,host all all all relay", "hba:1: the connection type is a list: write a line for each\n"},
    {"local", "hba:1: the line ends before its database\n"},
    {"local all", "hba:1: the line ends before its user\n"},
    {"local all all", "hba:1: the line ends before its method\n"},
    {"host all all", "hba:1: the line ends before its address\n"},
    {"host all all 10.0.0.1", "hba:1: the line ends before its mask\n"},
    {"host all all 10.0.0.1/32", "hba:1: the line ends before its method\n"},
    {"local samerole all relay", "hba:1: \"samerole\"" ROLES},
    {"local samegroup all relay", "hba:1: \"samegroup\"" ROLES},
    {"local all +staff relay", "hba:1: \"+staff\"" ROLES},
    {"local all a,+\"staff\" relay", "hba:1: \"+staff\"" ROLES},
    {"local @dbs all relay", "hba:1: \"@dbs\": files are not included: write the names here\n"},
    {"local all a,@users relay", "hba:1: \"@users\": files are not included: write the names here\n"},
    {"local /^db all relay", "hba:1: \"/^db\": regular expressions are not read here: list each database\n"},
    {"local all \"/^u\" relay", "hba:1: \"/^u\": regular expressions are not read here: list each user\n"},
    {"local \"\" all relay", "hba:1: the name of a database is empty\n"},
    {"local all \"\" relay", "hba:1: the name of a user is empty\n"},
    {"local " LONG_NAME " all relay", "hba:1: \"" LONG_NAME "\" is longer than the name of a database can be\n"},
    {"host all all localhost relay", "hba:1: \"localhost\"" NO_ADDRESS},
    {"host all all .example.com relay", "hba:1: \".example.com\"" NO_ADDRESS},
    {"host all all example.com/24 relay", "hba:1: \"example.com/24\"" NO_ADDRESS},
    {"host all all \"all\" relay", "hba:1: \"all\"" NO_ADDRESS},
    {"host all all 10.1 relay", "hba:1: \"10.1\"" NO_ADDRESS},
    {"host all all 10.0.0.256/32 relay", "hba:1: \"10.0.0.256/32\"" NO_ADDRESS},
    {"host all all 010.0.0.1/32 relay", "hba:1: \"010.0.0.1/32\"" NO_ADDRESS},
    {"host all all fe80::1%lo/64 relay", "hba:1: \"fe80::1%lo/64\"" NO_ADDRESS},
    {"host all all [::1]/128 relay", "hba:1: \"[::1]/128\"" NO_ADDRESS},
    {"host all all 10.0.0.1/33 relay", "hba:1: \"10.0.0.1/33\" has no mask of 0 to 32 bits\n"},
    {"host all all 10.0.0.1/ relay", "hba:1: \"10.0.0.1/\" has no mask of 0 to 32 bits\n"},
    {"host all all 10.0.0.1/-1 relay", "hba:1: \"10.0.0.1/-1\" has no mask of 0 to 32 bits\n"},
    {"host all all 10.0.0.1/+8 relay", "hba:1: \"10.0.0.1/+8\" has no mask of 0 to 32 bits\n"},
    {"host all all 10.0.0.1/8/8 relay", "hba:1: \"10.0.0.1/8/8\" has no mask of 0 to 32 bits\n"},
    {"host all all 10.0.0.1/255.0.0.0 relay", "hba:1: \"10.0.0.1/255.0.0.0\" has no mask of 0 to 32 bits\n"},
    {"host all all 10.0.0.1/4294967304 relay", "hba:1: \"10.0.0.1/4294967304\" has no mask of 0 to 32 bits\n"},
    {"host all all ::1/129 relay", "hba:1: \"::1/129\" has no mask of 0 to 128 bits\n"},
    {"host all all 10.0.0.1 relay",
     "hba:1: \"relay\" is not a mask such as 255.255.255.0: write ADDRESS/BITS, or an address and its mask\n"},
    {"host all all 10.0.0.1 ffff:: relay", "hba:1: \"ffff::\" is a mask of another address family\n"},
    {"host all all ::ffff:10.0.0.1/128 relay", "hba:1: \"::ffff:10.0.0.1/128\" is an IPv4 address written as IPv6: "
                                               "such clients are matched by their IPv4 address, write that\n"},
    {"host all all 10.0.0.1/32,10.0.0.2/32 relay", "hba:1: the address is a list: write a line for each\n"},
    {"local all all trust", "hba:1: method \"trust\" lets anybody in: write relay here, and the server decides by its "
                            "pg_hba.conf\n"},
    {"local all all md5", "hba:1: method \"md5\"" SERVER},
    {"local all all password", "hba:1: method \"password\"" SERVER},
    {"host all all all gss", "hba:1: method \"gss\"" SERVER},
    {"host all all all sspi", "hba:1: method \"sspi\"" SERVER},
    {"host all all all ldap ldapserver=x", "hba:1: method \"ldap\"" SERVER},
    {"host all all all radius", "hba:1: method \"radius\"" SERVER},
    {"host all all all pam", "hba:1: method \"pam\"" SERVER},
    {"host all all all bsd", "hba:1: method \"bsd\"" SERVER},
    {"host all all all oauth", "hba:1: method \"oauth\"" SERVER},
    {"local all all peer", "hba:1: method \"peer\"" PROXY_ITSELF},
    {"host all all all ident", "hba:1: method \"ident\"" PROXY_ITSELF},
    {"local all all relai", "hba:1: unknown method \"relai\": there are relay, scram-sha-256, cert and reject\n"},
    {"local all all relay,reject", "hba:1: the method is a list: write a line for each\n"},
    {"local all all cert", "hba:1: method cert needs TLS: write hostssl\n"},
    {"host all all all cert", "hba:1: method cert needs TLS: write hostssl\n"},
    {"hostnossl all all all cert", "hba:1: method cert needs TLS: write hostssl\n"},
    {"host all all all relay clientcert=verify-ca", "hba:1: clientcert can be asked for on hostssl lines only\n"},
    {"local all all relay clientcert=verify-full", "hba:1: clientcert can be asked for on hostssl lines only\n"},
    {"hostssl all all all relay clientcert=1",
     "hba:1: unknown clientcert \"1\": there are verify-ca and verify-full\n"},
    {"hostssl all all all relay clientcert=no-verify",
     "hba:1: clientcert \"no-verify\" asks for nothing: leave clientcert out\n"},
    {"hostssl all all all cert clientcert=verify-ca",
     "hba:1: method cert always means clientcert=verify-full: leave clientcert out\n"},
    {"hostssl all all all relay map=m",
     "hba:1: a map is for the name of a certificate: it needs cert or clientcert=verify-full\n"},
    {"hostssl all all all relay clientcert=verify-ca map=m",
     "hba:1: a map is for the name of a certificate: it needs cert or clientcert=verify-full\n"},
    {"hostssl all all all cert map=", "hba:1: the name of a map is empty\n"},
    {"hostssl all all all cert map=a map=b", "hba:1: map is given twice\n"},
    {"hostssl all all all cert clientname=DN",
     "hba:1: unknown option \"clientname=DN\": there are clientcert= and map=\n"},
    {"local all all relay reject", "hba:1: unknown option \"reject\": there are clientcert= and map=\n"},
    {"local \"all all relay", "hba:1: a quote is not closed\n"},
    {"local all ,all relay", "hba:1: a list has nothing before a comma\n"},
    {"local all a,,b relay", "hba:1: a list has nothing before a comma\n"},
    {", local all all relay", "hba:1: a list has nothing before a comma\n"},
    {"local all all relay,", "hba:1: a list ends with a comma\n"},
    {"local all all relay, # x", "hba:1: a list ends with a comma\n"},
    /* the line is where it begins; all faults are told */
    {"local all all relay\n\nlocal \\\n all \\\n\nhost all all x relay\nlocal all all md5\n",
     "hba:3: the line ends before its user\nhba:6: \"x\"" NO_ADDRESS "hba:7: method \"md5\"" SERVER},
};

static void every_fault_is_explained(void **state)
{
    (void)state;
    char text[400];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_complaint(bad[i].text, strlen(bad[i].text), bad[i].complaint);
    assert_complaint("local all a\0l relay", 19, "hba:1: the line holds a NUL character\n");
    snprintf(text, sizeof text, "local all \"%0256d\" relay", 0);
    assert_complaint(text, strlen(text), "hba:1: a word is longer than 255 bytes\n");
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
        hba = read_text(rules, strlen(rules), &complaints);
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
        cmocka_unit_test(lines_become_rules),
        cmocka_unit_test(every_fault_is_explained),
        cmocka_unit_test(the_first_line_that_matches_decides),
        cmocka_unit_test(a_verdict_tells_what_is_to_be_proved),
        cmocka_unit_test(names_that_the_server_would_cut_match_nothing),
        cmocka_unit_test(needs_are_told_with_their_line),
        cmocka_unit_test(files_are_loaded_or_explained),
        cmocka_unit_test(failed_allocations_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
