/* pgseek.h - the parser's whole face: SQL in, a plan or a reason out.
 *
 * It holds no socket, clock, log or global state, and it must not know what a connection is. All functions may be
 * called from any thread whose stack has at least PGSEEK_STACK_BYTES; objects are not shared between threads unless
 * said so. Every SQL text is a (pointer, length) pair and need not end in NUL. */
#ifndef PGSEEK_H
#define PGSEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PGSEEK_MUST_USE __attribute__((warn_unused_result))

/* The parser recurses: only threads with a stack of this size may call anything that parses. */
#define PGSEEK_STACK_BYTES ((size_t)64 * 1024 * 1024)
#define PGSEEK_MAX_TOKENS 8000
#define PGSEEK_MAX_NESTING 128
#define PGSEEK_MAX_KEYS 16

/* ---- errors and reasons ------------------------------------------------------------------------------------- */

/* The SQLSTATEs of class PS. */
enum pgseek_code {
    PGSEEK_PS000, /* bad tag or variable */
    PGSEEK_PS001, /* cursor malformed */
    PGSEEK_PS002, /* cursor not sealed with a known key, or altered */
    PGSEEK_PS003, /* cursor expired */
    PGSEEK_PS004, /* cursor belongs to another query, filter, sort, user or scope */
    PGSEEK_PS005, /* statement cannot be paginated */
    PGSEEK_PS006, /* OFFSET refused by policy */
    PGSEEK_CODE_COUNT
};

struct pgseek_error {
    enum pgseek_code code;
    char message[256];
    char detail[512];
    char hint[256];
};

/* The five characters of a code's SQLSTATE, and its meaning in one sentence for the documents. */
const char *pgseek_code_sqlstate(enum pgseek_code code);
const char *pgseek_code_meaning(enum pgseek_code code);

/* Why a tagged statement is not rewritten. The table in reason.h feeds names, texts, documents, metrics and tests. */
enum pgseek_reason {
#define PGSEEK_REASON(id, name, why, hint) PGSEEK_REASON_##id,
#include "reason.def"
#undef PGSEEK_REASON
    PGSEEK_REASON_COUNT
};

const char *pgseek_reason_name(enum pgseek_reason reason); /* "no_order": stable, for metrics and status */
const char *pgseek_reason_why(enum pgseek_reason reason);  /* one sentence for a DBA */
const char *pgseek_reason_hint(enum pgseek_reason reason); /* what to do about it; may be "" */

/* ---- options: what a tag, a variable and a rule can say -------------------------------------------------------- */

enum pgseek_option {
    PGSEEK_OPT_CURSOR,
    PGSEEK_OPT_PAGE,
    PGSEEK_OPT_KEY,
    PGSEEK_OPT_TOTAL,
    PGSEEK_OPT_MODE,
    PGSEEK_OPT_STRICT,
    PGSEEK_OPT_DELIVER,
    PGSEEK_OPT_WALK,
    PGSEEK_OPT_TAIL,
    PGSEEK_OPT_PAGINATE, /* a session variable only */
    PGSEEK_OPT_COUNT
};

enum pgseek_cursor_kind { PGSEEK_CURSOR_NONE, PGSEEK_CURSOR_TEXT, PGSEEK_CURSOR_PARAM };
enum pgseek_page { PGSEEK_PAGE_FIRST, PGSEEK_PAGE_LAST };
enum pgseek_total { PGSEEK_TOTAL_NONE, PGSEEK_TOTAL_ESTIMATE, PGSEEK_TOTAL_EXACT };
enum pgseek_mode { PGSEEK_MODE_REWRITE, PGSEEK_MODE_VERIFY, PGSEEK_MODE_OBSERVE, PGSEEK_MODE_OFF };
enum pgseek_deliver { PGSEEK_DELIVER_STATUS = 1, PGSEEK_DELIVER_NOTICE = 2, PGSEEK_DELIVER_COLUMNS = 4 };

/* Decoded options. All-zero with deliver = PGSEEK_DELIVER_STATUS are the defaults (pgseek_settings_init). The text
 * pointers are borrowed from whoever gave the value (NUL-terminated copies held by the tag or the variable store). */
struct pgseek_settings {
    uint32_t given; /* bit (1u << enum pgseek_option) for each option that was given */
    enum pgseek_cursor_kind cursor_kind;
    const char *cursor; /* CURSOR_TEXT: the token, never empty (an empty one is CURSOR_NONE) */
    int cursor_param;   /* CURSOR_PARAM: n of $n, from 1 */
    enum pgseek_page page;
    const char *key; /* column list as written, or NULL */
    enum pgseek_total total;
    enum pgseek_mode mode;
    bool strict;
    unsigned deliver; /* bits of enum pgseek_deliver */
    const char *walk; /* or NULL */
    bool tail;
    bool paginate;
};

void pgseek_settings_init(struct pgseek_settings *settings);

/* Looks an option's name up (any case). False when there is none of that name. */
bool pgseek_option_find(const char *name, size_t len, enum pgseek_option *option);
const char *pgseek_option_name(enum pgseek_option option);
const char *pgseek_option_help(enum pgseek_option option); /* one line for the reference */

/* Decodes one value and stores it; false with PS000 in *error when the value does not fit the option. `value` must
 * live as long as the settings do. For the cursor, `$n` and NULL have their meaning only when may_param (the value
 * stood without quotes in a comment); else they are text. */
bool pgseek_settings_put(struct pgseek_settings *settings, enum pgseek_option option, const char *value, bool may_param,
                         struct pgseek_error *error) PGSEEK_MUST_USE;

/* Copies from `over` what it was given on top of *settings: a comment over a variable over a default. */
void pgseek_settings_overlay(struct pgseek_settings *settings, const struct pgseek_settings *over);

/* ---- looking at texts without parsing them ---------------------------------------------------------------------- */

/* Whether "pgseek" stands anywhere in the text, in any case. Cheap; a false answer is final. */
bool pgseek_mentions(const char *sql, size_t len);
/* The same for the word EXECUTE. */
bool pgseek_mentions_execute(const char *sql, size_t len);

/* Whether the text may be a set_config() or current_setting() call whose variable name is a parameter. Cheap. */
bool pgseek_may_be_config_call(const char *sql, size_t len);

/* The first word of a text, after blanks and comments, from a short list. Cheap: no scan, no allocation. */
enum pgseek_word {
    PGSEEK_WORD_OTHER,
    PGSEEK_WORD_BEGIN,
    PGSEEK_WORD_START,
    PGSEEK_WORD_COMMIT,
    PGSEEK_WORD_END,
    PGSEEK_WORD_ROLLBACK,
    PGSEEK_WORD_ABORT,
    PGSEEK_WORD_SAVEPOINT,
    PGSEEK_WORD_RELEASE,
    PGSEEK_WORD_PREPARE,
    PGSEEK_WORD_EXECUTE,
    PGSEEK_WORD_DEALLOCATE,
    PGSEEK_WORD_DISCARD,
    PGSEEK_WORD_SET,
    PGSEEK_WORD_RESET,
    PGSEEK_WORD_SHOW,
    PGSEEK_WORD_FETCH,
    PGSEEK_WORD_MOVE,
    PGSEEK_WORD_CLOSE,
    PGSEEK_WORD_CALL,
    PGSEEK_WORD_DO,
    PGSEEK_WORD_EXPLAIN,
    PGSEEK_WORD_CREATE,
    PGSEEK_WORD_DECLARE,
    PGSEEK_WORD_SELECT,
    PGSEEK_WORD_COUNT
};
enum pgseek_word pgseek_first_word(const char *sql, size_t len);

/* What a statement of the list above does to the session: transaction control and names. Uses the lexer only. */
enum pgseek_command_kind {
    PGSEEK_CMD_OTHER,
    PGSEEK_CMD_BEGIN,       /* BEGIN, START TRANSACTION */
    PGSEEK_CMD_COMMIT,      /* COMMIT, END */
    PGSEEK_CMD_ROLLBACK,    /* ROLLBACK, ABORT */
    PGSEEK_CMD_SAVEPOINT,   /* name */
    PGSEEK_CMD_ROLLBACK_TO, /* name */
    PGSEEK_CMD_RELEASE,     /* name */
    PGSEEK_CMD_PREPARE_TRANSACTION,
    PGSEEK_CMD_COMMIT_PREPARED, /* COMMIT/ROLLBACK PREPARED: touches no value of ours */
    PGSEEK_CMD_PREPARE,         /* name */
    PGSEEK_CMD_EXECUTE,         /* name (of EXPLAIN [ANALYZE ...] EXECUTE and CREATE TABLE AS EXECUTE too) */
    PGSEEK_CMD_DEALLOCATE,      /* name */
    PGSEEK_CMD_DEALLOCATE_ALL,
    PGSEEK_CMD_DISCARD_ALL,
    PGSEEK_CMD_SET,   /* SET of anything that is not ours */
    PGSEEK_CMD_RESET, /* RESET of one setting that is not ours */
    PGSEEK_CMD_RESET_ALL,
    PGSEEK_CMD_FETCH, /* name of the cursor; MOVE too */
    PGSEEK_CMD_CLOSE, /* name */
    PGSEEK_CMD_CLOSE_ALL
};
struct pgseek_command {
    enum pgseek_command_kind kind;
    bool and_chain; /* COMMIT/ROLLBACK AND CHAIN */
    bool several;   /* more than one non-empty statement in the text; kind is the first one's */
    bool into;      /* EXECUTE: its rows make a table */
    char name[64];  /* folded as the server folds it, cut to 63 bytes; "" where there is none */
};
void pgseek_command_read(const char *sql, size_t len, bool standard_strings, struct pgseek_command *command);
/* The next EXECUTE of a text of any number of statements; *at is where to go on, 0 at first. False: no more. */
bool pgseek_command_next_execute(const char *sql, size_t len, bool standard_strings, size_t *at,
                                 struct pgseek_command *command);

/* ---- statements around a statement --------------------------------------------------------------------------------- */

enum pgseek_frame_kind {
    PGSEEK_FRAME_NONE,    /* the text is the statement itself */
    PGSEEK_FRAME_EXPLAIN, /* EXPLAIN [(options)] [ANALYZE] [VERBOSE] */
    PGSEEK_FRAME_DECLARE, /* DECLARE name CURSOR ... FOR */
    PGSEEK_FRAME_PREPARE  /* PREPARE name [(types)] AS */
};
struct pgseek_frame {
    enum pgseek_frame_kind kind;
    size_t inner;  /* where the statement inside begins, in bytes */
    bool executes; /* EXPLAIN: the statement inside is EXECUTE */
    int types;     /* PREPARE: how many types are listed */
    char name[64]; /* DECLARE, PREPARE: folded and cut as the server does it */
};
/* Uses words only: no scan, no allocation, whatever the length. */
void pgseek_frame_read(const char *sql, size_t len, struct pgseek_frame *frame);
/* The highest n of a $n in the text; 0: none. */
int pgseek_highest_param(const char *sql, size_t len);

/* ---- tags ------------------------------------------------------------------------------------------------------- */

enum pgseek_found {
    PGSEEK_FOUND_NONE, /* nothing of ours */
    PGSEEK_FOUND_SOME,
    PGSEEK_FOUND_BAD /* *error says what is wrong: PS000 */
};

/* A tag, with copies of its texts. */
struct pgseek_tag {
    struct pgseek_settings settings;
    bool several; /* the text has more than one non-empty statement */
    size_t start; /* where the comment that it was found in begins ... */
    size_t end;   /* ... and one behind it */
    char *texts;  /* owned storage behind the settings' pointers */
};

/* Finds the one tag of a text (block and line comments, sqlcommenter), however long the text is: a cursor in a text
 * that is too large to be parsed must be refused, not overlooked. NONE also when a comment or literal is not closed:
 * the server will say so. Two tags, unknown options and bad values are BAD. `standard_strings` is
 * standard_conforming_strings: when it is off a literal ends elsewhere, and a comment may begin elsewhere. */
enum pgseek_found pgseek_tag_read(const char *sql, size_t len, bool standard_strings, struct pgseek_tag *tag,
                                  struct pgseek_error *error);
void pgseek_tag_fini(struct pgseek_tag *tag);

/* ---- session variables ------------------------------------------------------------------------------------------ */

enum pgseek_var_verb {
    PGSEEK_VAR_SET,            /* SET [SESSION] pgseek.x; TO DEFAULT leaves the value absent */
    PGSEEK_VAR_SET_LOCAL,      /* SET LOCAL pgseek.x; the same */
    PGSEEK_VAR_RESET,          /* RESET pgseek.x */
    PGSEEK_VAR_SHOW,           /* SHOW pgseek.x */
    PGSEEK_VAR_SET_CONFIG,     /* SELECT set_config(name, value, is_local) */
    PGSEEK_VAR_CURRENT_SETTING /* SELECT current_setting(name [, missing_ok]) */
};

/* An argument: a literal, a parameter of the statement, or absent. */
struct pgseek_arg {
    enum { PGSEEK_ARG_ABSENT, PGSEEK_ARG_TEXT, PGSEEK_ARG_NULL, PGSEEK_ARG_PARAM } kind;
    char *text; /* ARG_TEXT, owned */
    int param;  /* ARG_PARAM: n of $n */
};

struct pgseek_variable {
    enum pgseek_var_verb verb;
    struct pgseek_arg name;  /* what follows "pgseek." in lower case, e.g. "cursor"; for the two functions it may be a
                              * PARAM, whose value is then the whole name, e.g. "pgseek.cursor" */
    struct pgseek_arg value; /* SET, SET_CONFIG */
    struct pgseek_arg local; /* SET_CONFIG: 't'/'f' text or parameter; CURRENT_SETTING: missing_ok */
    char output_name[64];    /* the two functions: the name of the one output column */
    int param_count;         /* highest $n in the text */
};

/* Recognises a statement that is wholly about one of our variables. NONE: nothing of ours. BAD (PS000): a variable of
 * ours inside a larger statement or beside another statement, an unknown name, a malformed value. `SET` of several
 * values, FROM CURRENT and the like are BAD too. `SELECT ... LIKE '%pgseek.cursor%'` is
 * NONE: decided on tokens. So are `FROM pgseek.pages` and ALTER ROLE ... SET pgseek.x: only SET, RESET and SHOW at the
 * start of a statement, and a literal name in a call of the two functions, speak of a variable. */
enum pgseek_found pgseek_variable_read(const char *sql, size_t len, struct pgseek_variable *variable,
                                       struct pgseek_error *error);
void pgseek_variable_fini(struct pgseek_variable *variable);

/* ---- the statement, understood without a catalog ----------------------------------------------------------------- */

struct pgseek_query; /* immutable once made */

/* What the statement does with its page. */
enum pgseek_verb {
    PGSEEK_VERB_SELECT,
    PGSEEK_VERB_EXPLAIN, /* EXPLAIN of a page: the rewritten one is explained */
    PGSEEK_VERB_DECLARE  /* DECLARE CURSOR for a page: only the predicate can be added */
};

/* How the text is to be read. */
struct pgseek_reading {
    bool standard_strings;    /* standard_conforming_strings = on; off gives reason `strings` */
    bool ascii_safe_encoding; /* the client_encoding has no ASCII trail bytes, and non-ASCII text may be parsed */
    bool has_ascii_trails; /* a character may end in an ASCII byte, such as a backslash: what the catalog says is only
                            * taken in ASCII, since quoting goes by bytes */
    int cursor_param;      /* n of the $n that carries the cursor: its value is no part of the contract; 0: none */
    enum pgseek_verb verb; /* what the statement around the text, if any, does with its page */
};

/* Parses and classifies one statement. NULL with *reason set when it cannot be a page for a reason that no catalog
 * can change (`syntax`, `no_order`, `too_large`, ...); NULL with PGSEEK_REASON_NOMEM when memory ran out. */
struct pgseek_query *pgseek_query_new(const char *sql, size_t len, const struct pgseek_reading *reading,
                                      enum pgseek_reason *reason);
void pgseek_query_free(struct pgseek_query *query);
/* About how much memory it holds: for whoever keeps many. The same for plans and shapes below. */
size_t pgseek_query_bytes(const struct pgseek_query *query);

/* EXECUTE in SQL, alone or behind EXPLAIN: its arguments. NULL with *reason set when the text is not understood. */
struct pgseek_execute;
struct pgseek_execute *pgseek_execute_new(const char *sql, size_t len, const struct pgseek_reading *reading,
                                          enum pgseek_reason *reason);
void pgseek_execute_free(struct pgseek_execute *execute);
size_t pgseek_execute_count(const struct pgseek_execute *execute);
enum pgseek_argument {
    PGSEEK_ARGUMENT_TEXT, /* *text is the value in text format */
    PGSEEK_ARGUMENT_NULL,
    PGSEEK_ARGUMENT_UNKNOWN, /* no literal, or one whose conversion only the server knows */
    PGSEEK_ARGUMENT_BAD      /* the server will refuse it */
};
/* The i-th argument, from 0, as a value of that type. The text lives as long as the object. */
enum pgseek_argument pgseek_execute_argument(const struct pgseek_execute *execute, size_t i, uint32_t type_oid,
                                             const char **text);

/* The relations whose facts are needed, for the facts statement: schema is NULL when none was written. */
size_t pgseek_query_relation_count(const struct pgseek_query *query);
const char *pgseek_query_relation_schema(const struct pgseek_query *query, size_t i);
const char *pgseek_query_relation_name(const struct pgseek_query *query, size_t i);

/* The functions whose volatility is needed (every call in the statement, casts and operators by their own rules). */
size_t pgseek_query_function_count(const struct pgseek_query *query);
const char *pgseek_query_function_name(const struct pgseek_query *query, size_t i); /* without schema */

enum pgseek_verb pgseek_query_verb(const struct pgseek_query *query);

bool pgseek_query_has_ascii_trails(const struct pgseek_query *query); /* pgseek_reading.has_ascii_trails */
/* Highest $n in the text. */
int pgseek_query_param_count(const struct pgseek_query *query);
/* Whether $n stands anywhere in the text. */
bool pgseek_query_uses_param(const struct pgseek_query *query, int n);

/* LIMIT and OFFSET of the page level. A value is evaluated with the client's parameters. */
enum pgseek_number_kind {
    PGSEEK_NUMBER_ABSENT,  /* no clause */
    PGSEEK_NUMBER_NULL,    /* NULL or ALL */
    PGSEEK_NUMBER_LITERAL, /* constant arithmetic: known without parameters */
    PGSEEK_NUMBER_PARAMS   /* arithmetic over parameters */
};
enum pgseek_clause { PGSEEK_LIMIT, PGSEEK_OFFSET };

/* A bound parameter as the client sent it: raw bytes, format code 0 (text) or 1 (binary), declared type. len is -1
 * for NULL. */
struct pgseek_value {
    uint32_t type_oid;
    int format;
    int32_t len;
    const uint8_t *data;
};

enum pgseek_eval {
    PGSEEK_EVAL_NUMBER, /* *out holds it; may be negative */
    PGSEEK_EVAL_NONE,   /* NULL, ALL or absent: no limit, no offset */
    PGSEEK_EVAL_FAILED  /* cannot be evaluated exactly: bind the original */
};
enum pgseek_number_kind pgseek_query_number_kind(const struct pgseek_query *query, enum pgseek_clause clause);
enum pgseek_eval pgseek_query_number(const struct pgseek_query *query, enum pgseek_clause clause,
                                     const struct pgseek_value *params, size_t nparams, int64_t *out);

/* ---- facts: what the catalog says ---------------------------------------------------------------------------------- */

/* The facts statement: $1 text[] schemas and $2 text[] names of relations, $3 text[] function names, $4 text[] oids of
 * types, $5 text[] schemas and $6 text[] names of collations; every result column is text. Qualified to the last
 * operator; it does not raise. */
extern const char pgseek_facts_sql[];
/* The session's context: one row of text columns, in the order of enum pgseek_context. */
extern const char pgseek_context_sql[];
enum pgseek_context {
    PGSEEK_CTX_SEARCH_PATH,
    PGSEEK_CTX_USER, /* current_user: the role in force */
    PGSEEK_CTX_DATABASE,
    PGSEEK_CTX_STRINGS,  /* standard_conforming_strings */
    PGSEEK_CTX_ENCODING, /* client_encoding */
    PGSEEK_CTX_TEMP,     /* the session's temporary schema, whose tables come before all others; 0: none yet */
    PGSEEK_CTX_LOCALE,   /* TimeZone, DateStyle, IntervalStyle, lc_*: what stable expressions depend on, in one text */
    PGSEEK_CTX_COUNT
};

/* The server's own description of the original statement (Describe S). */
struct pgseek_column {
    const char *name;
    uint32_t table_oid;
    int16_t attnum;
    uint32_t type_oid;
    int32_t typmod;
};
struct pgseek_description {
    const uint32_t *param_oids;
    size_t nparams;
    const struct pgseek_column *columns;
    size_t ncolumns;
};

/* What is known of the catalog, and the question: what is wanted beside it. A question is answered in rounds: the facts
 * statement with the lists of the question, and Describe of the probe, if there is one; then the plan is made again. */
struct pgseek_facts;
struct pgseek_facts *pgseek_facts_new(const struct pgseek_query *query); /* asks for what the text mentions */
void pgseek_facts_free(struct pgseek_facts *facts);

enum pgseek_asked {
    PGSEEK_ASKED_SCHEMA,   /* of the relation of the same place; NULL: none was written */
    PGSEEK_ASKED_RELATION, /* the lists are the arrays of the facts statement, in its order */
    PGSEEK_ASKED_FUNCTION,
    PGSEEK_ASKED_TYPE,
    PGSEEK_ASKED_COLLATION_SCHEMA,
    PGSEEK_ASKED_COLLATION,
    PGSEEK_ASKED_LISTS
};
size_t pgseek_facts_asked_count(const struct pgseek_facts *facts, enum pgseek_asked list);
const char *pgseek_facts_asked(const struct pgseek_facts *facts, enum pgseek_asked list, size_t i);
/* A text to be described with the original's parameter types; NULL: none. */
const char *pgseek_facts_probe(const struct pgseek_facts *facts, size_t *len);

/* One result row; columns are text, NULL pointers for NULL. False when it is not a row of the facts statement. */
bool pgseek_facts_row(struct pgseek_facts *facts, const char *const *columns, size_t ncolumns) PGSEEK_MUST_USE;
#define PGSEEK_FACTS_COLUMNS 6
/* The probe's description; copied. False when out of memory. */
bool pgseek_facts_described(struct pgseek_facts *facts, const struct pgseek_description *description) PGSEEK_MUST_USE;
/* All answers of this round have come: what was asked for and did not come does not exist. */
void pgseek_facts_answered(struct pgseek_facts *facts);
/* A bound for rounds: views of views of views. */
#define PGSEEK_FACTS_MAX_ROUNDS 8

/* ---- the plan -------------------------------------------------------------------------------------------------------- */

struct pgseek_plan; /* immutable; owns all that it points at, the query's text included */

struct pgseek_key {
    uint32_t type_oid;     /* base type: to be declared for the boundary's parameter */
    const char *type_name; /* schema.name, for the contract */
    bool descending;
    bool nulls_first;
    bool nullable;
    bool is_text;         /* travels in client_encoding */
    const char *expr;     /* as written, for explain and advice */
    const char *column;   /* which column it is; "" for an expression of the client's: that is in the contract */
    const char *identity; /* collation, its version and enum labels: what makes an order another order */
};

/* Makes a plan, or NULL and *reason. PGSEEK_REASON_MORE: the facts have a question now; answer it and call again. With
 * any other reason the statement is no page. `key_option` is the tag's key= or NULL. `description` may be NULL only for
 * explain without a database, where names then resolve by the select list alone. */
struct pgseek_plan *pgseek_plan_new(const struct pgseek_query *query, struct pgseek_facts *facts,
                                    const struct pgseek_description *description, const char *key_option,
                                    enum pgseek_reason *reason);
void pgseek_plan_free(struct pgseek_plan *plan);
size_t pgseek_plan_bytes(const struct pgseek_plan *plan);

size_t pgseek_plan_key_count(const struct pgseek_plan *plan);
const struct pgseek_key *pgseek_plan_key(const struct pgseek_plan *plan, size_t i);
bool pgseek_plan_is_locking(const struct pgseek_plan *plan); /* FOR UPDATE/SHARE: no look-ahead row */
/* Whether a key is a stable expression, so that TimeZone and its like belong to the contract (PGSEEK_CTX_LOCALE). */
bool pgseek_plan_depends_on_settings(const struct pgseek_plan *plan);

/* What the cursor is bound to: a canonical byte string of the statement's tree with the page's LIMIT and OFFSET cleared
 * and parameters renumbered, the resolved relation names included. */
const uint8_t *pgseek_plan_contract(const struct pgseek_plan *plan, size_t *len);
/* Whether the statement and the names in its contract are ASCII: else they mean what the client_encoding makes of them.
 */
bool pgseek_plan_is_ascii(const struct pgseek_plan *plan);
/* The client's parameters that belong to the contract, in the order of their first use: n of $n. */
size_t pgseek_plan_filter_count(const struct pgseek_plan *plan);
int pgseek_plan_filter_param(const struct pgseek_plan *plan, size_t i);

/* ---- shapes: the texts that are sent ------------------------------------------------------------------------------------ */

enum pgseek_seek {
    PGSEEK_SEEK_FIRST,  /* from the start, no boundary */
    PGSEEK_SEEK_AFTER,  /* after the boundary */
    PGSEEK_SEEK_BEFORE, /* before the boundary, handed back in display order, look-ahead row last */
    PGSEEK_SEEK_LAST    /* the last rows, handed back in display order */
};

struct pgseek_shape_key {
    enum pgseek_seek seek;
    uint32_t null_mask; /* bit i: boundary value i is NULL; 0 without a boundary */
    bool look_ahead;    /* fetch one row more than LIMIT */
    bool keep_offset;   /* SEEK_FIRST only: keep the statement's OFFSET */
};

/* What stands behind each $n of a shape, from $1. Client parameters keep their numbers. */
struct pgseek_slot {
    enum {
        PGSEEK_SLOT_CLIENT, /* the client's parameter of that number, or NULL where it has vanished from the text */
        PGSEEK_SLOT_KEY,    /* boundary value `index` */
        PGSEEK_SLOT_FETCH,  /* the rows to fetch: LIMIT plus the look-ahead row; int8, NULL for no limit */
        PGSEEK_SLOT_LIMIT   /* the page's own LIMIT; int8 */
    } kind;
    uint32_t type_oid; /* to declare in Parse; for SLOT_CLIENT the type that the server reported */
    uint32_t index;
};

/* How the rows of a shape stand to those that the client is to see. */
enum pgseek_rows {
    PGSEEK_ROWS_PAGE,  /* each row carries its own keys in its last columns */
    PGSEEK_ROWS_INNER, /* the page is a level inside: the last columns, the same in every row, are a mark (NULL in a row
                        * that is not the client's; there is at least one row), the page's own number of rows with the
                        * look-ahead (int8), the keys of its first row and those of its last (in display order) */
    PGSEEK_ROWS_PLAIN  /* EXPLAIN, DECLARE: rows pass as they are, no cursors come of them */
};

struct pgseek_shape {
    enum pgseek_rows rows;
    char *sql; /* NUL-terminated */
    size_t len;
    struct pgseek_slot *slots;
    size_t nslots;
    size_t nhidden; /* the last nhidden columns of a row are ours and are to be stripped, all asked for in binary ... */
    size_t nkeys; /* ... ROWS_PAGE: the first nkeys of them are the keys; what follows is of no use. ROWS_INNER: nhidden
                   * is 2 + 2 * nkeys. ROWS_PLAIN: 0 hidden ones; nkeys is the number of boundary values */
    bool own_describe; /* names, table oids or attribute numbers would differ: those of the original are to be shown */
};

struct pgseek_shape *pgseek_shape_new(const struct pgseek_plan *plan, const struct pgseek_shape_key *key,
                                      enum pgseek_reason *reason);
void pgseek_shape_free(struct pgseek_shape *shape);
size_t pgseek_shape_bytes(const struct pgseek_shape *shape);

/* Where a character position of the shape's text (from 1, in characters, field P of an error) stands in the client's
 * text; 0 when it points into what pgseek wrote. */
int pgseek_shape_position(const struct pgseek_plan *plan, const struct pgseek_shape *shape, int position);

/* The guard of a page: `SELECT 1 / CASE ... END, filter digest, scope digest` (wire.md 4).
 * Its parameters are the client's own, same numbers and types (those that are not of the filter are declared and
 * unused), then: expected search_path text, expected user text, expected client_encoding text, expected locale text,
 * expected filter digest bytea (NULL: do not compare), expected scope digest bytea (NULL: do not compare). Failures by
 * SQLSTATE: 22012 facts, names, search_path, user or encoding are not as planned; 2201F the filter values differ; 2201E
 * the scope differs. Result columns 2 and 3 (bytea, the first 16 bytes of SHA-256): the digests of now. `scope` lists
 * settings by name. NULL when memory ran out. The text is the caller's to free. */
enum pgseek_guard_param {
    PGSEEK_GUARD_SEARCH_PATH,
    PGSEEK_GUARD_USER,
    PGSEEK_GUARD_ENCODING,
    PGSEEK_GUARD_LOCALE, /* text, as in the context: compared when the plan depends on settings */
    PGSEEK_GUARD_FILTER,
    PGSEEK_GUARD_SCOPE,
    PGSEEK_GUARD_PARAMS
};
char *pgseek_guard_new(const struct pgseek_plan *plan, const char *const *scope, size_t nscope);

/* ---- totals --------------------------------------------------------------------------------------------------------- */

/* The statement that counts the rows of all pages, or that has the planner estimate them. Its parameters are the
 * client's own, same numbers and types. NULL when memory ran out; the text is the caller's to free. */
char *pgseek_total_new(const struct pgseek_query *query, bool estimate);
/* Finds the number in the answer's first column: its digits, or a length of 0. */
size_t pgseek_total_read(const char *answer, size_t len, bool estimate, const char **number);

/* Human-readable key specification, e.g. `created_at DESC, id DESC (tie-breaker: posts_pkey)`. Lives with the plan. */
const char *pgseek_plan_summary(const struct pgseek_plan *plan);

#endif
