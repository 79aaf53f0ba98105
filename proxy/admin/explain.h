/* explain.h - `pgseek explain`: what would be done with one statement, and why.
 *
 * It asks the parser, with or without a database, and must not know sessions: it prints the same plan that a session
 * would make. */
#ifndef EXPLAIN_H
#define EXPLAIN_H

int explain_main(int argc, char **argv);

#endif
