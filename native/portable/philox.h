/* Philox4x32-10, and how words become values: "Random numbers" in docs/portable-numerics.md.
 * Plain functions of scalars, that CUDA C++ can include as they are. */
#ifndef SAMEBITS_PORTABLE_PHILOX_H
#define SAMEBITS_PORTABLE_PHILOX_H

#include <stdint.h>

#ifndef SBP_FUNCTION
#define SBP_FUNCTION static inline
#endif

#define SBP_PHILOX_M0 0xD2511F53u
#define SBP_PHILOX_M1 0xCD9E8D57u
#define SBP_PHILOX_W0 0x9E3779B9u
#define SBP_PHILOX_W1 0xBB67AE85u

/* Four words of the block with this counter; they take its place. */
SBP_FUNCTION void sbp_philox(uint64_t key, uint32_t counter[4]) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)counter[0] * SBP_PHILOX_M0, p1 = (uint64_t)counter[2] * SBP_PHILOX_M1;
        counter[0] = (uint32_t)(p1 >> 32) ^ counter[1] ^ k0;
        counter[1] = (uint32_t)p1;
        counter[2] = (uint32_t)(p0 >> 32) ^ counter[3] ^ k1;
        counter[3] = (uint32_t)p0;
        k0 += SBP_PHILOX_W0;
        k1 += SBP_PHILOX_W1;
    }
}

/* floor(word * range / 2^64); a range of 0 stands for 2^64. */
SBP_FUNCTION uint64_t sbp_in_range(uint64_t word, uint64_t range) {
    const uint64_t wl = (uint32_t)word, wh = word >> 32, rl = (uint32_t)range, rh = range >> 32;
    const uint64_t middle = wh * rl + (wl * rl >> 32), other = wl * rh + (uint32_t)middle;
    return range ? wh * rh + (middle >> 32) + (other >> 32) : word;
}

/* from + u * (to - from), in [from, to); `range` is to - from. */
SBP_FUNCTION float sbp_uniform_f32(float u, float from, float to, float range) {
    const float scaled = u * range, value = scaled + from;
    return value >= to ? from : value;
}

SBP_FUNCTION double sbp_uniform_f64(double u, double from, double to, double range) {
    const double scaled = u * range, value = scaled + from;
    return value >= to ? from : value;
}

#endif
