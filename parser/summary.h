/* summary.h - an order as a person would write it.
 *
 * It knows keys and must not know plans. */
#ifndef PARSER_SUMMARY_H
#define PARSER_SUMMARY_H

#include "order.h"

/* For example `created_at DESC, id DESC (tie-breaker: posts_pkey)`. NULL when out of memory. */
const char *summary_make(struct arena *arena, const struct order *order);

#endif
