/* objects.c - makes and frees the objects behind the names of statements and portals. */
#include "internal.h"

static void statement_free(struct object *object)
{
    struct statement *statement = (struct statement *)object;
    if (statement->kind != STATEMENT_VARIABLE)
        pgseek_tag_fini(&statement->tag);
    if (statement->kind == STATEMENT_VARIABLE)
        pgseek_variable_fini(&statement->variable);
    kept_orphan(&statement->kept);
    planned_unref(statement->planned);
    if (statement->prepares)
        object_unref(&statement->prepares->object);
    mem_free(statement->sql);
    mem_free(statement->prefix);
    mem_free(statement->oids);
    mem_free(statement);
}

struct statement *statement_new(void)
{
    struct statement *statement = mem_zalloc(sizeof *statement);
    if (statement)
        statement->object = (struct object){.refs = 1, .free = statement_free};
    return statement;
}

bool statement_keep_oids(struct statement *statement, const struct wire_parse *parse, size_t at_least)
{
    size_t count = parse->noids > at_least ? parse->noids : at_least;
    statement->oids = mem_zalloc(count * sizeof *statement->oids);
    if (!statement->oids)
        return false;
    for (size_t i = 0; i < parse->noids; i++)
        statement->oids[i] = get_u32(parse->oids + i * 4);
    statement->noids = count;
    return true;
}

static void portal_free(struct object *object)
{
    struct portal *portal = (struct portal *)object;
    page_unref(portal->page);
    if (portal->prepares)
        object_unref(&portal->prepares->object);
    mem_free(portal->value);
    mem_free(portal);
}

struct portal *portal_new(void)
{
    struct portal *portal = mem_zalloc(sizeof *portal);
    if (portal)
        portal->object = (struct object){.refs = 1, .free = portal_free};
    return portal;
}
