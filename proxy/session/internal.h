/* internal.h - what the files of this room share: the session's own struct and the verbs on it.
 *
 * Nothing outside session/ may include it. A verb is documented where it is declared; who may change a field is said
 * beside the field. */
#ifndef SESSION_INTERNAL_H
#define SESSION_INTERNAL_H

#include "../admin/conf.h"
#include "../admin/log.h"
#include "../admin/stats.h"
#include "../page/catalog.h"
#include "../page/page.h"
#include "../protocol/startup.h"
#include "../protocol/wire.h"
#include "cancel.h"
#include "census.h"
#include "kept.h"
#include "names.h"
#include "pending.h"
#include "session.h"
#include "variables.h"

#define SECURE_TEXT 72

/* ---- states ---- */

/* In the order in which a log-in passes them: from STATE_PROVE on there is a server. */
enum state {
    STATE_STARTUP, /* waiting for the first packet that asks for a session */
    STATE_SECURE,  /* the client's TLS handshake is under way */
    STATE_LOOK_UP, /* a client's secret is asked for */
    STATE_VERIFY,  /* the client proves its password to us */
    STATE_CONNECT, /* the server link is being made */
    STATE_PROVE,   /* we answer the server with the client's key, until it says AuthenticationOk */
    STATE_LOGIN,   /* relaying until the first ReadyForQuery */
    STATE_UP,      /* in conversation */
    STATE_CANCEL,  /* a cancel request was sent; the server will close */
    STATE_CLOSING  /* nothing more is read; what is in the sinks is the last */
};

/* ---- objects behind names ---- */

/* A prepared statement that matters: tagged, about a variable, or on the list of commands. */
struct statement {
    struct object object;
    enum { STATEMENT_TAGGED, STATEMENT_VARIABLE, STATEMENT_COMMAND } kind;
    struct pgseek_tag tag;           /* TAGGED; COMMAND: of an EXECUTE */
    struct pgseek_variable variable; /* VARIABLE */
    struct pgseek_command command;   /* COMMAND */
    struct statement *prepares;      /* COMMAND: the tagged statement that a PREPARE makes; counted */
    char *sql;                       /* TAGGED: the page's own text; COMMAND: of an EXECUTE */
    size_t sql_len;
    size_t token_place; /* of a Query: characters in front of a cursor that was cut out of it ... */
    size_t token_len;   /* ... and how long it was */
    char *prefix;       /* TAGGED: what stands in front of the page's text: EXPLAIN, DECLARE; NULL: nothing */
    enum pgseek_verb verb;
    uint64_t serial; /* not 0: prepared with types that only the server knows, so its plan is its own */
    bool is_tagged;  /* COMMAND: an EXECUTE with a tag of its own */
    uint32_t *oids;  /* the types that the client declared, lengthened for cursor=$n */
    size_t noids;
    uint64_t group;          /* the group it was parsed in */
    struct kept *kept;       /* TAGGED, named: what is prepared for it */
    struct planned *planned; /* TAGGED: the plan it had at its last page ... */
    uint64_t epoch;          /* ... under this context epoch */
};

/* A portal that matters. */
struct portal {
    struct object object;
    enum { PORTAL_PAGE, PORTAL_SHOW, PORTAL_SET, PORTAL_COMMAND } kind;
    struct page *page;             /* PAGE */
    bool spends_cursor;            /* PAGE: its cursor came from the variable */
    struct pgseek_command command; /* COMMAND */
    struct statement *prepares;    /* COMMAND: as the statement's; counted */
    enum pgseek_option option;     /* SET: option and value, NULL for RESET */
    char *value;
    bool local;
};

/* ---- what hangs on an expected reply ---- */

/* One change that was made when a message was forwarded, and what was there before. */
struct effect {
    struct effect *next; /* the change made before this one */
    enum { EFFECT_STATEMENT, EFFECT_PORTAL, EFFECT_VARIABLES } kind;
    struct object *object;
    struct variables *variables;
    size_t name_len;
    uint8_t name[];
};

struct follow {
    struct effect *effects;           /* newest first */
    struct portal *portal;            /* EXECUTE, DESCRIBE: the portal it runs on */
    struct page *page;                /* what the replies go through */
    struct kept *kept;                /* PARSE: what becomes ready; BIND: what it was bound from */
    struct pgseek_error *refusal;     /* REFUSE */
    enum pgseek_command_kind command; /* EXECUTE, QUERY: what a CommandComplete is checked against */
    bool commit_chain;
    bool hides_param; /* DESCRIBE of a stand-in: one parameter of ours */
    bool is_show;     /* EXECUTE of a stand-in: the tag is SHOW */
};

/* ---- side queries and the message that waits for them ---- */

enum inquiry_state {
    INQUIRY_IDLE,
    INQUIRY_RUNNING,
    INQUIRY_ANSWERED, /* the catalog holds the answers */
    INQUIRY_REFUSED,  /* the server's error was the answer to the client's message: it is dropped */
    INQUIRY_FAILED    /* the server refused: nobody knows the facts */
};

struct inquiry {
    enum inquiry_state state;
    bool own_sync;              /* closed with a Sync of ours: its ReadyForQuery is swallowed */
    bool simple;                /* a Query waits, not a Bind */
    bool has_savepoint;         /* a text that may be refused is described inside the client's block */
    bool rolls_back;            /* it was refused: back to the savepoint */
    unsigned rounds;            /* so far */
    size_t prefix_len;          /* the text that is described is a part of the client's: what stands before it ... */
    size_t token_place;         /* ... and characters before a cursor that was cut out ... */
    size_t token_len;           /* ... and its length */
    struct pgseek_query *query; /* what the facts are for; owned */
    struct catalog catalog;
};

/* What is needed to run a page again when its guard finds the facts changed. */
struct retry {
    bool possible;   /* nothing else is in the group, and no block is open */
    bool bound;      /* the client has had its BindComplete */
    bool again;      /* this is the second attempt */
    bool closing;    /* waiting for the ReadyForQuery of the failed group */
    bool synced;     /* the client's Sync is among the kept messages */
    struct buf kept; /* the client's messages from the page's Bind or Query on */
};
#define RETRY_MAX_KEPT 65536

/* The total of the page in hand. */
#define TOTAL_MAX_DIGITS 20
struct total {
    enum {
        TOTAL_IDLE,
        TOTAL_RUNNING,
        TOTAL_ANSWERED, /* value holds it, or is empty */
        TOTAL_REFUSED   /* the client's own message in front of it failed: the one in hand is dropped */
    } state;
    bool is_estimate;
    bool is_lost;
    struct buf value;
};

/* What only sessions that meet pgseek need. */
struct tagging {
    char reserved[32];      /* the name of our statements and portals on the server */
    struct context context; /* as the server said ... */
    bool context_valid;     /* ... and nothing since may have changed it */
    bool context_touched;   /* a setting was changed in this transaction: its end changes it back, maybe */
    uint64_t epoch;         /* counts contexts */
    bool asked_again;       /* for the message in hand: its cursor did not fit what was known */
    struct inquiry inquiry;
    struct retry retry;
    struct total total;
    struct kept *kept; /* all of the session's */
    uint32_t kept_count;
    struct page_report results; /* of the last page, for SHOW */
    uint64_t pages;
    struct buf scratch;
};

/* ---- search.c ---- */

#define SEARCH_KEPT 8 /* a "pgseek" that is cut in two has at most six bytes on this side */

/* A statement that is too large to be looked at is searched for a tag as it passes. */
struct search {
    bool on;
    /* What has passed last, behind an opened comment's two bytes if only blanks follow it. */
    uint8_t tail[2 + SEARCH_KEPT];
    size_t len;
};

/* Looks through the next part, and over the seam. True when something in it looks like a tag: quotes are not known
 * here, so a literal can. */
bool search_finds_tag(struct search *search, struct span part) MUST_USE;

/* ---- one direction's framing ---- */

struct intake {
    struct buf partial; /* the start of a message that is needed whole */
    uint64_t skip;      /* bytes of a message that still pass by ... */
    bool skip_drops;    /* ... into nothing */
    struct search search;
};

struct session {
    struct session_env *env;
    struct conf *conf;
    const struct credentials *credentials; /* of the same snapshot; until STATE_UP */
    const struct conf_database *database;
    enum state state;      /* session_move() only */
    uint8_t status;        /* of the last ReadyForQuery: I, T or E */
    bool unsynced;         /* extended messages were forwarded since the last Sync */
    bool ran;              /* something was bound or run in this group */
    bool skip_to_sync;     /* the server discards up to a Sync that the client has not sent yet */
    bool drop_to_sync;     /* we discard up to it, since the server is not in that mode */
    bool copy_in;          /* the server reads CopyData: Sync and Flush are not answered */
    bool has_said_goodbye; /* the client has sent Terminate */
    bool opaque;           /* a replication connection: framed, never looked at */
    bool holding;          /* a message waits in `held` */
    bool wake;             /* what it waits for may have come */
    bool borrowed;         /* the bytes being read outlive the call */
    bool asked_ssl, asked_gss;
    bool may_tls;        /* the client's link can be encrypted */
    bool is_tls[2];      /* which links are */
    bool is_cancel;      /* a cancel request */
    bool is_welcome;     /* the server has said AuthenticationOk, and may ask for nothing more */
    bool watches_choice; /* relayed SCRAM over TLS on both links: what the client chooses decides whether it works */
    bool is_answered;    /* the server has said something, be it why it goes */
    bool may_redial;     /* the server's refusal may lead to a second try: nothing of the client's goes on before it is
                            known */
    uint8_t redial;      /* session_target.tls */
    bool strings_standard; /* ParameterStatus standard_conforming_strings */
    bool doubtful;         /* the count of ReadyForQuery to come is not certain: nothing is rewritten */
    bool returning;        /* a statement's name was changed in a group that may still fail */
    bool dropping;         /* DEALLOCATE ALL or DISCARD ALL may be unanswered */
    bool closes_unnamed;   /* a Query was answered here: the server still has an unnamed statement that it would take */
    int host_index;
    struct server_address server; /* where that host was reached, or is to be */
    uint64_t id;
    uint64_t group;    /* counts Syncs and Queries forwarded */
    uint32_t prepared; /* counts PREPAREs with types */
    struct intake in[2];
    struct pending_queue owed;
    struct names statements, portals;
    struct variables *variables;
    struct buf held;
    struct buf cancel_key;                      /* as the server gave it */
    struct census_entry *as_database, *as_user; /* where it is counted; NULL: not */
    struct buf startup;                         /* StartupMessage or CancelRequest to send once connected */
    struct channel *channel[2];                 /* of the encrypted links, until STATE_UP */
    struct login *login;                        /* SCRAM that ends here, until it is over; see authenticate.h */
    struct tagging *tagging;
    char encoding[24];       /* ParameterStatus client_encoding */
    struct address from, to; /* of the client's link */
    char peer[64];
    char user[64];
    char dbname[64];
};

/* What a handler says is to be done with the message it was given. */
enum action {
    ACTION_FORWARD, /* as it is */
    ACTION_RUN,     /* of a message that passes by: as it is, and so are those of its type that come right behind it */
    ACTION_DONE,    /* the handler has put what was needed into the sinks: nothing of the message goes on */
    ACTION_HOLD,    /* keep it and all that follows until something has come */
    ACTION_FAIL     /* the session has been ended */
};

/* ---- session.c ---- */
void session_move(struct session *session, enum state to);
/* Ends the session for a violation by one side: the client gets FATAL, the log one line. */
enum action session_violation(struct session *session, enum side side, const char *what);
enum action session_nomem(struct session *session);
void session_fatal(struct session *session, const char *sqlstate, const char *message, const char *hint);
/* The same, with another sentence for the log than for the client. */
void session_refuse(struct session *session, const char *sqlstate, const char *message, const char *hint,
                    const char *why);
/* Ends the session for a violation without a word: where an answer in clear text could not be told from an
 * attacker's, and where what came may not be PostgreSQL's protocol at all. */
void session_hang_up(struct session *session, const char *what);
/* Whether what the client sends now is not its turn: it is kept for later. */
bool session_makes_wait(const struct session *session);
struct buf *to_backend(struct session *session); /* a buffer to append messages to; sent_backend() when done */
void sent_backend(struct session *session);
struct buf *to_frontend(struct session *session);
void sent_frontend(struct session *session);
/* Passes bytes on as they are. */
void forward(struct session *session, enum side to, struct span bytes);
/* Asks for the replies to messages that no Sync has followed yet (with a Flush); the message in hand is then held. */
enum action hold_for_replies(struct session *session);
struct tagging *session_tagging(struct session *session); /* made at first use; NULL when out of memory */

/* ---- intake.c: bytes into messages ---- */
void intake_frontend(struct session *session, struct span bytes);
void intake_backend(struct session *session, struct span bytes);
void intake_resume(struct session *session); /* takes up held messages, when woken */

/* ---- frontend.c, backend.c, gate.c: one message each ---- */
/* What is asked about each message of one side. */
struct way {
    /* How many bytes of it must be there before it can be handled; 0: it passes by as it comes. */
    size_t (*needs)(struct session *session, uint8_t type, size_t total, struct span body_so_far);
    /* What is done with one that passes by. */
    enum action (*stream)(struct session *session, uint8_t type, size_t total, struct span body_so_far);
    /* One that was needed, and is there. */
    enum action (*message)(struct session *session, uint8_t type, struct span message);
};
extern const struct way frontend_way, backend_way;   /* in STATE_UP ... */
extern const struct way frontend_gate, backend_gate; /* ... and before it */
void gate_opens(struct session *session);            /* the server is ready: the log-in is over */

/* ---- error.c ---- */
enum action error_reply(struct session *session, struct pending *head, struct span message);
/* Whether an ErrorResponse is the last thing that the server says. */
bool error_is_fatal(struct span body);

/* ---- login.c ---- */
/* Counts the session under its database's and its user's name. False when there are too many: it has been refused. */
bool login_is_admitted(struct session *session) MUST_USE;
void login_packet(struct session *session, struct span packet, bool more_behind);

/* ---- secure.c: encryption of both links ---- */
/* SSLRequest and GSSENCRequest. */
void secure_asked(struct session *session, enum startup_kind kind, bool more_behind);
/* Whether the client's link is what client_tls_sslmode asks for; it has been refused where not. */
bool secure_admits(struct session *session, struct span user) MUST_USE;
/* What a link has become; NULL: in clear text. False when out of memory. */
bool secure_note(struct session *session, enum side side, const struct channel *channel) MUST_USE;
/* "TLSv1.3/TLS_AES_256_GCM_SHA384" or "no", for the log. */
const char *secure_text(const struct session *session, enum side side, char text[SECURE_TEXT]);
/* Whether the server may be asked once more, the other way round, if it refuses the log-in at once. */
bool secure_may_redial(const struct session *session);
/* The server's first message is a refusal: whether it is asked once more. The message is not for the client then. */
bool secure_redials(struct session *session, struct span message);
/* The server's first message is there and there will be no second try. */
void secure_settled(struct session *session);
void secure_forget(struct session *session); /* the channels: the log-in is over */

/* ---- journal.c: changes that can be undone ---- */
struct pending *expect(struct session *session, enum pending_kind kind, enum pending_role role); /* NULL: nomem */
struct follow *follow_of(struct pending *entry); /* made at first use; NULL when out of memory */
void follow_free(struct follow *follow);
/* Changes a name or the variables on behalf of an entry. The reference of object/state passes. False when out of
 * memory. */
bool change_statement(struct session *session, struct pending *entry, struct span name,
                      struct statement *statement) MUST_USE;
bool change_portal(struct session *session, struct pending *entry, struct span name, struct portal *portal) MUST_USE;
bool change_variables(struct session *session, struct pending *entry, struct variables *next) MUST_USE;
/* Takes the changes of an entry back; entries from `behind` on stay, and what they have changed stays changed. */
void undo(struct session *session, struct follow *follow, uint32_t behind);
/* Whether a statement's name may get back what it had, because a group that changed it has not been answered. */
bool name_may_return(const struct session *session, struct span name);
/* Whether all names are about to go, at a moment that only the server's tag tells. */
bool names_will_go(struct session *session);
/* Then a name that is given now would go with the others: the tag is asked for, and waited for. */
enum action wait_for_names(struct session *session);
/* Whether a change of the variables must wait for the groups in front of it: states build on each other. */
bool must_follow(const struct session *session);
/* Whether an entry behind the head has changed the variables. */
bool variables_change_behind(const struct session *session);
void pop_head(struct session *session); /* keeps its changes */
/* The server said ErrorResponse to the head, inside a group: all up to the next Sync is undone and dropped. */
void fail_group(struct session *session);

/* ---- objects.c ---- */
struct statement *statement_new(void);
struct portal *portal_new(void);
/* Keeps the types that a Parse declares, zero up to `at_least`. False when out of memory. */
bool statement_keep_oids(struct statement *statement, const struct wire_parse *parse, size_t at_least) MUST_USE;

/* ---- command.c: transaction control and names by the first word ---- */
/* Applies what a command does when it is forwarded; `prepares` is what a tagged PREPARE makes, or NULL. False when out
 * of memory. */
bool command_apply(struct session *session, struct pending *entry, const struct pgseek_command *command,
                   struct statement *prepares) MUST_USE;
/* Whether a command must not run as it is (EXECUTE of what is no page with a cursor, FETCH from a page's portal);
 * *error says why. */
bool command_is_refused(struct session *session, const struct pgseek_command *command, struct pgseek_error *error);
/* Whether an EXECUTE runs something with a tag, as far as the names tell now. */
bool command_executes_tagged(const struct session *session, const struct pgseek_command *command);
/* Whether a COMMIT of this group is unanswered: it may turn out to have been a ROLLBACK. */
bool commits_are_owed(const struct session *session);
/* The server's tag tells more than the words did (COMMIT that was a ROLLBACK, DEALLOCATE ALL in a function). */
enum action command_completed(struct session *session, struct pending *entry, const char *tag);

/* ---- setting.c: statements about our variables ---- */
enum action setting_query(struct session *session, const struct pgseek_variable *variable);
enum action setting_parse(struct session *session, struct pgseek_variable *variable, const struct wire_parse *parse,
                          struct span message);
enum action setting_bind(struct session *session, struct statement *statement, const struct wire_bind *bind,
                         struct span message);
/* The value of a variable or result for SHOW; NULL when there is none. */
const char *setting_value(struct session *session, const char *name);
/* The options in force for a statement: its tag over the variables over the configuration. */
bool setting_collect(struct session *session, const struct pgseek_settings *tag, struct pgseek_settings *out,
                     bool *cursor_from_variable, struct pgseek_error *error) MUST_USE;
/* A pgseek.x given at startup. */
bool setting_startup(void *session, const char *name, const char *value);

/* ---- total.c ---- */
void total_reset(struct total *total);
enum action total_row(struct session *session, struct span body);
/* The server refused something of it: there is no total. */
enum action total_failed(struct session *session, struct span body);
/* A message of the client in front of it failed. */
void total_lost(struct session *session);
void total_ended(struct session *session);

/* ---- refuse.c ---- */
/* Answers the message in hand with an error of class PS, as the server would: the group or query fails. */
enum action refuse(struct session *session, const struct pgseek_error *error, bool simple, struct span parse_name);
/* What was sent in its place has failed. */
enum action refuse_failed(struct session *session, const struct pending *head, struct span body);

/* ---- notice.c ---- */
/* Whether the client hears every notice that comes now. */
bool notice_passes_by(const struct pending *head);
/* One that may be about our own messages. */
enum action notice_reply(struct session *session, struct pending *head, struct span body);

/* ---- inquiry.c ---- */
/* Asks for context, facts (query may be NULL) and the statement's description; the message in hand is then held. Takes
 * the query. */
enum action inquiry_ask(struct session *session, struct pgseek_query *query, const struct statement *statement,
                        struct span name, bool simple);
/* Asks for what the facts want beyond that, in another round; the message in hand is held again. False in *possible
 * when it cannot be asked now, or would never end. */
enum action inquiry_ask_more(struct session *session, bool *possible);
void inquiry_reset(struct inquiry *inquiry);
enum action inquiry_row(struct session *session, const struct pending *head, struct span body);
enum action inquiry_described(struct session *session, const struct pending *head, uint8_t type, struct span body);
/* The server refused a side query. */
enum action inquiry_failed(struct session *session);
void inquiry_ended(struct session *session); /* the last of its replies has come */
/* Whether a page's end is owed in front of the message in hand. */
bool pages_are_owed(const struct session *session);

/* ---- paginate.c: a tagged Bind or Query ---- */
struct request {
    struct statement *statement;
    const struct pgseek_settings *tag; /* what the texts say */
    bool simple;
    struct span portal;           /* of the Bind */
    struct span name;             /* the statement's on the server; len 0: unnamed, or none at all when simple */
    const struct wire_bind *bind; /* NULL when simple */
    struct span message;          /* the client's own */
    struct span prefix;           /* goes in front of the page's text: EXPLAIN, DECLARE */
    struct span execute;          /* the text of an EXECUTE: its arguments are the parameters */
};
enum action paginate(struct session *session, const struct request *request);

/* ---- send.c: a page's messages ---- */
struct boundary { /* where the page starts, taken from a cursor */
    bool given;
    struct cursor cursor;
};
enum action send_page(struct session *session, const struct request *request, struct page *page,
                      const struct boundary *boundary, const struct wire_param *params, bool spends_cursor);
enum action send_original(struct session *session, const struct request *request, struct page *page);

/* A value to bind: as the client sent it, or ours. */
struct value {
    int format;
    int32_t len; /* -1: NULL */
    const uint8_t *data;
};
/* Writes a Bind; result formats as given. */
void put_bind(struct buf *out, struct span portal, const char *statement, const struct value *values, size_t nvalues,
              const uint8_t *results, size_t nresults);

/* ---- deliver.c: replies that go through a page ---- */
enum action deliver_row(struct session *session, struct page *page, struct span body);
enum action deliver_description(struct session *session, struct page *page, struct span body, bool of_portal);
enum action deliver_end(struct session *session, struct page *page, uint8_t type, struct span message);
enum action deliver_digests(struct session *session, struct page *page, struct span body);
/* How the server describes the client's own statement, for a page whose text would be described otherwise. */
enum action deliver_names(struct session *session, struct page *page, struct span body);

/* ---- retry.c ---- */
/* The guard of a page failed with this SQLSTATE: 22012, 2201F, 2201E, 26000. */
enum action guard_failed(struct session *session, struct page *page, struct span body);
/* Another message of the client while a page's guard is unanswered: kept, or the end of the possibility to run it
 * again. */
void retry_note(struct session *session, struct span message, bool may_repeat);
void retry_passing(struct session *session, uint8_t type, bool may_repeat);
void retry_start(struct session *session, const struct request *request, bool possible);
void retry_over(struct session *session);
/* A page's own Parse or Bind failed because its plan is stale: true when it will be run again, and the error is not for
 * the client. */
bool retry_instead(struct session *session, struct page *page);
/* The failed group's ReadyForQuery came: the kept messages are put in front of the held ones. */
enum action retry_again(struct session *session);

#endif
