/* What works on each value by itself. PART chooses a share, so that shares can be compiled side by side: functions of one
 * number, of two, activations and losses, each of float32 and of float64, and the rest. */
#include "portable_base.h"

#include "activation.h"
#include "elementwise.h"
#include "math_normal.h"
#include "optimizer.h"
#include "philox.h"
#include "random.h"

#define PART_UNARY_F32 0
#define PART_UNARY_F64 1
#define PART_BINARY_F32 2
#define PART_BINARY_F64 3
#define PART_ACTIVATION_F32 4
#define PART_ACTIVATION_F64 5
#define PART_OTHERS 6

#define UNARY(name, type, suffix)                                                                                      \
    extern "C" __global__ void name##_##suffix(const sbp_elementwise_unary_parameters p) {                            \
        SBP_EACH_INDEX(i, p.numel)                                                                                    \
        ((type *)p.out)[i] = sbm_##name##_##suffix(((const type *)p.x)[i]);                                           \
    }                                                                                                                  \
    HOST_KERNEL_APART(name##_##suffix)
#define BINARY(name, type, suffix)                                                                                     \
    extern "C" __global__ void name##_##suffix(const sbp_elementwise_binary_parameters p) {                           \
        SBP_EACH_INDEX(i, p.numel)                                                                                    \
        ((type *)p.out)[i] = sbm_##name##_##suffix(((const type *)p.x)[i], ((const type *)p.y)[i]);                   \
    }                                                                                                                  \
    HOST_KERNEL_APART(name##_##suffix)
#define ACTIVATION(name, type, suffix)                                                                                 \
    extern "C" __global__ void activation_##name##_##suffix(const sbp_activation_parameters p) {                      \
        type numbers[SBP_ACTIVATION_PARAMETERS];                                                                      \
        for (int k = 0; k < SBP_ACTIVATION_PARAMETERS; k++)                                                           \
            numbers[k] = (type)p.numbers[k];                                                                          \
        SBP_EACH_INDEX(i, p.numel) {                                                                                  \
            type x[SBP_ACTIVATION_INPUTS];                                                                            \
            for (int k = 0; k < SBP_ACTIVATION_INPUTS; k++)                                                           \
                x[k] = ((const type *)p.inputs[k])[p.is_single[k] ? 0 : i];                                           \
            ((type *)p.out)[i] = sba_##name##_##suffix(x[0], x[1], x[2], numbers);                                    \
        }                                                                                                             \
    }                                                                                                                  \
    HOST_KERNEL_APART(activation_##name##_##suffix)

#define ROOT(type, suffix)                                                                                             \
    extern "C" __global__ void sqrt_##suffix(const sbp_sqrt_parameters p) {                                           \
        SBP_EACH_INDEX(i, p.numel)                                                                                    \
        ((type *)p.out)[i] = sbm_sqrt_##suffix(((const type *)p.x)[i]);                                               \
    }                                                                                                                  \
    HOST_KERNEL_APART(sqrt_##suffix)

#define UNARY_F32(name) UNARY(name, float, f32)
#define UNARY_F64(name) UNARY(name, double, f64)
#define BINARY_F32(name) BINARY(name, float, f32)
#define BINARY_F64(name) BINARY(name, double, f64)
#define ACTIVATION_F32(name) ACTIVATION(name, float, f32)
#define ACTIVATION_F64(name) ACTIVATION(name, double, f64)

#if PART == PART_UNARY_F32
SBP_UNARY(UNARY_F32)
ROOT(float, f32)
#elif PART == PART_UNARY_F64
SBP_UNARY(UNARY_F64)
ROOT(double, f64)
#elif PART == PART_BINARY_F32
SBP_BINARY(BINARY_F32)
#elif PART == PART_BINARY_F64
SBP_BINARY(BINARY_F64)
#elif PART == PART_ACTIVATION_F32
#define T float
#define F(name) sba_##name##_f32
#define M(name) sbm_##name##_f32
#include "math_activation.h"
SBP_ACTIVATIONS(ACTIVATION_F32, ACTIVATION_F32)
#elif PART == PART_ACTIVATION_F64
#define T double
#define F(name) sba_##name##_f64
#define M(name) sbm_##name##_f64
#include "math_activation.h"
SBP_ACTIVATIONS(ACTIVATION_F64, ACTIVATION_F64)
#elif PART == PART_OTHERS

template <class T> SBP_FUNCTION void pairs_product_of(const sbp_pairs_parameters &p) {
    SBP_EACH_INDEX(i, p.numel) {
        const T *x = (const T *)p.x + 2 * i, *y = (const T *)p.y + 2 * i;
        T *out = (T *)p.out + 2 * i;
        const T a = x[0], b = x[1], c = y[0], d = y[1];
        out[0] = a * c - b * d;
        out[1] = a * d + b * c;
    }
}
SBP_KERNEL_APART(pairs_product, sbp_pairs_parameters)

/* By the larger part of the divisor, so that nothing overflows on the way. */
template <class T> SBP_FUNCTION void pairs_quotient_of(const sbp_pairs_parameters &p) {
    SBP_EACH_INDEX(i, p.numel) {
        const T *x = (const T *)p.x + 2 * i, *y = (const T *)p.y + 2 * i;
        T *out = (T *)p.out + 2 * i;
        const T a = x[0], b = x[1], c = y[0], d = y[1];
        const bool flat = (c < 0 ? -c : c) >= (d < 0 ? -d : d);
        const T most = flat ? c : d, least = flat ? d : c;
        const bool zero = most == 0;
        const T ratio = zero ? most : least / most, whole = zero ? (T)0 : most + least * ratio;
        const T one = flat ? a : b, other = flat ? b : a, crossed = flat ? b - a * ratio : b * ratio - a;
        out[0] = (one + other * ratio) / whole;
        out[1] = crossed / whole;
    }
}
SBP_KERNEL_APART(pairs_quotient, sbp_pairs_parameters)

/* Running sums and products: a thread for each line. */
template <class T> SBP_FUNCTION void scan_of(const sbp_scan_parameters &p) {
    SBP_EACH_INDEX(line, p.outer * p.inner) {
        const int64_t start = line / p.inner * p.n * p.inner + line % p.inner;
        double chain = p.is_product ? 1 : 0;
        for (int64_t i = start; i < start + p.n * p.inner; i += p.inner) {
            const double x = (double)((const T *)p.x)[i];
            chain = p.is_product ? chain * x : chain + x;
            ((T *)p.out)[i] = (T)chain;
        }
    }
}
SBP_KERNEL_APART(scan, sbp_scan_parameters)

/* fma(x - mean, scale, shift) with values of each channel of (outer, channels, inner). */
template <class T> SBP_FUNCTION void channel_norm_of(const sbp_channel_norm_parameters &p) {
    SBP_EACH_INDEX(i, p.outer * p.channels * p.inner) {
        const int64_t c = i / p.inner % p.channels;
        ((T *)p.out)[i] = sbd_fma(((const T *)p.x)[i] - ((const T *)p.mean)[c], ((const T *)p.scale)[c],
                                  ((const T *)p.shift)[c]);
    }
}
SBP_KERNEL_APART(channel_norm, sbp_channel_norm_parameters)

/* fma(mean - x, slope, gradient weight - shift) scale, with values of each channel. */
typedef struct {
    const void *x, *gradient, *mean, *slope, *weight, *shift, *scale;
    void *out;
    int64_t outer, channels, inner;
} sbd_channel_gradient_parameters;

template <class T> SBP_FUNCTION void channel_gradient_of(const sbd_channel_gradient_parameters &p) {
    SBP_EACH_INDEX(i, p.outer * p.channels * p.inner) {
        const int64_t c = i / p.inner % p.channels;
        const T weighted = ((const T *)p.gradient)[i] * ((const T *)p.weight)[c];
        ((T *)p.out)[i] = sbd_fma(((const T *)p.mean)[c] - ((const T *)p.x)[i], ((const T *)p.slope)[c],
                                  weighted - ((const T *)p.shift)[c]) * ((const T *)p.scale)[c];
    }
}
SBP_KERNEL_APART(channel_gradient, sbd_channel_gradient_parameters)

/* (x - mean) rstd of each row of n values. */
typedef struct {
    const void *x, *mean, *rstd;
    void *out;
    int64_t rows, n;
} sbd_normal_rows_parameters;

template <class T> SBP_FUNCTION void normal_rows_of(const sbd_normal_rows_parameters &p) {
    SBP_EACH_INDEX(i, p.rows * p.n)
    ((T *)p.out)[i] = (((const T *)p.x)[i] - ((const T *)p.mean)[i / p.n]) * ((const T *)p.rstd)[i / p.n];
}
SBP_KERNEL_APART(normal_rows, sbd_normal_rows_parameters)

/* A step of an optimizer: blockIdx.y is the tensor. */
template <class T> SBP_FUNCTION void adam_of(const sbp_optimizer_parameters &p) {
    const sbp_step_tensor &t = p.each[blockIdx.y];
    T *param = (T *)t.param, *m = (T *)t.first, *v = (T *)t.second, *h = (T *)t.highest;
    const T *g = (const T *)t.grad;
    const T sign = p.flags & SBP_MAXIMIZE ? -1 : 1, shrink = (T)p.shrink, decay = (T)p.decay;
    const T weight = (T)p.weight, rest = 1 - weight, keep = (T)p.keep, gain = (T)p.gain;
    const T eps = (T)p.eps, step = (T)t.minus_step, root = (T)t.root;
    const bool near = weight > -(T)0.5 && weight < (T)0.5;
    SBP_EACH_INDEX(i, t.count) {
        const T start = param[i] * shrink;
        T grad = sign * g[i];
        if (p.flags & SBP_DECAY_GRADIENT)
            grad = grad + decay * start;
        const T apart = grad - m[i], first = near ? m[i] + weight * apart : grad - apart * rest;
        const T second = v[i] * keep + (gain * grad) * grad;
        T used = second;
        if (p.flags & SBP_AMSGRAD) {
            used = second > h[i] || second != second ? second : h[i];
            h[i] = used;
        }
        m[i] = first;
        v[i] = second;
        param[i] = start + (step * first) / (sbd_sqrt(used) / root + eps);
    }
}
SBP_KERNEL_APART(adam, sbp_optimizer_parameters)

template <class T> SBP_FUNCTION void sgd_of(const sbp_optimizer_parameters &p) {
    const sbp_step_tensor &t = p.each[blockIdx.y];
    T *param = (T *)t.param, *m = (T *)t.first;
    const T *g = (const T *)t.grad;
    const T sign = p.flags & SBP_MAXIMIZE ? -1 : 1, decay = (T)p.decay, keep = (T)p.keep, gain = (T)p.gain;
    const T step = (T)t.minus_step;
    SBP_EACH_INDEX(i, t.count) {
        T grad = sign * g[i];
        if (p.flags & SBP_DECAY_GRADIENT)
            grad = grad + decay * param[i];
        if (p.flags & SBP_MOMENTUM) {
            m[i] = p.flags & SBP_FIRST_STEP ? grad : m[i] * keep + gain * grad;
            grad = p.flags & SBP_NESTEROV ? grad + keep * m[i] : m[i];
        }
        param[i] = param[i] + step * grad;
    }
}
SBP_KERNEL_APART(sgd, sbp_optimizer_parameters)

/* Random values: a thread takes the four words of a block. `each`: values that these give. */
SBP_FUNCTION void sbd_draw(const sbp_random_parameters &p, const uint32_t *w, int64_t at, int j) {
    const uint64_t wide = w[2 * j % 4] | (uint64_t)w[(2 * j + 1) % 4] << 32;
    switch (p.kind) {
    case SBP_WORDS:
        ((uint32_t *)p.out)[at] = w[j];
        return;
    case SBP_UNIFORM_F32: {
        const float from = (float)p.a, to = (float)p.b, unit = 1.0f / (float)(1 << (int)p.bits);
        ((float *)p.out)[at] =
            sbp_uniform_f32((float)(int32_t)(w[j] >> (32 - (int)p.bits)) * unit, from, to, to - from);
        return;
    }
    case SBP_UNIFORM_F64:
        ((double *)p.out)[at] = sbp_uniform_f64((double)(int64_t)(wide >> 11) * 0x1p-53, p.a, p.b, p.b - p.a);
        return;
    case SBP_BERNOULLI_F32:
        ((float *)p.out)[at] = w[j] < (uint32_t)p.bits || (uint64_t)p.bits >> 32 ? 1.0f : 0.0f;
        return;
    case SBP_BERNOULLI_U8:
        ((uint8_t *)p.out)[at] = w[j] < (uint32_t)p.bits || (uint64_t)p.bits >> 32;
        return;
    case SBP_BERNOULLI_P_F32:
        ((uint8_t *)p.out)[at] = (double)w[j] * 0x1p-32 < (double)((const float *)p.source)[at];
        return;
    case SBP_BERNOULLI_P_F64:
        ((uint8_t *)p.out)[at] = (double)w[j] * 0x1p-32 < ((const double *)p.source)[at];
        return;
    case SBP_RANGE:
        ((int64_t *)p.out)[at] = (int64_t)(sbp_in_range(wide, (uint64_t)p.bits) + (uint64_t)p.low);
        return;
    case SBP_NORMAL_F32: {
        float pair[2];
        sbp_normal_f32(w[j & ~1], w[j | 1], pair);
        ((float *)p.out)[at] = pair[j & 1] * (float)p.b + (float)p.a;
        return;
    }
    case SBP_EXPONENTIAL_F32:
        ((float *)p.out)[at] = sbp_exponential_f32(w[j]) / (float)p.a;
        return;
    case SBP_EXPONENTIAL_F64:
        ((double *)p.out)[at] = sbp_exponential_f64(wide) / p.a;
        return;
    }
}

extern "C" __global__ void random_values(const sbp_random_parameters p) {
    const int each = sbp_random_wide(p.kind) ? 2 : 4;
    SBP_EACH_INDEX(block, (p.numel + each - 1) / each) {
        const uint64_t number = (uint64_t)p.first + (uint64_t)block;
        uint32_t w[4] = {(uint32_t)number, (uint32_t)(number >> 32), (uint32_t)p.stream, (uint32_t)p.lane};
        sbp_philox((uint64_t)p.key, w);
        if (p.kind == SBP_NORMAL_F64) {
            double pair[2];
            sbp_normal_f64(w[0] | (uint64_t)w[1] << 32, w[2] | (uint64_t)w[3] << 32, pair);
            for (int j = 0; j < 2 && 2 * block + j < p.numel; j++)
                ((double *)p.out)[2 * block + j] = pair[j] * p.b + p.a;
        } else
            for (int j = 0; j < each && block * each + j < p.numel; j++)
                sbd_draw(p, w, block * each + j, j);
    }
}
HOST_KERNEL_APART(random_values)

#else
#error "PART is one of the numbers above"
#endif
