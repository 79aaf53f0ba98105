/* splice.c - the floor: a libuv proxy that looks at nothing. usage: splice LISTEN_PORT SERVER_PORT (127.0.0.1)
 *
 * libuv streams, one read buffer, a write without a queue first, reading stopped while a rest is queued. What pgseek
 * costs more than this is what understanding the protocol costs. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

struct end {
    uv_tcp_t tcp; /* first: a stream pointer is an end pointer */
    struct end *other;
    struct both *both;
};

struct both {
    struct end client, server;
    uv_connect_t connect;
    int open_ends;
};

struct rest {
    uv_write_t write; /* first */
    struct end *from;
    char bytes[];
};

static char buffer[65536];
static struct sockaddr_in server_address;

static void on_closed(uv_handle_t *handle)
{
    struct both *both = ((struct end *)handle)->both;
    if (--both->open_ends == 0)
        free(both);
}

static void end_both(struct both *both)
{
    struct end *ends[] = {&both->client, &both->server};
    for (int i = 0; i < 2; i++)
        if (!uv_is_closing((uv_handle_t *)ends[i]))
            uv_close((uv_handle_t *)ends[i], on_closed);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(buffer, sizeof buffer);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf);

static void on_rest_written(uv_write_t *write, int status)
{
    struct rest *rest = (struct rest *)write;
    struct end *from = rest->from;
    free(rest);
    if (status < 0)
        end_both(from->both);
    else if (!uv_is_closing((uv_handle_t *)from))
        uv_read_start((uv_stream_t *)from, on_alloc, on_read);
}

static void send_rest(struct end *from, const char *bytes, size_t len)
{
    struct rest *rest = malloc(sizeof *rest + len);
    if (!rest) {
        end_both(from->both);
        return;
    }
    rest->from = from;
    memcpy(rest->bytes, bytes, len);
    uv_buf_t whole = uv_buf_init(rest->bytes, (unsigned)len);
    uv_read_stop((uv_stream_t *)from);
    if (uv_write(&rest->write, (uv_stream_t *)from->other, &whole, 1, on_rest_written) == 0)
        return;
    free(rest);
    end_both(from->both);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct end *from = (struct end *)stream;
    if (got < 0)
        end_both(from->both);
    if (got <= 0)
        return;
    uv_buf_t all = uv_buf_init(buf->base, (unsigned)got);
    int sent = uv_try_write((uv_stream_t *)from->other, &all, 1);
    if (sent == got)
        return;
    if (sent < 0 && sent != UV_EAGAIN)
        end_both(from->both);
    else
        send_rest(from, buf->base + (sent > 0 ? sent : 0), (size_t)(got - (sent > 0 ? sent : 0)));
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct both *both = connect->data;
    if (status < 0)
        end_both(both);
    if (uv_is_closing((uv_handle_t *)&both->client))
        return;
    uv_read_start((uv_stream_t *)&both->client, on_alloc, on_read);
    uv_read_start((uv_stream_t *)&both->server, on_alloc, on_read);
}

static void on_client(uv_stream_t *listener, int status)
{
    struct both *both = status < 0 ? NULL : calloc(1, sizeof *both);
    if (!both)
        return;
    both->open_ends = 2;
    both->connect.data = both;
    both->client.both = both->server.both = both;
    both->client.other = &both->server;
    both->server.other = &both->client;
    uv_tcp_init(listener->loop, &both->client.tcp);
    uv_tcp_init(listener->loop, &both->server.tcp);
    if (uv_accept(listener, (uv_stream_t *)&both->client) < 0 ||
        uv_tcp_connect(&both->connect, &both->server.tcp, (const struct sockaddr *)&server_address, on_connected) < 0) {
        end_both(both);
        return;
    }
    uv_tcp_nodelay(&both->client.tcp, 1);
    uv_tcp_nodelay(&both->server.tcp, 1);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: splice LISTEN_PORT SERVER_PORT\n");
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    struct sockaddr_in address;
    uv_ip4_addr("127.0.0.1", (int)strtol(argv[1], NULL, 10), &address);
    uv_ip4_addr("127.0.0.1", (int)strtol(argv[2], NULL, 10), &server_address);
    uv_loop_t *loop = uv_default_loop();
    uv_tcp_t listener;
    uv_tcp_init(loop, &listener);
    int rc = uv_tcp_bind(&listener, (const struct sockaddr *)&address, 0);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&listener, 1024, on_client);
    if (rc < 0) {
        fprintf(stderr, "splice: %s\n", uv_strerror(rc));
        return 1;
    }
    return uv_run(loop, UV_RUN_DEFAULT);
}
