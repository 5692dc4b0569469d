#include "window.h"

#include "isa.h"
#include "portable.h"
#include "scratch.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_window_table, window)

typedef struct {
    const sbp_window_parameters *parameters;
    sbp_window window;
    int64_t wide, narrow;
    int failed;
} window_job;

static void window_share(void *context, int64_t from, int64_t to) {
    window_job *job = context;
    const sbp_window_parameters *p = job->parameters;
    const int64_t size = p->is_f64 ? 8 : 4;
    const sbp_window_table *table = window_now();
    void *aside = sbp_scratch(SBP_SCRATCH_FREE_1, (size_t)(size * p->outputs[2]));
    if (!aside)
        job->failed = 1;
    for (int64_t plane = from; aside && plane < to; plane++) {
        const int64_t place = plane / p->channels * p->sample_step + plane % p->channels * job->wide;
        (p->is_f64 ? table->f64 : table->f32)[p->is_backward](
            &job->window, (char *)p->wide + size * place, (char *)p->narrow + size * plane * job->narrow, aside);
    }
}

/* Whether window x + 1 is one step after x and like it. */
static int follows(const sbp_window *w, int64_t x) {
    const int64_t *first = w->first[2], *end = w->end[2];
    return first[x + 1] == first[x] + w->step && end[x + 1] == end[x] + w->step && w->count[2][x + 1] == w->count[2][x];
}

/* From the middle on, since padding cuts the windows at both ends. */
static void find_run(sbp_window *w) {
    const int64_t outputs = w->outputs[2], middle = (outputs - 1) / 2;
    if (outputs < 2 || w->first[2][middle + 1] <= w->first[2][middle])
        return;
    w->step = w->first[2][middle + 1] - w->first[2][middle];
    w->width = w->end[2][middle] - w->first[2][middle];
    for (w->run = middle; w->run && follows(w, w->run - 1);)
        w->run--;
    for (w->run_end = middle + 1; w->run_end < outputs && follows(w, w->run_end - 1);)
        w->run_end++;
}

int64_t samebits_portable_window(const sbp_window_parameters *p) {
    window_job job = {p, {.divisor = p->divisor}, 1, 1, 0};
    for (int d = 0; d < 3; d++) {
        job.wide *= job.window.size[d] = p->size[d];
        job.narrow *= job.window.outputs[d] = p->outputs[d];
        job.window.first[d] = p->first[d];
        job.window.end[d] = p->end[d];
        job.window.count[d] = p->counts[d];
    }
    find_run(&job.window);
    sbp_share_out(p->planes, 1 + 16384 / (1 + job.wide), window_share, &job);
    return job.failed ? SBP_NO_MEMORY : 0;
}
