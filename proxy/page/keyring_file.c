/* keyring_file.c - reads, checks and replaces the key file. Secrets live in buffers that are wiped on every way out. */
#include "keyring_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "../admin/whole_file.h"
#include "../protocol/base64.h"

#define KEYRING_FILE_MAX ((size_t)64 * 1024) /* bytes: 64 keys and a page of comments */

static const char keyring_word[] = "pgseek-key";

static const char keyring_preamble[] =
    "# Keys of pgseek's cursors. The first one seals new cursors, all of them open old ones: put a new key in front,\n"
    "# and remove an old one when cursor_ttl has passed. Keep this file secret: who has it can forge cursors.\n";

void keyring_fault(struct pgseek_error *error, const char *format, ...)
{
    if (!error)
        return;
    memset(error, 0, sizeof *error);
    va_list args;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
}

bool keyring_line_random(struct keyring_line *line)
{
    return RAND_bytes(line->id, sizeof line->id) == 1 && RAND_priv_bytes(line->secret, sizeof line->secret) == 1;
}

/* False with *error; *is_missing tells the one failure that keygen welcomes. */
static bool keyring_text_read(const char *path, struct whole_file *text, bool *is_missing, struct pgseek_error *error)
{
    char why[WHOLE_FILE_WHY];
    bool ok = whole_file_read(path, WHOLE_FILE_SECRET, KEYRING_FILE_MAX, text, why);
    *is_missing = !ok && text->error == ENOENT;
    if (!ok)
        keyring_fault(error, "key file \"%.150s\" %s", path, why);
    return ok;
}

/* ---- lines ---- */

static bool keyring_is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Empty at the end of the line. */
static struct span keyring_take_word(struct span *line)
{
    while (line->len && keyring_is_blank(line->ptr[0]))
        *line = span_of(line->ptr + 1, line->len - 1);
    size_t len = 0;
    while (len < line->len && !keyring_is_blank(line->ptr[len]))
        len++;
    struct span word = span_of(line->ptr, len);
    *line = span_of(line->ptr + len, line->len - len);
    return word;
}

static int keyring_hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool keyring_id_read(struct span text, uint8_t id[KEYRING_ID])
{
    if (text.len != (size_t)KEYRING_ID * 2)
        return false;
    for (size_t i = 0; i < KEYRING_ID; i++) {
        int high = keyring_hex_digit(text.ptr[2 * i]);
        int low = keyring_hex_digit(text.ptr[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        id[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* NULL when the line is a key, else what is wrong with it. */
static const char *keyring_line_read(struct span line, struct keyring_line *key)
{
    size_t len = 0;
    if (!span_equal_cstr(keyring_take_word(&line), keyring_word))
        return "a key line starts with \"pgseek-key v1\"";
    if (!span_equal_cstr(keyring_take_word(&line), "v1"))
        return "only version v1 is known";
    if (!keyring_id_read(keyring_take_word(&line), key->id))
        return "the key id must be 8 lower-case hexadecimal digits";
    struct span secret = keyring_take_word(&line);
    if (secret.len != base64url_len(KEYRING_SECRET) || !base64url_get(secret, key->secret, &len))
        return "the key must be 32 bytes, 43 characters in base64url";
    return keyring_take_word(&line).len ? "something follows the key" : NULL;
}

static bool keyring_is_comment(struct span line)
{
    struct span word = keyring_take_word(&line);
    return word.len == 0 || word.ptr[0] == '#' || word.ptr[0] == ';';
}

static bool keyring_has_id(const struct keyring_line *line, size_t count, const uint8_t id[KEYRING_ID])
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(line[i].id, id, KEYRING_ID) == 0)
            return true;
    return false;
}

/* Reads every line of a text; *front is where its first key line begins. */
static bool keyring_lines_read(const char *path, struct span text, struct keyring_line line[KEYRING_MAX_KEYS],
                               size_t *count, size_t *front, struct pgseek_error *error)
{
    struct span rest = text;
    *count = 0;
    *front = text.len;
    for (unsigned number = 1; rest.len > 0; number++) {
        struct span at = span_take_line(&rest);
        if (keyring_is_comment(at))
            continue;
        const char *why = *count == KEYRING_MAX_KEYS ? "more than 64 keys: remove the oldest" : NULL;
        struct keyring_line key = {0};
        if (!why)
            why = keyring_line_read(at, &key);
        if (!why && keyring_has_id(line, *count, key.id))
            why = "a second key of the same id";
        if (why) {
            keyring_fault(error, "key file \"%.120s\", line %u: %s", path, number, why);
            OPENSSL_cleanse(&key, sizeof key);
            return false;
        }
        if (*count == 0)
            *front = (size_t)(at.ptr - text.ptr);
        line[(*count)++] = key;
        OPENSSL_cleanse(&key, sizeof key);
    }
    return true;
}

bool keyring_file_read(const char *path, struct keyring_line line[KEYRING_MAX_KEYS], size_t *count,
                       struct pgseek_error *error)
{
    struct whole_file text;
    bool is_missing;
    size_t front;
    *count = 0;
    if (!keyring_text_read(path, &text, &is_missing, error))
        return false;
    bool ok = keyring_lines_read(path, whole_file_span(&text), line, count, &front, error);
    if (ok && *count == 0) {
        keyring_fault(error, "key file \"%.150s\" holds no key: make one with pgseek keygen", path);
        ok = false;
    }
    if (!ok)
        OPENSSL_cleanse(line, sizeof *line * KEYRING_MAX_KEYS);
    whole_file_fini(&text);
    return ok;
}

/* ---- a new key in front ---- */

static void keyring_line_put(const struct keyring_line *line, struct buf *out)
{
    buf_put_format(out, "%s v1 ", keyring_word);
    for (size_t i = 0; i < KEYRING_ID; i++)
        buf_put_format(out, "%02x", line->id[i]);
    buf_put_u8(out, ' ');
    base64url_put(span_of(line->secret, KEYRING_SECRET), out);
    buf_put_u8(out, '\n');
}

/* A fresh key whose id none of the others has. */
static bool keyring_line_fresh(const struct keyring_line *others, size_t count, struct keyring_line *fresh)
{
    do {
        if (!keyring_line_random(fresh))
            return false;
    } while (keyring_has_id(others, count, fresh->id));
    return true;
}

/* The text of the new file. `out` has all the room it needs beforehand: a growing buffer would leave copies of the
 * keys in freed memory. */
static bool keyring_renew(const char *path, struct span old, struct buf *out, struct pgseek_error *error)
{
    struct keyring_line line[KEYRING_MAX_KEYS];
    struct keyring_line fresh;
    size_t count = 0;
    size_t front = 0;
    bool ok = false;
    if (!keyring_lines_read(path, old, line, &count, &front, error))
        goto out;
    if (count == KEYRING_MAX_KEYS) {
        keyring_fault(error, "key file \"%.150s\" holds %d keys already: remove the oldest", path, KEYRING_MAX_KEYS);
        goto out;
    }
    if (!keyring_line_fresh(line, count, &fresh)) {
        keyring_fault(error, "no randomness for a new key");
        goto out;
    }
    if (old.len == 0)
        buf_put_text(out, keyring_preamble);
    buf_put(out, old.ptr, front);
    if (front > 0 && old.ptr[front - 1] != '\n')
        buf_put_u8(out, '\n');
    keyring_line_put(&fresh, out);
    buf_put(out, old.len ? old.ptr + front : NULL, old.len - front);
    ok = !out->failed;
    if (!ok)
        keyring_fault(error, "out of memory");
out:
    OPENSSL_cleanse(line, sizeof line);
    OPENSSL_cleanse(&fresh, sizeof fresh);
    return ok;
}

static bool keyring_write_all(int fd, struct span bytes)
{
    while (bytes.len > 0) {
        ssize_t done = write(fd, bytes.ptr, bytes.len);
        if (done < 0 && errno != EINTR)
            return false;
        size_t step = done > 0 ? (size_t)done : 0;
        bytes = span_of(bytes.ptr + step, bytes.len - step);
    }
    return true;
}

/* Gives a new file the owner and mode of the old one. Only root can give files away; others own both already. */
static bool keyring_keep_owner(int fd, const struct stat *old)
{
    if (!old)
        return fchmod(fd, 0600) == 0;
    bool is_kept = fchown(fd, old->st_uid, old->st_gid) == 0;
    return fchmod(fd, is_kept ? old->st_mode & 0640 : 0600) == 0;
}

/* The rename is not durable before the folder is on disk. */
static bool keyring_sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int len = slash ? (int)(slash - path) + 1 : 1;
    snprintf(folder, sizeof folder, "%.*s", len, slash ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Replaces the file in one step; `old` is NULL when there is none. errno says why it failed. */
static bool keyring_replace(const char *path, struct span bytes, const struct stat *old)
{
    char temporary[PATH_MAX];
    int len = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (len < 0 || (size_t)len >= sizeof temporary) {
        errno = ENAMETOOLONG;
        return false;
    }
    int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return false;
    bool ok = keyring_write_all(fd, bytes) && keyring_keep_owner(fd, old) && fsync(fd) == 0;
    ok = close(fd) == 0 && ok;
    ok = ok && rename(temporary, path) == 0;
    int why = errno;
    if (!ok)
        unlink(temporary);
    errno = why;
    return ok && keyring_sync_folder(path);
}

bool keyring_generate(const char *path, struct pgseek_error *error)
{
    struct whole_file text;
    struct buf renewed = {0};
    char real[PATH_MAX];
    bool is_missing;
    bool ok = false;
    if (!keyring_text_read(path, &text, &is_missing, error) && !is_missing)
        return false;
    if (!buf_room(&renewed, KEYRING_FILE_MAX + sizeof keyring_preamble + 128)) {
        keyring_fault(error, "out of memory");
        goto out;
    }
    buf_clear(&renewed);
    if (!keyring_renew(path, whole_file_span(&text), &renewed, error))
        goto out;
    /* A link to the file stays a link. */
    const char *target = !is_missing && realpath(path, real) ? real : path;
    ok = keyring_replace(target, buf_span(&renewed), is_missing ? NULL : &text.stat);
    if (!ok)
        keyring_fault(error, "key file \"%.150s\" cannot be written: %s", path, strerror(errno));
out:
    if (renewed.ptr)
        OPENSSL_cleanse(renewed.ptr, renewed.cap);
    buf_fini(&renewed);
    whole_file_fini(&text);
    return ok;
}
