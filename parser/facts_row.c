/* facts_row.c - rows of the facts statement: what each kind of row tells.
 *
 * Rows come as text; a row that does not read exactly as expected is refused, never half taken. */
#include <stdlib.h>
#include <string.h>

#include "facts_store.h"

/* Columns of a row of the facts statement. */
enum { ROW_WHAT, ROW_ORD, ROW_REL, ROW_NUM, ROW_NAME, ROW_FIELDS };

#define MAX_FIELDS 32

/* The last column, a text array, taken apart; NULL elements are NULL. */
struct fields {
    const char *item[MAX_FIELDS];
    size_t count;
};

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

/* ---- one reader per kind of row ---- */

struct row {
    uint32_t ord; /* over all rounds */
    uint32_t rel;
    uint32_t num;
    const char *name;
    struct fields fields;
};

static bool read_attnums(struct pgseek_facts *facts, const char *text, int **attnums, size_t *count)
{
    *attnums = arena_array(&facts->arena, strlen(text) / 2 + 1, sizeof **attnums);
    if (!*attnums)
        return false;
    while (*text) {
        char *end;
        long attnum = strtol(text, &end, 10);

        if (end == text || attnum < INT16_MIN || attnum > INT16_MAX)
            return false;
        (*attnums)[(*count)++] = (int)attnum;
        text = *end == ' ' ? end + 1 : end;
    }
    return true;
}

static bool take_relation(struct pgseek_facts *facts, const struct row *row)
{
    struct facts_relation *relation = facts_append(facts, &facts->relations, sizeof *relation);
    const char *const *f = row->fields.item;

    if (!relation || !f[0] || !f[1])
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
        .definition = f[5],
        .rule_xmin = f[6],
    };
    return relation->kind &&
           read_attnums(facts, or_empty(f[7]), &relation->partition_attnums, &relation->npartition_attnums);
}

static bool take_column(struct pgseek_facts *facts, const struct row *row)
{
    struct facts_column *column = facts_append(facts, &facts->columns, sizeof *column);
    const char *const *f = row->fields.item;
    uint32_t collation = 0;
    uint32_t type = 0;

    if (!column || !read_number(f[0], &type) || !read_number(f[3], &collation))
        return false;
    *column = (struct facts_column){
        .relation_ord = row->ord,
        .attnum = (int)row->num,
        .name = row->name,
        .type_oid = type,
        .not_null = is_true(f[1]),
        .may_select = is_true(f[2]),
        .collation_oid = collation,
        .deterministic = collation == 0 || is_true(f[4]),
        .collation = or_empty(f[5]),
    };
    return true;
}

static bool take_unique(struct pgseek_facts *facts, const struct row *row)
{
    struct facts_unique *unique = facts_append(facts, &facts->uniques, sizeof *unique);
    const char *const *f = row->fields.item;

    if (!unique || !f[0])
        return false;
    *unique = (struct facts_unique){
        .relation_ord = row->ord,
        .index_oid = row->rel,
        .name = row->name,
        .attnums_text = f[0],
        .is_primary = is_true(f[1]),
        .nulls_not_distinct = is_true(f[2]),
        .is_sort_unique = is_true(f[3]),
    };
    return read_attnums(facts, f[0], &unique->attnums, &unique->nattnums) && unique->nattnums > 0;
}

/* Types that come again in another round, or behind another domain, stay one. */
static const struct facts_type *find_base(const struct pgseek_facts *facts, uint32_t oid)
{
    const struct known_type *types = facts->types.items;

    for (size_t i = 0; i < facts->types.count; i++)
        if (types[i].base->oid == oid)
            return types[i].base;
    return NULL;
}

#define FIELD_OPERATORS 3

static const struct facts_type *make_type(struct pgseek_facts *facts, uint32_t oid, const struct row *row)
{
    struct facts_type *type = arena_alloc(&facts->arena, sizeof *type);
    const char *const *f = row->fields.item;

    if (!type)
        return NULL;
    *type = (struct facts_type){
        .oid = oid,
        .kind = first_char(f[1]),
        .has_binary = is_true(f[2]),
        .name = row->name,
        .labels = or_empty(f[FIELD_OPERATORS + 2 * FACTS_OPERATORS]),
    };
    for (size_t i = 0; i < FACTS_OPERATORS; i++) {
        const char *const *op = &f[FIELD_OPERATORS + 2 * i];

        if (op[0] && op[1])
            type->operator[i] =(struct facts_operator){op[0], op[1]};
    }
    return type;
}

static bool take_type(struct pgseek_facts *facts, const struct row *row)
{
    uint32_t oid;

    if (!read_number(row->fields.item[0], &oid))
        return false;
    if (facts_find_type(facts, row->rel))
        return true;
    const struct facts_type *base = find_base(facts, oid);
    if (!base)
        base = make_type(facts, oid, row);
    struct known_type *type = base ? facts_append(facts, &facts->types, sizeof *type) : NULL;
    if (type)
        *type = (struct known_type){row->rel, base};
    return type != NULL;
}

static bool take_function(struct pgseek_facts *facts, const struct row *row)
{
    struct facts_function *function = facts_append(facts, &facts->functions, sizeof *function);
    const char *const *f = row->fields.item;

    if (!function)
        return false;
    *function = (struct facts_function){
        .name = row->name,
        .volatility = first_char(f[0]),
        .returns_set = is_true(f[1]),
        .is_aggregate = is_true(f[2]),
        .is_only_aggregate = is_true(f[3]),
        .is_builtin = is_true(f[4]),
        .version = f[5],
    };
    return true;
}

static bool take_collation(struct pgseek_facts *facts, const struct row *row)
{
    const struct wanted *wanted = facts->wanted[WANTED_COLLATION].list.items;
    struct facts_collation *collation = facts_append(facts, &facts->collations, sizeof *collation);
    const char *const *f = row->fields.item;

    if (!collation || !f[1])
        return false;
    *collation = (struct facts_collation){
        .schema = wanted[row->ord - 1].schema,
        .name = wanted[row->ord - 1].name,
        .oid = row->rel,
        .deterministic = is_true(f[0]),
        .identity = f[1],
    };
    return true;
}

static bool take_operators(struct pgseek_facts *facts, const struct row *row)
{
    facts->has_foreign_operators |= is_true(row->fields.item[0]);
    return true;
}

static const struct reader {
    char what;
    size_t kind; /* which list `ord` counts; WANTED_KINDS: none */
    size_t nfields;
    bool has_num;
    bool has_rel;
    bool (*take)(struct pgseek_facts *facts, const struct row *row);
} readers[] = {
    {'R', WANTED_RELATION, 8, false, true, take_relation},
    {'C', WANTED_RELATION, 6, true, true, take_column},
    {'U', WANTED_RELATION, 4, false, true, take_unique},
    {'T', WANTED_KINDS, FIELD_OPERATORS + 2 * FACTS_OPERATORS + 1, false, true, take_type},
    {'F', WANTED_FUNCTION, 6, false, false, take_function},
    {'L', WANTED_COLLATION, 2, false, true, take_collation},
    {'O', WANTED_KINDS, 1, false, false, take_operators},
};

static const struct reader *find_reader(const char *what)
{
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (what[0] == readers[i].what && !what[1])
            return &readers[i];
    return NULL;
}

/* The row's number in the round becomes its number over all rounds; one that was not asked for is refused. */
static bool read_ord(const struct pgseek_facts *facts, const struct reader *reader, const char *text, uint32_t *ord)
{
    if (!read_number(text, ord))
        return false;
    if (reader->kind == WANTED_KINDS)
        return true;
    size_t answered = facts->wanted[reader->kind].answered;
    if (*ord < 1 || *ord > facts->wanted[reader->kind].list.count - answered)
        return false;
    *ord += (uint32_t)answered;
    return true;
}

static bool is_ascii(const char *text)
{
    return text_is_ascii(text, strlen(text));
}

bool pgseek_facts_row(struct pgseek_facts *facts, const char *const *columns, size_t ncolumns)
{
    struct row row = {0};

    if (ncolumns != PGSEEK_FACTS_COLUMNS || !columns[ROW_WHAT] || !columns[ROW_NAME] || !columns[ROW_FIELDS])
        return false;
    if (facts->has_ascii_trails && (!is_ascii(columns[ROW_NAME]) || !is_ascii(columns[ROW_FIELDS]))) {
        facts->is_unreadable = true; /* and cannot be taken apart either */
        return true;
    }
    const struct reader *reader = find_reader(columns[ROW_WHAT]);
    if (!reader || facts_failed(facts) || !read_ord(facts, reader, columns[ROW_ORD], &row.ord))
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
