/* Runs a kernel on the CPU, from its CUDA source: each thread of a block is a fiber, and blocks run one after another.
 *
 * Fibers change at barriers and shuffles only, in the order of thread numbers or in reverse. Barriers and shuffles must
 * be reached by all threads of a block, as the kernels here do. Says nothing about races between warps, nor about speed.
 */
#ifndef SAMEBITS_CUDA_HOST_GRID_H
#define SAMEBITS_CUDA_HOST_GRID_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include <functional>
#include <vector>

#define __global__
#define __device__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static

struct host_index {
    unsigned x, y, z;
};

struct ulonglong2 {
    unsigned long long x, y;
};

struct alignas(16) float4 {
    float x, y, z, w;
};

struct host_fiber {
    ucontext_t context;
    bool is_done;
    host_index index;
};

static std::vector<host_fiber> host_fibers;
static std::vector<unsigned char> host_stacks, host_dynamic;
static std::function<void()> host_body;
static ucontext_t host_scheduler;
static unsigned host_current;
static host_index gridDim, blockDim, blockIdx;
static unsigned long long host_exchange[1024];

#define threadIdx (host_fibers[host_current].index)
#define HOST_STACK ((size_t)1 << 16)

static void host_enter() {
    host_body();
    host_fibers[host_current].is_done = true;
    swapcontext(&host_fibers[host_current].context, &host_scheduler);
}

static inline void __syncthreads() { swapcontext(&host_fibers[host_current].context, &host_scheduler); }

template <class T> static inline T __shfl_xor_sync(unsigned, T value, int distance) {
    static_assert(sizeof(T) <= sizeof host_exchange[0], "a value fits");
    const unsigned me = host_current;
    T other;
    memcpy(&host_exchange[me], &value, sizeof value);
    __syncthreads();
    memcpy(&other, &host_exchange[me ^ (unsigned)distance], sizeof other);
    __syncthreads();
    return other;
}

static inline int __syncthreads_or(int value) {
    const unsigned me = host_current;
    host_exchange[me] = value != 0;
    __syncthreads();
    int any = 0;
    for (unsigned t = 0; t < blockDim.x; t++)
        any |= (int)host_exchange[t];
    __syncthreads();
    return any;
}

static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }

static inline void atomicAdd(unsigned long long *sum, unsigned long long value) { *sum += value; }
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float __fadd_rn(float a, float b) { return a + b; }

static void host_run_block(bool reverse) {
    const unsigned n = blockDim.x;
    host_fibers.assign(n, host_fiber{});
    for (unsigned t = 0; t < n; t++) {
        host_fiber &fiber = host_fibers[t];
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = &host_stacks[HOST_STACK * t];
        fiber.context.uc_stack.ss_size = HOST_STACK;
        fiber.context.uc_link = nullptr;
        fiber.index = {t, 0, 0};
        makecontext(&fiber.context, host_enter, 0);
    }
    for (unsigned left = n; left;)
        for (unsigned i = 0; i < n; i++) {
            host_current = reverse ? n - 1 - i : i;
            if (host_fibers[host_current].is_done)
                continue;
            swapcontext(&host_scheduler, &host_fibers[host_current].context);
            left -= host_fibers[host_current].is_done;
        }
}

/* `shared` bytes of dynamic shared memory begin with other contents than zeros, as on a device. */
static void host_launch(host_index grid, unsigned threads, size_t shared, bool reverse, std::function<void()> body) {
    gridDim = grid, blockDim = {threads, 1, 1}, host_body = body;
    host_stacks.resize(HOST_STACK * threads);
    host_dynamic.assign(shared + 16, 0xff);
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
                host_run_block(reverse);
}

/* The same for a kernel whose threads do not wait for each other: no fibers are needed. */
static void host_launch_apart(host_index grid, unsigned threads, bool reverse, std::function<void()> body) {
    gridDim = grid, blockDim = {threads, 1, 1};
    host_fibers.assign(threads, host_fiber{});
    for (unsigned t = 0; t < threads; t++)
        host_fibers[t].index = {t, 0, 0};
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
                for (unsigned i = 0; i < threads; i++) {
                    host_current = reverse ? threads - 1 - i : i;
                    body();
                }
}

#endif
