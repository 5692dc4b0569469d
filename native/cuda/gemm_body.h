/* Products of float32 matrices, tile by tile: c[m][n] = sum over k of a[m][k] b[k][n], for each matrix of a batch. gemm.cu
 * and the host build of the tests include it.
 *
 * c is row-major. Operands have any strides of which one is 1: a_line is the distance of rows of a if its k is contiguous
 * (A_ALONG_K 1), else the distance of its k; b_line is the distance of rows of b if its n is contiguous (B_ALONG_K 0),
 * else the distance of its columns. GROUP rows of tiles are computed side by side, so that thread blocks that run at the
 * same time share what they read.
 */
#ifndef SAMEBITS_CUDA_GEMM_BODY_H
#define SAMEBITS_CUDA_GEMM_BODY_H

#include "gemm_tile.h"

#ifndef GEMM_MIN_BLOCKS
#define GEMM_MIN_BLOCKS 1
#endif
#ifndef GEMM_LINES
#define GEMM_LINES 8
#endif
#ifndef GEMM_GROUP
#define GEMM_GROUP 1
#endif

typedef struct {
    const float *a, *b;
    float *c; /* TOTALS_APART: chains, (blocks of k, m, n) for each matrix of the batch */
    int64_t a_line, b_line;
    int64_t a_batch, b_batch, c_batch; /* from one matrix of the batch to the next */
    int m, n, k;
    int blocks_each; /* blocks of k that each thread block takes; the shares of a product are side by side in z */
} gemm_product;

/* Copies a panel of LINES lines and DEPTH k: panel[k * ROW + line]. What is contiguous, k or lines,
 * has distance 1; the other one `stride`. */
template <int LINES, int DEPTH, int ROW, int ALONG_K, int THREADS>
static __device__ __forceinline__ void gemm_fill(float *panel, const float *matrix, int64_t stride, int first_line,
                                                 int lines, int first_k, int k_end) {
    const int thread = threadIdx.x;
    const bool is_whole = first_line + LINES <= lines && first_k + DEPTH <= k_end;
    if (ALONG_K && is_whole) {
        const int k = thread % DEPTH, line = thread / DEPTH;
        const float *from = matrix + (int64_t)(first_line + line) * stride + first_k + k;
        float *to = panel + k * ROW + line;
#pragma unroll
        for (int e = 0; e < LINES * DEPTH / THREADS; e++)
            gemm_copy_1(to + e * (THREADS / DEPTH), from + e * (THREADS / DEPTH) * stride);
        return;
    }
    if (ALONG_K) {
#pragma unroll
        for (int e = 0; e < LINES * DEPTH / THREADS; e++) {
            const int i = e * THREADS + thread, k = i % DEPTH, line = i / DEPTH;
            const bool is_inside = first_line + line < lines && first_k + k < k_end;
            gemm_copy(panel + k * ROW + line,
                      is_inside ? matrix + (int64_t)(first_line + line) * stride + first_k + k : matrix, is_inside);
        }
        return;
    }
    if (is_whole && stride % 4 == 0 && ((uintptr_t)matrix & 15) == 0) {
#pragma unroll
        for (int e = 0; e < LINES * DEPTH / 4 / THREADS; e++) {
            const int i = e * THREADS + thread, line = i % (LINES / 4) * 4, k = i / (LINES / 4);
            gemm_copy_4(panel + k * ROW + line, matrix + (int64_t)(first_k + k) * stride + first_line + line);
        }
        return;
    }
    /* Powers of 2: what a further copy adds to the line and to k is the same for all threads. */
    const int line = first_line + thread % LINES, k = first_k + thread / LINES;
    const float *from = matrix + k * stride + line;
    float *to = panel + thread / LINES * ROW + thread % LINES;
#pragma unroll
    for (int e = 0; e < LINES * DEPTH / THREADS; e++) {
        const int down = e * THREADS % LINES, further = e * THREADS / LINES;
        const bool is_inside = line + down < lines && k + further < k_end;
        gemm_copy(to + further * ROW + down, is_inside ? from + further * stride + down : matrix, is_inside);
    }
}

/* A tile of a product: where it begins in c, and the k that it takes. */
template <class SHAPE> struct gemm_problem : gemm_terms<SHAPE::depth> {
    const gemm_product &p;
    int batch, first_m, first_n;
    __device__ void fill_rows(float *panel, int step) const {
        gemm_fill<SHAPE::rows, SHAPE::depth, SHAPE::a_row, SHAPE::a_along_k, SHAPE::threads>(
            panel, p.a + batch * p.a_batch, p.a_line, first_m, p.m, this->k_of(step), this->k_end);
    }
    __device__ void fill_columns(float *panel, int step) const {
        gemm_fill<SHAPE::columns, SHAPE::depth, SHAPE::b_row, SHAPE::b_along_k, SHAPE::threads>(
            panel, p.b + batch * p.b_batch, p.b_line, first_n, p.n, this->k_of(step), this->k_end);
    }
    __device__ void write(const float values[SHAPE::lines][8], int step, int down, int across) const {
        const int64_t block = SHAPE::totals == TOTALS_APART ? this->k_of(step) / GEMM_K_BLOCK : 0;
        gemm_write<SHAPE>(values, p.c + batch * p.c_batch + block * p.m * p.n, first_m + down, first_n + across, p.m,
                          p.n);
    }
};

/* The tile of this thread block: down through GEMM_GROUP rows of tiles first, then across. */
static __device__ __forceinline__ void gemm_place(int *tile_m, int *tile_n) {
    if (GEMM_GROUP == 1) {
        *tile_m = blockIdx.y, *tile_n = blockIdx.x;
        return;
    }
    const int across = gridDim.x, in_order = blockIdx.y * across + blockIdx.x, each = GEMM_GROUP * across;
    const int first = in_order / each * GEMM_GROUP, left = (int)gridDim.y - first;
    const int down = left < GEMM_GROUP ? left : GEMM_GROUP;
    *tile_m = first + in_order % each % down;
    *tile_n = in_order % each / down;
}

template <class SHAPE> static __device__ __forceinline__ void gemm_compute(const gemm_product &p) {
    int tile_m, tile_n;
    gemm_place(&tile_m, &tile_n);
    const int k_share = p.blocks_each * GEMM_K_BLOCK, shares = p.k > k_share ? (p.k + k_share - 1) / k_share : 1;
    const int k_begin = blockIdx.z % shares * k_share;
    const gemm_problem<SHAPE> problem = {
        {k_begin, p.k - k_begin < k_share ? p.k : k_begin + k_share}, p, (int)blockIdx.z / shares,
        tile_m * SHAPE::rows, tile_n * SHAPE::columns};
    gemm_tile<SHAPE>(problem);
}

#ifndef GEMM_NAME
#define GEMM_NAME gemm_product_tile
#endif

typedef gemm_shape<GEMM_ROWS, GEMM_COLUMNS, GEMM_DEPTH, GEMM_STAGES, GEMM_LINES, GEMM_TOTALS, GEMM_A_ALONG_K,
                   GEMM_B_ALONG_K>
    gemm_chosen;

/* Dynamic shared memory: gemm_chosen::shared_bytes; threads: gemm_chosen::threads. */
extern "C" __global__ void __launch_bounds__(gemm_chosen::threads, GEMM_MIN_BLOCKS) GEMM_NAME(gemm_product p) {
    gemm_compute<gemm_chosen>(p);
}

#endif
