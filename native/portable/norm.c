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

/* words: is_f64, backward, x, gradient, weight, bias, out, mean, rstd, rows, n; scalars: eps */
SBP_API int64_t samebits_portable_layer_norm(const int64_t *w, const double *scalars) {
    const sbp_norm_of *kernels = w[0] ? &norm_now()->f64 : &norm_now()->f32;
    layer_job j = {w[1] ? kernels->layer_gradient : kernels->layer,
                   {(const void *)w[2], (const void *)w[3], (const void *)w[4], (const void *)w[5], (void *)w[6],
                    (void *)w[7], (void *)w[8], w[10], scalars[0]}};
    sbp_share_out(w[9], 1 + 8192 / w[10], share_layer, &j);
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

/* words: is_f64, x, gradient, mean, rstd, of_weight, of_bias, rows, n */
SBP_API int64_t samebits_portable_layer_norm_weights(const int64_t *w, const double *scalars) {
    weights_job j = {w[0] ? &norm_now()->f64 : &norm_now()->f32,
                     w[0] ? &reduce_now()->f64 : &reduce_now()->f32,
                     {(const void *)w[1], (const void *)w[2], NULL, NULL, NULL, (void *)w[3], (void *)w[4], w[8], 0},
                     w[7],
                     (w[7] + SBP_CHUNK - 1) / SBP_CHUNK,
                     (w[8] + SBP_BOTH - 1) / SBP_BOTH,
                     w[0] ? 8 : 4,
                     (char *)w[5],
                     (char *)w[6],
                     NULL};
    (void)scalars;
    j.partials = malloc((size_t)(2 * j.blocks * j.chunks * SBP_BOTH * j.size));
    if (!j.partials)
        return SBP_NO_MEMORY;
    const int64_t each = (w[7] < SBP_CHUNK ? w[7] : SBP_CHUNK) * SBP_BOTH;
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

/* words: is_f64, x, m, k, t, out, outer, channels, inner */
SBP_API int64_t samebits_portable_channel_norm(const int64_t *w, const double *scalars) {
    channels_job j = {(w[0] ? &norm_now()->f64 : &norm_now()->f32)->scale,
                      {(const void *)w[1], (const void *)w[2], (const void *)w[3], (const void *)w[4], (void *)w[5], w[7],
                       w[8]}};
    const int64_t width = w[8] == 1 ? w[7] : w[8];
    (void)scalars;
    sbp_share_out(w[6] * w[7] * w[8] / width, 1 + 16384 / width, share_channels, &j);
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

/* words: is_f64, x, weight, bias, out, mean, rstd, samples, groups, each, inner; scalars: eps */
SBP_API int64_t samebits_portable_group_norm(const int64_t *w, const double *scalars) {
    group_job j = {(w[0] ? &norm_now()->f64 : &norm_now()->f32)->group,
                   {(const void *)w[1], NULL, (const void *)w[2], (const void *)w[3], (void *)w[4], (void *)w[5],
                    (void *)w[6], NULL, NULL, w[8], w[9], w[10], scalars[0]}};
    sbp_share_out(w[7] * w[8], 1 + 8192 / (w[9] * w[10]), share_groups, &j);
    return 0;
}

/* The sums of columns of `a` (times `b`, if not NULL): matrices of this many rows. */
static int64_t sum_columns(const int64_t is_f64, const void *a, const void *b, void *out, int64_t rows, int64_t columns) {
    const int64_t words[] = {b ? SBP_PRODUCTS : SBP_SUM, is_f64,  (int64_t)a, (int64_t)b, 0,       (int64_t)out, 2, 1,
                             rows,                       columns, columns,    1,          columns, 1};
    return samebits_portable_reduce(words, NULL);
}

static void repeat(const char *from, int64_t n, int64_t each, int64_t size, char *to) {
    for (int64_t i = 0; i < n * each; i++)
        memcpy(to + size * i, from + size * (i / each), (size_t)size);
}

/* words: is_f64, x, gradient, weight, mean, rstd, out, of_weight, of_bias, samples, groups, each, inner */
SBP_API int64_t samebits_portable_group_norm_gradient(const int64_t *w, const double *scalars) {
    const int64_t rows = w[9] * w[10], channels = w[10] * w[11], size = w[0] ? 8 : 4, bytes = size * rows * w[11];
    char *sums = malloc((size_t)(3 * bytes)), *crosses = sums + bytes, *rstds = crosses + bytes;
    (void)scalars;
    if (!sums)
        return SBP_NO_MEMORY;
    group_job j = {(w[0] ? &norm_now()->f64 : &norm_now()->f32)->group_gradient,
                   {(const void *)w[1], (const void *)w[2], (const void *)w[3], NULL, (void *)w[6], (void *)w[4],
                    (void *)w[5], sums, crosses, w[10], w[11], w[12], 0}};
    sbp_share_out(rows, 1 + 8192 / (w[11] * w[12]), share_groups, &j);
    repeat((const char *)w[5], rows, w[11], size, rstds);
    int64_t failed = sum_columns(w[0], crosses, rstds, (void *)w[7], w[9], channels);
    failed = failed ? failed : sum_columns(w[0], sums, NULL, (void *)w[8], w[9], channels);
    free(sums);
    return failed;
}
