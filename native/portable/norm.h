/* Normalisation layers. See "Normalisation" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_NORM_H
#define SAMEBITS_PORTABLE_NORM_H

#include <stdint.h>

/* Rows of n values next to each other. Pointers to weights may be NULL: 1, and +0 for `bias`. */
typedef struct {
    const void *x, *gradient, *weight, *bias;
    void *out, *mean, *rstd;
    int64_t n;
    double eps;
} sbp_layer;

/* (outer, channels, inner) values next to each other; each of m, k, t has one value for each channel. */
typedef struct {
    const void *x, *m, *k, *t;
    void *out;
    int64_t channels, inner;
} sbp_channels;

/* (samples, groups, each, inner) values next to each other. */
typedef struct {
    const void *x, *gradient, *weight, *bias;
    void *out, *mean, *rstd, *sums, *crosses; /* the last two: for each channel of each sample */
    int64_t groups, each, inner;
    double eps;
} sbp_group;

typedef struct {
    void (*layer)(const sbp_layer *l, int64_t from, int64_t to);
    void (*layer_gradient)(const sbp_layer *l, int64_t from, int64_t to);
    void (*layer_weights)(const sbp_layer *l, int64_t from, int64_t to, int64_t column, int64_t count, void *of_weight,
                          void *of_bias);
    /* Parts are rows of `inner` values or, if that is 1, of `channels`. */
    void (*scale)(const sbp_channels *c, int64_t from, int64_t to);
    void (*group)(const sbp_group *g, int64_t from, int64_t to);
    void (*group_gradient)(const sbp_group *g, int64_t from, int64_t to);
} sbp_norm_of;

typedef struct {
    sbp_norm_of f32, f64;
} sbp_norm_table;

#endif
