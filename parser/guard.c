/* guard.c - the statement that runs between a page's Bind and its Execute, and fails when the plan no longer holds.
 *
 * It knows what the plan has relied on and must not know when it is sent. Three errors tell apart what is wrong:
 * 22012 the catalog, names, user or encoding; 2201F the filter's values; 2201E the scope. Every name and operator is
 * qualified, and no branch that fails is a constant that the planner could compute too early. */
#include "plan.h"

#include "oid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row has at most 1,664 columns, so long lists of values are hashed in several rows. */
#define ROW_VALUES 1000

static size_t guard_param(const struct pgseek_plan *plan, enum pgseek_guard_param param)
{
    return plan->nparams + (size_t)param + 1;
}

/* One that means the same whatever standard_conforming_strings is: a function may have changed it in this very group,
 * and names are anybody's to choose. */
static void put_literal(struct text *text, const char *value)
{
    text_puts(text, strchr(value, '\\') ? "E'" : "'");
    for (const char *at = value; *at; at++) {
        if (*at == '\'' || *at == '\\')
            text_putc(text, *at);
        text_putc(text, *at);
    }
    text_putc(text, '\'');
}

/* ---- the catalog, names, user and encoding ---- */

static bool has_text_key(const struct pgseek_plan *plan)
{
    for (size_t i = 0; i < plan->nkeys; i++)
        if (plan->keys[i].is.is_text)
            return true;
    return false;
}

static void put_context(struct text *text, const struct pgseek_plan *plan)
{
    text_format(text, "pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.=) $%zu::pg_catalog.text",
                guard_param(plan, PGSEEK_GUARD_SEARCH_PATH));
    text_format(text, " AND CURRENT_USER::pg_catalog.text OPERATOR(pg_catalog.=) $%zu::pg_catalog.text",
                guard_param(plan, PGSEEK_GUARD_USER));
    if (has_text_key(plan))
        text_format(text,
                    " AND pg_catalog.current_setting('client_encoding') OPERATOR(pg_catalog.=) $%zu::pg_catalog.text",
                    guard_param(plan, PGSEEK_GUARD_ENCODING));
    if (plan->depends_on_settings)
        text_format(text, " AND " FACTS_LOCALE_SQL " OPERATOR(pg_catalog.=) $%zu::pg_catalog.text",
                    guard_param(plan, PGSEEK_GUARD_LOCALE));
}

static void put_name(struct text *text, const struct plan_relation *relation)
{
    text_puts(text, " AND pg_catalog.to_regclass(");
    put_literal(text, relation->written);
    text_format(text, ")::pg_catalog.oid OPERATOR(pg_catalog.=) %u::pg_catalog.oid", relation->oid);
}

/* What only a view names is found by the view owner's rights: the role may have none, and to_regclass() would say so.
 */
static void put_inner_name(struct text *text, const struct plan_relation *relation)
{
    text_format(text,
                " AND EXISTS (SELECT FROM pg_catalog.pg_class c"
                " JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace"
                " WHERE c.oid OPERATOR(pg_catalog.=) %u::pg_catalog.oid AND c.relname OPERATOR(pg_catalog.=) ",
                relation->oid);
    put_literal(text, relation->resolved_name);
    text_puts(text, "::pg_catalog.name AND n.nspname OPERATOR(pg_catalog.=) ");
    put_literal(text, relation->resolved_schema);
    text_puts(text, "::pg_catalog.name)");
}

static void put_rule(struct text *text, const struct plan_relation *relation)
{
    if (!relation->rule_xmin)
        return;
    text_format(text,
                " AND EXISTS (SELECT FROM pg_catalog.pg_rewrite w"
                " WHERE w.ev_class OPERATOR(pg_catalog.=) %u::pg_catalog.oid"
                " AND w.rulename OPERATOR(pg_catalog.=) '_RETURN'::pg_catalog.name"
                " AND w.xmin::pg_catalog.text OPERATOR(pg_catalog.=) ",
                relation->oid);
    put_literal(text, relation->rule_xmin);
    text_putc(text, ')');
}

static void put_layout(struct text *text, const struct plan_relation *relation)
{
    if (!relation->layout)
        return;
    text_puts(text, " AND (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(':', a.attnum, a.atttypid, a.attcollation,"
                    " a.attname), ',' ORDER BY a.attnum) OPERATOR(pg_catalog.=) ");
    put_literal(text, relation->layout);
    text_format(text,
                " FROM pg_catalog.pg_attribute a WHERE a.attrelid OPERATOR(pg_catalog.=) %u::pg_catalog.oid"
                " AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2 AND NOT a.attisdropped)",
                relation->oid);
}

/* What follows asks once per catalog, not once per thing: planning the guard costs more than running it. */

static void put_children(struct text *text, const struct pgseek_plan *plan)
{
    const char *before = " AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h"
                         " WHERE h.inhparent OPERATOR(pg_catalog.=) ANY ('{";
    bool has_any = false;

    for (size_t i = 0; i < plan->nrelations; i++) {
        if (!plan->relations[i].oid || !plan->relations[i].must_be_childless)
            continue;
        text_format(text, "%s%u", has_any ? "," : before, plan->relations[i].oid);
        has_any = true;
    }
    text_puts(text, has_any ? "}'::pg_catalog.oid[]))" : "");
}

static void put_index(struct text *text, const struct plan_index *index)
{
    text_format(text,
                "i.indexrelid OPERATOR(pg_catalog.=) %u::pg_catalog.oid"
                " AND i.indrelid OPERATOR(pg_catalog.=) %u::pg_catalog.oid"
                " AND pg_catalog.array_to_string((i.indkey::pg_catalog.int2[])"
                "[0:i.indnkeyatts OPERATOR(pg_catalog.-) 1], ' ') OPERATOR(pg_catalog.=) ",
                index->oid, index->relation_oid);
    put_literal(text, index->attnums);
}

static void put_indexes(struct text *text, const struct pgseek_plan *plan)
{
    if (!plan->nindexes)
        return;
    text_puts(text, " AND (SELECT pg_catalog.count(*) FROM pg_catalog.pg_index i"
                    " WHERE i.indexrelid OPERATOR(pg_catalog.=) ANY ('{");
    for (size_t i = 0; i < plan->nindexes; i++)
        text_format(text, "%s%u", i ? "," : "", plan->indexes[i].oid);
    text_puts(text, "}'::pg_catalog.oid[]) AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL"
                    " AND (");
    for (size_t i = 0; i < plan->nindexes; i++) {
        text_puts(text, i ? " OR " : "");
        put_index(text, &plan->indexes[i]);
    }
    text_format(text, ")) OPERATOR(pg_catalog.=) %zu::pg_catalog.int8", plan->nindexes);
}

static void put_column(struct text *text, const struct plan_column *column)
{
    text_format(text,
                "a.attrelid OPERATOR(pg_catalog.=) %u::pg_catalog.oid"
                " AND a.attnum OPERATOR(pg_catalog.=) %d::pg_catalog.int2"
                " AND a.atttypid OPERATOR(pg_catalog.=) %u::pg_catalog.oid"
                " AND a.attcollation OPERATOR(pg_catalog.=) %u::pg_catalog.oid"
                " AND a.attname OPERATOR(pg_catalog.=) ",
                column->relation_oid, column->attnum, column->type_oid, column->collation_oid);
    put_literal(text, column->name);
    text_puts(text, column->must_be_not_null ? "::pg_catalog.name AND a.attnotnull" : "::pg_catalog.name");
}

/* What an index scan looks for: a few columns too many, which the conditions behind it sort out. */
static void put_column_lists(struct text *text, const struct pgseek_plan *plan)
{
    for (size_t i = 0; i < plan->ncolumns; i++)
        text_format(text, "%s%u", i ? "," : "a.attrelid OPERATOR(pg_catalog.=) ANY ('{", plan->columns[i].relation_oid);
    for (size_t i = 0; i < plan->ncolumns; i++)
        text_format(text, "%s%d", i ? "," : "}'::pg_catalog.oid[]) AND a.attnum OPERATOR(pg_catalog.=) ANY ('{",
                    plan->columns[i].attnum);
    text_puts(text, "}'::pg_catalog.int2[])");
}

static void put_columns(struct text *text, const struct pgseek_plan *plan)
{
    if (!plan->ncolumns)
        return;
    text_puts(text, " AND (SELECT pg_catalog.count(*) FROM pg_catalog.pg_attribute a WHERE ");
    put_column_lists(text, plan);
    text_puts(text, " AND (");
    for (size_t i = 0; i < plan->ncolumns; i++) {
        text_puts(text, i ? " OR " : "");
        put_column(text, &plan->columns[i]);
    }
    text_format(text, ")) OPERATOR(pg_catalog.=) %zu::pg_catalog.int8", plan->ncolumns);
}

/* On PostgreSQL 18 attnotnull is true for a NOT NULL that was never validated. */
static void put_not_null(struct text *text, const struct pgseek_plan *plan)
{
    bool has_any = false;

    for (size_t i = 0; i < plan->ncolumns; i++) {
        if (!plan->columns[i].must_be_not_null)
            continue;
        text_puts(text, has_any ? " OR "
                                : " AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k"
                                  " WHERE k.contype OPERATOR(pg_catalog.=) 'n' AND NOT k.convalidated AND (");
        text_format(text,
                    "k.conrelid OPERATOR(pg_catalog.=) %u::pg_catalog.oid"
                    " AND k.conkey OPERATOR(pg_catalog.=) ARRAY[%d::pg_catalog.int2]",
                    plan->columns[i].relation_oid, plan->columns[i].attnum);
        has_any = true;
    }
    text_puts(text, has_any ? "))" : "");
}

static void put_collations(struct text *text, const struct pgseek_plan *plan)
{
    if (!plan->ncollations)
        return;
    text_puts(text, " AND (SELECT pg_catalog.count(*) FROM pg_catalog.pg_collation k"
                    " WHERE k.oid OPERATOR(pg_catalog.=) ANY ('{");
    for (size_t i = 0; i < plan->ncollations; i++)
        text_format(text, "%s%u", i ? "," : "", plan->collations[i].oid);
    text_puts(text, "}'::pg_catalog.oid[]) AND " FACTS_IDENTITY_SQL " OPERATOR(pg_catalog.=) CASE");
    for (size_t i = 0; i < plan->ncollations; i++) {
        text_format(text, " WHEN k.oid OPERATOR(pg_catalog.=) %u::pg_catalog.oid THEN ", plan->collations[i].oid);
        put_literal(text, plan->collations[i].text);
    }
    text_format(text, " END) OPERATOR(pg_catalog.=) %zu::pg_catalog.int8", plan->ncollations);
}

static void put_enum(struct text *text, const struct plan_identity *labels)
{
    text_format(text,
                " AND (SELECT " FACTS_LABELS_SQL " FROM pg_catalog.pg_enum g"
                " WHERE g.enumtypid OPERATOR(pg_catalog.=) %u::pg_catalog.oid) OPERATOR(pg_catalog.=) ",
                labels->oid);
    put_literal(text, labels->text);
}

static void put_function(struct text *text, const struct plan_function *function)
{
    text_puts(text, " AND (SELECT " FACTS_VERSION_SQL " FROM pg_catalog.pg_proc p"
                    " WHERE p.proname OPERATOR(pg_catalog.=) ");
    put_literal(text, function->name);
    text_puts(text, "::pg_catalog.name) OPERATOR(pg_catalog.=) ");
    put_literal(text, function->version);
}

static void put_facts(struct text *text, const struct pgseek_plan *plan)
{
    text_puts(text, "1 OPERATOR(pg_catalog./) CASE WHEN ");
    put_context(text, plan);
    for (size_t i = 0; i < plan->nrelations; i++) {
        if (!plan->relations[i].oid)
            continue;
        (i < plan->nnames ? put_name : put_inner_name)(text, &plan->relations[i]);
        put_rule(text, &plan->relations[i]);
        put_layout(text, &plan->relations[i]);
    }
    put_children(text, plan);
    put_indexes(text, plan);
    put_columns(text, plan);
    put_not_null(text, plan);
    put_collations(text, plan);
    for (size_t i = 0; i < plan->nenums; i++)
        put_enum(text, &plan->enums[i]);
    for (size_t i = 0; i < plan->nfunctions; i++)
        put_function(text, &plan->functions[i]);
    text_puts(text, " THEN 1 ELSE 0 END");
}

/* ---- digests ---- */

/* A text as bytes that are the same under every client_encoding. */
static void put_bytes(struct text *text, const char *value)
{
    text_format(text, "pg_catalog.convert_to(%s, pg_catalog.getdatabaseencoding())", value);
}

/* Built-in types without text in them have a binary form that tells values apart; aclitem has none. Of others the text
 * form is taken, by format(), which calls no cast: one that somebody made for his type may give two values one text. */
static bool has_exact_binary(uint32_t oid)
{
    /* name, text, json, xml, aclitem, bpchar, varchar, refcursor, tsvector, tsquery, jsonb, jsonpath, and their arrays
     */
    static const uint32_t others[] = {19,   25,   114, 142, OID_ACLITEM, 1042, 1043, 1790, 3614, 3615, 3802, 4072,
                                      1003, 1009, 199, 143, 1034,        1014, 1015, 2201, 3643, 3645, 3807, 4073};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (oid == others[i])
            return false;
    return oid < OID_FIRST_USER;
}

static void put_filter_value(struct text *text, const struct pgseek_plan *plan, size_t i)
{
    size_t number = (size_t)plan->filter_params[i];
    uint32_t oid = number <= plan->nparams ? plan->param_oids[number - 1] : 0;
    char value[64];

    snprintf(value, sizeof value, has_exact_binary(oid) ? "$%zu" : "pg_catalog.format('%%L', $%zu)", number);
    text_puts(text, i % ROW_VALUES ? ", " : "");
    if (has_exact_binary(oid))
        text_puts(text, value);
    else
        put_bytes(text, value);
}

static void put_filter(struct text *text, const struct pgseek_plan *plan)
{
    text_puts(text, "pg_catalog.sha256(");
    for (size_t i = 0; i < plan->nfilter_params; i++) {
        if (i % ROW_VALUES == 0)
            text_format(text, "%spg_catalog.record_send(ROW(", i ? ")) OPERATOR(pg_catalog.||) " : "");
        put_filter_value(text, plan, i);
    }
    text_puts(text, plan->nfilter_params ? ")))" : "''::pg_catalog.bytea)");
}

/* With its name, since proxy.conf may come to list another one. An unset setting of a user's own is NULL, and empty
 * after it was set once: both are one scope, and one text to concat(). */
static void put_setting(struct text *text, const char *name)
{
    struct text call = {0};

    text_puts(&call, "pg_catalog.concat(");
    put_literal(&call, name);
    text_puts(&call, ", '=', pg_catalog.current_setting(");
    put_literal(&call, name);
    text_puts(&call, ", true))");
    put_bytes(text, call.failed ? "" : call.ptr);
    text->failed |= call.failed;
    text_fini(&call);
}

static void put_scope(struct text *text, const char *const *scope, size_t nscope)
{
    text_puts(text, "pg_catalog.sha256(");
    for (size_t i = 0; i < nscope; i++) {
        text_puts(text, i ? ", " : "pg_catalog.record_send(ROW(");
        put_setting(text, scope[i]);
    }
    text_puts(text, nscope ? ")))" : "''::pg_catalog.bytea)");
}

/* The digest, unless it is not the expected one: then `function` of a value it cannot take. */
static void put_digest(struct text *text, const char *digest, size_t param, const char *function, const char *bad)
{
    text_format(text,
                ", CASE WHEN pg_catalog.%s(CASE WHEN $%zu::pg_catalog.bytea IS NULL"
                " OR d.%s OPERATOR(pg_catalog.=) $%zu::pg_catalog.bytea"
                " THEN 1::pg_catalog.float8 ELSE (%s)::pg_catalog.float8 END) IS NOT NULL THEN d.%s END",
                function, param, digest, param, bad, digest);
}

char *pgseek_guard_new(const struct pgseek_plan *plan, const char *const *scope, size_t nscope)
{
    struct text text = {0};

    text_puts(&text, "SELECT ");
    put_facts(&text, plan);
    put_digest(&text, "filter", guard_param(plan, PGSEEK_GUARD_FILTER), "sqrt", "-1");
    put_digest(&text, "scope", guard_param(plan, PGSEEK_GUARD_SCOPE), "ln", "0");
    text_puts(&text, " FROM (SELECT pg_catalog.substr(");
    put_filter(&text, plan);
    text_puts(&text, ", 1, 16) AS filter, pg_catalog.substr(");
    put_scope(&text, scope, nscope);
    text_puts(&text, ", 1, 16) AS scope) d");
    return text_take(&text);
}
