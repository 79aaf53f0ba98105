/* walk_pages.h - every page of a statement, forward, back and from the end, at several sizes, compared with its oracle.
 */
#ifndef WALK_PAGES_H
#define WALK_PAGES_H

#include "walk_server.h"

/* The main of a walker of these statements: by the shapes of each one's plan. One without an oracle must not be
 * rewritten. */
int walk_pages_main(int argc, char **argv, const struct walk_case *cases, size_t count);

#endif
