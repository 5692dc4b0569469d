/* The arithmetic of the digest, free of any platform: the C build and a CUDA build both include it.
 *
 * docs/reference/digest.md is the definition; the names here are the names there. SB_FN is what precedes a function
 * (`static inline` in C, `__host__ __device__ static inline` in CUDA).
 */
#ifndef SAMEBITS_DIGEST_CORE_H
#define SAMEBITS_DIGEST_CORE_H

#include <stdint.h>

#ifndef SB_FN
#define SB_FN static inline
#endif

#define SB_LANES 16
#define SB_STRIPES 8
#define SB_SUMS 8     /* lanes l and l + 8 have their sums in common */
#define SB_BLOCK 1024 /* bytes: SB_STRIPES stripes of SB_LANES words of 8 bytes */

/* Multipliers are odd and below 2^32, so that SIMD without a 64-bit multiply needs two 32-bit ones only. */
#define SB_CHAIN UINT32_C(0x9E3779B1)
#define SB_MIX_1 UINT32_C(0x85EBCA77)
#define SB_MIX_2 UINT32_C(0xC2B2AE3D)

/* The first 22 outputs of SplitMix64 seeded with the bytes "samebits"; multipliers have bit 0 set. */
#define SB_STARTS                                                                                  \
    {UINT64_C(0xEDAA801C0BB76B7F), UINT64_C(0xA8130E1C1A912CB0), UINT64_C(0x3E40474780E19F1E), \
     UINT64_C(0x45AB89FC3ACBB761), UINT64_C(0xFC42F827E080C4C4), UINT64_C(0xC80DD6E48C56C4F2), \
     UINT64_C(0x601C03D6F42D3F51), UINT64_C(0x92E7EF168252ECFD), UINT64_C(0xBA0E21BB6A2C1A8C), \
     UINT64_C(0xFEC8485EB10E74DC), UINT64_C(0xF96B4253C6A21244), UINT64_C(0x81ABA357AD8A0807), \
     UINT64_C(0xF462E622FC17277E), UINT64_C(0xBDCF34F3E13BB743), UINT64_C(0xD7D488CA8E64E863), \
     UINT64_C(0x058D8E8AA1746685)}
#define SB_INDEX_1 UINT64_C(0xDB3ACFF067949FEF)
#define SB_INDEX_2 UINT64_C(0x0E589787EB2A6C8B)
#define SB_FOLD_START_0 UINT64_C(0xAE484ED1E64C9927)
#define SB_FOLD_START_1 UINT64_C(0x9877459752A73BD7)
#define SB_FOLD_0 UINT64_C(0x85E3B83333BEA5AB)
#define SB_FOLD_1 UINT64_C(0x301D3659B0993B1D)

/* The sums over the blocks of one tensor, modulo 2^64: any order of the blocks gives the same value. */
typedef struct {
    uint64_t chain[SB_SUMS];
    uint64_t trail[SB_SUMS];
} sb_sums;

/* One step of a lane: a bijection of the state for any word, and of the word for any state. The shift is no
 * multiple of 8, so that no two bits that data changes together (signs of neighbours) cancel each other in it. */
SB_FN uint64_t sb_step(uint64_t chain, uint64_t word) {
    uint64_t t = chain ^ word;
    t ^= t >> 29;
    return t * SB_CHAIN;
}

/* Applied to a lane at the end of its block, so that the sums over blocks see which block it was. */
SB_FN uint64_t sb_mix(uint64_t x) {
    x ^= x >> 32;
    x *= SB_MIX_1;
    x ^= x >> 29;
    x *= SB_MIX_2;
    return x ^ (x >> 32);
}

typedef struct {
    uint64_t h0, h1;
} sb_fold;

SB_FN sb_fold sb_absorb(sb_fold f, uint64_t value) {
    f.h0 ^= value;
    f.h0 = (f.h0 ^ (f.h0 >> 32)) * SB_FOLD_0;
    f.h1 += value;
    f.h1 = (f.h1 ^ (f.h1 >> 29)) * SB_FOLD_1;
    return f;
}

/* Closes a digest with what is not in the bytes. */
SB_FN sb_fold sb_close(const sb_sums *sums, uint64_t n_bytes, uint64_t dtype, uint64_t n_sizes,
                       const uint64_t *sizes) {
    sb_fold f = {SB_FOLD_START_0, SB_FOLD_START_1};
    for (int l = 0; l < SB_SUMS; l++)
        f = sb_absorb(f, sums->chain[l]);
    for (int l = 0; l < SB_SUMS; l++)
        f = sb_absorb(f, sums->trail[l]);
    f = sb_absorb(f, n_bytes);
    f = sb_absorb(f, dtype);
    f = sb_absorb(f, n_sizes);
    for (uint64_t d = 0; d < n_sizes; d++)
        f = sb_absorb(f, sizes[d]);
    f.h0 += f.h1;
    f.h0 = sb_mix(f.h0);
    f.h1 += f.h0;
    f.h1 = sb_mix(f.h1);
    f.h0 += f.h1;
    return f;
}

#endif
