/* startup.h - the untyped packets that open a connection, and the surgery on their parameters.
 *
 * It knows the packets' layouts and the grammar of `options`, and must not know what a database or a variable means.
 * (PostgreSQL documentation, "Message Formats": SSLRequest, GSSENCRequest, CancelRequest, StartupMessage.) */
#ifndef STARTUP_H
#define STARTUP_H

#include "bytes.h"

#define STARTUP_MAX_LENGTH 10000u /* PostgreSQL's own limit */
#define STARTUP_MAX_CANCEL_KEY 256u

enum startup_kind {
    STARTUP_SSL,
    STARTUP_GSSENC,
    STARTUP_CANCEL,
    STARTUP_SESSION,     /* a StartupMessage of major version 3 */
    STARTUP_UNSUPPORTED, /* another major version: answered with FATAL 0A000 */
    STARTUP_MALFORMED
};

struct startup {
    enum startup_kind kind;
    uint32_t version;       /* SESSION: the whole number, 196608 + minor */
    struct span parameters; /* SESSION: name, value, name, value ..., the last zero byte excluded */
    struct span cancel;     /* CANCEL: process id and key */
};

/* Length of the packet that `head` (at least 4 bytes) starts, or 0 when no packet can be that long. */
size_t startup_length(struct span head);
/* Classifies one whole packet. */
void startup_read(struct span packet, struct startup *out);

/* Walks the parameters: false at the end. *at starts as startup.parameters. */
bool startup_next(struct span *at, struct span *name, struct span *value) MUST_USE;
/* The value of a parameter, the last one if it is given more than once, as the server reads it; an empty span with NULL
 * ptr when absent. */
struct span startup_find(const struct startup *startup, const char *name);

/* Writes the StartupMessage anew, of that version and without the parameters whose name starts with `prefix`. */
void startup_without(const struct startup *startup, const char *prefix, uint32_t version, struct buf *out);

/* A variable found among the parameters: `pgseek.x` itself or inside `options`. Both texts are NUL-terminated. */
typedef bool startup_variable_fn(void *arg, const char *name, const char *value);

/* Writes the StartupMessage anew without the parameters whose name starts with `prefix` ("pgseek."), directly or inside
 * `options`, giving each to fn; database and user replace the client's unless NULL. False when fn said so or memory ran
 * out. *changed tells whether the packet differs from the client's own. */
bool startup_rewrite(const struct startup *startup, const char *prefix, const char *database, const char *user,
                     startup_variable_fn *fn, void *arg, struct buf *out, bool *changed) MUST_USE;

#endif
