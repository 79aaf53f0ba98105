/* address.h - where a peer is, as rules about addresses need it.
 *
 * It is a value; it must not know sockets. An IPv4 address mapped into IPv6 is given as IPv4. */
#ifndef ADDRESS_H
#define ADDRESS_H

#include "bytes.h"

enum address_family { ADDRESS_UNIX, ADDRESS_IP4, ADDRESS_IP6 };

struct address {
    enum address_family family;
    uint8_t bytes[16]; /* in network order, of which ADDRESS_IP4 uses 4 and ADDRESS_UNIX none */
};

#endif
