/* fuzz_userlist.c - the auth_file: no file crashes its reader, each refusal is explained, and what was read can be
 * written and read again to the same list. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxy/auth/userlist.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct userlist *read_list(struct span text, size_t *said_len)
{
    char *said = NULL;
    FILE *complaints = open_memstream(&said, said_len);
    require(complaints != NULL);
    struct userlist *list = userlist_read(text, "users.txt", complaints);
    fclose(complaints);
    free(said);
    return list;
}

static void put_all(const struct userlist *list, struct buf *out)
{
    for (size_t i = 0; i < userlist_count(list); i++)
        userlist_put(list, i, out);
}

/* The name of a line that userlist_put has written. */
static struct span take_name(struct span *rest, uint8_t name[USERLIST_NAME_MAX])
{
    const uint8_t *end = memchr(rest->ptr, '\n', rest->len);
    size_t len = 0;
    require(end && rest->ptr[0] == '"');
    for (const uint8_t *at = rest->ptr + 1; at[0] != '"' || at[1] == '"'; at++) {
        require(len < USERLIST_NAME_MAX);
        name[len++] = at[0];
        at += at[0] == '"';
    }
    *rest = span_of(end + 1, rest->len - (size_t)(end + 1 - rest->ptr));
    return span_of(name, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf written = {0};
    struct buf again = {0};
    size_t said_len = 0;
    struct userlist *list = read_list(span_of(data, size), &said_len);
    require((list == NULL) == (said_len > 0));
    if (!list)
        return 0;
    put_all(list, &written);
    struct userlist *same = read_list(buf_span(&written), &said_len);
    require(same && userlist_count(same) == userlist_count(list));
    put_all(same, &again);
    require(span_equal(buf_span(&written), buf_span(&again)));
    for (struct span rest = buf_span(&written); rest.len > 0;) {
        uint8_t name[USERLIST_NAME_MAX];
        struct span user = take_name(&rest, name);
        require(user.len > 0);
        const struct secret *secret = userlist_find(list, user);
        const struct secret *secret_again = userlist_find(same, user);
        require(secret && secret_again && memcmp(secret, secret_again, sizeof *secret) == 0);
    }
    userlist_free(list);
    userlist_free(same);
    buf_fini(&written);
    buf_fini(&again);
    return 0;
}
