/* journal.c - expected replies with what hangs on them, and changes that can be undone.
 *
 * A name or a variable changes when its message is forwarded, so that the next message already sees it; the old value
 * stays with the expected reply until the server has answered. It must not know why something changed. */
#include "internal.h"

#include <string.h>

struct pending *expect(struct session *session, enum pending_kind kind, enum pending_role role)
{
    struct pending *entry = pending_push(&session->owed, kind, role);
    if (!entry)
        return NULL;
    if (kind != PENDING_COPY_END)
        session->unsynced = !pending_ends_group(kind);
    session->group += pending_ends_group(kind);
    session->ran = session->unsynced && (session->ran || kind == PENDING_EXECUTE || kind == PENDING_BIND);
    return entry;
}

struct follow *follow_of(struct pending *entry)
{
    if (!entry->follow)
        entry->follow = mem_zalloc(sizeof *entry->follow);
    return entry->follow;
}

static void effect_free(struct effect *effect)
{
    object_unref(effect->object);
    variables_unref(effect->variables);
    mem_free(effect);
}

void follow_free(struct follow *follow)
{
    if (!follow)
        return;
    while (follow->effects) {
        struct effect *effect = follow->effects;
        follow->effects = effect->next;
        effect_free(effect);
    }
    if (follow->portal)
        object_unref(&follow->portal->object);
    page_unref(follow->page);
    mem_free(follow->refusal);
    mem_free(follow);
}

/* ---- changes ---- */

static struct effect *effect_new(struct pending *entry, struct span name)
{
    struct follow *follow = follow_of(entry);
    struct effect *effect = follow ? mem_zalloc(sizeof *effect + name.len) : NULL;
    if (!effect)
        return NULL;
    effect->name_len = name.len;
    if (name.len)
        memcpy(effect->name, name.ptr, name.len);
    effect->next = follow->effects;
    follow->effects = effect;
    return effect;
}

static bool change_name(struct names *names, struct pending *entry, struct span name, struct object *object,
                        bool is_portal)
{
    if (!object && !names_get(names, name))
        return true;
    struct effect *effect = effect_new(entry, name);
    if (!effect || !names_put(names, name, object, &effect->object)) {
        object_unref(object);
        if (effect) {
            entry->follow->effects = effect->next;
            mem_free(effect);
        }
        return false;
    }
    if (is_portal)
        effect->kind = EFFECT_PORTAL;
    else
        effect->kind = EFFECT_STATEMENT;
    return true;
}

bool change_statement(struct session *session, struct pending *entry, struct span name, struct statement *statement)
{
    return change_name(&session->statements, entry, name, statement ? &statement->object : NULL, false);
}

bool change_portal(struct session *session, struct pending *entry, struct span name, struct portal *portal)
{
    return change_name(&session->portals, entry, name, portal ? &portal->object : NULL, true);
}

bool change_variables(struct session *session, struct pending *entry, struct variables *next)
{
    struct effect *effect = effect_new(entry, span_of(NULL, 0));
    if (!effect) {
        variables_unref(next);
        return false;
    }
    effect->kind = EFFECT_VARIABLES;
    effect->variables = session->variables;
    session->variables = next;
    return true;
}

/* Takes one change back. Memory cannot run out for a name that is or was there; if it does, the name passes untouched.
 */
static void effect_undo(struct session *session, struct effect *effect)
{
    struct span name = span_of(effect->name, effect->name_len);
    if (effect->kind == EFFECT_VARIABLES) {
        variables_unref(session->variables);
        session->variables = effect->variables;
        effect->variables = NULL;
        return;
    }
    struct names *names = effect->kind == EFFECT_STATEMENT ? &session->statements : &session->portals;
    if (names_put(names, name, effect->object, NULL))
        effect->object = NULL;
}

void undo(struct session *session, struct follow *follow)
{
    while (follow && follow->effects) {
        struct effect *effect = follow->effects;
        follow->effects = effect->next;
        effect_undo(session, effect);
        effect_free(effect);
    }
}

/* ---- replies ---- */

/* Markers that the server does not answer vanish once they are at the head. */
static void pop_markers(struct session *session)
{
    while (session->owed.count && pending_head(&session->owed)->kind == PENDING_COPY_END)
        pending_pop(&session->owed);
}

void pop_head(struct session *session)
{
    follow_free(pending_head(&session->owed)->follow);
    pending_pop(&session->owed);
    pop_markers(session);
    session->wake |= session->holding;
}

/* Entries that the server discards after an error at the head: all up to the next Sync, a Query among them, too. */
static uint32_t group_length(const struct pending_queue *owed)
{
    uint32_t n = 0;
    while (n < owed->count && pending_at(owed, n)->kind != PENDING_SYNC)
        n++;
    return n;
}

void fail_group(struct session *session)
{
    uint32_t n = group_length(&session->owed);
    bool drops_unnamed = n > 0 && pending_head(&session->owed)->unnamed;
    for (uint32_t i = n; i > 0; i--)
        undo(session, pending_at(&session->owed, i - 1)->follow);
    for (uint32_t i = 0; i < n; i++) {
        follow_free(pending_head(&session->owed)->follow);
        pending_pop(&session->owed);
    }
    if (drops_unnamed && !names_put(&session->statements, span_cstr(""), NULL, NULL))
        session_nomem(session);
    bool failed = false;
    session->variables = variables_fail(session->variables, &failed);
    if (failed)
        session_nomem(session);
    if (session->owed.count == 0)
        session->skip_to_sync = true;
    session->wake |= session->holding;
}
