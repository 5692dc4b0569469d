#include "window.h"

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_window_table, window)

/* words: is_f64, is_backward, wide, narrow, planes, divisor, three sizes, three outputs, bounds: for each dimension
 * the addresses of first, end, count */
typedef struct {
    const int64_t *words;
    sbp_window window;
    int64_t wide, narrow;
} window_job;

static void window_share(void *context, int64_t from, int64_t to) {
    const window_job *job = context;
    const int64_t *w = job->words, size = w[0] ? 8 : 4;
    const sbp_window_table *table = window_now();
    for (int64_t plane = from; plane < to; plane++)
        (w[0] ? table->f64 : table->f32)[w[1]](&job->window, (char *)w[2] + size * plane * job->wide,
                                               (char *)w[3] + size * plane * job->narrow);
}

SBP_API int64_t samebits_portable_window(const int64_t *words, const double *scalars) {
    window_job job = {words, {{0}, {0}, {0}, {0}, {0}, words[5]}, 1, 1};
    (void)scalars;
    for (int d = 0; d < 3; d++) {
        job.wide *= job.window.size[d] = words[6 + d];
        job.narrow *= job.window.outputs[d] = words[9 + d];
        job.window.first[d] = (const int64_t *)words[12 + 3 * d];
        job.window.end[d] = (const int64_t *)words[13 + 3 * d];
        job.window.count[d] = (const int64_t *)words[14 + 3 * d];
    }
    sbp_share_out(words[4], 1 + 16384 / (1 + job.wide), window_share, &job);
    return 0;
}
