/* walk_server.h - a real server for the walkers: tables, facts, descriptions, plans.
 *
 * It talks to the server directly, as the proxy's session would, and must not know what is done with a plan. */
#ifndef WALK_SERVER_H
#define WALK_SERVER_H

#include <libpq-fe.h>

#include "../../parser/pgseek.h"

/* $1 of every statement is LIMIT, as int8. */
struct walk_case {
    const char *sql;
    const char *oracle; /* the same without LIMIT, in the full order */
    const char *key;    /* key= or NULL */
};

extern PGconn *conn;
extern int faults;

/* Prints and counts what is wrong. */
void walk_fault(const struct walk_case *walk, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The result, when the server did what was asked; else the program ends. */
PGresult *must(PGresult *result);
void run(const char *sql);
/* One round of answers to what the facts want of the catalog. */
void answer_facts(struct pgseek_facts *facts);
/* The plan of a statement, in as many rounds as the facts want. */
struct pgseek_plan *ask_plan(const struct walk_case *walk, enum pgseek_reason *reason);
/* Connects, makes the tables, runs all(arg) on a stack that may parse; the program's exit code. */
int walk_main(int argc, char **argv, void *(*all)(void *), void *arg);

#endif
