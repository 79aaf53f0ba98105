/* lookup.c - the queue, and the way to a thread and back. */
#include "lookup.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../admin/conf.h"
#include "../session/session.h"
#include "lookup_ask.h"

struct lookup {
    uv_work_t work; /* work.data: the lookup */
    struct lookup_queue *queue;
    struct lookup *next;    /* while it waits */
    lookup_on_done on_done; /* NULL: cancelled */
    void *owner;
    struct conf *conf;
    _Atomic bool is_abandoned;
    bool is_running;
    struct lookup_question question;
    struct lookup_answer answer;
    char user[64];
    char dbname[64];
};

static void lookup_free(struct lookup *lookup)
{
    conf_unref(lookup->conf);
    secret_wipe(&lookup->answer.secret);
    mem_free(lookup);
}

/* ---- running ---- */

static void lookup_run(uv_work_t *work)
{
    struct lookup *lookup = work->data;
    lookup_ask(&lookup->question, &lookup->answer);
}

static void lookup_run_next(struct lookup_queue *queue);

static void lookup_on_answer(uv_work_t *work, int status)
{
    struct lookup *lookup = work->data;
    struct lookup_queue *queue = lookup->queue;
    const struct lookup_answer *answer = &lookup->answer;
    (void)status; /* nobody cancels in the pool */
    queue->running--;
    lookup_run_next(queue);
    if (lookup->on_done)
        lookup->on_done(lookup->owner, answer->has_secret ? &answer->secret : NULL, answer->none,
                        answer->failed[0] ? answer->failed : NULL);
    lookup_free(lookup);
}

static void lookup_run_next(struct lookup_queue *queue)
{
    struct lookup *lookup = queue->first;
    if (!lookup || queue->running == LOOKUP_RUNNING_MAX)
        return;
    queue->first = lookup->next;
    if (!queue->first)
        queue->last = NULL;
    queue->waiting--;
    queue->running++;
    lookup->is_running = true;
    int rc = uv_queue_work(queue->loop, &lookup->work, lookup_run, lookup_on_answer);
    (void)rc; /* fails without a function only */
}

/* ---- starting and giving up ---- */

struct lookup *lookup_start(struct lookup_queue *queue, const struct session_target *target, const char *user,
                            const char *dbname, lookup_on_done on_done, void *owner)
{
    struct lookup *lookup = queue->waiting < LOOKUP_WAITING_MAX ? mem_zalloc(sizeof *lookup) : NULL;
    if (!lookup)
        return NULL;
    lookup->work.data = lookup;
    lookup->queue = queue;
    lookup->on_done = on_done;
    lookup->owner = owner;
    lookup->conf = conf_ref((struct conf *)(uintptr_t)target->conf);
    snprintf(lookup->user, sizeof lookup->user, "%s", user);
    snprintf(lookup->dbname, sizeof lookup->dbname, "%s", dbname);
    lookup->question = (struct lookup_question){.conf = target->conf,
                                                .database = target->database,
                                                .user = lookup->user,
                                                .dbname = lookup->dbname,
                                                .is_abandoned = &lookup->is_abandoned};
    if (queue->last)
        queue->last->next = lookup;
    else
        queue->first = lookup;
    queue->last = lookup;
    queue->waiting++;
    lookup_run_next(queue);
    return lookup;
}

static void lookup_unqueue(struct lookup_queue *queue, const struct lookup *lookup)
{
    struct lookup *before = NULL;
    for (struct lookup *at = queue->first; at != lookup; at = at->next)
        before = at;
    if (before)
        before->next = lookup->next;
    else
        queue->first = lookup->next;
    if (queue->last == lookup)
        queue->last = before;
    queue->waiting--;
}

void lookup_cancel(struct lookup *lookup)
{
    lookup->on_done = NULL;
    atomic_store(&lookup->is_abandoned, true);
    if (lookup->is_running)
        return; /* freed when its thread is done */
    lookup_unqueue(lookup->queue, lookup);
    lookup_free(lookup);
}
