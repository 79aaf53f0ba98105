/* cursor_fixture.h - keys, a cursor as a feed has it, and its token. */
#ifndef CURSOR_FIXTURE_H
#define CURSOR_FIXTURE_H

#include "../../proxy/page/cursor.h"

#define NOW ((int64_t)1800000000)
#define DAY ((int64_t)86400)

#define KEY_ONE "pgseek-key v1 00000001 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n"
#define KEY_TWO "pgseek-key v1 00000002 IAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n"
/* The id of KEY_ONE with another secret. */
#define KEY_IMPOSTOR "pgseek-key v1 00000001 MAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n"

/* Bytes for values, as many as a token can hold. */
extern const uint8_t cursor_bytes[CURSOR_MAX_TOKEN];

/* The keys of a key file with this text. */
struct keyring *cursor_keys(const char *text);
/* A cursor with two keys, issued NOW. */
struct cursor cursor_of_feed(void);
/* Its token, to be freed. */
struct buf cursor_sealed(const struct keyring *keyring, bool sign, const struct cursor *cursor);

#endif
