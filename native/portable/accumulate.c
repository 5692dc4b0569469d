#include "accumulate.h"

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_accumulate_table, accumulate)

#define GROUP 16 /* columns of one part of the work */

typedef struct {
    const sbp_accumulate_parameters *p;
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
        (job->p->is_f64 ? table->f64 : table->f32)[job->p->kind](&a, n);
        from = end;
    }
}

int64_t samebits_portable_accumulate(const sbp_accumulate_parameters *p) {
    const int64_t columns = p->columns, groups = (columns + GROUP - 1) / GROUP;
    const int64_t *src = p->src_strides, *index = p->index_strides;
    accumulate_job job = {p,
                          {p->out, p->src, p->indices, p->rows, columns, p->m, src[0], src[1], src[2], index[0], index[1],
                           index[2], p->skip ? 0 : p->rows, 0, 0},
                          groups};
    int64_t *bad = p->bad;
    *bad = !is_in_range(&job.base, p->batch, p->skip ? -1 : -p->rows);
    if (!*bad)
        sbp_share_out(p->batch * groups, 1 + 32768 / (1 + job.base.m * (columns < GROUP ? columns : GROUP)),
                      accumulate_share, &job);
    return 0;
}
