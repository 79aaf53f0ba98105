/* fuzz_hba.c - rules and name maps: what loads decides for any client, and lets nobody in from outside its range.
 *
 * The input is an hba file, a line of one NUL, and an ident file. The rules that were read are also decided by again, a
 * field at a time and in another way than hba.c has; both must find the same line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxy/auth/hba.h"
#include "../../proxy/auth/hba_rule.h"
#include "../../proxy/auth/ident.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- clients ---- */

static const struct address addresses[] = {
    {.family = ADDRESS_UNIX},
    {ADDRESS_IP4, {127, 0, 0, 1}},
    {ADDRESS_IP4, {10, 0, 0, 1}},
    {ADDRESS_IP4, {10, 255, 0, 1}},
    {ADDRESS_IP4, {0}},
    {ADDRESS_IP4, {255, 255, 255, 255}},
    {ADDRESS_IP6, {[15] = 1}},
    {ADDRESS_IP6, {0xfe, 0x80, [15] = 1}},
    {ADDRESS_IP6, {0x20, 0x01, 0x0d, 0xb8}},
};

static const char *const names[] = {
    "all",      "web", "shop", "replication",
    "sameuser", "a,b", "",     "a234567890123456789012345678901234567890123456789012345678901234",
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- another opinion ---- */

/* Bit by bit, where range.c goes by bytes. */
static bool is_in_range(const struct range *range, const struct address *address)
{
    size_t bits = range->address.family == ADDRESS_IP4 ? 32 : 128;
    if (range->address.family != address->family)
        return false;
    for (size_t i = 0; i < bits; i++) {
        unsigned bit = 0x80u >> i % 8;
        bool matters = range->mask[i / 8] & bit;
        if (matters && (range->address.bytes[i / 8] & bit) != (address->bytes[i / 8] & bit))
            return false;
    }
    return true;
}

static bool is_named(const struct rule_field *field, const char *word, bool is_quoted)
{
    for (size_t i = 0; i < field->count; i++)
        if (field->tokens[i].is_quoted == is_quoted && strcmp(field->tokens[i].text, word) == 0)
            return true;
    return false;
}

/* Whether one of these unquoted words would not be taken for a name. */
static bool is_keyword(const char *word, bool is_database)
{
    return strcmp(word, "all") == 0 ||
           (is_database && (strcmp(word, "replication") == 0 || strcmp(word, "sameuser") == 0));
}

static bool names_it(const struct rule_field *field, const char *name, bool is_database)
{
    return is_named(field, name, true) || (!is_keyword(name, is_database) && is_named(field, name, false));
}

static bool is_for_database(const struct hba_rule *rule, const struct hba_client *client)
{
    if (client->is_replication)
        return is_named(&rule->databases, "replication", false);
    if (is_named(&rule->databases, "sameuser", false) && strcmp(client->user, client->database) == 0)
        return true;
    return is_named(&rule->databases, "all", false) || names_it(&rule->databases, client->database, true);
}

/* -1: only the interfaces of this machine could tell. */
static int is_for(const struct hba_rule *rule, const struct hba_client *client)
{
    bool is_local = client->from.family == ADDRESS_UNIX;
    if (is_local != (rule->connections == HBA_LOCAL) || strlen(client->user) > 63 || strlen(client->database) > 63)
        return 0;
    if (!is_local && !(rule->connections & (client->is_tls ? HBA_TLS : HBA_PLAIN)))
        return 0;
    if (!is_for_database(rule, client))
        return 0;
    if (!is_named(&rule->users, "all", false) && !names_it(&rule->users, client->user, false))
        return 0;
    if (is_local || rule->where == HBA_ANYWHERE)
        return 1;
    return rule->where == HBA_RANGE ? is_in_range(&rule->range, &client->from) : -1;
}

/* ---- rules ---- */

#define RULES_MAX 64

struct rules {
    struct hba_rule rule[RULES_MAX];
    size_t count;
};

static FILE *nowhere(void)
{
    static FILE *out;
    if (!out)
        out = fopen("/dev/null", "w");
    require(out != NULL);
    return out;
}

/* The rules once more, for the other opinion. False when there are too many. */
static bool read_rules(struct span text, struct rules *rules)
{
    struct rule_reading reading;
    rule_reading_init(&reading, text, "hba", nowhere());
    rules->count = 0;
    for (; rules->count < RULES_MAX; rules->count++) {
        struct hba_rule *rule = &rules->rule[rules->count];
        *rule = (struct hba_rule){0};
        if (!rule_next(&reading, &rule->line))
            break;
        require(hba_rule_read(&reading, rule)); /* the file has loaded */
    }
    return reading.rest.len == 0;
}

static void check_verdict(const struct rules *rules, const struct hba_verdict *verdict, const struct hba_client *client)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct hba_rule *rule = &rules->rule[i];
        int expected = is_for(rule, client);
        if (verdict->line == rule->line.number) {
            require(expected != 0 && verdict->method == rule->method && verdict->clientcert == rule->clientcert);
            require(verdict->method != HBA_CERT || (client->is_tls && verdict->clientcert == HBA_CLIENTCERT_FULL));
            return;
        }
        require(expected != 1);
    }
    require(verdict->line == 0 && verdict->method == HBA_NO_LINE && !verdict->map);
}

static void decide_all(const struct hba *hba, const struct rules *rules)
{
    for (size_t i = 0; i < COUNT(addresses) * COUNT(names) * COUNT(names) * 4; i++) {
        size_t at = i / 4;
        struct hba_client client = {.from = addresses[at % COUNT(addresses)],
                                    .to = addresses[COUNT(addresses) - 1],
                                    .is_tls = i & 1,
                                    .is_replication = i & 2,
                                    .database = names[at / COUNT(addresses) % COUNT(names)],
                                    .user = names[at / COUNT(addresses) / COUNT(names)]};
        struct hba_verdict verdict = hba_decide(hba, &client);
        check_verdict(rules, &verdict, &client);
    }
}

static void fuzz_rules(struct span text)
{
    static struct rules rules;
    struct hba *hba = hba_read(text, "hba", nowhere());
    if (!hba)
        return;
    if (read_rules(text, &rules))
        decide_all(hba, &rules);
    for (size_t i = 0; i < rules.count; i++)
        rule_line_fini(&rules.rule[i].line);
    hba_free(hba);
}

/* ---- maps ---- */

static void fuzz_maps(struct span text)
{
    static const char *const certificates[] = {"web", "web@example.com", "a,b", "O=x", "", "aaaaaaaaaaaaaaaaaaaaaaaa"};
    struct ident *ident = ident_read(text, "ident", nowhere());
    if (!ident)
        return;
    for (size_t i = 0; i < COUNT(certificates); i++)
        for (size_t j = 0; j < COUNT(names); j++) {
            bool is_allowed = ident_allows(ident, "m", certificates[i], names[j]);
            require(!is_allowed || (ident_has_map(ident, "m") && certificates[i][0] && names[j][0]));
            require(!ident_allows(ident, "no such map", certificates[i], names[j]) ||
                    ident_has_map(ident, "no such map"));
            require(ident_allows(ident, NULL, certificates[i], names[j]) ==
                    (names[j][0] && strlen(names[j]) < 64 && strcmp(certificates[i], names[j]) == 0));
        }
    ident_free(ident);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *mark = size ? memmem(data, size, "\n\0\n", 3) : NULL;
    size_t len = mark ? (size_t)(mark - data) + 1 : size;
    fuzz_rules(span_of(data, len));
    if (mark)
        fuzz_maps(span_of(mark + 3, size - len - 2));
    return 0;
}
