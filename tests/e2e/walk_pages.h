/* walk_pages.h - every page of a statement, forward, back and from the end, at several sizes, compared with its oracle.
 */
#ifndef WALK_PAGES_H
#define WALK_PAGES_H

#include "walk_server.h"

/* Walks the pages by the shapes of the statement's plan. Without an oracle it must not be rewritten. */
void walk_pages(const struct walk_case *walk);

#endif
