/* lookup.c - the queue, the way to a thread and back, and what is kept for the next one. */
#include "lookup.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

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
    bool is_running;
    struct lookup_question question;
    struct lookup_conn *conn; /* taken from those kept, and given back */
    struct lookup_answer answer;
    char user[64];
    char dbname[64];
};

static void lookup_free(struct lookup *lookup)
{
    if (lookup->question.bell >= 0)
        close(lookup->question.bell);
    conf_unref(lookup->conf);
    secret_wipe(&lookup->answer.secret);
    mem_free(lookup);
}

/* ---- connections that are kept ---- */

static struct lookup_conn *lookup_take(struct lookup_queue *queue, unsigned n)
{
    struct lookup_conn *conn = queue->kept[n].conn;
    queue->nkept--;
    memmove(&queue->kept[n], &queue->kept[n + 1], (queue->nkept - n) * sizeof *queue->kept);
    return conn;
}

/* The one that was used last, so that the others can go. */
static struct lookup_conn *lookup_take_fitting(struct lookup_queue *queue, const struct lookup_question *question)
{
    for (unsigned n = queue->nkept; n > 0; n--)
        if (lookup_conn_fits(queue->kept[n - 1].conn, question))
            return lookup_take(queue, n - 1);
    return NULL;
}

static void lookup_on_timer(uv_timer_t *timer);

static void lookup_await_first(struct lookup_queue *queue)
{
    uint64_t now_ms = uv_now(queue->loop);
    uint64_t until_ms = queue->kept[0].until_ms;
    uv_timer_start(&queue->timer, lookup_on_timer, until_ms > now_ms ? until_ms - now_ms : 0, 0);
}

static void lookup_on_timer(uv_timer_t *timer)
{
    struct lookup_queue *queue = timer->data;
    while (queue->nkept && queue->kept[0].until_ms <= uv_now(queue->loop))
        lookup_conn_close(lookup_take(queue, 0));
    if (queue->nkept)
        lookup_await_first(queue);
}

static void lookup_keep(struct lookup_queue *queue, struct lookup_conn *conn)
{
    uint64_t keep_ms = queue->conf->auth_dbname[0] ? LOOKUP_KEPT_MS : LOOKUP_KEPT_OWN_MS;
    if (queue->nkept == LOOKUP_KEPT_MAX)
        lookup_conn_close(lookup_take(queue, 0));
    queue->kept[queue->nkept++] = (struct lookup_kept){.conn = conn, .until_ms = uv_now(queue->loop) + keep_ms};
    lookup_await_first(queue);
}

int lookup_queue_init(struct lookup_queue *queue, uv_loop_t *loop)
{
    queue->loop = loop;
    queue->timer.data = queue;
    return uv_timer_init(loop, &queue->timer);
}

void lookup_queue_serve(struct lookup_queue *queue, const struct conf *conf)
{
    queue->conf = conf;
    while (queue->nkept)
        lookup_conn_close(lookup_take(queue, queue->nkept - 1));
}

void lookup_queue_close(struct lookup_queue *queue)
{
    lookup_queue_serve(queue, NULL);
    uv_close((uv_handle_t *)&queue->timer, NULL);
}

/* ---- running ---- */

static void lookup_run(uv_work_t *work)
{
    struct lookup *lookup = work->data;
    lookup_ask(&lookup->question, &lookup->conn, &lookup->answer);
}

static void lookup_run_next(struct lookup_queue *queue);

static void lookup_tell(const struct lookup *lookup)
{
    const struct lookup_answer *answer = &lookup->answer;
    const struct session_looked_up told = {.secret = answer->has_secret ? &answer->secret : NULL,
                                           .none = answer->none,
                                           .failed = answer->failed[0] ? answer->failed : NULL,
                                           .usual = answer->usual};
    if (lookup->on_done)
        lookup->on_done(lookup->owner, &told);
}

static void lookup_on_answer(uv_work_t *work, int status)
{
    struct lookup *lookup = work->data;
    struct lookup_queue *queue = lookup->queue;
    (void)status; /* nobody cancels in the pool */
    queue->running--;
    if (lookup->conn && lookup->conf == queue->conf)
        lookup_keep(queue, lookup->conn);
    else
        lookup_conn_close(lookup->conn);
    lookup_run_next(queue);
    lookup_tell(lookup);
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
    lookup->question.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    lookup->conn = lookup_take_fitting(queue, &lookup->question);
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
    lookup->question = (struct lookup_question){
        .conf = target->conf, .database = target->database, .user = lookup->user, .dbname = lookup->dbname, .bell = -1};
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
    if (lookup->is_running) {
        eventfd_write(lookup->question.bell, 1);
        return; /* freed when its thread is done */
    }
    lookup_unqueue(lookup->queue, lookup);
    lookup_free(lookup);
}
