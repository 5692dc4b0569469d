#include "window.h"

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_window_table, window)

typedef struct {
    const sbp_window_parameters *parameters;
    sbp_window window;
    int64_t wide, narrow;
} window_job;

static void window_share(void *context, int64_t from, int64_t to) {
    const window_job *job = context;
    const sbp_window_parameters *p = job->parameters;
    const int64_t size = p->is_f64 ? 8 : 4;
    const sbp_window_table *table = window_now();
    for (int64_t plane = from; plane < to; plane++)
        (p->is_f64 ? table->f64 : table->f32)[p->is_backward](
            &job->window, (char *)p->wide + size * plane * job->wide, (char *)p->narrow + size * plane * job->narrow);
}

int64_t samebits_portable_window(const sbp_window_parameters *p) {
    window_job job = {p, {{0}, {0}, {0}, {0}, {0}, p->divisor}, 1, 1};
    for (int d = 0; d < 3; d++) {
        job.wide *= job.window.size[d] = p->size[d];
        job.narrow *= job.window.outputs[d] = p->outputs[d];
        job.window.first[d] = p->first[d];
        job.window.end[d] = p->end[d];
        job.window.count[d] = p->counts[d];
    }
    sbp_share_out(p->planes, 1 + 16384 / (1 + job.wide), window_share, &job);
    return 0;
}
