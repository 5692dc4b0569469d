/* Contractions: products of matrices of any strides, and convolutions. A thread computes one output, its chain of 128
 * terms after the other. See "Contractions" and "Convolutions" in docs/reference/portable-numerics.md.
 *
 * Large ones of float32 are computed tile by tile: gemm_body.h, portable_conv.cu. */
#include "portable_conv.h"

enum { SBD_K_BLOCK = 128 }; /* SBP_K_BLOCK of gemm.h */

/* The sum of a contraction, term by term. */
template <class T> struct sbd_sum {
    T total = 0, chain = 0;
    int left = SBD_K_BLOCK; /* of the chain */
    __device__ void add(T a, T b) {
        chain = sbd_fma(a, b, chain);
        if (--left == 0)
            end();
    }
    __device__ T end() {
        if (left < SBD_K_BLOCK)
            total = total + chain;
        chain = 0, left = SBD_K_BLOCK;
        return total;
    }
};

template <class T> SBP_FUNCTION void gemm_of(const sbp_gemm_parameters &p) {
    const T alpha = (T)p.alpha, beta = (T)p.beta;
    SBP_EACH_INDEX(i, p.batches * p.m * p.n) {
        const int64_t batch = i / (p.m * p.n), row = i / p.n % p.m, column = i % p.n;
        const T *a = (const T *)p.a + batch * p.a_strides[2] + row * p.a_strides[0];
        const T *b = (const T *)p.b + batch * p.b_strides[2] + column * p.b_strides[1];
        T product = 0;
        for (int64_t first = 0; first < p.k; first += SBD_K_BLOCK) {
            const int64_t end = p.k - first < SBD_K_BLOCK ? p.k : first + SBD_K_BLOCK;
            T chain = 0;
            for (int64_t k = first; k < end; k++)
                chain = sbd_fma(a[k * p.a_strides[1]], b[k * p.b_strides[0]], chain);
            product = product + chain;
        }
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
extern "C" __global__ void gemm_end_f32(const sbp_gemm_parameters p) {
    const float alpha = (float)p.alpha, beta = (float)p.beta;
    SBP_EACH_INDEX(i, p.batches * p.m * p.n) {
        float product = ((const float *)p.a)[i];
        if (alpha != 1)
            product = product * alpha;
        if (p.added) {
            const int64_t *s = p.added_strides;
            const float added = ((const float *)p.added)[i / (p.m * p.n) * s[2] + i / p.n % p.m * s[0] + i % p.n * s[1]];
            product = product + (beta == 1 ? added : added * beta);
        }
        ((float *)p.out)[i] = product;
    }
}
HOST_KERNEL_APART(gemm_end_f32)

/* Where a tap meets the image in one dimension; -1 outside of it and at the zeros that a stride puts between. */
SBP_FUNCTION int sbd_met(const sbp_conv_parameters &p, int d, int output, int tap) {
    const int stride = (int)p.stride[d], dilation = (int)p.dilation[d], padding = (int)p.padding[d];
    int at = output * stride + tap * dilation - padding;
    bool is_inside = at >= 0;
    if (p.is_transposed) { /* the taps are counted from the last one */
        const int spread = output + tap * dilation - (dilation * ((int)p.kernel[d] - 1) - padding);
        at = spread / stride;
        is_inside = spread >= 0 && at * stride == spread;
    }
    return is_inside && at < (int)p.size[d] ? at : -1;
}

template <class T> SBP_FUNCTION void conv_of(const sbp_conv_parameters &p) {
    const int64_t taps = sbd_volume(p.kernel), pixels = sbd_volume(p.size), outputs = sbd_volume(p.out_size);
    const int64_t channels = p.groups * p.rows;
    SBP_EACH_INDEX(i, p.samples * channels * outputs) {
        const int64_t sample = i / (channels * outputs), channel = i / outputs % channels, group = channel / p.rows;
        const sbd_place output = sbd_place_of(i % outputs, p.out_size);
        const T *image = (const T *)p.image + (sample * p.groups + group) * p.depth * pixels;
        const T *weight = (const T *)p.weight;
        /* transposed: (channels of the image, channels of the output in a group, taps) */
        weight += p.is_transposed ? (group * p.depth * p.rows + channel % p.rows + 1) * taps - 1 : channel * p.depth * taps;
        const int64_t next_tap = p.is_transposed ? -1 : 1, next_channel = p.is_transposed ? p.rows * taps : taps;
        sbd_sum<T> sum;
        for (int64_t depth = 0; depth < p.depth; depth++, image += pixels, weight += next_channel) {
            const T *factor = weight;
            for (int u = 0; u < (int)p.kernel[0]; u++) {
                const int z = sbd_met(p, 0, (int)output.at[0], u);
                for (int v = 0; v < (int)p.kernel[1]; v++) {
                    const int y = sbd_met(p, 1, (int)output.at[1], v);
                    for (int w = 0; w < (int)p.kernel[2]; w++, factor += next_tap) {
                        const int x = sbd_met(p, 2, (int)output.at[2], w);
                        const bool is_inside = z >= 0 && y >= 0 && x >= 0;
                        sum.add(*factor, is_inside ? image[(z * p.size[1] + y) * p.size[2] + x] : (T)0);
                    }
                }
            }
        }
        const T product = sum.end();
        ((T *)p.out)[i] = p.bias ? product + ((const T *)p.bias)[channel] : product;
    }
}
SBP_KERNEL_APART(conv, sbp_conv_parameters)

/* The next position in row-major order; 0 after the last one. */
SBP_FUNCTION bool sbd_advance(int *at, const int64_t *sizes) {
    for (int d = 2; d >= 0; d--) {
        if (++at[d] < (int)sizes[d])
            return true;
        at[d] = 0;
    }
    return false;
}

template <class T> SBP_FUNCTION void conv_weight_chains_of(const sbd_conv_weight_parameters &p) {
    const int64_t taps = sbd_volume(p.kernel), pixels = sbd_volume(p.size), outputs = sbd_volume(p.out_size);
    const int64_t each = p.rows * p.depth * taps, terms = p.samples * outputs;
    SBP_EACH_INDEX(i, p.groups * p.blocks * each) {
        const int64_t group = i / (p.blocks * each), row = i / (p.depth * taps) % p.rows, depth = i / taps % p.depth;
        const int64_t first = (p.first_block + i / each % p.blocks) * SBD_K_BLOCK;
        const int64_t end = first + SBD_K_BLOCK < terms ? first + SBD_K_BLOCK : terms;
        const sbd_place tap = sbd_place_of(i % taps, p.kernel), start = sbd_place_of(first % outputs, p.out_size);
        const T *image = (const T *)p.image + ((first / outputs * p.groups + group) * p.depth + depth) * pixels;
        const T *gradient = (const T *)p.gradient + ((first / outputs * p.groups + group) * p.rows + row) * outputs;
        int at[3] = {(int)start.at[0], (int)start.at[1], (int)start.at[2]};
        int64_t output = first % outputs;
        T chain = 0;
        for (int64_t k = first; k < end; k++) {
            int64_t met = 0;
            bool is_inside = true;
#pragma unroll
            for (int d = 0; d < 3; d++) {
                const int64_t place = at[d] * p.stride[d] + tap.at[d] * p.dilation[d] - p.padding[d];
                is_inside = is_inside && place >= 0 && place < p.size[d];
                met = met * p.size[d] + place;
            }
            chain = sbd_fma(gradient[output++], is_inside ? image[met] : (T)0, chain);
            if (!sbd_advance(at, p.out_size)) {
                output = 0;
                image += p.groups * p.depth * pixels;
                gradient += p.groups * p.rows * outputs;
            }
        }
        ((T *)p.chains)[i] = chain;
    }
}
SBP_KERNEL_APART(conv_weight_chains, sbd_conv_weight_parameters)

template <class T> SBP_FUNCTION void add_chains_of(const sbd_chains_parameters &p) {
    SBP_EACH_INDEX(i, p.groups * p.outputs) {
        const T *chains = (const T *)p.chains + i / p.outputs * p.blocks * p.outputs + i % p.outputs;
        T total = p.is_first ? (T)0 : ((const T *)p.out)[i];
        for (int64_t block = 0; block < p.blocks; block++)
            total = total + chains[block * p.outputs];
        ((T *)p.out)[i] = total;
    }
}
SBP_KERNEL_APART(add_chains, sbd_chains_parameters)
