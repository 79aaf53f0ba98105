/* hba.h - the auth_hba_file: who may connect at all, and what must be proved to the proxy itself.
 *
 * PostgreSQL's format (documentation, "The pg_hba.conf File"), names included: quoting, lists, all, sameuser,
 * replication, CIDR and masks, samehost, samenet; options clientcert= and map=. What needs the server's roles (+role,
 * samerole), DNS (host names) or other files (@file, include) is refused, and so are regular expressions for names. It
 * must not know sessions. */
#ifndef HBA_H
#define HBA_H

#include <stdio.h>

#include "../protocol/address.h"
#include "../protocol/bytes.h"

struct hba;

enum hba_method {
    HBA_RELAY, /* the server alone decides */
    HBA_SCRAM, /* the proxy verifies the client itself, and logs in to the server with its key */
    HBA_CERT,  /* a verified client certificate whose name maps to the user; then the server decides as well */
    HBA_REJECT,
    HBA_NO_LINE /* nothing matched: as good as reject */
};

enum hba_clientcert { HBA_CLIENTCERT_NONE, HBA_CLIENTCERT_CA, HBA_CLIENTCERT_FULL };

struct hba_client {
    struct address from; /* the client's address ... */
    struct address to;   /* ... and ours, for samehost */
    bool is_tls;
    bool is_replication; /* physical replication: matches only lines that say so */
    const char *database;
    const char *user;
};

struct hba_verdict {
    enum hba_method method;
    enum hba_clientcert clientcert; /* FULL for HBA_CERT, too */
    const char *map;                /* of the ident file, or NULL; valid as long as the rules */
    unsigned line;                  /* of the file; 0: nothing matched */
};

/* NULL after writing "file:line: sentence" for each fault. What samehost and samenet mean is found out here. */
struct hba *hba_load(const char *path, FILE *complaints) MUST_USE;
struct hba *hba_read(struct span text, const char *name, FILE *complaints) MUST_USE;
void hba_free(struct hba *hba);

/* The first line that matches. None does for a name of more than 63 bytes: the server would cut it, and so take it for
 * another than the one that was looked at here. */
struct hba_verdict hba_decide(const struct hba *hba, const struct hba_client *client);

/* What the rules need: the first line that terminates SCRAM, or asks for certificates; 0: none does. */
unsigned hba_needs_secrets(const struct hba *hba);
unsigned hba_needs_certificates(const struct hba *hba);
/* Calls `fn` with each map name and its line; stops when it says false. */
bool hba_each_map(const struct hba *hba, bool (*fn)(void *arg, const char *map, unsigned line), void *arg);

#endif
