/* ident.h - the auth_ident_file: which certificate's name may log in as which user.
 *
 * PostgreSQL's format (documentation, "User Name Maps"): map, name (or /regular expression, see pattern.h), user (with
 * \1 for the expression's first group, or `all`). It must not know certificates. */
#ifndef IDENT_H
#define IDENT_H

#include <stdio.h>

#include "../protocol/bytes.h"

struct ident;

/* NULL after writing "file:line: sentence" for each fault. */
struct ident *ident_load(const char *path, FILE *complaints) MUST_USE;
struct ident *ident_read(struct span text, const char *name, FILE *complaints) MUST_USE;
void ident_free(struct ident *ident);

bool ident_has_map(const struct ident *ident, const char *map);
/* Whether this name may be that user. Without a map (NULL) only the user of the same name. `ident` may be NULL: it has
 * no maps then. An empty name, or one of more than 255 bytes, may be nobody. */
bool ident_allows(const struct ident *ident, const char *map, const char *name, const char *user);

#endif
