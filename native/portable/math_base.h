/* The parts of the scalar mathematics. CUDA C++ may define SBP_FUNCTION itself before it includes any of it.
 *
 * No function here branches on its argument where it can choose instead: loops over them become vector code. */
#ifndef SAMEBITS_PORTABLE_MATH_BASE_H
#define SAMEBITS_PORTABLE_MATH_BASE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifndef SBP_FUNCTION
#define SBP_FUNCTION static inline __attribute__((always_inline, unused))
#endif

#define SBM_FMA_f32 fmaf
#define SBM_FMA_f64 fma

SBP_FUNCTION uint32_t sbm_bits_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

SBP_FUNCTION float sbm_from_bits_f32(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

SBP_FUNCTION uint64_t sbm_bits_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

SBP_FUNCTION double sbm_from_bits_f64(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Adding and subtracting it rounds to an integer, that the sum has in its lowest bits. */
#define SBM_ROUNDER_f32 0x1.8p+23f
#define SBM_ROUNDER_f64 0x1.8p+52

/* 2^k for an integer k in the range of normal exponents. */
SBP_FUNCTION float sbm_power_of_two_f32(float k) {
    return sbm_from_bits_f32((sbm_bits_f32(k + SBM_ROUNDER_f32) + 127u) << 23);
}

SBP_FUNCTION double sbm_power_of_two_f64(double k) {
    return sbm_from_bits_f64((sbm_bits_f64(k + SBM_ROUNDER_f64) + 1023u) << 52);
}

SBP_FUNCTION float sbm_round_f32(float x) { return (x + SBM_ROUNDER_f32) - SBM_ROUNDER_f32; }
SBP_FUNCTION double sbm_round_f64(double x) { return (x + SBM_ROUNDER_f64) - SBM_ROUNDER_f64; }

/* x 2^k rounded once, for |x| from 2^-2 to 2^2 and |k| below 2^11 (2^8): both factors are normal, the first is exact. */
SBP_FUNCTION float sbm_scale_f32(float x, float k) {
    const uint32_t biased = sbm_bits_f32(k + SBM_ROUNDER_f32) - (0x4b400000u - 254u), half = biased >> 1;
    return (x * sbm_from_bits_f32(half << 23)) * sbm_from_bits_f32((biased - half) << 23);
}

SBP_FUNCTION double sbm_scale_f64(double x, double k) {
    const uint64_t biased = sbm_bits_f64(k + SBM_ROUNDER_f64) - (0x4338000000000000u - 2046u), half = biased >> 1;
    return (x * sbm_from_bits_f64(half << 52)) * sbm_from_bits_f64((biased - half) << 52);
}

SBP_FUNCTION float sbm_abs_f32(float x) { return sbm_from_bits_f32(sbm_bits_f32(x) & 0x7fffffffu); }
SBP_FUNCTION double sbm_abs_f64(double x) { return sbm_from_bits_f64(sbm_bits_f64(x) & 0x7fffffffffffffffu); }

/* |x| with the sign of y. */
SBP_FUNCTION float sbm_signed_f32(float x, float y) {
    return sbm_from_bits_f32((sbm_bits_f32(x) & 0x7fffffffu) | (sbm_bits_f32(y) & 0x80000000u));
}
SBP_FUNCTION double sbm_signed_f64(double x, double y) {
    return sbm_from_bits_f64((sbm_bits_f64(x) & 0x7fffffffffffffffu) | (sbm_bits_f64(y) & 0x8000000000000000u));
}

/* x = 2^exponent mantissa, mantissa in (sqrt(1/2), sqrt(2)], for normal and subnormal x > 0. */
SBP_FUNCTION float sbm_split_f32(float x, float *exponent) {
    const int tiny = x < 0x1p-126f;
    const uint32_t bits = sbm_bits_f32(tiny ? x * 0x1p25f : x) - 0x3f3504f4u;
    /* The shift of the sign would be the compiler's choice: the exponent is read with a bias that keeps it positive. */
    const uint32_t biased = (bits + 0x40000000u) >> 23;
    *exponent = sbm_from_bits_f32(0x4b000000u | biased) - (0x1p23f + (tiny ? 128.0f + 25.0f : 128.0f));
    return sbm_from_bits_f32((bits & 0x007fffffu) + 0x3f3504f4u);
}

SBP_FUNCTION double sbm_split_f64(double x, double *exponent) {
    const int tiny = x < 0x1p-1022;
    const uint64_t bits = sbm_bits_f64(tiny ? x * 0x1p54 : x) - 0x3fe6a09e667f3bcdu;
    const uint64_t biased = (bits + 0x4000000000000000u) >> 52;
    *exponent = sbm_from_bits_f64(0x4330000000000000u | biased) - (0x1p52 + (tiny ? 1024.0 + 54.0 : 1024.0));
    return sbm_from_bits_f64((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
}

SBP_FUNCTION float sbm_sqrt_f32(float x) { return sqrtf(x); }
SBP_FUNCTION double sbm_sqrt_f64(double x) { return sqrt(x); }

/* a + b = the result + low. */
SBP_FUNCTION double sbm_two_sum_f64(double a, double b, double *low) {
    const double sum = a + b, of_b = sum - a;
    *low = (a - (sum - of_b)) + (b - of_b);
    return sum;
}

#define SBM_INFINITY_f32 ((float)INFINITY)
#define SBM_INFINITY_f64 ((double)INFINITY)
#define SBM_NAN_f32 (sbm_from_bits_f32(0x7fc00000u))
#define SBM_NAN_f64 (sbm_from_bits_f64(0x7ff8000000000000u))

#endif
