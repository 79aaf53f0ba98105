/* test_tls_peers.c - peers that are not ours: other protocols, old versions, tickets, key updates, renegotiation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/ssl.h>

#include "../../proxy/io/tls_openssl.h"
#include "tls_fixture.h"

/* OpenSSL as anybody uses it, over buffers. */
struct peer {
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in, *out; /* the SSL's */
    char got[256]; /* plaintext */
    size_t got_len;
};

static SSL_CTX *peer_context(bool is_server)
{
    SSL_CTX *ctx = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    assert_non_null(ctx);
    if (!is_server)
        return ctx;
    assert_int_equal(SSL_CTX_use_certificate_file(ctx, tls_fixture_path("server.crt"), SSL_FILETYPE_PEM), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(ctx, tls_fixture_path("server.key"), SSL_FILETYPE_PEM), 1);
    return ctx;
}

static void peer_shows(SSL_CTX *ctx, const char *certificate, const char *key)
{
    assert_int_equal(SSL_CTX_use_certificate_file(ctx, tls_fixture_path(certificate), SSL_FILETYPE_PEM), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(ctx, tls_fixture_path(key), SSL_FILETYPE_PEM), 1);
}

/* Takes the context over. */
static void peer_begin(struct peer *peer, SSL_CTX *ctx, bool is_server, SSL_SESSION *session)
{
    *peer = (struct peer){.ctx = ctx, .ssl = SSL_new(ctx), .in = BIO_new(BIO_s_mem()), .out = BIO_new(BIO_s_mem())};
    SSL_set_bio(peer->ssl, peer->in, peer->out);
    if (is_server)
        SSL_set_accept_state(peer->ssl);
    else
        SSL_set_connect_state(peer->ssl);
    if (session)
        assert_int_equal(SSL_set_session(peer->ssl, session), 1);
}

static void peer_end(struct peer *peer)
{
    SSL_set_shutdown(peer->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); /* else its session may not be resumed */
    SSL_free(peer->ssl);
    SSL_CTX_free(peer->ctx);
}

static void peer_work(struct peer *peer)
{
    int got = SSL_read(peer->ssl, peer->got + peer->got_len, (int)(sizeof peer->got - peer->got_len));
    if (got > 0)
        peer->got_len += (size_t)got;
}

/* Both talk until nobody has anything to say. */
static void run(struct peer *peer, struct tls *tls, struct buf *tls_got)
{
    bool is_moving = true;
    while (is_moving) {
        uint8_t cipher[8192];
        uint8_t plain[sizeof cipher + TLS_RECORD_MAX];
        peer_work(peer);
        int len = BIO_read(peer->out, cipher, sizeof cipher);
        is_moving = len > 0 || tls_output(tls)->len > 0;
        if (len > 0)
            buf_put(tls_got, plain, tls_read(tls, span_of(cipher, (size_t)len), plain, sizeof plain));
        if (tls_output(tls)->len > 0)
            BIO_write(peer->in, tls_output(tls)->ptr, (int)tls_output(tls)->len);
        buf_fini(tls_output(tls));
    }
}

static void tls_says(struct tls *tls, struct peer *peer, const char *text)
{
    struct buf cipher = {0};
    struct iovec piece = {.iov_base = mem_dup(text, strlen(text)), .iov_len = strlen(text)};
    BIO_write(peer->in, tls_output(tls)->ptr, (int)tls_output(tls)->len);
    buf_fini(tls_output(tls));
    assert_true(tls_write(tls, &piece, 1, &cipher));
    BIO_write(peer->in, cipher.ptr, (int)cipher.len);
    buf_fini(&cipher);
    mem_free(piece.iov_base);
}

static void assert_talks(struct peer *peer, struct tls *tls)
{
    struct buf got = {0};
    peer->got_len = 0;
    assert_int_equal(SSL_write(peer->ssl, "ping", 4), 4);
    tls_says(tls, peer, "pong");
    run(peer, tls, &got);
    assert_true(span_equal_cstr(buf_span(&got), "ping"));
    assert_true(span_equal_cstr(span_of(peer->got, peer->got_len), "pong"));
    assert_int_equal(tls_state(tls), TLS_OPEN);
    buf_fini(&got);
}

/* A handshake with our server role. */
static struct tls *shake(struct peer *peer, SSL_CTX *ctx, struct tls_context *context, bool is_direct,
                         SSL_SESSION *session)
{
    struct buf got = {0};
    struct tls *tls = tls_accept(context, is_direct);
    peer_begin(peer, ctx, false, session);
    run(peer, tls, &got);
    assert_int_equal(got.len, 0);
    return tls;
}

/* ---- ALPN and SNI ---- */

static void servers_ask_for_the_protocol(void **state)
{
    static const struct {
        const char *offer; /* with lengths in front */
        bool is_direct;
        const char *why; /* NULL: they talk */
    } cases[] = {
        {"", false, NULL},
        {"\x0apostgresql", false, NULL},
        {"\x0apostgresql", true, NULL},
        {"\x02h2\x0apostgresql\x08http/1.1", true, NULL},
        {"\x02h2\x08http/1.1", false, "no application protocol: ALPN offers \"postgresql\" not"},
        {"\x0apostgresqk", true, "no application protocol: ALPN offers \"postgresql\" not"},
        {"\x0bpostgresqlx", true, "no application protocol: ALPN offers \"postgresql\" not"},
        {"", true, "direct TLS without ALPN: \"postgresql\" must be agreed on"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct peer peer;
        SSL_CTX *ctx = peer_context(false);
        struct tls_context *context = tls_fixture_server_role("server", "");
        if (cases[i].offer[0])
            SSL_CTX_set_alpn_protos(ctx, (const uint8_t *)cases[i].offer, (unsigned)strlen(cases[i].offer));
        struct tls *tls = shake(&peer, ctx, context, cases[i].is_direct, NULL);
        tls_context_free(context);
        if (cases[i].why) {
            assert_int_equal(tls_state(tls), TLS_FAILED);
            assert_string_equal(tls_why(tls), cases[i].why);
        } else {
            assert_talks(&peer, tls);
        }
        tls_free(tls);
        peer_end(&peer);
    }
}

static int choose(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *offer,
                  unsigned int offer_len, void *choice)
{
    (void)ssl;
    assert_true(span_equal(span_of(offer, offer_len), span_of("\x0apostgresql", 11))); /* always */
    if (!choice)
        return SSL_TLSEXT_ERR_NOACK;
    *out = choice;
    *out_len = (unsigned char)strlen(choice);
    return SSL_TLSEXT_ERR_OK;
}

static void clients_demand_the_protocol(void **state)
{
    static const struct {
        const char *host;
        const char *choice;
        const char *name; /* by SNI */
        bool is_direct;
        const char *why; /* "": OpenSSL's words, which differ by its version */
    } cases[] = {
        {"db1", "postgresql", "db1", true, NULL},
        {"db1", "postgresql", "db1", false, NULL},
        {"db1", NULL, "db1", false, NULL}, /* before PostgreSQL 17 */
        {"10.1.2.3", NULL, NULL, false, NULL},
        {"::1", NULL, NULL, false, NULL},
        {"db1.", NULL, "db1", false, NULL},
        {"db1", NULL, "db1", true, "direct TLS without ALPN: \"postgresql\" must be agreed on"},
        {"db1", "http/1.1", "db1", false, ""},
        {"db1", "http/1.1", "db1", true, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct peer peer;
        struct buf got = {0};
        char choice[16];
        SSL_CTX *ctx = peer_context(true);
        snprintf(choice, sizeof choice, "%s", cases[i].choice ? cases[i].choice : "");
        SSL_CTX_set_alpn_select_cb(ctx, choose, cases[i].choice ? choice : NULL);
        struct tls_context *context = tls_fixture_client_role("sslmode=require", "");
        struct tls *tls = tls_connect(context, cases[i].host, cases[i].is_direct);
        tls_context_free(context);
        peer_begin(&peer, ctx, true, NULL);
        run(&peer, tls, &got);
        const char *name = SSL_get_servername(peer.ssl, TLSEXT_NAMETYPE_host_name);
        assert_string_equal(name ? name : "", cases[i].name ? cases[i].name : "");
        if (cases[i].why) {
            assert_int_equal(tls_state(tls), TLS_FAILED);
            assert_true(!cases[i].why[0] || strcmp(tls_why(tls), cases[i].why) == 0);
        } else {
            assert_talks(&peer, tls);
        }
        tls_free(tls);
        peer_end(&peer);
        buf_fini(&got);
    }
}

/* ---- versions, ciphers, alerts ---- */

static void what_does_not_fit_is_named(void **state)
{
    static const struct {
        const char *settings;
        int version; /* the client's only one */
        const char *ciphers;
        bool is_strict; /* the client verifies, and knows no authority */
        const char *why;
    } cases[] = {
        {"", TLS1_1_VERSION, "ALL:@SECLEVEL=0", false, "unsupported protocol"},
        {"", TLS1_VERSION, "ALL:@SECLEVEL=0", false, "unsupported protocol"},
        {"client_tls_protocols = tlsv1.3", TLS1_2_VERSION, "ALL", false, "unsupported protocol"},
        {"client_tls_protocols = tlsv1.2", TLS1_3_VERSION, "ALL", false, "unsupported protocol"},
        {"client_tls_ciphers = ECDHE-ECDSA-AES256-GCM-SHA384", TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256", false,
         "no shared cipher"},
        {"", TLS1_2_VERSION, "ECDHE-RSA-AES128-GCM-SHA256", false, "no shared cipher"}, /* our key is another kind */
        {"", TLS1_2_VERSION, "ALL", true, "tlsv1 alert unknown ca"},
        {"", TLS1_3_VERSION, "ALL", true, "tlsv1 alert unknown ca"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct peer peer;
        SSL_CTX *ctx = peer_context(false);
        SSL_CTX_set_min_proto_version(ctx, cases[i].version);
        SSL_CTX_set_max_proto_version(ctx, cases[i].version);
        assert_int_equal(SSL_CTX_set_cipher_list(ctx, cases[i].ciphers), 1);
        SSL_CTX_set_verify(ctx, cases[i].is_strict ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
        struct tls_context *context = tls_fixture_server_role("server", cases[i].settings);
        struct tls *tls = shake(&peer, ctx, context, false, NULL);
        tls_context_free(context);
        assert_int_equal(tls_state(tls), TLS_FAILED);
        assert_string_equal(tls_why(tls), cases[i].why);
        tls_free(tls);
        peer_end(&peer);
    }
}

/* ---- during a connection ---- */

static void keys_may_be_updated(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct peer peer;
        struct buf got = {0};
        struct tls_context *context = tls_fixture_server_role("server", "");
        struct tls *tls = shake(&peer, peer_context(false), context, false, NULL);
        tls_context_free(context);
        for (int n = 0; n < 40; n++) {
            assert_int_equal(SSL_key_update(peer.ssl, i % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED),
                             1);
            if (i < 2)
                assert_talks(&peer, tls); /* the update goes out with data */
            assert_int_equal(SSL_do_handshake(peer.ssl), 1);
            run(&peer, tls, &got);
            assert_int_equal(got.len, 0);
        }
        assert_talks(&peer, tls);
        tls_free(tls);
        peer_end(&peer);
    }
}

static void nobody_renegotiates(void **state)
{
    struct peer peer;
    struct buf got = {0};
    (void)state;
    SSL_CTX *ctx = peer_context(false);
    SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
    struct tls_context *context = tls_fixture_server_role("server", "");
    struct tls *tls = shake(&peer, ctx, context, false, NULL);
    assert_talks(&peer, tls);
    assert_int_equal(SSL_renegotiate(peer.ssl), 1);
    SSL_do_handshake(peer.ssl);
    run(&peer, tls, &got);
    assert_int_equal(SSL_CTX_sess_accept_good(context->ctx), 1);
    assert_int_equal(got.len, 0);
    tls_context_free(context);
    tls_free(tls);
    peer_end(&peer);
}

/* ---- tickets ---- */

/* What the last handshake of a peer gave to resume; NULL when nothing. */
static SSL_SESSION *ticket_of(struct peer *peer)
{
    SSL_SESSION *session = SSL_get1_session(peer->ssl);
    if (SSL_SESSION_is_resumable(session))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

static SSL_CTX *alices_context(int version)
{
    SSL_CTX *ctx = peer_context(false);
    SSL_CTX_set_max_proto_version(ctx, version);
    peer_shows(ctx, "alice.crt", "alice.key");
    return ctx;
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

/* Resumes `session` (released) with a context of ours; tells whether it was resumed, and what is known then. */
static bool resume(int version, SSL_SESSION *session, struct tls_context *context, struct channel *channel,
                   char why[128])
{
    struct peer peer;
    struct tls *tls = shake(&peer, alices_context(version), context, false, session);
    bool is_resumed = SSL_session_reused(peer.ssl);
    snprintf(why, 128, "%s", tls_why(tls));
    if (tls_state(tls) == TLS_OPEN) {
        assert_talks(&peer, tls);
        tls_describe(tls, channel);
    }
    tls_free(tls);
    SSL_SESSION_free(session);
    peer_end(&peer);
    return is_resumed;
}

/* A first connection as alice, and its ticket. */
static SSL_SESSION *get_ticket(int version, struct tls_context *context, struct channel *channel)
{
    struct peer peer;
    struct tls *tls = shake(&peer, alices_context(version), context, false, NULL);
    assert_talks(&peer, tls);
    tls_describe(tls, channel);
    SSL_SESSION *session = ticket_of(&peer);
    tls_free(tls);
    peer_end(&peer);
    assert_non_null(session);
    return session;
}

#define ASKS "client_tls_ca_file = %/ca.crt"

static void tickets_remember_who_it_was(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct channel first;
        struct channel again;
        char why[128];
        struct tls_context *context = tls_fixture_server_role("server", "client_tls_sslmode = verify-full\n" ASKS);
        SSL_SESSION *session = get_ticket(versions[i], context, &first);
        assert_true(resume(versions[i], session, context, &again, why));
        assert_string_equal(why, "");
        assert_true(again.is_verified);
        assert_string_equal(again.peer_cn, "alice");
        assert_string_equal(again.peer_dn, first.peer_dn);
        assert_string_equal(again.version, first.version);
        assert_true(again.binding_len == 32 && memcmp(again.binding, first.binding, 32) == 0);
        tls_context_free(context);
    }
}

/* A reload makes new keys for tickets: what was proved under the old settings is proved again. */
static void tickets_die_with_their_context(void **state)
{
    (void)state;
    tls_fixture_revoke("alice.crl", "ca", "alice", -1, 1);
    for (size_t i = 0; i < 2; i++) {
        struct channel channel;
        char why[128];
        struct tls_context *context = tls_fixture_server_role("server", ASKS);
        struct tls_context *same = tls_fixture_server_role("server", ASKS);
        struct tls_context *other = tls_fixture_server_role("server", "client_tls_ca_file = %/other_ca.crt");
        struct tls_context *revoking = tls_fixture_server_role("server", ASKS "\nclient_tls_crl_file = %/alice.crl");
        assert_false(resume(versions[i], get_ticket(versions[i], context, &channel), same, &channel, why));
        assert_string_equal(why, "");
        assert_true(channel.is_verified);
        assert_false(resume(versions[i], get_ticket(versions[i], context, &channel), other, &channel, why));
        assert_string_equal(why, "certificate verify failed: unable to get local issuer certificate (CN=alice,O=Shop)");
        assert_false(resume(versions[i], get_ticket(versions[i], context, &channel), revoking, &channel, why));
        assert_string_equal(why, "certificate verify failed: certificate revoked (CN=alice,O=Shop)");
        tls_context_free(context);
        tls_context_free(same);
        tls_context_free(other);
        tls_context_free(revoking);
    }
}

/* The clock is left alone: contexts do not look at it while they give the ticket. */
static bool resume_later(int version, const char *settings, char why[128])
{
    struct channel channel;
    struct tls_context *context = tls_fixture_server_role("server", settings);
    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(context->ctx);
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_NO_CHECK_TIME);
    SSL_SESSION *session = get_ticket(version, context, &channel);
    X509_VERIFY_PARAM_clear_flags(param, X509_V_FLAG_NO_CHECK_TIME);
    bool is_resumed = resume(version, session, context, &channel, why);
    tls_context_free(context);
    return is_resumed;
}

static void tickets_end_with_their_lists(void **state)
{
    (void)state;
    tls_fixture_revoke("good.crl", "ca", NULL, -1, 1);
    tls_fixture_revoke("late.crl", "ca", NULL, -9, -1);
    tls_fixture_revoke("for_ever.crl", "ca", NULL, -1, TLS_FOR_EVER);
    for (size_t i = 0; i < 2; i++) {
        char why[128];
        assert_true(resume_later(versions[i], ASKS "\nclient_tls_crl_file = %/good.crl", why));
        assert_string_equal(why, "");
        assert_true(resume_later(versions[i], ASKS "\nclient_tls_crl_file = %/for_ever.crl", why));
        assert_string_equal(why, "");
        assert_false(resume_later(versions[i], ASKS "\nclient_tls_crl_file = %/late.crl", why));
        assert_string_equal(why, "certificate verify failed: CRL has expired (CN=alice,O=Shop, issued by CN=ca)");
    }
}

static void tickets_end_with_their_certificate(void **state)
{
    (void)state;
    tls_fixture_make(&(struct tls_recipe){.name = "alice", .issuer = "ca", .from_days = -9, .to_days = -1});
    for (size_t i = 0; i < 2; i++) {
        char why[128];
        assert_false(resume_later(versions[i], ASKS, why));
        assert_string_equal(why, "certificate verify failed: certificate has expired (CN=alice)");
    }
}

static int setup(void **state)
{
    tls_fixture_setup(state);
    tls_fixture_make(&(struct tls_recipe){.name = "other_ca", .is_authority = true});
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_ask_for_the_protocol),
        cmocka_unit_test(clients_demand_the_protocol),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(keys_may_be_updated),
        cmocka_unit_test(nobody_renegotiates),
        cmocka_unit_test(tickets_remember_who_it_was),
        cmocka_unit_test(tickets_die_with_their_context),
        cmocka_unit_test(tickets_end_with_their_lists),
        cmocka_unit_test(tickets_end_with_their_certificate),
    };
    return cmocka_run_group_tests(tests, setup, tls_fixture_teardown);
}
