#include "threads.h"

#include "portable.h"

#if defined(__unix__) || defined(__APPLE__)
#define SBP_POSIX 1
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#endif

#define SBP_MAX_THREADS 256

static int allowed = 1;

void samebits_portable_set_threads(int threads) {
    allowed = threads < 1 ? 1 : threads > SBP_MAX_THREADS ? SBP_MAX_THREADS : threads;
}

int sbp_threads(void) { return allowed; }

typedef struct {
    sbp_share share;
    void *context;
    int64_t parts, runs;
    unsigned char taken[SBP_MAX_THREADS];
} team;

static void do_run(const team *t, int64_t run) {
    const int64_t each = t->parts / t->runs, rest = t->parts % t->runs;
    const int64_t from = run * each + (run < rest ? run : rest);
    t->share(t->context, from, from + each + (run < rest));
}

#ifdef SBP_POSIX

static sbp_team_call shared_threads;
static sbp_thread_number number_of_thread;
static pid_t shared_in; /* a forked child has the library's state without its threads */

void samebits_portable_share_threads(sbp_team_call call, sbp_thread_number number) {
    shared_threads = call;
    number_of_thread = number;
    shared_in = getpid();
}

/* Runs on every thread of a team, whose size may be less than asked for. A thread begins with the run of its number:
 * what it computed of a tensor, here or in torch, is in its cache. Then it takes what is left. */
static void do_runs(void *argument) {
    team *t = argument;
    const int64_t own = number_of_thread ? number_of_thread() : 0;
    for (int64_t i = 0; i < t->runs; i++) {
        const int64_t run = (own + i) % t->runs;
        if (!__atomic_exchange_n(&t->taken[run], 1, __ATOMIC_RELAXED))
            do_run(t, run);
    }
}

static void *own_thread(void *argument) {
    do_runs(argument);
    return NULL;
}

static void do_on_own_threads(team *t) {
    pthread_t threads[SBP_MAX_THREADS];
    int n = 0;
    sigset_t all, before; /* the program's signals stay with the program's threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (n + 1 < t->runs && n < SBP_MAX_THREADS && !pthread_create(&threads[n], NULL, own_thread, t))
        n++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    do_runs(t);
    while (n)
        pthread_join(threads[--n], NULL);
}

static void do_together(team *t) {
    if (shared_threads && shared_in == getpid())
        /* As many as the other user of the library asks for: another number would make it end and start threads. */
        shared_threads(do_runs, t, (unsigned)allowed, 0);
    else
        do_on_own_threads(t);
}

#else

void samebits_portable_share_threads(sbp_team_call call, sbp_thread_number number) { (void)call, (void)number; }

static void do_together(team *t) {
    for (int64_t run = 0; run < t->runs; run++)
        do_run(t, run);
}

#endif

void sbp_share_out(int64_t parts, int64_t least, sbp_share share, void *context) {
    const int64_t runs = parts / (least > 0 ? least : 1);
    team t = {.share = share, .context = context, .parts = parts, .runs = runs < allowed ? runs : allowed};
    if (t.runs < 2)
        share(context, 0, parts);
    else
        do_together(&t);
}
