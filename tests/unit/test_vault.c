/* test_vault.c - memory for keys: what the kernel says of its pages, and what a forked child finds in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../proxy/protocol/vault.h"

/* Copies the VmFlags of the mapping that holds `at` to `flags`; false when there is none. */
static bool flags_of(const void *at, char *flags, size_t size)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    bool is_here = false;
    bool found = false;
    assert_non_null(file);
    while (!found && fgets(line, sizeof line, file)) {
        uintptr_t first;
        uintptr_t end;
        if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
            is_here = first <= (uintptr_t)at && (uintptr_t)at < end;
        found = is_here && strncmp(line, "VmFlags:", 8) == 0;
    }
    fclose(file);
    snprintf(flags, size, "%s", found ? line : "");
    return found;
}

static void pages_are_locked_and_kept_out_of_dumps(void **state)
{
    static const size_t sizes[] = {0, 1, 32, 4080, 4081, 4096, 7000, 100000};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char flags[512];
        uint8_t *secret = vault_new(sizes[i]);
        assert_non_null(secret);
        assert_int_equal((uintptr_t)secret % 16, 0);
        for (size_t at = 0; at < sizes[i]; at++) {
            assert_int_equal(secret[at], 0);
            secret[at] = 0xa5;
        }
        const uint8_t *ends[] = {secret, secret + (sizes[i] ? sizes[i] - 1 : 0)};
        for (size_t end = 0; end < 2; end++) {
            assert_true(flags_of(ends[end], flags, sizeof flags));
            if (!strstr(flags, " dd") || !strstr(flags, " wf"))
                fail_msg("%zu bytes: %s", sizes[i], flags);
            if (!strstr(flags, " lo"))
                print_message("not locked, the limit may be too small: %s", flags);
        }
        vault_free(secret);
    }
    vault_free(NULL);
}

/* A page in front and one behind are nobody's. */
static void neighbours_are_out_of_reach(void **state)
{
    char flags[512];
    uint8_t *secret = vault_new(4000);
    (void)state;
    assert_non_null(secret);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uint8_t *begin = secret - (uintptr_t)secret % page;
    assert_true(flags_of(begin - 1, flags, sizeof flags));
    assert_null(strstr(flags, " rd"));
    assert_true(flags_of(begin + page, flags, sizeof flags));
    assert_null(strstr(flags, " rd"));
    vault_free(secret);
}

static void a_child_inherits_nothing(void **state)
{
    int status;
    uint8_t *secret = vault_new(32);
    (void)state;
    assert_non_null(secret);
    memset(secret, 0xa5, 32);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (size_t i = 0; i < 32; i++)
            if (secret[i] != 0)
                _exit(1);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(secret[31], 0xa5);
    vault_free(secret);
}

/* Without the right to lock it works all the same. */
static void a_small_limit_is_no_obstacle(void **state)
{
    struct rlimit old;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &old), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &none), 0);
    uint8_t *secret = vault_new(32);
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &old), 0);
    assert_non_null(secret);
    secret[31] = 1;
    vault_free(secret);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    mem_fail_after(0);
    void *secret = vault_new(32);
    mem_fail_after(-1);
    assert_null(secret);
    assert_null(vault_new(SIZE_MAX / 2 - 65536));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_locked_and_kept_out_of_dumps),
        cmocka_unit_test(neighbours_are_out_of_reach),
        cmocka_unit_test(a_child_inherits_nothing),
        cmocka_unit_test(a_small_limit_is_no_obstacle),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
