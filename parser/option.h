/* option.h - what tag and variable share about options, beyond pgseek.h.
 *
 * It knows names and values; it must not know where they were written. */
#ifndef PARSER_OPTION_H
#define PARSER_OPTION_H

#include "pgseek.h"

/* Writes PS000 "unknown option" with the nearest name as the hint, if one is near. Always false. */
bool option_unknown(struct pgseek_error *error, const char *name, size_t len);

/* Decodes on/off/true/false/yes/no/1/0, in any case. */
bool option_boolean(const char *value, bool *truth);

#endif
