/* scram.h - SCRAM-SHA-256 and SCRAM-SHA-256-PLUS, both sides, as exchanges of texts (RFC 5802, 7677, 5929).
 *
 * It knows the texts and the cryptography, and must not know PostgreSQL's messages, users or sockets. Every text comes
 * from a stranger: lengths, alphabets and counts are checked before use, and what is built has room or fails. */
#ifndef SCRAM_H
#define SCRAM_H

#include "secret.h"

#define SCRAM_PLAIN "SCRAM-SHA-256"
#define SCRAM_PLUS "SCRAM-SHA-256-PLUS"
#define SCRAM_MESSAGE_MAX 4096u /* bytes of any text of an exchange, ours and theirs */

enum scram_result {
    SCRAM_OK,
    SCRAM_REFUSED,   /* the proof, the signature or the binding is wrong */
    SCRAM_MALFORMED, /* a text breaks the grammar or a bound, or comes when it must not */
    SCRAM_ERROR      /* no memory or no randomness */
};

/* All functions of an exchange: after anything but SCRAM_OK *why is a static sentence for the log (a client must not
 * see it: it tells an unknown user from a wrong password), the exchange is over and further texts are refused. `out` is
 * appended to only when SCRAM_OK. */

/* ---- our side towards a client: verifies a proof, and learns the key behind it ---- */

struct scram_server;

/* `binding`: tls-server-end-point of the channel to the client; empty: PLUS is not offered. The secret is copied. NULL
 * when out of memory. */
struct scram_server *scram_server_new(const struct secret *secret, struct span binding) MUST_USE;
void scram_server_free(struct scram_server *server); /* wipes */

/* client-first-message, and the mechanism it came with; appends server-first-message. A client that could bind and
 * believes that we cannot ("y,,") is refused where we offer PLUS: somebody took it out of the offer. */
enum scram_result scram_server_first(struct scram_server *server, struct span mechanism, struct span message,
                                     struct buf *out, const char **why) MUST_USE;
/* client-final-message; appends server-final-message and stores the client's key, which can log in to every server that
 * keeps the same secret: wipe it. All zeros unless SCRAM_OK. */
enum scram_result scram_server_final(struct scram_server *server, struct span message, struct buf *out,
                                     uint8_t client_key[SCRAM_KEY], const char **why) MUST_USE;

/* ---- our side towards a server: proves with a client's key ---- */

struct scram_client;

/* `secret` is what the server is expected to keep: another salt or count means another secret, and the key is of no use
 * there. `binding`: tls-server-end-point of the channel to the server; empty where there is none, be it that the
 * channel is no TLS or that its certificate has no hash: then "n,,". All is copied. NULL when out of memory. */
struct scram_client *scram_client_new(const struct secret *secret, const uint8_t client_key[SCRAM_KEY],
                                      struct span binding) MUST_USE;
void scram_client_free(struct scram_client *client); /* wipes */

/* The server's offer: mechanisms as in AuthenticationSASL, each ended by a NUL, an empty one behind the last. Chooses
 * PLUS where it can be bound. Where it could be bound and PLUS is not offered the text says so ("y,,"), and a server
 * that has offered it refuses, since somebody has changed its offer. *mechanism is static. */
enum scram_result scram_client_first(struct scram_client *client, struct span offer, const char **mechanism,
                                     struct buf *out, const char **why) MUST_USE;
enum scram_result scram_client_final(struct scram_client *client, struct span server_first, struct buf *out,
                                     const char **why) MUST_USE;
/* server-final-message: whether the server knows the secret, too. */
enum scram_result scram_client_verify(struct scram_client *client, struct span server_final, const char **why) MUST_USE;

/* ---- for tests, whose vectors come with nonces ---- */

enum scram_result scram_server_first_nonce(struct scram_server *server, struct span mechanism, struct span message,
                                           struct span nonce, struct buf *out, const char **why) MUST_USE;
enum scram_result scram_client_first_nonce(struct scram_client *client, struct span offer, struct span nonce,
                                           const char **mechanism, struct buf *out, const char **why) MUST_USE;

#endif
