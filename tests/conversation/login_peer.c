/* login_peer.c - what each end says to what it hears. */
#include "login_peer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxy/auth/scram_key.h"
#include "../../proxy/auth/scram_text.h"
#include "../../proxy/protocol/wire.h"

#define NONCE "a-nonce-of-24-characters"

/* ---- what both know ---- */

static void key_of_password(uint8_t key[SCRAM_KEY], bool is_wrong)
{
    memset(key, is_wrong ? 0x33 : 0x11, SCRAM_KEY);
}

static void derive(struct secret *secret, bool is_wrong)
{
    uint8_t key[SCRAM_KEY];
    key_of_password(key, is_wrong);
    if (!scram_key_hash(key, secret->stored_key))
        abort();
    memset(secret->server_key, 0x22, SCRAM_KEY);
}

struct secret login_secret(bool other)
{
    struct secret secret = {.iterations = 4096, .salt_len = 16};
    memset(secret.salt, other ? 's' : 'a', secret.salt_len);
    derive(&secret, false);
    return secret;
}

struct channel login_channel(uint8_t certificate)
{
    struct channel channel = {.version = "TLSv1.3", .cipher = "TEST", .binding_len = 32};
    memset(channel.binding, certificate, channel.binding_len);
    return channel;
}

/* Memory that no test can make fail. */
static void reserve(struct buf *buf, size_t cap)
{
    buf->ptr = malloc(cap);
    buf->cap = cap;
    if (!buf->ptr)
        abort();
}

static void note(struct login_record *record, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct login_record *record, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(record->text + record->len, sizeof record->text - record->len, format, args);
    va_end(args);
    record->len += (size_t)len;
    if (record->len >= sizeof record->text)
        abort();
}

static void put_message(struct buf *out, char type, const void *body, size_t len)
{
    size_t at = wire_open(out, type);
    buf_put(out, body, len);
    wire_close(out, at);
}

/* The next whole message off the front; false when there is none. */
static bool next_message(struct buf *in, uint8_t *type, struct buf *body)
{
    if (in->len < WIRE_HEADER || in->len < 1 + (size_t)get_u32(in->ptr + 1))
        return false;
    size_t len = 1 + (size_t)get_u32(in->ptr + 1);
    *type = in->ptr[0];
    buf_clear(body);
    buf_put(body, in->ptr + WIRE_HEADER, len - WIRE_HEADER);
    buf_put_u8(body, 0); /* so that texts can be printed */
    buf_consume(in, len);
    return true;
}

/* ---- the client ---- */

void login_client_start(struct login_client *client)
{
    struct buf *out = &client->out;
    reserve(&client->in, 16384);
    reserve(&client->error, 4096);
    reserve(out, 16384);
    buf_put_u32(out, 0);
    buf_put_u32(out, 196608 + client->minor);
    buf_put_cstr(out, "user");
    buf_put_cstr(out, client->user);
    buf_put_cstr(out, "database");
    buf_put_cstr(out, "d");
    for (const char *c = client->more ? client->more : ""; *c; c++)
        buf_put_u8(out, *c == '|' ? 0 : (uint8_t)*c);
    buf_put_u8(out, 0);
    set_u32(out->ptr, (uint32_t)out->len);
}

static bool is_offered(struct span offer, const char *mechanism)
{
    return memmem(offer.ptr, offer.len, mechanism, strlen(mechanism) + 1) != NULL;
}

/* The same first text again, of an exchange that knows what the password makes of `expected`'s salt. */
static const char *begin_exchange(struct login_client *client, struct buf *text)
{
    static const char both[] = SCRAM_PLUS "\0" SCRAM_PLAIN "\0";
    static const char plain[] = SCRAM_PLAIN "\0";
    uint8_t key[SCRAM_KEY];
    struct channel channel = login_channel(client->seen);
    const char *mechanism = "";
    const char *why;
    bool says_y = !client->has_chosen_plus && ((client->binds && client->seen) || client->insists);
    key_of_password(key, client->is_wrong);
    scram_client_free(client->scram);
    client->scram = scram_client_new(
        &client->expected, key, span_of(channel.binding, client->has_chosen_plus || says_y ? channel.binding_len : 0));
    if (client->scram)
        (void)!scram_client_first_nonce(
            client->scram, client->has_chosen_plus ? span_of(both, sizeof both) : span_of(plain, sizeof plain),
            span_cstr(NONCE), &mechanism, text, &why);
    return mechanism;
}

static void hear_offer(struct login_client *client, struct span offer)
{
    struct buf text = {0};
    bool has_plus = is_offered(offer, SCRAM_PLUS);
    note(&client->heard, "sasl(%s%s%s) ", has_plus ? "PLUS" : "", has_plus && is_offered(offer, SCRAM_PLAIN) ? "," : "",
         is_offered(offer, SCRAM_PLAIN) ? "PLAIN" : "");
    if (client->says) {
        put_message(&client->out, client->says[0], client->says + 1, client->says_len - 1);
        return;
    }
    client->has_chosen_plus = has_plus && client->binds && client->seen;
    client->expected = login_secret(false);
    const char *mechanism = begin_exchange(client, &text);
    size_t at = wire_open(&client->out, 'p');
    buf_put_cstr(&client->out, mechanism);
    buf_put_u32(&client->out, (uint32_t)text.len);
    buf_put_span(&client->out, buf_span(&text));
    wire_close(&client->out, at);
    buf_fini(&text);
}

static void hear_challenge(struct login_client *client, struct span challenge)
{
    struct scram_server_first first;
    struct buf text = {0};
    const char *why;
    note(&client->heard, "continue ");
    if (scram_text_server_first(challenge, &first))
        return;
    client->expected = (struct secret){.iterations = first.iterations, .salt_len = first.salt_len};
    memcpy(client->expected.salt, first.salt, first.salt_len);
    derive(&client->expected, client->is_wrong);
    begin_exchange(client, &text);
    buf_clear(&text);
    if (client->scram && scram_client_final(client->scram, challenge, &text, &why) == SCRAM_OK)
        put_message(&client->out, 'p', text.ptr, text.len);
    buf_fini(&text);
    if (client->is_hasty)
        wire_put_query(&client->out, "select 1");
}

static void hear_request(struct login_client *client, struct span body)
{
    const char *why;
    struct span rest = span_of(body.ptr + 4, body.len - 4);
    switch (get_u32(body.ptr)) {
    case 0: note(&client->heard, "ok "); return;
    case 3: note(&client->heard, "password "); break;
    case 5: note(&client->heard, "md5 "); break;
    case 7: note(&client->heard, "gss "); break;
    case 8: note(&client->heard, "gss+ "); break;
    case 10: hear_offer(client, rest); return;
    case 11: hear_challenge(client, rest); return;
    case 12:
        note(&client->heard,
             client->scram && scram_client_verify(client->scram, rest, &why) == SCRAM_OK ? "signed " : "unsigned ");
        return;
    default: note(&client->heard, "R%u ", get_u32(body.ptr)); return;
    }
    put_message(&client->out, 'p', "word", 5);
}

static void client_hear(struct login_client *client, uint8_t type, struct span body)
{
    struct span field;
    if ((type == 'R' && body.len < 4) || (type == 'v' && body.len < 8))
        note(&client->heard, "short ");
    else if (type == 'R')
        hear_request(client, body);
    else if (type == 'E') {
        buf_clear(&client->error);
        buf_put_span(&client->error, body);
        note(&client->heard, "E(%s) ", wire_error_field(body, 'C', &field) ? (const char *)field.ptr : "?");
    } else if (type == 'v')
        note(&client->heard, "v(%u.%u,%u) ", get_u32(body.ptr) >> 16, get_u32(body.ptr) & 0xffff,
             get_u32(body.ptr + 4));
    else
        note(&client->heard, "%c ", type);
}

void login_client_take(struct login_client *client, struct span bytes)
{
    uint8_t type;
    struct buf body = {0};
    reserve(&body, 8192);
    buf_put_span(&client->in, bytes);
    while (next_message(&client->in, &type, &body))
        client_hear(client, type, span_of(body.ptr, body.len - 1));
    buf_fini(&body);
}

void login_client_fini(struct login_client *client)
{
    scram_client_free(client->scram);
    buf_fini(&client->in);
    buf_fini(&client->out);
    buf_fini(&client->error);
}

/* ---- the server ---- */

static void ask(struct login_server *server, uint32_t code, const void *rest, size_t len)
{
    size_t at = wire_open(&server->out, 'R');
    buf_put_u32(&server->out, code);
    buf_put(&server->out, rest, len);
    wire_close(&server->out, at);
}

static void put_refusal(struct login_server *server, const char *sqlstate)
{
    wire_put_error(&server->out, 'E',
                   &(struct wire_error){.severity = "FATAL", .sqlstate = sqlstate, .message = "the server says no"});
}

static void welcome(struct login_server *server)
{
    ask(server, 0, NULL, 0);
    wire_put_status(&server->out, "client_encoding", "UTF8");
    put_message(&server->out, 'K', "\0\0\x12\x67\1\2\3\4", 8);
    wire_put_ready(&server->out, 'I');
    server->is_up = true;
}

static void offer(struct login_server *server)
{
    struct secret secret = login_secret(server->has_other);
    struct channel channel = login_channel(server->shown);
    struct buf text = {0};
    scram_server_free(server->scram);
    server->scram = scram_server_new(&secret, span_of(channel.binding, server->shown ? channel.binding_len : 0));
    server->has_begun = false;
    reserve(&text, 128);
    if (server->shown)
        buf_put_cstr(&text, SCRAM_PLUS);
    if (server->asks != ASKS_PLUS_ONLY)
        buf_put_cstr(&text, SCRAM_PLAIN);
    buf_put_u8(&text, 0);
    ask(server, 10, text.ptr, text.len);
    buf_fini(&text);
}

static void greet(struct login_server *server, struct span startup)
{
    uint32_t version = get_u32(startup.ptr + 4);
    note(&server->heard, "startup(3.%u", version & 0xffff);
    for (const uint8_t *c = startup.ptr + 8; c < startup.ptr + startup.len - 1; c += strlen((const char *)c) + 1)
        note(&server->heard, " %s", (const char *)c);
    note(&server->heard, ") ");
    if (server->is_old && version > 196608)
        put_message(&server->out, 'v', "\0\3\0\0\0\0\0\0", 8);
    if (server->gives_notice)
        wire_put_error(&server->out, 'N',
                       &(struct wire_error){.severity = "NOTICE", .sqlstate = "00000", .message = "hello"});
    switch (server->asks) {
    case ASKS_NOTHING: welcome(server); return;
    case ASKS_PASSWORD: ask(server, 3, NULL, 0); return;
    case ASKS_MD5: ask(server, 5, "salt", 4); return;
    case ASKS_GSS: ask(server, 7, NULL, 0); return;
    case ASKS_OTHER_SASL: ask(server, 10, "OAUTHBEARER\0", 13); return;
    case ASKS_ROWS: wire_put_text_row(&server->out, "a row"); return;
    case REFUSES: put_refusal(server, "3D000"); return;
    default: offer(server); return;
    }
}

static void hear_initial(struct login_server *server, struct span body)
{
    struct reader rd = rd_init(body);
    struct span mechanism = rd_cstr(&rd);
    struct span first = rd_bytes(&rd, rd_u32(&rd));
    struct buf text = {0};
    const char *why = "";
    note(&server->heard, "%s(%c) ", span_equal_cstr(mechanism, SCRAM_PLUS) ? "PLUS" : "PLAIN",
         first.len ? first.ptr[0] : '?');
    server->has_begun = true;
    if (server->asks == ASKS_LONG) {
        static char filler[20000];
        memset(filler, 'x', sizeof filler);
        ask(server, 11, filler, sizeof filler);
    } else if (server->asks == ASKS_TWICE) {
        offer(server);
    } else if (scram_server_first(server->scram, mechanism, first, &text, &why) == SCRAM_OK) {
        ask(server, 11, text.ptr, text.len);
    } else {
        put_refusal(server, "28000");
    }
    buf_fini(&text);
}

static void hear_proof(struct login_server *server, struct span body)
{
    uint8_t key[SCRAM_KEY];
    struct buf text = {0};
    const char *why = "";
    bool is_right = scram_server_final(server->scram, body, &text, key, &why) == SCRAM_OK;
    note(&server->heard, is_right ? "proof " : "wrong ");
    if (server->asks == REFUSES_LATE || !is_right) {
        put_refusal(server, "28P01");
    } else {
        if (server->asks == ASKS_FORGED)
            text.ptr[4] = text.ptr[4] == 'A' ? 'B' : 'A';
        if (server->asks != ASKS_UNSIGNED)
            ask(server, 12, text.ptr, text.len);
        welcome(server);
    }
    buf_fini(&text);
}

static void server_hear(struct login_server *server, uint8_t type, struct span body)
{
    if (server->is_up && type == 'Q') {
        note(&server->heard, "Q ");
        wire_put_command(&server->out, "SELECT 1");
        wire_put_ready(&server->out, 'I');
    } else if (type != 'p') {
        note(&server->heard, "%c ", type);
    } else if (server->asks >= ASKS_SCRAM && server->asks != ASKS_OTHER_SASL && !server->scram) {
        note(&server->heard, "- "); /* out of memory */
    } else if (server->scram && !server->has_begun) {
        hear_initial(server, body);
    } else if (server->scram) {
        hear_proof(server, body);
    } else if (server->asks == ASKS_GSS) {
        note(&server->heard, "p ");
        server->asks = ASKS_NOTHING;
        ask(server, 8, "token", 5);
    } else {
        note(&server->heard, "p ");
        welcome(server);
    }
}

void login_server_start(struct login_server *server)
{
    reserve(&server->in, 32768);
    reserve(&server->out, 65536);
}

void login_server_take(struct login_server *server, struct span bytes)
{
    uint8_t type;
    struct buf body = {0};
    reserve(&body, 32768);
    buf_put_span(&server->in, bytes);
    if (!server->heard.len && server->in.len >= 4 && server->in.len >= get_u32(server->in.ptr)) {
        size_t len = get_u32(server->in.ptr);
        greet(server, span_of(server->in.ptr, len));
        buf_consume(&server->in, len);
    }
    while (server->heard.len && next_message(&server->in, &type, &body))
        server_hear(server, type, span_of(body.ptr, body.len - 1));
    buf_fini(&body);
}

void login_server_fini(struct login_server *server)
{
    scram_server_free(server->scram);
    buf_fini(&server->in);
    buf_fini(&server->out);
}
