/* twin.c - feeds two sessions and compares what they send. */
#include "twin.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxy/admin/conf.h"
#include "../../proxy/admin/log.h"
#include "../../proxy/page/keyring.h"
#include "../../proxy/page/planned.h"
#include "../../proxy/protocol/wire.h"
#include "target.h"

struct half {
    struct session_env env;
    struct session *session;
    struct buf sent[2]; /* to the frontend, to the backend */
};

struct twin {
    struct conf *conf;
    struct keyring *keyring;
    size_t crumb;
    struct half whole, crumbs;
};

/* ---- one session ---- */

/* The bytes live in memory of their own that dies with the call. */
static void feed(struct half *half, enum side from, struct span bytes)
{
    uint8_t *copy = mem_dup(bytes.ptr, bytes.len);
    require(copy != NULL);
    session_feed(half->session, from, span_of(copy, bytes.len));
    collect(&half->env.to_frontend, &half->sent[SIDE_FRONTEND]);
    collect(&half->env.to_backend, &half->sent[SIDE_BACKEND]);
    mem_free(copy);
}

static void log_in(struct half *half)
{
    static const uint8_t startup[] = "\0\0\0\x10\0\3\0\0user\0u\0";
    static const uint8_t greeting[] = "R\0\0\0\x8\0\0\0\0"
                                      "S\0\0\0\x19"
                                      "client_encoding\0UTF8\0"
                                      "Z\0\0\0\5I";
    feed(half, SIDE_FRONTEND, span_of(startup, sizeof startup));
    require(session_next(half->session) == SESSION_CONNECT);
    session_connected(half->session, 0, NULL, NULL);
    feed(half, SIDE_BACKEND, span_of(greeting, sizeof greeting - 1));
    require(session_is_up(half->session) && session_is_idle(half->session));
    buf_clear(&half->sent[SIDE_FRONTEND]);
    buf_clear(&half->sent[SIDE_BACKEND]);
}

static void half_init(struct half *half, const struct twin *twin)
{
    half->env = (struct session_env){
        .conf = twin->conf, .keyring = twin->keyring, .plans = plan_cache_new(8, (size_t)1 << 20), .now = fixed_clock};
    half->session = session_new(&half->env, &(struct session_peer){.name = "fuzz"}, 1);
    require(half->session && half->env.plans);
    log_in(half);
}

static void half_fini(struct half *half)
{
    session_free(half->session);
    plan_cache_free(half->env.plans);
    sink_fini(&half->env.to_frontend);
    sink_fini(&half->env.to_backend);
    buf_fini(&half->sent[0]);
    buf_fini(&half->sent[1]);
}

/* ---- both ---- */

struct twin *twin_new(size_t crumb)
{
    struct twin *twin = calloc(1, sizeof *twin);
    log_threshold = LOG_FATAL;
    require(twin != NULL);
    twin->crumb = crumb;
    twin->conf = conf_default("127.0.0.1", 5432);
    twin->keyring = keyring_ephemeral();
    require(twin->conf && twin->keyring);
    twin->conf->cursor_protection = CONF_PROTECT_SIGN; /* the same token for the same row */
    twin->conf->max_tagged_size = 4096;
    half_init(&twin->whole, twin);
    half_init(&twin->crumbs, twin);
    return twin;
}

void twin_free(struct twin *twin)
{
    half_fini(&twin->whole);
    half_fini(&twin->crumbs);
    keyring_free(twin->keyring);
    conf_unref(twin->conf);
    free(twin);
}

/* Each session has a random name on the server. */
static void mask_names(struct buf *bytes)
{
    static const char prefix[] = "pgseek_";
    uint8_t *at = bytes->ptr;
    uint8_t *end = at + bytes->len;
    while (at && (at = memmem(at, (size_t)(end - at), prefix, 7)) != NULL) {
        at += 7;
        for (int i = 0; i < 8 && at < end && strchr("0123456789abcdef*", *at); i++)
            *at++ = '*';
    }
}

static bool is_prefix(const struct buf *a, const struct buf *b)
{
    return a->len <= b->len && (a->len == 0 || memcmp(a->ptr, b->ptr, a->len) == 0);
}

/* A session that ends may have passed on more or less of what it ended for. */
static void compare(struct twin *twin)
{
    struct half *a = &twin->whole;
    struct half *b = &twin->crumbs;
    bool is_over = session_next(a->session) == SESSION_CLOSE;
    require(session_next(a->session) == session_next(b->session));
    require(session_is_idle(a->session) == session_is_idle(b->session));
    mask_names(&a->sent[SIDE_BACKEND]);
    mask_names(&b->sent[SIDE_BACKEND]);
    require(span_equal(buf_span(&a->sent[SIDE_FRONTEND]), buf_span(&b->sent[SIDE_FRONTEND])));
    require(is_prefix(&a->sent[SIDE_BACKEND], &b->sent[SIDE_BACKEND]) ||
            (is_over && is_prefix(&b->sent[SIDE_BACKEND], &a->sent[SIDE_BACKEND])));
    require(is_over || a->sent[SIDE_BACKEND].len == b->sent[SIDE_BACKEND].len);
}

void twin_feed(struct twin *twin, enum side from, struct span bytes)
{
    if (bytes.len == 0)
        return;
    feed(&twin->whole, from, bytes);
    for (size_t at = 0; at < bytes.len; at += twin->crumb) {
        size_t left = bytes.len - at;
        feed(&twin->crumbs, from, span_of(bytes.ptr + at, left < twin->crumb ? left : twin->crumb));
    }
    compare(twin);
}

/* ---- the stack ---- */

struct job {
    void (*check)(struct span input);
    struct span input;
};

static void *run_job(void *arg)
{
    struct job *job = arg;
    job->check(job->input);
    return NULL;
}

void twin_run(void (*check)(struct span input), struct span input)
{
    struct job job = {check, input};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PGSEEK_STACK_BYTES);
    require(pthread_create(&thread, &attributes, run_job, &job) == 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}
