/* process.c - background, pid file, user, limits. */
#include "process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../admin/log.h"

/* ---- standard descriptors ---- */

void process_fill_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR); /* takes the lowest number that is free */
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* ---- background ---- */

/* Leaves with what became of the child. */
static _Noreturn void process_wait_ready(pid_t child, int fd)
{
    char byte;
    ssize_t got;
    do
        got = read(fd, &byte, 1);
    while (got < 0 && errno == EINTR);
    if (got == 1)
        _exit(0);
    waitpid(child, NULL, 0);
    _exit(1);
}

bool process_daemonize(int *ready_fd)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    pid_t child = fork();
    if (child < 0)
        return false;
    if (child > 0) {
        close(ends[1]);
        process_wait_ready(child, ends[0]);
    }
    close(ends[0]);
    *ready_fd = ends[1];
    return setsid() >= 0;
}

void process_ready(int ready_fd, bool keep_stderr)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd <= (keep_stderr ? 1 : 2); fd++)
        if (dup2(null, fd) < 0)
            log_at(LOG_WARNING, "could not cut off descriptor %d: %s", fd, strerror(errno));
    if (null > 2)
        close(null);
    if (write(ready_fd, "", 1) != 1)
        log_at(LOG_WARNING, "nobody waits for the start");
    close(ready_fd);
}

/* ---- pid file ---- */

/* What a crash may have left: nothing, or a number. Anything else is somebody's file, and a slip in the settings. */
static bool process_is_pidfile(int fd)
{
    char text[32];
    struct stat file;
    ssize_t len = pread(fd, text, sizeof text, 0);
    if (fstat(fd, &file) < 0 || !S_ISREG(file.st_mode) || file.st_nlink > 1 || len < 0 || len == sizeof text)
        return false;
    text[len] = '\0';
    size_t digits = strspn(text, "0123456789");
    return len == 0 || (digits > 0 && strcmp(text + digits, "\n") == 0);
}

/* Whether the path still means what was opened: the one who had the lock may have removed it when he left. */
static bool process_is_at(int fd, const char *path)
{
    struct stat file;
    struct stat there;
    return fstat(fd, &file) == 0 && lstat(path, &there) == 0 && file.st_dev == there.st_dev &&
           file.st_ino == there.st_ino;
}

static bool process_pidfile_write(int fd)
{
    char text[32];
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    return ftruncate(fd, 0) == 0 && write(fd, text, (size_t)len) == len;
}

int process_pidfile_open(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd < 0) {
        log_at(LOG_FATAL, "could not open pidfile \"%s\": %s", path, strerror(errno));
        return -1;
    }
    /* The lock dies with its holder, so a file left by a crash is no obstacle. */
    if (!process_is_pidfile(fd))
        log_at(LOG_FATAL, "pidfile \"%s\" is there already, and is no pid file", path);
    else if (flock(fd, LOCK_EX | LOCK_NB) < 0 || !process_is_at(fd, path))
        log_at(LOG_FATAL, "pidfile \"%s\" belongs to a process that runs", path);
    else if (process_pidfile_write(fd))
        return fd;
    else
        log_at(LOG_FATAL, "could not write pidfile \"%s\": %s", path, strerror(errno));
    close(fd);
    return -1;
}

void process_pidfile_close(int fd, const char *path)
{
    if (fd < 0)
        return;
    if (unlink(path) < 0 && ftruncate(fd, 0) < 0) /* the directory may be another user's: leave it empty then */
        log_at(LOG_WARNING, "could not remove pidfile \"%s\": %s", path, strerror(errno));
    close(fd);
}

/* ---- user ---- */

/* NULL after logging why. */
static const struct passwd *process_find_user(const char *user)
{
    errno = 0;
    const struct passwd *entry = getpwnam(user);
    if (!entry)
        log_at(LOG_FATAL, "user \"%s\": %s", user, errno ? strerror(errno) : "no such user");
    return entry;
}

bool process_become(const char *user)
{
    const struct passwd *entry = process_find_user(user);
    if (!entry)
        return false;
    if (entry->pw_uid == geteuid())
        return true;
    /* libpq looks into HOME for passwords and certificates: root's is not the user's, who may not even look. */
    bool is_done = setenv("HOME", entry->pw_dir, 1) == 0 && initgroups(user, entry->pw_gid) == 0 &&
                   setgid(entry->pw_gid) == 0 && setuid(entry->pw_uid) == 0;
    if (is_done && entry->pw_uid != 0 && (setuid(0) == 0 || seteuid(0) == 0)) {
        log_at(LOG_FATAL, "user \"%s\" could become root again", user);
        return false;
    }
    if (is_done)
        return true;
    log_at(LOG_FATAL, "could not become user \"%s\": %s", user, strerror(errno));
    return false;
}

bool process_step_down(const char *user)
{
    if (geteuid() != 0)
        return true;
    const struct passwd *entry = process_find_user(user);
    if (!entry)
        return false;
    if (initgroups(user, entry->pw_gid) == 0 && setegid(entry->pw_gid) == 0 && seteuid(entry->pw_uid) == 0)
        return true;
    log_at(LOG_FATAL, "could not act as user \"%s\": %s", user, strerror(errno));
    return false;
}

void process_step_up(void)
{
    if (seteuid(0) < 0) /* for who was never root there is nothing to undo */
        return;
    int rc = setegid(getgid());
    assert(rc == 0); /* root may */
    (void)rc;
}

void process_make_file(const char *path, unsigned mode, const char *user)
{
    const struct passwd *entry = geteuid() == 0 ? getpwnam(user) : NULL;
    int fd = entry ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)mode) : -1;
    if (fd < 0)
        return;
    if (fchown(fd, entry->pw_uid, entry->pw_gid) < 0)
        log_at(LOG_WARNING, "could not give %s to user \"%s\": %s", path, user, strerror(errno));
    close(fd);
}

void process_renounce(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        log_at(LOG_DEBUG, "this kernel cannot keep programs from gaining rights: %s", strerror(errno));
}

/* ---- limits ---- */

/* What main() and the libraries' start-up may have used of the stack already. */
#define PROCESS_STACK_USED ((rlim_t)1024 * 1024)

/* AddressSanitizer measures the main thread's stack once, at the start, and misjudges what lies below. */
static bool process_stack_may_grow(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return false;
#else
    return true;
#endif
}

/* The kernel looks at the limit when the stack grows, and keeps 128 MiB below it free whatever the limit was. */
bool process_deepen_stack(size_t bytes)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)bytes + PROCESS_STACK_USED;
    if (!process_stack_may_grow() || getrlimit(RLIMIT_STACK, &limit) < 0)
        return false;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted)
        return true;
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < wanted)
        return false;
    limit.rlim_cur = wanted;
    return setrlimit(RLIMIT_STACK, &limit) == 0;
}

void process_raise_descriptors(unsigned long wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < wanted)
        log_at(LOG_WARNING, "max_client_conn needs %lu descriptors, the limit is %lu: clients above it will wait",
               wanted, (unsigned long)limit.rlim_cur);
}
