/* Functions of one and of two numbers, element by element. See "Elementary functions" in docs/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_ELEMENTWISE_H
#define SAMEBITS_PORTABLE_ELEMENTWISE_H

#include <stdint.h>

/* In the order of UNARY in src/samebits/portable/kernels/elementwise.py. */
#define SBP_UNARY(DO)                                                                                                 \
    DO(exp) DO(exp2) DO(expm1) DO(log) DO(log2) DO(log10) DO(log1p) DO(tanh) DO(sigmoid) DO(erf) DO(rsqrt)

#define SBP_COUNT(name) +1
enum { SBP_UNARY_COUNT = 0 SBP_UNARY(SBP_COUNT) };
#undef SBP_COUNT

typedef struct {
    void (*unary_f32[SBP_UNARY_COUNT])(const float *restrict x, float *restrict out, int64_t n);
    void (*unary_f64[SBP_UNARY_COUNT])(const double *restrict x, double *restrict out, int64_t n);
} sbp_elementwise_table;

#endif
