/* facts.c - what the catalog says about the relations and functions of a statement.
 *
 * See facts.h. Rows come as text; a row that does not read exactly as expected is refused, never half taken. */
#include "facts.h"

#include <stdlib.h>
#include <string.h>

/* Columns of a row of the facts statement. */
enum { ROW_WHAT, ROW_ORD, ROW_REL, ROW_NUM, ROW_NAME, ROW_FIELDS };

#define MAX_FIELDS 32
/* Where the operators stand in the fields of a column. */
#define FIELD_OPERATORS 10

/* The last column, a text array, taken apart; NULL elements are NULL. */
struct fields {
    const char *item[MAX_FIELDS];
    size_t count;
};

struct pgseek_facts *pgseek_facts_new(void)
{
    return calloc(1, sizeof(struct pgseek_facts));
}

void pgseek_facts_free(struct pgseek_facts *facts)
{
    if (!facts)
        return;
    free(facts->relations);
    free(facts->columns);
    free(facts->uniques);
    free(facts->functions);
    arena_fini(&facts->arena);
    free(facts);
}

/* ---- reading texts ---- */

/* One element of an array in text form, unescaped where it stands; *at moves behind it and its separator, which is
 * returned: `,` or `}`, or NUL when the text is no array. */
static char read_element(char **at, const char **item)
{
    char *from = *at;
    char *to = from;
    bool quoted = *from == '"';

    *item = to;
    from += quoted;
    while (*from && (quoted ? *from != '"' : *from != ',' && *from != '}')) {
        from += *from == '\\' && from[1];
        *to++ = *from++;
    }
    if (quoted && *from++ != '"')
        return '\0';
    char separator = *from;
    *at = separator ? from + 1 : from;
    *to = '\0';
    if (!quoted && !strcmp(*item, "NULL"))
        *item = NULL;
    return separator;
}

static bool read_fields(struct arena *arena, const char *text, struct fields *fields)
{
    char *at = arena_strdup(arena, text);

    fields->count = 0;
    if (!at || *at++ != '{')
        return false;
    while (fields->count < MAX_FIELDS) {
        char separator = read_element(&at, &fields->item[fields->count++]);

        if (separator == '}')
            return *at == '\0';
        if (separator != ',')
            return false;
    }
    return false;
}

static bool read_number(const char *text, uint32_t *out)
{
    char *end;

    if (!text || *text < '0' || *text > '9')
        return false;
    unsigned long number = strtoul(text, &end, 10);
    *out = (uint32_t)number;
    return *end == '\0' && number <= UINT32_MAX;
}

static bool is_true(const char *text)
{
    return text && (!strcmp(text, "true") || !strcmp(text, "t"));
}

static char first_char(const char *text)
{
    return text ? *text : '\0';
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* Room for one more item, zeroed, in a plain array that doubles. */
static void *append(void *array_ptr, size_t *count, size_t *room, size_t item_bytes)
{
    void **array = array_ptr;

    if (*count == *room) {
        size_t wanted = *room ? *room * 2 : 16;
        void *grown = realloc(*array, wanted * item_bytes);
        if (!grown)
            return NULL;
        *array = grown;
        *room = wanted;
    }
    return memset((char *)*array + (*count)++ * item_bytes, 0, item_bytes);
}

/* ---- one reader per kind of row ---- */

struct row {
    uint32_t ord;
    uint32_t rel;
    uint32_t num;
    const char *name;
    struct fields fields;
};

static bool take_relation(struct pgseek_facts *facts, const struct row *row)
{
    struct facts_relation *relation =
        append(&facts->relations, &facts->nrelations, &facts->relation_room, sizeof *relation);
    const char *const *f = row->fields.item;

    if (!relation)
        return false;
    *relation = (struct facts_relation){
        .ord = row->ord,
        .oid = row->rel,
        .name = row->name,
        .schema = f[0],
        .kind = first_char(f[1]),
        .has_children = is_true(f[2]),
        .may_use = is_true(f[3]),
        .may_select = is_true(f[4]),
    };
    return relation->schema && relation->kind;
}

static bool take_column(struct pgseek_facts *facts, const struct row *row)
{
    struct facts_column *column = append(&facts->columns, &facts->ncolumns, &facts->column_room, sizeof *column);
    const char *const *f = row->fields.item;
    uint32_t collation = 0;
    uint32_t base = 0;

    if (!column || !read_number(f[0], &column->type_oid) || !read_number(f[3], &collation) ||
        (f[6] && !read_number(f[6], &base)))
        return false;
    *column = (struct facts_column){
        .relation_ord = row->ord,
        .attnum = (int)row->num,
        .name = row->name,
        .type_oid = column->type_oid,
        .not_null = is_true(f[1]),
        .may_select = is_true(f[2]),
        .collation_oid = collation,
        .deterministic = !f[4] || is_true(f[4]),
        .collation = or_empty(f[5]),
        .base_oid = base,
        .type_kind = first_char(f[7]),
        .has_binary = is_true(f[8]),
        .type_name = or_empty(f[9]),
        .labels = or_empty(f[FIELD_OPERATORS + 2 * FACTS_OPERATORS]),
    };
    for (size_t i = 0; i < FACTS_OPERATORS; i++)
        column->operator[i] =(struct facts_operator){f[FIELD_OPERATORS + 2 * i], f[FIELD_OPERATORS + 2 * i + 1]};
    return true;
}

static bool read_attnums(struct pgseek_facts *facts, const char *text, struct facts_unique *unique)
{
    unique->attnums_text = text;
    unique->attnums = arena_array(&facts->arena, strlen(text) / 2 + 1, sizeof *unique->attnums);
    if (!unique->attnums)
        return false;
    while (*text) {
        char *end;
        long attnum = strtol(text, &end, 10);

        if (end == text || attnum < INT16_MIN || attnum > INT16_MAX)
            return false;
        unique->attnums[unique->nattnums++] = (int)attnum;
        text = *end == ' ' ? end + 1 : end;
    }
    return unique->nattnums > 0;
}

static bool take_unique(struct pgseek_facts *facts, const struct row *row)
{
    struct facts_unique *unique = append(&facts->uniques, &facts->nuniques, &facts->unique_room, sizeof *unique);
    const char *const *f = row->fields.item;

    if (!unique || !f[0])
        return false;
    *unique = (struct facts_unique){
        .relation_ord = row->ord,
        .index_oid = row->rel,
        .name = row->name,
        .is_primary = is_true(f[1]),
        .nulls_not_distinct = is_true(f[2]),
        .is_sort_unique = is_true(f[3]),
    };
    return read_attnums(facts, f[0], unique);
}

static bool take_function(struct pgseek_facts *facts, const struct row *row)
{
    struct facts_function *function =
        append(&facts->functions, &facts->nfunctions, &facts->function_room, sizeof *function);
    const char *const *f = row->fields.item;

    if (!function)
        return false;
    *function = (struct facts_function){
        .name = row->name,
        .volatility = first_char(f[0]),
        .returns_set = is_true(f[1]),
        .is_aggregate = is_true(f[2]),
    };
    return true;
}

static bool take_operators(struct pgseek_facts *facts, const struct row *row)
{
    facts->has_foreign_operators = is_true(row->fields.item[0]);
    return true;
}

static const struct reader {
    char what;
    size_t nfields;
    bool has_num;
    bool has_rel;
    bool (*take)(struct pgseek_facts *facts, const struct row *row);
} readers[] = {
    {'R', 5, false, true, take_relation},  {'C', 21, true, true, take_column},     {'U', 4, false, true, take_unique},
    {'F', 3, false, false, take_function}, {'O', 1, false, false, take_operators},
};

bool pgseek_facts_row(struct pgseek_facts *facts, const char *const *columns, size_t ncolumns)
{
    const struct reader *reader = NULL;
    struct row row = {0};

    if (ncolumns != PGSEEK_FACTS_COLUMNS || !columns[ROW_WHAT] || !columns[ROW_NAME] || !columns[ROW_FIELDS])
        return false;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (columns[ROW_WHAT][0] == readers[i].what && !columns[ROW_WHAT][1])
            reader = &readers[i];
    if (!reader || !read_number(columns[ROW_ORD], &row.ord))
        return false;
    if (reader->has_rel && !read_number(columns[ROW_REL], &row.rel))
        return false;
    if (reader->has_num && !read_number(columns[ROW_NUM], &row.num))
        return false;
    row.name = arena_strdup(&facts->arena, columns[ROW_NAME]);
    if (!row.name || !read_fields(&facts->arena, columns[ROW_FIELDS], &row.fields))
        return false;
    return row.fields.count == reader->nfields && reader->take(facts, &row);
}

/* ---- looking up ---- */

const struct facts_relation *facts_relation(const struct pgseek_facts *facts, size_t ord)
{
    for (size_t i = 0; i < facts->nrelations; i++)
        if (facts->relations[i].ord == ord)
            return &facts->relations[i];
    return NULL;
}

const struct facts_column *facts_columns(const struct pgseek_facts *facts, size_t ord, size_t *count)
{
    size_t first = 0;

    *count = 0;
    while (first < facts->ncolumns && facts->columns[first].relation_ord != ord)
        first++;
    while (first + *count < facts->ncolumns && facts->columns[first + *count].relation_ord == ord)
        ++*count;
    return *count ? &facts->columns[first] : NULL;
}

const struct facts_function *facts_function(const struct pgseek_facts *facts, const char *name)
{
    for (size_t i = 0; i < facts->nfunctions; i++)
        if (!strcmp(facts->functions[i].name, name))
            return &facts->functions[i];
    return NULL;
}
