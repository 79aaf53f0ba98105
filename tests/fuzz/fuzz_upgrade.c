/* fuzz_upgrade.c - whole start-ups over sockets: bytes in clear text, handshakes, and bytes inside TLS, on both legs.
 *
 * Behind the driver, the session and TLS as they run there are a client and a server of the fuzzer's. The first byte of
 * an input chooses the settings, then follow steps: a byte that says what, a length, and so many bytes.
 *
 * What must hold: behind an S the client is sent records of TLS and nothing else; where TLS is required the server
 * hears of no client but one whose handshake was a real one; where the server's leg is to be encrypted it is sent
 * SSLRequest and then records of TLS and nothing else; and when all is over nothing is left. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../proxy/admin/conf.h"
#include "../../proxy/admin/log.h"
#include "../../proxy/io/pair.h"
#include "../../proxy/io/snapshot.h"
#include "../../proxy/page/planned.h"
#include "certificate.h"
#include "target.h"
#include "twin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TURNS 6 /* of the loop, behind each step */
#define MAX_SENT ((size_t)1 << 20)

/* ---- what all inputs share ---- */

enum client_mode { CLIENT_DISABLE, CLIENT_PREFER, CLIENT_REQUIRE, CLIENT_MODES };
enum server_leg { SERVER_UNIX, SERVER_TLS, SERVER_LEGS };

static struct snapshot *snapshots[CLIENT_MODES][SERVER_LEGS];
static struct tls_context *for_client; /* what the fuzzer's client connects with */
static int listeners[SERVER_LEGS];
static int port;

static struct conf *load(enum client_mode mode, enum server_leg leg)
{
    static const char *const modes[] = {"disable", "prefer", "require"};
    const char *folder = certificate_folder();
    char path[64];
    snprintf(path, sizeof path, "%s/proxy.conf", folder);
    FILE *out = fopen(path, "w");
    require(out != NULL);
    fprintf(out, "[pgseek]\nclient_tls_sslmode = %s\n", modes[mode]);
    fprintf(out, "client_tls_cert_file = %s/fuzz.crt\nclient_tls_key_file = %s/fuzz.key\n[databases]\n", folder,
            folder);
    if (leg == SERVER_UNIX)
        fprintf(out, "* = host=%s port=5432\n", folder);
    else
        fprintf(out, "* = host=127.0.0.1 port=%d sslmode=require\n", port);
    fclose(out);
    struct conf *conf = conf_load(path, stderr);
    require(conf != NULL);
    return conf;
}

static int listen_at(int family, const void *address, socklen_t len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    require(fd >= 0 && bind(fd, address, len) == 0 && listen(fd, 8) == 0);
    return fd;
}

static void listen_everywhere(void)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    snprintf(path.sun_path, sizeof path.sun_path, "%s/.s.PGSQL.5432", certificate_folder());
    listeners[SERVER_UNIX] = listen_at(AF_UNIX, &path, sizeof path);
    listeners[SERVER_TLS] = listen_at(AF_INET, &address, sizeof address);
    require(getsockname(listeners[SERVER_TLS], (struct sockaddr *)&address, &len) == 0);
    port = ntohs(address.sin_port);
}

/* In front of OpenSSL's own end, so that all of its parts go. */
static void clean_up(void)
{
    for (int mode = 0; mode < CLIENT_MODES; mode++)
        for (int leg = 0; leg < SERVER_LEGS; leg++)
            snapshot_unref(snapshots[mode][leg]);
}

static void set_up(void)
{
    if (for_client)
        return;
    log_threshold = (enum log_level)(LOG_FATAL + 1);
    listen_everywhere();
    for (int mode = 0; mode < CLIENT_MODES; mode++)
        for (int leg = 0; leg < SERVER_LEGS; leg++) {
            snapshots[mode][leg] = snapshot_new(load((enum client_mode)mode, (enum server_leg)leg), NULL, stderr);
            require(snapshots[mode][leg] != NULL);
        }
    const struct snapshot *with_tls = snapshots[CLIENT_PREFER][SERVER_TLS];
    for_client = snapshot_tls(with_tls, &with_tls->conf->databases[0]);
    require(for_client != NULL && atexit(clean_up) == 0);
}

/* ---- one run ---- */

struct run {
    uv_loop_t loop;
    struct pair_env env;
    struct pair_counts counts;
    uint8_t buffer[PAIR_BUFFER_BYTES];
    enum server_leg leg;
    bool is_required; /* TLS on the client's leg */
    int client;       /* -1 once closed */
    int server;       /* -1 until accepted */
    struct tls *tls;  /* of the client, once it has begun; not fed any more when noise was sent in between */
    struct buf to_client, to_server; /* all that was received */
    bool may_tls, is_tls,
        was_open;    /* TLS: could begin; has begun, to all appearances; the client's handshake was real */
    bool has_spoken; /* the client has sent something */
    size_t tls_from; /* offset in to_client */
};

static void on_change(struct pair_env *env)
{
    (void)env;
}

static void hear(int fd, struct buf *all)
{
    uint8_t bytes[16384];
    ssize_t got;
    while (fd >= 0 && (got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        buf_put(all, bytes, (size_t)got);
    require(all->len < MAX_SENT);
}

/* Before there is a server all words are the proxy's own: an S at their end is its yes. */
static void note_upgrade(struct run *run)
{
    struct span got = buf_span(&run->to_client);
    if (run->is_tls || run->server >= 0 || !run->may_tls || got.len == 0 || got.len > 2 || got.ptr[got.len - 1] != 'S')
        return;
    run->is_tls = true;
    run->tls_from = got.len;
}

static void turn(struct run *run)
{
    const struct linger at_once = {.l_onoff = 1};
    uv_run(&run->loop, UV_RUN_NOWAIT);
    if (run->server < 0)
        run->server = accept4(listeners[run->leg], NULL, NULL, SOCK_NONBLOCK);
    if (run->server >= 0 && run->leg == SERVER_TLS)
        setsockopt(run->server, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); /* ports are not kept waiting */
    size_t before = run->to_client.len;
    hear(run->client, &run->to_client);
    hear(run->server, &run->to_server);
    note_upgrade(run);
    if (!run->tls || run->to_client.len == before)
        return;
    uint8_t plain[MAX_SENT / 8];
    struct span fresh = span_of(run->to_client.ptr + before, run->to_client.len - before);
    if (fresh.len + TLS_RECORD_MAX <= sizeof plain)
        require(tls_read(run->tls, fresh, plain, sizeof plain) <= sizeof plain);
    run->was_open |= tls_state(run->tls) == TLS_OPEN;
}

static void turns(struct run *run)
{
    for (int i = 0; i < TURNS; i++)
        turn(run);
}

/* Bytes that nobody takes are nobody's. */
static void say(int fd, struct span bytes)
{
    if (fd >= 0 && send(fd, bytes.ptr, bytes.len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return;
}

static void say_as_client(struct run *run, struct span bytes)
{
    if (bytes.len > 0 && !run->has_spoken) {
        run->has_spoken = true;
        run->is_tls = run->may_tls && bytes.ptr[0] == 0x16; /* directly */
    }
    say(run->client, bytes);
}

static void say_output(struct run *run, size_t at_most)
{
    struct buf *output = run->tls ? tls_output(run->tls) : NULL;
    if (!output || output->len == 0)
        return;
    size_t len = at_most > 0 && at_most < output->len ? at_most : output->len;
    say_as_client(run, span_of(output->ptr, len));
    buf_consume(output, len);
}

static void say_encrypted(struct run *run, struct span bytes)
{
    struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes.ptr, .iov_len = bytes.len};
    struct buf cipher = {0};
    say_output(run, 0);
    if (run->tls && tls_write(run->tls, &piece, 1, &cipher))
        say_as_client(run, buf_span(&cipher));
    buf_fini(&cipher);
}

/* ---- what must hold ---- */

/* Records of TLS, the last one perhaps not whole. */
static void check_records(struct span bytes)
{
    while (bytes.len >= 5) {
        size_t len = (size_t)get_u16(bytes.ptr + 3) + 5;
        require(bytes.ptr[0] >= 20 && bytes.ptr[0] <= 23 && bytes.ptr[1] == 3 && len <= TLS_RECORD_MAX);
        len = len < bytes.len ? len : bytes.len;
        bytes = span_of(bytes.ptr + len, bytes.len - len);
    }
}

/* What the client is sent from where TLS has begun. */
static void check_client(const struct run *run)
{
    if (run->is_tls && run->to_client.len > run->tls_from)
        check_records(span_of(run->to_client.ptr + run->tls_from, run->to_client.len - run->tls_from));
}

static void check_server(const struct run *run)
{
    static const uint8_t request[] = {0, 0, 0, 8, 4, 210, 22, 47};
    struct span got = buf_span(&run->to_server);
    if (got.len == 0)
        return;
    require(!run->is_required || run->was_open);
    if (run->leg != SERVER_TLS)
        return;
    require(memcmp(got.ptr, request, got.len < 8 ? got.len : 8) == 0);
    if (got.len > 8)
        check_records(span_of(got.ptr + 8, got.len - 8));
}

/* ---- an input ---- */

enum step { STEP_CLIENT, STEP_BEGIN, STEP_SHAKE, STEP_ENCRYPTED, STEP_SERVER, STEP_REQUEST, STEP_FINISH, STEPS };

static void take_step(struct run *run, enum step step, struct span bytes)
{
    static const uint8_t request[] = {0, 0, 0, 8, 4, 210, 22, 47};
    switch (step) {
    case STEP_CLIENT: say_as_client(run, bytes); break;
    case STEP_BEGIN:
        if (!run->tls)
            run->tls = tls_connect(for_client, "localhost", true);
        require(run->tls != NULL);
        say_output(run, 0);
        break;
    case STEP_SHAKE: say_output(run, bytes.len); break;
    case STEP_ENCRYPTED: say_encrypted(run, bytes); break;
    case STEP_SERVER: say(run->server, bytes); break;
    case STEP_REQUEST: say_as_client(run, span_of(request, sizeof request)); break;
    case STEP_FINISH:
        if (run->tls)
            tls_finish(run->tls);
        say_output(run, 0);
        break;
    case STEPS: break;
    }
    turns(run);
}

static void run_init(struct run *run, uint8_t choice)
{
    int ends[2];
    enum client_mode mode = choice % CLIENT_MODES;
    run->leg = (choice >> 2) % SERVER_LEGS;
    bool is_unix = (choice >> 3) % 8 == 7;
    run->is_required = mode == CLIENT_REQUIRE && !is_unix;
    run->client = run->server = -1;
    struct snapshot *snapshot = snapshots[mode][run->leg];
    run->may_tls = snapshot->client_tls && !is_unix;
    require(uv_loop_init(&run->loop) == 0);
    run->env =
        (struct pair_env){.loop = &run->loop, .buffer = run->buffer, .counts = &run->counts, .on_change = on_change};
    run->env.snapshot = snapshot;
    run->env.session = (struct session_env){.conf = snapshot->conf,
                                            .keyring = snapshot->keyring,
                                            .credentials = snapshot->credentials,
                                            .has_tls = snapshot->client_tls != NULL,
                                            .plans = plan_cache_new(8, (size_t)1 << 20),
                                            .now = fixed_clock};
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    run->client = ends[0];
    struct session_peer peer = {.name = "fuzz", .from.family = is_unix ? ADDRESS_UNIX : ADDRESS_IP4};
    pair_accept(&run->env, ends[1], &peer);
}

static void run_fini(struct run *run)
{
    const struct pair_env *env = &run->env;
    close(run->client);
    run->client = -1;
    turns(run);
    pair_kill_all(&run->env);
    uv_run(&run->loop, UV_RUN_DEFAULT);
    require(env->starting.count + env->running.count + env->closing.count == 0);
    require(run->counts.clients == 0 && run->counts.refused == 0);
    require(uv_loop_close(&run->loop) == 0);
    if (run->server >= 0)
        close(run->server);
    for (int fd; (fd = accept(listeners[run->leg], NULL, NULL)) >= 0;)
        close(fd);
    tls_free(run->tls);
    plan_cache_free(run->env.session.plans);
    sink_fini(&run->env.session.to_frontend);
    sink_fini(&run->env.session.to_backend);
    buf_fini(&run->to_client);
    buf_fini(&run->to_server);
}

static void check(struct span input)
{
    if (input.len < 1)
        return;
    struct run *run = calloc(1, sizeof *run);
    require(run != NULL);
    run_init(run, input.ptr[0]);
    for (size_t at = 1; at + 2 <= input.len;) {
        size_t len = input.ptr[at + 1];
        len = len < input.len - at - 2 ? len : input.len - at - 2;
        take_step(run, input.ptr[at] % STEPS, span_of(input.ptr + at + 2, len));
        check_server(run);
        at += 2 + len;
    }
    check_client(run);
    run_fini(run);
    free(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    set_up(); /* here: what OpenSSL keeps for ever must not belong to a thread that ends */
    twin_run(check, span_of(data, size));
    return 0;
}
