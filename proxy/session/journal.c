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
    if (follow->kept)
        object_unref(&follow->kept->object);
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

static bool change_name(struct session *session, struct names *names, struct pending *entry, struct span name,
                        struct object *object, bool is_portal)
{
    if (!object && !names_get(names, name) && !session->returning)
        return true; /* nothing there, and nothing that could come back */
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
    session->returning |= effect->object != NULL;
    return true;
}

bool change_statement(struct session *session, struct pending *entry, struct span name, struct statement *statement)
{
    return change_name(session, &session->statements, entry, name, statement ? &statement->object : NULL, false);
}

bool change_portal(struct session *session, struct pending *entry, struct span name, struct portal *portal)
{
    return change_name(session, &session->portals, entry, name, portal ? &portal->object : NULL, true);
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

/* The first change of a name among the entries from `behind` on; NULL when there is none. */
static struct effect *changed_behind(const struct session *session, uint32_t behind, bool is_portal, struct span name)
{
    struct effect *first = NULL;
    for (uint32_t i = behind; i < session->owed.count && !first; i++) {
        const struct follow *follow = pending_at(&session->owed, i)->follow;
        for (struct effect *effect = follow ? follow->effects : NULL; effect; effect = effect->next)
            if (effect->kind == (is_portal ? EFFECT_PORTAL : EFFECT_STATEMENT) &&
                span_equal(span_of(effect->name, effect->name_len), name))
                first = effect;
    }
    return first;
}

/* Gives a name back what it had; takes the reference. Where a group behind has changed the name meanwhile, that change
 * stays, and what it would go back to is another. */
static void restore_name(struct session *session, uint32_t behind, bool is_portal, struct span name,
                         struct object *object)
{
    struct effect *later = changed_behind(session, behind, is_portal, name);
    if (later) {
        object_unref(later->object);
        later->object = object;
    } else if (!names_put(is_portal ? &session->portals : &session->statements, name, object, NULL)) {
        object_unref(object);
        session_nomem(session);
    }
}

static void effect_undo(struct session *session, uint32_t behind, struct effect *effect)
{
    if (effect->kind == EFFECT_VARIABLES) { /* never changed ahead of an answer: see must_follow() */
        variables_unref(session->variables);
        session->variables = effect->variables;
        effect->variables = NULL;
        return;
    }
    restore_name(session, behind, effect->kind == EFFECT_PORTAL, span_of(effect->name, effect->name_len),
                 effect->object);
    effect->object = NULL;
}

void undo(struct session *session, struct follow *follow, uint32_t behind)
{
    while (follow && follow->effects) {
        struct effect *effect = follow->effects;
        follow->effects = effect->next;
        effect_undo(session, behind, effect);
        effect_free(effect);
    }
}

bool name_may_return(const struct session *session, struct span name)
{
    uint32_t groups = session->returning ? session->owed.readies : 0;
    for (uint32_t i = 0; groups > 0 && i < session->owed.count; i++) {
        const struct pending *entry = pending_at(&session->owed, i);
        const struct effect *effect = entry->follow ? entry->follow->effects : NULL;
        for (; effect; effect = effect->next)
            if (effect->kind == EFFECT_STATEMENT && effect->object &&
                span_equal(span_of(effect->name, effect->name_len), name))
                return true;
        groups -= pending_ends_group(entry->kind);
    }
    return false;
}

bool names_will_go(struct session *session)
{
    for (uint32_t i = 0; session->dropping && i < session->owed.count; i++) {
        const struct follow *follow = pending_at(&session->owed, i)->follow;
        if (follow && (follow->command == PGSEEK_CMD_DEALLOCATE_ALL || follow->command == PGSEEK_CMD_DISCARD_ALL))
            return true;
    }
    session->dropping = false;
    return false;
}

enum action wait_for_names(struct session *session)
{
    return session->owed.readies == 0 ? hold_for_replies(session) : ACTION_HOLD;
}

bool must_follow(const struct session *session)
{
    return session->owed.readies > 0 && variables_matter(session->variables);
}

bool variables_change_behind(const struct session *session)
{
    for (uint32_t i = 1; i < session->owed.count; i++) {
        const struct follow *follow = pending_at(&session->owed, i)->follow;
        for (const struct effect *effect = follow ? follow->effects : NULL; effect; effect = effect->next)
            if (effect->kind == EFFECT_VARIABLES)
                return true;
    }
    return false;
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
        undo(session, pending_at(&session->owed, i - 1)->follow, n);
    if (drops_unnamed)
        restore_name(session, n, false, span_cstr(""), NULL);
    for (uint32_t i = 0; i < n; i++) {
        follow_free(pending_head(&session->owed)->follow);
        pending_pop(&session->owed);
    }
    bool failed = false;
    session->variables = variables_fail(session->variables, &failed);
    if (failed)
        session_nomem(session);
    if (session->owed.count == 0)
        session->skip_to_sync = true;
    session->wake |= session->holding;
}
