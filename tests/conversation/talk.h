/* talk.h - one conversation: a script for the client, the small server, the session between them, cut as a schedule
 * says.
 *
 * It carries bytes and writes down in short form what the client received; it must not know what is right. */
#ifndef TALK_H
#define TALK_H

#include "../../proxy/admin/conf.h"
#include "../../proxy/protocol/sink.h"
#include "backend.h"

/* A conversation. The script has one message a line (talk_script.c); `wait` lets the server answer everything first.
 * A script that does not begin with start, ssl, gss, cancel, tls or raw is spoken in a session that is up already. */
struct talk {
    const char *name;
    const char *script;
    const char *expected; /* what the client received, as talk_print() writes it */
    struct backend_setup server;
    void (*configure)(struct conf *conf);
    size_t stride;           /* cuts at every so many bytes; 0: at each */
    bool is_a_race;          /* what comes out depends on when the client's bytes arrive: only whole pieces are tried */
    bool has_tls;            /* the client comes over TCP and may ask for TLS; the bytes go on as they are */
    bool is_server_tls;      /* the server's link is made with TLS, unless the session says how */
    const char *certificate; /* the common name in the client's certificate; NULL: none */
};

/* How the bytes are cut. All zero: everything in one piece, the server answers when the client has sent all. */
struct talk_cut {
    size_t front_chunk, back_chunk;   /* at most so many bytes at once; 0: all there are */
    size_t front_at, back_at;         /* one cut at this byte of the whole stream; 0: none */
    bool is_prompt;                   /* the server's answers are carried after each piece of the client's */
    uint64_t front_noise, back_noise; /* seeds of the damage that is done to one side's messages; 0: none */
};

enum talk_end { TALK_OPEN, TALK_CLOSED, TALK_STUCK, TALK_BUSY };

struct talk_result {
    struct buf to_client; /* all that the client received */
    struct buf to_server; /* all that the server received */
    size_t greeting;      /* bytes of to_client, and of to_server, in front of the script */
    size_t server_greeting;
    size_t from_client; /* how many bytes the client sent */
    enum talk_end end;
    bool met_failure; /* of memory: the n-th allocation was reached */
};

void talk_run(const struct talk *talk, const struct talk_cut *cut, struct talk_result *result);
/* The same, with the n-th allocation of the session failing; further ones succeed. */
void talk_run_failing(const struct talk *talk, const struct talk_cut *cut, long n, struct talk_result *result);
/* The same without a session: what the server itself would answer. */
void talk_directly(const struct talk *talk, struct talk_result *result);
void talk_result_fini(struct talk_result *result);

/* What the client received behind the greeting, in short: see talk_print.c. The caller frees it. */
char *talk_text(const struct talk_result *result);

/* Runs all cuts of each conversation and compares; dies with the difference. */
void talk_check(const struct talk *talks, size_t count);

/* ---- parts ---- */

/* Encodes one line of a script; `next` and `prev` stand for {next} and {prev}. False for `wait`. */
bool talk_encode(const char *line, size_t len, const char *next, const char *prev, struct buf *out);
/* Writes messages in short form; a connection that has not been answered yet begins with `negotiations` single bytes.
 * With `only_original` what pgseek adds is left out. */
char *talk_print(struct span bytes, size_t negotiations, bool only_original);
/* The last value of a ParameterStatus in the bytes, copied; "" when there is none. */
char *talk_status(struct span bytes, const char *name);

/* The environment that all sessions share: a fixed clock, one key. Made once. */
struct keyring *talk_keyring(void);
int64_t talk_now(void *clock);

/* Runs a test's main on a stack that may parse. */
int talk_main(int (*tests)(void));
/* The main of a program that only checks conversations. */
int talk_main_of(const struct talk *talks, size_t count);

/* Moves what a session has made to the end of a buffer. */
void talk_drain(struct sink *sink, struct buf *to);

#endif
