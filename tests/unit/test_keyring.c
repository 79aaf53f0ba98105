/* test_keyring.c - key files: what is refused and with which sentence, and that a new key goes in front of the old. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../proxy/page/keyring.h"

#define SECRET "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
#define KEY(id) "pgseek-key v1 " id " " SECRET "\n"
#define OTHER_KEY(id) "pgseek-key v1 " id " BAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n"

struct folder {
    char path[32];
    char file[64];
};

static int set_up(void **state)
{
    static struct folder folder;
    snprintf(folder.path, sizeof folder.path, "/tmp/test_keyring.XXXXXX");
    if (!mkdtemp(folder.path))
        return -1;
    snprintf(folder.file, sizeof folder.file, "%s/cursor.keys", folder.path);
    *state = &folder;
    return 0;
}

static int tear_down(void **state)
{
    const struct folder *folder = *state;
    unlink(folder->file);
    return rmdir(folder->path); /* fails when a temporary file was left behind */
}

static void write_file(const char *path, const char *text, size_t len, mode_t mode)
{
    unlink(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static size_t read_file(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t len = fread(text, 1, size - 1, file);
    fclose(file);
    text[len] = '\0';
    return len;
}

static void good_files_are_loaded(void **state)
{
    static const struct {
        const char *text;
        size_t count;
    } cases[] = {
        {KEY("00000001"), 1},
        {"pgseek-key v1 00000001 " SECRET, 1}, /* no newline at the end */
        {"# a comment\n\n; another\n" KEY("0000000a") "\r\n" KEY("0000000b"), 2},
        {"  pgseek-key\tv1  ffffffff   " SECRET "  \r\n", 1},
    };
    const struct folder *folder = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pgseek_error error;
        write_file(folder->file, cases[i].text, strlen(cases[i].text), 0600);
        struct keyring *keyring = keyring_load(folder->file, &error);
        if (!keyring)
            fail_msg("%s", error.message);
        assert_int_equal(keyring_count(keyring), cases[i].count);
        keyring_free(keyring);
    }
}

static void bad_files_are_explained(void **state)
{
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {
        {"", "holds no key"},
        {"# only a comment\n", "holds no key"},
        {"pgseek v1 00000001 " SECRET, "line 1: a key line starts with"},
        {"\n\npgseek-key v2 00000001 " SECRET, "line 3: only version v1"},
        {"pgseek-key v1 0000001 " SECRET, "8 lower-case hexadecimal digits"},
        {"pgseek-key v1 0000000A " SECRET, "8 lower-case hexadecimal digits"},
        {"pgseek-key v1 00000001", "43 characters"},
        {"pgseek-key v1 00000001 " SECRET "A", "43 characters"},
        {"pgseek-key v1 00000001 " SECRET "=", "43 characters"},
        {"pgseek-key v1 00000001 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9", "43 characters"}, /* a spare bit */
        {KEY("00000001") "pgseek-key v1 00000002 " SECRET " x", "line 2: something follows"},
        {KEY("00000001") KEY("00000002") KEY("00000001"), "line 3: a second key of the same id"},
    };
    const struct folder *folder = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pgseek_error error;
        write_file(folder->file, cases[i].text, strlen(cases[i].text), 0600);
        assert_null(keyring_load(folder->file, &error));
        if (!strstr(error.message, cases[i].why) || !strstr(error.message, folder->file))
            fail_msg("\"%s\": %s", cases[i].text, error.message);
        if (strstr(error.message, SECRET))
            fail_msg("the message holds the key");
    }
}

static void permissions_are_checked(void **state)
{
    static const mode_t bad[] = {0644, 0604, 0620, 0601, 0666, 0650, 0644};
    static const mode_t good[] = {0600, 0400};
    const struct folder *folder = *state;
    struct pgseek_error error;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_file(folder->file, KEY("00000001"), strlen(KEY("00000001")), bad[i]);
        assert_null(keyring_load(folder->file, &error));
        assert_non_null(strstr(error.message, "chmod 0600"));
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        write_file(folder->file, KEY("00000001"), strlen(KEY("00000001")), good[i]);
        struct keyring *keyring = keyring_load(folder->file, &error);
        assert_non_null(keyring);
        keyring_free(keyring);
    }
    unlink(folder->file);
    assert_null(keyring_load(folder->file, &error));
    assert_non_null(strstr(error.message, "No such file"));
    assert_null(keyring_load(folder->path, &error));
    assert_non_null(strstr(error.message, "not a regular file"));
    /* A FIFO that nobody writes to must not be waited for. */
    assert_int_equal(mkfifo(folder->file, 0600), 0);
    assert_null(keyring_load(folder->file, &error));
    assert_non_null(strstr(error.message, "not a regular file"));
}

/* NULL, or the keys as another user than root would load them. */
static struct keyring *load_as(uid_t user, const char *path, struct pgseek_error *error)
{
    assert_int_equal(seteuid(user), 0);
    struct keyring *keyring = keyring_load(path, error);
    assert_int_equal(seteuid(0), 0);
    return keyring;
}

static void owners_are_checked(void **state)
{
    static const struct {
        uid_t owner;
        mode_t mode;
        uid_t loader;
        const char *why; /* NULL: it loads */
    } cases[] = {
        {0, 0600, 0, NULL},        {0, 0640, 0, NULL},
        {12345, 0600, 0, NULL},    {12345, 0600, 12345, NULL},
        {12345, 0640, 0, "chmod"}, {12345, 0640, 12345, "chmod"},
        {0, 0640, 12345, NULL},    {0, 0600, 12345, "Permission denied"},
    };
    const struct folder *folder = *state;
    if (geteuid() != 0)
        skip(); /* only root can give files away */
    assert_int_equal(chmod(folder->path, 0711), 0);
    assert_int_equal(setegid(12345), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pgseek_error error = {0};
        write_file(folder->file, KEY("00000001"), strlen(KEY("00000001")), 0600);
        assert_int_equal(chown(folder->file, cases[i].owner, 12345), 0);
        assert_int_equal(chmod(folder->file, cases[i].mode), 0);
        struct keyring *keyring = load_as(cases[i].loader, folder->file, &error);
        if (!keyring != (cases[i].why != NULL) || (cases[i].why && !strstr(error.message, cases[i].why)))
            fail_msg("case %zu: %s", i, error.message);
        keyring_free(keyring);
    }
    assert_int_equal(setegid(getgid()), 0);
}

/* Readable by a group, and neither ours nor root's. */
static void strangers_files_are_refused(void **state)
{
    const struct folder *folder = *state;
    struct pgseek_error error;
    if (geteuid() != 0)
        skip();
    write_file(folder->file, KEY("00000001"), strlen(KEY("00000001")), 0644);
    assert_int_equal(chown(folder->file, 12346, 12346), 0);
    assert_int_equal(chmod(folder->path, 0711), 0);
    assert_null(load_as(12345, folder->file, &error));
    assert_non_null(strstr(error.message, "belongs to another user"));
}

static void sizes_have_an_end(void **state)
{
    const struct folder *folder = *state;
    struct pgseek_error error;
    char text[(KEYRING_MAX_KEYS + 1) * 80];
    size_t len = 0;
    for (unsigned i = 0; i <= KEYRING_MAX_KEYS; i++) {
        write_file(folder->file, text, len, 0600);
        struct keyring *keyring = keyring_load(folder->file, &error);
        assert_int_equal(keyring ? keyring_count(keyring) : 0, i);
        keyring_free(keyring);
        len += (size_t)snprintf(text + len, sizeof text - len, "pgseek-key v1 %08x " SECRET "\n", i);
    }
    write_file(folder->file, text, len, 0600);
    assert_null(keyring_load(folder->file, &error));
    assert_non_null(strstr(error.message, "more than 64 keys"));

    static char huge[70000];
    memset(huge, '#', sizeof huge);
    write_file(folder->file, huge, sizeof huge, 0600);
    assert_null(keyring_load(folder->file, &error));
    assert_non_null(strstr(error.message, "File too large"));
}

static void a_new_key_goes_in_front(void **state)
{
    const struct folder *folder = *state;
    struct pgseek_error error;
    struct stat st;
    char text[8192];
    assert_true(keyring_generate(folder->file, &error)); /* there was no file */
    assert_int_equal(stat(folder->file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    struct keyring *first = keyring_load(folder->file, &error);
    assert_non_null(first);
    assert_int_equal(keyring_count(first), 1);

    assert_int_equal(chmod(folder->file, 0400), 0);
    assert_true(keyring_generate(folder->file, &error));
    assert_int_equal(stat(folder->file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0400);
    struct keyring *second = keyring_load(folder->file, &error);
    assert_non_null(second);
    assert_int_equal(keyring_count(second), 2);
    assert_memory_not_equal(keyring_first(second)->id, keyring_first(first)->id, KEYRING_ID);
    const struct keyring_key *old = keyring_find(second, keyring_first(first)->id);
    assert_non_null(old);
    assert_memory_equal(old->seal.encrypt, keyring_first(first)->seal.encrypt, SEAL_KEY);
    assert_memory_equal(old->seal.sign, keyring_first(first)->seal.sign, SEAL_KEY);
    assert_null(keyring_find(first, keyring_first(second)->id));
    read_file(folder->file, text, sizeof text);
    assert_int_equal(text[0], '#'); /* the file's comments stay in front */
    keyring_free(first);
    keyring_free(second);
}

static void comments_survive_a_new_key(void **state)
{
    static const char head[] = "# of the shop\n\n";
    static const char tail[] = KEY("00000001") "# the old one:\n" KEY("00000002");
    const struct folder *folder = *state;
    struct pgseek_error error;
    char text[8192];
    char whole[1024];
    snprintf(whole, sizeof whole, "%s%s", head, tail);
    write_file(folder->file, whole, strlen(whole), 0600);
    assert_true(keyring_generate(folder->file, &error));
    size_t len = read_file(folder->file, text, sizeof text);
    assert_int_equal(len, strlen(whole) + strlen(KEY("00000001")));
    assert_memory_equal(text, head, strlen(head));
    assert_string_equal(text + len - strlen(tail), tail);

    /* A last line without a newline is not run into. */
    write_file(folder->file, "# no key yet", 12, 0600);
    assert_true(keyring_generate(folder->file, &error));
    read_file(folder->file, text, sizeof text);
    assert_memory_equal(text, "# no key yet\npgseek-key v1 ", 27);
}

static void files_that_cannot_be_renewed_stay_as_they_are(void **state)
{
    const struct folder *folder = *state;
    struct pgseek_error error;
    char text[8192];
    write_file(folder->file, "broken\n", 7, 0600);
    assert_false(keyring_generate(folder->file, &error));
    assert_non_null(strstr(error.message, "line 1"));
    write_file(folder->file, KEY("00000001"), strlen(KEY("00000001")), 0644);
    assert_false(keyring_generate(folder->file, &error));
    assert_non_null(strstr(error.message, "chmod 0600"));
    read_file(folder->file, text, sizeof text);
    assert_string_equal(text, KEY("00000001"));
    assert_false(keyring_generate("/nonexistent/folder/keys", &error));
    assert_non_null(strstr(error.message, "cannot be written"));
}

static void a_link_stays_a_link(void **state)
{
    const struct folder *folder = *state;
    struct pgseek_error error;
    struct stat st;
    char link[80];
    snprintf(link, sizeof link, "%s/link", folder->path);
    write_file(folder->file, KEY("00000001"), strlen(KEY("00000001")), 0600);
    assert_int_equal(symlink(folder->file, link), 0);
    assert_true(keyring_generate(link, &error));
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    struct keyring *keyring = keyring_load(folder->file, &error);
    assert_non_null(keyring);
    assert_int_equal(keyring_count(keyring), 2);
    keyring_free(keyring);
    unlink(link);
}

/* The common secret of a file with these lines. */
static void take_common(const struct folder *folder, const char *text, uint8_t common[KEYRING_SECRET])
{
    struct pgseek_error error;
    write_file(folder->file, text, strlen(text), 0600);
    struct keyring *keyring = keyring_load(folder->file, &error);
    assert_non_null(keyring);
    memcpy(common, keyring_common(keyring), KEYRING_SECRET);
    assert_memory_not_equal(common, keyring_first(keyring)->seal.encrypt, KEYRING_SECRET);
    assert_memory_not_equal(common, keyring_first(keyring)->seal.sign, KEYRING_SECRET);
    keyring_free(keyring);
}

/* A rotation puts a key in front, and later takes one away from the end. */
static void the_oldest_key_gives_the_common_secret(void **state)
{
    uint8_t old[KEYRING_SECRET];
    uint8_t both[KEYRING_SECRET];
    uint8_t young[KEYRING_SECRET];
    take_common(*state, OTHER_KEY("00000001"), old);
    take_common(*state, KEY("00000002") "# the old one:\n" OTHER_KEY("00000001"), both);
    take_common(*state, KEY("00000002"), young);
    assert_memory_equal(both, old, KEYRING_SECRET);
    assert_memory_not_equal(young, old, KEYRING_SECRET);
    take_common(*state, OTHER_KEY("00000003"), young);
    assert_memory_equal(young, old, KEYRING_SECRET); /* an id is only a name */
}

static void sub_keys_differ(void **state)
{
    (void)state;
    struct keyring *one = keyring_ephemeral();
    struct keyring *two = keyring_ephemeral();
    assert_non_null(one);
    assert_non_null(two);
    const struct keyring_key *key = keyring_first(one);
    assert_memory_not_equal(key->seal.encrypt, key->seal.sign, SEAL_KEY);
    assert_memory_not_equal(key->seal.encrypt, keyring_first(two)->seal.encrypt, SEAL_KEY);
    struct keyring *again = keyring_ref(one);
    keyring_free(one);
    assert_int_equal(keyring_count(again), 1); /* still there: one reference is left */
    keyring_free(again);
    keyring_free(two);
    keyring_free(NULL);
}

static void memory_may_run_out(void **state)
{
    const struct folder *folder = *state;
    struct pgseek_error error;
    bool ok = false;
    for (long n = 0; !ok; n++) {
        mem_fail_after(n);
        ok = keyring_generate(folder->file, &error);
        mem_fail_after(-1);
        assert_true(n < 100);
    }
    struct keyring *keyring = NULL;
    for (long n = 0; !keyring; n++) {
        mem_fail_after(n);
        keyring = keyring_load(folder->file, &error);
        mem_fail_after(-1);
        assert_true(n < 100);
    }
    keyring_free(keyring);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(good_files_are_loaded),
        TEST(bad_files_are_explained),
        TEST(permissions_are_checked),
        TEST(owners_are_checked),
        TEST(strangers_files_are_refused),
        TEST(sizes_have_an_end),
        TEST(a_new_key_goes_in_front),
        TEST(comments_survive_a_new_key),
        TEST(files_that_cannot_be_renewed_stay_as_they_are),
        TEST(a_link_stays_a_link),
        TEST(sub_keys_differ),
        TEST(the_oldest_key_gives_the_common_secret),
        TEST(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
