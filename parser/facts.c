/* facts.c - what the catalog says about the relations, types, functions and collations of a statement.
 *
 * See facts.h. Rows come as text; a row that does not read exactly as expected is refused, never half taken. What the
 * parser asks for is a list per kind: its first `answered` items are known, the others are the question. */
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns of a row of the facts statement. */
enum { ROW_WHAT, ROW_ORD, ROW_REL, ROW_NUM, ROW_NAME, ROW_FIELDS };

#define MAX_FIELDS 32

/* The last column, a text array, taken apart; NULL elements are NULL. */
struct fields {
    const char *item[MAX_FIELDS];
    size_t count;
};

/* A plain array that doubles. */
struct list {
    void *items;
    size_t count;
    size_t room;
};

/* What is wanted: a name, or the oid of a type. */
struct wanted {
    const char *schema; /* NULL: none is written */
    const char *name;
    uint32_t oid;
};

enum { WANTED_RELATION, WANTED_FUNCTION, WANTED_TYPE, WANTED_COLLATION, WANTED_KINDS };

/* A statement that wants more is not worth the server's time: what is beyond does not exist. */
static const size_t wanted_max[WANTED_KINDS] = {
    [WANTED_RELATION] = 512,
    [WANTED_FUNCTION] = 1000,
    [WANTED_TYPE] = 400,
    [WANTED_COLLATION] = 100,
};

/* A type as it was declared or asked for; of a domain the base type is told. */
struct known_type {
    uint32_t oid;
    const struct facts_type *base;
};

/* A text that is, or was, to be described. */
struct probe {
    struct probe *next;
    const char *sql;
    size_t len;
    const struct pgseek_description *description; /* NULL: not yet, or the server refused the text */
    bool is_answered;
};

struct pgseek_facts {
    struct arena arena;
    struct {
        struct list list; /* of struct wanted */
        size_t answered;
    } wanted[WANTED_KINDS];
    struct probe *probes; /* the newest first */
    struct list relations, columns, uniques, functions, types, collations;
    bool has_foreign_operators;
    bool failed; /* out of memory: it asks for ever, and takes no answer */
};

/* Room for one more item, zeroed. */
static void *append(struct pgseek_facts *facts, struct list *list, size_t item_bytes)
{
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 16;
        void *grown = realloc(list->items, room * item_bytes);

        if (!grown) {
            facts->failed = true;
            return NULL;
        }
        list->items = grown;
        list->room = room;
    }
    return memset((char *)list->items + list->count++ * item_bytes, 0, item_bytes);
}

/* ---- life ---- */

void pgseek_facts_free(struct pgseek_facts *facts)
{
    if (!facts)
        return;
    for (size_t i = 0; i < WANTED_KINDS; i++)
        free(facts->wanted[i].list.items);
    free(facts->relations.items);
    free(facts->columns.items);
    free(facts->uniques.items);
    free(facts->functions.items);
    free(facts->types.items);
    free(facts->collations.items);
    arena_fini(&facts->arena);
    free(facts);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Which of the wanted things it is, SIZE_MAX beyond the bound; it is added when it is new. */
static size_t want(struct pgseek_facts *facts, size_t kind, const struct wanted *wanted)
{
    struct list *list = &facts->wanted[kind].list;
    const struct wanted *items = list->items;

    for (size_t i = 0; i < list->count; i++)
        if (items[i].oid == wanted->oid && same_text(items[i].schema, wanted->schema) &&
            same_text(items[i].name, wanted->name))
            return i;
    if (list->count >= wanted_max[kind])
        return SIZE_MAX;
    struct wanted copy = {.oid = wanted->oid};
    copy.schema = wanted->schema ? arena_strdup(&facts->arena, wanted->schema) : NULL;
    copy.name = wanted->name ? arena_strdup(&facts->arena, wanted->name) : NULL;
    struct wanted *item = append(facts, list, sizeof *item);
    if (!item)
        return SIZE_MAX;
    *item = copy;
    return list->count - 1;
}

struct pgseek_facts *pgseek_facts_new(const struct pgseek_query *query)
{
    struct pgseek_facts *facts = calloc(1, sizeof *facts);

    if (!facts)
        return NULL;
    for (size_t i = 0; i < pgseek_query_relation_count(query); i++) {
        const struct wanted wanted = {.schema = pgseek_query_relation_schema(query, i),
                                      .name = pgseek_query_relation_name(query, i)};
        (void)want(facts, WANTED_RELATION, &wanted);
    }
    for (size_t i = 0; i < pgseek_query_function_count(query); i++) {
        const struct wanted wanted = {.name = pgseek_query_function_name(query, i)};
        (void)want(facts, WANTED_FUNCTION, &wanted);
    }
    return facts;
}

/* ---- the question ---- */

static bool has_failed(const struct pgseek_facts *facts)
{
    return facts->failed || facts->arena.failed;
}

static bool is_open(const struct pgseek_facts *facts, size_t kind, size_t i)
{
    return i >= facts->wanted[kind].answered && i < facts->wanted[kind].list.count;
}

bool facts_is_asking(const struct pgseek_facts *facts)
{
    bool is_asking = has_failed(facts) || (facts->probes && !facts->probes->is_answered);

    for (size_t kind = 0; kind < WANTED_KINDS; kind++)
        is_asking |= is_open(facts, kind, facts->wanted[kind].answered);
    return is_asking;
}

static const struct asked_list {
    size_t kind;
    bool is_schema;
} asked_lists[PGSEEK_ASKED_LISTS] = {
    [PGSEEK_ASKED_SCHEMA] = {WANTED_RELATION, true},
    [PGSEEK_ASKED_RELATION] = {WANTED_RELATION, false},
    [PGSEEK_ASKED_FUNCTION] = {WANTED_FUNCTION, false},
    [PGSEEK_ASKED_TYPE] = {WANTED_TYPE, false},
    [PGSEEK_ASKED_COLLATION_SCHEMA] = {WANTED_COLLATION, true},
    [PGSEEK_ASKED_COLLATION] = {WANTED_COLLATION, false},
};

size_t pgseek_facts_asked_count(const struct pgseek_facts *facts, enum pgseek_asked list)
{
    size_t kind = asked_lists[list].kind;

    return facts->wanted[kind].list.count - facts->wanted[kind].answered;
}

const char *pgseek_facts_asked(const struct pgseek_facts *facts, enum pgseek_asked list, size_t i)
{
    size_t kind = asked_lists[list].kind;
    const struct wanted *items = facts->wanted[kind].list.items;
    const struct wanted *item = &items[facts->wanted[kind].answered + i];

    return asked_lists[list].is_schema ? item->schema : item->name;
}

const char *pgseek_facts_probe(const struct pgseek_facts *facts, size_t *len)
{
    const struct probe *probe = facts->probes;
    bool is_asked = probe && !probe->is_answered;

    *len = is_asked ? probe->len : 0;
    return is_asked ? probe->sql : NULL;
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
    struct facts_relation *relation = append(facts, &facts->relations, sizeof *relation);
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
    struct facts_column *column = append(facts, &facts->columns, sizeof *column);
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
    struct facts_unique *unique = append(facts, &facts->uniques, sizeof *unique);
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

static const struct facts_type *find_type(const struct pgseek_facts *facts, uint32_t oid)
{
    const struct known_type *types = facts->types.items;

    for (size_t i = 0; i < facts->types.count; i++)
        if (types[i].oid == oid)
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
        const char *const *operator= & f[FIELD_OPERATORS + 2 * i];

        if (operator[0] && operator[1])
            type->operator[i] =(struct facts_operator){operator[0], operator[1] };
    }
    return type;
}

static bool take_type(struct pgseek_facts *facts, const struct row *row)
{
    uint32_t oid;

    if (!read_number(row->fields.item[0], &oid))
        return false;
    if (find_type(facts, row->rel))
        return true;
    const struct facts_type *base = find_base(facts, oid);
    if (!base)
        base = make_type(facts, oid, row);
    struct known_type *type = base ? append(facts, &facts->types, sizeof *type) : NULL;
    if (type)
        *type = (struct known_type){row->rel, base};
    return type != NULL;
}

static bool take_function(struct pgseek_facts *facts, const struct row *row)
{
    struct facts_function *function = append(facts, &facts->functions, sizeof *function);
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

static bool take_collation(struct pgseek_facts *facts, const struct row *row)
{
    const struct wanted *wanted = facts->wanted[WANTED_COLLATION].list.items;
    struct facts_collation *collation = append(facts, &facts->collations, sizeof *collation);
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
    {'F', WANTED_FUNCTION, 3, false, false, take_function},
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

bool pgseek_facts_row(struct pgseek_facts *facts, const char *const *columns, size_t ncolumns)
{
    struct row row = {0};

    if (ncolumns != PGSEEK_FACTS_COLUMNS || !columns[ROW_WHAT] || !columns[ROW_NAME] || !columns[ROW_FIELDS])
        return false;
    const struct reader *reader = find_reader(columns[ROW_WHAT]);
    if (!reader || has_failed(facts) || !read_ord(facts, reader, columns[ROW_ORD], &row.ord))
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

/* ---- descriptions ---- */

static const struct pgseek_description *copy_description(struct arena *arena, const struct pgseek_description *from)
{
    struct pgseek_description *to = arena_alloc(arena, sizeof *to);
    uint32_t *oids = arena_array(arena, from->nparams, sizeof *oids);
    struct pgseek_column *columns = arena_array(arena, from->ncolumns, sizeof *columns);

    if (!to || !oids || !columns)
        return NULL;
    for (size_t i = 0; i < from->nparams; i++)
        oids[i] = from->param_oids[i];
    for (size_t i = 0; i < from->ncolumns; i++) {
        columns[i] = from->columns[i];
        columns[i].name = arena_strdup(arena, from->columns[i].name);
    }
    *to = (struct pgseek_description){oids, from->nparams, columns, from->ncolumns};
    return arena->failed ? NULL : to;
}

bool pgseek_facts_described(struct pgseek_facts *facts, const struct pgseek_description *description)
{
    if (!facts->probes || facts->probes->is_answered)
        return true;
    facts->probes->description = copy_description(&facts->arena, description);
    return facts->probes->description != NULL;
}

void pgseek_facts_answered(struct pgseek_facts *facts)
{
    struct facts_column *columns = facts->columns.items;

    for (size_t kind = 0; kind < WANTED_KINDS; kind++)
        facts->wanted[kind].answered = facts->wanted[kind].list.count;
    if (facts->probes)
        facts->probes->is_answered = true;
    for (size_t i = 0; i < facts->columns.count; i++)
        if (!columns[i].type)
            columns[i].type = find_type(facts, columns[i].type_oid);
}

/* ---- asking ---- */

const struct facts_relation *facts_relation(const struct pgseek_facts *facts, size_t ord)
{
    const struct facts_relation *relations = facts->relations.items;

    for (size_t i = 0; i < facts->relations.count; i++)
        if (relations[i].ord == ord)
            return &relations[i];
    return NULL;
}

const struct facts_relation *facts_ask_relation(struct pgseek_facts *facts, const char *schema, const char *name,
                                                size_t *ord)
{
    const struct wanted wanted = {.schema = schema, .name = name};
    size_t i = want(facts, WANTED_RELATION, &wanted);

    *ord = i == SIZE_MAX ? 0 : i + 1;
    return *ord ? facts_relation(facts, *ord) : NULL;
}

/* Beyond the bound a function is taken for the worst that one can be. */
const struct facts_function *facts_ask_function(struct pgseek_facts *facts, const char *name)
{
    static const struct facts_function worst = {.name = "", .volatility = 'v', .returns_set = true};
    const struct wanted wanted = {.name = name};
    const struct facts_function *functions = facts->functions.items;

    if (want(facts, WANTED_FUNCTION, &wanted) == SIZE_MAX)
        return &worst;
    for (size_t i = 0; i < facts->functions.count; i++)
        if (!strcmp(functions[i].name, name))
            return &functions[i];
    return NULL;
}

const struct facts_type *facts_ask_type(struct pgseek_facts *facts, uint32_t oid)
{
    const struct facts_type *known = oid ? find_type(facts, oid) : NULL;
    char text[16];

    if (known || !oid)
        return known;
    snprintf(text, sizeof text, "%u", oid);
    const struct wanted wanted = {.name = text, .oid = oid};
    (void)want(facts, WANTED_TYPE, &wanted);
    return NULL;
}

const struct facts_collation *facts_ask_collation(struct pgseek_facts *facts, const char *schema, const char *name)
{
    const struct wanted wanted = {.schema = schema, .name = name};
    const struct facts_collation *collations = facts->collations.items;

    if (want(facts, WANTED_COLLATION, &wanted) == SIZE_MAX)
        return NULL;
    for (size_t i = 0; i < facts->collations.count; i++)
        if (same_text(collations[i].schema, schema) && same_text(collations[i].name, name))
            return &collations[i];
    return NULL;
}

/* A text that waits for its answer is not put off by another one: that is asked in the next round. */
const struct pgseek_description *facts_ask_description(struct pgseek_facts *facts, const char *sql, size_t len)
{
    for (const struct probe *probe = facts->probes; probe; probe = probe->next)
        if (probe->len == len && !memcmp(probe->sql, sql, len))
            return probe->description;
    if (facts->probes && !facts->probes->is_answered)
        return NULL;
    struct probe *probe = arena_alloc(&facts->arena, sizeof *probe);
    char *copy = arena_strndup(&facts->arena, sql, len);
    if (!probe || !copy)
        return NULL;
    *probe = (struct probe){.next = facts->probes, .sql = copy, .len = len};
    facts->probes = probe;
    return NULL;
}

/* ---- what is known of a relation ---- */

const struct facts_column *facts_columns(const struct pgseek_facts *facts, size_t ord, size_t *count)
{
    const struct facts_column *columns = facts->columns.items;
    size_t first = 0;

    *count = 0;
    while (first < facts->columns.count && columns[first].relation_ord != ord)
        first++;
    while (first + *count < facts->columns.count && columns[first + *count].relation_ord == ord)
        ++*count;
    return *count ? &columns[first] : NULL;
}

const struct facts_unique *facts_uniques(const struct pgseek_facts *facts, size_t ord, size_t *count)
{
    const struct facts_unique *uniques = facts->uniques.items;
    size_t first = 0;

    *count = 0;
    while (first < facts->uniques.count && uniques[first].relation_ord != ord)
        first++;
    while (first + *count < facts->uniques.count && uniques[first + *count].relation_ord == ord)
        ++*count;
    return *count ? &uniques[first] : NULL;
}

bool facts_has_foreign_operators(const struct pgseek_facts *facts)
{
    return facts->has_foreign_operators;
}
