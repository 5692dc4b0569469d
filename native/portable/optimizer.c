#include "optimizer.h"

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

int64_t samebits_portable_optimizer(const sbp_optimizer_parameters *p) {
    const sbp_optimizer_table *now = optimizer_now();
    step_job job = {{p->flags, p->tensors, p->shrink, p->decay, p->weight, p->keep, p->gain, p->eps, p->each}, NULL};
    int64_t chunks = 0;
    if (p->is_sgd)
        job.run = p->is_f64 ? now->sgd_f64 : now->sgd_f32;
    else
        job.run = p->is_f64 ? now->adam_f64 : now->adam_f32;
    for (int64_t i = 0; i < p->tensors; i++)
        chunks += chunks_of(&p->each[i]);
    sbp_share_out(chunks, 4, step_share, &job);
    return 0;
}
