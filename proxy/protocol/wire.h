/* wire.h - PostgreSQL messages of protocol 3: bytes in, structs out, and back.
 *
 * It knows layouts (PostgreSQL documentation, "Message Formats") and must not know sessions, order or policy. Decoders
 * take a message's body (behind type and length), check every length and return false on anything malformed. */
#ifndef WIRE_H
#define WIRE_H

#include "bytes.h"

#define WIRE_HEADER 5               /* type and length */
#define WIRE_MAX_LENGTH 0x3fffffffu /* PostgreSQL's own limit of a message, plus slack */

/* ---- frontend messages ---- */

struct wire_parse {
    struct span name, sql;
    uint16_t noids;
    const uint8_t *oids; /* noids big-endian 32-bit numbers */
};
bool wire_read_parse(struct span body, struct wire_parse *out) MUST_USE;

/* Bind, with its arrays still in wire form. Parameter values follow in `params` as length and bytes; wire_read_bind
 * has walked them, so wire_bind_param() cannot fail for i < nparams. */
struct wire_bind {
    struct span portal, statement;
    uint16_t nformats;
    const uint8_t *formats;
    uint16_t nparams;
    struct span params;
    uint16_t nresults;
    const uint8_t *results;
};
bool wire_read_bind(struct span body, struct wire_bind *out) MUST_USE;
/* The two names at the head of a Bind that may not have arrived whole. */
bool wire_peek_bind(struct span head, struct span *portal, struct span *statement) MUST_USE;

struct wire_param {
    int format;  /* 0 text, 1 binary, anything else as sent */
    int32_t len; /* -1: NULL */
    const uint8_t *data;
};
/* Decodes all parameters into out[nparams]. False when format counts do not fit (neither 0, 1 nor nparams). */
bool wire_bind_params(const struct wire_bind *bind, struct wire_param *out) MUST_USE;

struct wire_target { /* Describe and Close: 'S' or 'P', and a name */
    uint8_t kind;
    struct span name;
};
bool wire_read_target(struct span body, struct wire_target *out) MUST_USE;

struct wire_execute {
    struct span portal;
    int32_t max_rows;
};
bool wire_read_execute(struct span body, struct wire_execute *out) MUST_USE;

/* The text of a Query: a string and nothing behind it. */
bool wire_read_query(struct span body, struct span *sql) MUST_USE;

/* ---- backend messages ---- */

struct wire_field {
    struct span name;
    uint32_t table_oid;
    uint16_t attnum;
    uint32_t type_oid;
    uint16_t type_len;
    int32_t typmod;
    uint16_t format;
};
/* Takes the count, then field by field: for (n = wire_fields(&rd); n--; ) wire_field(&rd, &field). */
uint16_t wire_field_count(struct reader *rd);
void wire_read_field(struct reader *rd, struct wire_field *out);

/* One column of a DataRow after its count (rd_u16): len -1 is NULL. False when it does not fit. */
bool wire_read_column(struct reader *rd, int32_t *len, const uint8_t **data);

/* A field of an ErrorResponse or NoticeResponse by its letter; false when it is not there. */
bool wire_error_field(struct span body, char letter, struct span *value) MUST_USE;

/* ---- building ---- */

/* Starts a message in buf and returns the place to close; wire_close() writes the length. */
size_t wire_open(struct buf *buf, char type);
void wire_close(struct buf *buf, size_t at);

void wire_put_parse(struct buf *buf, const char *name, struct span sql, const uint32_t *oids, size_t noids);
/* Describe ('D'), Close ('C') of a statement ('S') or portal ('P'). */
void wire_put_target(struct buf *buf, char type, char kind, struct span name);
void wire_put_execute(struct buf *buf, struct span portal, int32_t max_rows);
void wire_put_empty(struct buf *buf, char type); /* Sync, Flush, and every message without a body */
void wire_put_ready(struct buf *buf, uint8_t status);
void wire_put_command(struct buf *buf, const char *tag);                    /* CommandComplete */
void wire_put_status(struct buf *buf, const char *name, const char *value); /* ParameterStatus */
void wire_put_query(struct buf *buf, const char *sql);
/* One text column: RowDescription and DataRow. */
void wire_put_text_description(struct buf *buf, const char *name);
void wire_put_text_row(struct buf *buf, const char *value);

struct wire_error {
    const char *severity; /* ERROR, FATAL, WARNING, NOTICE */
    const char *sqlstate;
    const char *message;
    const char *detail; /* NULL or "": left out */
    const char *hint;
};
void wire_put_error(struct buf *buf, char type, const struct wire_error *error); /* type 'E' or 'N' */

#endif
