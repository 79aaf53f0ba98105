/* summary.c - an order as a person would write it.
 *
 * See summary.h. */
#include "summary.h"

#include <string.h>

/* Quoted only where it has to be. */
static void put_name(struct text *text, const char *name)
{
    bool plain = *name == '_' || (*name >= 'a' && *name <= 'z');

    for (const char *at = name; *at && plain; at++)
        plain = *at == '_' || (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9');
    if (plain)
        text_puts(text, name);
    else
        text_put_ident(text, name);
}

static void put_column(struct text *text, const struct scope *scope, struct scope_column column)
{
    const struct scope_relation *relation = &scope->relations[column.relation];

    if (scope->nrelations > 1 && *relation->qualifier) {
        put_name(text, relation->qualifier);
        text_putc(text, '.');
    }
    put_name(text, scope_attribute(scope, column)->name);
}

/* On one line. */
static void put_expression(struct text *text, const char *expression)
{
    for (const char *at = expression; *at; at++)
        text_putc(text, strchr("\t\r\n\f", *at) ? ' ' : *at);
}

static void put_key(struct text *text, const struct order *order, const struct order_key *key)
{
    const char *spelled = order_text(order, key);

    if (order->form == QUERY_SET && order->outputs.item[key->output].name)
        put_name(text, order->outputs.item[key->output].name);
    else if (key->is_column && scope_attribute(order->scope, key->column)->name)
        put_column(text, order->scope, key->column);
    else
        put_expression(text, spelled ? spelled : "");
    text_puts(text, key->descending ? " DESC" : "");
    if (key->nullable && key->nulls_first != key->descending)
        text_puts(text, key->nulls_first ? " NULLS FIRST" : " NULLS LAST");
}

const char *summary_make(struct arena *arena, const struct order *order)
{
    struct text text = {0};

    for (size_t i = 0; i < order->nkeys; i++) {
        text_puts(&text, i ? ", " : "");
        put_key(&text, order, &order->keys[i]);
    }
    if (*order->tie_breaker)
        text_format(&text, " (tie-breaker: %s)", order->tie_breaker);
    const char *copy = text.failed ? NULL : arena_strdup(arena, text.ptr);
    text_fini(&text);
    return copy;
}
