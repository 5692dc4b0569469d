#include "attention.h"
#include "softmax_kernel.h"

#define SBP_ATTENTION(T, SBR, SBM)                                                                                     \
    static void SBR(attention_empty)(T *x, int64_t n) {                                                                \
        int has_nan = 0;                                                                                               \
        for (int64_t i = 0; i < n; i++)                                                                                \
            has_nan |= x[i] != x[i];                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                                                \
            x[i] = has_nan ? (T)NAN : 0;                                                                               \
    }                                                                                                                  \
    static void SBR(attention_weights)(void *row, int64_t n, int64_t seen, const void *masks, int64_t step,            \
                                       void *log) {                                                                    \
        T *restrict x = row;                                                                                           \
        const T *restrict mask = masks;                                                                                \
        if (mask && step == 1)                                                                                         \
            for (int64_t i = 0; i < seen; i++)                                                                         \
                x[i] = x[i] + mask[i];                                                                                 \
        else if (mask)                                                                                                 \
            for (int64_t i = 0; i < seen; i++)                                                                         \
                x[i] = x[i] + mask[i * step];                                                                          \
        const T most = SBR(softmax_most)(x, seen);                                                                     \
        for (int64_t i = seen; i < n; i++)                                                                             \
            x[i] = 0;                                                                                                  \
        if (most == -(T)INFINITY) {                                                                                    \
            SBR(attention_empty)(x, seen);                                                                             \
            if (log)                                                                                                   \
                *(T *)log = seen && x[0] != x[0] ? x[0] : most;                                                        \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < seen; i++)                                                                             \
            x[i] = SBM(sbm_exp)(x[i] - most);                                                                          \
        const T sum = SBR(total)(SBP_SUM, x, x, 0, seen);                                                              \
        for (int64_t i = 0; i < seen; i++)                                                                             \
            x[i] = x[i] / sum;                                                                                         \
        if (log)                                                                                                       \
            *(T *)log = most + SBM(sbm_log)(sum);                                                                      \
    }                                                                                                                  \
    static void SBR(attention_slopes)(void *row, const void *weights, int64_t n, int64_t seen) {                       \
        T *restrict x = row;                                                                                           \
        const T *restrict weight = weights;                                                                            \
        const T sum = SBR(total)(SBP_PRODUCTS, x, weight, 0, seen);                                                    \
        for (int64_t i = 0; i < seen; i++)                                                                             \
            x[i] = (x[i] - sum) * weight[i];                                                                           \
        for (int64_t i = seen; i < n; i++)                                                                             \
            x[i] = 0;                                                                                                  \
    }                                                                                                                  \
    static void SBR(attention_add)(void *to, const void *from, int64_t n) {                                            \
        T *restrict a = to;                                                                                            \
        const T *restrict b = from;                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                                                \
            a[i] = a[i] + b[i];                                                                                        \
    }

SBP_ATTENTION(float, SBS_F32, SBS_MATH_F32)
SBP_ATTENTION(double, SBS_F64, SBS_MATH_F64)

const sbp_attention_table SBP(attention) = {
    {SBP(attention_weights_f32), SBP(attention_slopes_f32), SBP(attention_add_f32)},
    {SBP(attention_weights_f64), SBP(attention_slopes_f64), SBP(attention_add_f64)}};
