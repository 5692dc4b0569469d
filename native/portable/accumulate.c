#include "accumulate.h"

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_accumulate_table, accumulate)

#define GROUP 16 /* columns of one part of the work */

/* words: is_f64, kind, out, src, index, batch, rows, columns, m, src_n, src_m, src_c, index_n, index_m, index_c, bad, skip:
 * whether the index -1 is left out */
typedef struct {
    const int64_t *words;
    sbp_accumulate base;
    int64_t groups;
} accumulate_job;

static int is_in_range(const sbp_accumulate *a, int64_t batch, int64_t least) {
    const int64_t batches = a->index_n ? batch : 1, columns = a->index_c ? a->columns : 1;
    int64_t bad = 0;
    for (int64_t n = 0; n < batches; n++)
        for (int64_t m = 0; m < a->m; m++)
            for (int64_t c = 0; c < columns; c++) {
                const int64_t row = a->index[n * a->index_n + m * a->index_m + c * a->index_c];
                bad |= (row >= a->rows) | (row < least);
            }
    return !bad;
}

static void accumulate_share(void *context, int64_t from, int64_t to) {
    const accumulate_job *job = context;
    const sbp_accumulate_table *table = accumulate_now();
    while (from < to) {
        const int64_t n = from / job->groups, first = from % job->groups;
        const int64_t end = (n + 1) * job->groups < to ? (n + 1) * job->groups : to;
        const int64_t stop = (first + end - from) * GROUP;
        sbp_accumulate a = job->base;
        a.from = first * GROUP;
        a.to = stop < a.columns ? stop : a.columns;
        (job->words[0] ? table->f64 : table->f32)[job->words[1]](&a, n);
        from = end;
    }
}

SBP_API int64_t samebits_portable_accumulate(const int64_t *words, const double *scalars) {
    const int64_t *w = words;
    const int64_t columns = w[7], groups = (columns + GROUP - 1) / GROUP;
    accumulate_job job = {w,
                          {(void *)w[2], (const void *)w[3], (const int64_t *)w[4], w[6], columns, w[8], w[9], w[10],
                           w[11], w[12], w[13], w[14], w[16] ? 0 : w[6], 0, 0},
                          groups};
    (void)scalars;
    *(int64_t *)w[15] = !is_in_range(&job.base, w[5], w[16] ? -1 : -w[6]);
    if (!*(int64_t *)w[15])
        sbp_share_out(w[5] * groups, 1 + 32768 / (1 + job.base.m * (columns < GROUP ? columns : GROUP)),
                      accumulate_share, &job);
    return 0;
}
