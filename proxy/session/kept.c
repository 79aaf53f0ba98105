/* kept.c - the lists of kept texts: per statement to be found, per session to be closed. */
#include "kept.h"

#include <stdio.h>

#include "internal.h"

static void kept_free(struct object *object)
{
    struct kept *kept = (struct kept *)object;
    planned_shape_unref(kept->shape);
    planned_unref(kept->planned);
    mem_free(kept);
}

static struct kept *find(struct kept *list, const struct planned_shape *shape)
{
    while (list && list->shape != shape)
        list = list->next_of_statement;
    return list;
}

/* Takes the first of the list out of it. */
static void orphan_first(struct kept **list)
{
    struct kept *kept = *list;
    *list = kept->next_of_statement;
    kept->next_of_statement = NULL;
    kept->is_orphan = true;
    object_unref(&kept->object);
}

void kept_orphan(struct kept **list)
{
    while (*list)
        orphan_first(list);
}

static void orphan_dropped(struct kept **list)
{
    while (*list) {
        if ((*list)->shape && (*list)->shape->is_dropped)
            orphan_first(list);
        else
            list = &(*list)->next_of_statement;
    }
}

struct kept *kept_get(struct tagging *tagging, struct statement *statement, struct planned *planned,
                      struct planned_shape *shape)
{
    if (statement->kept && statement->kept->planned != planned)
        kept_orphan(&statement->kept);
    struct kept *kept = find(statement->kept, shape);
    if (kept)
        return kept;
    orphan_dropped(&statement->kept);
    kept = mem_zalloc(sizeof *kept);
    if (!kept)
        return NULL;
    kept->object = (struct object){.refs = 2, .free = kept_free}; /* the statement's and the session's */
    kept->shape = planned_shape_ref(shape);
    kept->planned = planned_ref(planned);
    snprintf(kept->name, sizeof kept->name, "%s_%u", tagging->reserved, ++tagging->kept_count);
    kept->next_of_statement = statement->kept;
    statement->kept = kept;
    kept->next_of_session = tagging->kept;
    tagging->kept = kept;
    return kept;
}

struct kept *kept_next_orphan(struct tagging *tagging)
{
    for (struct kept **at = &tagging->kept; *at; at = &(*at)->next_of_session) {
        struct kept *kept = *at;
        if (!kept->is_orphan)
            continue;
        *at = kept->next_of_session;
        kept->next_of_session = NULL;
        return kept;
    }
    return NULL;
}

void kept_fini(struct tagging *tagging)
{
    while (tagging->kept) {
        struct kept *kept = tagging->kept;
        tagging->kept = kept->next_of_session;
        object_unref(&kept->object);
    }
}
