/* Products and quotients of complex numbers. See "Complex numbers" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_PAIRS_H
#define SAMEBITS_PORTABLE_PAIRS_H

#include <stdint.h>

enum { SBP_PAIRS_PRODUCT, SBP_PAIRS_QUOTIENT, SBP_PAIRS, SBP_PAIRS_BLOCK = 128 };

typedef struct {
    void (*f32[SBP_PAIRS])(const float *restrict x, const float *restrict y, float *restrict out, int64_t n);
    void (*f64[SBP_PAIRS])(const double *restrict x, const double *restrict y, double *restrict out, int64_t n);
} sbp_pairs_table;

#endif
