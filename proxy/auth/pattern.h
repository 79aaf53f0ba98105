/* pattern.h - regular expressions that the C library and PostgreSQL read alike.
 *
 * A name map decides who may be whom, so it must not mean here what it does not mean there. What the two read
 * differently (escapes such as \d, (?:...), *?, bytes beyond ASCII in brackets ...) is refused, and so is what could
 * cost much. It must not know what it is used for. */
#ifndef PATTERN_H
#define PATTERN_H

#include <regex.h>

#include "../protocol/bytes.h"

#define PATTERN_WHY 160

/* False with the end of a sentence in `why`. A compiled one is released with regfree(). */
bool pattern_compile(const char *text, regex_t *pattern, char why[PATTERN_WHY]) MUST_USE;
/* Whether it has branches or repeats a group: then the two may agree that it matches, and not on what its groups are.
 */
bool pattern_has_choice(const char *text);
/* Whether the pattern is found in the text; *group is what its first group has matched: NULL when it took no part. */
bool pattern_match(const regex_t *pattern, const char *text, struct span *group);

#endif
