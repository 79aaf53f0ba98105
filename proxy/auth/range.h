/* range.h - ranges of IP addresses: as rules write them, and as the machine's interfaces have them.
 *
 * It knows numbers only: names are refused, since nobody should get in by what DNS says. */
#ifndef RANGE_H
#define RANGE_H

#include "../protocol/address.h"

struct range {
    struct address address; /* ADDRESS_IP4 or ADDRESS_IP6 */
    uint8_t mask[16];
};

enum range_result {
    RANGE_OK,
    RANGE_NO_MASK, /* an address alone: the mask is the next field */
    RANGE_BAD      /* *why says what is wrong with it: the end of a sentence, static */
};

/* "10.0.0.0/8", "::1/128", "10.0.0.1". */
enum range_result range_read(const char *text, struct range *range, const char **why) MUST_USE;
/* "255.0.0.0", behind RANGE_NO_MASK. */
enum range_result range_read_mask(const char *text, struct range *range, const char **why) MUST_USE;
bool range_holds(const struct range *range, const struct address *address);
bool address_equal(const struct address *a, const struct address *b);

/* The addresses of this machine's interfaces, each with its network's mask. To be given back to mem_free(). NULL with
 * errno when they cannot be told, and when there is none. */
struct range *range_of_interfaces(size_t *count) MUST_USE;

#endif
