/* keyset.h - whether a statement already seeks by a keyset predicate of its own.
 *
 * It knows the shapes that libraries write and must not know how pgseek's own predicate looks. A plain range over the
 * first key is a filter and not a seek. */
#ifndef PARSER_KEYSET_H
#define PARSER_KEYSET_H

#include "order.h"

bool keyset_is_written(const struct order *order);

#endif
