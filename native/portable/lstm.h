/* The steps of one layer and direction of an LSTM. See "Layers that are compositions" in
 * docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_LSTM_H
#define SAMEBITS_PORTABLE_LSTM_H

#include <stdint.h>

#include "gemm.h"

/* A walk through the steps of a layer: at each one a product of the samples with the weight, and what is computed for each
 * sample by itself before it, or after it. */
typedef struct {
    sbp_product product; /* of each step, but for the first operand and the result */
    int64_t steps;
    int is_backward;     /* from the last step to the first, and the product comes last */
    void *job;           /* of the functions */
    int (*set_product)(void *job, int64_t step, sbp_product *product); /* returns 0 where there is none */
    void (*do_samples)(void *job, int64_t step, int64_t from, int64_t to);
} sbp_lstm_walk;

/* Returns 0, or SBP_NO_MEMORY. */
int64_t sbp_lstm_do(const sbp_lstm_walk *walk);

/* One sample at one step. Gates are 4 n numbers, i, f, g, o; all else is n. */
typedef struct {
    const void *x, *bias; /* added to the gates, which hold the product of state and weight; bias may be NULL */
    const void *before;   /* the cell state of the step before; it may be `cell` */
    void *gates, *cell, *tanh_cell, *out;
} sbp_lstm_row;

/* The slope of the output is `of_out` + `of_next`, either of which may be NULL; if both are, it is none. `sum`, which may be
 * `of_next`, is memory for it. `of_cell` holds the slope of the cell state, if it `has_cell`, and then that of the one
 * before. `out`, unless it is NULL, becomes the output again. */
typedef struct {
    const void *gates, *tanh_cell, *before, *of_out, *of_next;
    void *of_cell, *of_gates, *sum, *out;
    int has_cell;
} sbp_lstm_slopes;

typedef struct {
    void (*forward)(const sbp_lstm_row *r, int64_t n);
    void (*backward)(const sbp_lstm_slopes *r, int64_t n);
    void (*add)(const void *x, void *to, int64_t n); /* to = to + x */
} sbp_lstm_of;

typedef struct {
    sbp_lstm_of f32, f64;
} sbp_lstm_table;

#endif
