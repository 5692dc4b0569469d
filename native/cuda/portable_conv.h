/* Convolutions of any sizes: where a tap meets an image, and the parameters that only a GPU's kernels have. See
 * "Convolutions" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_CUDA_PORTABLE_CONV_H
#define SAMEBITS_CUDA_PORTABLE_CONV_H

#include "portable_base.h"

/* The gradient of a weight, and a share of the blocks of k: `blocks` of them from `first_block` on. Their chains, each
 * (rows, depth, taps), go to `chains`: (groups, blocks, ...). `blocks_each`: of a thread block, where it is tiles. */
typedef struct {
    const void *image, *gradient;
    void *chains;
    int64_t samples, groups, depth, rows;
    int64_t size[3], out_size[3], kernel[3], stride[3], padding[3], dilation[3];
    int64_t first_block, blocks, blocks_each;
} sbd_conv_weight_parameters;

/* `chains`, (groups, blocks, outputs), are added in ascending order to `out`, (groups, outputs), or from zero on. */
typedef struct {
    const void *chains;
    void *out;
    int64_t groups, outputs, blocks, is_first;
} sbd_chains_parameters;

/* A position in three dimensions. */
typedef struct {
    int64_t at[3];
} sbd_place;

SBP_FUNCTION int64_t sbd_volume(const int64_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }

SBP_FUNCTION sbd_place sbd_place_of(int64_t i, const int64_t *sizes) {
    const sbd_place place = {{i / (sizes[1] * sizes[2]), i / sizes[2] % sizes[1], i % sizes[2]}};
    return place;
}

#endif
