/* talk.c - carries bytes between a scripted client, a session and the small server. */
#include "talk.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../parser/pgseek.h"
#include "../../proxy/admin/log.h"
#include "../../proxy/page/keyring.h"
#include "../../proxy/page/planned.h"
#include "../../proxy/session/cancel.h"
#include "../../proxy/session/census.h"
#include "../../proxy/session/session.h"
#include "noise.h"

#define NOW 1800000000

/* ---- what all sessions share ---- */

static struct keyring *keyring;

/* A key of its own file, so that tokens are the same each time. */
struct keyring *talk_keyring(void)
{
    static const char line[] = "pgseek-key v1 01020304 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n";
    char path[] = "/tmp/pgseek-talk-XXXXXX";
    struct pgseek_error error;
    if (keyring)
        return keyring;
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, line, sizeof line - 1) != (ssize_t)sizeof line - 1)
        abort();
    close(fd);
    keyring = keyring_load(path, &error);
    unlink(path);
    if (!keyring) {
        fprintf(stderr, "no keys: %s\n", error.message);
        abort();
    }
    return keyring;
}

int64_t talk_now(void *clock)
{
    (void)clock;
    return NOW;
}

/* ---- one conversation ---- */

struct run {
    const struct talk *talk;
    const struct talk_cut *cut;
    struct talk_result *result;
    struct session_env env;
    struct session *session; /* NULL: the client speaks to the server itself */
    struct backend *backend;
    struct buf typed; /* by the client, and not yet sent */
    size_t sent_front, sent_back;
    int connects;
    bool has_heard_client;
    uint64_t front_noise, back_noise;
    struct buf noisy; /* from the server, spoilt and not yet fed */
    bool is_greeting;
};

static bool is_closed(const struct run *run)
{
    if (!run->session)
        return backend_is_closed(run->backend);
    return session_next(run->session) == SESSION_CLOSE;
}

void talk_drain(struct sink *sink, struct buf *to)
{
    struct iovec iov[SINK_PIECES];
    size_t count = sink_iovec(sink, iov);
    for (size_t i = 0; i < count; i++)
        buf_put(to, iov[i].iov_base, iov[i].iov_len);
    sink_clear(sink);
}

/* Sends what the session made. */
static void carry(struct run *run)
{
    struct buf *to_server = &run->result->to_server;
    size_t before = to_server->len;
    talk_drain(&run->env.to_backend, to_server);
    talk_drain(&run->env.to_frontend, &run->result->to_client);
    backend_take(run->backend, span_of(to_server->ptr + before, to_server->len - before));
}

/* How many of `have` bytes go next, when `sent` went before. */
static size_t piece(size_t have, size_t sent, size_t chunk, size_t at)
{
    size_t len = chunk && chunk < have ? chunk : have;
    return at > sent && at - sent < len ? at - sent : len;
}

/* Handshakes are over at once. */
static void secure_if_asked(struct run *run)
{
    struct channel channel = {.version = "TLSv1.3", .cipher = "some"};
    const char *name = run->talk->certificate;
    if (!run->session || session_next(run->session) != SESSION_SECURE)
        return;
    channel.is_verified = name != NULL;
    snprintf(channel.peer_cn, sizeof channel.peer_cn, "%s", name ? name : "");
    session_secured(run->session, &channel);
}

/* Bytes are handed over in memory that dies with the call. */
static void feed(struct run *run, enum side from, struct buf *bytes, size_t len)
{
    bool is_first = !run->has_heard_client;
    run->has_heard_client |= from == SIDE_FRONTEND;
    uint8_t *copy = malloc(len);
    if (!copy)
        abort();
    memcpy(copy, bytes->ptr, len);
    buf_consume(bytes, len);
    if (run->session) {
        if (from == SIDE_FRONTEND && is_first && copy[0] == 0x16) {
            if (session_begins_tls(run->session))
                secure_if_asked(run);
            session_feed(run->session, from, span_of(copy + 1, len - 1));
        } else {
            session_feed(run->session, from, span_of(copy, len));
        }
        carry(run);
    } else if (from == SIDE_FRONTEND) {
        backend_take(run->backend, span_of(copy, len));
    } else {
        buf_put(&run->result->to_client, copy, len);
    }
    free(copy);
}

static bool may_read(const struct run *run, enum side side)
{
    return !is_closed(run) && (!run->session || session_reads(run->session, side));
}

static bool feed_front(struct run *run)
{
    const struct talk_cut *cut = run->cut;
    if (!run->typed.len || !may_read(run, SIDE_FRONTEND))
        return false;
    size_t len =
        run->is_greeting ? run->typed.len : piece(run->typed.len, run->sent_front, cut->front_chunk, cut->front_at);
    run->sent_front += run->is_greeting ? 0 : len;
    feed(run, SIDE_FRONTEND, &run->typed, len);
    secure_if_asked(run);
    return true;
}

/* What the server has sent, spoilt if it is to be. */
static struct buf *heard(struct run *run)
{
    struct buf *sent = backend_sent(run->backend);
    if (run->is_greeting || !run->back_noise)
        return sent;
    noise_put(&run->back_noise, buf_span(sent), &run->noisy);
    buf_clear(sent);
    return &run->noisy;
}

static bool feed_back(struct run *run)
{
    const struct talk_cut *cut = run->cut;
    struct buf *sent = heard(run);
    if (!sent->len || !may_read(run, SIDE_BACKEND))
        return false;
    size_t len = run->is_greeting ? sent->len : piece(sent->len, run->sent_back, cut->back_chunk, cut->back_at);
    run->sent_back += run->is_greeting ? 0 : len;
    feed(run, SIDE_BACKEND, sent, len);
    return true;
}

/* A session may be sent to its server twice; the second server is a fresh one. */
static void connect_if_asked(struct run *run)
{
    static const struct channel channel = {.version = "TLSv1.3", .cipher = "some"};
    if (!run->session || session_next(run->session) != SESSION_CONNECT)
        return;
    struct session_target target = session_target(run->session);
    bool is_tls = target.tls == TARGET_AS_CONFIGURED ? run->talk->is_server_tls : target.tls == TARGET_WITH_TLS;
    if (run->connects++) {
        backend_free(run->backend);
        run->backend = backend_new(&run->talk->server);
    }
    backend_encrypt(run->backend, is_tls);
    session_connected(run->session, 0, NULL, is_tls ? &channel : NULL);
    carry(run);
}

/* Carries bytes until nothing moves any more. */
static void settle(struct run *run)
{
    bool is_moving = true;
    while (is_moving && !is_closed(run)) {
        is_moving = feed_front(run);
        connect_if_asked(run);
        if (!is_moving || run->cut->is_prompt)
            while (feed_back(run))
                is_moving = true;
        /* a cut in the client's stream: the server is heard before the rest is sent */
        if (is_moving && run->cut->front_at && run->sent_front == run->cut->front_at)
            while (feed_back(run))
                ;
    }
}

/* Spoils what the client is about to send. */
static void spoil_typed(struct run *run)
{
    struct buf noisy = {0};
    if (run->is_greeting || !run->front_noise)
        return;
    noise_put(&run->front_noise, buf_span(&run->typed), &noisy);
    buf_clear(&run->typed);
    buf_put_span(&run->typed, buf_span(&noisy));
    buf_fini(&noisy);
}

/* Speaks the lines of a script. */
static void speak(struct run *run, const char *script)
{
    while (*script) {
        size_t len = strcspn(script, "\n");
        char *next = talk_status(buf_span(&run->result->to_client), "pgseek.next_cursor");
        char *prev = talk_status(buf_span(&run->result->to_client), "pgseek.prev_cursor");
        if (!talk_encode(script, len, next, prev, &run->typed)) {
            spoil_typed(run);
            settle(run);
        }
        free(next);
        free(prev);
        script += len + (script[len] == '\n');
    }
    spoil_typed(run);
    settle(run);
}

static bool is_opening(const char *script)
{
    static const char *const words[] = {"start", "ssl", "gss", "cancel", "tls", "raw"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(script, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

static void greet(struct run *run)
{
    if (is_opening(run->talk->script))
        return;
    run->is_greeting = true;
    speak(run, "start user=u|database=d");
    run->is_greeting = false;
    run->result->greeting = run->result->to_client.len;
    run->result->server_greeting = run->result->to_server.len;
}

static enum talk_end end_of(struct run *run)
{
    if (is_closed(run))
        return TALK_CLOSED;
    if (run->typed.len || backend_sent(run->backend)->len)
        return TALK_STUCK;
    if (run->session && backend_is_idle(run->backend) && !session_is_idle(run->session))
        return TALK_BUSY;
    return TALK_OPEN;
}

static void start(struct run *run)
{
    memset(run->result, 0, sizeof *run->result);
    backend_reserve(&run->result->to_client, 32768);
    backend_reserve(&run->result->to_server, 32768);
    backend_reserve(&run->typed, 16384);
    run->backend = backend_new(&run->talk->server);
}

static void finish(struct run *run)
{
    run->result->end = end_of(run);
    run->result->from_client = run->sent_front;
    backend_free(run->backend);
    buf_fini(&run->typed);
    buf_fini(&run->noisy);
}

/* The key of the script's cancel request. */
static const uint8_t cancel_key[] = {0, 0, 0x12, 0x67, 4, 3, 2, 1};

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

void talk_run_failing(const struct talk *talk, const struct talk_cut *cut, long n, struct talk_result *result)
{
    struct run run = {
        .talk = talk, .cut = cut, .result = result, .front_noise = cut->front_noise, .back_noise = cut->back_noise};
    struct conf *conf = conf_default("127.0.0.1", 5432);
    conf->cursor_protection = CONF_PROTECT_SIGN;
    if (talk->configure)
        talk->configure(conf);
    struct cancel_map *cancels = cancel_map_new();
    cancel_map_add(cancels, span_of(cancel_key, sizeof cancel_key),
                   &(struct cancel_route){.conf = conf, .database = conf->databases});
    struct census *census = census_new();
    run.env = (struct session_env){.conf = conf,
                                   .keyring = talk_keyring(),
                                   .plans = plan_cache_new(16, (size_t)64 << 20),
                                   .cancels = cancels,
                                   .census = census,
                                   .now = talk_now};
    start(&run);
    mem_fail_after(n);
    run.env.has_tls = talk->has_tls;
    struct session_peer peer = {.name = "test", .from.family = talk->has_tls ? ADDRESS_IP4 : ADDRESS_UNIX};
    run.session = session_new(&run.env, &peer, 1);
    if (run.session) {
        greet(&run);
        speak(&run, talk->script);
    }
    result->met_failure = n >= 0 && !fails_still(n);
    mem_fail_after(-1);
    finish(&run);
    session_free(run.session);
    plan_cache_free(run.env.plans);
    cancel_map_free(cancels);
    census_free(census);
    sink_fini(&run.env.to_frontend);
    sink_fini(&run.env.to_backend);
    conf_unref(conf);
}

void talk_run(const struct talk *talk, const struct talk_cut *cut, struct talk_result *result)
{
    talk_run_failing(talk, cut, -1, result);
}

void talk_directly(const struct talk *talk, struct talk_result *result)
{
    struct talk_cut whole = {0};
    struct run run = {.talk = talk, .cut = &whole, .result = result};
    start(&run);
    greet(&run);
    speak(&run, talk->script);
    finish(&run);
}

void talk_result_fini(struct talk_result *result)
{
    buf_fini(&result->to_client);
    buf_fini(&result->to_server);
}

char *talk_text(const struct talk_result *result)
{
    static const char *const ends[] = {"", " CLOSED", " STUCK", " BUSY"};
    struct span all = buf_span(&result->to_client);
    char *text =
        talk_print(span_of(all.ptr + result->greeting, all.len - result->greeting), result->greeting ? 0 : 2, false);
    text = realloc(text, strlen(text) + 16);
    strcat(text, ends[result->end]);
    return text;
}

/* ---- all cuts ---- */

static void die(const struct talk *talk, const struct talk_cut *cut, const char *what, const char *got,
                const char *wanted)
{
    fprintf(stderr, "%s: %s\n  cut: chunks %zu %zu, at %zu %zu%s\n  script:\n%s\n  got:    %s\n  wanted: %s\n",
            talk->name, what, cut->front_chunk, cut->back_chunk, cut->front_at, cut->back_at,
            cut->is_prompt ? ", prompt" : "", talk->script, got, wanted);
    exit(1);
}

static void compare(const struct talk *talk, const struct talk_cut *cut, const struct talk_result *first)
{
    struct talk_result result;
    talk_run(talk, cut, &result);
    if (result.end != first->end || !span_equal(buf_span(&result.to_client), buf_span(&first->to_client))) {
        char *got = talk_text(&result);
        char *wanted = talk_text(first);
        die(talk, cut, "cutting changes what the client receives", got, wanted);
    }
    talk_result_fini(&result);
}

/* Runs of single bytes are cut at every place at once; of the runs with one cut only every so many are made, fewer
 * under sanitizers. PGSEEK_STRIDE=1 makes all of them. */
static size_t stride_of(const struct talk *talk)
{
    const char *text = getenv("PGSEEK_STRIDE");
#if defined(__SANITIZE_ADDRESS__)
    size_t stride = 17;
#else
    size_t stride = 3;
#endif
    if (text)
        stride = strtoul(text, NULL, 10);
    return (stride ? stride : 1) * (talk->stride ? talk->stride : 1);
}

static void check_talk(const struct talk *talk)
{
    struct talk_result whole;
    struct talk_cut none = {0};
    size_t stride = stride_of(talk);
    talk_run(talk, &none, &whole);
    char *text = talk_text(&whole);
    if (strcmp(text, talk->expected) != 0)
        die(talk, &none, "not as expected", text, talk->expected);
    free(text);
    compare(talk, &(struct talk_cut){.back_chunk = 1}, &whole);
    for (size_t at = 1; at < whole.to_client.len - whole.greeting; at += stride)
        compare(talk, &(struct talk_cut){.back_at = at}, &whole);
    if (!talk->is_a_race) {
        compare(talk, &(struct talk_cut){.is_prompt = true}, &whole);
        compare(talk, &(struct talk_cut){.front_chunk = 1, .back_chunk = 1}, &whole);
        compare(talk, &(struct talk_cut){.front_chunk = 1, .back_chunk = 1, .is_prompt = true}, &whole);
        compare(talk, &(struct talk_cut){.front_chunk = 7, .back_chunk = 3, .is_prompt = true}, &whole);
    }
    for (size_t at = 1; at < whole.from_client && !talk->is_a_race; at += stride)
        compare(talk, &(struct talk_cut){.front_at = at}, &whole);
    talk_result_fini(&whole);
}

void talk_check(const struct talk *talks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_talk(&talks[i]);
}

/* ---- the stack ---- */

static int run_deep(void *(*run)(void *), void *arg)
{
    pthread_attr_t attributes;
    pthread_t thread;
    void *result = NULL;
    log_threshold = LOG_FATAL;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PGSEEK_STACK_BYTES);
    if (pthread_create(&thread, &attributes, run, arg) != 0)
        return 1;
    pthread_join(thread, &result);
    keyring_free(keyring);
    pthread_attr_destroy(&attributes);
    return (int)(uintptr_t)result;
}

static void *run_main(void *tests)
{
    int (**run)(void) = tests;
    return (void *)(uintptr_t)(*run)();
}

int talk_main(int (*tests)(void))
{
    return run_deep(run_main, &tests);
}

struct talks {
    const struct talk *talks;
    size_t count;
};

static void all_cuts_give_the_same(void **state)
{
    const struct talks *talks = *state;
    talk_check(talks->talks, talks->count);
}

static void *run_talks(void *talks)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(all_cuts_give_the_same, talks)};
    return (void *)(uintptr_t)cmocka_run_group_tests(tests, NULL, NULL);
}

int talk_main_of(const struct talk *talks, size_t count)
{
    return run_deep(run_talks, &(struct talks){talks, count});
}
