#include "elementwise.h"
#include "math_functions.h"

#define SBP_UNARY_LOOPS(name)                                                                                         \
    static void SBP(name##_f32)(const float *restrict x, float *restrict out, int64_t n) {                            \
        for (int64_t i = 0; i < n; i++)                                                                               \
            out[i] = sbm_##name##_f32(x[i]);                                                                          \
    }                                                                                                                 \
    static void SBP(name##_f64)(const double *restrict x, double *restrict out, int64_t n) {                          \
        for (int64_t i = 0; i < n; i++)                                                                               \
            out[i] = sbm_##name##_f64(x[i]);                                                                          \
    }
SBP_UNARY(SBP_UNARY_LOOPS)
#undef SBP_UNARY_LOOPS

#define SBP_ENTRY_f32(name) SBP(name##_f32),
#define SBP_ENTRY_f64(name) SBP(name##_f64),
const sbp_elementwise_table SBP(elementwise) = {
    .unary_f32 = {SBP_UNARY(SBP_ENTRY_f32)},
    .unary_f64 = {SBP_UNARY(SBP_ENTRY_f64)},
};
#undef SBP_ENTRY_f32
#undef SBP_ENTRY_f64
