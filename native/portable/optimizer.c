#include "optimizer.h"

#include <stdlib.h>

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_optimizer_table, optimizer)

typedef struct {
    sbp_step step;
    void (*run)(const sbp_step *s, const sbp_step_tensor *t, int64_t from, int64_t to);
} step_job;

static int64_t chunks_of(const sbp_step_tensor *t) { return (t->count + SBP_STEP_CHUNK - 1) / SBP_STEP_CHUNK; }

/* Chunks are numbered through all tensors. */
static void step_share(void *context, int64_t from, int64_t to) {
    const step_job *job = context;
    const sbp_step_tensor *t = job->step.each;
    for (int64_t before = 0; before < to; before += chunks_of(t), t++) {
        const int64_t first = from > before ? from - before : 0, chunks = chunks_of(t);
        const int64_t last = to - before < chunks ? to - before : chunks;
        const int64_t end = last * SBP_STEP_CHUNK < t->count ? last * SBP_STEP_CHUNK : t->count;
        if (first < last)
            job->run(&job->step, t, first * SBP_STEP_CHUNK, end);
    }
}

static int64_t step_all(step_job *job, const int64_t *words, const double *scalars) {
    const int64_t n = job->step.tensors;
    sbp_step_tensor *each = malloc((size_t)(n > 0 ? n : 1) * sizeof *each);
    int64_t chunks = 0;
    if (!each)
        return SBP_NO_MEMORY;
    for (int64_t i = 0; i < n; i++, words += 6, scalars += 2) {
        const sbp_step_tensor one = {words[0],          (void *)words[1], (void *)words[2], (void *)words[3],
                                     (void *)words[4], (void *)words[5], scalars[0],       scalars[1]};
        each[i] = one;
        chunks += chunks_of(&one);
    }
    job->step.each = each;
    sbp_share_out(chunks, 4, step_share, job);
    free(each);
    return 0;
}

/* words: is_f64, is_sgd, flags, tensors, then for each: count, param, grad, first, second, highest
 * scalars: shrink, decay, weight, keep, gain, eps, then for each: minus_step, root */
SBP_API int64_t samebits_portable_optimizer(const int64_t *words, const double *s) {
    const sbp_optimizer_table *now = optimizer_now();
    step_job job = {{words[2], words[3], s[0], s[1], s[2], s[3], s[4], s[5], NULL}, NULL};
    if (words[1])
        job.run = words[0] ? now->sgd_f64 : now->sgd_f32;
    else
        job.run = words[0] ? now->adam_f64 : now->adam_f32;
    return step_all(&job, words + 4, s + 6);
}
