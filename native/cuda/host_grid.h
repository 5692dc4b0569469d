/* Runs a kernel on the CPU, from its CUDA source: each thread of a block is a fiber, and blocks run one after another.
 *
 * Fibers change at barriers and shuffles only, in the order of thread numbers or in reverse. Barriers and shuffles must
 * be reached by all threads of a block, as the kernels here do. Races show in a build that is watched: with
 * HOST_GRID_WATCHED, the grid tells what it does to races.h (tests/fake_gpu/native). Nothing is said about speed.
 */
#ifndef SAMEBITS_CUDA_HOST_GRID_H
#define SAMEBITS_CUDA_HOST_GRID_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <vector>

#ifdef HOST_GRID_WATCHED
#include "races.h"
#define HOST_TELL(call) races::call
#define HOST_UNWATCHED __attribute__((no_sanitize_thread)) /* what stands for the GPU, and is no part of a kernel */
#else
#define HOST_TELL(call) ((void)0)
#define HOST_UNWATCHED
#endif

#define __global__
#define __device__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static

struct host_index {
    unsigned x, y, z;
};

struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};

struct alignas(16) float4 {
    float x, y, z, w;
};

enum host_place { HOST_BARRIER, HOST_SHUFFLE, HOST_END };

struct host_copy {
    void *to;
    const void *from; /* null: zeros */
    size_t size;
};

struct host_fiber {
    ucontext_t context;
    host_place stopped_at;
    host_index index;
    std::vector<std::vector<host_copy>> copies; /* groups of asynchronous ones; the last is not committed */
};

static std::vector<host_fiber> host_fibers;
static std::vector<unsigned char> host_stacks;
static std::vector<float4> host_dynamic; /* shared memory, as aligned as on a device */
static std::function<void()> host_body;
static ucontext_t host_scheduler;
static unsigned host_current;
static host_index gridDim, blockDim, blockIdx;
static unsigned long long host_exchange[1024];

#define threadIdx (host_fibers[host_current].index)
#define HOST_STACK ((size_t)1 << 16)

HOST_UNWATCHED static inline void host_stop_at(host_place place) {
    host_fibers[host_current].stopped_at = place;
    swapcontext(&host_fibers[host_current].context, &host_scheduler);
}

HOST_UNWATCHED static void host_enter() {
    host_body();
    host_stop_at(HOST_END);
}

HOST_UNWATCHED static inline void __syncthreads() { host_stop_at(HOST_BARRIER); }

template <class T> HOST_UNWATCHED static inline T __shfl_xor_sync(unsigned, T value, int distance) {
    static_assert(sizeof(T) <= sizeof host_exchange[0], "a value fits");
    const unsigned me = host_current;
    T other;
    memcpy(&host_exchange[me], &value, sizeof value);
    host_stop_at(HOST_SHUFFLE);
    memcpy(&other, &host_exchange[me ^ (unsigned)distance], sizeof other);
    host_stop_at(HOST_SHUFFLE);
    return other;
}

HOST_UNWATCHED static inline int __syncthreads_or(int value) {
    const unsigned me = host_current;
    host_exchange[me] = value != 0;
    __syncthreads();
    int any = 0;
    for (unsigned t = 0; t < blockDim.x; t++)
        any |= (int)host_exchange[t];
    __syncthreads();
    return any;
}

static inline void host_copy_now(uint32_t *to, const uint32_t *from, size_t n_words) {
    for (size_t i = 0; i < n_words; i++)
        to[i] = from ? from[i] : 0;
}

/* Asynchronous copies of words of 4 bytes: each happens as late as a GPU may make it, when its thread waits for its group;
 * in a build that is not watched, at once. */
#ifdef HOST_GRID_WATCHED
HOST_UNWATCHED static inline void host_copy_later(void *to, const void *from, size_t size) {
    races::begin_copy(to, from, size);
    races::end_turn();
    auto &groups = host_fibers[host_current].copies;
    if (groups.empty())
        groups.emplace_back();
    groups.back().push_back({to, from, size});
    races::take_turn(host_current);
}

HOST_UNWATCHED static inline void host_commit_copies() {
    races::end_turn();
    host_fibers[host_current].copies.emplace_back();
    races::take_turn(host_current);
}

/* Waits until at most `pending` of the groups that were committed are left. */
HOST_UNWATCHED static inline void host_wait_for_copies(size_t pending) {
    auto &groups = host_fibers[host_current].copies;
    const size_t n_over = groups.size() > pending + 1 ? groups.size() - 1 - pending : 0;
    for (size_t i = 0; i < n_over; i++)
        for (const host_copy &copy : groups[i])
            host_copy_now((uint32_t *)copy.to, (const uint32_t *)copy.from, copy.size / 4);
    races::end_turn();
    groups.erase(groups.begin(), groups.begin() + (std::ptrdiff_t)n_over);
    races::take_turn(host_current);
}
#else
static inline void host_copy_later(void *to, const void *from, size_t size) {
    host_copy_now((uint32_t *)to, (const uint32_t *)from, size / 4);
}
static inline void host_commit_copies() {}
static inline void host_wait_for_copies(size_t) {}
#endif

static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }

HOST_UNWATCHED static inline void atomicAdd(unsigned long long *sum, unsigned long long value) {
    HOST_TELL(add_at(sum, sizeof *sum));
    *sum += value;
}
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float __fadd_rn(float a, float b) { return a + b; }

/* Tells where the threads of a block have come to. Returns whether they have ended. */
HOST_UNWATCHED static bool host_meet() {
    const host_place place = host_fibers[0].stopped_at;
    bool have_ended = true;
    for (const host_fiber &fiber : host_fibers) {
        if (fiber.stopped_at != place)
            HOST_TELL(diverge());
        have_ended &= fiber.stopped_at == HOST_END;
    }
    if (place == HOST_BARRIER)
        HOST_TELL(pass_barrier());
    return have_ended;
}

HOST_UNWATCHED static void host_run_block(bool reverse) {
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
    HOST_TELL(begin_block());
    do
        for (unsigned i = 0; i < n; i++) {
            host_current = reverse ? n - 1 - i : i;
            if (host_fibers[host_current].stopped_at == HOST_END)
                continue;
            HOST_TELL(take_turn(host_current));
            swapcontext(&host_scheduler, &host_fibers[host_current].context);
            HOST_TELL(end_turn());
        }
    while (!host_meet());
}

/* `shared` bytes of dynamic shared memory begin with other contents than zeros, as on a device. */
HOST_UNWATCHED static void host_launch(host_index grid, unsigned threads, size_t shared, bool reverse,
                                       std::function<void()> body) {
    gridDim = grid, blockDim = {threads, 1, 1}, host_body = body;
    host_stacks.resize(HOST_STACK * threads);
    host_fibers.resize(threads);
    host_dynamic.assign((shared + 15) / 16, {NAN, NAN, NAN, NAN});
    HOST_TELL(begin_launch({{host_stacks.data(), host_stacks.size()},
                            {host_fibers.data(), host_fibers.size() * sizeof(host_fiber)}},
                           {host_dynamic.data(), host_dynamic.size() * 16}));
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
                host_run_block(reverse);
}

/* The same for a kernel whose threads do not wait for each other: no fibers are needed. */
HOST_UNWATCHED static void host_launch_apart(host_index grid, unsigned threads, bool reverse,
                                             std::function<void()> body) {
    gridDim = grid, blockDim = {threads, 1, 1};
    host_fibers.assign(threads, host_fiber{});
    for (unsigned t = 0; t < threads; t++)
        host_fibers[t].index = {t, 0, 0};
    HOST_TELL(begin_launch({{host_fibers.data(), host_fibers.size() * sizeof(host_fiber)}}, {nullptr, 0}));
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) {
                HOST_TELL(begin_block());
                for (unsigned i = 0; i < threads; i++) {
                    host_current = reverse ? threads - 1 - i : i;
                    HOST_TELL(take_turn(host_current));
                    body();
                    HOST_TELL(end_turn());
                }
            }
}

#endif
