/* hba_rule.h - one rule of the auth_hba_file, between its reader (hba_rule.c) and those who decide by it (hba.c). */
#ifndef HBA_RULE_H
#define HBA_RULE_H

#include "hba.h"
#include "range.h"
#include "rule.h"

/* Connections that a rule is for: a set of bits. */
enum { HBA_LOCAL = 1, HBA_PLAIN = 2, HBA_TLS = 4 };

enum hba_where { HBA_ANYWHERE, HBA_RANGE, HBA_SAMEHOST, HBA_SAMENET };

struct hba_rule {
    struct rule_line line; /* owns what the others point to */
    unsigned connections;
    struct rule_field databases;
    struct rule_field users;
    enum hba_where where;
    struct range range;
    enum hba_method method;
    enum hba_clientcert clientcert;
    const char *map;
};

/* Makes a rule of rule->line. False after complaining. */
bool hba_rule_read(struct rule_reading *reading, struct hba_rule *rule) MUST_USE;

#endif
