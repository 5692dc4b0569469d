#include "optimizer.h"

/* a / b, rounded correctly, by fused operations, which take less time than a division: for a >= 0, inf or
 * NaN, b in 2^-20 .. 2^20 and `over`, 1 / b rounded correctly. The quotient that two steps leave is a neighbour of a / b
 * or a / b itself, what it leaves of a is exact, and then the third step rounds as division does (Markstein,
 * Computation of elementary functions on the IBM RISC System/6000 processor, 1990, theorem on quotients). a is a square
 * root, which is too large for subnormal quotients. */
#define SBP_DIVIDE(type, fma_of)                                                                                      \
    static inline __attribute__((always_inline)) type SBP(divide_##type)(type a, type b, type over) {                 \
        const type rough = a * over, near = fma_of(fma_of(-rough, b, a), over, rough);                                \
        const type quotient = fma_of(fma_of(-near, b, a), over, near);                                                \
        return a - a == 0 ? quotient : a;                                                                             \
    }
#if defined(SBP_IS_AVX512) || defined(SBP_IS_AVX2) || defined(SBP_IS_NEON)
#define SBP_FAST_FMA 1
#else
#define SBP_FAST_FMA 0
#endif
SBP_DIVIDE(float, fmaf)
SBP_DIVIDE(double, fma)

/* The options of a step are known before the loop: each combination of them is a loop of its own. */
#define SBP_ADAM(name, type, root_of)                                                                                 \
    static inline __attribute__((always_inline)) void SBP(name##_loop)(const sbp_step *s, const sbp_step_tensor *t,   \
                                                                       int64_t from, int64_t to, int decays,          \
                                                                       int highest, int near, int plain) {            \
        type *restrict p = t->param, *restrict m = t->first, *restrict v = t->second, *restrict h = t->highest;       \
        const type *restrict g = t->grad;                                                                             \
        const type sign = s->flags & SBP_MAXIMIZE ? -1 : 1, shrink = (type)s->shrink, decay = (type)s->decay;         \
        const type weight = (type)s->weight, rest = 1 - weight, keep = (type)s->keep, gain = (type)s->gain;           \
        const type eps = (type)s->eps, step = (type)t->minus_step, root = (type)t->root, over = 1 / root;             \
        for (int64_t i = from; i < to; i++) {                                                                         \
            const type start = p[i] * shrink;                                                                         \
            type grad = sign * g[i];                                                                                  \
            if (decays)                                                                                               \
                grad = grad + decay * start;                                                                          \
            const type apart = grad - m[i];                                                                           \
            const type first = near ? m[i] + weight * apart : grad - apart * rest;                                    \
            const type second = v[i] * keep + (gain * grad) * grad;                                                   \
            type used = second;                                                                                       \
            if (highest) {                                                                                            \
                used = second > h[i] || second != second ? second : h[i];                                             \
                h[i] = used;                                                                                          \
            }                                                                                                         \
            const type size = root_of(used);                                                                          \
            const type below = (plain ? size / root : SBP(divide_##type)(size, root, over)) + eps;                    \
            m[i] = first;                                                                                             \
            v[i] = second;                                                                                            \
            p[i] = start + (step * first) / below;                                                                    \
        }                                                                                                             \
    }                                                                                                                 \
    static void SBP(name)(const sbp_step *s, const sbp_step_tensor *t, int64_t from, int64_t to) {                    \
        const type weight = (type)s->weight;                                                                          \
        const int near = weight > -(type)0.5 && weight < (type)0.5, highest = !!(s->flags & SBP_AMSGRAD);             \
        const int decays = !!(s->flags & SBP_DECAY_GRADIENT);                                                         \
        if (!SBP_FAST_FMA || !((type)t->root >= (type)0x1p-20 && (type)t->root <= (type)0x1p20))                      \
            SBP(name##_loop)(s, t, from, to, decays, highest, near, 1);                                               \
        else if (near && !decays && !highest)                                                                         \
            SBP(name##_loop)(s, t, from, to, 0, 0, 1, 0);                                                             \
        else if (near && !highest)                                                                                    \
            SBP(name##_loop)(s, t, from, to, 1, 0, 1, 0);                                                             \
        else                                                                                                          \
            SBP(name##_loop)(s, t, from, to, decays, highest, near, 0);                                               \
    }

#define SBP_SGD(name, type)                                                                                           \
    static inline __attribute__((always_inline)) void SBP(name##_loop)(const sbp_step *s, const sbp_step_tensor *t,   \
                                                                       int64_t from, int64_t to, int decays,          \
                                                                       int momentum, int nesterov) {                  \
        type *restrict p = t->param, *restrict m = t->first;                                                          \
        const type *restrict g = t->grad;                                                                             \
        const type sign = s->flags & SBP_MAXIMIZE ? -1 : 1, decay = (type)s->decay, keep = (type)s->keep;             \
        const type gain = (type)s->gain, step = (type)t->minus_step;                                                  \
        const int begins = !!(s->flags & SBP_FIRST_STEP);                                                             \
        for (int64_t i = from; i < to; i++) {                                                                         \
            type grad = sign * g[i];                                                                                  \
            if (decays)                                                                                               \
                grad = grad + decay * p[i];                                                                           \
            if (momentum) {                                                                                           \
                m[i] = begins ? grad : m[i] * keep + gain * grad;                                                     \
                grad = nesterov ? grad + keep * m[i] : m[i];                                                          \
            }                                                                                                         \
            p[i] = p[i] + step * grad;                                                                                \
        }                                                                                                             \
    }                                                                                                                 \
    static void SBP(name)(const sbp_step *s, const sbp_step_tensor *t, int64_t from, int64_t to) {                    \
        const int decays = !!(s->flags & SBP_DECAY_GRADIENT), nesterov = !!(s->flags & SBP_NESTEROV);                 \
        if (s->flags & SBP_MOMENTUM)                                                                                  \
            SBP(name##_loop)(s, t, from, to, decays, 1, nesterov);                                                    \
        else                                                                                                          \
            SBP(name##_loop)(s, t, from, to, decays, 0, 0);                                                           \
    }

SBP_ADAM(adam_f32, float, sqrtf)
SBP_ADAM(adam_f64, double, sqrt)
SBP_SGD(sgd_f32, float)
SBP_SGD(sgd_f64, double)

const sbp_optimizer_table SBP(optimizer) = {SBP(adam_f32), SBP(adam_f64), SBP(sgd_f32), SBP(sgd_f64)};

#undef SBP_FAST_FMA
