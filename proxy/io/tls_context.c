/* tls_context.c - settings and files into OpenSSL's contexts, with one sentence for each fault. */
#include "tls_openssl.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "../admin/whole_file.h"
#include "tls_mode.h"

#define TLS_FILE_MAX ((size_t)64 * 1024 * 1024) /* bytes; some revocation lists have a million entries */
#define TLS_KEY_MAX ((size_t)64 * 1024)
#define TLS_TICKET_SECONDS 3600

/* A file, and the setting that names it. */
struct tls_file {
    const char *setting;
    const char *path;
    char where[CONF_WHERE_BYTES];
};

/* What is wanted, wherever it was written, and the context that it becomes. */
struct tls_wish {
    const struct conf_tls *tls; /* versions and ciphers */
    const struct conf *conf;
    enum conf_sslmode sslmode;
    struct tls_file mode; /* its path is unused */
    struct tls_file cert, key, ca, crl;
    FILE *complaints;
    unsigned faults;
    struct tls_context *context;
};

/* ---- complaints ---- */

static void tls_complain(struct tls_wish *wish, const struct tls_file *file, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void tls_complain(struct tls_wish *wish, const struct tls_file *file, const char *format, ...)
{
    va_list args;
    wish->faults++;
    fprintf(wish->complaints, "%s: %s ", file->where, file->setting);
    if (file->path)
        fprintf(wish->complaints, "\"%s\" ", file->path);
    va_start(args, format);
    vfprintf(wish->complaints, format, args);
    va_end(args);
    fputc('\n', wish->complaints);
    ERR_clear_error();
}

static bool tls_is_given(const struct tls_file *file)
{
    return file->path[0] != '\0';
}

/* ---- files ---- */

/* The whole file as OpenSSL reads it; the file is to be released after the BIO. NULL when it was complained about. */
static BIO *tls_open(struct tls_wish *wish, const struct tls_file *file, enum whole_file_kind kind,
                     struct whole_file *text)
{
    char why[WHOLE_FILE_WHY];
    size_t max = kind == WHOLE_FILE_SECRET ? TLS_KEY_MAX : TLS_FILE_MAX;
    if (!whole_file_read(file->path, kind, max, text, why)) {
        tls_complain(wish, file, "%s", why);
        return NULL;
    }
    BIO *bio = BIO_new_mem_buf(text->ptr, (int)text->len);
    if (bio)
        return bio;
    tls_complain(wish, file, "cannot be read: out of memory");
    whole_file_fini(text);
    return NULL;
}

/* Nobody sits there to be asked for a passphrase. */
static int tls_on_passphrase(char *out, int room, int is_writing, void *was_asked)
{
    (void)out, (void)room, (void)is_writing;
    *(bool *)was_asked = true;
    return -1;
}

static EVP_PKEY *tls_read_key(struct tls_wish *wish)
{
    struct whole_file text;
    bool is_encrypted = false;
    BIO *bio = tls_open(wish, &wish->key, WHOLE_FILE_SECRET, &text);
    if (!bio)
        return NULL;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, tls_on_passphrase, &is_encrypted);
    if (is_encrypted)
        tls_complain(wish, &wish->key,
                     "is encrypted, and nobody is asked for a passphrase: decrypt it with openssl "
                     "pkey");
    else if (!key)
        tls_complain(wish, &wish->key, "holds no private key in PEM");
    BIO_free(bio);
    whole_file_fini(&text);
    return key;
}

/* The next certificate of a file, or NULL at its end. */
static X509 *tls_next_certificate(struct tls_wish *wish, const struct tls_file *file, BIO *bio)
{
    bool unused = false;
    X509 *certificate = PEM_read_bio_X509(bio, NULL, tls_on_passphrase, &unused);
    if (!certificate && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        tls_complain(wish, file, "holds a certificate that is damaged");
    /* Makes OpenSSL read the extensions now, which it would do at their first use, in whichever worker that is: a
     * context does not change once it is made. What it thinks of them a verification will say. */
    if (certificate)
        (void)X509_check_purpose(certificate, -1, 0);
    ERR_clear_error();
    return certificate;
}

/* ---- our own certificate ---- */

static void tls_check_own(struct tls_wish *wish, X509 *certificate, EVP_PKEY *key)
{
    char why[TLS_VALIDITY];
    tls_validity(X509_get0_notBefore(certificate), X509_get0_notAfter(certificate), why);
    if (why[0])
        tls_complain(wish, &wish->cert, "%s", why);
    if (key && X509_check_private_key(certificate, key) != 1)
        tls_complain(wish, &wish->key, "does not match the certificate of %s", wish->cert.setting);
}

static bool tls_use_chain(struct tls_wish *wish, BIO *bio)
{
    X509 *next;
    bool ok = true;
    while (ok && (next = tls_next_certificate(wish, &wish->cert, bio)) != NULL) {
        ok = SSL_CTX_add1_chain_cert(wish->context->ctx, next) == 1;
        X509_free(next);
    }
    return ok;
}

/* The first certificate of the file is ours, and what follows leads to an authority. OpenSSL keeps a chain for each
 * kind of key, so the certificate must be there before its chain. `key` may be NULL when it was complained about. */
static void tls_use_certificates(struct tls_wish *wish, BIO *bio, EVP_PKEY *key)
{
    SSL_CTX *ctx = wish->context->ctx;
    unsigned faults = wish->faults;
    X509 *certificate = tls_next_certificate(wish, &wish->cert, bio);
    if (!certificate) {
        if (wish->faults == faults)
            tls_complain(wish, &wish->cert, "holds no certificate in PEM");
        return;
    }
    tls_check_own(wish, certificate, key);
    bool ok = SSL_CTX_use_certificate(ctx, certificate) == 1 && tls_use_chain(wish, bio);
    X509_free(certificate);
    if (!ok || (key && wish->faults == faults && SSL_CTX_use_PrivateKey(ctx, key) != 1))
        tls_complain(wish, &wish->cert, "cannot be used: %s", ERR_reason_error_string(ERR_peek_error()));
}

static void tls_use_own(struct tls_wish *wish)
{
    struct whole_file text;
    if (!tls_is_given(&wish->cert) && !tls_is_given(&wish->key))
        return;
    if (!tls_is_given(&wish->cert) || !tls_is_given(&wish->key)) {
        const struct tls_file *given = tls_is_given(&wish->cert) ? &wish->cert : &wish->key;
        const struct tls_file *missing = tls_is_given(&wish->cert) ? &wish->key : &wish->cert;
        tls_complain(wish, given, "is of no use without %s", missing->setting);
        return;
    }
    EVP_PKEY *key = tls_read_key(wish);
    BIO *bio = tls_open(wish, &wish->cert, WHOLE_FILE_PUBLIC, &text);
    if (bio) {
        tls_use_certificates(wish, bio, key);
        BIO_free(bio);
        whole_file_fini(&text);
    }
    EVP_PKEY_free(key);
}

/* ---- authorities ---- */

static void tls_use_authority(struct tls_wish *wish, X509 *authority)
{
    SSL_CTX *ctx = wish->context->ctx;
    bool ok = X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), authority) == 1;
    /* Clients with several certificates choose by these names. */
    if (wish->context->is_server)
        ok = ok && SSL_CTX_add_client_CA(ctx, authority) == 1;
    if (!ok)
        tls_complain(wish, &wish->ca, "cannot be used: %s", ERR_reason_error_string(ERR_peek_error()));
}

static void tls_use_authorities(struct tls_wish *wish)
{
    struct whole_file text;
    size_t count = 0;
    unsigned faults = wish->faults;
    BIO *bio = tls_open(wish, &wish->ca, WHOLE_FILE_PUBLIC, &text);
    if (!bio)
        return;
    X509 *authority;
    while ((authority = tls_next_certificate(wish, &wish->ca, bio)) != NULL) {
        tls_use_authority(wish, authority);
        X509_free(authority);
        count++;
    }
    if (count == 0 && wish->faults == faults)
        tls_complain(wish, &wish->ca, "holds no certificate in PEM");
    BIO_free(bio);
    whole_file_fini(&text);
}

static void tls_use_system(struct tls_wish *wish)
{
    if (SSL_CTX_set_default_verify_paths(wish->context->ctx) != 1)
        tls_complain(wish, &wish->mode, "finds no authorities of the system: %s",
                     ERR_reason_error_string(ERR_peek_error()));
}

static void tls_use_lists(struct tls_wish *wish)
{
    struct whole_file text;
    const char *why;
    X509_STORE *store = SSL_CTX_get_cert_store(wish->context->ctx);
    BIO *bio = tls_open(wish, &wish->crl, WHOLE_FILE_PUBLIC, &text);
    if (!bio)
        return;
    if (!tls_lists_read(store, bio, &why))
        tls_complain(wish, &wish->crl, "%s", why);
    else if (!tls_lists_serve(store))
        tls_complain(wish, &wish->crl, "holds no list that an authority of %s \"%s\" has signed", wish->ca.setting,
                     wish->ca.path);
    wish->context->lists_end = tls_lists_end(store);
    BIO_free(bio);
    whole_file_fini(&text);
}

/* Whom to trust, and whom no longer. */
static void tls_use_trust(struct tls_wish *wish, int verify)
{
    unsigned faults = wish->faults;
    if (tls_is_given(&wish->ca))
        tls_use_authorities(wish);
    else if (verify != SSL_VERIFY_NONE)
        tls_use_system(wish);
    if (tls_is_given(&wish->ca) && tls_is_given(&wish->crl) && wish->faults == faults)
        tls_use_lists(wish);
}

/* ---- versions and ciphers ---- */

/* Some lists of OpenSSL's reach ciphers that encrypt nothing, or prove nobody's identity. */
static const SSL_CIPHER *tls_find_hollow(SSL_CTX *ctx)
{
    STACK_OF(SSL_CIPHER) *ciphers = SSL_CTX_get_ciphers(ctx);
    for (int i = 0; i < sk_SSL_CIPHER_num(ciphers); i++) {
        const SSL_CIPHER *cipher = sk_SSL_CIPHER_value(ciphers, i);
        if (SSL_CIPHER_get_cipher_nid(cipher) == NID_undef || SSL_CIPHER_get_auth_nid(cipher) == NID_auth_null)
            return cipher;
    }
    return NULL;
}

static bool tls_is_default(const char *ciphers)
{
    return strcasecmp(ciphers, "default") == 0;
}

static void tls_use_ciphers(struct tls_wish *wish)
{
    const struct conf_tls *tls = wish->tls;
    SSL_CTX *ctx = wish->context->ctx;
    bool is_server = wish->context->is_server;
    struct tls_file old = {.setting = is_server ? "client_tls_ciphers" : "server_tls_ciphers", .path = tls->ciphers};
    struct tls_file new = {.setting = is_server ? "client_tls13_ciphers" : "server_tls13_ciphers",
                           .path = tls->tls13_ciphers};
    conf_where(wish->conf, &tls->ciphers, old.where);
    conf_where(wish->conf, &tls->tls13_ciphers, new.where);
    if (!tls_is_default(tls->ciphers) && SSL_CTX_set_cipher_list(ctx, tls->ciphers) != 1)
        tls_complain(wish, &old, "names no cipher that OpenSSL knows");
    else if (tls_find_hollow(ctx))
        tls_complain(wish, &old, "allows %s, which protects nothing", SSL_CIPHER_get_name(tls_find_hollow(ctx)));
    if (!tls_is_default(tls->tls13_ciphers) && SSL_CTX_set_ciphersuites(ctx, tls->tls13_ciphers) != 1)
        tls_complain(wish, &new, "names a cipher of TLS 1.3 that OpenSSL does not know");
}

static bool tls_use_versions(struct tls_wish *wish)
{
    SSL_CTX *ctx = wish->context->ctx;
    unsigned protocols = wish->tls->protocols;
    return SSL_CTX_set_min_proto_version(ctx, protocols & CONF_TLS_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(ctx, protocols & CONF_TLS_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION) == 1;
}

/* ---- the context ---- */

static struct tls_context *tls_context_new(bool is_server)
{
    struct tls_context *context = mem_zalloc(sizeof *context);
    if (!context)
        return NULL;
    atomic_init(&context->refs, 1);
    context->is_server = is_server;
    context->lists_end = INT64_MAX;
    context->ctx = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    context->method = tls_method_new();
    if (context->ctx && context->method)
        return context;
    tls_context_free(context);
    return NULL;
}

struct tls_context *tls_context_ref(struct tls_context *context)
{
    if (context)
        atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
    return context;
}

void tls_context_free(struct tls_context *context)
{
    if (!context || atomic_fetch_sub_explicit(&context->refs, 1, memory_order_acq_rel) > 1)
        return;
    SSL_CTX_free(context->ctx);
    BIO_meth_free(context->method);
    mem_free(context);
}

static void tls_use_habits(SSL_CTX *ctx)
{
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS); /* an idle connection has none */
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
}

/* Tickets hold everything, so nothing is kept here; they are sealed with keys that live and die with this context. */
static bool tls_use_tickets(struct tls_context *context)
{
    static const uint8_t name[] = "pgseek";
    SSL_CTX *ctx = context->ctx;
    SSL_CTX_set_timeout(ctx, TLS_TICKET_SECONDS);
    return SSL_CTX_set_num_tickets(ctx, 1) == 1 &&
           SSL_CTX_set_session_ticket_cb(ctx, NULL, tls_on_ticket, context) == 1 &&
           SSL_CTX_set_session_id_context(ctx, name, sizeof name) == 1;
}

static bool tls_use_role(struct tls_wish *wish)
{
    SSL_CTX *ctx = wish->context->ctx;
    if (!wish->context->is_server)
        return SSL_CTX_set_alpn_protos(ctx, tls_alpn, sizeof tls_alpn) == 0;
    SSL_CTX_set_alpn_select_cb(ctx, tls_on_alpn, NULL);
    return tls_use_tickets(wish->context);
}

/* Makes the context of a wish that says whom to trust; NULL after complaints. */
static struct tls_context *tls_grant(struct tls_wish *wish, int verify, bool verifies_names)
{
    wish->context->verifies_names = verifies_names;
    tls_use_habits(wish->context->ctx);
    if (!tls_use_versions(wish) || !tls_use_role(wish))
        tls_complain(wish, &wish->mode, "cannot be had: %s", ERR_reason_error_string(ERR_peek_error()));
    tls_use_ciphers(wish);
    tls_use_own(wish);
    tls_use_trust(wish, verify);
    /* Without verification OpenSSL verifies all the same, and ignores what comes of it: so must we. */
    SSL_CTX_set_verify(wish->context->ctx, verify, verify != SSL_VERIFY_NONE ? tls_on_verify : NULL);
    ERR_clear_error();
    if (wish->faults == 0)
        return wish->context;
    tls_context_free(wish->context);
    return NULL;
}

static bool tls_begin(struct tls_wish *wish, bool is_server)
{
    wish->context = tls_context_new(is_server);
    if (!wish->context)
        tls_complain(wish, &wish->mode, "cannot be had: out of memory");
    return wish->context;
}

/* ---- the client leg ---- */

static void tls_name_option(struct tls_file *file, const struct conf *conf, char *const *field, const char *setting)
{
    file->setting = setting;
    file->path = *field;
    conf_where(conf, field, file->where);
}

static int tls_verify_of_clients(const struct tls_wish *wish)
{
    if (!tls_is_given(&wish->ca))
        return SSL_VERIFY_NONE;
    return wish->sslmode >= CONF_SSL_VERIFY_CA ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_PEER;
}

bool tls_context_for_clients(const struct conf *conf, struct tls_context **context, FILE *complaints)
{
    const struct conf_tls *tls = &conf->client_tls;
    struct tls_wish wish = {.tls = tls, .conf = conf, .sslmode = tls->sslmode, .complaints = complaints};
    *context = NULL;
    if (tls->sslmode == CONF_SSL_DISABLE)
        return true;
    wish.mode.setting = "client_tls_sslmode";
    conf_where(conf, &tls->sslmode, wish.mode.where);
    tls_name_option(&wish.cert, conf, &tls->cert_file, "client_tls_cert_file");
    tls_name_option(&wish.key, conf, &tls->key_file, "client_tls_key_file");
    tls_name_option(&wish.ca, conf, &tls->ca_file, "client_tls_ca_file");
    tls_name_option(&wish.crl, conf, &tls->crl_file, "client_tls_crl_file");
    if (!tls_is_given(&wish.cert) && !tls_is_given(&wish.key))
        tls_complain(&wish, &wish.mode, "needs client_tls_cert_file and client_tls_key_file");
    if (tls->sslmode >= CONF_SSL_VERIFY_CA && !tls_is_given(&wish.ca))
        tls_complain(&wish, &wish.mode, "needs client_tls_ca_file: nothing else says whose certificates are good");
    if (tls_is_given(&wish.crl) && !tls_is_given(&wish.ca))
        tls_complain(&wish, &wish.crl, "is of no use without client_tls_ca_file");
    if (tls_begin(&wish, true))
        *context = tls_grant(&wish, tls_verify_of_clients(&wish), false);
    return *context;
}

/* ---- the server leg ---- */

bool tls_context_is_alike(const struct conf *conf, const struct conf_database *one, const struct conf_database *other)
{
    struct conf_server_leg a = conf_server_leg(conf, one);
    struct conf_server_leg b = conf_server_leg(conf, other);
    return tls_mode_for_line(conf, one) == tls_mode_for_line(conf, other) && a.sslnegotiation == b.sslnegotiation &&
           a.is_system_ca == b.is_system_ca && strcmp(a.ca_file, b.ca_file) == 0 &&
           strcmp(a.crl_file, b.crl_file) == 0 && strcmp(a.cert_file, b.cert_file) == 0 &&
           strcmp(a.key_file, b.key_file) == 0;
}

/* A setting that a line may have for itself. */
static void tls_name_keyword(struct tls_file *file, const struct tls_wish *wish, const struct conf_database *database,
                             bool is_own, const char *keyword, const void *field, const char *option)
{
    file->setting = is_own ? keyword : option;
    if (is_own)
        conf_where_database(wish->conf, database, file->where);
    else
        conf_where(wish->conf, field, file->where);
}

/* As libpq: authorities that are given are asked even where the mode would not. */
static int tls_verify_of_servers(const struct tls_wish *wish)
{
    return wish->sslmode >= CONF_SSL_VERIFY_CA || tls_is_given(&wish->ca) ? SSL_VERIFY_PEER : SSL_VERIFY_NONE;
}

static void tls_check_line(struct tls_wish *wish, const struct conf_database *database,
                           const struct conf_server_leg *leg)
{
    if (tls_is_given(&wish->crl) && !tls_is_given(&wish->ca))
        tls_complain(wish, &wish->crl,
                     "is of no use to database \"%s\", which has no file of authorities: give it one (sslrootcert=, or "
                     "server_tls_ca_file), or no list (sslcrl='')",
                     database->name);
    if (wish->sslmode == CONF_SSL_VERIFY_CA && !tls_is_given(&wish->ca))
        tls_complain(wish, &wish->mode,
                     "verify-ca without authorities of your own would take every certificate that anybody's authority "
                     "has issued: use verify-full, or give server_tls_ca_file");
    else if (leg->is_system_ca && wish->sslmode < CONF_SSL_VERIFY_FULL)
        tls_complain(wish, &wish->mode, "is too weak for sslrootcert=system: use verify-full");
    if (leg->sslnegotiation == CONF_SSLNEGOTIATION_DIRECT && wish->sslmode < CONF_SSL_REQUIRE)
        tls_complain(wish, &wish->mode,
                     "is too weak for sslnegotiation=direct, which cannot go on without TLS: use require or stricter");
}

bool tls_context_for_server(const struct conf *conf, const struct conf_database *database, struct tls_context **context,
                            FILE *complaints)
{
    const struct conf_tls *tls = &conf->server_tls;
    const struct conf_server_leg leg = conf_server_leg(conf, database);
    struct tls_wish wish = {.tls = tls, .conf = conf, .complaints = complaints};
    *context = NULL;
    wish.sslmode = tls_mode_for_line(conf, database);
    if (wish.sslmode == CONF_SSL_DISABLE)
        return true;
    tls_name_keyword(&wish.mode, &wish, database, database->sslmode != CONF_SSL_INHERIT, "sslmode", &tls->sslmode,
                     "server_tls_sslmode");
    tls_name_keyword(&wish.ca, &wish, database, database->sslrootcert, "sslrootcert", &tls->ca_file,
                     "server_tls_ca_file");
    tls_name_keyword(&wish.crl, &wish, database, database->sslcrl, "sslcrl", &tls->crl_file, "server_tls_crl_file");
    tls_name_keyword(&wish.cert, &wish, database, database->sslcert, "sslcert", &tls->cert_file,
                     "server_tls_cert_file");
    tls_name_keyword(&wish.key, &wish, database, database->sslkey, "sslkey", &tls->key_file, "server_tls_key_file");
    wish.ca.path = leg.ca_file;
    wish.crl.path = leg.crl_file;
    wish.cert.path = leg.cert_file;
    wish.key.path = leg.key_file;
    tls_check_line(&wish, database, &leg);
    if (tls_begin(&wish, false))
        *context = tls_grant(&wish, tls_verify_of_servers(&wish), wish.sslmode == CONF_SSL_VERIFY_FULL);
    return *context;
}
