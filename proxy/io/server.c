/* server.c - starts in an order in which every failure is seen by who started us, and stops on signals.
 *
 *     bind ─▶ background ─▶ keys ─▶ pid file ─▶ other user ─▶ workers ─▶ signals
 *
 * The first worker lives in the main thread, where the kernel spares a process without other threads the counting of
 * its descriptors (2 % of a transaction); the others have threads.
 *
 * HUP: reload. TERM, INT: drain; again, or after a while: end all. QUIT: cut all off. */
#include "server.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "../../parser/pgseek.h"
#include "../admin/conf.h"
#include "../admin/log.h"
#include "../session/cancel.h"
#include "../session/census.h"
#include "listener.h"
#include "lookup.h"
#include "pair.h"
#include "process.h"
#include "snapshot.h"
#include "worker.h"

/* How long a drain waits for sessions to become idle. */
#define SERVER_DRAIN_MS 30000
/* Descriptors that are not clients: listeners, loops, log. */
#define SERVER_OWN_DESCRIPTORS 64
#define SERVER_NAME_THREADS 4
#define SERVER_RESTART_NAMES 32

enum server_signal { SERVER_HUP, SERVER_TERM, SERVER_INT, SERVER_QUIT, SERVER_SIGNALS };

struct server {
    const struct server_options *options;
    uv_loop_t loop;
    uv_signal_t signals[SERVER_SIGNALS];
    uv_timer_t deadline;
    uv_timer_t reload; /* runs out at once */
    uv_async_t worker_done;
    struct snapshot *snapshot;
    struct listener_set listeners;
    struct pair_counts counts;
    struct cancel_map *cancels;
    struct census *census;
    struct worker **workers;
    int nworkers;
    int started;
    int ready_fd; /* to the parent that waits for a daemon's start, or -1 */
    int pid_fd;
    bool is_draining;
    bool has_loop;
    char *pid_path;
};

/* ---- orders ---- */

static void server_tell(struct server *server, enum worker_order order)
{
    for (int i = 0; i < server->started; i++)
        worker_tell(server->workers[i], order);
}

static void server_close_handle(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void server_on_worker_done(uv_async_t *handle)
{
    struct server *server = handle->data;
    for (int i = 0; i < server->started; i++)
        if (!worker_is_done(server->workers[i]))
            return;
    uv_walk(&server->loop, server_close_handle, NULL);
}

static void server_on_deadline(uv_timer_t *timer)
{
    struct server *server = timer->data;
    log_at(LOG_WARNING, "%d clients are still busy: ending them", atomic_load(&server->counts.clients));
    server_tell(server, WORKER_END);
}

static void server_drain(struct server *server)
{
    if (server->is_draining) {
        server_tell(server, WORKER_END);
        return;
    }
    server->is_draining = true;
    uv_timer_start(&server->deadline, server_on_deadline, SERVER_DRAIN_MS, 0);
    server_tell(server, WORKER_DRAIN);
}

/* ---- reload ---- */

/* What is bound or started once cannot change without a restart. */
static void server_warn_of_restart(const struct conf *running, const struct conf *loaded)
{
    const char *names[SERVER_RESTART_NAMES];
    size_t count = conf_restart_needed(running, loaded, names, SERVER_RESTART_NAMES);
    for (size_t i = 0; i < count && i < SERVER_RESTART_NAMES; i++)
        log_at(LOG_WARNING, "%s changes at the next start only", names[i]);
}

static bool server_open_log(const struct conf *conf)
{
    const char *why = NULL;
    if (log_open(conf->logfile[0] ? conf->logfile : NULL, &why))
        return true;
    log_at(LOG_ERROR, "could not open logfile \"%s\": %s", conf->logfile, why);
    return false;
}

/* Complaints are written to a stream; each of their lines becomes one of the log's. */
struct server_complaints {
    FILE *stream; /* NULL when out of memory */
    char *text;
    size_t len;
};

static void server_log_complaints(struct server_complaints *complaints)
{
    char *rest = NULL;
    fclose(complaints->stream);
    for (char *line = complaints->text ? strtok_r(complaints->text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        log_at(LOG_ERROR, "%s", line);
    free(complaints->text); /* open_memstream's */
}

static struct snapshot *server_make_snapshot(struct conf *conf, const struct snapshot *old)
{
    struct server_complaints complaints = {0};
    complaints.stream = open_memstream(&complaints.text, &complaints.len);
    if (!complaints.stream) {
        conf_unref(conf);
        return NULL;
    }
    struct snapshot *snapshot = snapshot_new(conf, old, complaints.stream);
    server_log_complaints(&complaints);
    if (snapshot)
        snapshot_announce(snapshot, old);
    return snapshot;
}

static struct conf *server_load_conf(const char *path)
{
    struct server_complaints complaints = {0};
    complaints.stream = open_memstream(&complaints.text, &complaints.len);
    if (!complaints.stream)
        return NULL;
    struct conf *conf = conf_load(path, complaints.stream);
    server_log_complaints(&complaints);
    return conf;
}

static void server_reload(struct server *server)
{
    if (!server_open_log(server->snapshot->conf)) /* a rotated file is let go even if the new settings are no good */
        log_at(LOG_ERROR, "the old log stays in use");
    log_at(LOG_INFO, "got SIGHUP, reading %s again", server->options->conf_path);
    struct conf *conf = server_load_conf(server->options->conf_path);
    struct snapshot *snapshot = conf ? server_make_snapshot(conf, server->snapshot) : NULL;
    if (!snapshot) {
        log_at(LOG_ERROR, "reload failed: the old settings stay in force");
        return;
    }
    server_warn_of_restart(server->snapshot->conf, snapshot->conf);
    if (!server_open_log(snapshot->conf))
        log_at(LOG_ERROR, "the old log stays in use");
    log_set_threshold(server->options->is_quiet, server->options->is_verbose || snapshot->conf->verbose > 0);
    snapshot_unref(server->snapshot);
    server->snapshot = snapshot;
    for (int i = 0; i < server->started; i++)
        worker_reload(server->workers[i], snapshot);
    log_at(LOG_INFO, "reloaded");
}

/* ---- signals ---- */

static void server_on_reload(uv_timer_t *timer)
{
    struct server *server = timer->data;
    if (!server->is_draining)
        server_reload(server);
}

/* Signals are queued, each of them. Many at once are one reload, and clients of this thread and other signals have
 * their turn before the next. */
static void server_on_hup(struct server *server)
{
    uv_timer_start(&server->reload, server_on_reload, 0, 0);
}

static void server_on_term(struct server *server)
{
    log_at(LOG_INFO, server->is_draining ? "got SIGTERM again, ending all clients"
                                         : "got SIGTERM, waiting for clients to be idle");
    server_drain(server);
}

static void server_on_int(struct server *server)
{
    log_at(LOG_INFO,
           server->is_draining ? "got SIGINT again, ending all clients" : "got SIGINT, waiting for clients to be idle");
    server_drain(server);
}

static void server_on_quit(struct server *server)
{
    log_at(LOG_INFO, "got SIGQUIT, closing all connections");
    server->is_draining = true;
    server_tell(server, WORKER_KILL);
}

static const struct {
    int number;
    void (*act)(struct server *server);
} server_signals[SERVER_SIGNALS] = {
    [SERVER_HUP] = {SIGHUP, server_on_hup},
    [SERVER_TERM] = {SIGTERM, server_on_term},
    [SERVER_INT] = {SIGINT, server_on_int},
    [SERVER_QUIT] = {SIGQUIT, server_on_quit},
};

static void server_on_signal(uv_signal_t *handle, int number)
{
    struct server *server = handle->data;
    for (int i = 0; i < SERVER_SIGNALS; i++)
        if (server_signals[i].number == number)
            server_signals[i].act(server);
}

/* ---- start ---- */

static int server_open_loop(struct server *server)
{
    int rc = uv_async_init(&server->loop, &server->worker_done, server_on_worker_done);
    if (rc == 0)
        rc = uv_timer_init(&server->loop, &server->deadline);
    if (rc == 0)
        rc = uv_timer_init(&server->loop, &server->reload);
    server->worker_done.data = server;
    server->deadline.data = server;
    server->reload.data = server;
    for (int i = 0; rc == 0 && i < SERVER_SIGNALS; i++) {
        rc = uv_signal_init(&server->loop, &server->signals[i]);
        server->signals[i].data = server;
        if (rc == 0)
            rc = uv_signal_start(&server->signals[i], server_on_signal, server_signals[i].number);
    }
    return rc;
}

static bool server_make_worker(struct server *server, int index)
{
    bool is_here = index == 0 && process_deepen_stack(PGSEEK_STACK_BYTES);
    const struct worker_shared shared = {
        .counts = &server->counts, .cancels = server->cancels, .census = server->census};
    struct worker *worker =
        worker_new(index, is_here ? &server->loop : NULL, server->snapshot, &shared, &server->worker_done);
    if (!worker)
        return false;
    server->workers[server->nworkers++] = worker;
    return worker_open(worker, &server->listeners);
}

/* Signals are the main thread's business: the others are started with all of them blocked. */
static bool server_start_workers(struct server *server)
{
    int wanted = server->snapshot->conf->workers;
    server->workers = mem_zalloc((size_t)wanted * sizeof *server->workers);
    server->cancels = cancel_map_new();
    server->census = census_new();
    if (!server->workers || !server->cancels || !server->census) {
        log_at(LOG_FATAL, "could not make the workers: no memory or no randomness");
        return false;
    }
    while (server->nworkers < wanted)
        if (!server_make_worker(server, server->nworkers))
            return false;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (server->started < wanted && worker_start(server->workers[server->started]))
        server->started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return server->started == wanted;
}

/* Look-ups of secrets must not take all the threads that look names up, whatever the environment says. Nor do names
 * take theirs: libuv lets them have half of the pool at most. It is made at its first use. */
static void server_size_pool(const struct conf *conf)
{
    char threads[16];
    snprintf(threads, sizeof threads, "%d", conf->workers * LOOKUP_RUNNING_MAX + SERVER_NAME_THREADS);
    setenv("UV_THREADPOOL_SIZE", threads, 1);
}

/* As the user that a reload will open it as, who may be the one that its folder belongs to. */
static bool server_open_first_log(const struct conf *conf)
{
    if (!conf->logfile[0] || !conf->user[0])
        return server_open_log(conf);
    process_make_file(conf->logfile, LOG_FILE_MODE, conf->user);
    if (!process_step_down(conf->user))
        return false;
    bool ok = server_open_log(conf);
    process_step_up();
    return ok;
}

/* Everything that needs the rights and the terminal of who started us. */
static bool server_prepare(struct server *server)
{
    const struct conf *conf = server->options->conf;
    if (!server_open_first_log(conf) || !listener_open_all(&server->listeners, conf))
        return false;
    server_size_pool(conf);
    process_raise_descriptors((unsigned long)conf->max_client_conn * 2 + SERVER_OWN_DESCRIPTORS);
    if (server->options->is_daemon && !process_daemonize(&server->ready_fd)) {
        log_at(LOG_FATAL, "could not go into the background: %s", strerror(errno));
        return false;
    }
    return true;
}

static void server_warn_if_unreadable(const struct conf *conf, const char *file)
{
    if (file && file[0] && access(file, R_OK) < 0)
        log_at(LOG_WARNING, "user \"%s\" cannot read %s: a reload will fail", conf->user, file);
}

/* A reload reads these again. */
static void server_warn_of_unreadable(const struct conf *conf)
{
    const char *const files[] = {conf->cursor_key_file,
                                 conf->client_tls.key_file,
                                 conf->client_tls.cert_file,
                                 conf->client_tls.ca_file,
                                 conf->client_tls.crl_file,
                                 conf->server_tls.key_file,
                                 conf->server_tls.cert_file,
                                 conf->server_tls.ca_file,
                                 conf->server_tls.crl_file,
                                 conf->auth_file,
                                 conf->auth_hba_file,
                                 conf->auth_ident_file,
                                 conf->path};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        server_warn_if_unreadable(conf, files[i]);
    for (size_t i = 0; i < conf->ndatabases; i++) {
        const struct conf_database *database = &conf->databases[i];
        bool is_system_ca = conf_server_leg(conf, database).is_system_ca;
        server_warn_if_unreadable(conf, is_system_ca ? NULL : database->sslrootcert);
        server_warn_if_unreadable(conf, database->sslcrl);
        server_warn_if_unreadable(conf, database->sslcert);
        server_warn_if_unreadable(conf, database->sslkey);
    }
}

static bool server_give_up_root(const struct conf *conf)
{
    if (conf->user[0] && !process_become(conf->user))
        return false;
    if (conf->user[0])
        server_warn_of_unreadable(conf);
    if (geteuid() == 0)
        log_at(LOG_WARNING, "pgseek runs as root and needs to no more: name a user in the configuration");
    process_renounce();
    return true;
}

static bool server_settle_in(struct server *server)
{
    const struct conf *conf = server->snapshot->conf;
    if (conf->pidfile[0]) {
        server->pid_path = mem_strndup(conf->pidfile, strlen(conf->pidfile));
        server->pid_fd = server->pid_path ? process_pidfile_open(server->pid_path) : -1;
        if (server->pid_fd < 0)
            return false;
    }
    if (!server_give_up_root(conf))
        return false;
    int rc = server_open_loop(server);
    if (rc < 0) {
        log_at(LOG_FATAL, "could not make the main loop: %s", uv_strerror(rc));
        return false;
    }
    return server_start_workers(server);
}

/* A reload that is asked for while we start must wait for the loop, not kill us. */
static void server_hold_hup(int how)
{
    sigset_t hup;
    sigemptyset(&hup);
    sigaddset(&hup, SIGHUP);
    pthread_sigmask(how, &hup, NULL);
}

static bool server_start(struct server *server)
{
    signal(SIGPIPE, SIG_IGN);
    int rc = uv_loop_init(&server->loop);
    if (rc < 0) {
        log_at(LOG_FATAL, "could not make the main loop: %s", uv_strerror(rc));
        return false;
    }
    server->has_loop = true;
    server->snapshot = server_make_snapshot(conf_ref(server->options->conf), NULL);
    return server->snapshot && server_settle_in(server);
}

static void server_serve(struct server *server)
{
    bool is_logging_to_file = server->snapshot->conf->logfile[0] != '\0';
    server_hold_hup(SIG_UNBLOCK);
    log_at(LOG_INFO, "pgseek is ready: %d worker%s", server->nworkers, server->nworkers == 1 ? "" : "s");
    if (server->ready_fd >= 0)
        process_ready(server->ready_fd, !is_logging_to_file);
    uv_run(&server->loop, UV_RUN_DEFAULT);
    log_at(LOG_INFO, "stopped");
}

/* ---- stop ---- */

static void server_fini(struct server *server)
{
    server_tell(server, WORKER_KILL); /* harmless on workers that are done */
    for (int i = 0; i < server->nworkers; i++)
        worker_join(server->workers[i]);
    if (server->has_loop) {
        uv_walk(&server->loop, server_close_handle, NULL);
        uv_run(&server->loop, UV_RUN_DEFAULT);
        uv_loop_close(&server->loop);
    }
    for (int i = 0; i < server->nworkers; i++)
        worker_free(server->workers[i]);
    mem_free(server->workers);
    cancel_map_free(server->cancels);
    census_free(server->census);
    listener_close_all(&server->listeners);
    snapshot_unref(server->snapshot);
    process_pidfile_close(server->pid_fd, server->pid_path);
    mem_free(server->pid_path);
    log_close();
}

int server_run(const struct server_options *options)
{
    struct server server = {.options = options, .ready_fd = -1, .pid_fd = -1};
    struct conf *conf = options->conf;
    server_hold_hup(SIG_BLOCK);
    bool is_running = server_prepare(&server) && server_start(&server);
    if (is_running)
        server_serve(&server);
    else if (conf->logfile[0])
        fprintf(stderr, "pgseek: could not start, %s says why\n", conf->logfile);
    server_fini(&server);
    conf_unref(conf);
    return is_running ? 0 : 1;
}
