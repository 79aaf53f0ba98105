/* number.c - LIMIT and OFFSET: what they are, and their value.
 *
 * See number.h. The rules are PostgreSQL's: int4 and int8 arithmetic with overflow, integer division that truncates,
 * numeric literals rounded half away from zero. Everything else fails, and the server answers for the original. */
#include "number.h"

#include "oid.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* An intermediate value. The width is that of the integer type; 0 is a numeric or text that only a cast may take. */
struct value {
    enum { VALUE_FAILED, VALUE_NULL, VALUE_INTEGER, VALUE_DECIMAL, VALUE_TEXT } kind;
    int width; /* VALUE_INTEGER: 2, 4 or 8 bytes */
    int64_t integer;
    const char *text; /* VALUE_DECIMAL, VALUE_TEXT */
    size_t len;
    bool negative; /* VALUE_DECIMAL: a minus was applied */
};

struct evaluation {
    const struct pgseek_value *params;
    size_t nparams;
    bool probing; /* only the shape is wanted: every parameter is 1 */
    bool has_params;
    bool has_operator;
    bool unsupported; /* a node that no value of the parameters can make computable */
};

static const struct value failed = {.kind = VALUE_FAILED};

static bool fits(int64_t integer, int width)
{
    if (width == 2)
        return integer >= INT16_MIN && integer <= INT16_MAX;
    if (width == 4)
        return integer >= INT32_MIN && integer <= INT32_MAX;
    return true;
}

static struct value integer_value(int64_t integer, int width)
{
    if (!fits(integer, width))
        return failed;
    return (struct value){.kind = VALUE_INTEGER, .width = width, .integer = integer};
}

/* ---- texts ---- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Digits as int8in reads them: blanks around, one sign, nothing else. */
static bool read_integer(const char *text, size_t len, int64_t *out)
{
    const char *end = text + len;
    bool negative = false;
    uint64_t magnitude = 0;
    uint64_t most = INT64_MAX;

    while (text < end && is_blank(*text))
        text++;
    while (text < end && is_blank(end[-1]))
        end--;
    if (text < end && (*text == '-' || *text == '+'))
        negative = *text++ == '-';
    if (text == end)
        return false;
    most += negative;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return false;
        uint64_t digit = (uint64_t)(*text - '0');
        if (magnitude > (most - digit) / 10)
            return false;
        magnitude = magnitude * 10 + digit;
    }
    *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

/* A decimal without exponent, rounded to an integer, halves away from zero. */
static bool read_decimal(const char *text, size_t len, bool negative, int64_t *out)
{
    const char *point = memchr(text, '.', len);
    size_t whole = point ? (size_t)(point - text) : len;
    bool round_up = false;

    if (len && *text == '-') {
        negative = !negative;
        text++, len--, whole--;
    }
    if (point) {
        for (size_t i = whole + 1; i < len; i++)
            if (!isdigit((unsigned char)text[i]))
                return false;
        round_up = whole + 1 < len && text[whole + 1] >= '5';
    }
    *out = 0;
    if (whole && (!isdigit((unsigned char)*text) || !read_integer(text, whole, out)))
        return false;
    if (!whole && len < 2)
        return false;
    if (round_up && __builtin_add_overflow(*out, 1, out))
        return false;
    if (negative)
        *out = -*out;
    return true;
}

static struct value literal_number(const char *text)
{
    int64_t integer;

    if (read_integer(text, strlen(text), &integer))
        return integer_value(integer, fits(integer, 4) ? 4 : 8);
    return (struct value){.kind = VALUE_DECIMAL, .text = text, .len = strlen(text)};
}

/* ---- conversions ---- */

/* What assignment or a cast to an integer type of that width makes of the value. */
static struct value to_integer(struct value value, int width)
{
    int64_t integer;

    switch (value.kind) {
    case VALUE_NULL: return value;
    case VALUE_INTEGER: return integer_value(value.integer, width);
    case VALUE_DECIMAL:
        return read_decimal(value.text, value.len, value.negative, &integer) ? integer_value(integer, width) : failed;
    case VALUE_TEXT: return read_integer(value.text, value.len, &integer) ? integer_value(integer, width) : failed;
    case VALUE_FAILED: break;
    }
    return failed;
}

static int integer_width(uint32_t oid)
{
    return oid == OID_INT2 ? 2 : oid == OID_INT4 ? 4 : oid == OID_INT8 ? 8 : 0;
}

static struct value binary_integer(const struct pgseek_value *param, int width)
{
    uint64_t bits = 0;

    if (param->len != width)
        return failed;
    for (int i = 0; i < width; i++)
        bits = bits << 8 | param->data[i];
    unsigned unused = (unsigned)(64 - 8 * width);
    return integer_value((int64_t)(bits << unused) >> unused, width);
}

static struct value param_value(const struct pgseek_value *param)
{
    int width = integer_width(param->type_oid);
    const char *text = (const char *)param->data;

    if (param->len < 0)
        return (struct value){.kind = VALUE_NULL};
    if (width && param->format == 1)
        return binary_integer(param, width);
    struct value as_text = {.kind = VALUE_TEXT, .text = text, .len = (size_t)param->len};
    if (width)
        return to_integer(as_text, width);
    if (param->type_oid == OID_TEXT || param->type_oid == OID_VARCHAR || param->type_oid == OID_UNKNOWN)
        return as_text;
    if (param->type_oid == OID_NUMERIC && param->format == 0)
        return (struct value){.kind = VALUE_DECIMAL, .text = text, .len = (size_t)param->len};
    return failed;
}

/* ---- the expression ---- */

static struct value evaluate(struct evaluation *eval, const PgQuery__Node *node);

static struct value unsupported(struct evaluation *eval)
{
    eval->unsupported = true;
    return failed;
}

static struct value constant(struct evaluation *eval, const PgQuery__AConst *constant)
{
    if (constant->isnull)
        return (struct value){.kind = VALUE_NULL};
    switch (constant->val_case) {
    case PG_QUERY__A__CONST__VAL_IVAL: return integer_value(constant->ival->ival, 4);
    case PG_QUERY__A__CONST__VAL_FVAL: return literal_number(constant->fval->fval);
    case PG_QUERY__A__CONST__VAL_SVAL:
        return (struct value){.kind = VALUE_TEXT, .text = constant->sval->sval, .len = strlen(constant->sval->sval)};
    default: return unsupported(eval);
    }
}

static struct value parameter(struct evaluation *eval, int32_t number)
{
    eval->has_params = true;
    if (eval->probing)
        return integer_value(1, 8);
    if (number < 1 || (size_t)number > eval->nparams)
        return failed;
    return param_value(&eval->params[number - 1]);
}

static struct value cast(struct evaluation *eval, const PgQuery__TypeCast *cast)
{
    static const struct {
        const char *name;
        int width;
    } types[] = {{"int2", 2}, {"int4", 4}, {"int8", 8}};
    const PgQuery__TypeName *type = cast->type_name;
    const char *name = tree_builtin_name(type->names, type->n_names);

    if (!name || type->n_typmods || type->n_array_bounds || type->setof)
        return unsupported(eval);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(name, types[i].name))
            return to_integer(evaluate(eval, cast->arg), types[i].width);
    return unsupported(eval);
}

static struct value negate(struct value value)
{
    if (value.kind == VALUE_NULL)
        return value;
    if (value.kind == VALUE_DECIMAL) {
        value.negative = !value.negative;
        return value;
    }
    if (value.kind != VALUE_INTEGER || value.integer == INT64_MIN)
        return failed;
    return integer_value(-value.integer, value.width);
}

static struct value arithmetic(char op, int64_t a, int64_t b, int width)
{
    int64_t result = 0;
    bool overflow = false;

    if (op == '+')
        overflow = __builtin_add_overflow(a, b, &result);
    if (op == '-')
        overflow = __builtin_sub_overflow(a, b, &result);
    if (op == '*')
        overflow = __builtin_mul_overflow(a, b, &result);
    if (op == '/') {
        overflow = b == 0 || (a == INT64_MIN && b == -1);
        result = overflow ? 0 : a / b;
    }
    return overflow ? failed : integer_value(result, width);
}

static struct value operation(struct evaluation *eval, const PgQuery__AExpr *expr)
{
    const char *name = tree_builtin_name(expr->name, expr->n_name);

    if (expr->kind != PG_QUERY__A__EXPR__KIND__AEXPR_OP || !name || strlen(name) != 1 || !strchr("+-*/", *name))
        return unsupported(eval);
    eval->has_operator |= !tree_is_qualified(expr->n_name);
    struct value right = evaluate(eval, expr->rexpr);
    if (!expr->lexpr)
        return *name == '-' ? negate(right) : *name == '+' ? right : unsupported(eval);

    struct value left = evaluate(eval, expr->lexpr);
    if (left.kind == VALUE_FAILED || right.kind == VALUE_FAILED)
        return failed;
    /* The type of a bare NULL or text beside an operator is the other side's; of numerics we know no arithmetic. */
    bool plain = (left.kind == VALUE_INTEGER || left.kind == VALUE_NULL) &&
                 (right.kind == VALUE_INTEGER || right.kind == VALUE_NULL);
    if (!plain)
        return eval->probing ? unsupported(eval) : failed;
    if (left.kind == VALUE_NULL || right.kind == VALUE_NULL)
        return (struct value){.kind = VALUE_NULL};
    return arithmetic(*name, left.integer, right.integer, left.width > right.width ? left.width : right.width);
}

static struct value evaluate(struct evaluation *eval, const PgQuery__Node *node)
{
    if (!node)
        return unsupported(eval);
    switch (node->node_case) {
    case PG_QUERY__NODE__NODE_A_CONST: return constant(eval, node->a_const);
    case PG_QUERY__NODE__NODE_PARAM_REF: return parameter(eval, node->param_ref->number);
    case PG_QUERY__NODE__NODE_TYPE_CAST: return cast(eval, node->type_cast);
    case PG_QUERY__NODE__NODE_A_EXPR: return operation(eval, node->a_expr);
    default: return unsupported(eval);
    }
}

bool number_make(struct number *number, const PgQuery__Node *node)
{
    struct evaluation eval = {.probing = true};

    *number = (struct number){.kind = PGSEEK_NUMBER_ABSENT, .node = node};
    if (!node)
        return true;
    struct value value = evaluate(&eval, node);
    if (eval.unsupported)
        return false;
    number->has_operator = eval.has_operator;
    number->kind = PGSEEK_NUMBER_PARAMS;
    if (eval.has_params)
        return true;
    value = to_integer(value, 8);
    number->kind = value.kind == VALUE_NULL ? PGSEEK_NUMBER_NULL : PGSEEK_NUMBER_LITERAL;
    return value.kind != VALUE_FAILED;
}

enum pgseek_eval number_value(const struct number *number, const struct pgseek_value *params, size_t nparams,
                              int64_t *out)
{
    struct evaluation eval = {.params = params, .nparams = nparams};

    if (number->kind == PGSEEK_NUMBER_ABSENT || number->kind == PGSEEK_NUMBER_NULL)
        return PGSEEK_EVAL_NONE;
    struct value value = to_integer(evaluate(&eval, number->node), 8);
    if (value.kind == VALUE_NULL)
        return PGSEEK_EVAL_NONE;
    if (value.kind != VALUE_INTEGER)
        return PGSEEK_EVAL_FAILED;
    *out = value.integer;
    return PGSEEK_EVAL_NUMBER;
}
