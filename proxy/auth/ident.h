/* ident.h - the auth_ident_file: which certificate's name may log in as which user.
 *
 * PostgreSQL's format (documentation, "User Name Maps"): map, system name (or /regular expression with \1), user. It
 * must not know certificates. */
#ifndef IDENT_H
#define IDENT_H

#include <stdio.h>

#include "../protocol/bytes.h"

struct ident;

struct ident *ident_load(const char *path, FILE *complaints) MUST_USE;
struct ident *ident_read(struct span text, const char *name, FILE *complaints) MUST_USE;
void ident_free(struct ident *ident);

bool ident_has_map(const struct ident *ident, const char *map);
/* Whether this name may be that user. Without a map (NULL) only the user of the same name. `ident` may be NULL then. */
bool ident_allows(const struct ident *ident, const char *map, const char *name, const char *user);

#endif
