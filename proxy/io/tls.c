/* tls.c - a handshake and records over spans and buffers.
 *
 * OpenSSL reads and writes through a BIO of ours: it reads what tls_read() was given, and finds nothing more there than
 * that; it writes to where the call at hand wants it, which is tls_output() unless tls_write() is at work. So there is
 * no socket to wait for and no buffer of ours to fill, and the only bytes that stay inside are those of a record that
 * is not whole yet. */
#include "tls_openssl.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#define TLS_PLAIN_MAX ((size_t)16384) /* of one record */
#define TLS_WHY 480
#define TLS_NAME 160
#define TLS_HOST_MAX 255 /* of SNI, and of DNS */

const uint8_t tls_alpn[11] = {10, 'p', 'o', 's', 't', 'g', 'r', 'e', 's', 'q', 'l'};

struct tls {
    SSL *ssl; /* NULL once it has failed */
    struct tls_context *context;
    struct span input; /* what tls_read() was given and OpenSSL has not taken yet */
    struct buf *sink;  /* where OpenSSL writes to */
    struct buf output;
    enum tls_state state;
    bool is_direct;
    bool is_finished; /* close_notify was said */
    char *why;        /* NULL until something fails */
};

/* ---- failures ---- */

static void tls_explain(struct tls *tls, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tls_explain(struct tls *tls, const char *format, ...)
{
    char why[TLS_WHY];
    if (tls->why)
        return; /* the first cause counts */
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    tls->why = mem_strndup(why, strlen(why));
}

/* Where OpenSSL's own words would not help the reader of a log. */
static const struct {
    int reason;
    const char *words;
} tls_reasons[] = {
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, "the client sent no certificate"},
    {SSL_R_HTTP_REQUEST, "http request"},
    {SSL_R_HTTPS_PROXY_REQUEST, "http proxy request"},
    {SSL_R_WRONG_VERSION_NUMBER, "wrong version number: what came is not TLS"},
    {SSL_R_NO_APPLICATION_PROTOCOL, "no application protocol: ALPN offers \"postgresql\" not"},
    {ERR_R_MALLOC_FAILURE, "out of memory"},
};

static const char *tls_words(unsigned long error)
{
    int reason = ERR_GET_REASON(error);
    const char *words = ERR_reason_error_string(error);
    for (size_t i = 0; i < sizeof tls_reasons / sizeof *tls_reasons; i++)
        if (tls_reasons[i].reason == reason)
            return tls_reasons[i].words;
    return words ? words : "the handshake or a record is malformed";
}

/* Nothing more is done with it, and the peer may take his time to read why: what OpenSSL keeps goes now. */
static void tls_give_up(struct tls *tls)
{
    tls->state = TLS_FAILED;
    SSL_free(tls->ssl);
    tls->ssl = NULL;
    ERR_clear_error();
}

/* The oldest error of OpenSSL's queue is the cause, later ones its effects. */
static void tls_fail(struct tls *tls)
{
    unsigned long error = ERR_peek_error();
    if (tls->sink->failed)
        tls_explain(tls, "out of memory");
    else if (error)
        tls_explain(tls, "%s", tls_words(error));
    else
        tls_explain(tls, "the peer gave the handshake up");
    tls_give_up(tls);
}

/* A handshake that is fine for OpenSSL and not for us. */
static void tls_refuse(struct tls *tls, const char *why)
{
    tls_explain(tls, "%s", why);
    tls_finish(tls);
    tls_give_up(tls);
}

/* After a call that has not succeeded: there is nothing more to read, the peer has ended, or it has failed. */
static void tls_judge(struct tls *tls, int rc)
{
    int error = SSL_get_error(tls->ssl, rc);
    if (error == SSL_ERROR_WANT_READ)
        return;
    if (error == SSL_ERROR_ZERO_RETURN && tls->state == TLS_OPEN)
        tls->state = TLS_ENDED;
    else
        tls_fail(tls);
}

/* ---- OpenSSL's way to the bytes ---- */

static int tls_bio_read(BIO *bio, char *out, size_t room, size_t *got)
{
    struct tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    *got = tls->input.len < room ? tls->input.len : room;
    if (*got == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(out, tls->input.ptr, *got);
    tls->input = span_of(tls->input.ptr + *got, tls->input.len - *got);
    return 1;
}

static int tls_bio_write(BIO *bio, const char *bytes, size_t len, size_t *written)
{
    struct tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    buf_put(tls->sink, bytes, len);
    *written = tls->sink->failed ? 0 : len;
    return !tls->sink->failed;
}

static long tls_bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int tls_bio_create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

BIO_METHOD *tls_method_new(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "span");
    if (method && BIO_meth_set_create(method, tls_bio_create) && BIO_meth_set_read_ex(method, tls_bio_read) &&
        BIO_meth_set_write_ex(method, tls_bio_write) && BIO_meth_set_ctrl(method, tls_bio_control))
        return method;
    BIO_meth_free(method);
    return NULL;
}

/* ---- OpenSSL's questions ---- */

/* Whether no list says that the certificate is good: which one is missing, or is no good, goes by its issuer. */
static bool tls_is_about_list(int error)
{
    static const int errors[] = {X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_CRL_HAS_EXPIRED, X509_V_ERR_CRL_NOT_YET_VALID,
                                 X509_V_ERR_CRL_SIGNATURE_FAILURE};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i] == error)
            return true;
    return false;
}

int tls_on_verify(int is_good, X509_STORE_CTX *store)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    const X509 *certificate = X509_STORE_CTX_get_current_cert(store);
    struct tls *tls = ssl ? SSL_get_app_data(ssl) : NULL;
    char subject[TLS_NAME] = "no certificate";
    char issuer[TLS_NAME] = "";
    if (is_good || !tls)
        return is_good;
    int error = X509_STORE_CTX_get_error(store);
    if (certificate)
        tls_name_text(X509_get_subject_name(certificate), subject, sizeof subject);
    if (certificate && tls_is_about_list(error))
        tls_name_text(X509_get_issuer_name(certificate), issuer, sizeof issuer);
    tls_explain(tls, "certificate verify failed: %s (%s%s%s)", X509_verify_cert_error_string(error), subject,
                issuer[0] ? ", issued by " : "", issuer);
    return 0;
}

int tls_on_alpn(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_len, const unsigned char *offer,
                unsigned int offer_len, void *unused)
{
    (void)ssl, (void)unused;
    struct reader rd = rd_init(span_of(offer, offer_len));
    while (rd_left(&rd) > 0) {
        struct span protocol = rd_bytes(&rd, rd_u8(&rd));
        if (!span_equal(protocol, span_of(tls_alpn + 1, sizeof tls_alpn - 1)))
            continue;
        *chosen = protocol.ptr;
        *chosen_len = (unsigned char)protocol.len;
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* A ticket remembers that its certificate was good then. Where that could be otherwise by now, there is a handshake in
 * full: its certificate has expired, or a list that did not have it. What a reload changes needs no look: its context
 * has other keys. */
static bool tls_ticket_is_good(const struct tls_context *context, SSL_SESSION *session)
{
    const X509 *certificate = SSL_SESSION_get0_peer(session);
    if (!certificate)
        return true;
    return X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0 && time(NULL) < context->lists_end;
}

SSL_TICKET_RETURN tls_on_ticket(SSL *ssl, SSL_SESSION *session, const unsigned char *key, size_t key_len,
                                SSL_TICKET_STATUS status, void *context)
{
    (void)ssl, (void)key, (void)key_len;
    bool is_ours = status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW;
    if (!is_ours || !tls_ticket_is_good(context, session))
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

/* ---- beginning ---- */

static struct tls *tls_new(struct tls_context *context, bool is_direct)
{
    struct tls *tls = mem_zalloc(sizeof *tls);
    BIO *bio = tls ? BIO_new(context->method) : NULL;
    if (bio)
        tls->ssl = SSL_new(context->ctx);
    if (!bio || !tls->ssl || !SSL_set_app_data(tls->ssl, tls)) {
        if (tls)
            SSL_free(tls->ssl);
        BIO_free(bio);
        mem_free(tls);
        ERR_clear_error();
        return NULL;
    }
    BIO_set_data(bio, tls);
    SSL_set_bio(tls->ssl, bio, bio);
    tls->context = tls_context_ref(context);
    tls->sink = &tls->output;
    tls->is_direct = is_direct;
    return tls;
}

static void tls_shake(struct tls *tls);

struct tls *tls_accept(struct tls_context *context, bool is_direct)
{
    assert(context->is_server);
    struct tls *tls = tls_new(context, is_direct);
    if (tls)
        SSL_set_accept_state(tls->ssl);
    return tls;
}

static bool tls_is_address(const char *host)
{
    uint8_t bytes[16];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* Whom the certificate must be for, and whom we ask for. Addresses are not for SNI (RFC 6066). */
static bool tls_set_host(struct tls *tls, const char *name)
{
    char host[TLS_HOST_MAX + 1];
    size_t len = strcspn(name, "%"); /* a zone is known to this machine alone */
    if (len > TLS_HOST_MAX)
        len = TLS_HOST_MAX; /* no resolver knows it */
    snprintf(host, sizeof host, "%.*s", (int)len, name);
    if (len > 1 && host[len - 1] == '.')
        host[len - 1] = '\0'; /* the root is in no certificate */
    X509_VERIFY_PARAM *param = SSL_get0_param(tls->ssl);
    bool verifies = tls->context->verifies_names;
    if (tls_is_address(host))
        return !verifies || X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_tlsext_host_name(tls->ssl, host) == 1 &&
           (!verifies || X509_VERIFY_PARAM_set1_host(param, host, 0) == 1);
}

struct tls *tls_connect(struct tls_context *context, const char *host, bool is_direct)
{
    assert(!context->is_server);
    struct tls *tls = tls_new(context, is_direct);
    if (!tls)
        return NULL;
    SSL_set_connect_state(tls->ssl);
    if (!tls_set_host(tls, host)) {
        ERR_clear_error();
        tls_free(tls);
        return NULL;
    }
    tls_shake(tls);
    return tls;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    tls_context_free(tls->context);
    buf_fini(&tls->output);
    mem_free(tls->why);
    mem_free(tls);
}

/* ---- handshake ---- */

static bool tls_has_alpn(const struct tls *tls)
{
    const unsigned char *protocol = NULL;
    unsigned int len = 0;
    SSL_get0_alpn_selected(tls->ssl, &protocol, &len);
    return len > 0;
}

static bool tls_speaks_postgresql(const struct tls *tls)
{
    const unsigned char *protocol = NULL;
    unsigned int len = 0;
    SSL_get0_alpn_selected(tls->ssl, &protocol, &len);
    return span_equal(span_of(protocol, len), span_of(tls_alpn + 1, sizeof tls_alpn - 1));
}

static void tls_shaken(struct tls *tls)
{
    tls->state = TLS_OPEN;
    if (tls->is_direct && !tls_has_alpn(tls))
        tls_refuse(tls, "direct TLS without ALPN: \"postgresql\" must be agreed on");
    else if (tls_has_alpn(tls) && !tls_speaks_postgresql(tls))
        tls_refuse(tls, "ALPN has chosen another protocol than \"postgresql\"");
}

static void tls_shake(struct tls *tls)
{
    ERR_clear_error();
    int rc = SSL_do_handshake(tls->ssl);
    if (rc == 1)
        tls_shaken(tls);
    else
        tls_judge(tls, rc);
}

/* ---- records ---- */

size_t tls_read(struct tls *tls, struct span cipher, uint8_t *plain, size_t room)
{
    assert(room >= cipher.len + TLS_RECORD_MAX);
    size_t len = 0;
    size_t got = 1;
    tls->input = cipher;
    if (tls->state == TLS_HANDSHAKE)
        tls_shake(tls);
    while (tls->state == TLS_OPEN && got > 0) {
        ERR_clear_error();
        int rc = SSL_read_ex(tls->ssl, plain + len, room - len, &got);
        if (rc == 1) {
            len += got;
            continue;
        }
        got = 0;
        tls_judge(tls, rc);
    }
    tls->input = span_of(NULL, 0);
    return len;
}

static bool tls_encrypt(struct tls *tls, struct span plain)
{
    size_t written;
    if (plain.len == 0)
        return true;
    ERR_clear_error();
    if (SSL_write_ex(tls->ssl, plain.ptr, plain.len, &written) == 1)
        return true;
    tls_fail(tls); /* it wants nothing that it could wait for */
    return false;
}

/* A record that is being filled with pieces. */
struct tls_record {
    size_t len;
    uint8_t bytes[TLS_PLAIN_MAX];
};

static bool tls_flush(struct tls *tls, struct tls_record *record)
{
    struct span plain = span_of(record->bytes, record->len);
    record->len = 0;
    return tls_encrypt(tls, plain);
}

/* Whole records are made of where the bytes are, the rest is collected. */
static bool tls_put(struct tls *tls, struct span piece, struct tls_record *record)
{
    while (piece.len > 0) {
        size_t whole = record->len == 0 ? piece.len - piece.len % TLS_PLAIN_MAX : 0;
        size_t room = TLS_PLAIN_MAX - record->len;
        size_t len = whole > 0 ? whole : piece.len < room ? piece.len : room;
        if (whole > 0 && !tls_encrypt(tls, span_of(piece.ptr, whole)))
            return false;
        if (whole == 0) {
            memcpy(record->bytes + record->len, piece.ptr, len);
            record->len += len;
        }
        if (record->len == TLS_PLAIN_MAX && !tls_flush(tls, record))
            return false;
        piece = span_of(piece.ptr + len, piece.len - len);
    }
    return true;
}

bool tls_write(struct tls *tls, const struct iovec *pieces, size_t npieces, struct buf *cipher)
{
    struct tls_record record;
    bool ok = (tls->state == TLS_OPEN || tls->state == TLS_ENDED) && !tls->is_finished;
    record.len = 0;
    tls->sink = cipher;
    for (size_t i = 0; ok && i < npieces; i++)
        ok = tls_put(tls, span_of(pieces[i].iov_base, pieces[i].iov_len), &record);
    ok = ok && tls_flush(tls, &record);
    tls->sink = &tls->output;
    return ok;
}

/* ---- the end, and what there is to know ---- */

void tls_finish(struct tls *tls)
{
    if (tls->is_finished || (tls->state != TLS_OPEN && tls->state != TLS_ENDED))
        return;
    tls->is_finished = true;
    ERR_clear_error();
    if (SSL_shutdown(tls->ssl) < 0)
        ERR_clear_error(); /* no room for a goodbye */
}

struct buf *tls_output(struct tls *tls)
{
    return &tls->output;
}

enum tls_state tls_state(const struct tls *tls)
{
    return tls->state;
}

void tls_describe(const struct tls *tls, struct channel *channel)
{
    const SSL *ssl = tls->ssl;
    X509 *peer = SSL_get0_peer_certificate(ssl);
    X509 *shown = tls->context->is_server ? SSL_get_certificate(ssl) : peer;
    *channel = (struct channel){0};
    snprintf(channel->version, sizeof channel->version, "%s", SSL_get_version(ssl));
    snprintf(channel->cipher, sizeof channel->cipher, "%s", SSL_get_cipher_name(ssl));
    channel->is_verified =
        peer && SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE && SSL_get_verify_result(ssl) == X509_V_OK;
    if (channel->is_verified)
        tls_name(peer, channel);
    if (shown)
        channel->binding_len = tls_binding(shown, channel->binding);
}

const char *tls_why(const struct tls *tls)
{
    if (tls->state != TLS_FAILED)
        return "";
    return tls->why ? tls->why : "out of memory";
}
