/* Gradients of batch norms. See "Normalisation" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_BATCH_NORM_H
#define SAMEBITS_PORTABLE_BATCH_NORM_H

#include <stdint.h>

/* (outer, channels, inner) values next to each other; one value for each channel of all else. */
typedef struct {
    const void *x, *gradient, *weight, *mean, *rstd; /* weight: NULL for 1 */
    void *out, *of_weight, *of_bias;                 /* out: NULL if it is not wanted */
    void *slope, *shift, *scale;                     /* of dx, as `terms` finds them */
    int64_t outer, channels, inner, training;
} sbp_batch;

/* All for channels from .. to - 1. */
typedef struct {
    /* The sums of one chunk: of the gradient for each channel, then of gradient (x - mean). SBP_BOTH channels at most. */
    void (*sums)(const sbp_batch *b, int64_t chunk, int64_t from, int64_t to, void *sums);
    void (*terms)(const sbp_batch *b, int64_t from, int64_t to, const void *sums);
    void (*gradient)(const sbp_batch *b, int64_t sample, int64_t from, int64_t to);
} sbp_batch_norm_of;

typedef struct {
    sbp_batch_norm_of f32, f64;
} sbp_batch_norm_table;

#endif
