/* tls_fixture.h - certificates and settings in a folder of the test's own, and two ends of TLS that talk. */
#ifndef TLS_FIXTURE_H
#define TLS_FIXTURE_H

#include "../../proxy/admin/conf.h"
#include "../../proxy/io/tls.h"
#include "../../proxy/io/tls_context.h"

enum tls_key { TLS_KEY_EC, TLS_KEY_EC384, TLS_KEY_RSA, TLS_KEY_ED25519 };

/* What <name>.crt and <name>.key are to be. */
struct tls_recipe {
    const char *name;
    const char *issuer;     /* another recipe's name; NULL: itself */
    const char *subject;    /* "CN=a/O=b"; "" for none; NULL: CN=<name> */
    const char *names;      /* subjectAltName as OpenSSL's configuration writes it; NULL: none */
    int from_days, to_days; /* from today; both 0: -1 to 10 */
    enum tls_key key;
    const char *digest; /* of the issuer's signature; NULL: SHA256; "" for a key that has none */
    bool is_authority;
    bool is_bare; /* the certificate alone; otherwise its issuers' that are not self-signed are behind it */
};

/* The folder, made by tls_fixture_setup() and removed by tls_fixture_teardown(). cmocka's group fixtures. */
extern char tls_folder[64];
int tls_fixture_setup(void **state);
int tls_fixture_teardown(void **state);

void tls_fixture_make(const struct tls_recipe *recipe);
/* Appends a revocation list to <file>: of `revoked` alone (NULL: of nobody), from and until so many days from now. */
#define TLS_FOR_EVER 99999
void tls_fixture_revoke(const char *file, const char *issuer, const char *revoked, int from_days, int to_days);
/* "<folder>/<file>": valid until the eighth call from now. */
const char *tls_fixture_path(const char *file);
void tls_fixture_write(const char *file, const char *text, unsigned mode);

/* Loads settings in which every % stands for the folder. */
struct conf *tls_fixture_conf(const char *text);
/* Makes a % of every folder, in place. */
void tls_fixture_hide_folder(char *text);
/* With the lines of complaints, in which every folder is a %; to be freed. */
struct tls_context *tls_fixture_clients(const char *text, char **complaints);
struct tls_context *tls_fixture_server(const char *text, const char *database, char **complaints);

/* The server role in a few words: a certificate's name, and settings of which client_tls_sslmode is `require` unless
 * they have it. */
struct tls_context *tls_fixture_server_role(const char *certificate, const char *settings);
/* The client role: keywords of a line of [databases], and settings. */
struct tls_context *tls_fixture_client_role(const char *keywords, const char *settings);

/* Shows another certificate, also one that our settings would refuse. */
void tls_fixture_swap_certificate(struct tls_context *context, const char *certificate);

/* Two ends, each at its side of a wire that is delivered in steps. */
struct tls_talk {
    struct tls *client;
    struct tls *server;
    struct buf to_client; /* on the wire */
    struct buf to_server;
    struct buf client_got; /* plaintext */
    struct buf server_got;
};

/* Settings of both legs with the certificates that tls_fixture_setup() makes: "ca", "server" (db1 and 10.1.2.3) and
 * "alice" (O=Shop/CN=alice, for clients). */
extern const char tls_fixture_plain[];

void tls_talk_begin(struct tls_talk *talk, struct tls_context *server, struct tls_context *client, const char *host,
                    bool is_direct);
/* The same, for contexts that nobody else needs, and the handshake. */
void tls_talk_shake(struct tls_talk *talk, struct tls_context *server, struct tls_context *client, const char *host,
                    bool is_direct);
/* Delivers one piece of at most `step` bytes. False when both are silent. */
bool tls_talk_deliver(struct tls_talk *talk, size_t step);
/* Delivers until both are silent, `step` bytes at a time. */
void tls_talk_run(struct tls_talk *talk, size_t step);
void tls_talk_say(struct tls_talk *talk, bool is_client, const char *text);
/* A question and its answer arrive. */
void tls_talk_assert(struct tls_talk *talk);
void tls_talk_end(struct tls_talk *talk);

#endif
