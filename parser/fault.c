/* fault.c - writing down what is wrong with a tag or a variable.
 *
 * It formats and cuts, and must not know the rules that were broken. */
#include "fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool fault(struct pgseek_error *error, const char *message)
{
    *error = (struct pgseek_error){.code = PGSEEK_PS000};
    snprintf(error->message, sizeof error->message, "%s", message);
    return false;
}

bool fault_detail(struct pgseek_error *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->detail, sizeof error->detail, format, args);
    va_end(args);
    return false;
}

bool fault_hint(struct pgseek_error *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->hint, sizeof error->hint, format, args);
    va_end(args);
    return false;
}

struct excerpt fault_excerpt(const char *text, size_t len)
{
    static const char dots[] = "...";
    struct excerpt excerpt = {0};
    bool is_cut = len > sizeof excerpt.text - sizeof dots;
    if (is_cut) {
        len = sizeof excerpt.text - sizeof dots;
        while (len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80)
            len--;
    }
    if (len)
        memcpy(excerpt.text, text, len);
    if (is_cut)
        memcpy(excerpt.text + len, dots, sizeof dots);
    return excerpt;
}
