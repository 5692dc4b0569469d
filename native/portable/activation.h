/* Activations, elementwise losses and scaled arithmetic. See "Activations" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_ACTIVATION_H
#define SAMEBITS_PORTABLE_ACTIVATION_H

#include <stdint.h>

#define SBP_ACTIVATION_INPUTS 3
#define SBP_ACTIVATION_PARAMETERS 4

/* The functions in the order of their numbers, which src/samebits/portable/kernels/activations.py has as well: X those
 * of one loop over their values, Y those that have another one in float32. */
#define SBP_ACTIVATIONS(X, Y)                                                                                          \
    X(softshrink) X(hardshrink) X(shrink_backward) X(hardsigmoid) X(hardsigmoid_backward)                             \
    X(hardswish) X(hardswish_backward)                                                                                \
    Y(gelu) Y(gelu_backward) X(gelu_tanh) X(gelu_tanh_backward) X(silu) X(silu_backward) X(mish) X(mish_backward)     \
    X(elu) X(elu_backward) X(elu_backward_of_result) X(softplus) X(softplus_backward)                                 \
    X(log_sigmoid) X(log_sigmoid_backward) X(glu) X(glu_backward_value) X(glu_backward_gate)                          \
    X(add_scaled) X(lerp) X(addcmul) X(addcdiv)                                                                       \
    X(mse) X(mse_backward) X(smooth_l1) X(smooth_l1_backward) X(huber) X(huber_backward)                              \
    X(binary_cross_entropy) X(binary_cross_entropy_backward) X(with_logits) X(with_logits_pos)                        \
    X(soft_margin) X(soft_margin_backward)

#define SBP_COUNT_ONE(name) +1
enum { SBP_ACTIVATION_COUNT = SBP_ACTIVATIONS(SBP_COUNT_ONE, SBP_COUNT_ONE) };

/* out[i] = f(a[i], b[i], c[i]) with parameters p; out is apart from the inputs, or exactly one of them. */
typedef void (*sbp_activation_f32)(const float *a, const float *b, const float *c, const float *p, float *out,
                                   int64_t n);
typedef void (*sbp_activation_f64)(const double *a, const double *b, const double *c, const double *p, double *out,
                                   int64_t n);

typedef struct {
    sbp_activation_f32 f32[SBP_ACTIVATION_COUNT];
    sbp_activation_f64 f64[SBP_ACTIVATION_COUNT];
} sbp_activation_table;

#endif
