/* log.c - makes a line in a buffer of its own and writes it with one call. */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "flood.h"

_Atomic(enum log_level) log_threshold = LOG_INFO;

/* The one descriptor that every thread writes to. A file is exchanged by dup2() onto the same number: no thread can
 * ever meet a closed one. */
static _Atomic int log_fd = STDERR_FILENO;

static const char *const log_names[] = {
    [LOG_DEBUG] = "DEBUG", [LOG_INFO] = "LOG", [LOG_WARNING] = "WARNING", [LOG_ERROR] = "ERROR", [LOG_FATAL] = "FATAL",
};

void log_set_threshold(bool is_quiet, bool is_verbose)
{
    log_threshold = is_quiet ? LOG_WARNING : is_verbose ? LOG_DEBUG : LOG_INFO;
}

static bool log_exchange(int fd)
{
    int own = log_fd;
    if (own == STDERR_FILENO) {
        /* Standard error itself must stay where it is: the file gets a number of its own. */
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (copy >= 0)
            log_fd = copy;
        return copy >= 0;
    }
    return dup3(fd, own, O_CLOEXEC) >= 0;
}

bool log_open(const char *path, const char **why)
{
    bool is_file = path && path[0];
    /* O_NONBLOCK: a FIFO that nobody reads must stop neither a reload nor whoever writes a line. */
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = is_file ? open(path, flags, LOG_FILE_MODE) : STDERR_FILENO;
    bool ok = fd >= 0 && log_exchange(fd);
    if (!ok)
        *why = strerror(errno);
    if (is_file && fd >= 0)
        close(fd);
    return ok;
}

void log_close(void)
{
    int own = log_fd;
    log_fd = STDERR_FILENO;
    if (own != STDERR_FILENO)
        close(own);
}

/* ---- the text ---- */

/* What must not be written although it is a character of several bytes. */
static const struct {
    uint32_t first, last;
} log_unwritten[] = {
    {0x80, 0x9f},        /* drive terminals */
    {0x061c, 0x061c},    /* these ... */
    {0x200e, 0x200f},    /* ... turn the direction of what follows, ... */
    {0x2028, 0x202e},    /* ... or end a line or paragraph */
    {0x2066, 0x2069},    /* ... */
    {0xd800, 0xdfff},    /* are no characters */
    {0x110000, 0x1fffff} /* the same */
};

static bool log_may_write(uint32_t character)
{
    for (size_t i = 0; i < sizeof log_unwritten / sizeof *log_unwritten; i++)
        if (character >= log_unwritten[i].first && character <= log_unwritten[i].last)
            return false;
    return true;
}

/* Bytes of the well-formed UTF-8 character at `text`, 0 when there is none or it must not be written. */
static size_t log_character(const uint8_t *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* what is less has a shorter spelling */
    if (text[0] < 0x80)
        return text[0] >= 0x20 && text[0] != 0x7f;
    size_t len = text[0] < 0xc0 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : text[0] < 0xf8 ? 4 : 0;
    uint32_t character = text[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((text[i] & 0xc0) != 0x80) /* also stops at the NUL */
            return 0;
        character = character << 6 | (text[i] & 0x3fu);
    }
    return character >= least[len] && log_may_write(character) ? len : 0;
}

/* Appends as much of `text` as fits below `max`. Returns the new length; *is_cut when something is missing. */
static size_t log_escape(char *line, size_t len, size_t max, const char *text, bool *is_cut)
{
    for (const uint8_t *at = (const uint8_t *)text; *at;) {
        char code[5];
        size_t plain = log_character(at);
        if (!plain)
            snprintf(code, sizeof code, "\\x%02x", *at);
        size_t width = plain ? plain : 4;
        *is_cut = len + width > max;
        if (*is_cut)
            return len;
        memcpy(line + len, plain ? (const char *)at : code, width);
        len += width;
        at += plain ? plain : 1;
    }
    return len;
}

size_t log_format(char line[LOG_LINE_MAX], const struct timespec *now, int pid, enum log_level level, const char *text)
{
    static const char cut[] = "...";
    char stamp[32];
    struct tm utc;
    bool is_cut = false;
    gmtime_r(&now->tv_sec, &utc);
    strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &utc);
    int head =
        snprintf(line, LOG_LINE_MAX, "%s.%03ld UTC [%d] %s ", stamp, now->tv_nsec / 1000000, pid, log_names[level]);
    size_t len = log_escape(line, (size_t)head, LOG_LINE_MAX - sizeof cut, text, &is_cut);
    if (is_cut) {
        memcpy(line + len, cut, sizeof cut - 1);
        len += sizeof cut - 1;
    }
    line[len++] = '\n';
    return len;
}

static void __attribute__((format(printf, 2, 0))) log_write_args(enum log_level level, const char *format, va_list args)
{
    char text[LOG_LINE_MAX];
    char line[LOG_LINE_MAX];
    struct timespec now;
    vsnprintf(text, sizeof text, format, args);
    clock_gettime(CLOCK_REALTIME, &now);
    size_t len = log_format(line, &now, (int)getpid(), level, text);
    /* A full disk or a closed pipe must not stop the proxy: a line that cannot be written is lost. */
    int saved = errno;
    while (write(log_fd, line, len) < 0 && errno == EINTR)
        continue;
    errno = saved;
}

void log_write(enum log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_write_args(level, format, args);
    va_end(args);
}

/* ---- lines of strangers ---- */

static pthread_mutex_t log_flood_lock = PTHREAD_MUTEX_INITIALIZER;
static struct flood log_flood;

static const char *const log_kinds[LOG_KINDS] = {
    [LOG_OF_ATTEMPT] = "login attempts",
    [LOG_OF_END] = "connections that ended before they had logged in",
    [LOG_OF_CANCEL] = "cancel requests with an unknown key",
    [LOG_OF_DROP] = "dropped connections",
    [LOG_OF_HANDSHAKE] = "failed TLS handshakes",
    [LOG_OF_RETRY] = "second tries with or without TLS",
};

static int64_t log_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void log_stranger(enum log_kind kind, enum log_level level, const char *format, ...)
{
    if (level < log_threshold)
        return;
    pthread_mutex_lock(&log_flood_lock);
    bool is_admitted = flood_admits(&log_flood, kind, log_clock_ms());
    pthread_mutex_unlock(&log_flood_lock);
    if (!is_admitted)
        return;
    va_list args;
    va_start(args, format);
    log_write_args(level, format, args);
    va_end(args);
}

void log_forgive(enum log_kind kind)
{
    pthread_mutex_lock(&log_flood_lock);
    flood_refund(&log_flood, kind);
    pthread_mutex_unlock(&log_flood_lock);
}

bool log_catch_up(void)
{
    uint64_t due[LOG_KINDS];
    pthread_mutex_lock(&log_flood_lock);
    for (enum log_kind kind = 0; kind < LOG_KINDS; kind++)
        due[kind] = flood_due(&log_flood, kind, log_clock_ms());
    bool is_over = flood_is_over(&log_flood);
    pthread_mutex_unlock(&log_flood_lock);
    for (enum log_kind kind = 0; kind < LOG_KINDS; kind++)
        if (due[kind] > 0)
            log_at(LOG_WARNING, "%llu more %s were not logged", (unsigned long long)due[kind], log_kinds[kind]);
    return is_over;
}
