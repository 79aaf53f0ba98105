/* reference.c - prints the tables for people. A sentence that a reader should find belongs into a table, not here. */
#include "reference.h"

#include <string.h>

#include "../../parser/pgseek.h"
#include "option.h"
#include "stats.h"

/* ---- text ---- */

#define REFERENCE_WIDTH 100 /* columns of a comment line */

/* A comment of several lines, broken at blanks. */
static void reference_put_comment(FILE *out, const char *text)
{
    while (*text) {
        size_t len = strlen(text);
        if (len > REFERENCE_WIDTH) {
            len = REFERENCE_WIDTH;
            while (len > 1 && text[len] != ' ')
                len--;
        }
        fprintf(out, "; %.*s\n", (int)len, text);
        text += len;
        text += strspn(text, " ");
    }
}

/* One cell of a Markdown table, with the characters escaped that would be markup. */
static void reference_put_cell(FILE *out, const char *text)
{
    fputs("| ", out);
    for (; *text; text++) {
        if (strchr("|<*", *text))
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc(' ', out);
}

static void reference_put_code(FILE *out, const char *text)
{
    fprintf(out, text[0] ? "| `%s` " : "| %s", text);
}

static void reference_begin_table(FILE *out, const char *title, const char *about, const char *head)
{
    size_t columns = 0;
    fprintf(out, "\n## %s\n\n%s\n\n%s\n", title, about, head);
    for (const char *at = head; *at; at++)
        columns += *at == '|';
    for (size_t i = 1; i < columns; i++)
        fputs("|---", out);
    fputs("|\n", out);
}

/* ---- the example ---- */

void conf_print_example(FILE *out)
{
    fputs(
        "; proxy.conf.example: every setting of pgseek at its default. Made by pgseek --print-config.\n"
        "; A line that starts with ; or # is a comment, so is what follows a blank and a semicolon.\n"
        "\n"
        "[databases]\n"
        "; <name that clients ask for> = <libpq connection string>, of which host, port, dbname, user, sslmode,\n"
        "; sslrootcert, sslcrl, sslcert, sslkey and sslnegotiation are used.\n"
        "; Several hosts, separated by commas, are tried in order. A host that starts with / is the folder of a Unix\n"
        "; socket, and the default is " CONF_DEFAULT_HOST ". Without dbname and user the client's own are taken.\n"
        "; The name * stands for every database that has no line of its own.\n"
        ";shop = host=db1,db2 port=5432 dbname=shop\n"
        "* = host=127.0.0.1 port=5432\n"
        "\n"
        "[pgseek]\n",
        out);
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &option_table[i];
        if (option->heading)
            fprintf(out, "\n; ---- %s ----\n", option->heading);
        fputc('\n', out);
        reference_put_comment(out, option->help);
        fprintf(out, option->initial[0] ? ";%s = %s\n" : ";%s =%s\n", option->name, option->initial);
    }
}

/* ---- the reference ---- */

static void reference_put_option(FILE *out, const struct option *option)
{
    char bounds[256];
    option_bounds(option, bounds, sizeof bounds);
    reference_put_code(out, option->name);
    reference_put_cell(out, option_type_name(option->type));
    reference_put_code(out, option->initial);
    reference_put_cell(out, bounds);
    reference_put_cell(out, option->is_reloadable ? "yes" : "restart");
    reference_put_cell(out, option->help);
    fputs("|\n", out);
}

static void reference_put_options(FILE *out)
{
    reference_begin_table(out, "Settings of proxy.conf",
                          "Section `[pgseek]`. \"Reload\" says whether SIGHUP is enough.",
                          "| setting | type | default | values | reload | meaning |");
    for (size_t i = 0; i < option_count; i++)
        reference_put_option(out, &option_table[i]);
}

static void reference_put_tag_options(FILE *out)
{
    reference_begin_table(
        out, "Tag options and session variables",
        "In a comment `/* pgseek name=value */`, in a sqlcommenter comment `pgseek_name='value'`, as a "
        "session variable `pgseek.name`.",
        "| option | meaning |");
    for (unsigned i = 0; i < PGSEEK_OPT_COUNT; i++) {
        reference_put_code(out, pgseek_option_name((enum pgseek_option)i));
        reference_put_cell(out, pgseek_option_help((enum pgseek_option)i));
        fputs("|\n", out);
    }
}

static void reference_put_codes(FILE *out)
{
    reference_begin_table(out, "Error codes", "SQLSTATEs of pgseek's own errors.", "| code | meaning |");
    for (unsigned i = 0; i < PGSEEK_CODE_COUNT; i++) {
        reference_put_code(out, pgseek_code_sqlstate((enum pgseek_code)i));
        reference_put_cell(out, pgseek_code_meaning((enum pgseek_code)i));
        fputs("|\n", out);
    }
}

static void reference_put_reasons(FILE *out)
{
    reference_begin_table(
        out, "Reasons",
        "Why a tagged statement was not rewritten, as `pgseek.action` (`pass: <reason>`), PS005 and the "
        "counters name it.",
        "| reason | why | what to do |");
    for (unsigned i = 0; i < PGSEEK_REASON_COUNT; i++) {
        reference_put_code(out, pgseek_reason_name((enum pgseek_reason)i));
        reference_put_cell(out, pgseek_reason_why((enum pgseek_reason)i));
        reference_put_cell(out, pgseek_reason_hint((enum pgseek_reason)i));
        fputs("|\n", out);
    }
}

static void reference_put_counters(FILE *out)
{
    reference_begin_table(out, "Counters",
                          "Summed over all workers since start. Passes are also counted by reason, rejects by code.",
                          "| counter | counts |");
    for (unsigned i = 0; i < STATS_COUNT; i++) {
        reference_put_code(out, stats_name((enum stats_counter)i));
        reference_put_cell(out, stats_help((enum stats_counter)i));
        fputs("|\n", out);
    }
}

void reference_print(FILE *out)
{
    reference_put_options(out);
    reference_put_tag_options(out);
    reference_put_codes(out);
    reference_put_reasons(out);
    reference_put_counters(out);
}
