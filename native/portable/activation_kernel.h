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

#define SBP_ACTIVATION_LOOP(name, type, suffix)                                                                       \
    static void SBP(act_##name##_##suffix)(const type *restrict a, const type *restrict b, const type *restrict c,    \
                                           const type *restrict p, type *restrict out, int64_t n) {                   \
        type local[SBP_ACTIVATION_PARAMETERS];                                                                        \
        for (int i = 0; i < SBP_ACTIVATION_PARAMETERS; i++)                                                           \
            local[i] = p[i];                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                                               \
            out[i] = sba_##name##_##suffix(a[i], b[i], c[i], local);                                                  \
    }
#define SBP_ACTIVATION_LOOPS(name)                                                                                    \
    SBP_ACTIVATION_LOOP(name, float, f32)                                                                             \
    SBP_ACTIVATION_LOOP(name, double, f64)
SBP_ACTIVATIONS(SBP_ACTIVATION_LOOPS)

#define SBP_ACTIVATION_F32(name) SBP(act_##name##_f32),
#define SBP_ACTIVATION_F64(name) SBP(act_##name##_f64),
const sbp_activation_table SBP(activation) = {{SBP_ACTIVATIONS(SBP_ACTIVATION_F32)},
                                              {SBP_ACTIVATIONS(SBP_ACTIVATION_F64)}};
