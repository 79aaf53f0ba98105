/* facts.c - the question to the catalog, and what is known of it.
 *
 * See facts.h. What the rows of an answer mean is facts_row.c's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts_store.h"

/* A statement that wants more is not worth the server's time: what is beyond does not exist. */
static const size_t wanted_max[WANTED_KINDS] = {
    [WANTED_RELATION] = 512,
    [WANTED_FUNCTION] = 1000,
    [WANTED_TYPE] = 400,
    [WANTED_COLLATION] = 100,
};

/* Room for one more item, zeroed. */
void *facts_append(struct pgseek_facts *facts, struct list *list, size_t item_bytes)
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
    struct wanted *item = facts_append(facts, list, sizeof *item);
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
    facts->has_ascii_trails = pgseek_query_has_ascii_trails(query);
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

bool facts_failed(const struct pgseek_facts *facts)
{
    return facts->failed || facts->arena.failed;
}

static bool is_open(const struct pgseek_facts *facts, size_t kind, size_t i)
{
    return i >= facts->wanted[kind].answered && i < facts->wanted[kind].list.count;
}

bool facts_is_asking(const struct pgseek_facts *facts)
{
    bool is_asking = facts_failed(facts) || (facts->probes && !facts->probes->is_answered);

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

const struct facts_type *facts_find_type(const struct pgseek_facts *facts, uint32_t oid)
{
    const struct known_type *types = facts->types.items;

    for (size_t i = 0; i < facts->types.count; i++)
        if (types[i].oid == oid)
            return types[i].base;
    return NULL;
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

void facts_note_names(struct pgseek_facts *facts, const struct pgseek_description *description)
{
    for (size_t i = 0; i < description->ncolumns && facts->has_ascii_trails; i++)
        facts->is_unreadable |= !text_is_ascii(description->columns[i].name, strlen(description->columns[i].name));
}

bool pgseek_facts_described(struct pgseek_facts *facts, const struct pgseek_description *description)
{
    if (!facts->probes || facts->probes->is_answered)
        return true;
    facts_note_names(facts, description);
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
            columns[i].type = facts_find_type(facts, columns[i].type_oid);
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

static void add_collation(struct facts_collation *list, size_t *count, uint32_t oid, const char *identity)
{
    for (size_t i = 0; i < *count; i++)
        if (list[i].oid == oid)
            return;
    list[(*count)++] = (struct facts_collation){.oid = oid, .identity = identity};
}

struct facts_collation *facts_collations(const struct pgseek_facts *facts, struct arena *arena, size_t *count)
{
    const struct facts_column *columns = facts->columns.items;
    const struct facts_collation *asked = facts->collations.items;
    struct facts_collation *list = arena_array(arena, facts->columns.count + facts->collations.count, sizeof *list);

    *count = 0;
    for (size_t i = 0; list && i < facts->columns.count; i++)
        if (columns[i].collation_oid)
            add_collation(list, count, columns[i].collation_oid, columns[i].collation);
    for (size_t i = 0; list && i < facts->collations.count; i++)
        add_collation(list, count, asked[i].oid, asked[i].identity);
    return list;
}

const struct facts_function *facts_functions(const struct pgseek_facts *facts, size_t *count)
{
    *count = facts->functions.count;
    return facts->functions.items;
}

const struct facts_type *facts_ask_type(struct pgseek_facts *facts, uint32_t oid)
{
    const struct facts_type *known = oid ? facts_find_type(facts, oid) : NULL;
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

bool facts_are_readable(const struct pgseek_facts *facts)
{
    return !facts->is_unreadable;
}

bool facts_has_foreign_operators(const struct pgseek_facts *facts)
{
    return facts->has_foreign_operators;
}
