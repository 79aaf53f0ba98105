/* description.c - copies ParameterDescription and RowDescription out of their messages. */
#include "description.h"

#include "../protocol/wire.h"

static void columns_free(struct description *description)
{
    for (size_t i = 0; i < description->ncolumns; i++)
        mem_free((void *)(uintptr_t)description->columns[i].name);
    mem_free(description->columns);
    description->columns = NULL;
    description->ncolumns = 0;
}

void description_fini(struct description *description)
{
    mem_free(description->param_oids);
    columns_free(description);
    *description = (struct description){0};
}

bool description_read_params(struct description *description, struct span body)
{
    struct reader rd = rd_init(body);
    size_t count = rd_u16(&rd);
    if (rd.failed || rd_left(&rd) != count * 4)
        return false;
    uint32_t *oids = mem_alloc(count * sizeof *oids);
    if (!oids)
        return false;
    for (size_t i = 0; i < count; i++)
        oids[i] = rd_u32(&rd);
    mem_free(description->param_oids);
    description->param_oids = oids;
    description->nparams = count;
    return rd_done(&rd);
}

bool description_read_columns(struct description *description, struct span body)
{
    struct reader rd = rd_init(body);
    size_t count = wire_field_count(&rd);
    columns_free(description);
    if (rd.failed || rd_left(&rd) < count * 19) /* an empty name and the fixed fields */
        return false;
    description->columns = mem_zalloc(count * sizeof *description->columns);
    if (!description->columns)
        return false;
    for (; description->ncolumns < count; description->ncolumns++) {
        struct wire_field field;
        wire_read_field(&rd, &field);
        struct pgseek_column *column = &description->columns[description->ncolumns];
        column->name = rd.failed ? NULL : mem_strndup((const char *)field.name.ptr, field.name.len);
        if (!column->name)
            return false;
        column->table_oid = field.table_oid;
        column->attnum = (int16_t)field.attnum;
        column->type_oid = field.type_oid;
        column->typmod = field.typmod;
    }
    return rd_done(&rd);
}

struct pgseek_description description_view(const struct description *description)
{
    return (struct pgseek_description){
        .param_oids = description->param_oids,
        .nparams = description->nparams,
        .columns = description->columns,
        .ncolumns = description->ncolumns,
    };
}
