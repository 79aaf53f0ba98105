/* setting.h - what the two files about our variables' statements share.
 *
 * It knows checks and portals; it must not know values, which are variables.c's. */
#ifndef SETTING_H
#define SETTING_H

#include "internal.h"

/* Whether a name and a value can be set; the option by its name. */
bool setting_check(const char *name, const char *value, enum pgseek_option *option,
                   struct pgseek_error *error) MUST_USE;
/* Expects the Bind's reply and puts a portal that does the statement's work when it is executed; NULL: out of memory.
 */
enum action setting_bind_portal(struct session *session, struct portal *portal, struct span name, enum action action);
/* A Bind that is none of ours after all. */
enum action setting_bind_plain(struct session *session, const struct wire_bind *bind);
/* The Bind of a set_config or current_setting; `params` has bind->nparams elements. */
enum action setting_bind_call(struct session *session, struct statement *statement, const struct wire_bind *bind,
                              const struct wire_param *params);

#endif
