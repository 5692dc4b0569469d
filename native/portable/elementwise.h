/* Functions of one and of two numbers, element by element. See "Elementary functions" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_ELEMENTWISE_H
#define SAMEBITS_PORTABLE_ELEMENTWISE_H

#include <stdint.h>

/* In the order of UNARY and BINARY in src/samebits/portable/kernels/elementwise.py. SMALL: of small arguments there is a
 * shorter way to the same value. */
#define SBP_PLAIN(DO, SMALL)                                                                                          \
    SMALL(exp) DO(exp2) DO(expm1) DO(log) DO(log2) DO(log10) DO(log1p) DO(tanh) SMALL(sigmoid) DO(erf) DO(rsqrt)      \
    DO(erfc) DO(ndtr) DO(sinh) DO(cosh) DO(asin) DO(acos) DO(atan) DO(asinh) DO(acosh) DO(atanh)            \
    DO(sinc) DO(logit) DO(log_ndtr) DO(erfinv) DO(lgamma) DO(digamma)
/* Large arguments go another way. */
#define SBP_CIRCLE(DO) DO(sin) DO(cos) DO(tan)
#define SBP_UNARY(DO) SBP_PLAIN(DO, DO) SBP_CIRCLE(DO)
#define SBP_BINARY(DO) DO(pow) DO(atan2) DO(xlogy) DO(xlog1py) DO(hypot) DO(logaddexp) DO(logaddexp2)    \
    DO(tanh_backward) DO(sigmoid_backward)

#define SBP_COUNT(name) +1
enum { SBP_UNARY_COUNT = 0 SBP_UNARY(SBP_COUNT), SBP_BINARY_COUNT = 0 SBP_BINARY(SBP_COUNT) };
#undef SBP_COUNT

typedef struct {
    void (*unary_f32[SBP_UNARY_COUNT])(const float *restrict x, float *restrict out, int64_t n);
    void (*unary_f64[SBP_UNARY_COUNT])(const double *restrict x, double *restrict out, int64_t n);
    void (*binary_f32[SBP_BINARY_COUNT])(const float *restrict x, const float *restrict y, float *restrict out, int64_t n);
    void (*binary_f64[SBP_BINARY_COUNT])(const double *restrict x, const double *restrict y, double *restrict out,
                                         int64_t n);
} sbp_elementwise_table;

#endif
