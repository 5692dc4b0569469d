#ifndef SAMEBITS_PORTABLE_SOFTMAX_KERNEL_H
#define SAMEBITS_PORTABLE_SOFTMAX_KERNEL_H

#include "math_functions.h"
#include "reduce_kernel.h"
#include "softmax.h"

#define SBS_ROWS 16 /* short rows go through each step together: one's chain of operations hides that of another */

/* Returns how many rows of n values to take, of those that are left. */
static inline int64_t SBP(sbs_rows)(int64_t n, int64_t left) {
    const int64_t fitting = 2048 / n, rows = fitting < 1 ? 1 : fitting < SBS_ROWS ? fitting : SBS_ROWS;
    return rows < left ? rows : left;
}

#define SBS(T, SBR, SBM)                                                                                              \
    /* The greatest value, +0 for either zero; NaNs do not count. */                                                  \
    static T SBR(softmax_most)(const T *x, int64_t n) {                                                               \
        enum { WIDTH = (int)(SBP_VECTOR / sizeof(T)), PIECES = SBP_LANES / WIDTH };                                   \
        SBR(vec) lane[PIECES];                                                                                        \
        T one[WIDTH];                                                                                                 \
        int64_t i = 0;                                                                                                \
        for (int p = 0; p < PIECES; p++)                                                                              \
            lane[p] = SBR(vec_set)(-(T)INFINITY);                                                                     \
        for (; i + SBP_LANES <= n; i += SBP_LANES)                                                                    \
            for (int p = 0; p < PIECES; p++)                                                                          \
                lane[p] = SBR(vec_most)(SBR(vec_load)(x + i + p * WIDTH), lane[p]);                                   \
        for (; i < n; i += WIDTH)                                                                                     \
            lane[0] = SBR(vec_until)(n - i, SBR(vec_most)(SBR(vec_part)(x + i, n - i), lane[0]), lane[0]);            \
        for (int pieces = PIECES; pieces > 1; pieces /= 2)                                                            \
            for (int p = 0; p < pieces / 2; p++)                                                                      \
                lane[p] = SBR(vec_most)(lane[p], lane[p + pieces / 2]);                                               \
        memcpy(one, lane, sizeof one);                                                                                \
        for (int h = WIDTH / 2; h; h /= 2)                                                                            \
            for (int l = 0; l < h; l++)                                                                               \
                one[l] = one[l + h] > one[l] ? one[l + h] : one[l];                                                   \
        return one[0] + 0;                                                                                            \
    }                                                                                                                 \
                                                                                                                      \
    /* Into `out` exp(x - the greatest value) of some rows, and their sums. */                                        \
    static void SBR(softmax_sums)(const T *x, T *out, int64_t n, int64_t rows, T *most, T *sums) {                    \
        for (int64_t row = 0; row < rows; row++)                                                                      \
            most[row] = SBR(softmax_most)(x + row * n, n);                                                            \
        for (int64_t row = 0; row < rows; row++) {                                                                    \
            const T greatest = most[row];                                                                             \
            for (int64_t i = row * n; i < (row + 1) * n; i++)                                                         \
                out[i] = SBM(sbm_exp)(x[i] - greatest);                                                               \
        }                                                                                                             \
        for (int64_t row = 0; row < rows; row++)                                                                      \
            sums[row] = SBR(total)(SBP_SUM, out + row * n, out + row * n, 0, n);                                      \
    }                                                                                                                 \
                                                                                                                      \
    static void SBR(softmax)(const void *xs, const void *unused, void *outs, int64_t n, int64_t from, int64_t to) {   \
        T most[SBS_ROWS], sums[SBS_ROWS];                                                                             \
        (void)unused;                                                                                                 \
        for (int64_t count; from < to; from += count) {                                                               \
            count = SBP(sbs_rows)(n, to - from);                                                                      \
            T *out = (T *)outs + from * n;                                                                            \
            SBR(softmax_sums)((const T *)xs + from * n, out, n, count, most, sums);                                   \
            for (int64_t row = 0; row < count; row++) {                                                               \
                const T sum = sums[row];                                                                              \
                for (int64_t i = row * n; i < (row + 1) * n; i++)                                                     \
                    out[i] = out[i] / sum;                                                                            \
            }                                                                                                         \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    static void SBR(log_softmax)(const void *xs, const void *unused, void *outs, int64_t n, int64_t from,             \
                                 int64_t to) {                                                                        \
        T most[SBS_ROWS], sums[SBS_ROWS];                                                                             \
        (void)unused;                                                                                                 \
        for (int row = 0; row < SBS_ROWS; row++)                                                                      \
            sums[row] = 1;                                                                                            \
        for (int64_t count; from < to; from += count) {                                                               \
            count = SBP(sbs_rows)(n, to - from);                                                                      \
            const T *x = (const T *)xs + from * n;                                                                    \
            T *out = (T *)outs + from * n;                                                                            \
            SBR(softmax_sums)(x, out, n, count, most, sums);                                                          \
            for (int row = 0; row < SBS_ROWS; row++)                                                                  \
                sums[row] = SBM(sbm_log)(sums[row]);                                                                  \
            for (int64_t row = 0; row < count; row++) {                                                               \
                const T greatest = most[row], log = sums[row];                                                        \
                for (int64_t i = row * n; i < (row + 1) * n; i++)                                                     \
                    out[i] = (x[i] - greatest) - log;                                                                 \
            }                                                                                                         \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    static void SBR(softmax_gradient)(const void *ys, const void *gradients, void *outs, int64_t n, int64_t from,     \
                                      int64_t to) {                                                                   \
        T sums[SBS_ROWS];                                                                                             \
        for (int64_t count; from < to; from += count) {                                                               \
            count = SBP(sbs_rows)(n, to - from);                                                                      \
            const T *y = (const T *)ys + from * n, *gradient = (const T *)gradients + from * n;                       \
            T *out = (T *)outs + from * n;                                                                            \
            for (int64_t row = 0; row < count; row++)                                                                 \
                sums[row] = SBR(total)(SBP_PRODUCTS, gradient + row * n, y + row * n, 0, n);                          \
            for (int64_t row = 0; row < count; row++) {                                                               \
                const T sum = sums[row];                                                                              \
                for (int64_t i = row * n; i < (row + 1) * n; i++)                                                     \
                    out[i] = (gradient[i] - sum) * y[i];                                                              \
            }                                                                                                         \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    /* One row after the other: the exponentials do not wait for the sum. */                                          \
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
