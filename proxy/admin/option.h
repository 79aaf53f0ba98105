/* option.h - the option table of proxy.conf: name, type, bounds, default and help of every setting, in one place.
 *
 * It turns one value's text into one field of struct conf, and a field back into text. It must not know files. */
#ifndef OPTION_H
#define OPTION_H

#include "../protocol/bytes.h"
#include "conf.h"

enum option_type {
    OPTION_TEXT,
    OPTION_INT,
    OPTION_OCTAL,    /* file modes */
    OPTION_BOOL,     /* on/off, yes/no, true/false, 1/0 */
    OPTION_DURATION, /* seconds; units s, min, h, d */
    OPTION_SIZE,     /* bytes; units B, kB, MB, GB */
    OPTION_CHOICE,   /* one of a list of words */
    OPTION_FLAGS,    /* several of them, separated by commas */
    OPTION_NAMES     /* names of settings, separated by commas: the scope */
};

/* A word of OPTION_CHOICE or OPTION_FLAGS. With `refusal` it is known but cannot be used yet, and that says why. */
struct option_choice {
    const char *word;
    int value;
    const char *refusal;
};

struct option {
    const char *name;
    enum option_type type;
    size_t offset; /* of the field in struct conf */
    size_t size;
    const char *initial; /* the default, as it would be written in a file */
    int64_t min;
    int64_t max;
    const struct option_choice *choices; /* ends with a NULL word */
    bool is_reloadable;                  /* else a change needs a restart */
    const char *help;
    const char *heading; /* of the group that begins with this option, or NULL */
};

extern const struct option option_table[];
extern const size_t option_count;

/* Index of an option, or option_count. */
size_t option_find(const char *name);
/* The name that was probably meant, or NULL. */
const char *option_nearest(const char *name);

#define OPTION_WHY 256
/* Stores one value; what it held before is released. False with the end of a sentence in `why`: what is wrong. */
bool option_put(const struct option *option, struct conf *conf, const char *text, char why[OPTION_WHY]) MUST_USE;
void option_release(const struct option *option, struct conf *conf);
bool option_equal(const struct option *option, const struct conf *a, const struct conf *b);

/* The choice that a word stands for, of the option of that name. False with the end of a sentence in `why`. */
bool option_choose(const char *option, const char *word, int *value, char why[OPTION_WHY]) MUST_USE;

/* For documents: "integer", and "1 to 65535" or "on, off"; `text` holds at least 256 bytes. */
const char *option_type_name(enum option_type type);
void option_bounds(const struct option *option, char *text, size_t size);

#endif
