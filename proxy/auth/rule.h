/* rule.h - the lines of pg_hba.conf and pg_ident.conf, as fields of tokens.
 *
 * It knows quotes, commas, comments and continued lines as PostgreSQL does, and must not know what a field means. What
 * PostgreSQL would read without a word though nobody can have meant it (an open quote, an empty element of a list) is a
 * fault here: the files decide who gets in. */
#ifndef RULE_H
#define RULE_H

#include <stdarg.h>
#include <stdio.h>

#include "../admin/whole_file.h"
#include "../protocol/bytes.h"

#define RULE_TOKEN_MAX 255u             /* bytes of a token */
#define RULE_NAME_MAX 63u               /* of a role's or database's name: the server cuts longer ones */
#define RULE_FILE_MAX ((size_t)1 << 20) /* bytes */

struct rule_token {
    const char *text; /* without quotes */
    bool is_quoted;   /* its first character was: it is a name then, never a keyword */
    bool opens_field; /* else it is a further element of the list */
};

/* One line that holds something. It owns its memory: rule_line_fini(). */
struct rule_line {
    unsigned number; /* from 1; of a continued line, where it begins */
    char *text;
    struct rule_token *tokens;
    size_t ntokens;
};

/* One field: a list of tokens, borrowed from the line. */
struct rule_field {
    const struct rule_token *tokens;
    size_t count;
};

/* One file that is being read. */
struct rule_reading {
    const char *name; /* of the file, for complaints */
    FILE *complaints;
    struct span rest;
    unsigned number; /* of the line that comes next */
    unsigned faults;
};

/* The whole file, to be released with whole_file_fini(). False after writing "file: sentence" to `complaints`. */
bool rule_file_read(const char *path, struct whole_file *file, FILE *complaints) MUST_USE;

void rule_reading_init(struct rule_reading *reading, struct span text, const char *name, FILE *complaints);
/* The next line. Lines at fault are complained of and left out. False at the end, or without memory (complained of). */
bool rule_next(struct rule_reading *reading, struct rule_line *line) MUST_USE;
void rule_line_fini(struct rule_line *line);

/* The field that begins at token *at, which moves behind it. Empty behind the last one. */
struct rule_field rule_field(const struct rule_line *line, size_t *at);
/* Whether the token is this keyword. */
bool rule_is_keyword(const struct rule_token *token, const char *word);

/* Writes "name:number: sentence" and counts it. */
void rule_complain(struct rule_reading *reading, unsigned number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void rule_complain_v(struct rule_reading *reading, unsigned number, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

#endif
