/* server.h - the running proxy: listeners, workers, and the signals that reload and stop them.
 *
 * It knows the order of starting and stopping and must not know sessions. It runs in the main thread; when it returns,
 * nothing of it is left. */
#ifndef SERVER_H
#define SERVER_H

#include <stdbool.h>

struct conf;

struct server_options {
    const char *conf_path;
    struct conf *conf; /* taken over */
    bool is_daemon;
    bool is_verbose, is_quiet; /* whatever the configuration says */
};

/* Serves until it is told to stop. The exit code of the process: 0 after a clean stop, 1 when it could not start. */
int server_run(const struct server_options *options);

#endif
