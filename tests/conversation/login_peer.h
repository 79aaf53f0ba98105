/* login_peer.h - the two ends of a log-in: a client that proves a password, a server that asks for one.
 *
 * They speak real SCRAM, with a key in the password's place, and write down in short form what they hear. They must not
 * know that somebody stands between them. */
#ifndef LOGIN_PEER_H
#define LOGIN_PEER_H

#include "../../proxy/auth/scram.h"
#include "../../proxy/protocol/channel.h"

/* The secret of everybody who has one; `other`: of the same password with another salt. */
struct secret login_secret(bool other);

/* What is heard is appended here. */
struct login_record {
    char text[1024];
    size_t len;
};

struct login_client {
    /* who it is */
    const char *user;
    const char *more; /* further parameters: "name|value|..." */
    uint32_t minor;   /* of protocol 3 */
    bool is_wrong;    /* its password */
    bool binds;       /* as libpq's channel_binding=prefer: PLUS where it is offered, "y" where TLS is but no offer */
    bool insists;     /* says "y" wherever PLUS is not offered, TLS or not */
    uint8_t seen;     /* the certificate of its channel; 0: no TLS */
    bool is_hasty;    /* sends a query with its last message, without waiting */
    /* the body of the first message that it answers with instead of SCRAM; its type is the first byte */
    const char *says;
    size_t says_len;
    /* how it goes */
    struct buf in, out;
    struct scram_client *scram;
    struct secret expected; /* what its password makes of the salt that it was given */
    bool has_chosen_plus;
    struct login_record heard;
    struct buf error; /* the last ErrorResponse's body */
};

enum login_asks {
    ASKS_NOTHING,
    ASKS_PASSWORD,
    ASKS_MD5,
    ASKS_GSS,
    ASKS_SCRAM,
    ASKS_OTHER_SASL, /* offers a mechanism that nobody knows */
    ASKS_PLUS_ONLY,
    ASKS_UNSIGNED, /* SCRAM, but it never proves itself */
    ASKS_FORGED,   /* SCRAM, and its signature is wrong */
    ASKS_TWICE,    /* SCRAM, and offers again in the middle */
    ASKS_ROWS,     /* sends what has no place in a log-in */
    ASKS_LONG,     /* a challenge that is longer than any */
    REFUSES,       /* an error at once */
    REFUSES_LATE   /* an error behind the client's proof */
};

struct login_server {
    enum login_asks asks;
    uint8_t shown;     /* its certificate; 0: no TLS, and PLUS is not offered */
    bool has_other;    /* another secret for the same password */
    bool is_old;       /* answers v to what is newer than 3.0 */
    bool gives_notice; /* a notice before it asks */
    struct buf in, out;
    struct scram_server *scram;
    bool is_up, has_begun;
    struct login_record heard;
};

/* Its StartupMessage is in client->out. */
void login_client_start(struct login_client *client);
void login_client_take(struct login_client *client, struct span bytes);
void login_client_fini(struct login_client *client);

void login_server_start(struct login_server *server);
void login_server_take(struct login_server *server, struct span bytes);
void login_server_fini(struct login_server *server);

/* The channel whose server shows this certificate. */
struct channel login_channel(uint8_t certificate);

#endif
