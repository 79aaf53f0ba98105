/* test_login.c - who proves what to whom: log-ins that end here and log-ins that are relayed, in every combination of
 * TLS on both sides, cut at every byte.
 *
 * Peers speak real SCRAM (login_peer.c), so a log-in succeeds only when every signature is right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/auth/credentials.h"
#include "../../proxy/session/session.h"
#include "login_peer.h"
#include "talk.h"

#define OURS 7      /* the certificate that we show to clients ... */
#define THEIRS 9    /* ... and the server's */
#define UP "S K Z " /* what follows AuthenticationOk */

enum lookup { LOOKUP_NEVER, LOOKUP_FINDS, LOOKUP_FINDS_NONE, LOOKUP_FAILS };

struct scene {
    const char *name;
    struct login_client client;
    struct login_server server;
    const char *rules;  /* auth_hba_file; NULL: `relays`, or SCRAM for everybody */
    const char *ident;  /* auth_ident_file */
    const char *common; /* common name of the client's certificate */
    bool relays;
    enum lookup lookup;
    const char *as_user; /* the line of [databases] has user= */
    const char *heard;   /* by the client ... */
    const char *asked;   /* ... and by the server */
};

#define ALICE .user = "alice"
#define OFFER "sasl(PLAIN) continue signed "
#define OFFER_PLUS "sasl(PLUS,PLAIN) continue signed "
#define TO_LOGIN "startup(3.0 user alice database d) "

static const struct scene scenes[] = {
    /* what ends here: every combination of the two legs */
    {"plain, plain", {ALICE}, {.asks = ASKS_SCRAM}, .heard = OFFER "ok " UP, .asked = TO_LOGIN "PLAIN(n) proof "},
    {"TLS, plain",
     {ALICE, .seen = OURS, .binds = true},
     {.asks = ASKS_SCRAM},
     .heard = OFFER_PLUS "ok " UP,
     .asked = TO_LOGIN "PLAIN(n) proof "},
    {"plain, TLS",
     {ALICE},
     {.asks = ASKS_SCRAM, .shown = THEIRS},
     .heard = OFFER "ok " UP,
     .asked = TO_LOGIN "PLUS(p) proof "},
    {"TLS, TLS",
     {ALICE, .seen = OURS, .binds = true},
     {.asks = ASKS_SCRAM, .shown = THEIRS},
     .heard = OFFER_PLUS "ok " UP,
     .asked = TO_LOGIN "PLUS(p) proof "},
    {"TLS, TLS, the client does not bind",
     {ALICE, .seen = OURS},
     {.asks = ASKS_SCRAM, .shown = THEIRS},
     .heard = OFFER_PLUS "ok " UP,
     .asked = TO_LOGIN "PLUS(p) proof "},
    {"the client would bind, without TLS",
     {ALICE, .insists = true},
     {.asks = ASKS_SCRAM, .shown = THEIRS},
     .heard = OFFER "ok " UP,
     .asked = TO_LOGIN "PLUS(p) proof "},
    {"the offer of PLUS was hidden from the client",
     {ALICE, .seen = OURS, .insists = true},
     {.asks = ASKS_SCRAM},
     .heard = "sasl(PLUS,PLAIN) E(28000) CLOSED"},
    {"only PLUS",
     {ALICE},
     {.asks = ASKS_PLUS_ONLY, .shown = THEIRS},
     .heard = OFFER "ok " UP,
     .asked = TO_LOGIN "PLUS(p) proof "},
    {"a query at once",
     {ALICE, .is_hasty = true},
     {.asks = ASKS_SCRAM},
     .heard = OFFER "ok " UP "C Z ",
     .asked = TO_LOGIN "PLAIN(n) proof Q "},
    /* what a stranger can see is one and the same */
    {"wrong password",
     {ALICE, .is_wrong = true},
     {.asks = ASKS_SCRAM},
     .heard = "sasl(PLAIN) continue E(28P01) CLOSED"},
    {"wrong password, bound",
     {ALICE, .is_wrong = true, .seen = OURS, .binds = true},
     {.asks = ASKS_SCRAM},
     .heard = "sasl(PLUS,PLAIN) continue E(28P01) CLOSED"},
    {"nobody", {.user = "nobody"}, {.asks = ASKS_SCRAM}, .heard = "sasl(PLAIN) continue E(28P01) CLOSED"},
    {"no user", {.user = ""}, {.asks = ASKS_SCRAM}, .heard = "E(28000) CLOSED"},
    {"another certificate in the middle",
     {ALICE, .seen = THEIRS, .binds = true},
     {.asks = ASKS_SCRAM},
     .heard = "sasl(PLUS,PLAIN) continue E(28P01) CLOSED"},
    /* servers */
    {"trust", {ALICE}, {.asks = ASKS_NOTHING}, .heard = OFFER "ok " UP, .asked = TO_LOGIN},
    {"password", {ALICE}, {.asks = ASKS_PASSWORD}, .heard = OFFER "E(28000) CLOSED", .asked = TO_LOGIN},
    {"md5", {ALICE}, {.asks = ASKS_MD5}, .heard = OFFER "E(28000) CLOSED", .asked = TO_LOGIN},
    {"gss", {ALICE}, {.asks = ASKS_GSS}, .heard = OFFER "E(28000) CLOSED", .asked = TO_LOGIN},
    {"another SASL", {ALICE}, {.asks = ASKS_OTHER_SASL}, .heard = OFFER "E(28000) CLOSED", .asked = TO_LOGIN},
    {"another salt",
     {ALICE},
     {.asks = ASKS_SCRAM, .has_other = true},
     .heard = OFFER "E(28000) CLOSED",
     .asked = TO_LOGIN "PLAIN(n) "},
    {"only PLUS, without TLS", {ALICE}, {.asks = ASKS_PLUS_ONLY}, .heard = OFFER "E(28000) CLOSED", .asked = TO_LOGIN},
    {"a server that knows no secret",
     {ALICE},
     {.asks = ASKS_UNSIGNED},
     .heard = OFFER "E(28000) CLOSED",
     .asked = TO_LOGIN "PLAIN(n) proof "},
    {"a forged signature",
     {ALICE},
     {.asks = ASKS_FORGED},
     .heard = OFFER "E(28000) CLOSED",
     .asked = TO_LOGIN "PLAIN(n) proof "},
    {"an offer out of turn",
     {ALICE},
     {.asks = ASKS_TWICE},
     .heard = OFFER "E(08P01) CLOSED",
     .asked = TO_LOGIN "PLAIN(n) "},
    {"a row out of turn", {ALICE}, {.asks = ASKS_ROWS}, .heard = OFFER "E(08P01) CLOSED", .asked = TO_LOGIN},
    {"a giant challenge",
     {ALICE},
     {.asks = ASKS_LONG},
     .heard = OFFER "E(08P01) CLOSED",
     .asked = TO_LOGIN "PLAIN(n) "},
    {"the server refuses", {ALICE}, {.asks = REFUSES}, .heard = OFFER "E(3D000) ", .asked = TO_LOGIN},
    {"the server refuses late",
     {ALICE},
     {.asks = REFUSES_LATE},
     .heard = OFFER "E(28P01) ",
     .asked = TO_LOGIN "PLAIN(n) proof "},
    {"a notice before the log-in",
     {ALICE},
     {.asks = ASKS_SCRAM, .gives_notice = true},
     .heard = OFFER "ok " UP,
     .asked = TO_LOGIN "PLAIN(n) proof "},
    /* the protocol's version: the client hears one answer, and before it is asked for anything */
    {"3.2",
     {ALICE, .minor = 2},
     {.asks = ASKS_SCRAM},
     .heard = OFFER "ok " UP,
     .asked = "startup(3.2 user alice database d) PLAIN(n) proof "},
    {"3.2 and an old server",
     {ALICE, .minor = 2},
     {.asks = ASKS_SCRAM, .is_old = true},
     .heard = OFFER "ok " UP,
     .asked = "startup(3.2 user alice database d) PLAIN(n) proof "},
    {"3.9999",
     {ALICE, .minor = 9999},
     {.asks = ASKS_SCRAM},
     .heard = "v(3.2,0) " OFFER "ok " UP,
     .asked = "startup(3.2 user alice database d) PLAIN(n) proof "},
    {"3.9999 and an option",
     {ALICE, .minor = 9999, .more = "_pq_.a|x|_pq_.b|y|"},
     {.asks = ASKS_SCRAM, .is_old = true},
     .heard = "v(3.2,2) " OFFER "ok " UP,
     .asked = "startup(3.2 user alice database d) PLAIN(n) proof "},
    {"3.0 and an option",
     {ALICE, .more = "_pq_.a|x|application_name|a|"},
     {.asks = ASKS_SCRAM},
     .heard = "v(3.0,1) " OFFER "ok " UP,
     .asked = "startup(3.0 user alice database d application_name a) PLAIN(n) proof "},
    /* startup parameters */
    {"variables of ours",
     {ALICE, .more = "pgseek.walk|a|options|-c pgseek.mode=off|"},
     {.asks = ASKS_SCRAM},
     .heard = OFFER "ok " UP,
     .asked = TO_LOGIN "PLAIN(n) proof "},
    {"replication",
     {ALICE, .more = "replication|true|"},
     {.asks = ASKS_SCRAM, .shown = THEIRS},
     .heard = OFFER "ok " UP,
     .asked = "startup(3.0 user alice database d replication true) PLUS(p) proof "},
    {"two users", {ALICE, .more = "user|bob|"}, {.asks = ASKS_NOTHING}, .heard = "E(28000) CLOSED"},
    {"two databases", {ALICE, .more = "database|e|"}, {.asks = ASKS_NOTHING}, .heard = "E(28000) CLOSED"},
    {"another user on the server",
     {.user = "bob"},
     {.asks = ASKS_SCRAM},
     .as_user = "alice",
     .heard = OFFER "ok " UP,
     .asked = TO_LOGIN "PLAIN(n) proof "},
    /* auth_query */
    {"looked up",
     {.user = "carol"},
     {.asks = ASKS_SCRAM},
     .lookup = LOOKUP_FINDS,
     .heard = OFFER "ok " UP,
     .asked = "startup(3.0 user carol database d) PLAIN(n) proof "},
    {"not found",
     {.user = "carol"},
     {.asks = ASKS_SCRAM},
     .lookup = LOOKUP_FINDS_NONE,
     .heard = "sasl(PLAIN) continue E(28P01) CLOSED"},
    {"cannot be looked up",
     {.user = "carol"},
     {.asks = ASKS_SCRAM},
     .lookup = LOOKUP_FAILS,
     .heard = "E(08006) CLOSED"},
    {"the one who looks up is never looked up",
     {.user = "asker"},
     {.asks = ASKS_SCRAM},
     .lookup = LOOKUP_FINDS,
     .heard = "sasl(PLAIN) continue E(28P01) CLOSED"},
    {"known without a look-up",
     {ALICE},
     {.asks = ASKS_SCRAM},
     .lookup = LOOKUP_FINDS_NONE,
     .heard = OFFER "ok " UP,
     .asked = TO_LOGIN "PLAIN(n) proof "},
    /* rules */
    {"reject",
     {ALICE},
     {.asks = ASKS_NOTHING},
     .rules = "host all alice all reject\nhost all all all relay\n",
     .heard = "E(28000) CLOSED"},
    {"no line", {ALICE}, {.asks = ASKS_NOTHING}, .rules = "host all bob all relay\n", .heard = "E(28000) CLOSED"},
    {"no line without TLS",
     {ALICE},
     {.asks = ASKS_NOTHING},
     .rules = "hostssl all all all relay\n",
     .heard = "E(28000) CLOSED"},
    {"a line with TLS",
     {ALICE, .seen = OURS},
     {.asks = ASKS_PASSWORD},
     .rules = "hostssl all all all relay\n",
     .heard = "password ok " UP,
     .asked = TO_LOGIN "p "},
    {"scram by a line",
     {ALICE},
     {.asks = ASKS_SCRAM},
     .rules = "host d all all scram-sha-256\n",
     .heard = OFFER "ok " UP,
     .asked = TO_LOGIN "PLAIN(n) proof "},
    {"replication is no database",
     {ALICE, .more = "replication|true|"},
     {.asks = ASKS_NOTHING},
     .rules = "host all all all relay\n",
     .heard = "E(28000) CLOSED"},
    {"replication of a database is one",
     {ALICE, .more = "replication|database|"},
     {.asks = ASKS_NOTHING},
     .rules = "host all all all relay\n",
     .heard = "ok " UP,
     .asked = "startup(3.0 user alice database d replication database) "},
    {"no replication after all",
     {ALICE, .more = "replication|fa|"},
     {.asks = ASKS_NOTHING},
     .rules = "host replication all all relay\n",
     .heard = "E(28000) CLOSED"},
    {"certificate",
     {ALICE, .seen = OURS},
     {.asks = ASKS_PASSWORD},
     .rules = "hostssl all all all cert\n",
     .common = "alice",
     .heard = "password ok " UP,
     .asked = TO_LOGIN "p "},
    {"another's certificate",
     {ALICE, .seen = OURS},
     {.asks = ASKS_NOTHING},
     .rules = "hostssl all all all cert\n",
     .common = "bob",
     .heard = "E(28000) CLOSED"},
    {"a certificate without a name",
     {ALICE, .seen = OURS},
     {.asks = ASKS_NOTHING},
     .rules = "hostssl all all all cert\n",
     .common = "",
     .heard = "E(28000) CLOSED"},
    {"no certificate",
     {ALICE, .seen = OURS},
     {.asks = ASKS_NOTHING},
     .rules = "hostssl all all all cert\n",
     .heard = "E(28000) CLOSED"},
    {"a mapped certificate",
     {ALICE, .seen = OURS},
     {.asks = ASKS_NOTHING},
     .rules = "hostssl all all all cert map=m\n",
     .ident = "m Alice.Smith alice\n",
     .common = "Alice.Smith",
     .heard = "ok " UP,
     .asked = TO_LOGIN},
    {"any certificate and a password",
     {ALICE, .seen = OURS, .binds = true},
     {.asks = ASKS_SCRAM},
     .rules = "hostssl all all all scram-sha-256 clientcert=verify-ca\n",
     .common = "somebody",
     .heard = OFFER_PLUS "ok " UP,
     .asked = TO_LOGIN "PLAIN(n) proof "},
    {"no certificate, but a password",
     {ALICE, .seen = OURS, .binds = true},
     {.asks = ASKS_SCRAM},
     .rules = "hostssl all all all scram-sha-256 clientcert=verify-ca\n",
     .heard = "E(28000) CLOSED"},
    {"a name that the server would cut",
     {.user = "a23456789012345678901234567890123456789012345678901234567890123456789"},
     {.asks = ASKS_NOTHING},
     .rules = "host all all all relay\n",
     .heard = "E(28000) CLOSED"},
    /* relayed: every row of the table */
    {"relayed: trust", {ALICE}, {.asks = ASKS_NOTHING}, .relays = true, .heard = "ok " UP, .asked = TO_LOGIN},
    {"relayed: password",
     {ALICE},
     {.asks = ASKS_PASSWORD},
     .relays = true,
     .heard = "password ok " UP,
     .asked = TO_LOGIN "p "},
    {"relayed: md5",
     {ALICE},
     {.asks = ASKS_MD5, .shown = THEIRS},
     .relays = true,
     .heard = "md5 ok " UP,
     .asked = TO_LOGIN "p "},
    {"relayed: gss",
     {ALICE},
     {.asks = ASKS_GSS, .shown = THEIRS},
     .relays = true,
     .heard = "gss gss+ ok " UP,
     .asked = TO_LOGIN "p p "},
    {"relayed: plain, plain",
     {ALICE},
     {.asks = ASKS_SCRAM},
     .relays = true,
     .heard = OFFER "ok " UP,
     .asked = TO_LOGIN "PLAIN(n) proof "},
    {"relayed: TLS, plain",
     {ALICE, .seen = OURS, .binds = true},
     {.asks = ASKS_SCRAM},
     .relays = true,
     .heard = OFFER "ok " UP,
     .asked = TO_LOGIN "PLAIN(y) proof "},
    {"relayed: plain, TLS",
     {ALICE, .binds = true},
     {.asks = ASKS_SCRAM, .shown = THEIRS},
     .relays = true,
     .heard = OFFER "ok " UP,
     .asked = TO_LOGIN "PLAIN(n) proof "},
    {"relayed: plain, TLS, and the client says y",
     {ALICE, .insists = true},
     {.asks = ASKS_SCRAM, .shown = THEIRS},
     .relays = true,
     .heard = "sasl(PLAIN) E(28000) CLOSED",
     .asked = TO_LOGIN},
    {"relayed: plain, TLS, only PLUS",
     {ALICE},
     {.asks = ASKS_PLUS_ONLY, .shown = THEIRS},
     .relays = true,
     .heard = "E(28000) CLOSED",
     .asked = TO_LOGIN},
    {"relayed: TLS, TLS",
     {ALICE, .seen = OURS},
     {.asks = ASKS_SCRAM, .shown = THEIRS},
     .relays = true,
     .heard = OFFER_PLUS "ok " UP,
     .asked = TO_LOGIN "PLAIN(n) proof "},
    {"relayed: TLS, TLS, and the client binds",
     {ALICE, .seen = OURS, .binds = true},
     {.asks = ASKS_SCRAM, .shown = THEIRS},
     .relays = true,
     .heard = "sasl(PLUS,PLAIN) E(28000) CLOSED",
     .asked = TO_LOGIN},
    {"relayed: the same certificate",
     {ALICE, .seen = THEIRS, .binds = true},
     {.asks = ASKS_SCRAM, .shown = THEIRS},
     .relays = true,
     .heard = OFFER_PLUS "ok " UP,
     .asked = TO_LOGIN "PLUS(p) proof "},
    {"relayed: another SASL",
     {ALICE, .says = "pOAUTHBEARER\0\0\0\0\0", .says_len = 17},
     {.asks = ASKS_OTHER_SASL, .shown = THEIRS},
     .relays = true,
     .heard = "sasl() ok " UP,
     .asked = TO_LOGIN "p "},
    {"relayed: replication",
     {ALICE, .more = "replication|true|"},
     {.asks = ASKS_SCRAM, .shown = THEIRS},
     .relays = true,
     .heard = OFFER "ok " UP,
     .asked = "startup(3.0 user alice database d replication true) PLAIN(n) proof "},
    {"relayed: two users",
     {ALICE, .more = "user|bob|"},
     {.asks = ASKS_NOTHING},
     .relays = true,
     .heard = "ok " UP,
     .asked = "startup(3.0 user alice database d user bob) "},
    {"relayed: refused",
     {ALICE},
     {.asks = REFUSES, .shown = THEIRS},
     .relays = true,
     .heard = "E(3D000) ",
     .asked = TO_LOGIN},
    {"relayed: 3.9999",
     {ALICE, .minor = 9999},
     {.asks = ASKS_SCRAM, .is_old = true},
     .relays = true,
     .heard = "v(3.0,0) " OFFER "ok " UP,
     .asked = "startup(3.9999 user alice database d) PLAIN(n) proof "},
/* what no client should say */
#define SAYS(text) .says = text, .says_len = sizeof text - 1
    {"a query instead", {ALICE, SAYS("Qselect 1\0")}, {.asks = ASKS_SCRAM}, .heard = "sasl(PLAIN) E(08P01) CLOSED"},
    {"a password instead", {ALICE, SAYS("pword\0")}, {.asks = ASKS_SCRAM}, .heard = "sasl(PLAIN) E(08P01) CLOSED"},
    {"nothing at all", {ALICE, SAYS("p")}, {.asks = ASKS_SCRAM}, .heard = "sasl(PLAIN) E(08P01) CLOSED"},
    {"no initial response",
     {ALICE, SAYS("p" SCRAM_PLAIN "\0\377\377\377\377")},
     {.asks = ASKS_SCRAM},
     .heard = "sasl(PLAIN) E(08P01) CLOSED"},
    {"a length that lies",
     {ALICE, SAYS("p" SCRAM_PLAIN "\0\177\377\377\377n,,n=,r=x")},
     {.asks = ASKS_SCRAM},
     .heard = "sasl(PLAIN) E(08P01) CLOSED"},
    {"bytes behind the response",
     {ALICE, SAYS("p" SCRAM_PLAIN "\0\0\0\0\3n,,n=,r=x")},
     {.asks = ASKS_SCRAM},
     .heard = "sasl(PLAIN) E(08P01) CLOSED"},
    {"a mechanism that was not offered",
     {ALICE, SAYS("p" SCRAM_PLUS "\0\0\0\0\11n,,n=,r=x")},
     {.asks = ASKS_SCRAM},
     .heard = "sasl(PLAIN) E(08P01) CLOSED"},
    {"no SCRAM",
     {ALICE, SAYS("p" SCRAM_PLAIN "\0\0\0\0\5hello")},
     {.asks = ASKS_SCRAM},
     .heard = "sasl(PLAIN) E(08P01) CLOSED"},
    {"goodbye instead", {ALICE, SAYS("X")}, {.asks = ASKS_SCRAM}, .heard = "sasl(PLAIN) CLOSED"},
};

/* ---- running one ---- */

struct cut {
    size_t front, back; /* at most so many bytes at once; 0: all there are */
};

struct run {
    struct conf *conf;
    struct credentials *credentials;
    bool met_failure; /* of memory: the n-th allocation was reached */
    const struct scene *scene;
    struct session_env env;
    struct session *session;
    struct login_client client;
    struct login_server server;
    struct channel front, back;
    struct buf to_server, to_client;
    bool is_connected;
};

static struct credentials *make_credentials(const struct scene *scene)
{
    struct credentials *credentials = mem_zalloc(sizeof *credentials);
    struct secret secret = login_secret(false);
    struct buf list = {0};
    buf_put_text(&list, "\"alice\" \"");
    secret_put(&secret, &list);
    buf_put_text(&list, "\"\n");
    credentials->users = userlist_read(buf_span(&list), "users", stderr);
    credentials->otherwise = scene->relays ? HBA_RELAY : HBA_SCRAM;
    if (scene->rules)
        credentials->hba = hba_read(span_cstr(scene->rules), "rules", stderr);
    if (scene->ident)
        credentials->ident = ident_read(span_cstr(scene->ident), "ident", stderr);
    assert_non_null(credentials->users);
    assert_true(!scene->rules || credentials->hba);
    buf_fini(&list);
    return credentials;
}

static void set_text(char **setting, const char *text)
{
    mem_free(*setting);
    *setting = mem_strndup(text, strlen(text));
}

static struct conf *make_conf(const struct scene *scene)
{
    struct conf *conf = conf_default("192.0.2.1", 5432);
    if (scene->lookup)
        set_text(&conf->auth_user, "asker");
    if (scene->as_user)
        conf->databases[0].user = mem_strndup(scene->as_user, strlen(scene->as_user));
    return conf;
}

static void drain(struct sink *sink, struct buf *to)
{
    struct iovec iov[SINK_PIECES];
    size_t count = sink_iovec(sink, iov);
    for (size_t i = 0; i < count; i++)
        buf_put(to, iov[i].iov_base, iov[i].iov_len);
    sink_clear(sink);
}

static void carry(struct run *run)
{
    drain(&run->env.to_frontend, &run->to_client);
    drain(&run->env.to_backend, &run->to_server);
    login_client_take(&run->client, buf_span(&run->to_client));
    buf_clear(&run->to_client);
    if (run->to_server.len && run->is_connected)
        login_server_take(&run->server, buf_span(&run->to_server));
    buf_clear(&run->to_server);
}

/* Does what the session asks for. False when there is nothing to be done. */
static bool obey(struct run *run)
{
    static const char none[] = "there is none";
    struct secret secret = login_secret(false);
    enum lookup lookup = run->scene->lookup;
    switch (session_next(run->session)) {
    case SESSION_LOOK_UP:
        assert_string_not_equal(session_user(run->session), "asker");
        session_secret(run->session, lookup == LOOKUP_FINDS ? &secret : NULL, none,
                       lookup == LOOKUP_FAILS ? "no server" : NULL);
        break;
    case SESSION_CONNECT:
        run->is_connected = true;
        session_connected(run->session, 0, run->server.shown ? &run->back : NULL);
        break;
    default: return false;
    }
    carry(run);
    return true;
}

/* Bytes are handed over in memory that dies with the call. */
static bool feed(struct run *run, enum side from, struct buf *bytes, size_t chunk)
{
    size_t len = chunk && chunk < bytes->len ? chunk : bytes->len;
    if (!len || session_next(run->session) == SESSION_CLOSE || !session_reads(run->session, from))
        return false;
    uint8_t *copy = malloc(len);
    memcpy(copy, bytes->ptr, len);
    buf_consume(bytes, len);
    session_feed(run->session, from, span_of(copy, len));
    carry(run);
    free(copy);
    return true;
}

/* Whether the allocation that is to fail after n others has not been reached. */
static bool fails_still(long n)
{
    bool ok = true;
    for (long i = 0; ok && i <= n; i++) {
        void *memory = mem_alloc(1);
        ok = memory != NULL;
        mem_free(memory);
    }
    return !ok;
}

static void begin_tls(struct run *run)
{
    run->front =
        login_channel(run->scene->client.seen == THEIRS && !run->scene->relays ? OURS : run->scene->client.seen);
    run->front.is_verified = run->scene->common != NULL;
    if (run->scene->common)
        snprintf(run->front.peer_cn, sizeof run->front.peer_cn, "%s", run->scene->common);
    if (session_begins_tls(run->session))
        session_secured(run->session, &run->front);
    carry(run);
}

/* With n >= 0 the n-th allocation fails. run_fini() is still to be called. */
static void play(const struct scene *scene, struct cut cut, long n, struct run *run)
{
    static const struct session_peer peer = {
        .name = "192.0.2.7:1234", .from = {ADDRESS_IP4, {192, 0, 2, 7}}, .to = {ADDRESS_IP4, {192, 0, 2, 1}}};
    struct conf *conf = make_conf(scene);
    struct credentials *credentials = make_credentials(scene);
    *run = (struct run){
        .scene = scene, .conf = conf, .credentials = credentials, .client = scene->client, .server = scene->server};
    run->env = (struct session_env){.conf = conf, .credentials = credentials, .has_tls = true, .now = talk_now};
    run->back = login_channel(scene->server.shown);
    login_client_start(&run->client);
    login_server_start(&run->server);
    backend_reserve(&run->to_client, 65536);
    backend_reserve(&run->to_server, 65536);
    mem_fail_after(n);
    run->session = session_new(&run->env, &peer, 1);
    if (run->session && scene->client.seen)
        begin_tls(run);
    while (run->session && (obey(run) || feed(run, SIDE_FRONTEND, &run->client.out, cut.front) ||
                            feed(run, SIDE_BACKEND, &run->server.out, cut.back)))
        continue;
    run->met_failure = n >= 0 && !fails_still(n);
    mem_fail_after(-1);
    if (run->session && session_next(run->session) == SESSION_CLOSE)
        strcat(run->client.heard.text, "CLOSED");
}

static void run_fini(struct run *run)
{
    session_free(run->session);
    login_client_fini(&run->client);
    login_server_fini(&run->server);
    sink_fini(&run->env.to_frontend);
    sink_fini(&run->env.to_backend);
    buf_fini(&run->to_client);
    buf_fini(&run->to_server);
    credentials_free(run->credentials);
    conf_unref(run->conf);
}

static void all_cuts_give_the_same(void **state)
{
    static const struct cut cuts[] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 3}, {7, 5}, {5, 64}, {64, 5}};
    struct run run;
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            play(&scenes[i], cuts[c], -1, &run);
            const char *asked = scenes[i].asked ? scenes[i].asked : "";
            if (strcmp(run.client.heard.text, scenes[i].heard) != 0 || strcmp(run.server.heard.text, asked) != 0)
                fail_msg("%s, cut %zu %zu:\n  the client heard %s\n  instead of       %s\n  the server heard %s\n  "
                         "instead of       %s",
                         scenes[i].name, cuts[c].front, cuts[c].back, run.client.heard.text, scenes[i].heard,
                         run.server.heard.text, asked);
            run_fini(&run);
        }
}

/* ---- what a stranger can see ---- */

/* The error of a log-in, as bytes. */
static struct buf error_of(const struct scene *scene)
{
    struct run run;
    struct buf error = {0};
    play(scene, (struct cut){0, 0}, -1, &run);
    buf_put_span(&error, buf_span(&run.client.error));
    run_fini(&run);
    return error;
}

/* Users of one name: with a secret and a wrong password, without a usable secret, not there at all. */
static void nobody_looks_like_somebody(void **state)
{
    static const struct scene wrong = {.client = {.user = "carol", .is_wrong = true}, .lookup = LOOKUP_FINDS};
    static const struct scene others[] = {
        {.client = {.user = "carol"}},
        {.client = {.user = "carol"}, .lookup = LOOKUP_FINDS_NONE},
        {.client = {.user = "carol", .is_wrong = true}, .lookup = LOOKUP_FINDS_NONE},
    };
    struct buf expected = error_of(&wrong);
    (void)state;
    assert_true(expected.len > 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct buf error = error_of(&others[i]);
        assert_int_equal(error.len, expected.len);
        assert_memory_equal(error.ptr, expected.ptr, error.len);
        buf_fini(&error);
    }
    buf_fini(&expected);
}

/* ---- memory ---- */

/* Whatever fails, nobody is let in who would not be, and nothing leaks. */
static void the_nth_allocation_fails(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        bool goes_on = true;
        for (long n = 0; goes_on; n++) {
            struct run run;
            play(&scenes[i], (struct cut){.front = n % 2 ? 7 : 0, .back = n % 3 ? 0 : 5}, n, &run);
            goes_on = run.met_failure;
            if (strstr(run.client.heard.text, "ok") && !strstr(scenes[i].heard, "ok"))
                fail_msg("%s, allocation %ld: %s", scenes[i].name, n, run.client.heard.text);
            run_fini(&run);
        }
    }
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_cuts_give_the_same),
        cmocka_unit_test(nobody_looks_like_somebody),
        cmocka_unit_test(the_nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return talk_main(run);
}
