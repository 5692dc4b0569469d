#include "activation.h"
#include "math_functions.h"
#include "math_normal.h"

#define T float
#define F(name) sba_##name##_f32
#define M(name) sbm_##name##_f32
#include "math_activation.h"
#undef T
#undef F
#undef M
#define T double
#define F(name) sba_##name##_f64
#define M(name) sbm_##name##_f64
#include "math_activation.h"
#undef T
#undef F
#undef M

/* Where the output is an input, each value depends on its own element only, so elements can be computed together. */
#if defined(__clang__)
#define SBP_PLACES_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define SBP_PLACES_APART _Pragma("GCC ivdep")
#endif

#define SBP_ACTIVATION_LOOP(name, type, suffix)                                                                       \
    static void SBP(act_##name##_##suffix)(const type *a, const type *b, const type *c, const type *p, type *out,     \
                                           int64_t n) {                                                               \
        type local[SBP_ACTIVATION_PARAMETERS];                                                                        \
        for (int i = 0; i < SBP_ACTIVATION_PARAMETERS; i++)                                                           \
            local[i] = p[i];                                                                                          \
        SBP_PLACES_APART                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                                               \
            out[i] = sba_##name##_##suffix(a[i], b[i], c[i], local);                                                  \
    }

/* One value of GELU is a chain of operations so long that a processor has too few others at hand meanwhile: two loops
 * of half the chain each are faster. */
#define SBP_STAGE 512
#define SBP_NOT_USED __attribute__((unused))
#define SBP_ACTIVATION_STAGES(name, x, value)                                                                         \
    static void SBP(act_##name##_f32)(const float *a, const float *b, SBP_NOT_USED const float *c,                    \
                                      SBP_NOT_USED const float *p, float *out, int64_t n) {                           \
        float powers[SBP_STAGE];                                                                                      \
        for (int64_t from = 0; from < n; from += SBP_STAGE) {                                                         \
            const int64_t to = n - from < SBP_STAGE ? n : from + SBP_STAGE;                                           \
            for (int64_t i = from; i < to; i++)                                                                       \
                powers[i - from] = sba_normal_power_f32(x[i]);                                                        \
            SBP_PLACES_APART                                                                                          \
            for (int64_t i = from; i < to; i++)                                                                       \
                out[i] = value(a[i], b[i], sba_normal_cdf_by_power_f32(x[i], powers[i - from]));                      \
        }                                                                                                             \
    }
SBP_ACTIVATION_STAGES(gelu, a, sba_gelu_by_cdf_f32)
SBP_ACTIVATION_STAGES(gelu_backward, b, sba_gelu_backward_by_cdf_f32)

#define SBP_ACTIVATION_OTHER(name) SBP_ACTIVATION_LOOP(name, double, f64)
#define SBP_ACTIVATION_LOOPS(name)                                                                                    \
    SBP_ACTIVATION_LOOP(name, float, f32)                                                                             \
    SBP_ACTIVATION_OTHER(name)
SBP_ACTIVATIONS(SBP_ACTIVATION_LOOPS, SBP_ACTIVATION_OTHER)

#define SBP_ACTIVATION_F32(name) SBP(act_##name##_f32),
#define SBP_ACTIVATION_F64(name) SBP(act_##name##_f64),
const sbp_activation_table SBP(activation) = {{SBP_ACTIVATIONS(SBP_ACTIVATION_F32, SBP_ACTIVATION_F32)},
                                              {SBP_ACTIVATIONS(SBP_ACTIVATION_F64, SBP_ACTIVATION_F64)}};
