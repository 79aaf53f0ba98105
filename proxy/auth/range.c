/* range.c - reads and compares address ranges. */
#include "range.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

static size_t address_len(enum address_family family)
{
    return family == ADDRESS_IP4 ? 4 : family == ADDRESS_IP6 ? 16 : 0;
}

/* ---- from text ---- */

static bool range_read_address(const char *text, struct address *address)
{
    *address = (struct address){.family = strchr(text, ':') ? ADDRESS_IP6 : ADDRESS_IP4};
    return inet_pton(address->family == ADDRESS_IP6 ? AF_INET6 : AF_INET, text, address->bytes) == 1;
}

/* Peers come with such addresses as IPv4: the range would match nobody, a reject line least of all. */
static bool range_is_mapped(const struct range *range)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return range->address.family == ADDRESS_IP6 && memcmp(range->address.bytes, prefix, sizeof prefix) == 0;
}

static bool range_read_bits(const char *text, struct range *range)
{
    size_t most = 8 * address_len(range->address.family);
    size_t bits = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 3 || text[digits])
        return false;
    for (size_t i = 0; i < digits; i++)
        bits = 10 * bits + (size_t)(text[i] - '0');
    if (bits > most)
        return false;
    for (size_t i = 0; i < bits; i++)
        range->mask[i / 8] |= (uint8_t)(0x80u >> i % 8);
    return true;
}

enum range_result range_read(const char *text, struct range *range, const char **why)
{
    char address[INET6_ADDRSTRLEN];
    size_t len = strcspn(text, "/");
    *range = (struct range){0};
    *why = "is not an address: host names are not looked up, write an IP address";
    if (len >= sizeof address)
        return RANGE_BAD;
    memcpy(address, text, len);
    address[len] = '\0';
    if (!range_read_address(address, &range->address))
        return RANGE_BAD;
    *why = "is an IPv4 address written as IPv6: such clients are matched by their IPv4 address, write that";
    if (range_is_mapped(range))
        return RANGE_BAD;
    if (text[len] == '\0')
        return RANGE_NO_MASK;
    *why = range->address.family == ADDRESS_IP4 ? "has no mask of 0 to 32 bits" : "has no mask of 0 to 128 bits";
    return range_read_bits(text + len + 1, range) ? RANGE_OK : RANGE_BAD;
}

enum range_result range_read_mask(const char *text, struct range *range, const char **why)
{
    struct address mask;
    *why = "is not a mask such as 255.255.255.0: write ADDRESS/BITS, or an address and its mask";
    if (!range_read_address(text, &mask))
        return RANGE_BAD;
    *why = "is a mask of another address family";
    if (mask.family != range->address.family)
        return RANGE_BAD;
    memcpy(range->mask, mask.bytes, sizeof range->mask);
    return RANGE_OK;
}

/* ---- comparing ---- */

bool range_holds(const struct range *range, const struct address *address)
{
    if (address->family != range->address.family)
        return false;
    for (size_t i = 0; i < address_len(address->family); i++)
        if ((address->bytes[i] ^ range->address.bytes[i]) & range->mask[i])
            return false;
    return address->family != ADDRESS_UNIX;
}

bool address_equal(const struct address *a, const struct address *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, address_len(a->family)) == 0;
}

/* ---- the machine's own ---- */

static bool range_take(const struct sockaddr *from, enum address_family *family, uint8_t bytes[16])
{
    if (!from || (from->sa_family != AF_INET && from->sa_family != AF_INET6))
        return false;
    *family = from->sa_family == AF_INET ? ADDRESS_IP4 : ADDRESS_IP6;
    const char *at = (const char *)from + (*family == ADDRESS_IP4 ? offsetof(struct sockaddr_in, sin_addr)
                                                                  : offsetof(struct sockaddr_in6, sin6_addr));
    memcpy(bytes, at, address_len(*family));
    return true;
}

/* An interface whose mask is missing or empty is a network of itself alone, as PostgreSQL has it: it must not let the
 * whole world be its neighbour. */
static bool range_of_interface(const struct ifaddrs *interface, struct range *range)
{
    static const uint8_t none[16];
    enum address_family family;
    *range = (struct range){0};
    if (!range_take(interface->ifa_addr, &range->address.family, range->address.bytes))
        return false;
    bool has_mask = range_take(interface->ifa_netmask, &family, range->mask) && family == range->address.family;
    if (!has_mask || memcmp(range->mask, none, sizeof none) == 0)
        memset(range->mask, 0xff, sizeof range->mask);
    return true;
}

struct range *range_of_interfaces(size_t *count)
{
    struct ifaddrs *interfaces;
    size_t room = 0;
    *count = 0;
    if (getifaddrs(&interfaces) != 0)
        return NULL;
    for (const struct ifaddrs *at = interfaces; at; at = at->ifa_next)
        room++;
    struct range *ranges = room ? mem_zalloc(room * sizeof *ranges) : NULL;
    errno = room ? ENOMEM : ENODEV;
    for (const struct ifaddrs *at = interfaces; ranges && at; at = at->ifa_next)
        *count += range_of_interface(at, &ranges[*count]);
    freeifaddrs(interfaces);
    return ranges;
}
