/* description.h - what the server says of a statement: its parameters' types and its columns.
 *
 * It holds one ParameterDescription and one RowDescription, copied, and must not know whose statement it is. */
#ifndef DESCRIPTION_H
#define DESCRIPTION_H

#include "../../parser/pgseek.h"
#include "../protocol/bytes.h"

struct description {
    uint32_t *param_oids;
    size_t nparams;
    struct pgseek_column *columns; /* names owned */
    size_t ncolumns;
};

void description_fini(struct description *description);
/* Reads the bodies of 't' and 'T'. False when malformed or out of memory. */
bool description_read_params(struct description *description, struct span body) MUST_USE;
bool description_read_columns(struct description *description, struct span body) MUST_USE;
/* The parser's borrowed view. */
struct pgseek_description description_view(const struct description *description);

#endif
