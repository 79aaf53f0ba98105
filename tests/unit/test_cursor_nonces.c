/* test_cursor_nonces.c - no two tokens of a key have one nonce, whoever seals them. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../proxy/protocol/base64.h"
#include "cursor_fixture.h"

#define NONCES 2000

static int compare_nonces(const void *a, const void *b)
{
    return memcmp(a, b, SEAL_NONCE);
}

/* Seals and keeps the nonces of the tokens. */
static bool take_nonces(const struct keyring *keyring, uint8_t (*nonces)[SEAL_NONCE], size_t count)
{
    struct cursor cursor = cursor_of_feed();
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        uint8_t bytes[CURSOR_MAX_TOKEN];
        size_t len;
        struct buf token = {0};
        ok = cursor_seal(keyring, false, &cursor, &token) && base64url_get(buf_span(&token), bytes, &len);
        memcpy(nonces[i], bytes + 1 + KEYRING_ID + 1, SEAL_NONCE);
        buf_fini(&token);
    }
    return ok;
}

struct taker {
    const struct keyring *keyring;
    uint8_t (*nonces)[SEAL_NONCE];
    bool ok;
};

static void *run_taker(void *arg)
{
    struct taker *taker = arg;
    taker->ok = take_nonces(taker->keyring, taker->nonces, NONCES);
    return NULL;
}

/* Of the same key, whoever draws them: this thread, others at the same time, and a process that was forked off. */
static void no_nonce_comes_twice(void **state)
{
    enum { TAKERS = 4 };
    struct keyring *keyring = cursor_keys(KEY_ONE);
    size_t total = (TAKERS + 2) * (size_t)NONCES;
    uint8_t(*nonces)[SEAL_NONCE] = test_malloc(total * SEAL_NONCE);
    struct taker takers[TAKERS];
    pthread_t threads[TAKERS];
    int ends[2];
    (void)state;
    assert_true(take_nonces(keyring, nonces, 1)); /* the generator of this thread has begun before the fork */
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct keyring *own = cursor_keys(KEY_ONE); /* a child finds no key in the memory of its parent */
        bool ok = take_nonces(own, nonces, NONCES);
        for (size_t sent = 0; ok && sent < NONCES * SEAL_NONCE;) {
            ssize_t done = write(ends[1], nonces[0] + sent, NONCES * SEAL_NONCE - sent);
            ok = done > 0;
            sent += ok ? (size_t)done : 0;
        }
        _exit(ok ? 0 : 1);
    }
    close(ends[1]);
    for (size_t i = 0; i < TAKERS; i++) {
        takers[i] = (struct taker){.keyring = keyring, .nonces = nonces + i * NONCES};
        assert_int_equal(pthread_create(&threads[i], NULL, run_taker, &takers[i]), 0);
    }
    assert_true(take_nonces(keyring, nonces + (size_t)TAKERS * NONCES, NONCES));
    uint8_t *at = nonces[(TAKERS + 1) * (size_t)NONCES];
    for (size_t got = 0; got < NONCES * SEAL_NONCE;) {
        ssize_t done = read(ends[0], at + got, NONCES * SEAL_NONCE - got);
        assert_true(done > 0);
        got += (size_t)done;
    }
    for (size_t i = 0; i < TAKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(takers[i].ok);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ends[0]);
    qsort(nonces, total, SEAL_NONCE, compare_nonces);
    for (size_t i = 1; i < total; i++)
        assert_memory_not_equal(nonces[i - 1], nonces[i], SEAL_NONCE);
    test_free(nonces);
    keyring_free(keyring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_nonce_comes_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
