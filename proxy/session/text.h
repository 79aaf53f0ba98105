/* text.h - what the client's SQL texts are to us: plain, a command, about a variable, or a page.
 *
 * It decides by the first word and by whether "pgseek" is mentioned; only then is anything lexed. It must not know how
 * a page is run. */
#ifndef TEXT_H
#define TEXT_H

#include "internal.h"

/* Whole Query and Parse messages. */
enum action text_query(struct session *session, struct span message);
enum action text_parse(struct session *session, struct span message);
/* The same for texts that are too large to be looked at. */
enum action text_plain_query(struct session *session);
enum action text_plain_parse(struct session *session, struct span name);
/* A text as it was read; what its kind needs is filled, and then owned by the caller. */
enum text_kind { TEXT_PLAIN, TEXT_COMMAND, TEXT_VARIABLE, TEXT_TAGGED, TEXT_PREPARE, TEXT_EXECUTE, TEXT_BAD };

struct reading {
    enum text_kind kind;
    enum pgseek_word word;
    bool is_tagged;
    struct pgseek_tag tag;           /* TAGGED, PREPARE, EXECUTE */
    struct pgseek_frame frame;       /* the same */
    struct pgseek_variable variable; /* VARIABLE */
    struct pgseek_command command;   /* COMMAND, PREPARE, EXECUTE */
    struct pgseek_error error;       /* BAD */
};

/* A tagged text as a statement: what stands around the page's own text is apart. Takes the tag. NULL when out of
 * memory. */
struct statement *text_statement(struct reading *reading, struct span sql);
/* A simple Query that is a command, or a tagged statement of its own. */
enum action text_query_command(struct session *session, const struct pgseek_command *command);
enum action text_query_tagged(struct session *session, struct reading *reading, struct span sql, struct span message);
/* Any simple Query takes the unnamed statement away. */
void text_forget_unnamed(struct session *session);
/* The client's Parse makes this statement; the reference passes. */
enum action text_register(struct session *session, const struct wire_parse *parse, struct statement *statement);

#endif
