/* test_scram.c - both sides of SCRAM: against RFC 7677, against each other, and against peers that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scram_fixture.h"

static void assert_text(const struct buf *text, const char *expected)
{
    if (!span_equal_cstr(buf_span(text), expected))
        fail_msg("\"%.*s\" instead of \"%s\"", (int)text->len, (const char *)text->ptr, expected);
}

/* ---- the vector ---- */

static void the_vector_of_the_rfc_holds(void **state)
{
    struct secret secret = secret_of(SECRET);
    struct scram_server *server = scram_server_new(&secret, span_of(NULL, 0));
    struct buf out = {0};
    uint8_t key[SCRAM_KEY];
    uint8_t expected[SCRAM_KEY];
    const char *why;
    (void)state;
    assert_non_null(server);
    assert_int_equal(scram_server_first_nonce(server, span_cstr(SCRAM_PLAIN), span_cstr(FIRST_TEXT),
                                              span_cstr(SERVER_NONCE), &out, &why),
                     SCRAM_OK);
    assert_text(&out, CHALLENGE_TEXT);
    buf_clear(&out);
    assert_int_equal(scram_server_final(server, span_cstr(LAST_TEXT), &out, key, &why), SCRAM_OK);
    assert_text(&out, SIGNATURE_TEXT);
    key_of(CLIENT_KEY, expected);
    assert_memory_equal(key, expected, SCRAM_KEY);
    buf_fini(&out);
    scram_server_free(server);
}

/* The same on our client's side; libpq's user name is empty, so proof and signature are others. */
static void the_vector_without_a_name_holds(void **state)
{
    struct secret secret = secret_of(SECRET);
    uint8_t key[SCRAM_KEY];
    struct buf out = {0};
    const char *mechanism;
    const char *why;
    (void)state;
    key_of(CLIENT_KEY, key);
    struct scram_client *client = scram_client_new(&secret, key, span_of(NULL, 0));
    assert_non_null(client);
    assert_int_equal(scram_client_first_nonce(client, span_of(PLAIN_OFFER, sizeof PLAIN_OFFER), span_cstr(CLIENT_NONCE),
                                              &mechanism, &out, &why),
                     SCRAM_OK);
    assert_string_equal(mechanism, SCRAM_PLAIN);
    assert_text(&out, "n,,n=,r=" CLIENT_NONCE);
    buf_clear(&out);
    assert_int_equal(scram_client_final(client, span_cstr(CHALLENGE_TEXT), &out, &why), SCRAM_OK);
    assert_text(&out, "c=biws,r=" NONCE "," NAMELESS_PROOF);
    assert_int_equal(scram_client_verify(client, span_cstr(NAMELESS_SIGNATURE_TEXT), &why), SCRAM_OK);
    buf_fini(&out);
    scram_client_free(client);
}

/* ---- one whole exchange, with somebody in the middle ---- */

enum { OFFER, FIRST, CHALLENGE, FINAL, SIGNATURE, MESSAGES };

struct exchange {
    struct span server_binding;
    struct span client_binding;
    const char *secret; /* of the server */
    const char *key;    /* of the client, whose secret is SECRET */
    bool is_mock;
    /* Changes one message on its way. NULL: nobody does. */
    void (*meddle)(void *arg, int message, struct buf *text);
    void *arg;
};

struct outcome {
    enum scram_result server; /* of the last step that was reached */
    enum scram_result client;
    int reached; /* messages that were sent and taken */
    const char *server_why;
    const char *client_why;
    const char *mechanism;
};

static struct span pass(const struct exchange *exchange, int message, struct buf *text)
{
    if (exchange->meddle)
        exchange->meddle(exchange->arg, message, text);
    return buf_span(text);
}

static struct outcome talk(const struct exchange *exchange, struct scram_server *server, struct scram_client *client,
                           struct buf *text)
{
    struct outcome outcome = {.server = SCRAM_ERROR, .client = SCRAM_ERROR, .mechanism = ""};
    uint8_t key[SCRAM_KEY];
    uint8_t expected[SCRAM_KEY];
    struct buf reply = {0};

    if (exchange->server_binding.len)
        buf_put_cstr(text, SCRAM_PLUS);
    buf_put(text, PLAIN_OFFER, sizeof PLAIN_OFFER);
    outcome.client = text->failed ? SCRAM_ERROR
                                  : scram_client_first(client, pass(exchange, OFFER, text), &outcome.mechanism, &reply,
                                                       &outcome.client_why);
    if (outcome.client != SCRAM_OK)
        goto out;
    outcome.reached++;
    buf_clear(text);
    outcome.server = scram_server_first(server, span_cstr(outcome.mechanism), pass(exchange, FIRST, &reply), text,
                                        &outcome.server_why);
    if (outcome.server != SCRAM_OK)
        goto out;
    outcome.reached++;
    buf_clear(&reply);
    outcome.client = scram_client_final(client, pass(exchange, CHALLENGE, text), &reply, &outcome.client_why);
    if (outcome.client != SCRAM_OK)
        goto out;
    outcome.reached++;
    buf_clear(text);
    memset(key, 0x5a, sizeof key);
    outcome.server = scram_server_final(server, pass(exchange, FINAL, &reply), text, key, &outcome.server_why);
    memset(expected, 0, sizeof expected);
    if (outcome.server == SCRAM_OK)
        key_of(exchange->key, expected);
    assert_memory_equal(key, expected, SCRAM_KEY); /* the key, or nothing */
    if (outcome.server != SCRAM_OK)
        goto out;
    outcome.reached++;
    outcome.client = scram_client_verify(client, pass(exchange, SIGNATURE, text), &outcome.client_why);
    outcome.reached += outcome.client == SCRAM_OK;
out:
    buf_fini(&reply);
    return outcome;
}

static struct outcome run(const struct exchange *exchange)
{
    static const uint8_t seed[SCRAM_KEY];
    struct outcome outcome = {.server = SCRAM_ERROR, .client = SCRAM_ERROR};
    struct secret kept = secret_of(exchange->secret);
    struct secret expected = secret_of(SECRET);
    struct buf text = {0};
    uint8_t key[SCRAM_KEY];
    key_of(exchange->key, key);
    if (exchange->is_mock) {
        assert_true(secret_mock(seed, span_cstr("ann"), &kept));
        expected = kept; /* a client computes with whatever salt it is told */
    }
    struct scram_server *server = scram_server_new(&kept, exchange->server_binding);
    struct scram_client *client = scram_client_new(&expected, key, exchange->client_binding);
    if (server && client)
        outcome = talk(exchange, server, client, &text);
    scram_server_free(server);
    scram_client_free(client);
    buf_fini(&text);
    return outcome;
}

#define SAME .secret = SECRET, .key = CLIENT_KEY

static void the_sides_agree_where_they_should(void **state)
{
    static const struct {
        struct exchange exchange;
        int reached;
        enum scram_result server;
        enum scram_result client;
        const char *mechanism;
        const char *why; /* of the side that ended it */
    } cases[] = {
        {{NOTHING, NOTHING, SAME}, MESSAGES, SCRAM_OK, SCRAM_OK, SCRAM_PLAIN, NULL},
        {{NOTHING, THIS, SAME}, MESSAGES, SCRAM_OK, SCRAM_OK, SCRAM_PLAIN, NULL}, /* "y,,", and rightly so */
        {{THIS, NOTHING, SAME}, MESSAGES, SCRAM_OK, SCRAM_OK, SCRAM_PLAIN, NULL}, /* "n,," */
        {{THIS, THIS, SAME}, MESSAGES, SCRAM_OK, SCRAM_OK, SCRAM_PLUS, NULL},
        {{THIS, OTHER, SAME}, FINAL, SCRAM_REFUSED, SCRAM_OK, SCRAM_PLUS, "another certificate"},
        {{OTHER, THIS, SAME}, FINAL, SCRAM_REFUSED, SCRAM_OK, SCRAM_PLUS, "another certificate"},
        {{NOTHING, NOTHING, .secret = SECRET, .key = STORED}, FINAL, SCRAM_REFUSED, SCRAM_OK, SCRAM_PLAIN, "password"},
        {{THIS, THIS, .secret = SECRET, .key = SERVER}, FINAL, SCRAM_REFUSED, SCRAM_OK, SCRAM_PLUS, "password"},
        {{NOTHING, NOTHING, SAME, .is_mock = true}, FINAL, SCRAM_REFUSED, SCRAM_OK, SCRAM_PLAIN, "no SCRAM secret"},
        /* The server's secret is of the same password, but was made with another salt or count. */
        {{NOTHING, NOTHING, .secret = "SCRAM-SHA-256$4097:" SALT "$" STORED ":" SERVER, .key = CLIENT_KEY},
         CHALLENGE,
         SCRAM_OK,
         SCRAM_REFUSED,
         SCRAM_PLAIN,
         "another SCRAM secret"},
        {{NOTHING, NOTHING, .secret = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gA==$" STORED ":" SERVER,
          .key = CLIENT_KEY},
         CHALLENGE,
         SCRAM_OK,
         SCRAM_REFUSED,
         SCRAM_PLAIN,
         "another SCRAM secret"},
        {{NOTHING, NOTHING, .secret = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6$" STORED ":" SERVER, .key = CLIENT_KEY},
         CHALLENGE,
         SCRAM_OK,
         SCRAM_REFUSED,
         SCRAM_PLAIN,
         "another SCRAM secret"},
        /* The server can verify, and has no ServerKey: it has stolen half of a secret. */
        {{NOTHING, NOTHING, .secret = "SCRAM-SHA-256$4096:" SALT "$" STORED ":" STORED, .key = CLIENT_KEY},
         SIGNATURE,
         SCRAM_OK,
         SCRAM_REFUSED,
         SCRAM_PLAIN,
         "signature is wrong"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome outcome = run(&cases[i].exchange);
        const char *why = outcome.server != SCRAM_OK ? outcome.server_why : outcome.client_why;
        if (outcome.reached != cases[i].reached || outcome.server != cases[i].server ||
            outcome.client != cases[i].client || strcmp(outcome.mechanism, cases[i].mechanism) != 0)
            fail_msg("case %zu: %d messages, server %d, client %d, %s (%s)", i, outcome.reached, outcome.server,
                     outcome.client, outcome.mechanism, why ? why : "");
        if (cases[i].why ? !why || !strstr(why, cases[i].why) : why != NULL)
            fail_msg("case %zu: why: %s", i, why ? why : "nothing");
    }
}

/* Two users, one of whom does not exist, cannot be told apart by what is said to them. */
static void unknown_users_get_the_same_answers(void **state)
{
    static const struct exchange wrong = {NOTHING, NOTHING, .secret = SECRET, .key = STORED};
    static const struct exchange nobody = {NOTHING, NOTHING, SAME, .is_mock = true};
    (void)state;
    struct outcome a = run(&wrong);
    struct outcome b = run(&nobody);
    assert_int_equal(a.server, b.server);
    assert_int_equal(a.reached, b.reached);
    assert_string_not_equal(a.server_why, b.server_why); /* the log knows */
}

/* Even a proof that is right is refused: no mock secret has a key that logs in. */
static void a_mock_secret_lets_nobody_in(void **state)
{
    struct secret secret = secret_of(SECRET);
    secret.is_mock = true;
    uint8_t key[SCRAM_KEY];
    struct buf out = {0};
    const char *why;
    (void)state;
    struct scram_server *server = scram_server_new(&secret, span_of(NULL, 0));
    assert_int_equal(scram_server_first_nonce(server, span_cstr(SCRAM_PLAIN), span_cstr(FIRST_TEXT),
                                              span_cstr(SERVER_NONCE), &out, &why),
                     SCRAM_OK);
    buf_clear(&out);
    assert_int_equal(scram_server_final(server, span_cstr(LAST_TEXT), &out, key, &why), SCRAM_REFUSED);
    assert_int_equal(out.len, 0);
    static const uint8_t zeros[SCRAM_KEY];
    assert_memory_equal(key, zeros, SCRAM_KEY);
    buf_fini(&out);
    scram_server_free(server);
}

/* ---- in the middle ---- */

struct change {
    int message;
    size_t at; /* the byte that is changed, or where the text is cut */
    uint8_t flip;
    enum { FLIP, CUT, DROP, INSERT } how;
    bool is_done;
};

static void change_message(void *arg, int message, struct buf *text)
{
    struct change *change = arg;
    if (message != change->message || change->at >= text->len)
        return;
    change->is_done = true;
    if (change->how == FLIP) {
        text->ptr[change->at] ^= change->flip;
        return;
    }
    if (change->how == CUT) {
        text->len = change->at;
        return;
    }
    struct buf copy = {0};
    buf_put(&copy, text->ptr, change->at);
    if (change->how == INSERT)
        buf_put_u8(&copy, change->flip);
    buf_put(&copy, text->ptr + change->at + (change->how == DROP), text->len - change->at - (change->how == DROP));
    buf_clear(text);
    buf_put_span(text, buf_span(&copy));
    buf_fini(&copy);
}

/* Whatever is changed in one message, the exchange does not end well; and the server takes no proof that was made
 * about other texts than its own. */
static void assert_noticed(const struct exchange *exchange, const struct change *change)
{
    struct outcome outcome = run(exchange);
    if (!change->is_done)
        return;
    bool is_fine = outcome.server == SCRAM_OK && outcome.client == SCRAM_OK && outcome.reached == MESSAGES;
    bool is_deceived = outcome.reached > FINAL && change->message != SIGNATURE && change->message != OFFER;
    /* The offer is not signed: what comes through changed is that less is bound, or a name that nobody chooses. */
    if (change->message == OFFER && outcome.reached == MESSAGES)
        is_fine = exchange->server_binding.len > 0 && exchange->client_binding.len > 0 &&
                  strcmp(outcome.mechanism, SCRAM_PLUS) != 0;
    if (is_fine || is_deceived)
        fail_msg("message %d, byte %zu, change %d %02x: not noticed", change->message, change->at, change->how,
                 change->flip);
}

static void every_change_is_noticed(void **state)
{
    static const struct exchange exchanges[] = {
        {NOTHING, NOTHING, SAME}, {NOTHING, THIS, SAME}, {THIS, NOTHING, SAME}, {THIS, THIS, SAME}};
    static const uint8_t bytes[] = {'\0', ',', '=', 'a', '\n', 0xff};
    (void)state;
    for (size_t e = 0; e < sizeof exchanges / sizeof exchanges[0]; e++)
        for (int message = OFFER; message < MESSAGES; message++) {
            struct change change = {.message = message, .is_done = true};
            struct exchange exchange = exchanges[e];
            exchange.meddle = change_message;
            exchange.arg = &change;
            for (size_t at = 0; change.is_done; at++) {
                for (unsigned bit = 0; bit < 8; bit++) {
                    change = (struct change){message, at, (uint8_t)(1u << bit), FLIP, false};
                    assert_noticed(&exchange, &change);
                }
                for (size_t i = 0; i < sizeof bytes; i++) {
                    change = (struct change){message, at, bytes[i], INSERT, false};
                    assert_noticed(&exchange, &change);
                }
                change = (struct change){message, at, 0, DROP, false};
                assert_noticed(&exchange, &change);
                change = (struct change){message, at, 0, CUT, false};
                assert_noticed(&exchange, &change);
            }
        }
}

/* Somebody takes PLUS out of the offer, so that the channel is not bound. */
static void strip_plus(void *arg, int message, struct buf *text)
{
    (void)arg;
    if (message == OFFER)
        buf_consume(text, sizeof SCRAM_PLUS);
}

static void a_stripped_offer_is_refused(void **state)
{
    static const struct exchange exchange = {THIS, THIS, SAME, .meddle = strip_plus};
    (void)state;
    struct outcome outcome = run(&exchange);
    assert_int_equal(outcome.server, SCRAM_REFUSED);
    assert_int_equal(outcome.reached, FIRST);
    assert_non_null(strstr(outcome.server_why, "somebody between"));
}

/* ---- memory ---- */

static void every_allocation_may_fail(void **state)
{
    static const struct exchange exchange = {THIS, THIS, SAME};
    (void)state;
    for (long n = 0;; n++) {
        mem_fail_after(n);
        struct outcome outcome = run(&exchange);
        mem_fail_after(-1);
        if (outcome.reached == MESSAGES) {
            assert_true(n > 10);
            break;
        }
        assert_true(outcome.server == SCRAM_ERROR || outcome.client == SCRAM_ERROR);
        assert_true(n < 1000);
    }
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vector_of_the_rfc_holds),       cmocka_unit_test(the_vector_without_a_name_holds),
        cmocka_unit_test(the_sides_agree_where_they_should), cmocka_unit_test(unknown_users_get_the_same_answers),
        cmocka_unit_test(a_mock_secret_lets_nobody_in),      cmocka_unit_test(every_change_is_noticed),
        cmocka_unit_test(a_stripped_offer_is_refused),       cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
