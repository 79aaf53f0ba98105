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
#include "../../proxy/protocol/vault.h"
#include "../../proxy/session/session.h"
#include "login_scenes.h"
#include "talk.h"

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
    struct credentials *credentials = vault_new(sizeof *credentials);
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

static void carry(struct run *run)
{
    talk_drain(&run->env.to_frontend, &run->to_client);
    talk_drain(&run->env.to_backend, &run->to_server);
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
        session_secret(run->session,
                       &(struct session_looked_up){.secret = lookup == LOOKUP_FINDS ? &secret : NULL,
                                                   .none = none,
                                                   .failed = lookup == LOOKUP_FAILS ? "no server" : NULL});
        break;
    case SESSION_CONNECT:
        run->is_connected = true;
        session_connected(run->session, 0, NULL, run->server.shown ? &run->back : NULL);
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
    for (size_t i = 0; i < login_scene_count; i++)
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            play(&login_scenes[i], cuts[c], -1, &run);
            const char *asked = login_scenes[i].asked ? login_scenes[i].asked : "";
            if (strcmp(run.client.heard.text, login_scenes[i].heard) != 0 || strcmp(run.server.heard.text, asked) != 0)
                fail_msg("%s, cut %zu %zu:\n  the client heard %s\n  instead of       %s\n  the server heard %s\n  "
                         "instead of       %s",
                         login_scenes[i].name, cuts[c].front, cuts[c].back, run.client.heard.text,
                         login_scenes[i].heard, run.server.heard.text, asked);
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
    for (size_t i = 0; i < login_scene_count; i++) {
        bool goes_on = true;
        for (long n = 0; goes_on; n++) {
            struct run run;
            play(&login_scenes[i], (struct cut){.front = n % 2 ? 7 : 0, .back = n % 3 ? 0 : 5}, n, &run);
            goes_on = run.met_failure;
            if (strstr(run.client.heard.text, "ok") && !strstr(login_scenes[i].heard, "ok"))
                fail_msg("%s, allocation %ld: %s", login_scenes[i].name, n, run.client.heard.text);
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
