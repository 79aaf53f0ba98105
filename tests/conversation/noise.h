/* noise.h - spoils whole messages: other types, lengths and bytes, messages dropped, doubled, put in between.
 *
 * It must not know which side it plays; the same seed always does the same damage. */
#ifndef NOISE_H
#define NOISE_H

#include "../../proxy/protocol/bytes.h"

/* Appends `messages` to `out`, some of them spoilt. *seed must not be 0; it goes on from call to call. */
void noise_put(uint64_t *seed, struct span messages, struct buf *out);

#endif
