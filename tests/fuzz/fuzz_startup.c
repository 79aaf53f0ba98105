/* fuzz_startup.c - startup packets: what is left and what was taken is what came, and nothing of ours is left.
 *
 * The input is a packet behind its length and version. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../proxy/protocol/startup.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_ours(const char *name)
{
    return strncasecmp(name, "pgseek.", 7) == 0;
}

static bool take(void *arg, const char *name, const char *value)
{
    size_t *taken = arg;
    require(is_ours(name) && value);
    ++*taken;
    return true;
}

static bool refuse(void *arg, const char *name, const char *value)
{
    (void)arg, (void)name, (void)value;
    return false;
}

/* What was written is a packet again; a second pass finds nothing in it, and leaves it as it is. */
static void check_result(struct span packet)
{
    struct startup startup;
    struct buf again = {0};
    size_t taken = 0;
    bool changed;
    require(startup_length(packet) == packet.len || packet.len > STARTUP_MAX_LENGTH);
    startup_read(packet, &startup);
    require(startup.kind == STARTUP_SESSION);
    require(startup_rewrite(&startup, "pgseek.", NULL, NULL, take, &taken, &again, &changed));
    require(taken == 0 && !changed && span_equal(buf_span(&again), packet));
    buf_fini(&again);
}

/* The next parameter that is neither options nor ours. */
static bool next_plain(struct span *at, struct span *name, struct span *value)
{
    while (startup_next(at, name, value))
        if (!span_equal_cstr(*name, "options") && (name->len <= 7 || !is_ours((const char *)name->ptr)))
            return true;
    return false;
}

/* They stand in the result, in order. */
static void check_kept(const struct startup *before, const struct startup *after)
{
    struct span from = before->parameters;
    struct span to = after->parameters;
    struct span name, value, kept_name, kept_value;
    while (next_plain(&from, &name, &value))
        require(next_plain(&to, &kept_name, &kept_value) && span_equal(name, kept_name) &&
                span_equal(value, kept_value));
    require(!next_plain(&to, &kept_name, &kept_value));
}

static void check_session(const struct startup *startup, struct span packet)
{
    struct buf out = {0};
    size_t taken = 0;
    bool changed;
    require(startup_rewrite(startup, "pgseek.", NULL, NULL, take, &taken, &out, &changed));
    require(changed || (taken == 0 && span_equal(buf_span(&out), packet)));
    require(!changed || taken > 0);
    struct startup after;
    startup_read(buf_span(&out), &after);
    require(after.kind == STARTUP_SESSION && after.version == startup->version);
    check_kept(startup, &after);
    check_result(buf_span(&out));
    buf_clear(&out);
    require(startup_rewrite(startup, "pgseek.", NULL, NULL, refuse, NULL, &out, &changed) == (taken == 0));
    buf_clear(&out);
    require(startup_rewrite(startup, "pgseek.", "other", "someone", take, &taken, &out, &changed) && changed);
    buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf packet = {0};
    struct startup startup;
    if (size < 4 || size > STARTUP_MAX_LENGTH - 4)
        return 0;
    buf_put_u32(&packet, (uint32_t)size + 4);
    buf_put(&packet, data, size);
    require(startup_length(buf_span(&packet)) == packet.len);
    startup_read(buf_span(&packet), &startup);
    if (startup.kind == STARTUP_SESSION)
        check_session(&startup, buf_span(&packet));
    require(startup.kind != STARTUP_CANCEL || startup.cancel.len > 4);
    buf_fini(&packet);
    return 0;
}
