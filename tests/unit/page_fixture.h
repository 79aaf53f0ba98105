/* page_fixture.h - pages without a session: a plan by one key, the key that seals cursors, and what came out of a page.
 *
 * It includes what tests of pages need and must not know which rows they put in. */
#ifndef PAGE_FIXTURE_H
#define PAGE_FIXTURE_H

#include "../../proxy/page/page.h"

#define PAGE_FIXTURE_NOW 1800000000

/* A page of two rows at most, in the order of id: one column of the client's, the text note, and one hidden key. */
struct page *page_fixture_new(unsigned deliver);
struct page_seal page_fixture_seal(void);

/* Compares the first columns of the rows in `out`, each with its number of columns: "a1 b1 ". */
void page_fixture_rows(const struct buf *out, const char *wanted);
/* The key that a token holds; -1 for a token without keys, which stands for the very start or end. */
int64_t page_fixture_key(const char *token, enum cursor_direction direction);

/* Runs a test's main on a stack that may parse, with a key to seal with. */
int page_fixture_run(int (*tests)(void));

#endif
