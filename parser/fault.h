/* fault.h - writing down what is wrong with a tag or a variable: PS000 with message, detail and hint.
 *
 * It formats and cuts, and must not know the rules that were broken. */
#ifndef PARSER_FAULT_H
#define PARSER_FAULT_H

#include "pgseek.h"

/* Starts an error with its message. Always false, so that a check can return it. */
bool fault(struct pgseek_error *error, const char *message);
/* The two below add to it, and are always false, too. */
bool fault_detail(struct pgseek_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool fault_hint(struct pgseek_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A piece of the client's own text to quote in an error: short, and never half a UTF-8 character. */
struct excerpt {
    char text[64];
};
struct excerpt fault_excerpt(const char *text, size_t len);

#endif
