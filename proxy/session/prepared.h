/* prepared.h - PREPARE and EXECUTE in SQL of tagged statements, EXPLAIN EXECUTE included.
 *
 * The server has one namespace for statements that SQL and the protocol prepare, and so has the session. It decides
 * what is executed, and must not know how a page is run. */
#ifndef PREPARED_H
#define PREPARED_H

#include "text.h"

/* A tagged PREPARE, as a Query and as a Parse. */
enum action prepared_query(struct session *session, struct reading *reading, struct span sql);
enum action prepared_parse(struct session *session, struct reading *reading, const struct wire_parse *parse);
/* Whether a Query of several statements executes a page: then *action is what becomes of it. */
bool prepared_is_among(struct session *session, struct reading *reading, struct span sql, enum action *action);
/* EXECUTE, tagged or not; CREATE TABLE AS EXECUTE, too. */
enum action prepared_query_execute(struct session *session, struct reading *reading, struct span sql,
                                   struct span message);
enum action prepared_parse_execute(struct session *session, struct reading *reading, const struct wire_parse *parse);
/* The Bind of a statement that is a command, one of these or another. */
enum action prepared_bind(struct session *session, struct statement *statement, const struct wire_bind *bind,
                          struct span message);
/* Whether a page of this statement, or of what it executes, will carry our columns. */
bool prepared_adds_columns(struct session *session, const struct statement *statement);

#endif
