/* main.c - the command line: which of pgseek's commands is meant, and its exit code.
 *
 * It knows arguments and must not decide anything else: serving is server's, explaining is explain's, keys are the key
 * ring's. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/conf.h"
#include "admin/explain.h"
#include "admin/log.h"
#include "admin/reference.h"
#include "io/process.h"
#include "io/routes.h"
#include "io/server.h"
#include "io/snapshot.h"
#include "page/keyring.h"

#ifndef PGSEEK_VERSION
#define PGSEEK_VERSION "0.1"
#endif

static const char usage_text[] =
    "pgseek turns OFFSET pagination into keyset pagination, in front of a PostgreSQL server.\n"
    "\n"
    "usage:\n"
    "  pgseek [-d] [-t] [-v | -q] CONFIG            serve\n"
    "  pgseek keygen FILE                           put a new key in front of a key file, or make the file\n"
    "  pgseek explain [-c CONFIG] [-d CONNSTR] [-v] SQL\n"
    "                                               say what would be done with a statement\n"
    "\n"
    "options:\n"
    "  -d, --daemon              go into the background\n"
    "  -t, --check               check the configuration and the files it names, then exit\n"
    "  -v, --verbose             log more\n"
    "  -q, --quiet               log warnings and errors only\n"
    "  -V, --version             print the version\n"
    "  -h, --help                print this text\n"
    "      --print-config        print an example of the configuration, all defaults\n"
    "      --print-reference     print the reference of options, codes, reasons and metrics\n"
    "\n"
    "signals: HUP reads the configuration again; TERM and INT let clients finish, a second one ends them;\n"
    "QUIT cuts them off.\n";

/* ---- serve ---- */

struct arguments {
    const char *conf_path;
    bool is_daemon;
    bool is_check;
    bool is_verbose;
    bool is_quiet;
};

static const struct {
    const char *letter, *word;
    size_t offset;
} flags[] = {
    {"-d", "--daemon", offsetof(struct arguments, is_daemon)},
    {"-t", "--check", offsetof(struct arguments, is_check)},
    {"-v", "--verbose", offsetof(struct arguments, is_verbose)},
    {"-q", "--quiet", offsetof(struct arguments, is_quiet)},
};

static bool arguments_take_flag(struct arguments *arguments, const char *text)
{
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(text, flags[i].letter) == 0 || strcmp(text, flags[i].word) == 0) {
            *(bool *)((char *)arguments + flags[i].offset) = true;
            return true;
        }
    return false;
}

static bool arguments_read(struct arguments *arguments, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-' && arguments_take_flag(arguments, argv[i]))
            continue;
        if (argv[i][0] == '-' || arguments->conf_path)
            return false;
        arguments->conf_path = argv[i];
    }
    return arguments->conf_path && !(arguments->is_verbose && arguments->is_quiet);
}

static void say(const char *sentence)
{
    puts(sentence);
}

/* What a start would load, without a port. */
static int check(struct conf *conf)
{
    struct snapshot *snapshot = snapshot_new(conf, NULL, stderr);
    if (!snapshot)
        return 1;
    if (log_threshold < LOG_WARNING)
        log_threshold = LOG_WARNING;
    snapshot_announce(snapshot, NULL);
    routes_tell(snapshot->conf, say);
    snapshot_unref(snapshot);
    puts("configuration ok");
    return 0;
}

static int serve_main(int argc, char **argv)
{
    struct arguments arguments = {0};
    if (!arguments_read(&arguments, argc, argv)) {
        fputs(usage_text, stderr);
        return 1;
    }
    struct conf *conf = conf_load(arguments.conf_path, stderr);
    if (!conf)
        return 1;
    log_set_threshold(arguments.is_quiet, arguments.is_verbose || conf->verbose > 0);
    if (arguments.is_check)
        return check(conf);
    struct server_options options = {.conf_path = arguments.conf_path,
                                     .conf = conf,
                                     .is_daemon = arguments.is_daemon,
                                     .is_verbose = arguments.is_verbose,
                                     .is_quiet = arguments.is_quiet};
    return server_run(&options);
}

/* ---- the small commands ---- */

static int keygen_main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: pgseek keygen FILE\n", stderr);
        return 1;
    }
    struct pgseek_error error = {0};
    if (keyring_generate(argv[2], &error)) {
        printf("%s: the new key seals from the next start or reload on; the others still open\n", argv[2]);
        return 0;
    }
    fprintf(stderr, "pgseek keygen: %s %s\n", error.message, error.hint);
    return 1;
}

static int version_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("pgseek " PGSEEK_VERSION);
    return 0;
}

static int help_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    fputs(usage_text, stdout);
    return 0;
}

static int print_config_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    conf_print_example(stdout);
    return ferror(stdout) ? 1 : 0;
}

static int print_reference_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    reference_print(stdout);
    return ferror(stdout) ? 1 : 0;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"keygen", keygen_main},
    {"explain", explain_main},
    {"-V", version_main},
    {"--version", version_main},
    {"-h", help_main},
    {"--help", help_main},
    {"--print-config", print_config_main},
    {"--print-reference", print_reference_main},
};

int main(int argc, char **argv)
{
    process_fill_descriptors();
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc, argv);
    return serve_main(argc, argv);
}
