/* fuzz_login.c - a log-in with real peers, whose messages are cut, spoilt, and joined by others: whoever does not know
 * the password never gets as far as the server.
 *
 * The first two bytes choose who meets whom (config_of()); then come steps, each a byte and what it needs
 * (take_step()).
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxy/admin/conf.h"
#include "../../proxy/admin/log.h"
#include "../../proxy/auth/credentials.h"
#include "../../proxy/session/session.h"
#include "../conversation/login_peer.c" /* the same peers as the conversation tests have */
#include "target.h"
#include "twin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OURS 7
#define THEIRS 9

struct login {
    struct session_env env;
    struct session *session;
    struct login_client client;
    struct login_server server;
    struct channel front, back;
    bool relays, is_connected;
    unsigned lookup; /* 0: none; 1: finds; 2: finds none; 3: fails */
};

/* ---- what stays the same ---- */

static struct credentials *credentials_of(enum hba_method otherwise)
{
    static struct credentials made[2];
    struct credentials *credentials = &made[otherwise == HBA_RELAY];
    struct secret secret = login_secret(false);
    struct buf list = {0};
    if (credentials->users)
        return credentials;
    buf_put_text(&list, "\"alice\" \"");
    secret_put(&secret, &list);
    buf_put_text(&list, "\"\n");
    credentials->users = userlist_read(buf_span(&list), "users", stderr);
    credentials->otherwise = otherwise;
    require(credentials->users != NULL);
    buf_fini(&list);
    return credentials;
}

static struct conf *conf_with(bool has_asker)
{
    static struct conf *made[2];
    if (!made[has_asker]) {
        made[has_asker] = conf_default("192.0.2.1", 5432);
        require(made[has_asker] != NULL);
        mem_free(made[has_asker]->auth_user);
        made[has_asker]->auth_user = mem_strndup("asker", has_asker ? 5 : 0);
    }
    return made[has_asker];
}

/* ---- carrying ---- */

static void deliver(struct login *login)
{
    struct buf heard = {0};
    collect(&login->env.to_frontend, &heard);
    if (login->client.heard.len < sizeof login->client.heard.text / 2)
        login_client_take(&login->client, buf_span(&heard));
    buf_clear(&heard);
    collect(&login->env.to_backend, &heard);
    if (login->is_connected && login->server.heard.len < sizeof login->server.heard.text / 2)
        login_server_take(&login->server, buf_span(&heard));
    buf_fini(&heard);
}

/* Somebody who does not know the password has not been let through. */
static void obey(struct login *login)
{
    struct secret secret = login_secret(false);
    for (;;) {
        switch (session_next(login->session)) {
        case SESSION_LOOK_UP:
            session_secret(login->session,
                           &(struct session_looked_up){.secret = login->lookup == 1 ? &secret : NULL,
                                                       .none = "none",
                                                       .failed = login->lookup == 3 ? "no server" : NULL});
            break;
        case SESSION_CONNECT:
            require(login->relays || (!login->client.is_wrong && login->lookup < 2));
            login->is_connected = true;
            session_connected(login->session, 0, NULL, login->server.shown ? &login->back : NULL);
            break;
        default: return;
        }
        deliver(login);
    }
}

static bool feed(struct login *login, enum side from, const uint8_t *bytes, size_t len)
{
    if (!len || session_next(login->session) == SESSION_CLOSE || !session_reads(login->session, from))
        return false;
    uint8_t *copy = mem_dup(bytes, len);
    require(copy != NULL);
    session_feed(login->session, from, span_of(copy, len));
    deliver(login);
    mem_free(copy);
    obey(login);
    return true;
}

static bool carry(struct login *login, enum side from, size_t most)
{
    struct buf *out = from == SIDE_FRONTEND ? &login->client.out : &login->server.out;
    size_t len = most && most < out->len ? most : out->len;
    uint8_t *bytes = mem_dup(out->ptr, len);
    bool ok = bytes && len && session_reads(login->session, from);
    if (ok)
        buf_consume(out, len);
    ok = ok && feed(login, from, bytes, len);
    mem_free(bytes);
    return ok;
}

/* ---- steps ---- */

static struct span take(struct span *input, size_t len)
{
    struct span taken = span_of(input->ptr, len < input->len ? len : input->len);
    *input = span_of(input->ptr + taken.len, input->len - taken.len);
    return taken;
}

static uint8_t take_byte(struct span *input)
{
    struct span taken = take(input, 1);
    return taken.len ? taken.ptr[0] : 0;
}

static void spoil(struct buf *out, uint8_t at, uint8_t mask)
{
    if (out->len)
        out->ptr[at % out->len] ^= mask;
}

static void take_step(struct login *login, struct span *input)
{
    uint8_t step = take_byte(input);
    enum side side = step & 1 ? SIDE_BACKEND : SIDE_FRONTEND;
    struct buf *out = side == SIDE_FRONTEND ? &login->client.out : &login->server.out;
    uint8_t count = take_byte(input);
    struct span raw;
    switch (step / 2 % 3) {
    case 0: carry(login, side, count); return;
    case 1: spoil(out, count, take_byte(input)); return;
    default:
        raw = take(input, count);
        feed(login, side, raw.ptr, raw.len);
        return;
    }
}

static void config_of(struct login *login, uint8_t who, uint8_t what)
{
    login->relays = who & 1;
    login->lookup = who >> 1 & 3;
    login->client = (struct login_client){.user = login->lookup ? "carol" : "alice",
                                          .is_wrong = who & 8,
                                          .binds = who & 16,
                                          .insists = who & 32,
                                          .seen = who & 64 ? OURS : 0,
                                          .minor = who & 128 ? 9999 : 0};
    login->server = (struct login_server){.asks = (enum login_asks)(what % (REFUSES_LATE + 1)),
                                          .shown = what & 32 ? THEIRS : 0,
                                          .is_old = what & 64,
                                          .has_other = what & 128};
}

static void begin(struct login *login)
{
    static const struct session_peer peer = {.name = "192.0.2.7:1234", .from = {.family = ADDRESS_IP4}};
    login->env = (struct session_env){.conf = conf_with(login->lookup != 0),
                                      .credentials = credentials_of(login->relays ? HBA_RELAY : HBA_SCRAM),
                                      .has_tls = true,
                                      .now = fixed_clock};
    login->session = session_new(&login->env, &peer, 1);
    require(login->session != NULL);
    login->front = login_channel(OURS);
    login->back = login_channel(THEIRS);
    login_client_start(&login->client);
    login_server_start(&login->server);
    if (login->client.seen && session_begins_tls(login->session))
        session_secured(login->session, &login->front);
}

static void end(struct login *login)
{
    session_free(login->session);
    login_client_fini(&login->client);
    login_server_fini(&login->server);
    sink_fini(&login->env.to_frontend);
    sink_fini(&login->env.to_backend);
}

static void check(struct span input)
{
    struct login login = {0};
    uint8_t who = take_byte(&input);
    config_of(&login, who, take_byte(&input));
    begin(&login);
    while (input.len)
        take_step(&login, &input);
    for (int turns = 0; turns < 100; turns++)
        if (!carry(&login, SIDE_FRONTEND, 0) && !carry(&login, SIDE_BACKEND, 0))
            break;
    end(&login);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    log_threshold = LOG_FATAL;
    twin_run(check, span_of(data, size));
    return 0;
}
