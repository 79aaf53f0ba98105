/* credentials.h - all that decides about a login, loaded as one: rules, name maps, secrets.
 *
 * It belongs to a snapshot: a reload replaces it whole or not at all. Sessions copy what they need at their start and
 * keep no pointer into it. */
#ifndef CREDENTIALS_H
#define CREDENTIALS_H

#include <stdio.h>

#include "hba.h"
#include "ident.h"
#include "secret.h"
#include "userlist.h"

struct conf;

struct credentials {
    struct hba *hba;           /* NULL: auth_type is for everybody */
    struct ident *ident;       /* NULL: none */
    struct userlist *users;    /* NULL: none */
    uint8_t seed[SCRAM_KEY];   /* of mock secrets; the whole is in a vault for it */
    enum hba_method otherwise; /* without hba: HBA_RELAY or HBA_SCRAM */
};

/* Loads and checks everything the settings name, one against the other: SCRAM without secrets, `cert` without
 * client_tls_ca_file, a map that no file defines are faults with the file and line that ask for them. NULL after
 * writing them to `complaints`. Of one `seed`, which is copied, are the same mock secrets: while it stays the same
 * nobody can tell by a reload, a restart or another proxy which users there are. */
struct credentials *credentials_load(const struct conf *conf, const uint8_t seed[SCRAM_KEY], FILE *complaints) MUST_USE;
void credentials_free(struct credentials *credentials);

/* What this client must do. */
struct hba_verdict credentials_decide(const struct credentials *credentials, const struct hba_client *client);

#endif
