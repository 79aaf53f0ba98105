/* text.h - what the client's SQL texts are to us: plain, a command, about a variable, or a page.
 *
 * It decides by the first word and by whether "pgseek" is mentioned; only then is anything lexed. It must not know how
 * a page is run. */
#ifndef TEXT_H
#define TEXT_H

#include "internal.h"

/* Whole Query and Parse messages. */
enum action text_query(struct session *session, struct span message);
enum action text_parse(struct session *session, struct span message);
/* The same for texts that are too large to be looked at. */
enum action text_plain_query(struct session *session);
enum action text_plain_parse(struct session *session, struct span name);
/* The Bind of a statement that is a command. */
enum action text_bind_command(struct session *session, struct statement *statement, const struct wire_bind *bind);
/* Whether a page of this statement will carry our columns. */
bool text_adds_columns(struct session *session, const struct statement *statement);

#endif
