/* Contractions: products of matrices of any strides, and convolutions. A thread computes one output, its chain of 128
 * terms after the other. See "Contractions" and "Convolutions" in docs/reference/portable-numerics.md.
 *
 * gemm_body.h is for large matrices of float32. */
#include "portable_base.h"

enum { SBD_K_BLOCK = 128 }; /* SBP_K_BLOCK of gemm.h */

/* The sum of a contraction of `terms`; `term(k, chain)` is the chain after term k. */
template <class T, class TERM> SBP_FUNCTION T sbd_contract(int64_t terms, TERM term) {
    T total = 0;
    for (int64_t first = 0; first < terms; first += SBD_K_BLOCK) {
        const int64_t end = terms - first < SBD_K_BLOCK ? terms : first + SBD_K_BLOCK;
        T chain = 0;
        for (int64_t k = first; k < end; k++)
            chain = term(k, chain);
        total = total + chain;
    }
    return total;
}

template <class T> SBP_FUNCTION void gemm_of(const sbp_gemm_parameters &p) {
    const T alpha = (T)p.alpha, beta = (T)p.beta;
    SBP_EACH_INDEX(i, p.batches * p.m * p.n) {
        const int64_t batch = i / (p.m * p.n), row = i / p.n % p.m, column = i % p.n;
        const T *a = (const T *)p.a + batch * p.a_strides[2] + row * p.a_strides[0];
        const T *b = (const T *)p.b + batch * p.b_strides[2] + column * p.b_strides[1];
        T product = sbd_contract<T>(p.k, [&](int64_t k, T chain) {
            return sbd_fma(a[k * p.a_strides[1]], b[k * p.b_strides[0]], chain);
        });
        if (alpha != 1)
            product = product * alpha;
        if (p.added) {
            const int64_t *s = p.added_strides;
            const T added = ((const T *)p.added)[batch * s[2] + row * s[0] + column * s[1]];
            product = product + (beta == 1 ? added : added * beta);
        }
        const int64_t *s = p.out_strides;
        ((T *)p.out)[batch * s[2] + row * s[0] + column * s[1]] = product;
    }
}
SBP_KERNEL_APART(gemm, sbp_gemm_parameters)

/* What comes after a product that is there already, as a matrix of the layout of `out` at `a`. */
template <class T> SBP_FUNCTION void gemm_end_of(const sbp_gemm_parameters &p) {
    const T alpha = (T)p.alpha, beta = (T)p.beta;
    SBP_EACH_INDEX(i, p.batches * p.m * p.n) {
        T product = ((const T *)p.a)[i];
        if (alpha != 1)
            product = product * alpha;
        if (p.added) {
            const int64_t *s = p.added_strides;
            const T added = ((const T *)p.added)[i / (p.m * p.n) * s[2] + i / p.n % p.m * s[0] + i % p.n * s[1]];
            product = product + (beta == 1 ? added : added * beta);
        }
        ((T *)p.out)[i] = product;
    }
}
SBP_KERNEL_APART(gemm_end, sbp_gemm_parameters)

/* A position in three dimensions. */
typedef struct {
    int64_t at[3];
} sbd_place;

SBP_FUNCTION sbd_place sbd_place_of(int64_t i, const int64_t *sizes) {
    const sbd_place place = {{i / (sizes[1] * sizes[2]), i / sizes[2] % sizes[1], i % sizes[2]}};
    return place;
}

/* Where a tap of a window meets an image of these sizes; -1 outside of it. */
SBP_FUNCTION int64_t sbd_met(sbd_place output, sbd_place tap, const int64_t *sizes, const int64_t *stride,
                             const int64_t *padding, const int64_t *dilation) {
    int64_t place = 0;
    bool is_inside = true;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const int64_t at = output.at[d] * stride[d] + tap.at[d] * dilation[d] - padding[d];
        is_inside = is_inside && at >= 0 && at < sizes[d];
        place = place * sizes[d] + at;
    }
    return is_inside ? place : -1;
}

/* The same for the transpose: where a tap, counted from the last one, meets what stands for the image, with its stride's
 * zeros in between. */
SBP_FUNCTION int64_t sbd_met_transposed(sbd_place output, sbd_place tap, const sbp_conv_parameters &p) {
    int64_t place = 0;
    bool is_inside = true;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const int64_t spread = output.at[d] + tap.at[d] * p.dilation[d] - (p.dilation[d] * (p.kernel[d] - 1) - p.padding[d]);
        is_inside = is_inside && spread >= 0 && spread % p.stride[d] == 0 && spread / p.stride[d] < p.size[d];
        place = place * p.size[d] + spread / p.stride[d];
    }
    return is_inside ? place : -1;
}

template <class T> SBP_FUNCTION void conv_of(const sbp_conv_parameters &p) {
    const int64_t taps = p.kernel[0] * p.kernel[1] * p.kernel[2], pixels = p.size[0] * p.size[1] * p.size[2];
    const int64_t outputs = p.out_size[0] * p.out_size[1] * p.out_size[2], channels = p.groups * p.rows;
    SBP_EACH_INDEX(i, p.samples * channels * outputs) {
        const int64_t sample = i / (channels * outputs), channel = i / outputs % channels, group = channel / p.rows;
        const sbd_place output = sbd_place_of(i % outputs, p.out_size);
        const T *image = (const T *)p.image + (sample * p.groups + group) * p.depth * pixels;
        T sum;
        if (p.is_transposed) { /* weight: (channels of the image, channels of the output in a group, taps) */
            const T *weight = (const T *)p.weight + (group * p.depth * p.rows + channel % p.rows) * taps;
            sum = sbd_contract<T>(p.depth * taps, [&](int64_t k, T chain) {
                const int64_t met = sbd_met_transposed(output, sbd_place_of(k % taps, p.kernel), p);
                const T value = met < 0 ? (T)0 : image[k / taps * pixels + met];
                return sbd_fma(weight[k / taps * p.rows * taps + taps - 1 - k % taps], value, chain);
            });
        } else {
            const T *weight = (const T *)p.weight + channel * p.depth * taps;
            sum = sbd_contract<T>(p.depth * taps, [&](int64_t k, T chain) {
                const sbd_place tap = sbd_place_of(k % taps, p.kernel);
                const int64_t met = sbd_met(output, tap, p.size, p.stride, p.padding, p.dilation);
                return sbd_fma(weight[k], met < 0 ? (T)0 : image[k / taps * pixels + met], chain);
            });
        }
        ((T *)p.out)[i] = p.bias ? sum + ((const T *)p.bias)[channel] : sum;
    }
}
SBP_KERNEL_APART(conv, sbp_conv_parameters)

template <class T> SBP_FUNCTION void conv_weight_of(const sbp_conv_weight_parameters &p) {
    const int64_t taps = p.kernel[0] * p.kernel[1] * p.kernel[2], pixels = p.size[0] * p.size[1] * p.size[2];
    const int64_t outputs = p.out_size[0] * p.out_size[1] * p.out_size[2], channels = p.groups * p.rows;
    SBP_EACH_INDEX(i, channels * p.depth * taps) {
        const int64_t channel = i / (p.depth * taps), depth = i / taps % p.depth, group = channel / p.rows;
        const sbd_place tap = sbd_place_of(i % taps, p.kernel);
        const T *image = (const T *)p.image + (group * p.depth + depth) * pixels;
        const T *gradient = (const T *)p.gradient + channel * outputs;
        ((T *)p.of_weight)[i] = sbd_contract<T>(p.samples * outputs, [&](int64_t k, T chain) {
            const int64_t sample = k / outputs, output = k % outputs;
            const int64_t met =
                sbd_met(sbd_place_of(output, p.out_size), tap, p.size, p.stride, p.padding, p.dilation);
            const T value = met < 0 ? (T)0 : image[sample * p.groups * p.depth * pixels + met];
            return sbd_fma(gradient[sample * channels * outputs + output], value, chain);
        });
    }
}
SBP_KERNEL_APART(conv_weight, sbp_conv_weight_parameters)
