/* hba.c - rules in the order of their lines, and which of them a client meets first. */
#include "hba.h"

#include <errno.h>
#include <string.h>

#include "hba_rule.h"

struct hba {
    struct hba_rule *rules;
    size_t count;
    struct range *interfaces; /* when a rule needs them */
    size_t ninterfaces;
};

/* ---- loading ---- */

static bool hba_add(struct hba *hba, struct rule_reading *reading, struct hba_rule *rule)
{
    struct hba_rule *grown = mem_realloc(hba->rules, (hba->count + 1) * sizeof *grown);
    if (!grown) {
        rule_complain(reading, rule->line.number, "out of memory");
        return false;
    }
    hba->rules = grown;
    hba->rules[hba->count++] = *rule;
    return true;
}

/* Once for all rules: an interface that comes or goes later counts from the next reload on. */
static bool hba_know_interfaces(struct hba *hba, struct rule_reading *reading, const struct hba_rule *rule)
{
    if ((rule->where != HBA_SAMEHOST && rule->where != HBA_SAMENET) || hba->interfaces)
        return true;
    hba->interfaces = range_of_interfaces(&hba->ninterfaces);
    if (!hba->interfaces)
        rule_complain(reading, rule->line.number, "the addresses of this machine cannot be told: %s", strerror(errno));
    return hba->interfaces != NULL;
}

static void hba_read_rules(struct hba *hba, struct rule_reading *reading)
{
    struct hba_rule rule = {0};
    while (rule_next(reading, &rule.line)) {
        if (!hba_rule_read(reading, &rule) || !hba_know_interfaces(hba, reading, &rule) ||
            !hba_add(hba, reading, &rule))
            rule_line_fini(&rule.line);
        rule = (struct hba_rule){0};
    }
}

struct hba *hba_read(struct span text, const char *name, FILE *complaints)
{
    struct rule_reading reading;
    struct hba *hba = mem_zalloc(sizeof *hba);
    rule_reading_init(&reading, text, name, complaints);
    if (hba)
        hba_read_rules(hba, &reading);
    else
        rule_complain(&reading, 0, "out of memory");
    if (hba && reading.faults == 0 && hba->count == 0)
        rule_complain(&reading, reading.number, "there is no rule, so nobody could connect");
    if (reading.faults == 0)
        return hba;
    hba_free(hba);
    return NULL;
}

struct hba *hba_load(const char *path, FILE *complaints)
{
    struct whole_file file;
    if (!rule_file_read(path, &file, complaints))
        return NULL;
    struct hba *hba = hba_read(whole_file_span(&file), path, complaints);
    whole_file_fini(&file);
    return hba;
}

void hba_free(struct hba *hba)
{
    if (!hba)
        return;
    for (size_t i = 0; i < hba->count; i++)
        rule_line_fini(&hba->rules[i].line);
    mem_free(hba->rules);
    mem_free(hba->interfaces);
    mem_free(hba);
}

/* ---- deciding ---- */

static bool hba_is_connection(const struct hba_rule *rule, const struct hba_client *client)
{
    unsigned connection = client->from.family == ADDRESS_UNIX ? HBA_LOCAL : client->is_tls ? HBA_TLS : HBA_PLAIN;
    return (rule->connections & connection) != 0;
}

/* Physical replication has no database: only its own keyword means it, and means nothing else. */
static bool hba_means_database(const struct rule_token *token, const struct hba_client *client)
{
    if (rule_is_keyword(token, "replication") || client->is_replication)
        return rule_is_keyword(token, "replication") && client->is_replication;
    if (rule_is_keyword(token, "all"))
        return true;
    return strcmp(client->database, rule_is_keyword(token, "sameuser") ? client->user : token->text) == 0;
}

static bool hba_is_database(const struct hba_rule *rule, const struct hba_client *client)
{
    for (size_t i = 0; i < rule->databases.count; i++)
        if (hba_means_database(&rule->databases.tokens[i], client))
            return true;
    return false;
}

static bool hba_is_user(const struct hba_rule *rule, const struct hba_client *client)
{
    for (size_t i = 0; i < rule->users.count; i++) {
        const struct rule_token *token = &rule->users.tokens[i];
        if (rule_is_keyword(token, "all") || strcmp(token->text, client->user) == 0)
            return true;
    }
    return false;
}

/* An address of ours that the client has reached is this machine's, whatever the interfaces were at load. */
static bool hba_is_neighbour(const struct hba *hba, const struct hba_client *client, enum hba_where where)
{
    if (address_equal(&client->from, &client->to))
        return true;
    for (size_t i = 0; i < hba->ninterfaces; i++) {
        const struct range *interface = &hba->interfaces[i];
        if (where == HBA_SAMENET ? range_holds(interface, &client->from)
                                 : address_equal(&interface->address, &client->from))
            return true;
    }
    return false;
}

static bool hba_is_from(const struct hba *hba, const struct hba_rule *rule, const struct hba_client *client)
{
    if (rule->where == HBA_ANYWHERE || rule->connections == HBA_LOCAL)
        return true;
    return rule->where == HBA_RANGE ? range_holds(&rule->range, &client->from)
                                    : hba_is_neighbour(hba, client, rule->where);
}

struct hba_verdict hba_decide(const struct hba *hba, const struct hba_client *client)
{
    size_t count = hba->count;
    if (strlen(client->user) > RULE_NAME_MAX || strlen(client->database) > RULE_NAME_MAX)
        count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hba_rule *rule = &hba->rules[i];
        if (hba_is_connection(rule, client) && hba_is_database(rule, client) && hba_is_user(rule, client) &&
            hba_is_from(hba, rule, client))
            return (struct hba_verdict){
                .method = rule->method, .clientcert = rule->clientcert, .map = rule->map, .line = rule->line.number};
    }
    return (struct hba_verdict){.method = HBA_NO_LINE};
}

/* ---- what the rules need ---- */

unsigned hba_needs_secrets(const struct hba *hba)
{
    for (size_t i = 0; i < hba->count; i++)
        if (hba->rules[i].method == HBA_SCRAM)
            return hba->rules[i].line.number;
    return 0;
}

unsigned hba_needs_certificates(const struct hba *hba)
{
    for (size_t i = 0; i < hba->count; i++)
        if (hba->rules[i].clientcert != HBA_CLIENTCERT_NONE)
            return hba->rules[i].line.number;
    return 0;
}

bool hba_each_map(const struct hba *hba, bool (*fn)(void *arg, const char *map, unsigned line), void *arg)
{
    for (size_t i = 0; i < hba->count; i++)
        if (hba->rules[i].map && !fn(arg, hba->rules[i].map, hba->rules[i].line.number))
            return false;
    return true;
}
