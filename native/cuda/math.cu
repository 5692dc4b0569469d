/* The scalar mathematics of portable mode on a GPU: a kernel for each function, from the headers of the CPU's kernels.
 *
 * Compile with -fmad=false, without fast-math options: each function is one fixed sequence of IEEE operations.
 * docs/reference/portable-numerics.md is the definition of every value. */
#define SBP_FUNCTION static __device__ __forceinline__
#define restrict __restrict__

#include "activation.h"
#include "elementwise.h"
#include "math_functions.h"
#include "math_normal.h"
#include "philox.h"

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

/* MATH_PART chooses a share of the kernels, so that shares can be compiled side by side. */
#define MATH_UNARY_F32 0
#define MATH_UNARY_F64 1
#define MATH_BINARY_F32 2
#define MATH_BINARY_F64 3
#define MATH_ACTIVATION_F32 4
#define MATH_ACTIVATION_F64 5
#define MATH_RANDOM 6

/* A build for the host says here how it is launched. */
#ifndef HOST_KERNEL
#define HOST_KERNEL(name)
#endif

#define FOR_EACH_INDEX(i, n)                                                                                           \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)

#define UNARY_KERNEL(name, type, suffix)                                                                               \
    extern "C" __global__ void unary_##name##_##suffix(const type *x, type *out, int64_t n) {                         \
        FOR_EACH_INDEX(i, n) out[i] = sbm_##name##_##suffix(x[i]);                                                     \
    }                                                                                                                  \
    HOST_KERNEL(unary_##name##_##suffix)
#define BINARY_KERNEL(name, type, suffix)                                                                              \
    extern "C" __global__ void binary_##name##_##suffix(const type *x, const type *y, type *out, int64_t n) {         \
        FOR_EACH_INDEX(i, n) out[i] = sbm_##name##_##suffix(x[i], y[i]);                                               \
    }                                                                                                                  \
    HOST_KERNEL(binary_##name##_##suffix)
#define ACTIVATION_KERNEL(name, type, suffix)                                                                          \
    extern "C" __global__ void activation_##name##_##suffix(const type *a, const type *b, const type *c,              \
                                                            const type *p, type *out, int64_t n) {                    \
        FOR_EACH_INDEX(i, n) out[i] = sba_##name##_##suffix(a[i], b[i], c[i], p);                                      \
    }                                                                                                                  \
    HOST_KERNEL(activation_##name##_##suffix)

#define UNARY_F32(name) UNARY_KERNEL(name, float, f32)
#define UNARY_F64(name) UNARY_KERNEL(name, double, f64)
#define BINARY_F32(name) BINARY_KERNEL(name, float, f32)
#define BINARY_F64(name) BINARY_KERNEL(name, double, f64)
#define ACTIVATION_F32(name) ACTIVATION_KERNEL(name, float, f32)
#define ACTIVATION_F64(name) ACTIVATION_KERNEL(name, double, f64)

#if MATH_PART == MATH_UNARY_F32
SBP_UNARY(UNARY_F32)
UNARY_F32(sqrt)
#elif MATH_PART == MATH_UNARY_F64
SBP_UNARY(UNARY_F64)
UNARY_F64(sqrt)
#elif MATH_PART == MATH_BINARY_F32
SBP_BINARY(BINARY_F32)
#elif MATH_PART == MATH_BINARY_F64
SBP_BINARY(BINARY_F64)
#elif MATH_PART == MATH_ACTIVATION_F32
SBP_ACTIVATIONS(ACTIVATION_F32, ACTIVATION_F32)
#elif MATH_PART == MATH_ACTIVATION_F64
SBP_ACTIVATIONS(ACTIVATION_F64, ACTIVATION_F64)
#elif MATH_PART == MATH_RANDOM
/* Random values of one key, stream 0, lane 0, as random_kernel.h draws them on the CPU: a thread takes the four words
 * of block i. Bounds of uniform values, mean and deviation, and the rate are `a` and `b`. */
static __device__ __forceinline__ void block_words(uint64_t key, int64_t block, uint32_t words[4]) {
    words[0] = (uint32_t)block, words[1] = (uint32_t)((uint64_t)block >> 32), words[2] = 0, words[3] = 0;
    sbp_philox(key, words);
}

static __device__ __forceinline__ uint64_t wide_word(const uint32_t words[4], int half) {
    return words[2 * half] | (uint64_t)words[2 * half + 1] << 32;
}

/* `n` is a multiple of the values that a block gives: 4 of 32 bits, 2 of 64. */
#define RANDOM_KERNEL(name, type)                                                                                      \
    extern "C" __global__ void random_##name(uint64_t key, double a, double b, type *out, int64_t n)

RANDOM_KERNEL(words, uint32_t) {
    FOR_EACH_INDEX(i, n / 4) block_words(key, i, out + 4 * i);
}
RANDOM_KERNEL(uniform_f32, float) {
    const float from = (float)a, to = (float)b, range = to - from;
    FOR_EACH_INDEX(i, n / 4) {
        uint32_t w[4];
        block_words(key, i, w);
        for (int j = 0; j < 4; j++)
            out[4 * i + j] = sbp_uniform_f32((float)(int32_t)(w[j] >> 8) * 0x1p-24f, from, to, range);
    }
}
RANDOM_KERNEL(uniform_f64, double) {
    FOR_EACH_INDEX(i, n / 2) {
        uint32_t w[4];
        block_words(key, i, w);
        for (int j = 0; j < 2; j++)
            out[2 * i + j] = sbp_uniform_f64((double)(int64_t)(wide_word(w, j) >> 11) * 0x1p-53, a, b, b - a);
    }
}
RANDOM_KERNEL(normal_f32, float) {
    const float mean = (float)a, deviation = (float)b;
    FOR_EACH_INDEX(i, n / 4) {
        uint32_t w[4];
        float pair[2];
        block_words(key, i, w);
        for (int j = 0; j < 4; j += 2) {
            sbp_normal_f32(w[j], w[j + 1], pair);
            out[4 * i + j] = pair[0] * deviation + mean;
            out[4 * i + j + 1] = pair[1] * deviation + mean;
        }
    }
}
RANDOM_KERNEL(normal_f64, double) {
    FOR_EACH_INDEX(i, n / 2) {
        uint32_t w[4];
        double pair[2];
        block_words(key, i, w);
        sbp_normal_f64(wide_word(w, 0), wide_word(w, 1), pair);
        out[2 * i] = pair[0] * b + a;
        out[2 * i + 1] = pair[1] * b + a;
    }
}
RANDOM_KERNEL(exponential_f32, float) {
    FOR_EACH_INDEX(i, n / 4) {
        uint32_t w[4];
        block_words(key, i, w);
        for (int j = 0; j < 4; j++)
            out[4 * i + j] = sbp_exponential_f32(w[j]) / (float)a;
    }
}
RANDOM_KERNEL(exponential_f64, double) {
    FOR_EACH_INDEX(i, n / 2) {
        uint32_t w[4];
        block_words(key, i, w);
        for (int j = 0; j < 2; j++)
            out[2 * i + j] = sbp_exponential_f64(wide_word(w, j)) / a;
    }
}

HOST_KERNEL(random_words)
HOST_KERNEL(random_uniform_f32)
HOST_KERNEL(random_uniform_f64)
HOST_KERNEL(random_normal_f32)
HOST_KERNEL(random_normal_f64)
HOST_KERNEL(random_exponential_f32)
HOST_KERNEL(random_exponential_f64)

#else
#error "MATH_PART is one of the numbers above"
#endif
