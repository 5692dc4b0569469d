/* Philox4x32-10, and how words become values: "Random numbers" in docs/reference/portable-numerics.md.
 * Plain functions of scalars, that CUDA C++ can include as they are. */
#ifndef SAMEBITS_PORTABLE_PHILOX_H
#define SAMEBITS_PORTABLE_PHILOX_H

#include <stdint.h>

#include "math_functions.h"

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

/* sin and cos of a quarter turn times x, for x in [-1/2, 1/2]. */
SBP_FUNCTION float sbp_sin_quarter_f32(float x) {
    const float z = x * x;
    float s = 0x1.507834p-13f;
    s = fmaf(s, z, -0x1.32d2ccp-8f);
    s = fmaf(s, z, 0x1.466bc6p-4f);
    s = fmaf(s, z, -0x1.4abbcep-1f);
    return fmaf(s, z, 0x1.921fb6p+0f) * x;
}

SBP_FUNCTION float sbp_cos_quarter_f32(float x) {
    const float z = x * x;
    float c = -0x1.a6d1f2p-16f;
    c = fmaf(c, z, 0x1.e1f506p-11f);
    c = fmaf(c, z, -0x1.55d3c8p-6f);
    c = fmaf(c, z, 0x1.03c1fp-2f);
    c = fmaf(c, z, -0x1.3bd3ccp+0f);
    return fmaf(c, z, 1.0f);
}

SBP_FUNCTION double sbp_sin_quarter_f64(double x) {
    const double z = x * x;
    double s = 0x1.aaec32af93359p-38;
    s = fma(s, z, -0x1.6fadb9f155744p-31);
    s = fma(s, z, 0x1.e8f434d018d63p-25);
    s = fma(s, z, -0x1.e3074fde8871fp-19);
    s = fma(s, z, 0x1.50783487ee782p-13);
    s = fma(s, z, -0x1.32d2cce62bd86p-8);
    s = fma(s, z, 0x1.466bc6775aae2p-4);
    s = fma(s, z, -0x1.4abbce625be53p-1);
    return fma(s, z, 0x1.921fb54442d18p+0) * x;
}

SBP_FUNCTION double sbp_cos_quarter_f64(double x) {
    const double z = x * x;
    double c = 0x1.20c62c2f2d7f5p-34;
    c = fma(c, z, -0x1.b6e24f44b128fp-28);
    c = fma(c, z, 0x1.f9d38a3763cc3p-22);
    c = fma(c, z, -0x1.a6d1f2a204a8cp-16);
    c = fma(c, z, 0x1.e1f506891babbp-11);
    c = fma(c, z, -0x1.55d3c7e3cbffap-6);
    c = fma(c, z, 0x1.03c1f081b5ac4p-2);
    c = fma(c, z, -0x1.3bd3cc9be45dep+0);
    return fma(c, z, 1.0);
}

/* cos and sin of word / 2^32 turns. */
SBP_FUNCTION void sbp_turn_f32(uint32_t word, float *cosine, float *sine) {
    const uint32_t quarter = (word + (1u << 29)) >> 30;
    const float x = (float)(int32_t)(word - (quarter << 30)) * 0x1p-30f;
    const float s = sbp_sin_quarter_f32(x), c = sbp_cos_quarter_f32(x);
    const float a = quarter & 1 ? s : c, b = quarter & 1 ? c : s;
    *cosine = (quarter + 1) & 2 ? -a : a;
    *sine = quarter & 2 ? -b : b;
}

SBP_FUNCTION void sbp_turn_f64(uint64_t word, double *cosine, double *sine) {
    const uint64_t quarter = (word + (1ull << 61)) >> 62;
    const double x = (double)(int64_t)(word - (quarter << 62)) * 0x1p-62;
    const double s = sbp_sin_quarter_f64(x), c = sbp_cos_quarter_f64(x);
    const double a = quarter & 1 ? s : c, b = quarter & 1 ? c : s;
    *cosine = (quarter + 1) & 2 ? -a : a;
    *sine = quarter & 2 ? -b : b;
}

/* In (0, 1]. */
SBP_FUNCTION float sbp_unit_f32(uint32_t word) { return ((float)(int32_t)(word >> 1) + 0.5f) * 0x1p-31f; }
SBP_FUNCTION double sbp_unit_f64(uint64_t word) { return ((double)(int64_t)(word >> 11) + 0.5) * 0x1p-53; }

/* Two normal values (Box and Muller). */
SBP_FUNCTION void sbp_normal_f32(uint32_t size, uint32_t turn, float pair[2]) {
    float c, s;
    const float radius = sbm_sqrt_f32(-2.0f * sbm_log_f32(sbp_unit_f32(size)));
    sbp_turn_f32(turn, &c, &s);
    pair[0] = radius * c;
    pair[1] = radius * s;
}

SBP_FUNCTION void sbp_normal_f64(uint64_t size, uint64_t turn, double pair[2]) {
    double c, s;
    const double radius = sbm_sqrt_f64(-2.0 * sbm_log_f64(sbp_unit_f64(size)));
    sbp_turn_f64(turn, &c, &s);
    pair[0] = radius * c;
    pair[1] = radius * s;
}

/* Exponential of rate 1, never 0. */
SBP_FUNCTION float sbp_exponential_f32(uint32_t word) {
    const float e = -sbm_log_f32(sbp_unit_f32(word));
    return e < 0x1p-26f ? 0x1p-26f : e;
}

SBP_FUNCTION double sbp_exponential_f64(uint64_t word) {
    const double e = -sbm_log_f64(sbp_unit_f64(word));
    return e < 0x1p-54 ? 0x1p-54 : e;
}

#endif
