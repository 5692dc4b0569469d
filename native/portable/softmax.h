/* Softmax and its logarithm. See "Softmax" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_SOFTMAX_H
#define SAMEBITS_PORTABLE_SOFTMAX_H

#include <stdint.h>

enum { SBP_SOFTMAX, SBP_LOG_SOFTMAX, SBP_SOFTMAX_GRADIENT, SBP_LOG_SOFTMAX_GRADIENT, SBP_SOFTMAX_KINDS };

/* Rows of n values next to each other: of x, or, for a gradient, of the result x and its gradient. */
typedef void (*sbp_softmax_rows)(const void *x, const void *gradient, void *out, int64_t n, int64_t from, int64_t to);

typedef struct {
    sbp_softmax_rows f32[SBP_SOFTMAX_KINDS], f64[SBP_SOFTMAX_KINDS];
} sbp_softmax_table;

#endif
