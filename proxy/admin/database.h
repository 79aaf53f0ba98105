/* database.h - one line of [databases]: a libpq connection string, taken apart.
 *
 * It accepts what the proxy honours and refuses the rest by name: an ignored target_session_attrs would send writes to
 * a standby. It must not know files or connections. */
#ifndef DATABASE_H
#define DATABASE_H

#include "../protocol/bytes.h"
#include "conf.h"

#define DATABASE_WHY 256

/* Fills an all-zero *database. False with the end of a sentence in `why`; database_fini() is then still to be called.
 */
bool database_read(const char *name, const char *connection, struct conf_database *database,
                   char why[DATABASE_WHY]) MUST_USE;
void database_fini(struct conf_database *database);

#endif
