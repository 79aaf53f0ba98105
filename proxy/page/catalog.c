/* catalog.c - composes the side queries and collects their answers. */
#include "catalog.h"

#include <string.h>

#include "../protocol/wire.h"

#define OID_TEXT_ARRAY 1009

void catalog_fini(struct catalog *catalog)
{
    context_fini(&catalog->context);
    pgseek_facts_free(catalog->facts);
    description_fini(&catalog->description);
    description_fini(&catalog->probe);
    *catalog = (struct catalog){0};
}

bool catalog_start(struct catalog *catalog, const struct pgseek_query *query)
{
    catalog_fini(catalog);
    catalog->facts = query ? pgseek_facts_new(query) : NULL;
    return catalog->facts || !query;
}

/* ---- asking ---- */

/* A text[] in text format: {"a","b",""}. What is absent is empty, since NULL is a name like another under array_nulls =
 * off. */
struct array {
    struct buf text;
};

static void array_add(struct array *array, const char *item)
{
    buf_put_text(&array->text, array->text.len ? "," : "{");
    buf_put_text(&array->text, "\"");
    for (; item && *item; item++) {
        if (*item == '"' || *item == '\\')
            buf_put_u8(&array->text, '\\');
        buf_put_u8(&array->text, (uint8_t)*item);
    }
    buf_put_text(&array->text, "\"");
}

static void array_put(struct array *array, struct buf *out)
{
    buf_put_text(&array->text, array->text.len ? "}" : "{}");
    buf_put_i32(out, (int32_t)array->text.len);
    buf_put_span(out, buf_span(&array->text));
    out->failed |= array->text.failed;
    buf_fini(&array->text);
}

/* The messages around the Bind's parameters, which `arrays` hold. */
static void put_statement(struct buf *out, const char *name, const char *sql, struct array *arrays, size_t narrays)
{
    static const uint32_t types[PGSEEK_ASKED_LISTS] = {OID_TEXT_ARRAY, OID_TEXT_ARRAY, OID_TEXT_ARRAY,
                                                       OID_TEXT_ARRAY, OID_TEXT_ARRAY, OID_TEXT_ARRAY};
    struct span reserved = span_cstr(name);
    wire_put_target(out, 'C', 'S', reserved);
    wire_put_parse(out, name, span_cstr(sql), types, narrays);
    size_t at = wire_open(out, 'B');
    buf_put_cstr(out, name);
    buf_put_cstr(out, name);
    buf_put_u16(out, 0);
    buf_put_u16(out, (uint16_t)narrays);
    for (size_t i = 0; i < narrays; i++)
        array_put(&arrays[i], out);
    buf_put_u16(out, 0);
    wire_close(out, at);
    wire_put_execute(out, reserved, 0);
    wire_put_target(out, 'C', 'P', reserved);
    wire_put_target(out, 'C', 'S', reserved);
}

void catalog_put_context(struct buf *out, const char *name)
{
    put_statement(out, name, pgseek_context_sql, NULL, 0);
}

void catalog_put_command(struct buf *out, const char *name, const char *sql)
{
    put_statement(out, name, sql, NULL, 0);
}

void catalog_put_facts(struct buf *out, const char *name, const struct pgseek_facts *facts)
{
    struct array arrays[PGSEEK_ASKED_LISTS] = {0};
    for (size_t list = 0; list < PGSEEK_ASKED_LISTS; list++)
        for (size_t i = 0; i < pgseek_facts_asked_count(facts, (enum pgseek_asked)list); i++)
            array_add(&arrays[list], pgseek_facts_asked(facts, (enum pgseek_asked)list, i));
    put_statement(out, name, pgseek_facts_sql, arrays, PGSEEK_ASKED_LISTS);
}

/* ---- answers ---- */

/* Copies a row's columns as C strings into one buffer. NULL when it is not `ncolumns` wide, or on lack of memory. */
static char *row_texts(struct span body, size_t ncolumns, const char **texts)
{
    struct reader rd = rd_init(body);
    if (rd_u16(&rd) != ncolumns)
        return NULL;
    char *store = mem_alloc(body.len + ncolumns);
    char *at = store;
    for (size_t i = 0; store && i < ncolumns; i++) {
        int32_t len;
        const uint8_t *data;
        if (!wire_read_column(&rd, &len, &data)) {
            mem_free(store);
            return NULL;
        }
        texts[i] = len < 0 ? NULL : at;
        if (len > 0)
            memcpy(at, data, (size_t)len);
        if (len >= 0) {
            at[len] = '\0';
            at += len + 1;
        }
    }
    return store;
}

void catalog_context_row(struct catalog *catalog, struct span body)
{
    const char *texts[PGSEEK_CTX_COUNT];
    char *store = row_texts(body, PGSEEK_CTX_COUNT, texts);
    context_fini(&catalog->context);
    for (size_t i = 0; store && i < PGSEEK_CTX_COUNT; i++) {
        const char *text = texts[i] ? texts[i] : "";
        catalog->context.value[i] = mem_strndup(text, strlen(text));
        catalog->failed |= !catalog->context.value[i];
    }
    catalog->failed |= !store;
    mem_free(store);
}

void catalog_facts_row(struct catalog *catalog, struct span body)
{
    const char *texts[PGSEEK_FACTS_COLUMNS];
    catalog->nrows++;
    catalog->nbytes += body.len;
    bool fits = !catalog->failed && catalog->nrows <= CATALOG_MAX_ROWS && catalog->nbytes <= CATALOG_MAX_BYTES;
    char *store = fits ? row_texts(body, PGSEEK_FACTS_COLUMNS, texts) : NULL;
    if (!store || !pgseek_facts_row(catalog->facts, texts, PGSEEK_FACTS_COLUMNS))
        catalog->failed = true;
    mem_free(store);
}

void catalog_answered(struct catalog *catalog)
{
    struct pgseek_description view = description_view(&catalog->probe);
    if (!catalog->facts)
        return;
    if (catalog->is_probe_described)
        catalog->failed |= !pgseek_facts_described(catalog->facts, &view);
    description_fini(&catalog->probe);
    catalog->is_probe_described = false;
    pgseek_facts_answered(catalog->facts);
}
