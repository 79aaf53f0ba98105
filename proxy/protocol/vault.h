/* vault.h - memory for keys: pages of their own, which are never swapped out, dumped or inherited, and are wiped.
 *
 * It must not know what is kept in it. What is small and many does not belong here: each piece takes a page. */
#ifndef VAULT_H
#define VAULT_H

#include "bytes.h"

/* All zero, between two pages that nobody may touch. NULL when out of memory. Locking is best effort: a small
 * RLIMIT_MEMLOCK must not keep the proxy from working. A forked child finds zeros here. */
void *vault_new(size_t len) MUST_USE;
/* Wipes all of it. NULL is allowed. */
void vault_free(void *ptr);

#endif
