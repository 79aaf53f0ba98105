/* scram_fixture.h - one SCRAM secret, its password's key, and the texts of RFC 7677. */
#ifndef SCRAM_FIXTURE_H
#define SCRAM_FIXTURE_H

#include "../../proxy/auth/scram.h"

#define SALT "W22ZaJ0SNY7soEsUEjb6gQ=="
#define STORED "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
#define SERVER "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
#define SECRET "SCRAM-SHA-256$4096:" SALT "$" STORED ":" SERVER /* of "pencil" */
#define CLIENT_KEY "pg/JI9Z+hkSpLRa5btpe9GVrDHJcSEN0viVTVXaZbos="

/* RFC 7677, section 3. */
#define CLIENT_NONCE "rOprNGfwEbeRWgbNEkqO"
#define SERVER_NONCE "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
#define NONCE CLIENT_NONCE SERVER_NONCE
#define FIRST_TEXT "n,,n=user,r=" CLIENT_NONCE
#define CHALLENGE_TEXT "r=" NONCE ",s=" SALT ",i=4096"
#define PROOF "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
#define LAST_TEXT "c=biws,r=" NONCE "," PROOF
#define SIGNATURE_TEXT "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

/* The same without the user name, as clients of PostgreSQL have it. */
#define NAMELESS_PROOF "p=qvT2SWdEH5Q06albL+hjSYuUhCG7VndFyzIb7CK4n9k="
#define NAMELESS_SIGNATURE_TEXT "v=3HO6Qt1M4MKJrmlKaoOqLAI0/0TV0HZe7J9H3MBtSOg="

/* Offers: each mechanism with its NUL, the literal's own behind the last. */
#define PLAIN_OFFER SCRAM_PLAIN "\0"
#define BOTH_OFFER SCRAM_PLUS "\0" SCRAM_PLAIN "\0"

/* Initialisers of a span: a literal without its NUL, and with it. */
#define TEXT(text) \
    { \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }
#define TEXT_NUL(text) \
    { \
        (const uint8_t *)(text), sizeof(text) \
    }

/* What two channels are bound to. */
#define NOTHING \
    { \
        NULL, 0 \
    }
#define THIS TEXT("thirty-two bytes of a digest ...")
#define OTHER TEXT("thirty-two bytes of another one.")

struct secret secret_of(const char *text);
void key_of(const char *text, uint8_t key[SCRAM_KEY]);

#endif
