#include "batch_norm.h"

#include <math.h>
#include <stdlib.h>

#include "isa.h"
#include "norm.h"
#include "portable.h"
#include "reduce.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_batch_norm_table, batch_norm)
SBP_DECLARE_TABLES(sbp_reduce_table, reduce)

/* The work of a batch norm on each channel between its passes over all values; little enough for one thread. */
typedef struct {
    const void *weight;
    void *running_mean, *running_var, *mean, *rstd, *total, *scale; /* total: the sums of squared deviations */
    int64_t channels, count;
} batch_values;

#define BATCH_TERMS(name, T)                                                                                          \
    static void name##_means(const batch_values *v) {                                                                 \
        for (int64_t c = 0; c < v->channels; c++)                                                                     \
            ((T *)v->mean)[c] = ((T *)v->mean)[c] / (T)v->count;                                                      \
    }                                                                                                                 \
                                                                                                                      \
    static void name(const batch_values *v, const sbp_batch_norm_parameters *p) {                                     \
        const T *mean = v->mean, *total = v->total, *weight = v->weight;                                              \
        T *running_mean = v->running_mean, *running_var = v->running_var, *rstd = v->rstd, *scale = v->scale;         \
        const T momentum = (T)p->momentum, rest = (T)p->rest;                                                         \
        for (int64_t c = 0; c < v->channels; c++) {                                                                   \
            rstd[c] = (T)(1 / sqrt((double)total[c] / (double)v->count + p->eps));                                    \
            scale[c] = weight ? rstd[c] * weight[c] : rstd[c];                                                        \
            if (running_mean)                                                                                         \
                running_mean[c] = mean[c] * momentum + running_mean[c] * rest;                                        \
            if (running_var)                                                                                          \
                running_var[c] = total[c] / (T)(v->count - 1) * momentum + running_var[c] * rest;                     \
        }                                                                                                             \
    }

BATCH_TERMS(batch_terms_f32, float)
BATCH_TERMS(batch_terms_f64, double)

int64_t samebits_portable_batch_norm(const sbp_batch_norm_parameters *p) {
    const int64_t channels = p->channels, inner = p->inner, size = p->is_f64 ? 8 : 4;
    char *total = malloc((size_t)(2 * size * channels)), *scale = total + size * channels;
    if (!total)
        return SBP_NO_MEMORY;
    const batch_values v = {p->weight, p->running_mean, p->running_var, p->mean, p->rstd, total, scale, channels,
                            p->outer * inner};
    const int64_t extents[] = {p->outer, channels, inner, channels * inner, inner, 1, channels * inner, inner, 1};
    sbp_reduce_parameters sums = {
        .kind = SBP_SUM, .is_f64 = p->is_f64, .a = p->x, .out = p->mean, .reduced = 1 | 4, .axes = 3};
    int64_t failed = sbp_reduce(&sums, extents);
    (p->is_f64 ? batch_terms_f64_means : batch_terms_f32_means)(&v);
    sums.kind = SBP_DEVIATIONS, sums.mean = p->mean, sums.out = total;
    failed = failed ? failed : sbp_reduce(&sums, extents);
    (p->is_f64 ? batch_terms_f64 : batch_terms_f32)(&v, p);
    const sbp_channel_norm_parameters norm = {p->is_f64, p->x, p->mean, scale, p->bias, p->out, p->outer, channels, inner};
    samebits_portable_channel_norm(&norm);
    free(total);
    return failed;
}

/* A block of channels is what one thread works on. */
typedef struct {
    sbp_batch batch;
    const sbp_batch_norm_of *kernels;
    const sbp_reduce_of *reduce;
    int64_t size, chunks, blocks, width;
    char *sums; /* by block, then by chunk */
} batch_job;

static int64_t block_end(const batch_job *j, int64_t block) {
    const int64_t end = (block + 1) * j->width;
    return end < j->batch.channels ? end : j->batch.channels;
}

static void find_sums(const batch_job *j, int64_t block, int64_t chunk) {
    const int64_t from = block * j->width, to = block_end(j, block);
    j->kernels->sums(&j->batch, chunk, from, to, j->sums + j->size * 2 * (from * j->chunks + chunk * (to - from)));
}

static void find_terms(const batch_job *j, int64_t block) {
    const int64_t from = block * j->width, to = block_end(j, block);
    char *sums = j->sums + j->size * 2 * from * j->chunks;
    j->reduce->tree(SBP_SUM, sums, j->chunks, 2 * (to - from));
    j->kernels->terms(&j->batch, from, to, sums);
}

/* Everything for some blocks: what was read for the sums is still in the cache when it is read again. */
static void share_blocks(void *context, int64_t from, int64_t to) {
    const batch_job *j = context;
    for (; from < to; from++) {
        for (int64_t chunk = 0; chunk < j->chunks; chunk++)
            find_sums(j, from, chunk);
        find_terms(j, from);
        for (int64_t sample = 0; sample < j->batch.outer && j->batch.out; sample++)
            j->kernels->gradient(&j->batch, sample, from * j->width, block_end(j, from));
    }
}

static void share_sums(void *context, int64_t from, int64_t to) {
    const batch_job *j = context;
    for (; from < to; from++)
        find_sums(j, from % j->blocks, from / j->blocks);
}

static void share_terms(void *context, int64_t from, int64_t to) {
    for (; from < to; from++)
        find_terms(context, from);
}

static void share_samples(void *context, int64_t from, int64_t to) {
    const batch_job *j = context;
    for (; from < to; from++)
        j->kernels->gradient(&j->batch, from, 0, j->batch.channels);
}

#define CACHED 131072 /* bytes of x and its gradient that a thread's cache certainly keeps */

/* Blocks that a cache keeps, if there are enough of them for the threads; else those that give the longest rows. */
static int choose_blocks(batch_job *j) {
    const sbp_batch *b = &j->batch;
    const int64_t kept = CACHED / (2 * j->size * b->outer * b->inner), each = b->channels / (2 * sbp_threads());
    const int64_t fitting = kept < 1 ? 1 : kept, width = fitting < each ? fitting : each;
    const int alone = b->inner > 1 && each > 0;
    j->width = alone && width < SBP_BOTH ? width : SBP_BOTH;
    j->blocks = (b->channels + j->width - 1) / j->width;
    return alone;
}

static void do_batch(batch_job *j) {
    const sbp_batch *b = &j->batch;
    const int alone = choose_blocks(j);
    const int64_t each = b->outer * b->inner * j->width, chunk = each / j->chunks;
    if (alone) {
        sbp_share_out(j->blocks, 1 + 16384 / each, share_blocks, j);
        return;
    }
    sbp_share_out(j->blocks * j->chunks, 1 + 16384 / chunk, share_sums, j);
    sbp_share_out(j->blocks, 1 + 8192 / (j->chunks * j->width), share_terms, j);
    if (b->out)
        sbp_share_out(b->outer, 1 + 16384 / (b->channels * b->inner), share_samples, j);
}

int64_t samebits_portable_batch_norm_gradient(const sbp_batch_norm_gradient_parameters *p) {
    const int64_t size = p->is_f64 ? 8 : 4, channels = p->channels, n = p->outer * p->inner;
    const int64_t chunks = (n + SBP_CHUNK - 1) / SBP_CHUNK;
    char *sums = malloc((size_t)(size * channels * (2 * chunks + 3)));
    char *slope = sums + size * channels * 2 * chunks, *shift = slope + size * channels;
    if (!sums)
        return SBP_NO_MEMORY;
    batch_job j = {{p->x, p->gradient, p->weight, p->mean, p->rstd, p->out, p->of_weight, p->of_bias, slope, shift,
                    shift + size * channels, p->outer, channels, p->inner, p->training},
                   p->is_f64 ? &batch_norm_now()->f64 : &batch_norm_now()->f32,
                   p->is_f64 ? &reduce_now()->f64 : &reduce_now()->f32,
                   size,
                   chunks,
                   0,
                   0,
                   sums};
    do_batch(&j);
    free(sums);
    return 0;
}
