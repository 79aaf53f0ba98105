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

/* The very address that a server was reached at, of the several that its name may stand for. It is written and read by
 * the socket layer, and carried by all others; len 0: none. */
struct server_address {
    uint8_t len;
    uint8_t bytes[111]; /* any sockaddr of a stream, a Unix socket's included */
};

#endif
