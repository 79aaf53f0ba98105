/* process.h - what the operating system sees of us: background, pid file, user, limits.
 *
 * It knows processes and must not know what this one does. Everything here runs in the main thread, before there are
 * others. */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>

#include "../protocol/bytes.h"

/* Puts /dev/null where a standard descriptor is missing: a socket or file would get its number, and all that is written
 * for a person. To be called before anything is opened. */
void process_fill_descriptors(void);

/* Forks. The parent waits and leaves with exit code 0 when the child calls process_ready(), 1 when it dies before; only
 * the child returns. False with errno when it cannot be done. `ready_fd` is for process_ready(). */
bool process_daemonize(int *ready_fd) MUST_USE;
/* The start has succeeded: lets the parent go, and cuts the terminal off. Standard error is kept when `keep_stderr`. */
void process_ready(int ready_fd, bool keep_stderr);

/* Writes our number to a file that no living process has locked, and that is no file of another kind. The descriptor
 * that holds the lock, or -1 after logging why. */
int process_pidfile_open(const char *path) MUST_USE;
void process_pidfile_close(int fd, const char *path);

/* Becomes another user for good, groups and home included. False after logging why. */
bool process_become(const char *user) MUST_USE;
/* For a while root has that user's rights only, then its own again: in a folder of the user's a symbolic link could
 * lead root to any file. For root, before process_become(), which sets the groups anew; else nothing. False after
 * logging why. */
bool process_step_down(const char *user) MUST_USE;
void process_step_up(void);
/* Makes an empty file of that user's where there is none: it can be opened again once we are him. Whoever may write to
 * the folder must not get more than that, so nothing that is there is touched. For root only; else nothing. */
void process_make_file(const char *path, unsigned mode, const char *user);
/* No program that we would run could have more rights than we have. */
void process_renounce(void);

/* Lets the main thread's stack grow to that size. False where it cannot. */
bool process_deepen_stack(size_t bytes) MUST_USE;

/* Raises the soft limit of descriptors to the hard one and warns when that is less than `wanted`. */
void process_raise_descriptors(unsigned long wanted);

#endif
