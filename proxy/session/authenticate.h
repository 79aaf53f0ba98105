/* authenticate.h - a log-in: who must prove what to whom, and whose business its messages are.
 *
 * Only session/ includes it. A session that is up holds none of its secrets: they are wiped with the log-in's end,
 * whatever that is. */
#ifndef AUTHENTICATE_H
#define AUTHENTICATE_H

#include "../auth/hba.h"
#include "../auth/scram.h"
#include "../protocol/startup.h"
#include "session.h"

enum action;

/* A log-in by SCRAM that ends here. */
struct login {
    bool has_begun;    /* the client has chosen a mechanism */
    const char *doubt; /* why `secret` is nobody's, for the log; static */
    struct secret secret;
    uint8_t key[SCRAM_KEY];        /* the client's, once it has proved that it knows the password */
    struct scram_server *verifier; /* towards the client */
    struct scram_client *prover;   /* towards the server ... */
    enum { PROVER_IDLE, PROVER_HAS_CHOSEN, PROVER_HAS_PROVED, PROVER_IS_DONE } prover_step;
};

/* Wipes and frees session->login. */
void login_end(struct session *session);

/* The client's parameters are read, and session->startup is what the server will be told: decides what must be proved
 * to whom, and goes there. */
void authenticate(struct session *session, const struct startup *startup);

/* Whether a message of that side is the log-in's business; all others pass as they do later. */
bool login_takes(const struct session *session, enum side from, uint8_t type);
/* How many bytes of such a message must be there; 0: it is too long to be looked at. */
size_t login_needs(const struct session *session, size_t total);
enum action login_too_long(struct session *session, enum side from);
enum action login_message(struct session *session, enum side from, struct span message);

/* ---- authenticate_client.c: SCRAM that ends here ---- */
void verify_begin(struct session *session, const struct startup *startup);
/* The answer to STATE_LOOK_UP; as session_secret(). */
void verify_secret(struct session *session, const struct session_looked_up *answer);
enum action verify_message(struct session *session, struct span message);

/* ---- authenticate_server.c: what the server asks ---- */
/* In the client's name, with its key. */
enum action prove_message(struct session *session, struct span message);
/* Relayed. */
enum action relay_request(struct session *session, struct span message);
enum action relay_choice(struct session *session, struct span message);

#endif
