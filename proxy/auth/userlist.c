/* userlist.c - the lines of the auth_file, and a table that finds them by name. */
#include "userlist.h"

#include <assert.h>
#include <string.h>

#include <openssl/crypto.h>

#include "../admin/whole_file.h"

#define USERLIST_FILE_MAX ((size_t)16 << 20) /* bytes: some 80,000 users */
#define USERLIST_LINE_MIN 112u               /* bytes of the shortest line with a secret in it */
#define USERLIST_FAULTS_MAX 20u              /* a file in another format has one in each line */

struct userlist_entry {
    unsigned line;
    uint8_t name_len;
    uint8_t name[USERLIST_NAME_MAX];
    struct secret secret;
};

struct userlist {
    size_t count;
    size_t capacity; /* known beforehand: a growing array would leave copies of the secrets behind */
    struct userlist_entry *entry;
    size_t slots;   /* a power of two, at most half of it in use */
    uint32_t *slot; /* entry's number plus one; 0: free */
};

/* ---- the table ---- */

static struct userlist *userlist_new(size_t capacity)
{
    struct userlist *list = mem_zalloc(sizeof *list);
    if (!list)
        return NULL;
    list->capacity = capacity;
    list->slots = 2;
    while (list->slots < 2 * capacity)
        list->slots *= 2;
    list->entry = mem_zalloc(capacity * sizeof *list->entry);
    list->slot = mem_zalloc(list->slots * sizeof *list->slot);
    if (list->entry && list->slot)
        return list;
    userlist_free(list);
    return NULL;
}

void userlist_free(struct userlist *list)
{
    if (!list)
        return;
    if (list->entry)
        OPENSSL_cleanse(list->entry, list->count * sizeof *list->entry);
    mem_free(list->entry);
    mem_free(list->slot);
    mem_free(list);
}

static struct span userlist_name(const struct userlist_entry *entry)
{
    return span_of(entry->name, entry->name_len);
}

/* The slot of that name, or the free one where it would be. */
static uint32_t *userlist_slot(const struct userlist *list, struct span user)
{
    size_t at = span_hash(user) & (list->slots - 1);
    while (list->slot[at] != 0 && !span_equal(userlist_name(&list->entry[list->slot[at] - 1]), user))
        at = (at + 1) & (list->slots - 1);
    return &list->slot[at];
}

const struct secret *userlist_find(const struct userlist *list, struct span user)
{
    uint32_t number = *userlist_slot(list, user);
    return number ? &list->entry[number - 1].secret : NULL;
}

struct secret_shape userlist_shape(const struct userlist *list)
{
    return list->count ? secret_shape(&list->entry[0].secret) : (struct secret_shape){0};
}

size_t userlist_count(const struct userlist *list)
{
    return list->count;
}

void userlist_put(const struct userlist *list, size_t n, struct buf *out)
{
    assert(n < list->count);
    const struct userlist_entry *entry = &list->entry[n];
    buf_put_u8(out, '"');
    for (size_t i = 0; i < entry->name_len; i++) {
        if (entry->name[i] == '"')
            buf_put_u8(out, '"');
        buf_put_u8(out, entry->name[i]);
    }
    buf_put_text(out, "\" \"");
    secret_put(&entry->secret, out);
    buf_put_text(out, "\"\n");
}

/* ---- pieces of a line ---- */

static void userlist_skip_blanks(struct span *line)
{
    while (line->len && (line->ptr[0] == ' ' || line->ptr[0] == '\t' || line->ptr[0] == '\r'))
        *line = span_of(line->ptr + 1, line->len - 1);
}

/* What stands between two quotes, still with its own quotes doubled. */
static bool userlist_take_string(struct span *line, struct span *string)
{
    userlist_skip_blanks(line);
    if (line->len == 0 || line->ptr[0] != '"')
        return false;
    size_t end = 1;
    while (end < line->len && (line->ptr[end] != '"' || (end + 1 < line->len && line->ptr[end + 1] == '"')))
        end += line->ptr[end] == '"' ? 2 : 1;
    if (end >= line->len)
        return false;
    *string = span_of(line->ptr + 1, end - 1);
    *line = span_of(line->ptr + end + 1, line->len - end - 1);
    return true;
}

/* False when it is longer than a name can be. */
static bool userlist_unquote(struct span string, struct userlist_entry *entry)
{
    for (size_t i = 0; i < string.len; i++) {
        if (entry->name_len == USERLIST_NAME_MAX)
            return false;
        entry->name[entry->name_len++] = string.ptr[i];
        i += string.ptr[i] == '"'; /* its second half */
    }
    return true;
}

/* ---- lines ---- */

static const char *userlist_why_no_secret(struct span text)
{
    if (text.len == 0)
        return "the secret is empty";
    if (text.len == 35 && memcmp(text.ptr, "md5", 3) == 0)
        return "an md5 hash is no secret to verify SCRAM with: set password_encryption = 'scram-sha-256' on the "
               "server, set the user's password again, and take SELECT rolpassword FROM pg_authid";
    if (text.len > 6 && memcmp(text.ptr, "SCRAM-", 6) == 0)
        return "the SCRAM secret is malformed: copy all of what SELECT rolpassword FROM pg_authid gives";
    return "a plain password: only SCRAM-SHA-256 secrets are kept here, take SELECT rolpassword FROM pg_authid";
}

/* NULL when the line is understood; entry->name_len is 0 when it says nothing. */
static const char *userlist_line_read(struct span line, struct userlist_entry *entry)
{
    struct span user;
    struct span secret;
    struct span third = {0};
    userlist_skip_blanks(&line);
    if (line.len == 0 || line.ptr[0] == ';')
        return NULL;
    if (memchr(line.ptr, 0, line.len))
        return "a NUL in the line";
    if (!userlist_take_string(&line, &user) || !userlist_take_string(&line, &secret))
        return "a line is \"user\" \"secret\", both in double quotes";
    if (user.len == 0)
        return "the user has no name";
    if (!secret_read(secret, &entry->secret))
        return userlist_why_no_secret(secret);
    if (!userlist_unquote(user, entry))
        return "the user's name is longer than 63 bytes";
    userlist_skip_blanks(&line);
    if (line.len > 0 && line.ptr[0] == '"' && !userlist_take_string(&line, &third))
        return "a quote is missing at the end of the line";
    userlist_skip_blanks(&line);
    if (third.len > 0 || (line.len > 0 && line.ptr[0] != ';'))
        return "something follows the secret: nothing but a user and a secret is known here, no expiry either";
    return NULL;
}

static const char *userlist_add(struct userlist *list, const struct userlist_entry *entry, unsigned *first_line)
{
    uint32_t *slot = userlist_slot(list, userlist_name(entry));
    if (*slot != 0) {
        *first_line = list->entry[*slot - 1].line;
        return "the user was given before";
    }
    assert(list->count < list->capacity);
    list->entry[list->count++] = *entry;
    *slot = (uint32_t)list->count;
    return NULL;
}

/* False when the line is at fault. */
static bool userlist_take(struct userlist *list, struct span line, unsigned number, const char *name, FILE *complaints)
{
    struct userlist_entry entry = {.line = number};
    unsigned first_line = 0;
    const char *why = userlist_line_read(line, &entry);
    if (!why && entry.name_len > 0)
        why = userlist_add(list, &entry, &first_line);
    OPENSSL_cleanse(&entry, sizeof entry);
    if (first_line)
        fprintf(complaints, "%s:%u: %s, in line %u\n", name, number, why, first_line);
    else if (why)
        fprintf(complaints, "%s:%u: %s\n", name, number, why);
    return !why;
}

static size_t userlist_long_lines(struct span text)
{
    size_t count = 0;
    while (text.len > 0)
        count += span_take_line(&text).len >= USERLIST_LINE_MIN;
    return count;
}

struct userlist *userlist_read(struct span text, const char *name, FILE *complaints)
{
    struct userlist *list = userlist_new(userlist_long_lines(text));
    unsigned faults = 0;
    if (!list) {
        fprintf(complaints, "%s: out of memory\n", name);
        return NULL;
    }
    for (unsigned number = 1; text.len > 0 && faults < USERLIST_FAULTS_MAX; number++)
        faults += !userlist_take(list, span_take_line(&text), number, name, complaints);
    if (faults == 0)
        return list;
    if (text.len > 0)
        fprintf(complaints, "%s: there may be more, which were not looked for\n", name);
    userlist_free(list);
    return NULL;
}

struct userlist *userlist_load(const char *path, FILE *complaints)
{
    struct whole_file file;
    char why[WHOLE_FILE_WHY];
    if (!whole_file_read(path, WHOLE_FILE_SECRET, USERLIST_FILE_MAX, &file, why)) {
        fprintf(complaints, "%s: %s\n", path, why);
        return NULL;
    }
    struct userlist *list = userlist_read(whole_file_span(&file), path, complaints);
    whole_file_fini(&file);
    return list;
}
