/* option_words.c - the words that choices know, those of PgBouncer and libpq that cannot be used included. */
#include "option_words.h"

const struct option_choice option_protections[] = {
    {"encrypt", CONF_PROTECT_ENCRYPT, NULL},
    {"sign", CONF_PROTECT_SIGN, NULL},
    {NULL, 0, NULL},
};

const struct option_choice option_modes[] = {
    {"rewrite", PGSEEK_MODE_REWRITE, NULL},
    {"off", PGSEEK_MODE_OFF, NULL},
    {"observe", PGSEEK_MODE_OBSERVE, "this version cannot observe yet: use rewrite or off"},
    {"verify", PGSEEK_MODE_VERIFY, "this version cannot verify yet: use rewrite or off"},
    {NULL, 0, NULL},
};

const struct option_choice option_deliveries[] = {
    {"status", PGSEEK_DELIVER_STATUS, NULL},
    {"notice", PGSEEK_DELIVER_NOTICE, NULL},
    {"columns", PGSEEK_DELIVER_COLUMNS, NULL},
    {NULL, 0, NULL},
};

const struct option_choice option_policies[] = {
    {"offset", CONF_OFFSET_RUN, NULL},
    {"reject", CONF_OFFSET_REJECT, NULL},
    {"anchor", 0, "this version has no anchors yet: use offset or reject"},
    {NULL, 0, NULL},
};

const struct option_choice option_sslmodes[] = {
    {"auto", CONF_SSL_AUTO, NULL},
    {"disable", CONF_SSL_DISABLE, NULL},
    {"allow", CONF_SSL_ALLOW, NULL},
    {"prefer", CONF_SSL_PREFER, NULL},
    {"require", CONF_SSL_REQUIRE, NULL},
    {"verify-ca", CONF_SSL_VERIFY_CA, NULL},
    {"verify-full", CONF_SSL_VERIFY_FULL, NULL},
    {NULL, 0, NULL},
};

const struct option_choice option_sslnegotiations[] = {
    {"postgres", CONF_SSLNEGOTIATION_POSTGRES, NULL},
    {"direct", CONF_SSLNEGOTIATION_DIRECT, NULL},
    {NULL, 0, NULL},
};

static const char option_old_tls[] = "is broken: use tlsv1.2, tlsv1.3 or secure, which is both";
const struct option_choice option_tls_versions[] = {
    {"secure", CONF_TLS_1_2 | CONF_TLS_1_3, NULL},
    {"all", CONF_TLS_1_2 | CONF_TLS_1_3, NULL},
    {"tlsv1.2", CONF_TLS_1_2, NULL},
    {"tlsv1.3", CONF_TLS_1_3, NULL},
    {"tlsv1.0", 0, option_old_tls},
    {"tlsv1.1", 0, option_old_tls},
    {"legacy", 0, option_old_tls},
    {NULL, 0, NULL},
};

static const char option_relayed[] = "is the server's business: use relay, and the server asks for it";
const struct option_choice option_auth_types[] = {
    {"relay", CONF_AUTH_RELAY, NULL},
    {"scram-sha-256", CONF_AUTH_SCRAM, NULL},
    {"hba", CONF_AUTH_HBA, NULL},
    {"trust", 0, option_relayed},
    {"md5", 0, option_relayed},
    {"plain", 0, option_relayed},
    {"pam", 0, option_relayed},
    {"ldap", 0, option_relayed},
    {"any", 0, "would let everybody in as one user: use relay"},
    {"cert", 0, "is a method of auth_hba_file: use hba"},
    {"peer", 0, "is not supported: use relay"},
    {NULL, 0, NULL},
};
