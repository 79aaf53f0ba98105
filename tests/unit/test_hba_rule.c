/* test_hba_rule.c - lines of rule files in; rules or complaints out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "../../proxy/auth/hba_rule.h"
#include "hba_fixture.h"

/* ---- rules ---- */

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

static void assert_complaint(const char *text, size_t len, const char *expected)
{
    char *complaints;
    struct hba *hba = hba_of(text, len, &complaints);
    if (hba || strcmp(complaints, expected) != 0)
        fail_msg("%s\ncomplained: %s\nexpected:   %s", text, complaints, expected);
    free(complaints);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_become_rules),
        cmocka_unit_test(every_fault_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
