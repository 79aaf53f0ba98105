/* listener.c - binds TCP addresses once per worker and the Unix socket once. */
#include "listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../admin/conf.h"
#include "../admin/log.h"

/* "*" : every address of both families. */
#define LISTENER_ANY "*"

/* ---- the set ---- */

static struct listener *listener_add(struct listener_set *set, int fd, int worker, const char *name)
{
    struct listener *grown = mem_realloc(set->listeners, (set->count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    set->listeners = grown;
    struct listener *listener = &grown[set->count++];
    *listener = (struct listener){.fd = fd, .worker = worker};
    snprintf(listener->name, sizeof listener->name, "%s", name);
    return listener;
}

static void listener_close(const struct listener *listener)
{
    close(listener->fd);
    struct stat file;
    if (listener->is_unix && lstat(listener->name, &file) == 0 && file.st_dev == listener->device &&
        file.st_ino == listener->inode)
        unlink(listener->name);
}

void listener_close_all(struct listener_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        listener_close(&set->listeners[i]);
    mem_free(set->listeners);
    *set = (struct listener_set){0};
}

/* ---- names ---- */

static void listener_name_ip(const struct sockaddr *address, char *name)
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *ip6 = (const void *)address;
        inet_ntop(AF_INET6, &ip6->sin6_addr, text, sizeof text);
        snprintf(name, LISTENER_NAME_BYTES, "[%s]:%d", text, ntohs(ip6->sin6_port));
        return;
    }
    const struct sockaddr_in *ip4 = (const void *)address;
    inet_ntop(AF_INET, &ip4->sin_addr, text, sizeof text);
    snprintf(name, LISTENER_NAME_BYTES, "%s:%d", text, ntohs(ip4->sin_port));
}

/* ---- TCP ---- */

/* A bound socket, or a negative errno. */
static int listener_bind(const struct addrinfo *address, bool may_share_port)
{
    const int on = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    bool is_bound = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
    if (is_bound && address->ai_family == AF_INET6) /* IPv4 has a socket of its own */
        is_bound = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0;
    if (is_bound && may_share_port)
        is_bound = setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0;
    if (is_bound && bind(fd, address->ai_addr, address->ai_addrlen) == 0)
        return fd;
    int error = errno;
    close(fd);
    return -error;
}

static bool listener_open_for_worker(struct listener_set *set, const struct conf *conf, const struct addrinfo *address,
                                     const char *name, int worker)
{
    int fd = listener_bind(address, conf->workers > 1);
    int error = fd < 0 ? -fd : 0;
    if (error == 0 && listen(fd, conf->listen_backlog) < 0)
        error = errno;
    if (error == 0 && !listener_add(set, fd, worker, name))
        error = ENOMEM;
    if (error == 0)
        return true;
    if (fd >= 0)
        close(fd);
    log_at(LOG_FATAL, "could not listen on %s: %s", name, strerror(error));
    return false;
}

/* With SO_REUSEPORT a second pgseek would bind the same port and silently take half of the clients. So the port is
 * first bound without it, which fails when anybody has it. */
static int listener_probe(const struct addrinfo *address)
{
    int fd = listener_bind(address, false);
    if (fd < 0)
        return -fd;
    close(fd);
    return 0;
}

static bool listener_open_address(struct listener_set *set, const struct conf *conf, const struct addrinfo *address,
                                  bool is_any)
{
    char name[LISTENER_NAME_BYTES];
    listener_name_ip(address->ai_addr, name);
    int error = listener_probe(address);
    if (is_any && (error == EAFNOSUPPORT || error == EADDRNOTAVAIL))
        return true; /* a machine without IPv6 */
    if (error != 0) {
        log_at(LOG_FATAL, "could not listen on %s: %s", name, strerror(error));
        return false;
    }
    for (int worker = 0; worker < conf->workers; worker++)
        if (!listener_open_for_worker(set, conf, address, name, worker))
            return false;
    log_at(LOG_INFO, "listening on %s", name);
    return true;
}

static bool listener_open_host(struct listener_set *set, const struct conf *conf, const char *host)
{
    char port[16];
    snprintf(port, sizeof port, "%d", conf->listen_port);
    bool is_any = strcmp(host, LISTENER_ANY) == 0;
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    int rc = getaddrinfo(is_any ? NULL : host, port, &hints, &addresses);
    if (rc != 0) {
        log_at(LOG_FATAL, "could not listen on \"%s\": %s", host, gai_strerror(rc));
        return false;
    }
    bool is_open = true;
    for (const struct addrinfo *address = addresses; is_open && address; address = address->ai_next)
        is_open = listener_open_address(set, conf, address, is_any);
    freeaddrinfo(addresses);
    return is_open;
}

/* listen_addr is a list separated by commas and blanks. */
static bool listener_open_tcp(struct listener_set *set, const struct conf *conf)
{
    static const char separators[] = ", \t";
    const char *at = conf->listen_addr + strspn(conf->listen_addr, separators);
    while (*at) {
        char host[256];
        size_t len = strcspn(at, separators);
        snprintf(host, sizeof host, "%.*s", (int)(len < sizeof host ? len : sizeof host - 1), at);
        if (!listener_open_host(set, conf, host))
            return false;
        at += len;
        at += strspn(at, separators);
    }
    return true;
}

/* ---- Unix ---- */

/* Clears the way for bind(): a socket file that nobody answers on is left from a process that died. 0, or a positive
 * errno when somebody is there or the file is something else. */
static int listener_clear_stale(const struct sockaddr_un *address)
{
    struct stat file;
    if (lstat(address->sun_path, &file) < 0)
        return errno == ENOENT ? 0 : errno;
    if (!S_ISSOCK(file.st_mode))
        return EEXIST;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    int rc = connect(fd, (const struct sockaddr *)address, sizeof *address);
    bool is_stale = rc < 0 && errno == ECONNREFUSED;
    close(fd);
    if (!is_stale)
        return EADDRINUSE;
    return unlink(address->sun_path) < 0 && errno != ENOENT ? errno : 0;
}

/* The socket is made with its mode: a chmod() by name could meet what somebody else has put there meanwhile. */
static bool listener_bind_path(int fd, const struct conf *conf, const struct sockaddr_un *address)
{
    mode_t before = umask((mode_t)~conf->unix_socket_mode & 0777);
    bool is_bound = bind(fd, (const struct sockaddr *)address, sizeof *address) == 0;
    umask(before);
    return is_bound && listen(fd, conf->listen_backlog) == 0;
}

/* 0 or a positive errno. */
static int listener_open_path(struct listener_set *set, const struct conf *conf, const struct sockaddr_un *address)
{
    int error = listener_clear_stale(address);
    if (error != 0)
        return error;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    struct stat file;
    bool is_open = listener_bind_path(fd, conf, address) && lstat(address->sun_path, &file) == 0;
    struct listener *listener = is_open ? listener_add(set, fd, LISTENER_SHARED, address->sun_path) : NULL;
    if (!listener) {
        error = is_open ? ENOMEM : errno;
        close(fd);
        return error;
    }
    listener->is_unix = true;
    listener->device = file.st_dev;
    listener->inode = file.st_ino;
    return 0;
}

static bool listener_open_unix(struct listener_set *set, const struct conf *conf)
{
    if (conf->unix_socket_dir[0] == '\0')
        return true;
    struct stat directory;
    if (stat(conf->unix_socket_dir, &directory) < 0) {
        log_at(LOG_WARNING, "no Unix socket: unix_socket_dir \"%s\": %s", conf->unix_socket_dir, strerror(errno));
        return true;
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int len =
        snprintf(address.sun_path, sizeof address.sun_path, "%s/.s.PGSQL.%d", conf->unix_socket_dir, conf->listen_port);
    int error =
        len < 0 || (size_t)len >= sizeof address.sun_path ? ENAMETOOLONG : listener_open_path(set, conf, &address);
    if (error != 0) {
        log_at(LOG_FATAL, "could not listen on %s/.s.PGSQL.%d: %s", conf->unix_socket_dir, conf->listen_port,
               strerror(error));
        return false;
    }
    log_at(LOG_INFO, "listening on %s", address.sun_path);
    return true;
}

bool listener_open_all(struct listener_set *set, const struct conf *conf)
{
    *set = (struct listener_set){0};
    bool is_open = listener_open_tcp(set, conf) && listener_open_unix(set, conf);
    if (is_open && set->count == 0) {
        log_at(LOG_FATAL, "nothing to listen on: listen_addr and unix_socket_dir are both empty or unusable");
        is_open = false;
    }
    if (!is_open)
        listener_close_all(set);
    return is_open;
}

/* ---- clients ---- */

void listener_stop(const struct listener *listener)
{
    /* Of a socket that listens this ends the listening, so that a load balancer sees at once that nobody is there. */
    if (shutdown(listener->fd, SHUT_RDWR) < 0)
        log_at(LOG_DEBUG, "%s has stopped already", listener->name);
}

static void listener_read_address(const struct sockaddr_storage *address, struct address *out)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    *out = (struct address){.family = ADDRESS_UNIX};
    if (address->ss_family == AF_INET) {
        out->family = ADDRESS_IP4;
        memcpy(out->bytes, &((const struct sockaddr_in *)address)->sin_addr, 4);
    } else if (address->ss_family == AF_INET6) {
        const uint8_t *bytes = ((const struct sockaddr_in6 *)address)->sin6_addr.s6_addr;
        bool is_mapped = memcmp(bytes, mapped, sizeof mapped) == 0;
        out->family = is_mapped ? ADDRESS_IP4 : ADDRESS_IP6;
        memcpy(out->bytes, is_mapped ? bytes + sizeof mapped : bytes, is_mapped ? 4 : 16);
    }
}

static void listener_read_own_address(int fd, struct address *out)
{
    struct sockaddr_storage address;
    memset(&address, 0, sizeof address);
    socklen_t len = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        address.ss_family = AF_UNSPEC; /* then no rule about our own address matches */
    listener_read_address(&address, out);
}

int listener_accept(const struct listener *listener, struct listener_peer *peer)
{
    struct sockaddr_storage address;
    memset(&address, 0, sizeof address);
    socklen_t len = sizeof address;
    int fd;
    do
        fd = accept4(listener->fd, (struct sockaddr *)&address, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd < 0)
        return errno == EWOULDBLOCK ? -EAGAIN : -errno;
    if (listener->is_unix)
        snprintf(peer->name, sizeof peer->name, "unix");
    else
        listener_name_ip((const struct sockaddr *)&address, peer->name);
    listener_read_address(&address, &peer->from);
    listener_read_own_address(fd, &peer->to);
    return fd;
}
