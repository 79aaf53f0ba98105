/* page.h - one page on its way: which rows the client sees, and the cursors made from the first and the last of them.
 *
 * It turns rows and descriptions into those that the original statement would have given and reports the page's end; it
 * must not know messages' order, portals or sessions. A page that is only passed has no plan and still reports. */
#ifndef PAGE_H
#define PAGE_H

#include "planned.h"

enum page_action { PAGE_FIRST, PAGE_KEYSET, PAGE_OFFSET, PAGE_PASS };

struct page {
    int refs;
    struct planned *planned;          /* NULL for a pass */
    struct planned_shape *origin;     /* counted; of the text that was sent ... */
    const struct pgseek_shape *shape; /* ... which is this */
    struct description names;         /* of a text that would be described otherwise: what the original's says */
    enum pgseek_rows rows;            /* how the server's rows stand to the client's */
    enum page_action action;
    enum pgseek_reason reason; /* of a pass */
    unsigned deliver;          /* bits of enum pgseek_deliver */
    bool by_execute;           /* its values are the arguments of an EXECUTE */
    size_t prefix_len;         /* bytes in front of the shape's text */
    size_t token_place;        /* characters in front of a cursor that was cut out of the client's text ... */
    size_t token_len;          /* ... and how long it was */
    bool tail;
    bool backward; /* rows before a boundary, or the last ones */
    bool bounded;  /* a boundary was used, or rows stand before a last page */
    int64_t limit; /* the page's own LIMIT; -1: none */
    bool look_ahead;
    size_t nhidden;       /* last columns of the server's rows that the client does not see; in binary ... */
    size_t nkeys;         /* ... with so many keys among them, once or (of an inner level) twice */
    int column_format[2]; /* of the delivered columns: text or binary */
    uint8_t part[CURSOR_PARTS][CURSOR_DIGEST];
    uint64_t id;

    int64_t delivered;      /* rows that the client has seen */
    int64_t run;            /* rows of the current Execute */
    bool run_swallowed;     /* the current Execute brought a row that is not the client's: it is the last there is */
    bool more_seen;         /* the look-ahead row came at all */
    bool reported;          /* the end has been reported */
    int64_t passed;         /* rows of the page: those delivered, or those of the inner level */
    bool level_known;       /* of an inner level: its rows have been counted */
    struct buf first, last; /* keys of the page's first and last row, if it has any */
    struct buf held;        /* deliver=columns: the last row, until it is known whether another follows */
    struct buf incoming;    /* the cursor that the page was asked with */
    struct buf total;       /* the rows of all pages; empty: not known */
    bool asks_total;        /* it was asked for */
    bool retracts_total;    /* it was not, and the client still holds another page's */
    bool is_simple;         /* it answers a simple Query */
    bool gathers;           /* EXECUTE, EXPLAIN: the server itself says nothing before it has all rows ... */
    struct buf gathered;    /* ... so what is to be said waits here, as long as it is little */
};

/* What seals the page's cursors. */
struct page_seal {
    struct keyring *keyring;
    bool sign;
    int64_t now;
};

struct page *page_new(void) MUST_USE;
struct page *page_ref(struct page *page);
void page_unref(struct page *page);

/* Whether it is read for its cursors: not a page that is passed, explained or declared. */
bool page_makes_cursors(const struct page *page);
/* deliver=columns: two more behind the client's own. */
bool page_adds_columns(const struct page *page);
/* Whether rows and descriptions go through the page at all. */
bool page_filters(const struct page *page);

/* A RowDescription body as the client is to see it, as a whole message: the last columns are left out, and a text that
 * would be described otherwise shows the original's names, tables and attribute numbers. False when it does not fit. */
bool page_put_description(const struct page *page, struct span body, bool of_portal, struct buf *out) MUST_USE;

/* A DataRow body: writes what the client is to see of it, if anything. False when the row does not fit the plan, or a
 * cursor could not be made. */
bool page_put_row(struct page *page, const struct page_seal *seal, struct span body, struct buf *out) MUST_USE;

/* Whether it was memory that ran out. */
bool page_failed(const struct page *page);

void page_start_run(struct page *page);
/* The server ended the run ('C' or 's'): writes a held row. Returns whether the client is told CommandComplete. */
bool page_end_run(struct page *page, bool complete, struct buf *out);

/* The page's values by the names of DESIGN 4; all texts set. */
enum page_result {
    PAGE_NEXT_CURSOR,
    PAGE_PREV_CURSOR,
    PAGE_HAS_MORE,
    PAGE_HAS_PREV,
    PAGE_ROWS,
    PAGE_TOTAL,
    PAGE_ACTION,
    PAGE_ID,
    PAGE_RESULTS
};
const char *page_result_name(enum page_result result);
bool page_result_find(const char *name, enum page_result *result);

struct page_report {
    char *value[PAGE_RESULTS];
    bool has_total;   /* it was asked for, found or not */
    bool is_too_long; /* no cursor could be made of the last row: its keys are too long */
};
void page_report_fini(struct page_report *report);
/* Fills the report for the rows delivered so far; `suspended`: the portal stopped early. False when out of memory. */
bool page_report(const struct page *page, const struct page_seal *seal, bool suspended,
                 struct page_report *report) MUST_USE;
/* ParameterStatus messages or a notice, as the page's delivery says. */
void page_put_report(const struct page *page, const struct page_report *report, struct buf *out);

#endif
