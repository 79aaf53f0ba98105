/* scram_text.h - the four texts of an exchange, taken apart by the grammar of RFC 5802, section 7.
 *
 * It must not know secrets, nor which text is right in an exchange that has begun. What it hands out borrows from the
 * text. Each reader returns NULL, or what breaks the grammar or a bound, for the log. */
#ifndef SCRAM_TEXT_H
#define SCRAM_TEXT_H

#include "scram.h"

#define SCRAM_BINDING "tls-server-end-point" /* the one channel binding of PostgreSQL (RFC 5929, section 4) */
#define SCRAM_NONCE_MAX 1024u                /* characters, both parts together; drivers send 24 each */

struct scram_client_first {
    uint8_t flag;        /* 'n': does not bind, 'y': could bind but was offered nothing to bind with, 'p': binds */
    struct span binding; /* the name behind "p=" */
    struct span header;  /* all that c= of client-final must repeat */
    struct span bare;    /* all behind the header */
    struct span nonce;
};

struct scram_server_first {
    struct span nonce;
    size_t salt_len;
    uint8_t salt[SECRET_SALT_MAX];
    uint32_t iterations;
};

struct scram_client_final {
    struct span binding; /* the value of c=, undecoded: there is one right spelling */
    struct span nonce;
    struct span without_proof;
    uint8_t proof[SCRAM_KEY];
};

struct scram_server_final {
    bool is_error; /* "e=": the server has refused the proof */
    uint8_t signature[SCRAM_KEY];
};

const char *scram_text_client_first(struct span text, struct scram_client_first *out) MUST_USE;
const char *scram_text_server_first(struct span text, struct scram_server_first *out) MUST_USE;
const char *scram_text_client_final(struct span text, struct scram_client_final *out) MUST_USE;
const char *scram_text_server_final(struct span text, struct scram_server_final *out) MUST_USE;

#endif
