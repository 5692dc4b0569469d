#include "linalg.h"

/* Every product is rounded: rows are far apart in memory, so nothing tempts a compiler to fuse. */
#define SBP_LINALG_LOOPS(suffix, type, ROOT)                                                                          \
    static void SBP(linalg_reflect_##suffix)(void *rows_, int64_t step, int64_t m, int64_t n, const void *v_,         \
                                             double tau, const void *w_) {                                            \
        const type *v = v_, *restrict w = w_;                                                                         \
        for (int64_t i = 0; i < m; i++) {                                                                             \
            type *restrict row = (type *)rows_ + i * step;                                                            \
            const type factor = v[i] * (type)tau;                                                                     \
            for (int64_t j = 0; j < n; j++)                                                                           \
                row[j] = row[j] - factor * w[j];                                                                      \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    static double SBP(linalg_reflection_##suffix)(void *column_, int64_t step, int64_t m, double squares, void *v_) { \
        type *column = column_, *v = v_;                                                                              \
        const type alpha = column[0], root = ROOT(alpha * alpha + (type)squares);                                     \
        const type beta = squares == 0 ? alpha : alpha < 0 ? root : -root;                                            \
        column[0] = beta;                                                                                             \
        for (int64_t i = 1; i < m; i++) {                                                                             \
            v[i] = squares == 0 ? 0 : v[i] / (alpha - beta);                                                          \
            column[i * step] = 0;                                                                                     \
        }                                                                                                             \
        v[0] = 1;                                                                                                     \
        return squares == 0 ? 0 : (beta - alpha) / beta;                                                              \
    }                                                                                                                 \
                                                                                                                      \
    static void SBP(linalg_subtract_##suffix)(void *x_, int64_t step, int64_t n, const void *sums_) {                 \
        type *x = x_;                                                                                                 \
        const type *sums = sums_;                                                                                     \
        if (step == 1)                                                                                                \
            for (int64_t i = 0; i < n; i++)                                                                           \
                x[i] = x[i] - sums[i];                                                                                \
        else                                                                                                          \
            for (int64_t i = 0; i < n; i++)                                                                           \
                x[i * step] = x[i * step] - sums[i];                                                                  \
    }                                                                                                                 \
                                                                                                                      \
    static void SBP(linalg_divide_##suffix)(void *x_, int64_t step, int64_t n, double by) {                           \
        type *x = x_;                                                                                                 \
        if (step == 1)                                                                                                \
            for (int64_t i = 0; i < n; i++)                                                                           \
                x[i] = x[i] / (type)by;                                                                               \
        else                                                                                                          \
            for (int64_t i = 0; i < n; i++)                                                                           \
                x[i * step] = x[i * step] / (type)by;                                                                 \
    }                                                                                                                 \
                                                                                                                      \
    /* The first of the largest magnitudes; the first NaN is larger than all. */                                      \
    static int64_t SBP(linalg_pivot_##suffix)(const void *x_, int64_t step, int64_t n) {                              \
        const type *x = x_;                                                                                           \
        int64_t found = 0;                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                             \
            if (x[i * step] != x[i * step])                                                                           \
                return i;                                                                                             \
            if (fabs((double)x[i * step]) > fabs((double)x[found * step]))                                            \
                found = i;                                                                                            \
        }                                                                                                             \
        return found;                                                                                                 \
    }

SBP_LINALG_LOOPS(f32, float, sqrtf)
SBP_LINALG_LOOPS(f64, double, sqrt)

const sbp_linalg_table SBP(linalg) = {
    {SBP(linalg_reflect_f32), SBP(linalg_reflection_f32), SBP(linalg_subtract_f32), SBP(linalg_divide_f32), SBP(linalg_pivot_f32)},
    {SBP(linalg_reflect_f64), SBP(linalg_reflection_f64), SBP(linalg_subtract_f64), SBP(linalg_divide_f64), SBP(linalg_pivot_f64)},
};
