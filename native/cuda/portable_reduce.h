/* Reductions by groups of 16 threads, a lane each: "Reductions" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_CUDA_PORTABLE_REDUCE_H
#define SAMEBITS_CUDA_PORTABLE_REDUCE_H

#include "portable_base.h"
#include "reduce.h"

enum { SBD_WHOLE_WARP = -1 };

SBP_FUNCTION float sbd_other(float x, int distance) { return __shfl_xor_sync((unsigned)SBD_WHOLE_WARP, x, distance); }
SBP_FUNCTION double sbd_other(double x, int distance) { return __shfl_xor_sync((unsigned)SBD_WHOLE_WARP, x, distance); }

/* What a lane is after it took in a (and b; m is what is subtracted from a). */
template <int KIND, class T> SBP_FUNCTION T sbd_step(T lane, T a, T b, T m) {
    switch (KIND) {
    case SBP_SUM:
        return lane + a;
    case SBP_SQUARES:
        return sbd_fma(a, a, lane);
    case SBP_PRODUCTS:
        return sbd_fma(a, b, lane);
    case SBP_DEVIATIONS:
        a = a - m;
        return sbd_fma(a, a, lane);
    case SBP_CROSS:
        return sbd_fma(b, a - m, lane);
    case SBP_MAGNITUDES:
        return lane + sbd_abs(a);
    default:
        return lane * a;
    }
}

template <int KIND, class T> SBP_FUNCTION T sbd_join(T a, T b) { return KIND == SBP_PRODUCT ? a * b : a + b; }

template <int KIND, class T> SBP_FUNCTION T sbd_nothing() { return (T)(KIND == SBP_PRODUCT); }

/* The 16 lanes of a group to one value, which all of them get. */
template <int KIND, class T> SBP_FUNCTION T sbd_fold(T lane) {
#pragma unroll
    for (int h = SBP_LANES / 2; h; h /= 2)
        lane = sbd_join<KIND>(lane, sbd_other(lane, h));
    return lane;
}

/* The tree of chunks: equal nodes are joined as they come. */
template <int KIND, class T> struct sbd_tree {
    T nodes[40];
    int depth = 0;
    int64_t made = 0;

    __device__ __forceinline__ void add(T node) {
        nodes[depth++] = node;
        for (int64_t i = made++; i & 1; i >>= 1, depth--)
            nodes[depth - 2] = sbd_join<KIND>(nodes[depth - 2], nodes[depth - 1]);
    }

    __device__ __forceinline__ T end() {
        for (; depth > 1; depth--)
            nodes[depth - 2] = sbd_join<KIND>(nodes[depth - 2], nodes[depth - 1]);
        return depth ? nodes[0] : sbd_nothing<KIND, T>();
    }
};

/* One chunk, from value `first` on, of n in all; `take(lane, i)` is what a lane is after value i. All groups of a block
 * come here together. */
template <int KIND, class T, class TAKE> SBP_FUNCTION T sbd_chunk(int64_t first, int64_t n, TAKE take) {
    const int64_t end = n - first < SBP_CHUNK ? n : first + SBP_CHUNK;
    T lane = sbd_nothing<KIND, T>();
#pragma unroll 4
    for (int64_t i = first + threadIdx.x % SBP_LANES; i < end; i += SBP_LANES)
        lane = take(lane, i);
    return sbd_fold<KIND>(lane);
}

/* All n values of a row, by one group. */
template <int KIND, class T, class TAKE> SBP_FUNCTION T sbd_total(int64_t n, TAKE take) {
    sbd_tree<KIND, T> tree;
    for (int64_t first = 0; first < n; first += SBP_CHUNK)
        tree.add(sbd_chunk<KIND, T>(first, n, take));
    return tree.end();
}

#endif
