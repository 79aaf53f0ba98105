/* log.h - log lines in PgBouncer's form, to standard error or a file.
 *
 * One event, one line. It must not see SQL text, parameters, tokens or passwords: callers pass none above debug. Safe
 * from every thread: a line is one write. */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_FATAL };

/* Lines below this level are not made. Set once at start and on reload. */
extern enum log_level log_threshold;

/* Opens the file (NULL: standard error only). False with *why (static text) when it cannot be opened; the old one stays in force. */
bool log_open(const char *path, const char **why);
void log_close(void);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_at(level, ...) \
    do { \
        if ((level) >= log_threshold) \
            log_write((level), __VA_ARGS__); \
    } while (0)

#endif
