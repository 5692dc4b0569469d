#include "norm.h"

#include <stdlib.h>
#include <string.h>

#include "isa.h"
#include "portable.h"
#include "reduce.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_norm_table, norm)
SBP_DECLARE_TABLES(sbp_reduce_table, reduce)

typedef struct {
    void (*kernel)(const sbp_layer *l, int64_t from, int64_t to);
    sbp_layer layer;
} layer_job;

static void share_layer(void *context, int64_t from, int64_t to) {
    const layer_job *j = context;
    j->kernel(&j->layer, from, to);
}

static const sbp_norm_of *kernels_of(int64_t is_f64) { return is_f64 ? &norm_now()->f64 : &norm_now()->f32; }

int64_t samebits_portable_layer_norm(const sbp_layer_norm_parameters *p) {
    const sbp_norm_of *kernels = kernels_of(p->is_f64);
    layer_job j = {p->is_backward ? kernels->layer_gradient : kernels->layer,
                   {p->x, p->gradient, p->weight, p->bias, p->out, p->mean, p->rstd, p->n, p->eps}};
    sbp_share_out(p->rows, 1 + 8192 / p->n, share_layer, &j);
    return 0;
}

typedef struct {
    const sbp_norm_of *kernels;
    const sbp_reduce_of *reduce;
    sbp_layer layer;
    int64_t rows, chunks, blocks, size;
    char *of_weight, *of_bias, *partials; /* partials: by block, for both gradients, by chunk */
} weights_job;

static int64_t weights_width(const weights_job *j, int64_t block) {
    const int64_t left = j->layer.n - block * SBP_BOTH;
    return left < SBP_BOTH ? left : SBP_BOTH;
}

static char *weights_sums(const weights_job *j, int64_t block, int of_bias) {
    return j->partials + j->size * j->chunks * SBP_BOTH * (2 * block + of_bias);
}

static void share_weights(void *context, int64_t from, int64_t to) {
    const weights_job *j = context;
    for (; from < to; from++) {
        const int64_t block = from % j->blocks, chunk = from / j->blocks, width = weights_width(j, block);
        const int64_t row = chunk * SBP_CHUNK, end = row + SBP_CHUNK < j->rows ? row + SBP_CHUNK : j->rows;
        j->kernels->layer_weights(&j->layer, row, end, block * SBP_BOTH, width,
                                  weights_sums(j, block, 0) + j->size * chunk * width,
                                  weights_sums(j, block, 1) + j->size * chunk * width);
    }
}

static void share_weight_trees(void *context, int64_t from, int64_t to) {
    const weights_job *j = context;
    for (; from < to; from++) {
        const int64_t width = weights_width(j, from);
        for (int of_bias = 0; of_bias < 2; of_bias++) {
            char *sums = weights_sums(j, from, of_bias);
            j->reduce->tree(SBP_SUM, sums, j->chunks, width);
            memcpy((of_bias ? j->of_bias : j->of_weight) + j->size * from * SBP_BOTH, sums, (size_t)(width * j->size));
        }
    }
}

int64_t samebits_portable_layer_norm_weights(const sbp_layer_norm_weights_parameters *p) {
    weights_job j = {kernels_of(p->is_f64),
                     p->is_f64 ? &reduce_now()->f64 : &reduce_now()->f32,
                     {p->x, p->gradient, NULL, NULL, NULL, (void *)p->mean, (void *)p->rstd, p->n, 0},
                     p->rows,
                     (p->rows + SBP_CHUNK - 1) / SBP_CHUNK,
                     (p->n + SBP_BOTH - 1) / SBP_BOTH,
                     p->is_f64 ? 8 : 4,
                     p->of_weight,
                     p->of_bias,
                     NULL};
    j.partials = malloc((size_t)(2 * j.blocks * j.chunks * SBP_BOTH * j.size));
    if (!j.partials)
        return SBP_NO_MEMORY;
    const int64_t each = (p->rows < SBP_CHUNK ? p->rows : SBP_CHUNK) * SBP_BOTH;
    sbp_share_out(j.chunks * j.blocks, 1 + 16384 / each, share_weights, &j);
    sbp_share_out(j.blocks, 1 + 16384 / (j.chunks * SBP_BOTH), share_weight_trees, &j);
    free(j.partials);
    return 0;
}

typedef struct {
    void (*kernel)(const sbp_channels *c, int64_t from, int64_t to);
    sbp_channels channels;
} channels_job;

static void share_channels(void *context, int64_t from, int64_t to) {
    const channels_job *j = context;
    j->kernel(&j->channels, from, to);
}

int64_t samebits_portable_channel_norm(const sbp_channel_norm_parameters *p) {
    channels_job j = {kernels_of(p->is_f64)->scale,
                      {p->x, p->mean, p->scale, p->shift, p->out, p->channels, p->inner}};
    const int64_t width = p->inner == 1 ? p->channels : p->inner;
    sbp_share_out(p->outer * p->channels * p->inner / width, 1 + 16384 / width, share_channels, &j);
    return 0;
}

typedef struct {
    void (*kernel)(const sbp_group *g, int64_t from, int64_t to);
    sbp_group group;
} group_job;

static void share_groups(void *context, int64_t from, int64_t to) {
    const group_job *j = context;
    j->kernel(&j->group, from, to);
}

int64_t samebits_portable_group_norm(const sbp_group_norm_parameters *p) {
    group_job j = {kernels_of(p->is_f64)->group,
                   {p->x, NULL, p->weight, p->bias, p->out, p->mean, p->rstd, NULL, NULL, p->groups, p->each, p->inner,
                    p->eps}};
    sbp_share_out(p->samples * p->groups, 1 + 8192 / (p->each * p->inner), share_groups, &j);
    return 0;
}

/* The sums of columns of `a` (times `b`, if not NULL): matrices of this many rows. */
static int64_t sum_columns(const int64_t is_f64, const void *a, const void *b, void *out, int64_t rows, int64_t columns) {
    const sbp_reduce_parameters sums = {
        .kind = b ? SBP_PRODUCTS : SBP_SUM, .is_f64 = is_f64, .a = a, .b = b, .out = out, .reduced = 1, .axes = 2};
    const int64_t extents[] = {rows, columns, columns, 1, columns, 1};
    return sbp_reduce(&sums, extents);
}

static void repeat(const char *from, int64_t n, int64_t each, int64_t size, char *to) {
    for (int64_t i = 0; i < n * each; i++)
        memcpy(to + size * i, from + size * (i / each), (size_t)size);
}

int64_t samebits_portable_group_norm_gradient(const sbp_group_norm_gradient_parameters *p) {
    const int64_t rows = p->samples * p->groups, channels = p->groups * p->each, size = p->is_f64 ? 8 : 4;
    const int64_t bytes = size * rows * p->each;
    char *sums = malloc((size_t)(3 * bytes)), *crosses = sums + bytes, *rstds = crosses + bytes;
    if (!sums)
        return SBP_NO_MEMORY;
    group_job j = {kernels_of(p->is_f64)->group_gradient,
                   {p->x, p->gradient, p->weight, NULL, p->out, (void *)p->mean, (void *)p->rstd, sums, crosses,
                    p->groups, p->each, p->inner, 0}};
    sbp_share_out(rows, 1 + 8192 / (p->each * p->inner), share_groups, &j);
    repeat(p->rstd, rows, p->each, size, rstds);
    int64_t failed = sum_columns(p->is_f64, crosses, rstds, p->of_weight, p->samples, channels);
    failed = failed ? failed : sum_columns(p->is_f64, sums, NULL, p->of_bias, p->samples, channels);
    free(sums);
    return failed;
}
