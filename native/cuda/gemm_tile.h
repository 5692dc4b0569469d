/* Tiles of contractions in float32, in the order of docs/reference/portable-numerics.md ("Contractions"): a chain of
 * fused multiply-adds for each 128 consecutive k, chains added in ascending order. gemm_body.h has products of matrices,
 * portable_conv.cu convolutions.
 *
 * A thread block computes a tile of rows and columns, a warp a part of it, a thread LINES x 8 of that, in pieces of 4 x 4.
 * What it multiplies comes from two panels in shared memory, one for the rows and one for the columns, of which several
 * stages are filled ahead. A thread has two numbers for each of its outputs, the chain and the total; TOTALS says where
 * the totals are.
 */
#ifndef SAMEBITS_CUDA_GEMM_TILE_H
#define SAMEBITS_CUDA_GEMM_TILE_H

#include <stdint.h>

#define GEMM_K_BLOCK 128 /* SBP_K_BLOCK */

enum { TOTALS_IN_REGISTERS, TOTALS_IN_SHARED, TOTALS_APART /* each chain goes to memory, to be added later */ };

#ifdef SAMEBITS_CUDA_HOST_GRID_H
static inline void gemm_copy(float *to, const float *from, bool is_inside) {
    host_copy_later(to, is_inside ? from : nullptr, 4);
}
static inline void gemm_copy_1(float *to, const float *from) { host_copy_later(to, from, 4); }
static inline void gemm_copy_4(float *to, const float *from) { host_copy_later(to, from, 16); }
static inline void gemm_commit() { host_commit_copies(); }
template <int PENDING> static inline void gemm_wait() { host_wait_for_copies(PENDING); }
#define GEMM_SHARED(name) float *name = (float *)host_dynamic.data()
#else
/* Asynchronous copies into shared memory; what is not inside is zeros, and its address is not read. */
static __device__ __forceinline__ void gemm_copy(float *to, const float *from, bool is_inside) {
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    const int n_bytes = is_inside ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(n_bytes) : "memory");
}
static __device__ __forceinline__ void gemm_copy_1(float *to, const float *from) {
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
}
static __device__ __forceinline__ void gemm_copy_4(float *to, const float *from) {
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}
static __device__ __forceinline__ void gemm_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> static __device__ __forceinline__ void gemm_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
#define GEMM_SHARED(name)                                                                                              \
    extern __shared__ float4 gemm_shared[];                                                                            \
    float *name = (float *)gemm_shared
#endif

/* How a kernel is made. A warp has 8 x 4 threads: 32 x 16 for each piece of a thread. */
template <int ROWS_, int COLUMNS_, int DEPTH_, int STAGES_, int LINES_, int TOTALS_, int A_ALONG_K_, int B_ALONG_K_>
struct gemm_shape {
    static const int rows = ROWS_, columns = COLUMNS_, depth = DEPTH_, stages = STAGES_, totals = TOTALS_;
    static const int a_along_k = A_ALONG_K_, b_along_k = B_ALONG_K_;
    static const int lines = LINES_, outputs = lines * 8;
    static const int warp_rows = 8 * lines, warp_columns = 32;
    static const int warps_down = rows / warp_rows, warps_across = columns / warp_columns;
    static const int threads = 32 * warps_down * warps_across;
    /* A panel has its lines beside each other for each k; the gap keeps transposing stores in different banks. */
    static const int a_row = rows + 4, b_row = columns + (b_along_k ? 4 : 0);
    static const int a_size = depth * a_row, b_size = depth * b_row, stage_size = a_size + b_size;
    static const int totals_size = totals == TOTALS_IN_SHARED ? outputs * threads : 0;
    static const int shared_floats = stages * stage_size + totals_size, shared_bytes = 4 * shared_floats;
};

template <class SHAPE>
static __device__ __forceinline__ void gemm_write(const float values[SHAPE::lines][8], float *c, int first_m,
                                                  int first_n, int m, int n) {
    const bool by_4 = n % 4 == 0 && ((uintptr_t)c & 15) == 0;
#pragma unroll
    for (int i = 0; i < SHAPE::lines; i++) {
        const int row = first_m + i % 4 + i / 4 * 32;
        if (row >= m)
            continue;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int column = first_n + half * 16;
            float *at = c + (int64_t)row * n + column;
            const float *of = values[i] + 4 * half;
            if (by_4 && column + 4 <= n) {
                const float4 four = {of[0], of[1], of[2], of[3]};
                *(float4 *)at = four;
            } else {
#pragma unroll
                for (int j = 0; j < 4; j++)
                    if (column + j < n)
                        at[j] = of[j];
            }
        }
    }
}

static __device__ __forceinline__ void gemm_read_4(float *to, const float *from) {
    const float4 four = *(const float4 *)from;
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}

/* Adds one k of a stage to the chains; `a` and `b` are where this thread's lines begin. */
template <class SHAPE>
static __device__ __forceinline__ void gemm_step(float chain[SHAPE::lines][8], const float *a, const float *b) {
    float of_a[SHAPE::lines], of_b[8];
#pragma unroll
    for (int piece = 0; piece < SHAPE::lines / 4; piece++)
        gemm_read_4(of_a + 4 * piece, a + 32 * piece);
#pragma unroll
    for (int piece = 0; piece < 2; piece++)
        gemm_read_4(of_b + 4 * piece, b + 16 * piece);
#pragma unroll
    for (int i = 0; i < SHAPE::lines; i++)
#pragma unroll
        for (int j = 0; j < 8; j++)
            chain[i][j] = __fmaf_rn(of_a[i], of_b[j], chain[i][j]);
}

/* Where the totals of a thread's row i, columns 4 half to 4 half + 3, lie in shared memory: those of threads beside each
 * other are beside each other, so that a warp reads without conflicts. */
template <class SHAPE> static __device__ __forceinline__ float4 *gemm_totals_at(float *totals, int i, int half) {
    return (float4 *)totals + (i * 2 + half) * SHAPE::threads + threadIdx.x;
}

/* Where a block of k ends: the chain joins the total, and begins again. */
template <class SHAPE>
static __device__ __forceinline__ void gemm_end_chain(float chain[SHAPE::lines][8], float total[SHAPE::lines][8],
                                                      float *shared_totals) {
#pragma unroll
    for (int i = 0; i < SHAPE::lines; i++) {
        if (SHAPE::totals == TOTALS_IN_SHARED) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float4 *at = gemm_totals_at<SHAPE>(shared_totals, i, half), four = *at;
                four.x = __fadd_rn(four.x, chain[i][4 * half]);
                four.y = __fadd_rn(four.y, chain[i][4 * half + 1]);
                four.z = __fadd_rn(four.z, chain[i][4 * half + 2]);
                four.w = __fadd_rn(four.w, chain[i][4 * half + 3]);
                *at = four;
            }
        }
#pragma unroll
        for (int j = 0; j < 8; j++) {
            if (SHAPE::totals == TOTALS_IN_REGISTERS)
                total[i][j] = __fadd_rn(total[i][j], chain[i][j]);
            chain[i][j] = 0.0f;
        }
    }
}

/* The steps of a sum over consecutive k: what a PROBLEM has that needs no others. */
template <int DEPTH> struct gemm_terms {
    int k_begin, k_end;
    __device__ int steps() const { return (k_end - k_begin + DEPTH - 1) / DEPTH; }
    __device__ int k_of(int step) const { return k_begin + step * DEPTH; }
    __device__ int count(int step) const { return k_end - k_of(step); }
    __device__ bool ends(int step) const {
        return (k_of(step) + DEPTH) % GEMM_K_BLOCK == 0 || count(step) <= DEPTH;
    }
};

/* Computes the tile of a thread block, in steps of at most SHAPE::depth terms. A PROBLEM has
 *     steps(): how many there are; count(step): how many terms it has, or more; ends(step): whether a chain ends with it;
 *     fill_rows(panel, step), fill_columns(panel, step): queue copies of the step's terms into the panels;
 *     write(values, step, first row, first column): of a thread's part of the tile, counted from the tile's first ones;
 *         chains where these are apart, at the last step of each, else totals. */
template <class SHAPE, class PROBLEM> static __device__ __forceinline__ void gemm_tile(const PROBLEM &problem) {
    GEMM_SHARED(shared);
    float *shared_totals = shared + SHAPE::stages * SHAPE::stage_size;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int down = warp / SHAPE::warps_across * SHAPE::warp_rows + lane / 4 * 4;
    const int across = warp % SHAPE::warps_across * SHAPE::warp_columns + lane % 4 * 4;
    const int steps = problem.steps();
    float chain[SHAPE::lines][8], total[SHAPE::lines][8];
#pragma unroll
    for (int i = 0; i < SHAPE::lines; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) {
            chain[i][j] = 0.0f;
            total[i][j] = 0.0f;
            if (SHAPE::totals == TOTALS_IN_SHARED && j % 4 == 0) {
                const float4 zeros = {0.0f, 0.0f, 0.0f, 0.0f};
                *gemm_totals_at<SHAPE>(shared_totals, i, j / 4) = zeros;
            }
        }
    auto fill = [&](int step) {
        if (step < steps) {
            float *stage = shared + step % SHAPE::stages * SHAPE::stage_size;
            problem.fill_rows(stage, step);
            problem.fill_columns(stage + SHAPE::a_size, step);
        }
        gemm_commit();
    };
#pragma unroll
    for (int step = 0; step < SHAPE::stages - 1; step++)
        fill(step);
    for (int step = 0; step < steps; step++) {
        gemm_wait<SHAPE::stages - 2>();
        __syncthreads();
        fill(step + SHAPE::stages - 1);
        const float *stage = shared + step % SHAPE::stages * SHAPE::stage_size;
        const float *a = stage + down, *b = stage + SHAPE::a_size + across;
        const int count = problem.count(step);
        if (count >= SHAPE::depth) {
#pragma unroll
            for (int i = 0; i < SHAPE::depth; i++)
                gemm_step<SHAPE>(chain, a + i * SHAPE::a_row, b + i * SHAPE::b_row);
        } else { /* a zero more in the chain would turn its -0 into +0 */
#pragma unroll 1
            for (int i = 0; i < count; i++)
                gemm_step<SHAPE>(chain, a + i * SHAPE::a_row, b + i * SHAPE::b_row);
        }
        if (problem.ends(step)) {
            if (SHAPE::totals == TOTALS_APART) {
                problem.write(chain, step, down, across);
#pragma unroll
                for (int i = 0; i < SHAPE::outputs; i++)
                    chain[i / 8][i % 8] = 0.0f;
            } else {
                gemm_end_chain<SHAPE>(chain, total, shared_totals);
            }
        }
    }
    if (SHAPE::totals == TOTALS_IN_SHARED) {
#pragma unroll
        for (int i = 0; i < SHAPE::outputs / 4; i++) {
            const float4 four = *gemm_totals_at<SHAPE>(shared_totals, i / 2, i % 2);
            float *row = total[i / 2] + i % 2 * 4;
            row[0] = four.x, row[1] = four.y, row[2] = four.z, row[3] = four.w;
        }
    }
    if (SHAPE::totals != TOTALS_APART)
        problem.write(total, 0, down, across);
}

#endif
