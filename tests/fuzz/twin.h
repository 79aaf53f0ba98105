/* twin.h - two sessions that are fed the same bytes, one in whole pieces and one in crumbs, and must say the same.
 *
 * Both are logged in already. It must not know what the bytes mean; a difference aborts, which is what a fuzzer
 * looks for. */
#ifndef TWIN_H
#define TWIN_H

#include "../../proxy/session/session.h"

struct twin;
struct twin *twin_new(size_t crumb); /* bytes of a crumb, at least 1 */
void twin_free(struct twin *twin);
void twin_feed(struct twin *twin, enum side from, struct span bytes);

/* Runs an input on a stack that may parse. */
void twin_run(void (*check)(struct span input), struct span input);

#endif
