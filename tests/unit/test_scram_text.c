/* test_scram_text.c - peers that lie: every text of an exchange, taken or refused for the right reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scram_fixture.h"

/* ---- clients that lie ---- */

#define LONG_16 "xxxxxxxxxxxxxxxx"
#define LONG_256 \
    LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 \
        LONG_16 LONG_16
#define LONG_512 LONG_256 LONG_256
#define LONG_4096 LONG_512 LONG_512 LONG_512 LONG_512 LONG_512 LONG_512 LONG_512 LONG_512

static const struct {
    const char *mechanism;
    struct span binding;
    struct span text;
    enum scram_result result;
} first_texts[] = {
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=abc"), SCRAM_OK},
    {SCRAM_PLAIN, NOTHING, TEXT("y,,n=,r=abc"), SCRAM_OK},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=*,r=abc"), SCRAM_OK},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=a=2Cb=3D=3d=2c,r=abc"), SCRAM_OK},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=j\xc3\xbcrgen,r=abc"), SCRAM_OK},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=!\"#$%&'()*+-./:;<=>?@[]^_`{|}~"), SCRAM_OK},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=abc,x=1,Z=,q=a=b"), SCRAM_OK},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=" LONG_512), SCRAM_OK},
    {SCRAM_PLAIN, THIS, TEXT("n,,n=,r=abc"), SCRAM_OK},
    {SCRAM_PLUS, THIS, TEXT("p=tls-server-end-point,,n=,r=abc"), SCRAM_OK},
    /* The flag, the mechanism and the offer. */
    {SCRAM_PLAIN, THIS, TEXT("y,,n=,r=abc"), SCRAM_REFUSED},
    {SCRAM_PLUS, THIS, TEXT("n,,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLUS, THIS, TEXT("y,,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, THIS, TEXT("p=tls-server-end-point,,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("p=tls-server-end-point,,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLUS, NOTHING, TEXT("p=tls-server-end-point,,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLUS, NOTHING, TEXT("n,,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLUS, THIS, TEXT("p=tls-unique,,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLUS, THIS, TEXT("p=tls-server-end-poin,,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLUS, THIS, TEXT("p=TLS-SERVER-END-POINT,,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLUS, THIS, TEXT("p=,,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLUS, THIS, TEXT("p,,n=,r=abc"), SCRAM_MALFORMED},
    {"SCRAM-SHA-1", NOTHING, TEXT("n,,n=,r=abc"), SCRAM_MALFORMED},
    {"SCRAM-SHA-256 ", NOTHING, TEXT("n,,n=,r=abc"), SCRAM_MALFORMED},
    {"", NOTHING, TEXT("n,,n=,r=abc"), SCRAM_MALFORMED},
    /* The header. */
    {SCRAM_PLAIN, NOTHING, TEXT(""), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT(",,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("x,,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("N,,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("nn,,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("F,n,,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,a=root,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,x=root,n=,r=abc"), SCRAM_MALFORMED},
    /* Attributes: missing, empty, out of order, twice, mandatory. */
    {SCRAM_PLAIN, NOTHING, TEXT("n,,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,r=abc,n="), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n="), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r="), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=,x=1"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,rabc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,m=x,n=,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=abc,"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=abc,1=x"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=abc,xy"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=abc,,x=1"), SCRAM_MALFORMED},
    /* Values. */
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n==,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=a=2,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=a=20,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=a=3C,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=a bc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=a\tbc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=a\x7f"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=\xc3\xbc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=a\0bc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=\0,r=abc"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=abc\0"), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=x" LONG_512), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=,r=" LONG_4096), SCRAM_MALFORMED},
    {SCRAM_PLAIN, NOTHING, TEXT("n,,n=" LONG_4096 ",r=abc"), SCRAM_MALFORMED},
};

/* What a driver's author looks for in the log. */
static void refusals_name_their_cause(void **state)
{
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {
        {"n,a=root,n=,r=abc", "authorization identity"},
        {"n,,m=x,n=,r=abc", "must be understood"},
        {"n", "two commas"},
        {"n,", "two commas"},
        {"n,x", "two commas"},
        {"x,,n=,r=abc", "none of n, y, p"},
        {"p=,,n=,r=abc", "no name"},
        {"p=tls-unique,,n=,r=abc", "disagree"},
        {"n,,r=abc", "(n=)"},
        {"n,,n=", "(r=)"},
        {"n,,n=,r=", "empty"},
        {"n,,n=,r=x" LONG_512, "too long"},
        {"n,,n=,r=\x7f", "printable"},
        {"n,,n=,r=abc,1", "behind the last"},
    };
    struct secret secret = secret_of(SECRET);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scram_server *server = scram_server_new(&secret, span_of(NULL, 0));
        struct buf out = {0};
        const char *why;
        assert_int_equal(scram_server_first(server, span_cstr(SCRAM_PLAIN), span_cstr(cases[i].text), &out, &why),
                         SCRAM_MALFORMED);
        if (!strstr(why, cases[i].why))
            fail_msg("\"%s\": %s", cases[i].text, why);
        scram_server_free(server);
    }
}

static void first_texts_are_judged(void **state)
{
    struct secret secret = secret_of(SECRET);
    (void)state;
    for (size_t i = 0; i < sizeof first_texts / sizeof first_texts[0]; i++) {
        struct scram_server *server = scram_server_new(&secret, first_texts[i].binding);
        struct buf out = {0};
        const char *why;
        enum scram_result result =
            scram_server_first(server, span_cstr(first_texts[i].mechanism), first_texts[i].text, &out, &why);
        if (result != first_texts[i].result)
            fail_msg("\"%.100s\": %d (%s)", (const char *)first_texts[i].text.ptr, result, why ? why : "");
        assert_int_equal(why == NULL, result == SCRAM_OK);
        assert_int_equal(out.len > 0, result == SCRAM_OK);
        assert_true(out.len <= SCRAM_MESSAGE_MAX);
        buf_fini(&out);
        scram_server_free(server);
    }
}

static const struct {
    struct span text;
    enum scram_result result;
    const char *why;
} last_texts[] = {
    {TEXT(LAST_TEXT), SCRAM_OK, NULL},
    /* The header that client-first had is "n,,". */
    {TEXT("c=eSws,r=" NONCE "," PROOF), SCRAM_REFUSED, "channel binding"},
    {TEXT("c=cD10bHMtc2VydmVyLWVuZC1wb2ludCws,r=" NONCE "," PROOF), SCRAM_REFUSED, "channel binding"},
    {TEXT("c=biwsAA==,r=" NONCE "," PROOF), SCRAM_REFUSED, "channel binding"},
    {TEXT("c=biw=,r=" NONCE "," PROOF), SCRAM_REFUSED, "channel binding"},
    {TEXT("c=n\\,\\,,r=" NONCE "," PROOF), SCRAM_MALFORMED, "nonce (r=)"},
    {TEXT("c=,r=" NONCE "," PROOF), SCRAM_REFUSED, "channel binding"},
    /* Nonces. */
    {TEXT("c=biws,r=" CLIENT_NONCE "," PROOF), SCRAM_MALFORMED, "agreed on"},
    {TEXT("c=biws,r=" SERVER_NONCE "," PROOF), SCRAM_MALFORMED, "agreed on"},
    {TEXT("c=biws,r=" NONCE "x," PROOF), SCRAM_MALFORMED, "agreed on"},
    {TEXT("c=biws,r=," PROOF), SCRAM_MALFORMED, "empty"},
    {TEXT("c=biws,r=" LONG_512 LONG_512 "x," PROOF), SCRAM_MALFORMED, "too long"},
    /* Attributes. */
    {TEXT(""), SCRAM_MALFORMED, "empty"},
    {TEXT("c"), SCRAM_MALFORMED, "(c=)"},
    {TEXT("c=biws"), SCRAM_MALFORMED, "(r=)"},
    {TEXT("c=biws,r=" NONCE), SCRAM_MALFORMED, "(p=) is missing"},
    {TEXT("c=biws,r=" NONCE ","), SCRAM_MALFORMED, "(p=) is missing"},
    {TEXT("c=biws,r=" NONCE ",x=1"), SCRAM_MALFORMED, "(p=) is missing"},
    {TEXT("r=" NONCE ",c=biws," PROOF), SCRAM_MALFORMED, "(c=)"},
    {TEXT("c=biws," PROOF ",r=" NONCE), SCRAM_MALFORMED, "(r=)"},
    {TEXT(PROOF), SCRAM_MALFORMED, "(c=)"},
    {TEXT("c=biws,r=" NONCE ",1=x," PROOF), SCRAM_MALFORMED, "(p=) is missing"},
    {TEXT(LAST_TEXT ","), SCRAM_MALFORMED, "behind the proof"},
    {TEXT(LAST_TEXT ",x=1"), SCRAM_MALFORMED, "behind the proof"},
    {TEXT(LAST_TEXT "," PROOF), SCRAM_MALFORMED, "behind the proof"},
    {TEXT(LAST_TEXT "\0"), SCRAM_MALFORMED, "NUL"},
    {TEXT("c=biws,r=" NONCE ",x=" LONG_4096 "," PROOF), SCRAM_MALFORMED, "longer"},
    /* An extension is allowed; since it is signed, this proof is not about it. */
    {TEXT("c=biws,r=" NONCE ",x=1,y=," PROOF), SCRAM_REFUSED, "password"},
    /* Proofs. */
    {TEXT("c=biws,r=" NONCE ",p="), SCRAM_MALFORMED, "32 bytes"},
    {TEXT("c=biws,r=" NONCE ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7Andw=="), SCRAM_MALFORMED, "32 bytes"},
    {TEXT("c=biws,r=" NONCE ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQA"), SCRAM_MALFORMED, "32 bytes"},
    {TEXT("c=biws,r=" NONCE ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVR="), SCRAM_MALFORMED, "32 bytes"},
    {TEXT("c=biws,r=" NONCE ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ"), SCRAM_MALFORMED, "32 bytes"},
    {TEXT("c=biws,r=" NONCE ",p=dHzbZapWIk4jUhN-Ute9ytag9zjfMHgsqmmiz7AndVQ="), SCRAM_MALFORMED, "32 bytes"},
    {TEXT("c=biws,r=" NONCE ",p=" LONG_512), SCRAM_MALFORMED, "32 bytes"},
    {TEXT("c=biws,r=" NONCE ",p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), SCRAM_REFUSED, "password"},
};

static void last_texts_are_judged(void **state)
{
    struct secret secret = secret_of(SECRET);
    (void)state;
    for (size_t i = 0; i < sizeof last_texts / sizeof last_texts[0]; i++) {
        static const uint8_t zeros[SCRAM_KEY];
        struct scram_server *server = scram_server_new(&secret, span_of(NULL, 0));
        struct buf out = {0};
        uint8_t key[SCRAM_KEY] = {1};
        const char *why;
        assert_int_equal(scram_server_first_nonce(server, span_cstr(SCRAM_PLAIN), span_cstr(FIRST_TEXT),
                                                  span_cstr(SERVER_NONCE), &out, &why),
                         SCRAM_OK);
        buf_clear(&out);
        enum scram_result result = scram_server_final(server, last_texts[i].text, &out, key, &why);
        if (result != last_texts[i].result)
            fail_msg("\"%.200s\": %d (%s)", (const char *)last_texts[i].text.ptr, result, why ? why : "");
        if (last_texts[i].why ? !why || !strstr(why, last_texts[i].why) : why != NULL)
            fail_msg("\"%.200s\": why: %s", (const char *)last_texts[i].text.ptr, why ? why : "nothing");
        assert_int_equal(out.len > 0, result == SCRAM_OK);
        if (result != SCRAM_OK)
            assert_memory_equal(key, zeros, SCRAM_KEY);
        /* There is no second try in one exchange. */
        assert_int_equal(scram_server_final(server, span_cstr(LAST_TEXT), &out, key, &why), SCRAM_MALFORMED);
        assert_memory_equal(key, zeros, SCRAM_KEY);
        buf_fini(&out);
        scram_server_free(server);
    }
}

static void texts_come_in_their_order(void **state)
{
    struct secret secret = secret_of(SECRET);
    struct buf out = {0};
    uint8_t key[SCRAM_KEY];
    const char *why;
    (void)state;
    struct scram_server *server = scram_server_new(&secret, span_of(NULL, 0));
    assert_int_equal(scram_server_final(server, span_cstr(LAST_TEXT), &out, key, &why), SCRAM_MALFORMED);
    assert_int_equal(scram_server_first(server, span_cstr(SCRAM_PLAIN), span_cstr("n,,n=,r=abc"), &out, &why),
                     SCRAM_MALFORMED);
    scram_server_free(server);
    server = scram_server_new(&secret, span_of(NULL, 0));
    assert_int_equal(scram_server_first(server, span_cstr(SCRAM_PLAIN), span_cstr("n,,n=,r=abc"), &out, &why),
                     SCRAM_OK);
    assert_int_equal(scram_server_first(server, span_cstr(SCRAM_PLAIN), span_cstr("n,,n=,r=abc"), &out, &why),
                     SCRAM_MALFORMED);
    scram_server_free(server);
    buf_fini(&out);
}

static void nonces_are_fresh(void **state)
{
    enum { RUNS = 64 };
    struct secret secret = secret_of(SECRET);
    char seen[RUNS][25];
    (void)state;
    for (size_t i = 0; i < RUNS; i++) {
        struct scram_server *server = scram_server_new(&secret, span_of(NULL, 0));
        struct buf out = {0};
        const char *why;
        assert_int_equal(scram_server_first(server, span_cstr(SCRAM_PLAIN), span_cstr("n,,n=,r=abc"), &out, &why),
                         SCRAM_OK);
        assert_true(out.len > 5 + 24);
        memcpy(seen[i], out.ptr + 5, 24);
        seen[i][24] = '\0';
        assert_int_equal(strlen(seen[i]), 24);
        assert_null(strchr(seen[i], ','));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(seen[i], seen[j]);
        buf_fini(&out);
        scram_server_free(server);
    }
}

/* ---- servers that lie ---- */

/* A client that has said its first text with CLIENT_NONCE. */
static struct scram_client *client_after_first(void)
{
    struct secret secret = secret_of(SECRET);
    uint8_t key[SCRAM_KEY];
    struct buf out = {0};
    const char *mechanism;
    const char *why;
    key_of(CLIENT_KEY, key);
    struct scram_client *client = scram_client_new(&secret, key, span_of(NULL, 0));
    assert_int_equal(scram_client_first_nonce(client, span_of(PLAIN_OFFER, sizeof PLAIN_OFFER), span_cstr(CLIENT_NONCE),
                                              &mechanism, &out, &why),
                     SCRAM_OK);
    buf_fini(&out);
    return client;
}

static void offers_are_judged(void **state)
{
    static const struct {
        struct span offer;
        struct span binding;
        enum scram_result result;
        const char *header;
    } cases[] = {
        {TEXT_NUL(PLAIN_OFFER "\0"), NOTHING, SCRAM_MALFORMED, NULL}, /* one NUL too many */
        {TEXT_NUL(PLAIN_OFFER), NOTHING, SCRAM_OK, "n,,"},
        {TEXT_NUL(PLAIN_OFFER), THIS, SCRAM_OK, "y,,"},
        {TEXT_NUL(BOTH_OFFER), NOTHING, SCRAM_OK, "n,,"},
        {TEXT_NUL(BOTH_OFFER), THIS, SCRAM_OK, "p=tls-server-end-point,,"},
        {TEXT_NUL("OTHER\0" PLAIN_OFFER), THIS, SCRAM_OK, "y,,"},
        {TEXT_NUL(SCRAM_PLUS "\0"), THIS, SCRAM_OK, "p=tls-server-end-point,,"},
        {TEXT_NUL(SCRAM_PLUS "\0"), NOTHING, SCRAM_REFUSED, NULL},
        {TEXT_NUL("SCRAM-SHA-1\0"), NOTHING, SCRAM_REFUSED, NULL},
        {TEXT_NUL("scram-sha-256\0"), NOTHING, SCRAM_REFUSED, NULL},
        {TEXT_NUL(""), NOTHING, SCRAM_REFUSED, NULL},
        {TEXT(""), NOTHING, SCRAM_MALFORMED, NULL},
        {{NULL, 0}, NOTHING, SCRAM_MALFORMED, NULL},
        {TEXT(SCRAM_PLAIN), NOTHING, SCRAM_MALFORMED, NULL},
        {TEXT_NUL(SCRAM_PLAIN), NOTHING, SCRAM_MALFORMED, NULL},
        {TEXT_NUL(PLAIN_OFFER "\0x"), NOTHING, SCRAM_MALFORMED, NULL},
        {TEXT_NUL(LONG_4096 "\0" PLAIN_OFFER), NOTHING, SCRAM_MALFORMED, NULL},
    };
    struct secret secret = secret_of(SECRET);
    uint8_t key[SCRAM_KEY];
    (void)state;
    key_of(CLIENT_KEY, key);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scram_client *client = scram_client_new(&secret, key, cases[i].binding);
        struct buf out = {0};
        const char *mechanism;
        const char *why;
        enum scram_result result = scram_client_first(client, cases[i].offer, &mechanism, &out, &why);
        if (result != cases[i].result)
            fail_msg("case %zu: %d (%s)", i, result, why ? why : "");
        assert_int_equal(why == NULL, result == SCRAM_OK);
        assert_int_equal(mechanism == NULL, result != SCRAM_OK);
        if (cases[i].header) {
            struct buf expected = {0};
            buf_put_format(&expected, "%sn=,r=", cases[i].header);
            assert_int_equal(out.len, expected.len + 24);
            assert_memory_equal(out.ptr, expected.ptr, expected.len);
            assert_string_equal(mechanism, cases[i].header[0] == 'p' ? SCRAM_PLUS : SCRAM_PLAIN);
            buf_fini(&expected);
        } else {
            assert_int_equal(out.len, 0);
        }
        buf_clear(&out);
        assert_int_equal(scram_client_first(client, cases[i].offer, &mechanism, &out, &why), SCRAM_MALFORMED);
        buf_fini(&out);
        scram_client_free(client);
    }
}

static const struct {
    struct span text;
    enum scram_result result;
    const char *why;
} challenges[] = {
    {TEXT(CHALLENGE_TEXT), SCRAM_OK, NULL},
    {TEXT(CHALLENGE_TEXT ",x=1,y="), SCRAM_OK, NULL},
    {TEXT("r=" CLIENT_NONCE LONG_512 LONG_256 LONG_16 ",s=" SALT ",i=4096"), SCRAM_OK, NULL},
    /* Another secret. */
    {TEXT("r=" NONCE ",s=" SALT ",i=4097"), SCRAM_REFUSED, "another SCRAM secret"},
    {TEXT("r=" NONCE ",s=" SALT ",i=1"), SCRAM_REFUSED, "another SCRAM secret"},
    {TEXT("r=" NONCE ",s=" SALT ",i=10000000"), SCRAM_REFUSED, "another SCRAM secret"},
    {TEXT("r=" NONCE ",s=W22ZaJ0SNY7soEsUEjb6gA==,i=4096"), SCRAM_REFUSED, "another SCRAM secret"},
    {TEXT("r=" NONCE ",s=W22Z,i=4096"), SCRAM_REFUSED, "another SCRAM secret"},
    /* Nonces: not ours, ours alone, giant. */
    {TEXT("r=" CLIENT_NONCE ",s=" SALT ",i=4096"), SCRAM_MALFORMED, "does not extend"},
    {TEXT("r=" SERVER_NONCE ",s=" SALT ",i=4096"), SCRAM_MALFORMED, "does not extend"},
    {TEXT("r=x" NONCE ",s=" SALT ",i=4096"), SCRAM_MALFORMED, "does not extend"},
    {TEXT("r=rOprNGfwEbeRWgbNEkq,s=" SALT ",i=4096"), SCRAM_MALFORMED, "does not extend"},
    {TEXT("r=,s=" SALT ",i=4096"), SCRAM_MALFORMED, "empty"},
    {TEXT("r=" CLIENT_NONCE LONG_512 LONG_512 ",s=" SALT ",i=4096"), SCRAM_MALFORMED, "nonce is too long"},
    {TEXT("r=" CLIENT_NONCE LONG_4096 ",s=" SALT ",i=4096"), SCRAM_MALFORMED, "longer"},
    {TEXT("r=" CLIENT_NONCE "\x80,s=" SALT ",i=4096"), SCRAM_MALFORMED, "printable"},
    {TEXT("r=" CLIENT_NONCE " ,s=" SALT ",i=4096"), SCRAM_MALFORMED, "printable"},
    {TEXT("r=" CLIENT_NONCE "\0,s=" SALT ",i=4096"), SCRAM_MALFORMED, "NUL"},
    /* Salts. */
    {TEXT("r=" NONCE ",s=,i=4096"), SCRAM_MALFORMED, "salt"},
    {TEXT("r=" NONCE ",s=W22ZaJ0SNY7soEsUEjb6gR==,i=4096"), SCRAM_MALFORMED, "salt"},
    {TEXT("r=" NONCE ",s=W22ZaJ0SNY7soEsUEjb6gQ,i=4096"), SCRAM_MALFORMED, "salt"},
    {TEXT("r=" NONCE ",s=W22ZaJ0SNY7soEsUEjb6gQ===,i=4096"), SCRAM_MALFORMED, "salt"},
    {TEXT("r=" NONCE ",s=%%%%,i=4096"), SCRAM_MALFORMED, "salt"},
    {TEXT("r=" NONCE ",s=" LONG_512 ",i=4096"), SCRAM_MALFORMED, "salt"},
    {TEXT("r=" NONCE ",s=" LONG_512 LONG_512 LONG_512 ",i=4096"), SCRAM_MALFORMED, "salt"},
    /* Counts. */
    {TEXT("r=" NONCE ",s=" SALT ",i=0"), SCRAM_MALFORMED, "iteration"},
    {TEXT("r=" NONCE ",s=" SALT ",i=-1"), SCRAM_MALFORMED, "iteration"},
    {TEXT("r=" NONCE ",s=" SALT ",i=-4096"), SCRAM_MALFORMED, "iteration"},
    {TEXT("r=" NONCE ",s=" SALT ",i=+4096"), SCRAM_MALFORMED, "iteration"},
    {TEXT("r=" NONCE ",s=" SALT ",i=04096"), SCRAM_MALFORMED, "iteration"},
    {TEXT("r=" NONCE ",s=" SALT ",i= 4096"), SCRAM_MALFORMED, "iteration"},
    {TEXT("r=" NONCE ",s=" SALT ",i=4096x"), SCRAM_MALFORMED, "iteration"},
    {TEXT("r=" NONCE ",s=" SALT ",i=4096.0"), SCRAM_MALFORMED, "iteration"},
    {TEXT("r=" NONCE ",s=" SALT ",i=1000000000"), SCRAM_MALFORMED, "iteration"},
    {TEXT("r=" NONCE ",s=" SALT ",i=4294971392"), SCRAM_MALFORMED, "iteration"},           /* 2^32 + 4096 */
    {TEXT("r=" NONCE ",s=" SALT ",i=18446744073709555712"), SCRAM_MALFORMED, "iteration"}, /* 2^64 + 4096 */
    {TEXT("r=" NONCE ",s=" SALT ",i="), SCRAM_MALFORMED, "iteration"},
    /* Attributes: missing, out of order, twice, mandatory, garbage. */
    {TEXT(""), SCRAM_MALFORMED, "empty"},
    {TEXT("r=" NONCE), SCRAM_MALFORMED, "salt"},
    {TEXT("r=" NONCE ",s=" SALT), SCRAM_MALFORMED, "iteration"},
    {TEXT("r=" NONCE ",s=" SALT ","), SCRAM_MALFORMED, "iteration"},
    {TEXT("r=" NONCE ",i=4096,s=" SALT), SCRAM_MALFORMED, "salt"},
    {TEXT("s=" SALT ",r=" NONCE ",i=4096"), SCRAM_MALFORMED, "nonce"},
    {TEXT("r=" NONCE ",r=" NONCE ",s=" SALT ",i=4096"), SCRAM_MALFORMED, "salt"},
    {TEXT("m=x," CHALLENGE_TEXT), SCRAM_MALFORMED, "must be understood"},
    {TEXT(CHALLENGE_TEXT ","), SCRAM_MALFORMED, "behind the last"},
    {TEXT(CHALLENGE_TEXT ",x"), SCRAM_MALFORMED, "behind the last"},
    {TEXT(CHALLENGE_TEXT ",1=2"), SCRAM_MALFORMED, "behind the last"},
    {TEXT("e=other-error"), SCRAM_MALFORMED, "nonce"},
    {TEXT(SIGNATURE_TEXT), SCRAM_MALFORMED, "nonce"},
};

static void challenges_are_judged(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof challenges / sizeof challenges[0]; i++) {
        struct scram_client *client = client_after_first();
        struct buf out = {0};
        const char *why;
        enum scram_result result = scram_client_final(client, challenges[i].text, &out, &why);
        if (result != challenges[i].result)
            fail_msg("\"%.200s\": %d (%s)", (const char *)challenges[i].text.ptr, result, why ? why : "");
        if (challenges[i].why ? !why || !strstr(why, challenges[i].why) : why != NULL)
            fail_msg("\"%.200s\": why: %s", (const char *)challenges[i].text.ptr, why ? why : "nothing");
        assert_int_equal(out.len > 0, result == SCRAM_OK); /* no proof for those */
        assert_true(out.len <= SCRAM_MESSAGE_MAX);
        buf_clear(&out);
        assert_int_equal(scram_client_final(client, span_cstr(CHALLENGE_TEXT), &out, &why), SCRAM_MALFORMED);
        assert_int_equal(out.len, 0);
        buf_fini(&out);
        scram_client_free(client);
    }
}

static void signatures_are_judged(void **state)
{
    static const struct {
        struct span text;
        enum scram_result result;
        const char *why;
    } cases[] = {
        {TEXT(NAMELESS_SIGNATURE_TEXT), SCRAM_OK, NULL},
        {TEXT(NAMELESS_SIGNATURE_TEXT ",x=1"), SCRAM_OK, NULL},
        {TEXT(SIGNATURE_TEXT), SCRAM_REFUSED, "signature is wrong"},
        {TEXT("v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), SCRAM_REFUSED, "signature is wrong"},
        {TEXT("e=invalid-proof"), SCRAM_REFUSED, "refuses the proof"},
        {TEXT("e=,x=1"), SCRAM_REFUSED, "refuses the proof"},
        {TEXT(""), SCRAM_MALFORMED, "empty"},
        {TEXT("v"), SCRAM_MALFORMED, "neither"},
        {TEXT("v="), SCRAM_MALFORMED, "32 bytes"},
        {TEXT(NAMELESS_SIGNATURE_TEXT ","), SCRAM_MALFORMED, "behind"},
        {TEXT(NAMELESS_SIGNATURE_TEXT "\0"), SCRAM_MALFORMED, "NUL"},
        {TEXT("V=3HO6Qt1M4MKJrmlKaoOqLAI0/0TV0HZe7J9H3MBtSOg="), SCRAM_MALFORMED, "neither"},
        {TEXT("x=1,v=3HO6Qt1M4MKJrmlKaoOqLAI0/0TV0HZe7J9H3MBtSOg="), SCRAM_MALFORMED, "neither"},
        {TEXT("v=" LONG_512), SCRAM_MALFORMED, "32 bytes"},
        {TEXT("v=" LONG_4096), SCRAM_MALFORMED, "longer"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scram_client *client = client_after_first();
        struct buf out = {0};
        const char *why;
        assert_int_equal(scram_client_final(client, span_cstr(CHALLENGE_TEXT), &out, &why), SCRAM_OK);
        enum scram_result result = scram_client_verify(client, cases[i].text, &why);
        if (result != cases[i].result)
            fail_msg("case %zu: %d (%s)", i, result, why ? why : "");
        if (cases[i].why ? !why || !strstr(why, cases[i].why) : why != NULL)
            fail_msg("case %zu: why: %s", i, why ? why : "nothing");
        assert_int_equal(scram_client_verify(client, cases[0].text, &why), SCRAM_MALFORMED);
        buf_fini(&out);
        scram_client_free(client);
    }
    struct scram_client *client = client_after_first();
    const char *why;
    assert_int_equal(scram_client_verify(client, cases[0].text, &why), SCRAM_MALFORMED); /* before the proof */
    scram_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_name_their_cause), cmocka_unit_test(first_texts_are_judged),
        cmocka_unit_test(last_texts_are_judged),     cmocka_unit_test(texts_come_in_their_order),
        cmocka_unit_test(nonces_are_fresh),          cmocka_unit_test(offers_are_judged),
        cmocka_unit_test(challenges_are_judged),     cmocka_unit_test(signatures_are_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
