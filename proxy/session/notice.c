/* notice.c - what the client hears of the server's notices: all of its own, and each of them once.
 *
 * The head of the queue says whose work a notice speaks of. It must not know how pages or side queries are made. */
#include "internal.h"

#include <string.h>

enum hearing {
    HEARING_ALL,
    HEARING_OWN, /* but not where the server speaks of a name of ours, as its DEBUG and LOG messages do */
    HEARING_NONE /* but the end of the connection */
};

/* Its own text is parsed and described by us once more, and its functions run in a total: their notices are not to come
 * twice. A simple Query is parsed and bound by us alone, under our names. */
static enum hearing hearing_of(const struct pending *head)
{
    if (!head)
        return HEARING_ALL;
    const struct page *page = head->follow ? head->follow->page : NULL;
    switch (head->role) {
    case ROLE_DISCARD: return HEARING_ALL;
    case ROLE_CLIENT: return page && page->shape ? HEARING_OWN : HEARING_ALL;
    case ROLE_PAGE: return HEARING_OWN;
    case ROLE_SHAPE: return page && page->is_simple ? HEARING_OWN : HEARING_NONE;
    case ROLE_SWALLOW: return page ? HEARING_OWN : HEARING_NONE; /* the end of a page's portal is the end of its run */
    default: return HEARING_NONE;
    }
}

bool notice_passes_by(const struct pending *head)
{
    return hearing_of(head) == HEARING_ALL;
}

static bool contains(struct span body, const char *name)
{
    return memmem(body.ptr, body.len, name, strlen(name)) != NULL;
}

enum action notice_reply(struct session *session, struct pending *head, struct span body)
{
    struct span sqlstate;
    bool is_end = wire_error_field(body, 'C', &sqlstate) && sqlstate.len == 5 && memcmp(sqlstate.ptr, "57P", 3) == 0;
    enum hearing hearing = hearing_of(head);
    if (is_end || hearing == HEARING_ALL)
        return ACTION_FORWARD;
    bool is_heard = hearing == HEARING_OWN && session->tagging && !contains(body, session->tagging->reserved);
    return is_heard ? ACTION_FORWARD : ACTION_DONE;
}
