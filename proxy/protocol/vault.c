/* vault.c - memory for keys, on mmap(): locks and dump advice hold for whole pages.
 *
 * OpenSSL has such a heap, but of a fixed size: whoever comes when it is full gets nothing, and its own private keys
 * and their arithmetic would move in, so that many handshakes at once could fail. */
#include "vault.h"

#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* In front of what the caller gets. */
struct vault {
    alignas(max_align_t) size_t pages; /* without the two around it */
};

static size_t vault_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void *vault_new(size_t len)
{
    size_t page = vault_page();
    size_t pages = (len + sizeof(struct vault) + page - 1) / page;
    void *sign = mem_alloc(0); /* tests let allocations fail, and count these too */
    mem_free(sign);
    if (!sign)
        return NULL;
    uint8_t *around = mmap(NULL, (pages + 2) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (around == MAP_FAILED)
        return NULL;
    if (mprotect(around + page, pages * page, PROT_READ | PROT_WRITE) < 0) {
        munmap(around, (pages + 2) * page);
        return NULL;
    }
    (void)mlock(around + page, pages * page);
    (void)madvise(around + page, pages * page, MADV_DONTDUMP);
    (void)madvise(around + page, pages * page, MADV_WIPEONFORK);
    struct vault *vault = (struct vault *)(void *)(around + page);
    vault->pages = pages;
    return vault + 1;
}

void vault_free(void *ptr)
{
    if (!ptr)
        return;
    size_t page = vault_page();
    struct vault *vault = (struct vault *)ptr - 1;
    size_t pages = vault->pages;
    explicit_bzero(vault, pages * page);
    munmap((uint8_t *)vault - page, (pages + 2) * page);
}
