/* log.h - log lines in PgBouncer's form, to standard error or a file.
 *
 * One event, one line, one write(2): safe from every thread. It must not see SQL text, parameters, tokens or passwords:
 * callers pass none above debug. What a client chose may be passed: control characters are written as \xNN, so that no
 * name can forge a line or drive a terminal. */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#define LOG_FILE_MODE 0640
#define LOG_LINE_MAX 2048 /* bytes of a line with its newline; what is longer ends in "..." */

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_FATAL };

/* Lines below this level are not made. */
extern _Atomic(enum log_level) log_threshold;
/* At start and on reload, by the main thread: warnings and worse, or DEBUG lines, too. */
void log_set_threshold(bool is_quiet, bool is_verbose);

/* Logs to the file from now on, or to standard error (NULL or ""). Opening the same path again makes a new file after
 * the old one was moved away. Main thread only; other threads may log meanwhile. False with *why (static text or
 * strerror's) when it cannot be opened; the old one stays in force. */
bool log_open(const char *path, const char **why);
/* Back to standard error. Main thread only. */
void log_close(void);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_at(level, ...) \
    do { \
        if ((level) >= log_threshold) \
            log_write((level), __VA_ARGS__); \
    } while (0)

/* Lines that whoever reaches the port can cause, before he has logged in. He must not be able to fill the disk: of each
 * kind a bounded number is written (flood.h), and how many were left out is said in one line. */
enum log_kind {
    LOG_OF_ATTEMPT,   /* a login attempt */
    LOG_OF_END,       /* a connection that ended before it had logged in */
    LOG_OF_CANCEL,    /* a cancel request that names nobody */
    LOG_OF_DROP,      /* a connection that was not taken */
    LOG_OF_HANDSHAKE, /* a TLS handshake that failed */
    LOG_OF_RETRY,     /* a server that is tried again, with TLS or without */
    LOG_KINDS
};
void log_stranger(enum log_kind kind, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Who caused a line of that kind has logged in: it does not count. */
void log_forgive(enum log_kind kind);
/* Says what was left out, about once a second. True when nothing more is to be said: to be called until then. */
bool log_catch_up(void);

/* The line that log_write() would write, without a file or clock. Returns its length; `line` needs no NUL. */
size_t log_format(char line[LOG_LINE_MAX], const struct timespec *now, int pid, enum log_level level, const char *text);

#endif
