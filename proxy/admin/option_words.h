/* option_words.h - the words that choices in the option table know.
 *
 * Nobody but the table includes it. */
#ifndef OPTION_WORDS_H
#define OPTION_WORDS_H

#include "option.h"

extern const struct option_choice option_protections[];
extern const struct option_choice option_modes[];
extern const struct option_choice option_deliveries[];
extern const struct option_choice option_policies[];
extern const struct option_choice option_sslmodes[]; /* the first, auto, is for servers only */
extern const struct option_choice option_sslnegotiations[];
extern const struct option_choice option_tls_versions[];
extern const struct option_choice option_auth_types[];

#endif
