/* total.c - the statement that says how many rows all pages have together.
 *
 * The page level's own text without its order, limit, offset and locks, counted or explained. It must not know when it
 * is run, nor what its answer is for. */
#include "probe.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

char *pgseek_total_new(const struct pgseek_query *query, bool estimate)
{
    struct text text = {0};
    text_puts(&text, estimate ? "EXPLAIN (FORMAT JSON) " : "SELECT pg_catalog.count(*) FROM (");
    bool made = probe_make(&text, query, NULL, 0);
    text_puts(&text, estimate ? "" : ") q");
    char *sql = text_take(&text);
    if (made)
        return sql;
    free(sql);
    return NULL;
}

/* Of the topmost node: its keys come before those of the nodes below it, and no text in JSON holds a bare quote. */
size_t pgseek_total_read(const char *answer, size_t len, bool estimate, const char **number)
{
    static const char key[] = "\"Plan Rows\": ";
    const char *end = answer + len;
    const char *at = answer;
    if (estimate) {
        at = memmem(answer, len, key, sizeof key - 1);
        if (!at)
            return 0;
        at += sizeof key - 1;
    }
    *number = at;
    while (at < end && isdigit((unsigned char)*at))
        at++;
    return (size_t)(at - *number);
}
