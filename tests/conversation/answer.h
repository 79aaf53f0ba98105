/* answer.h - what a statement's text means to the small server: its columns, its rows, its command tag.
 *
 * It knows the table posts, the proxy's own statements and a handful of commands; it must not know messages' order. */
#ifndef ANSWER_H
#define ANSWER_H

#include "../../proxy/protocol/bytes.h"

#define ANSWER_MAX_COLUMNS 8
#define ANSWER_MAX_PARAMS 16

enum answer_kind {
    ANSWER_EMPTY,
    ANSWER_ROWS,
    ANSWER_COMMAND, /* no rows, only its tag */
    ANSWER_BEGIN,
    ANSWER_COMMIT,
    ANSWER_ROLLBACK,
    ANSWER_ROLLBACK_TO,
    ANSWER_DEALLOCATE, /* `name`, or all */
    ANSWER_DISCARD,
    ANSWER_COPY_IN,
    ANSWER_COPY_OUT,
    ANSWER_COPY_BOTH,
    ANSWER_ERROR /* in analysis */
};

struct answer_column {
    char name[64];
    uint32_t table_oid, type_oid;
    uint16_t attnum, type_len;
};

struct answer_value {
    int format;
    int32_t len; /* -1: NULL */
    const uint8_t *data;
};

struct answer {
    enum answer_kind kind;
    char tag[32];
    char name[64];        /* DEALLOCATE */
    const char *sqlstate; /* ERROR */
    size_t ncolumns;
    struct answer_column column[ANSWER_MAX_COLUMNS];
    size_t nparams;
    uint32_t param_oid[ANSWER_MAX_PARAMS];
    char *sql; /* owned; without comments */
};

/* Reads a text with the types that were declared. */
void answer_read(struct answer *answer, struct span sql, const uint32_t *oids, size_t noids);
void answer_fini(struct answer *answer);

/* Appends the DataRow messages of a run and tells how many; an SQLSTATE when the run fails behind these rows. */
const char *answer_rows(const struct answer *answer, const struct answer_value *params, const uint16_t *formats,
                        int table_rows, struct buf *out, size_t *count);

#endif
