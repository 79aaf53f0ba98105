/* reach.h - everything that a statement runs: its own tree, and those of the views that it reads, at any depth.
 *
 * It knows facts about views and must not know what is looked for in the trees. */
#ifndef PARSER_REACH_H
#define PARSER_REACH_H

#include "facts.h"
#include "query.h"

/* Shows every message of every tree. False when the visitor stopped, true also for what cannot be read. */
bool reach_walk(const struct pgseek_query *query, struct pgseek_facts *facts, tree_visitor visit, void *context);

/* What makes a value different the next time it is asked for: in the select list of a sub-select, CTE or view, whose
 * columns the level may order by. */
enum pgseek_reason reach_fickle(const struct pgseek_query *query, struct pgseek_facts *facts);
/* A volatile function stands anywhere. */
bool reach_has_volatile(const struct pgseek_query *query, struct pgseek_facts *facts);
/* A part may give other rows each time it is run: a LIMIT, DISTINCT ON, windows. Of the level's own select list only
 * when sub-selects are in_keys. */
bool reach_has_choice(const struct pgseek_query *query, struct pgseek_facts *facts, bool in_keys);
/* TABLESAMPLE stands anywhere without REPEATABLE: each page would see other rows. */
bool reach_has_sample(const struct pgseek_query *query, struct pgseek_facts *facts);
/* Whether the message asks for the time: a function, a keyword, or a literal like 'now'. */
bool reach_is_clock(const ProtobufCMessage *message);

#endif
