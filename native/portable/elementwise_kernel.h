#include "elementwise.h"
#include "math_functions.h"

#define SBP_UNARY_LOOP(name, type, suffix)                                                                            \
    static void SBP(name##_##suffix)(const type *restrict x, type *restrict out, int64_t n) {                         \
        for (int64_t i = 0; i < n; i++)                                                                               \
            out[i] = sbm_##name##_##suffix(x[i]);                                                                     \
    }

/* A block at a time as if all were small, and again if one is not. */
#define SBP_BLOCK 512
#define SBP_SMALL_LOOP(name, type, suffix)                                                                            \
    static void SBP(name##_##suffix)(const type *restrict x, type *restrict out, int64_t n) {                         \
        for (int64_t from = 0; from < n; from += SBP_BLOCK) {                                                         \
            const int64_t to = n - from < SBP_BLOCK ? n : from + SBP_BLOCK;                                           \
            int large = 0;                                                                                            \
            for (int64_t i = from; i < to; i++) {                                                                     \
                out[i] = sbm_##name##_small_##suffix(x[i]);                                                           \
                large |= sbm_abs_##suffix(x[i]) > SBM_SMALL_##suffix;                                                 \
            }                                                                                                         \
            for (int64_t i = from; large && i < to; i++)                                                              \
                out[i] = sbm_##name##_##suffix(x[i]);                                                                 \
        }                                                                                                             \
    }

/* All as if they were small, then those that are not. */
#define SBP_CIRCLE_LOOP(name, type, suffix)                                                                           \
    static void SBP(name##_##suffix)(const type *restrict x, type *restrict out, int64_t n) {                         \
        int64_t large = 0;                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                             \
            out[i] = sbm_##name##_small_##suffix(x[i]);                                                               \
            large += sbm_abs_##suffix(x[i]) > (type)SBM_CIRCLE_LIMIT;                                                 \
        }                                                                                                             \
        for (int64_t i = 0; large && i < n; i++)                                                                      \
            if (sbm_abs_##suffix(x[i]) > (type)SBM_CIRCLE_LIMIT)                                                      \
                out[i] = sbm_##name##_##suffix(x[i]);                                                                 \
    }

#define SBP_BINARY_LOOP(name, type, suffix)                                                                           \
    static void SBP(name##_##suffix)(const type *restrict x, const type *restrict y, type *restrict out, int64_t n) { \
        for (int64_t i = 0; i < n; i++)                                                                               \
            out[i] = sbm_##name##_##suffix(x[i], y[i]);                                                               \
    }

#define SBP_PLAIN_LOOPS(name) SBP_UNARY_LOOP(name, float, f32) SBP_UNARY_LOOP(name, double, f64)
#define SBP_SMALL_LOOPS(name) SBP_SMALL_LOOP(name, float, f32) SBP_SMALL_LOOP(name, double, f64)
#define SBP_CIRCLE_LOOPS(name) SBP_CIRCLE_LOOP(name, float, f32) SBP_CIRCLE_LOOP(name, double, f64)
#define SBP_BINARY_LOOPS(name) SBP_BINARY_LOOP(name, float, f32) SBP_BINARY_LOOP(name, double, f64)
SBP_PLAIN(SBP_PLAIN_LOOPS, SBP_SMALL_LOOPS)
SBP_CIRCLE(SBP_CIRCLE_LOOPS)
SBP_BINARY(SBP_BINARY_LOOPS)

#define SBP_ENTRY_f32(name) SBP(name##_f32),
#define SBP_ENTRY_f64(name) SBP(name##_f64),
const sbp_elementwise_table SBP(elementwise) = {
    .unary_f32 = {SBP_UNARY(SBP_ENTRY_f32)},
    .unary_f64 = {SBP_UNARY(SBP_ENTRY_f64)},
    .binary_f32 = {SBP_BINARY(SBP_ENTRY_f32)},
    .binary_f64 = {SBP_BINARY(SBP_ENTRY_f64)},
};
