/* contract.c - what a cursor is bound to, as bytes.
 *
 * It joins the statement's tree, as query.c has cleaned it, with the relations that its names mean; it must not know
 * values, users or settings. Names are resolved and not oids, which differ between replicas. */
#include "plan.h"

#include <string.h>

/* A change of the layout is a change of every contract. */
#define CONTRACT_VERSION 1

static void put_counted(struct text *text, const void *bytes, size_t len)
{
    text_format(text, "%zu:", len);
    text_put(text, bytes, len);
}

static void put_name(struct pgseek_plan *plan, struct text *text, const char *name)
{
    size_t len = name ? strlen(name) : 0;

    put_counted(text, name ? name : "", len);
    plan->is_ascii &= text_is_ascii(name, len);
}

bool plan_make_contract(struct pgseek_plan *plan, const struct pgseek_query *query)
{
    struct text text = {0};

    plan->is_ascii = text_is_ascii(query->lex.sql, query->lex.len);
    text_format(&text, "%d;", CONTRACT_VERSION);
    put_counted(&text, query->contract.ptr, query->contract.len);
    for (size_t i = 0; i < plan->nnames; i++) {
        put_name(plan, &text, plan->relations[i].resolved_schema);
        put_name(plan, &text, plan->relations[i].resolved_name);
    }
    plan->contract.len = text.len;
    plan->contract.ptr = text.failed ? NULL : arena_alloc(&plan->arena, text.len);
    if (plan->contract.ptr)
        memcpy(plan->contract.ptr, text.ptr, text.len);
    text_fini(&text);

    plan->nfilter_params = query->nfilter_params;
    plan->filter_params = arena_array(&plan->arena, query->nfilter_params, sizeof *plan->filter_params);
    for (size_t i = 0; plan->filter_params && i < query->nfilter_params; i++)
        plan->filter_params[i] = query->filter_params[i];
    return plan->contract.ptr && plan->filter_params;
}

const uint8_t *pgseek_plan_contract(const struct pgseek_plan *plan, size_t *len)
{
    *len = plan->contract.len;
    return plan->contract.ptr;
}

bool pgseek_plan_is_ascii(const struct pgseek_plan *plan)
{
    return plan->is_ascii;
}

size_t pgseek_plan_filter_count(const struct pgseek_plan *plan)
{
    return plan->nfilter_params;
}

int pgseek_plan_filter_param(const struct pgseek_plan *plan, size_t i)
{
    return plan->filter_params[i];
}
