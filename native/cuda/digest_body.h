/* The digest of many tensors in one launch (docs/reference/digest.md); digest.cu and the host build of the tests
 * include it.
 *
 * Tensors are cut into units of DIGEST_UNIT blocks. A thread block takes every gridDim.x-th unit, keeps the sums of the
 * tensor that it reads in registers, and adds them to those of the tensor when it goes on to another one. All sums are
 * integers modulo 2^64, so neither the grid nor the order of atomic additions shows in them.
 */
#ifndef SAMEBITS_CUDA_DIGEST_BODY_H
#define SAMEBITS_CUDA_DIGEST_BODY_H

#include "digest_core.h"

#define DIGEST_UNIT 64    /* blocks of 1024 bytes */
#define DIGEST_THREADS 256
#define DIGEST_WARPS (DIGEST_THREADS / 32)
#define DIGEST_FIELDS 5

typedef unsigned long long digest_word; /* the type that atomicAdd and shuffles take */

/* The fields of a tensor in the table. */
enum { DIGEST_ADDRESS, DIGEST_BYTES, DIGEST_DTYPE, DIGEST_DIMENSIONS, DIGEST_SIZES /* index into the list of sizes */ };

__device__ __constant__ const uint64_t digest_starts[SB_LANES] = SB_STARTS;

/* The word at any byte of the contents; beyond their end there are zeros. Reads nothing outside the contents. */
static __device__ uint64_t digest_word_at(const unsigned char *data, uint64_t n_bytes, uint64_t offset) {
    const uint64_t shift = ((uintptr_t)(data + offset) & 7) * 8;
    if (shift == 0 && offset + 8 <= n_bytes)
        return *(const uint64_t *)(data + offset);
    if (shift != 0 && offset >= 8 && offset + 16 <= n_bytes) {
        const uint64_t *below = (const uint64_t *)(data + offset - shift / 8);
        return below[0] >> shift | below[1] << (64 - shift);
    }
    uint64_t word = 0;
#pragma unroll 1
    for (uint64_t i = 0; i < 8 && offset + i < n_bytes; i++)
        word |= (uint64_t)data[offset + i] << (8 * i);
    return word;
}

/* The tensor that a unit belongs to: the last one whose first unit is not beyond it. */
static __device__ uint64_t digest_owner(const uint64_t *first_units, uint64_t n_tensors, uint64_t unit) {
    uint64_t low = 0, high = n_tensors;
    while (high - low > 1) {
        const uint64_t middle = (low + high) / 2;
        if (first_units[middle] <= unit)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* WIDE lanes of a block for each thread, and UNROLL blocks at once. */
template <int WIDE, int UNROLL> struct digest_reader {
    static const int group = SB_LANES / WIDE; /* threads that share a block */
    static const int groups = DIGEST_THREADS / group;
    digest_word chain[WIDE], trail[WIDE]; /* sums of this thread's lanes */

    __device__ void clear() {
        for (int w = 0; w < WIDE; w++)
            chain[w] = 0, trail[w] = 0;
    }

    static __device__ bool is_plain(const unsigned char *data, uint64_t n_bytes, uint64_t block) {
        return ((uintptr_t)data & (8 * WIDE - 1)) == 0 && (block + 1) * SB_BLOCK <= n_bytes;
    }

    static __device__ void read(const unsigned char *at, uint64_t words[SB_STRIPES][WIDE]) {
#pragma unroll
        for (int s = 0; s < SB_STRIPES; s++, at += SB_LANES * 8) {
            if (WIDE == 2) {
                const ulonglong2 two = *(const ulonglong2 *)at;
                words[s][0] = two.x, words[s][WIDE - 1] = two.y;
            } else {
                words[s][0] = *(const uint64_t *)at;
            }
        }
    }

    __device__ void end_block(int w, uint64_t block, uint64_t state, uint64_t sum) {
        chain[w] += sb_mix(state ^ block * SB_INDEX_1);
        trail[w] += sb_mix(sum ^ block * SB_INDEX_2);
    }

    __device__ void add(uint64_t block, const uint64_t start[WIDE], const uint64_t words[SB_STRIPES][WIDE]) {
#pragma unroll
        for (int w = 0; w < WIDE; w++) {
            uint64_t state = start[w], sum = 0;
#pragma unroll
            for (int s = 0; s < SB_STRIPES; s++) {
                state = sb_step(state, words[s][w]);
                sum += state;
            }
            end_block(w, block, state, sum);
        }
    }

    /* A block that begins at any byte, or that the contents do not fill. */
    __device__ void add_at_any(const unsigned char *data, uint64_t n_bytes, uint64_t block, int lane,
                               const uint64_t start[WIDE]) {
#pragma unroll
        for (int w = 0; w < WIDE; w++) {
            uint64_t state = start[w], sum = 0, offset = block * SB_BLOCK + (uint64_t)(lane + w) * 8;
#pragma unroll 1
            for (int s = 0; s < SB_STRIPES; s++, offset += SB_LANES * 8) {
                state = sb_step(state, digest_word_at(data, n_bytes, offset));
                sum += state;
            }
            end_block(w, block, state, sum);
        }
    }

    /* All threads of the block call it together. */
    __device__ void add_unit(const unsigned char *data, uint64_t n_bytes, uint64_t first) {
        const int lane = (int)(threadIdx.x % group) * WIDE;
        const uint64_t blocks = (n_bytes + SB_BLOCK - 1) / SB_BLOCK;
        const uint64_t end = blocks < first + DIGEST_UNIT ? blocks : first + DIGEST_UNIT;
        uint64_t start[WIDE];
#pragma unroll
        for (int w = 0; w < WIDE; w++)
            start[w] = digest_starts[lane + w];
        for (uint64_t block = first + threadIdx.x / group; block < end; block += groups * UNROLL) {
            const uint64_t last = block + groups * (UNROLL - 1);
            if (last < end && is_plain(data, n_bytes, last)) {
                uint64_t words[UNROLL][SB_STRIPES][WIDE];
#pragma unroll
                for (int u = 0; u < UNROLL; u++)
                    read(data + (block + u * groups) * SB_BLOCK + lane * 8, words[u]);
#pragma unroll
                for (int u = 0; u < UNROLL; u++)
                    add(block + u * groups, start, words[u]);
            } else {
#pragma unroll 1
                for (uint64_t one = block; one <= last && one < end; one += groups) {
                    if (UNROLL > 1 && is_plain(data, n_bytes, one)) {
                        uint64_t words[SB_STRIPES][WIDE];
                        read(data + one * SB_BLOCK + lane * 8, words);
                        add(one, start, words);
                    } else {
                        add_at_any(data, n_bytes, one, lane, start);
                    }
                }
            }
        }
    }

    /* Adds the sums of the thread block to those of a tensor. All threads of the block call it together. */
    __device__ void flush(digest_word *sums) {
        __shared__ digest_word parts[DIGEST_WARPS][2 * SB_SUMS];
        const int in_warp = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
        for (int w = 0; w < WIDE; w++) {
#pragma unroll
            for (int distance = SB_SUMS / WIDE; distance < 32; distance *= 2) {
                chain[w] += __shfl_xor_sync(0xffffffffu, chain[w], distance);
                trail[w] += __shfl_xor_sync(0xffffffffu, trail[w], distance);
            }
            if (in_warp < SB_SUMS / WIDE) {
                parts[warp][in_warp * WIDE + w] = chain[w];
                parts[warp][SB_SUMS + in_warp * WIDE + w] = trail[w];
            }
        }
        __syncthreads();
        if (threadIdx.x < 2 * SB_SUMS) {
            digest_word sum = 0;
            for (int i = 0; i < DIGEST_WARPS; i++)
                sum += parts[i][threadIdx.x];
            atomicAdd(sums + threadIdx.x, sum);
        }
        __syncthreads();
        clear();
    }
};

/* `tensors`: DIGEST_FIELDS numbers for each; `first_units`: of each tensor, and the number of units last; `sums`: 16
 * for each, zeros before. */
template <int WIDE, int UNROLL>
static __device__ void digest_add(const uint64_t *tensors, const uint64_t *first_units, uint64_t n_tensors,
                                  digest_word *sums) {
    digest_reader<WIDE, UNROLL> reader;
    const uint64_t n_units = first_units[n_tensors];
    uint64_t owner = n_tensors;
    reader.clear();
    for (uint64_t unit = blockIdx.x; unit < n_units; unit += gridDim.x) {
        if (owner == n_tensors || unit >= first_units[owner + 1]) {
            if (owner != n_tensors)
                reader.flush(sums + owner * 2 * SB_SUMS);
            owner = digest_owner(first_units, n_tensors, unit);
        }
        const uint64_t *tensor = tensors + owner * DIGEST_FIELDS;
        reader.add_unit((const unsigned char *)(uintptr_t)tensor[DIGEST_ADDRESS], tensor[DIGEST_BYTES],
                        (unit - first_units[owner]) * DIGEST_UNIT);
    }
    if (owner != n_tensors)
        reader.flush(sums + owner * 2 * SB_SUMS);
}

#define DIGEST_KERNEL(name, wide, unroll, blocks)                                                                      \
    extern "C" __global__ void __launch_bounds__(DIGEST_THREADS, blocks)                                              \
        name(const uint64_t *tensors, const uint64_t *first_units, uint64_t n_tensors, digest_word *sums) {           \
        digest_add<wide, unroll>(tensors, first_units, n_tensors, sums);                                              \
    }

DIGEST_KERNEL(digest_1x1, 1, 1, 6)
DIGEST_KERNEL(digest_1x2, 1, 2, 4)
DIGEST_KERNEL(digest_2x1, 2, 1, 4)
DIGEST_KERNEL(digest_2x2, 2, 2, 2)

/* Two words of each tensor's digest, from its sums; `out` may be host memory that the device can write. */
extern "C" __global__ void digest_finish(const uint64_t *tensors, const uint64_t *sizes, uint64_t n_tensors,
                                         const digest_word *sums, uint64_t *out) {
    const uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_tensors)
        return;
    const uint64_t *tensor = tensors + i * DIGEST_FIELDS;
    sb_sums whole;
    for (int l = 0; l < SB_SUMS; l++) {
        whole.chain[l] = sums[i * 2 * SB_SUMS + l];
        whole.trail[l] = sums[i * 2 * SB_SUMS + SB_SUMS + l];
    }
    const sb_fold fold = sb_close(&whole, tensor[DIGEST_BYTES], tensor[DIGEST_DTYPE], tensor[DIGEST_DIMENSIONS],
                                  sizes + tensor[DIGEST_SIZES]);
    out[2 * i] = fold.h0;
    out[2 * i + 1] = fold.h1;
}

#endif
