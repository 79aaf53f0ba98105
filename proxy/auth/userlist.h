/* userlist.h - the auth_file: users and their SCRAM secrets, in PgBouncer's format.
 *
 * It knows the file's grammar and must not know who asks. Lines are "user" "secret", a quote inside doubled; a third
 * string is taken when it is empty, as PgBouncer's mkauth writes it; a line that begins with ; is a comment. Plain
 * passwords and md5 hashes are refused with the line's number: the proxy keeps nothing that somebody could log in
 * with. */
#ifndef USERLIST_H
#define USERLIST_H

#include <stdio.h>

#include "secret.h"

#define USERLIST_NAME_MAX 63u /* bytes: PostgreSQL has no longer ones */

struct userlist;

/* NULL after writing "file:line: sentence" for each fault to `complaints`: grammar, a user given twice, a secret that
 * is none, a file that others can read. */
struct userlist *userlist_load(const char *path, FILE *complaints) MUST_USE;
/* The same from memory, for tests and the fuzzer; `name` stands for the file in complaints. */
struct userlist *userlist_read(struct span text, const char *name, FILE *complaints) MUST_USE;
void userlist_free(struct userlist *list); /* wipes */

/* NULL when unknown. Valid as long as the list. */
const struct secret *userlist_find(const struct userlist *list, struct span user);
/* The shape of most secrets, as far as one can tell: the first one's. Unknown when the list is empty. */
struct secret_shape userlist_shape(const struct userlist *list);

size_t userlist_count(const struct userlist *list);
/* Appends the n-th line, as it may be read again. */
void userlist_put(const struct userlist *list, size_t n, struct buf *out);

#endif
