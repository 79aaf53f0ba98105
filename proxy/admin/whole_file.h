/* whole_file.h - small files, read whole: those that hold secrets only when nobody else can read them.
 *
 * It knows owners and modes and must not know what a file says. Secrets are kept in a vault and wiped with it. */
#ifndef WHOLE_FILE_H
#define WHOLE_FILE_H

#include <sys/stat.h>

#include "../protocol/bytes.h"

#define WHOLE_FILE_WHY 160

enum whole_file_kind {
    WHOLE_FILE_SECRET, /* its owner's alone, who is us or root; root's may be readable by a group */
    WHOLE_FILE_PUBLIC
};

struct whole_file {
    enum whole_file_kind kind;
    uint8_t *ptr; /* never moved: a growing buffer would leave copies behind */
    size_t len;
    struct stat stat;
    int error; /* errno of what failed; 0 when the file is refused for what it is */
};

/* Reads a regular file of less than `max` bytes. False with the end of a sentence in `why` that begins with the file's
 * name ("cannot be opened: No such file or directory"); nothing is to be released then. */
bool whole_file_read(const char *path, enum whole_file_kind kind, size_t max, struct whole_file *file,
                     char why[WHOLE_FILE_WHY]) MUST_USE;
void whole_file_fini(struct whole_file *file); /* wipes */
struct span whole_file_span(const struct whole_file *file);

#endif
