/* tls_fixture.c - makes certificates with OpenSSL's API and delivers ciphertext in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include "../../proxy/io/tls_openssl.h"
#include "tls_fixture.h"

#define DAY 86400L

char tls_folder[64];

/* ---- files ---- */

const char *tls_fixture_path(const char *file)
{
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", tls_folder, file);
    return path;
}

static const char *path_of(const char *name, const char *extension)
{
    char file[64];
    snprintf(file, sizeof file, "%s.%s", name, extension);
    return tls_fixture_path(file);
}

void tls_fixture_write(const char *file, const char *text, unsigned mode)
{
    FILE *out = fopen(tls_fixture_path(file), "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(tls_fixture_path(file), mode), 0);
}

/* ---- certificates ---- */

static EVP_PKEY *make_key(enum tls_key kind)
{
    switch (kind) {
    case TLS_KEY_EC: return EVP_EC_gen("P-256");
    case TLS_KEY_EC384: return EVP_EC_gen("P-384");
    case TLS_KEY_RSA: return EVP_RSA_gen(2048);
    case TLS_KEY_ED25519: return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    }
    return NULL;
}

static EVP_PKEY *read_key(const char *name)
{
    FILE *file = fopen(path_of(name, "key"), "r");
    assert_non_null(file);
    EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
    fclose(file);
    assert_non_null(key);
    return key;
}

static X509 *read_certificate(const char *name)
{
    FILE *file = fopen(path_of(name, "crt"), "r");
    assert_non_null(file);
    X509 *certificate = PEM_read_X509(file, NULL, NULL, NULL);
    fclose(file);
    assert_non_null(certificate);
    return certificate;
}

/* "CN=a/O=b": each part is one attribute; "%00" in a value is a NUL. */
static void put_subject(X509 *certificate, const char *text)
{
    X509_NAME *subject = X509_get_subject_name(certificate);
    char copy[512];
    char *rest = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *part = strtok_r(copy, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
        char *value = strchr(part, '=');
        assert_non_null(value);
        *value++ = '\0';
        int len = (int)strlen(value);
        char *nul = strstr(value, "%00");
        if (nul) {
            memmove(nul + 1, nul + 3, strlen(nul + 3));
            *nul = '\0';
            len -= 2;
        }
        assert_int_equal(X509_NAME_add_entry_by_txt(subject, part, MBSTRING_UTF8, (unsigned char *)value, len, -1, 0),
                         1);
    }
}

static void put_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static void put_validity(X509 *certificate, const struct tls_recipe *recipe)
{
    bool is_usual = recipe->from_days == 0 && recipe->to_days == 0;
    X509_gmtime_adj(X509_getm_notBefore(certificate), (is_usual ? -1 : recipe->from_days) * DAY);
    X509_gmtime_adj(X509_getm_notAfter(certificate), (is_usual ? 10 : recipe->to_days) * DAY);
}

static void sign(X509 *certificate, const char *digest, EVP_PKEY *key)
{
    const EVP_MD *md = digest && !digest[0] ? NULL : EVP_get_digestbyname(digest ? digest : "SHA256");
    assert_true(X509_sign(certificate, key, md) > 0);
}

static bool is_self_signed(X509 *certificate)
{
    return X509_NAME_cmp(X509_get_subject_name(certificate), X509_get_issuer_name(certificate)) == 0;
}

static void write_files(const struct tls_recipe *recipe, X509 *certificate, X509 *issuer, EVP_PKEY *key)
{
    FILE *file = fopen(path_of(recipe->name, "crt"), "w");
    assert_non_null(file);
    PEM_write_X509(file, certificate);
    if (issuer != certificate && !is_self_signed(issuer) && !recipe->is_bare)
        PEM_write_X509(file, issuer);
    fclose(file);
    file = fopen(path_of(recipe->name, "key"), "w");
    assert_non_null(file);
    PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL);
    fclose(file);
    assert_int_equal(chmod(path_of(recipe->name, "key"), 0600), 0);
}

void tls_fixture_make(const struct tls_recipe *recipe)
{
    static long serial;
    char usual[80];
    EVP_PKEY *key = make_key(recipe->key);
    X509 *certificate = X509_new();
    X509 *issuer = recipe->issuer ? read_certificate(recipe->issuer) : certificate;
    EVP_PKEY *issuer_key = recipe->issuer ? read_key(recipe->issuer) : key;
    snprintf(usual, sizeof usual, "CN=%s", recipe->name);
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
    put_validity(certificate, recipe);
    put_subject(certificate, recipe->subject ? recipe->subject : usual);
    X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
    X509_set_pubkey(certificate, key);
    if (recipe->is_authority)
        put_extension(certificate, issuer, NID_basic_constraints, "critical,CA:TRUE");
    if (recipe->names)
        put_extension(certificate, issuer, NID_subject_alt_name, recipe->names);
    sign(certificate, recipe->digest, issuer_key);
    write_files(recipe, certificate, issuer, key);
    if (issuer != certificate) {
        X509_free(issuer);
        EVP_PKEY_free(issuer_key);
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static void put_revoked(X509_CRL *list, const char *name)
{
    X509 *certificate = read_certificate(name);
    X509_REVOKED *revoked = X509_REVOKED_new();
    assert_int_equal(X509_REVOKED_set_serialNumber(revoked, X509_get_serialNumber(certificate)), 1);
    assert_int_equal(X509_REVOKED_set_revocationDate(revoked, X509_getm_notBefore(certificate)), 1);
    assert_int_equal(X509_CRL_add0_revoked(list, revoked), 1);
    X509_free(certificate);
}

void tls_fixture_revoke(const char *file, const char *issuer, const char *revoked, int from_days, int to_days)
{
    X509_CRL *list = X509_CRL_new();
    X509 *authority = read_certificate(issuer);
    EVP_PKEY *key = read_key(issuer);
    ASN1_TIME *from = X509_gmtime_adj(NULL, from_days * DAY);
    ASN1_TIME *until = X509_gmtime_adj(NULL, to_days * DAY);
    X509_CRL_set_version(list, X509_CRL_VERSION_2);
    X509_CRL_set_issuer_name(list, X509_get_subject_name(authority));
    X509_CRL_set1_lastUpdate(list, from);
    if (to_days != TLS_FOR_EVER)
        X509_CRL_set1_nextUpdate(list, until);
    if (revoked)
        put_revoked(list, revoked);
    assert_true(X509_CRL_sign(list, key, EVP_sha256()) > 0);
    FILE *out = fopen(tls_fixture_path(file), "a");
    assert_non_null(out);
    PEM_write_X509_CRL(out, list);
    fclose(out);
    ASN1_TIME_free(from);
    ASN1_TIME_free(until);
    EVP_PKEY_free(key);
    X509_free(authority);
    X509_CRL_free(list);
}

int tls_fixture_setup(void **state)
{
    (void)state;
    snprintf(tls_folder, sizeof tls_folder, "/tmp/pgseek-tls-XXXXXX");
    assert_non_null(mkdtemp(tls_folder));
    tls_fixture_make(&(struct tls_recipe){.name = "ca", .is_authority = true});
    tls_fixture_make(&(struct tls_recipe){.name = "server", .issuer = "ca", .names = "DNS:db1,IP:10.1.2.3"});
    tls_fixture_make(&(struct tls_recipe){.name = "alice", .issuer = "ca", .subject = "O=Shop/CN=alice"});
    return 0;
}

int tls_fixture_teardown(void **state)
{
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", tls_folder);
    return system(command) == 0 ? 0 : -1;
}

/* ---- settings ---- */

const char tls_fixture_plain[] = "[pgseek]\n"
                                 "client_tls_sslmode = require\n"
                                 "client_tls_cert_file = %/server.crt\n"
                                 "client_tls_key_file = %/server.key\n"
                                 "server_tls_ca_file = %/ca.crt\n"
                                 "[databases]\n"
                                 "* = host=db1\n";

/* Each mark becomes the folder. */
static void put_folder(const char *text, FILE *out)
{
    for (; *text; text++)
        if (*text == '%')
            fputs(tls_folder, out);
        else
            fputc(*text, out);
}

struct conf *tls_fixture_conf(const char *text)
{
    FILE *out = fopen(tls_fixture_path("proxy.conf"), "w");
    assert_non_null(out);
    put_folder(text, out);
    fclose(out);
    struct conf *conf = conf_load(tls_fixture_path("proxy.conf"), stderr);
    assert_non_null(conf);
    return conf;
}

void tls_fixture_hide_folder(char *text)
{
    size_t len = strlen(tls_folder);
    for (char *at; (at = strstr(text, tls_folder)) != NULL;) {
        *at = '%';
        memmove(at + 1, at + len, strlen(at + len) + 1);
    }
}

static struct tls_context *load(const char *text, const char *database, char **complaints)
{
    char *said = NULL;
    size_t len;
    struct tls_context *context = NULL;
    struct conf *conf = tls_fixture_conf(text);
    FILE *out = open_memstream(&said, &len);
    assert_non_null(out);
    bool ok = database ? tls_context_for_server(conf, conf_find_database(conf, database), &context, out)
                       : tls_context_for_clients(conf, &context, out);
    fclose(out);
    conf_unref(conf);
    tls_fixture_hide_folder(said);
    assert_true(ok || !context);
    assert_int_equal(ok, said[0] == '\0');
    if (complaints) {
        *complaints = said;
        return context;
    }
    assert_string_equal(said, "");
    free(said);
    return context;
}

struct tls_context *tls_fixture_clients(const char *text, char **complaints)
{
    return load(text, NULL, complaints);
}

struct tls_context *tls_fixture_server(const char *text, const char *database, char **complaints)
{
    return load(text, database, complaints);
}

struct tls_context *tls_fixture_server_role(const char *certificate, const char *settings)
{
    char text[1024];
    const char *mode = strstr(settings, "client_tls_sslmode") ? "" : "client_tls_sslmode = require";
    snprintf(text, sizeof text,
             "[pgseek]\nclient_tls_cert_file = %%/%s.crt\nclient_tls_key_file = %%/%s.key\n%s\n%s\n"
             "[databases]\n* = host=x\n",
             certificate, certificate, mode, settings);
    return tls_fixture_clients(text, NULL);
}

struct tls_context *tls_fixture_client_role(const char *keywords, const char *settings)
{
    char text[1024];
    snprintf(text, sizeof text, "[pgseek]\n%s\n[databases]\n* = host=db1 %s\n", settings, keywords);
    return tls_fixture_server(text, "*", NULL);
}

void tls_fixture_swap_certificate(struct tls_context *context, const char *certificate)
{
    assert_int_equal(SSL_CTX_use_certificate_chain_file(context->ctx, path_of(certificate, "crt")), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(context->ctx, path_of(certificate, "key"), SSL_FILETYPE_PEM), 1);
}

/* ---- talking ---- */

void tls_talk_begin(struct tls_talk *talk, struct tls_context *server, struct tls_context *client, const char *host,
                    bool is_direct)
{
    *talk = (struct tls_talk){0};
    talk->server = tls_accept(server, is_direct);
    talk->client = tls_connect(client, host, is_direct);
    assert_non_null(talk->server);
    assert_non_null(talk->client);
}

static void take_output(struct tls *tls, struct buf *wire)
{
    buf_put_span(wire, buf_span(tls_output(tls)));
    buf_fini(tls_output(tls));
}

/* Hands up to `step` bytes of the wire to one end. */
static void deliver(struct buf *wire, size_t step, struct tls *tls, struct buf *got)
{
    size_t len = wire->len < step ? wire->len : step;
    uint8_t *cipher = mem_dup(wire->ptr, len); /* a copy of exactly that size: nobody may look behind it */
    uint8_t *plain = mem_alloc(len + TLS_RECORD_MAX);
    assert_true(cipher && plain);
    buf_put(got, plain, tls_read(tls, span_of(cipher, len), plain, len + TLS_RECORD_MAX));
    buf_consume(wire, len);
    mem_free(cipher);
    mem_free(plain);
}

bool tls_talk_deliver(struct tls_talk *talk, size_t step)
{
    take_output(talk->client, &talk->to_server);
    take_output(talk->server, &talk->to_client);
    if (talk->to_server.len > 0)
        deliver(&talk->to_server, step, talk->server, &talk->server_got);
    else if (talk->to_client.len > 0)
        deliver(&talk->to_client, step, talk->client, &talk->client_got);
    else
        return false;
    return true;
}

void tls_talk_run(struct tls_talk *talk, size_t step)
{
    while (tls_talk_deliver(talk, step))
        ;
}

void tls_talk_shake(struct tls_talk *talk, struct tls_context *server, struct tls_context *client, const char *host,
                    bool is_direct)
{
    tls_talk_begin(talk, server, client, host, is_direct);
    tls_context_free(server);
    tls_context_free(client);
    tls_talk_run(talk, SIZE_MAX);
}

void tls_talk_say(struct tls_talk *talk, bool is_client, const char *text)
{
    struct tls *from = is_client ? talk->client : talk->server;
    struct buf *wire = is_client ? &talk->to_server : &talk->to_client;
    struct iovec piece = {.iov_base = mem_dup(text, strlen(text)), .iov_len = strlen(text)};
    take_output(from, wire);
    assert_true(tls_write(from, &piece, 1, wire));
    mem_free(piece.iov_base);
}

void tls_talk_assert(struct tls_talk *talk)
{
    assert_string_equal(tls_why(talk->server), "");
    assert_string_equal(tls_why(talk->client), "");
    assert_int_equal(tls_state(talk->client), TLS_OPEN);
    assert_int_equal(tls_state(talk->server), TLS_OPEN);
    tls_talk_say(talk, true, "question");
    tls_talk_say(talk, false, "answer");
    tls_talk_run(talk, SIZE_MAX);
    assert_true(span_equal_cstr(buf_span(&talk->server_got), "question"));
    assert_true(span_equal_cstr(buf_span(&talk->client_got), "answer"));
    buf_clear(&talk->server_got);
    buf_clear(&talk->client_got);
}

void tls_talk_end(struct tls_talk *talk)
{
    tls_free(talk->client);
    tls_free(talk->server);
    buf_fini(&talk->to_client);
    buf_fini(&talk->to_server);
    buf_fini(&talk->client_got);
    buf_fini(&talk->server_got);
}
