/* conf.h - the settings: one option table, read from an INI file into an immutable snapshot.
 *
 * It knows names, types, defaults and bounds, and must not know what a setting is for. A snapshot is counted by
 * references and never changes once loaded; a reload makes a new one. */
#ifndef CONF_H
#define CONF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../../parser/pgseek.h"
#include "../protocol/bytes.h"

enum conf_offset_policy { CONF_OFFSET_RUN, CONF_OFFSET_REJECT };
enum conf_protection { CONF_PROTECT_ENCRYPT, CONF_PROTECT_SIGN };

/* libpq's sslmode, in rising strictness. AUTO (server leg only): disable on this machine, else verify-full. */
enum conf_sslmode {
    CONF_SSL_DISABLE,
    CONF_SSL_ALLOW,
    CONF_SSL_PREFER,
    CONF_SSL_REQUIRE,
    CONF_SSL_VERIFY_CA,
    CONF_SSL_VERIFY_FULL,
    CONF_SSL_AUTO,
    CONF_SSL_INHERIT /* a [databases] line without sslmode: server_tls_sslmode */
};
enum conf_sslnegotiation { CONF_SSLNEGOTIATION_POSTGRES, CONF_SSLNEGOTIATION_DIRECT, CONF_SSLNEGOTIATION_INHERIT };
enum conf_tls_version { CONF_TLS_1_2 = 1, CONF_TLS_1_3 = 2 };
enum conf_auth_type { CONF_AUTH_RELAY, CONF_AUTH_SCRAM, CONF_AUTH_HBA };

#define CONF_MAX_HOSTS 8
#define CONF_MAX_SCOPE 16
#define CONF_MAX_OPTIONS 96

/* Where servers are when a line does not say: as libpq on Debian. */
#define CONF_DEFAULT_HOST "/var/run/postgresql"
#define CONF_DEFAULT_PORT 5432

/* One line of [databases]: where the sessions of that name go. "*" serves every other name. */
struct conf_database {
    char *name;
    size_t nhosts;
    struct {
        char *host; /* a name or address, or a socket directory when it starts with '/' */
        int port;
    } hosts[CONF_MAX_HOSTS];
    char *dbname; /* the server's database; NULL: the name the client asked for */
    char *user;   /* the server's user; NULL: the client's */
    enum conf_sslmode sslmode;
    enum conf_sslnegotiation sslnegotiation;
    char *sslrootcert; /* each NULL: the server_tls_ option's */
    char *sslcrl;      /* "": none, whatever the option says */
    char *sslcert;
    char *sslkey;
    unsigned line; /* of the file; 0: made without one */
};

/* The settings of one leg's TLS. File names are "" when not given. */
struct conf_tls {
    enum conf_sslmode sslmode;
    char *key_file;
    char *cert_file;
    char *ca_file;
    char *crl_file;
    unsigned protocols; /* bits of enum conf_tls_version */
    char *ciphers;      /* of TLS 1.2, as OpenSSL writes them; "default": the library's */
    char *tls13_ciphers;
};

struct conf {
    _Atomic int refs;
    /* listening */
    char *listen_addr; /* list of addresses separated by commas; "*" for all; "" for none */
    int listen_port;
    char *unix_socket_dir; /* "" for none */
    int unix_socket_mode;
    int listen_backlog;
    int workers;
    /* limits */
    int max_client_conn;
    int max_db_client_connections;   /* 0: no limit */
    int max_user_client_connections; /* 0: no limit */
    int client_login_timeout;        /* seconds; 0: none */
    int server_connect_timeout;
    int max_tagged_size;       /* bytes of a statement that is still looked at */
    int plan_cache_size;       /* plans kept per worker */
    int64_t plan_cache_memory; /* bytes that they may take */
    bool tcp_keepalive;
    int tcp_keepidle, tcp_keepintvl, tcp_keepcnt; /* seconds, seconds, count; 0: the system's */
    /* pages */
    char *cursor_key_file; /* "" : a key made at start */
    int64_t cursor_ttl;    /* seconds; 0: for ever */
    enum conf_protection cursor_protection;
    enum pgseek_mode mode;
    bool strict;
    unsigned deliver;
    enum conf_offset_policy offset_policy;
    int64_t max_offset; /* 0: no bound */
    int total_timeout;  /* seconds */
    size_t nscope;
    char *scope[CONF_MAX_SCOPE]; /* names of settings that a cursor is bound to */
    /* TLS */
    struct conf_tls client_tls;
    struct conf_tls server_tls;
    enum conf_sslnegotiation server_tls_sslnegotiation;
    /* authentication */
    enum conf_auth_type auth_type;
    char *auth_file; /* each "": none */
    char *auth_hba_file;
    char *auth_ident_file;
    char *auth_query;
    char *auth_user;
    char *auth_dbname;
    /* operation */
    char *logfile; /* "": standard error */
    char *pidfile; /* "": none */
    char *user;    /* "": stay who we are */
    int verbose;
    bool log_connections;
    bool log_disconnections;
    /* databases */
    size_t ndatabases;
    struct conf_database *databases;
    /* where it was written */
    char *path;                       /* NULL: made without a file */
    unsigned lines[CONF_MAX_OPTIONS]; /* of each row of the option table; 0: at its default */
};

/* Loads and checks a file. NULL after writing "file:line: sentence" lines for every fault to `complaints`. */
struct conf *conf_load(const char *path, FILE *complaints);
/* The same from memory; `path` stands for the file in complaints. */
struct conf *conf_read(struct span text, const char *path, FILE *complaints);
/* The defaults with one database "*" at host and port: for tests and explain. NULL when out of memory. */
struct conf *conf_default(const char *host, int port);
struct conf *conf_ref(struct conf *conf);
void conf_unref(struct conf *conf);

/* The line that serves a database name, or NULL. */
const struct conf_database *conf_find_database(const struct conf *conf, const char *name);

/* The server leg of one line of [databases]: what it says itself, and the server_tls_ options where it is silent. */
#define CONF_SSLROOTCERT_SYSTEM "system" /* the authorities that the system trusts, instead of a file's */
struct conf_server_leg {
    enum conf_sslmode sslmode; /* AUTO is still to be resolved for each host */
    enum conf_sslnegotiation sslnegotiation;
    bool is_system_ca;   /* sslrootcert=system was asked for; ca_file is "" then */
    const char *ca_file; /* each "": none */
    const char *crl_file;
    const char *cert_file;
    const char *key_file;
};
struct conf_server_leg conf_server_leg(const struct conf *conf, const struct conf_database *database);

/* For complaints about a setting's meaning, found after the file was read: "proxy.conf:12", or the path alone for a
 * default. `field` is the address of the setting in *conf. */
#define CONF_WHERE_BYTES 320
void conf_where(const struct conf *conf, const void *field, char where[CONF_WHERE_BYTES]);
void conf_where_database(const struct conf *conf, const struct conf_database *database, char where[CONF_WHERE_BYTES]);

/* Names of the settings that differ but take effect only after a restart; returns how many there are, of which the
 * first `max` were stored in `names`. For a warning after a reload. */
size_t conf_restart_needed(const struct conf *running, const struct conf *loaded, const char **names, size_t max);

#endif
