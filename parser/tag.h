/* tag.h - what else is asked of tags, beyond pgseek.h.
 *
 * It knows where a tag stands and must not know what it says. */
#ifndef PARSER_TAG_H
#define PARSER_TAG_H

#include "pgseek.h"

/* Where the comment of the text's one tag starts. False when there is none, or it is not good. */
bool tag_place(const char *sql, size_t len, size_t *place) PGSEEK_MUST_USE;

#endif
