#include "optimizer.h"

/* What a step does is known before the loop: each combination is a loop of its own. */
#define SBP_ADAM(name, type, root_of)                                                                                 \
    static inline __attribute__((always_inline)) void SBP(name##_loop)(const sbp_step *s, const sbp_step_tensor *t,   \
                                                                       int64_t from, int64_t to, int decays,          \
                                                                       int highest, int near) {                       \
        type *restrict p = t->param, *restrict m = t->first, *restrict v = t->second, *restrict h = t->highest;       \
        const type *restrict g = t->grad;                                                                             \
        const type sign = s->flags & SBP_MAXIMIZE ? -1 : 1, shrink = (type)s->shrink, decay = (type)s->decay;         \
        const type weight = (type)s->weight, rest = 1 - weight, keep = (type)s->keep, gain = (type)s->gain;           \
        const type eps = (type)s->eps, step = (type)t->minus_step, root = (type)t->root;                              \
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
            const type below = root_of(used) / root + eps;                                                            \
            m[i] = first;                                                                                             \
            v[i] = second;                                                                                            \
            p[i] = start + (step * first) / below;                                                                    \
        }                                                                                                             \
    }                                                                                                                 \
    static void SBP(name)(const sbp_step *s, const sbp_step_tensor *t, int64_t from, int64_t to) {                    \
        const type weight = (type)s->weight;                                                                          \
        const int near = weight > -(type)0.5 && weight < (type)0.5, highest = !!(s->flags & SBP_AMSGRAD);             \
        const int decays = !!(s->flags & SBP_DECAY_GRADIENT);                                                         \
        if (near && !decays && !highest)                                                                              \
            SBP(name##_loop)(s, t, from, to, 0, 0, 1);                                                                \
        else if (near && !highest)                                                                                    \
            SBP(name##_loop)(s, t, from, to, 1, 0, 1);                                                                \
        else if (near)                                                                                                \
            SBP(name##_loop)(s, t, from, to, decays, 1, 1);                                                           \
        else                                                                                                          \
            SBP(name##_loop)(s, t, from, to, decays, highest, 0);                                                     \
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
