#ifndef SAMEBITS_PORTABLE_SOFTMAX_KERNEL_H
#define SAMEBITS_PORTABLE_SOFTMAX_KERNEL_H

#include "math_functions.h"
#include "reduce_kernel.h"
#include "softmax.h"

#define SBR_VECTORS(T) ((int)(SBP_LANES * sizeof(T) / SBP_VECTOR))

#define SBS(T, SBR, SBM)                                                                                              \
    /* The greatest value, +0 for either zero; NaNs do not count. */                                                  \
    static T SBR(softmax_most)(const T *x, int64_t n) {                                                               \
        SBR(vec) lane[SBR_VECTORS(T)];                                                                                \
        T one[SBP_LANES];                                                                                             \
        int64_t i = 0;                                                                                                \
        for (int p = 0; p < SBR_VECTORS(T); p++)                                                                      \
            lane[p] = (SBR(vec)){0} - (T)INFINITY;                                                                    \
        for (; i + SBP_LANES <= n; i += SBP_LANES)                                                                    \
            for (int p = 0; p < SBR_VECTORS(T); p++) {                                                                \
                const SBR(vec) next = SBR(vec_load)(x + i + p * (SBP_LANES / SBR_VECTORS(T)));                        \
                const __typeof__(next > next) is_more = next > lane[p];                                               \
                lane[p] = (SBR(vec))(((__typeof__(is_more))next & is_more) | ((__typeof__(is_more))lane[p] & ~is_more));\
            }                                                                                                         \
        memcpy(one, lane, sizeof one);                                                                                \
        for (; i < n; i++)                                                                                            \
            one[0] = x[i] > one[0] ? x[i] : one[0];                                                                   \
        for (int l = 1; l < SBP_LANES; l++)                                                                           \
            one[0] = one[l] > one[0] ? one[l] : one[0];                                                               \
        return one[0] + 0;                                                                                            \
    }                                                                                                                 \
                                                                                                                      \
    static void SBR(softmax)(const void *xs, const void *unused, void *outs, int64_t n, int64_t from, int64_t to) {   \
        (void)unused;                                                                                                 \
        for (int64_t row = from; row < to; row++) {                                                                   \
            const T *x = (const T *)xs + row * n, most = SBR(softmax_most)(x, n);                                     \
            T *out = (T *)outs + row * n;                                                                             \
            for (int64_t i = 0; i < n; i++)                                                                           \
                out[i] = SBM(sbm_exp)(x[i] - most);                                                                   \
            const T sum = SBR(total)(SBP_SUM, out, out, 0, n);                                                        \
            for (int64_t i = 0; i < n; i++)                                                                           \
                out[i] = out[i] / sum;                                                                                \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    static void SBR(log_softmax)(const void *xs, const void *unused, void *outs, int64_t n, int64_t from, int64_t to) {\
        (void)unused;                                                                                                 \
        for (int64_t row = from; row < to; row++) {                                                                   \
            const T *x = (const T *)xs + row * n, most = SBR(softmax_most)(x, n);                                     \
            T *out = (T *)outs + row * n;                                                                             \
            for (int64_t i = 0; i < n; i++)                                                                           \
                out[i] = SBM(sbm_exp)(x[i] - most);                                                                   \
            const T log = SBM(sbm_log)(SBR(total)(SBP_SUM, out, out, 0, n));                                          \
            for (int64_t i = 0; i < n; i++)                                                                           \
                out[i] = (x[i] - most) - log;                                                                         \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    static void SBR(softmax_gradient)(const void *ys, const void *gradients, void *outs, int64_t n, int64_t from,     \
                                      int64_t to) {                                                                   \
        for (int64_t row = from; row < to; row++) {                                                                   \
            const T *y = (const T *)ys + row * n, *gradient = (const T *)gradients + row * n;                         \
            T *out = (T *)outs + row * n;                                                                             \
            const T sum = SBR(total)(SBP_PRODUCTS, gradient, y, 0, n);                                                \
            for (int64_t i = 0; i < n; i++)                                                                           \
                out[i] = (gradient[i] - sum) * y[i];                                                                  \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    static void SBR(log_softmax_gradient)(const void *ys, const void *gradients, void *outs, int64_t n, int64_t from, \
                                          int64_t to) {                                                               \
        for (int64_t row = from; row < to; row++) {                                                                   \
            const T *y = (const T *)ys + row * n, *gradient = (const T *)gradients + row * n;                         \
            T *out = (T *)outs + row * n;                                                                             \
            const T sum = SBR(total)(SBP_SUM, gradient, gradient, 0, n);                                              \
            for (int64_t i = 0; i < n; i++)                                                                           \
                out[i] = gradient[i] - SBM(sbm_exp)(y[i]) * sum;                                                      \
        }                                                                                                             \
    }

#define SBS_F32(name) SBP(name##_f32)
#define SBS_F64(name) SBP(name##_f64)
#define SBS_MATH_F32(name) name##_f32
#define SBS_MATH_F64(name) name##_f64
SBS(float, SBS_F32, SBS_MATH_F32)
SBS(double, SBS_F64, SBS_MATH_F64)

const sbp_softmax_table SBP(softmax) = {
    {SBP(softmax_f32), SBP(log_softmax_f32), SBP(softmax_gradient_f32), SBP(log_softmax_gradient_f32)},
    {SBP(softmax_f64), SBP(log_softmax_f64), SBP(softmax_gradient_f64), SBP(log_softmax_gradient_f64)},
};

#endif
