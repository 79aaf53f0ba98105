/* execute.c - EXECUTE in SQL: its arguments as the values that a Bind would carry.
 *
 * Only what the server's own conversion leaves no doubt about becomes a value; everything else is said to be unknown,
 * and the server runs the statement itself. It must not know the statement that is executed. */
#include "arena.h"
#include "lex.h"
#include "oid.h"
#include "tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct argument {
    enum { ARGUMENT_OTHER, ARGUMENT_NULL, ARGUMENT_STRING, ARGUMENT_INTEGER, ARGUMENT_DECIMAL, ARGUMENT_BOOL } kind;
    uint32_t cast; /* the type that it is cast to; 0: none */
    int64_t integer;
    const char *text; /* as a Bind would carry it */
};

struct pgseek_execute {
    struct arena arena;
    struct lex lex;
    PgQuery__ParseResult *parsed;
    struct argument *arguments;
    size_t narguments;
};

/* ---- reading ---- */

/* Types whose literals are surely what their input function makes of the text. */
static const struct {
    const char *name;
    uint32_t oid;
} cast_types[] = {
    {"bool", OID_BOOL},       {"int2", OID_INT2},     {"int4", OID_INT4},     {"int8", OID_INT8},
    {"text", OID_TEXT},       {"float4", OID_FLOAT4}, {"float8", OID_FLOAT8}, {"varchar", OID_VARCHAR},
    {"numeric", OID_NUMERIC}, {"date", 1082},         {"time", 1083},         {"timestamp", 1114},
    {"timestamptz", 1184},    {"interval", 1186},     {"uuid", 2950},         {"json", 114},
    {"jsonb", 3802},          {"bytea", 17},          {"inet", 869},
};

/* 0: none of them. */
static uint32_t cast_type(const PgQuery__TypeName *type)
{
    const char *name = type->n_typmods || type->n_array_bounds || type->setof || type->pct_type
                           ? NULL
                           : tree_builtin_name(type->names, type->n_names);
    for (size_t i = 0; name && i < sizeof cast_types / sizeof *cast_types; i++)
        if (!strcmp(name, cast_types[i].name))
            return cast_types[i].oid;
    return 0;
}

static struct argument integer_argument(struct arena *arena, int64_t integer)
{
    return (struct argument){
        .kind = ARGUMENT_INTEGER, .integer = integer, .text = arena_format(arena, "%" PRId64, integer)};
}

/* Digits that are more than an int4: an int8 if they fit, else a numeric. */
static struct argument long_number(struct arena *arena, const char *text)
{
    char *end;
    bool is_whole = !text[strspn(text, "-0123456789")];
    int64_t integer = is_whole ? strtoll(text, &end, 10) : 0;
    bool fits = is_whole && integer != INT64_MAX && integer != INT64_MIN;
    return fits ? integer_argument(arena, integer) : (struct argument){.kind = ARGUMENT_DECIMAL, .text = text};
}

static struct argument constant(struct arena *arena, const PgQuery__AConst *is)
{
    if (is->isnull)
        return (struct argument){.kind = ARGUMENT_NULL};
    switch (is->val_case) {
    case PG_QUERY__A__CONST__VAL_IVAL: return integer_argument(arena, is->ival->ival);
    case PG_QUERY__A__CONST__VAL_FVAL: return long_number(arena, is->fval->fval);
    case PG_QUERY__A__CONST__VAL_SVAL: return (struct argument){.kind = ARGUMENT_STRING, .text = is->sval->sval};
    case PG_QUERY__A__CONST__VAL_BOOLVAL:
        return (struct argument){.kind = ARGUMENT_BOOL, .text = is->boolval->boolval ? "t" : "f"};
    default: return (struct argument){.kind = ARGUMENT_OTHER};
    }
}

/* A sign in front of a number that the grammar has not taken in: +5. */
static struct argument signed_number(struct arena *arena, const PgQuery__AExpr *is)
{
    const char *sign = is->n_name == 1 ? tree_string(is->name[0]) : NULL;
    bool is_plus = is->kind == PG_QUERY__A__EXPR__KIND__AEXPR_OP && !is->lexpr && sign && !strcmp(sign, "+");
    if (!is_plus || !is->rexpr || is->rexpr->node_case != PG_QUERY__NODE__NODE_A_CONST)
        return (struct argument){.kind = ARGUMENT_OTHER};
    struct argument number = constant(arena, is->rexpr->a_const);
    bool is_number = number.kind == ARGUMENT_INTEGER || number.kind == ARGUMENT_DECIMAL;
    return is_number ? number : (struct argument){.kind = ARGUMENT_OTHER};
}

static struct argument cast(struct arena *arena, const PgQuery__TypeCast *is)
{
    struct argument argument = {.kind = ARGUMENT_OTHER};
    if (is->arg->node_case == PG_QUERY__NODE__NODE_A_CONST)
        argument = constant(arena, is->arg->a_const);
    argument.cast = cast_type(is->type_name);
    if (!argument.cast)
        argument.kind = ARGUMENT_OTHER;
    return argument;
}

static struct argument read_argument(struct arena *arena, const PgQuery__Node *node)
{
    switch (node->node_case) {
    case PG_QUERY__NODE__NODE_A_CONST: return constant(arena, node->a_const);
    case PG_QUERY__NODE__NODE_A_EXPR: return signed_number(arena, node->a_expr);
    case PG_QUERY__NODE__NODE_TYPE_CAST: return cast(arena, node->type_cast);
    default: return (struct argument){.kind = ARGUMENT_OTHER};
    }
}

static const PgQuery__ExecuteStmt *execute_of(const PgQuery__ParseResult *parsed)
{
    const PgQuery__Node *node = parsed->n_stmts == 1 ? parsed->stmts[0]->stmt : NULL;
    if (node && node->node_case == PG_QUERY__NODE__NODE_EXPLAIN_STMT)
        node = node->explain_stmt->query;
    if (node && node->node_case == PG_QUERY__NODE__NODE_CREATE_TABLE_AS_STMT)
        node = node->create_table_as_stmt->query;
    return node && node->node_case == PG_QUERY__NODE__NODE_EXECUTE_STMT ? node->execute_stmt : NULL;
}

static enum pgseek_reason build(struct pgseek_execute *execute, const char *sql, size_t len,
                                const struct pgseek_reading *reading)
{
    static const enum pgseek_reason lexed[] = {
        [LEX_SYNTAX] = PGSEEK_REASON_SYNTAX,
        [LEX_TOO_LARGE] = PGSEEK_REASON_TOO_LARGE,
        [LEX_NOMEM] = PGSEEK_REASON_NOMEM,
    };
    if (!reading->standard_strings || !reading->ascii_safe_encoding)
        return reading->standard_strings ? PGSEEK_REASON_ENCODING : PGSEEK_REASON_STRINGS;
    enum lex_result lex = lex_init(&execute->lex, sql, len);
    if (lex != LEX_OK)
        return lexed[lex];
    enum tree_result tree = tree_parse(execute->lex.sql, &execute->parsed);
    if (tree != TREE_OK)
        return tree == TREE_NOMEM ? PGSEEK_REASON_NOMEM : PGSEEK_REASON_SYNTAX;
    const PgQuery__ExecuteStmt *is = execute_of(execute->parsed);
    if (!is)
        return PGSEEK_REASON_EXECUTE;
    execute->narguments = is->n_params;
    execute->arguments = arena_array(&execute->arena, is->n_params + 1, sizeof *execute->arguments);
    for (size_t i = 0; execute->arguments && i < is->n_params; i++)
        execute->arguments[i] = read_argument(&execute->arena, is->params[i]);
    return execute->arena.failed ? PGSEEK_REASON_NOMEM : PGSEEK_REASON_NONE;
}

struct pgseek_execute *pgseek_execute_new(const char *sql, size_t len, const struct pgseek_reading *reading,
                                          enum pgseek_reason *reason)
{
    struct pgseek_execute *execute = calloc(1, sizeof *execute);
    *reason = execute ? build(execute, sql, len, reading) : PGSEEK_REASON_NOMEM;
    if (*reason == PGSEEK_REASON_NONE)
        return execute;
    pgseek_execute_free(execute);
    return NULL;
}

void pgseek_execute_free(struct pgseek_execute *execute)
{
    if (!execute)
        return;
    tree_free(execute->parsed);
    lex_fini(&execute->lex);
    arena_fini(&execute->arena);
    free(execute);
}

size_t pgseek_execute_count(const struct pgseek_execute *execute)
{
    return execute->narguments;
}

/* ---- values ---- */

static bool is_one_of(uint32_t type, const uint32_t *types, size_t ntypes)
{
    for (size_t i = 0; i < ntypes; i++)
        if (types[i] == type)
            return true;
    return false;
}

static bool is_integer_type(uint32_t type)
{
    return type == OID_INT2 || type == OID_INT4 || type == OID_INT8;
}

static bool fits(int64_t integer, uint32_t type)
{
    if (type == OID_INT2)
        return integer >= INT16_MIN && integer <= INT16_MAX;
    if (type == OID_INT4)
        return integer >= INT32_MIN && integer <= INT32_MAX;
    return type == OID_INT8 || (type == OID_OID && integer >= 0 && integer <= UINT32_MAX);
}

/* Assignment of a number as it is written, where it equals what the type's input makes of the digits. */
static enum pgseek_argument integer_to(const struct argument *argument, uint32_t type)
{
    static const uint32_t exact[] = {OID_NUMERIC, OID_FLOAT4, OID_FLOAT8, OID_TEXT, OID_VARCHAR, OID_BPCHAR};
    if (is_one_of(type, exact, sizeof exact / sizeof *exact) || fits(argument->integer, type))
        return PGSEEK_ARGUMENT_TEXT;
    return is_integer_type(type) ? PGSEEK_ARGUMENT_BAD : PGSEEK_ARGUMENT_UNKNOWN;
}

static enum pgseek_argument decimal_to(uint32_t type)
{
    static const uint32_t exact[] = {OID_NUMERIC, OID_FLOAT4, OID_FLOAT8};
    return is_one_of(type, exact, sizeof exact / sizeof *exact) ? PGSEEK_ARGUMENT_TEXT : PGSEEK_ARGUMENT_UNKNOWN;
}

/* Digits in quotes that are one integer to both types. */
static bool digits_fit(const char *text, uint32_t cast, uint32_t type)
{
    const char *digits = text + (*text == '-' || *text == '+');
    size_t len = strspn(digits, "0123456789");
    if (len == 0 || len > 18 || digits[len])
        return false;
    int64_t integer = strtoll(text, NULL, 10);
    return fits(integer, cast) && fits(integer, type);
}

static enum pgseek_argument cast_to(const struct argument *argument, uint32_t type)
{
    bool both_integers = is_integer_type(argument->cast) && is_integer_type(type);
    bool both_texts =
        (argument->cast == OID_TEXT || argument->cast == OID_VARCHAR) && (type == OID_TEXT || type == OID_VARCHAR);
    bool is_certain = argument->cast == type;
    switch (argument->kind) {
    case ARGUMENT_STRING:
        is_certain |= both_texts || (both_integers && digits_fit(argument->text, argument->cast, type));
        break;
    case ARGUMENT_INTEGER:
        is_certain = both_integers ? fits(argument->integer, argument->cast) && fits(argument->integer, type)
                                   : is_certain && integer_to(argument, type) == PGSEEK_ARGUMENT_TEXT;
        break;
    case ARGUMENT_DECIMAL: is_certain &= decimal_to(type) == PGSEEK_ARGUMENT_TEXT; break;
    case ARGUMENT_NULL:
    case ARGUMENT_BOOL:
    default: break;
    }
    if (!is_certain)
        return PGSEEK_ARGUMENT_UNKNOWN;
    return argument->kind == ARGUMENT_NULL ? PGSEEK_ARGUMENT_NULL : PGSEEK_ARGUMENT_TEXT;
}

enum pgseek_argument pgseek_execute_argument(const struct pgseek_execute *execute, size_t i, uint32_t type_oid,
                                             const char **text)
{
    const struct argument *argument = &execute->arguments[i];
    *text = argument->text;
    if (argument->kind == ARGUMENT_OTHER)
        return PGSEEK_ARGUMENT_UNKNOWN;
    if (argument->cast)
        return cast_to(argument, type_oid);
    switch (argument->kind) {
    case ARGUMENT_NULL: return PGSEEK_ARGUMENT_NULL;
    case ARGUMENT_STRING: return PGSEEK_ARGUMENT_TEXT;
    case ARGUMENT_INTEGER: return integer_to(argument, type_oid);
    case ARGUMENT_DECIMAL: return decimal_to(type_oid);
    case ARGUMENT_BOOL: return type_oid == OID_BOOL ? PGSEEK_ARGUMENT_TEXT : PGSEEK_ARGUMENT_UNKNOWN;
    default: return PGSEEK_ARGUMENT_UNKNOWN;
    }
}
