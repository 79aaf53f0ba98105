/* whole_file.c - opens, checks and reads. The checks are made on what was opened, so that nobody can exchange the file
 * in between. */
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../protocol/vault.h"

static bool whole_file_refuse(char why[WHOLE_FILE_WHY], const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool whole_file_refuse(char why[WHOLE_FILE_WHY], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, WHOLE_FILE_WHY, format, args);
    va_end(args);
    return false;
}

static bool whole_file_fail(struct whole_file *file, const char *what, char why[WHOLE_FILE_WHY])
{
    file->error = errno;
    return whole_file_refuse(why, "cannot be %s: %s", what, strerror(file->error));
}

/* As PostgreSQL treats private keys: for their owner alone, except that root's may be readable by a group. Root takes a
 * file of any owner, since it may start a proxy that becomes that owner. */
static bool whole_file_check_secret(const struct stat *st, char why[WHOLE_FILE_WHY])
{
    mode_t forbidden = st->st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
    if (st->st_uid != geteuid() && st->st_uid != 0 && geteuid() != 0)
        return whole_file_refuse(why, "belongs to another user: chown it to the user that runs pgseek");
    if (st->st_mode & forbidden)
        return whole_file_refuse(why, "has mode %04o, others could use what it holds: chmod 0600 it",
                                 (unsigned)(st->st_mode & 07777));
    return true;
}

static bool whole_file_check(const struct stat *st, enum whole_file_kind kind, char why[WHOLE_FILE_WHY])
{
    if (!S_ISREG(st->st_mode))
        return whole_file_refuse(why, "is not a regular file");
    return kind == WHOLE_FILE_PUBLIC || whole_file_check_secret(st, why);
}

static bool whole_file_take(int fd, size_t max, struct whole_file *file)
{
    for (;;) {
        ssize_t got = read(fd, file->ptr + file->len, max - file->len);
        if (got == 0)
            return true;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        file->len += (size_t)got;
        if (file->len == max) {
            errno = EFBIG;
            return false;
        }
    }
}

static bool whole_file_read_fd(int fd, enum whole_file_kind kind, size_t max, struct whole_file *file,
                               char why[WHOLE_FILE_WHY])
{
    if (fd < 0 || fstat(fd, &file->stat) < 0)
        return whole_file_fail(file, "opened", why);
    if (!whole_file_check(&file->stat, kind, why))
        return false;
    file->kind = kind;
    file->ptr = kind == WHOLE_FILE_SECRET ? vault_new(max) : mem_alloc(max);
    if (!file->ptr) {
        errno = ENOMEM;
        return whole_file_fail(file, "read", why);
    }
    return whole_file_take(fd, max, file) || whole_file_fail(file, "read", why);
}

bool whole_file_read(const char *path, enum whole_file_kind kind, size_t max, struct whole_file *file,
                     char why[WHOLE_FILE_WHY])
{
    *file = (struct whole_file){0};
    /* O_NONBLOCK: a FIFO in the file's place must be refused, not waited for. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool ok = whole_file_read_fd(fd, kind, max, file, why);
    if (fd >= 0)
        close(fd);
    if (!ok)
        whole_file_fini(file);
    return ok;
}

void whole_file_fini(struct whole_file *file)
{
    if (file->kind == WHOLE_FILE_SECRET)
        vault_free(file->ptr);
    else
        mem_free(file->ptr);
    file->ptr = NULL;
    file->len = 0;
}

struct span whole_file_span(const struct whole_file *file)
{
    return span_of(file->ptr, file->len);
}
