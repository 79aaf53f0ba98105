/* tie.h - what breaks the ties of an order: columns by proof, groups, DISTINCT, or the client's word for it.
 *
 * It knows which columns tell rows apart and must not know how ORDER BY is read. */
#ifndef PARSER_TIE_H
#define PARSER_TIE_H

#include "order.h"

/* Finds out what tells the level's rows apart, and reads the items of GROUP BY and DISTINCT ON. */
enum pgseek_reason tie_read(struct order *order) PGSEEK_MUST_USE;
/* Whether the keys so far leave no ties. */
bool tie_is_broken(const struct order *order);
/* Appends keys until they do; key_option is the tag's key= or NULL. */
enum pgseek_reason tie_append(struct order *order, const char *key_option) PGSEEK_MUST_USE;

#endif
