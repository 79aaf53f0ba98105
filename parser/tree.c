/* tree.c - the parse tree of one statement: made, walked, copied, compared.
 *
 * See tree.h. The walker reads protobuf-c's descriptors, so it needs no list of node types and misses none. */
#include "tree.h"

#include <pg_query.h>
#include <stdlib.h>
#include <string.h>

enum tree_result tree_parse(const char *sql, PgQuery__ParseResult **tree)
{
    enum tree_result result = TREE_SYNTAX;
    PgQueryProtobufParseResult parsed = pg_query_parse_protobuf(sql);

    *tree = NULL;
    if (parsed.error)
        goto out;
    *tree = pg_query__parse_result__unpack(NULL, parsed.parse_tree.len, (const uint8_t *)parsed.parse_tree.data);
    result = *tree ? TREE_OK : TREE_NOMEM;
out:
    pg_query_free_protobuf_parse_result(parsed);
    return result;
}

void tree_free(PgQuery__ParseResult *tree)
{
    if (tree)
        pg_query__parse_result__free_unpacked(tree, NULL);
}

/* ---- the walker ---- */

static void *field_at(ProtobufCMessage *message, unsigned offset)
{
    return (char *)message + offset;
}

/* The messages that one field holds: none, one, or an array of them. */
static ProtobufCMessage **field_messages(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                                         size_t *count)
{
    ProtobufCMessage **single = field_at(message, field->offset);

    *count = 0;
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return NULL;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        *count = *(size_t *)field_at(message, field->quantifier_offset);
        return *(ProtobufCMessage ***)field_at(message, field->offset);
    }
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
        *(uint32_t *)field_at(message, field->quantifier_offset) != field->id)
        return NULL;
    *count = *single ? 1 : 0;
    return single;
}

bool tree_walk(ProtobufCMessage *root, tree_visitor visit, void *context)
{
    enum tree_step step = visit(root, context);

    if (step != TREE_DEEPER)
        return step == TREE_OVER;
    for (unsigned i = 0; i < root->descriptor->n_fields; i++) {
        size_t count;
        ProtobufCMessage **messages = field_messages(root, &root->descriptor->fields[i], &count);

        for (size_t j = 0; j < count; j++)
            if (!tree_walk(messages[j], visit, context))
                return false;
    }
    return true;
}

static bool is_location(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_INT32 && field->label != PROTOBUF_C_LABEL_REPEATED &&
           (!strcmp(field->name, "location") || !strcmp(field->name, "stmt_location") ||
            !strcmp(field->name, "stmt_len"));
}

static enum tree_step clear_location(ProtobufCMessage *message, void *context)
{
    (void)context;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++)
        if (is_location(&message->descriptor->fields[i]))
            *(int32_t *)field_at(message, message->descriptor->fields[i].offset) = 0;
    return TREE_DEEPER;
}

void tree_clear_locations(ProtobufCMessage *root)
{
    tree_walk(root, clear_location, NULL);
}

uint8_t *tree_pack(const ProtobufCMessage *root, size_t *len)
{
    /* One byte more: an empty message is no failure. */
    uint8_t *bytes = malloc(protobuf_c_message_get_packed_size(root) + 1);

    if (bytes)
        *len = protobuf_c_message_pack(root, bytes);
    return bytes;
}

ProtobufCMessage *tree_copy(const ProtobufCMessage *root)
{
    size_t len;
    uint8_t *bytes = tree_pack(root, &len);
    ProtobufCMessage *copy = bytes ? protobuf_c_message_unpack(root->descriptor, NULL, len, bytes) : NULL;

    free(bytes);
    return copy;
}

/* ---- small questions about nodes ---- */

const char *tree_string(const PgQuery__Node *node)
{
    return node && node->node_case == PG_QUERY__NODE__NODE_STRING ? node->string->sval : NULL;
}

const PgQuery__ColumnRef *tree_column(const PgQuery__Node *node)
{
    return node && node->node_case == PG_QUERY__NODE__NODE_COLUMN_REF ? node->column_ref : NULL;
}

const char *tree_column_part(const PgQuery__ColumnRef *column, size_t i)
{
    return i < column->n_fields ? tree_string(column->fields[i]) : NULL;
}

bool tree_is_star(const PgQuery__ColumnRef *column)
{
    return column->n_fields && column->fields[column->n_fields - 1]->node_case == PG_QUERY__NODE__NODE_A_STAR;
}

const char *tree_builtin_name(PgQuery__Node *const *names, size_t nnames)
{
    if (nnames == 1)
        return tree_string(names[0]);
    if (nnames != 2 || !tree_string(names[0]) || strcmp(tree_string(names[0]), "pg_catalog") != 0)
        return NULL;
    return tree_string(names[1]);
}

bool tree_is_qualified(size_t nnames)
{
    return nnames > 1;
}

bool tree_is_constant(const PgQuery__Node *node)
{
    while (node && node->node_case == PG_QUERY__NODE__NODE_TYPE_CAST)
        node = node->type_cast->arg;
    return node &&
           (node->node_case == PG_QUERY__NODE__NODE_A_CONST || node->node_case == PG_QUERY__NODE__NODE_PARAM_REF);
}

/* ---- comparing ---- */

static uint8_t *bare_bytes(const PgQuery__Node *node, size_t *len)
{
    ProtobufCMessage *copy = tree_copy(&node->base);
    uint8_t *bytes = NULL;

    if (copy) {
        tree_clear_locations(copy);
        bytes = tree_pack(copy, len);
    }
    protobuf_c_message_free_unpacked(copy, NULL);
    return bytes;
}

bool tree_same(const PgQuery__Node *a, const PgQuery__Node *b)
{
    size_t alen = 0;
    size_t blen = 0;

    if (!a || !b || a->node_case != b->node_case)
        return false;
    uint8_t *abytes = bare_bytes(a, &alen);
    uint8_t *bbytes = bare_bytes(b, &blen);
    bool same = abytes && bbytes && alen == blen && !memcmp(abytes, bbytes, alen);
    free(abytes);
    free(bbytes);
    return same;
}
