/* hba_rule.c - what the fields of a line mean. */
#include "hba_rule.h"

#include <stdarg.h>
#include <string.h>

/* A rule that is being read. */
struct hba_line {
    struct rule_reading *reading;
    struct hba_rule *rule;
    size_t at; /* the token that comes next */
};

static bool hba_refuse(struct hba_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool hba_refuse(struct hba_line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    rule_complain_v(line->reading, line->rule->line.number, format, args);
    va_end(args);
    return false;
}

/* ---- words ---- */

/* A word that a field may be, and what it stands for; or why it cannot be used here. */
struct hba_word {
    const char *word;
    unsigned value;
    const char *refusal;
};

static const char hba_no_include[] = "files are not included: write the lines here";
static const char hba_no_gss[] = "GSSAPI encryption cannot pass a proxy: write host or hostssl";

static const struct hba_word hba_connections[] = {
    {"local", HBA_LOCAL, NULL},         {"host", HBA_PLAIN | HBA_TLS, NULL},
    {"hostssl", HBA_TLS, NULL},         {"hostnossl", HBA_PLAIN, NULL},
    {"hostgssenc", 0, hba_no_gss},      {"hostnogssenc", 0, "GSSAPI encryption never passes the proxy: write host"},
    {"include", 0, hba_no_include},     {"include_if_exists", 0, hba_no_include},
    {"include_dir", 0, hba_no_include}, {NULL, 0, NULL},
};

static const char hba_server_asks[] = "is asked by the server: write relay here, and the method in its pg_hba.conf";
static const char hba_server_sees_proxy[] =
    "would tell the server who runs the proxy, not who the client is: write relay, scram-sha-256 or cert";

static const struct hba_word hba_methods[] = {
    {"relay", HBA_RELAY, NULL},
    {"scram-sha-256", HBA_SCRAM, NULL},
    {"cert", HBA_CERT, NULL},
    {"reject", HBA_REJECT, NULL},
    {"trust", 0, "lets anybody in: write relay here, and the server decides by its pg_hba.conf"},
    {"md5", 0, hba_server_asks},
    {"password", 0, hba_server_asks},
    {"gss", 0, hba_server_asks},
    {"sspi", 0, hba_server_asks},
    {"ldap", 0, hba_server_asks},
    {"radius", 0, hba_server_asks},
    {"pam", 0, hba_server_asks},
    {"bsd", 0, hba_server_asks},
    {"oauth", 0, hba_server_asks},
    {"peer", 0, hba_server_sees_proxy},
    {"ident", 0, hba_server_sees_proxy},
    {NULL, 0, NULL},
};

static const struct hba_word hba_clientcerts[] = {
    {"verify-ca", HBA_CLIENTCERT_CA, NULL},
    {"verify-full", HBA_CLIENTCERT_FULL, NULL},
    {"no-verify", 0, "asks for nothing: leave clientcert out"},
    {NULL, 0, NULL},
};

/* False after complaining. `what` is "connection type", `known` lists the words for a person. */
static bool hba_find_word(struct hba_line *line, const struct hba_word *words, const char *text, unsigned *value,
                          const char *what, const char *known)
{
    for (; words->word; words++)
        if (strcmp(words->word, text) == 0) {
            *value = words->value;
            return !words->refusal || hba_refuse(line, "%s \"%s\" %s", what, text, words->refusal);
        }
    return hba_refuse(line, "unknown %s \"%s\": there are %s", what, text, known);
}

/* A field of one token. NULL after complaining. */
static const char *hba_single(struct hba_line *line, const char *what)
{
    struct rule_field field = rule_field(&line->rule->line, &line->at);
    if (field.count == 1)
        return field.tokens[0].text;
    rule_complain(line->reading, line->rule->line.number,
                  field.count ? "the %s is a list: write a line for each" : "the line ends before its %s", what);
    return NULL;
}

/* ---- who ---- */

static bool hba_check_name(struct hba_line *line, const struct rule_token *token, const char *what)
{
    const char *text = token->text;
    if (text[0] == '\0')
        return hba_refuse(line, "the name of a %s is empty", what);
    if (text[0] == '@' && !token->is_quoted)
        return hba_refuse(line, "\"%s\": files are not included: write the names here", text);
    if (text[0] == '/')
        return hba_refuse(line, "\"%s\": regular expressions are not read here: list each %s", text, what);
    if (strlen(text) > RULE_NAME_MAX)
        return hba_refuse(line, "\"%s\" is longer than the name of a %s can be", text, what);
    return true;
}

static bool hba_check_roles(struct hba_line *line, const struct rule_token *token, bool is_user)
{
    bool needs_roles = is_user ? !token->is_quoted && token->text[0] == '+'
                               : rule_is_keyword(token, "samerole") || rule_is_keyword(token, "samegroup");
    return !needs_roles ||
           hba_refuse(line, "\"%s\": who is a member of a role only the server knows: list the users", token->text);
}

static bool hba_read_names(struct hba_line *line, struct rule_field *names, bool is_user)
{
    const char *what = is_user ? "user" : "database";
    *names = rule_field(&line->rule->line, &line->at);
    if (names->count == 0)
        return hba_refuse(line, "the line ends before its %s", what);
    for (size_t i = 0; i < names->count; i++)
        if (!hba_check_name(line, &names->tokens[i], what) || !hba_check_roles(line, &names->tokens[i], is_user))
            return false;
    return true;
}

/* ---- from where ---- */

static bool hba_read_range(struct hba_line *line, const char *text)
{
    const char *why;
    struct range *range = &line->rule->range;
    enum range_result result = range_read(text, range, &why);
    if (result == RANGE_NO_MASK) {
        text = hba_single(line, "mask");
        if (!text)
            return false;
        result = range_read_mask(text, range, &why);
    }
    line->rule->where = HBA_RANGE;
    return result == RANGE_OK || hba_refuse(line, "\"%s\" %s", text, why);
}

static bool hba_read_where(struct hba_line *line)
{
    static const struct hba_word words[] = {
        {"all", HBA_ANYWHERE, NULL}, {"samehost", HBA_SAMEHOST, NULL}, {"samenet", HBA_SAMENET, NULL}};
    struct hba_rule *rule = line->rule;
    const struct rule_token *token = rule->line.tokens + line->at;
    if (rule->connections == HBA_LOCAL)
        return true;
    const char *text = hba_single(line, "address");
    for (size_t i = 0; text && i < sizeof words / sizeof *words; i++)
        if (rule_is_keyword(token, words[i].word)) {
            rule->where = words[i].value;
            return true;
        }
    return text && hba_read_range(line, text);
}

/* ---- how ---- */

static bool hba_read_clientcert(struct hba_line *line, const char *value)
{
    unsigned clientcert = HBA_CLIENTCERT_FULL;
    struct hba_rule *rule = line->rule;
    if (rule->connections != HBA_TLS)
        return hba_refuse(line, "clientcert can be asked for on hostssl lines only");
    if (!hba_find_word(line, hba_clientcerts, value, &clientcert, "clientcert", "verify-ca and verify-full"))
        return false;
    if (rule->method == HBA_CERT && clientcert != HBA_CLIENTCERT_FULL)
        return hba_refuse(line, "method cert always means clientcert=verify-full: leave clientcert out");
    rule->clientcert = clientcert;
    return true;
}

static bool hba_read_map(struct hba_line *line, const char *value)
{
    line->rule->map = value;
    return value[0] || hba_refuse(line, "the name of a map is empty");
}

static const struct {
    const char *name; /* with "=" */
    bool (*read)(struct hba_line *line, const char *value);
} hba_options[] = {{"clientcert=", hba_read_clientcert}, {"map=", hba_read_map}};

#define HBA_OPTIONS (sizeof hba_options / sizeof *hba_options)

static bool hba_read_option(struct hba_line *line, const char *text, bool was_given[HBA_OPTIONS])
{
    for (size_t i = 0; i < HBA_OPTIONS; i++) {
        size_t len = strlen(hba_options[i].name);
        if (strncmp(text, hba_options[i].name, len) != 0)
            continue;
        if (was_given[i])
            return hba_refuse(line, "%.*s is given twice", (int)len - 1, text);
        was_given[i] = true;
        return hba_options[i].read(line, text + len);
    }
    return hba_refuse(line, "unknown option \"%s\": there are clientcert= and map=", text);
}

static bool hba_read_options(struct hba_line *line)
{
    struct hba_rule *rule = line->rule;
    bool was_given[HBA_OPTIONS] = {false};
    for (; line->at < rule->line.ntokens; line->at++)
        if (!hba_read_option(line, rule->line.tokens[line->at].text, was_given))
            return false;
    if (rule->method == HBA_CERT)
        rule->clientcert = HBA_CLIENTCERT_FULL;
    if (rule->map && rule->clientcert != HBA_CLIENTCERT_FULL)
        return hba_refuse(line, "a map is for the name of a certificate: it needs cert or clientcert=verify-full");
    return true;
}

static bool hba_read_method(struct hba_line *line)
{
    unsigned method = HBA_REJECT;
    const char *text = hba_single(line, "method");
    if (!text || !hba_find_word(line, hba_methods, text, &method, "method", "relay, scram-sha-256, cert and reject"))
        return false;
    line->rule->method = method;
    return method != HBA_CERT || line->rule->connections == HBA_TLS ||
           hba_refuse(line, "method cert needs TLS: write hostssl");
}

static bool hba_read_connections(struct hba_line *line)
{
    const char *text = hba_single(line, "connection type");
    return text && hba_find_word(line, hba_connections, text, &line->rule->connections, "connection type",
                                 "local, host, hostssl and hostnossl");
}

bool hba_rule_read(struct rule_reading *reading, struct hba_rule *rule)
{
    struct hba_line line = {.reading = reading, .rule = rule};
    return hba_read_connections(&line) && hba_read_names(&line, &rule->databases, false) &&
           hba_read_names(&line, &rule->users, true) && hba_read_where(&line) && hba_read_method(&line) &&
           hba_read_options(&line);
}
