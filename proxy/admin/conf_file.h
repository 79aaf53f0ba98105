/* conf_file.h - what the reader of configuration files needs of a snapshot that is still being filled.
 *
 * Nobody but conf.c and conf_file.c includes it: a snapshot that others can see never changes. */
#ifndef CONF_FILE_H
#define CONF_FILE_H

#include "../protocol/bytes.h"
#include "conf.h"

/* All options at their defaults, no databases. NULL when out of memory. */
struct conf *conf_new(void) MUST_USE;
/* Appends one line of [databases]; false with the end of a sentence in `why`. */
bool conf_add_database(struct conf *conf, const char *name, const char *connection, char *why,
                       size_t why_size) MUST_USE;

#endif
