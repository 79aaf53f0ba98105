/* reference.h - documents made from the tables: the example configuration and the generated part of the reference.
 *
 * It reads every table and must not hold a fact of its own. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <stdio.h>

/* proxy.conf.example: every option with its help, commented out at its default, and a [databases] section. */
void conf_print_example(FILE *out);

/* Markdown: configuration, tag options and variables, error codes, reasons, counters. */
void reference_print(FILE *out);

#endif
