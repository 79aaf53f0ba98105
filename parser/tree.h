/* tree.h - the parse tree of one statement: made, walked, copied, compared.
 *
 * It knows the generic shape of protobuf messages and must not know what a page is. Texts must have passed the
 * lexer's limits before they may be parsed, since the parser and the walker recurse. */
#ifndef PARSER_TREE_H
#define PARSER_TREE_H

#include "pgseek.h"

#include <pg_query/pg_query.pb-c.h>

enum tree_result { TREE_OK, TREE_SYNTAX, TREE_NOMEM };

/* Parses a NUL-terminated text. With TREE_OK the tree is the caller's, to be freed with tree_free(). */
enum tree_result tree_parse(const char *sql, PgQuery__ParseResult **tree) PGSEEK_MUST_USE;
void tree_free(PgQuery__ParseResult *tree);

/* What a visitor says about the message it was shown. */
enum tree_step {
    TREE_DEEPER, /* go on with what the message contains */
    TREE_OVER,   /* go on, but not into this message */
    TREE_STOP    /* the walk is over */
};
typedef enum tree_step (*tree_visitor)(ProtobufCMessage *message, void *context);

/* Shows every message below and including root, parents first, in the order of the fields. False when stopped. */
bool tree_walk(ProtobufCMessage *root, tree_visitor visit, void *context);

/* Whether the message is of that type; descriptor is one of pg_query__*__descriptor. */
static inline bool tree_is(const ProtobufCMessage *message, const ProtobufCMessageDescriptor *descriptor)
{
    return message->descriptor == descriptor;
}

/* Zeroes every field that says where something stands in the text. */
void tree_clear_locations(ProtobufCMessage *root);

/* The message as bytes: equal trees give equal bytes. NULL when out of memory; to be freed with free(). */
uint8_t *tree_pack(const ProtobufCMessage *root, size_t *len) PGSEEK_MUST_USE;
/* Whether two nodes are equal wherever they stand in the text. False for an absent one, and when out of memory. */
bool tree_same(const PgQuery__Node *a, const PgQuery__Node *b);
/* A deep copy, to be freed with protobuf_c_message_free_unpacked(copy, NULL). NULL when out of memory. */
ProtobufCMessage *tree_copy(const ProtobufCMessage *root) PGSEEK_MUST_USE;

/* ---- small questions about nodes; all take NULL for an absent node ---- */

/* The string of a String node, else NULL. */
const char *tree_string(const PgQuery__Node *node);
/* The i-th part of a column reference's dotted name; NULL for a `*` part. */
const char *tree_column_part(const PgQuery__ColumnRef *column, size_t i);
/* The node as a column reference, else NULL. */
const PgQuery__ColumnRef *tree_column(const PgQuery__Node *node);
/* Whether the column reference ends in `*`. */
bool tree_is_star(const PgQuery__ColumnRef *column);
/* The name of an operator or type, when it is written bare or qualified with pg_catalog; else NULL. */
const char *tree_builtin_name(PgQuery__Node *const *names, size_t nnames);
/* A literal or a parameter, cast perhaps: one value in all rows. */
bool tree_is_constant(const PgQuery__Node *node);
/* Whether the name has a schema in front. */
bool tree_is_qualified(size_t nnames);

#endif
