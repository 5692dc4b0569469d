/* Vectors of the instruction set of the including variant, for float (vf32) and double (vf64).
 *
 * NAME_LANES of them; NAME_load, _store (any alignment), _set (all lanes), _zero, _add, _mul, _fma(a, b, c) = a b + c.
 * NAME_transpose(p, line, out) loads NAME_SQUARE lines of as many elements, `line` apart, and gives them as columns, in
 * vectors of that many (NAME_square): in AVX-512 those of half the width, whose shuffles have two ports instead of one.
 */
#ifndef SAMEBITS_PORTABLE_SIMD_H
#define SAMEBITS_PORTABLE_SIMD_H

#include <math.h>
#include <stdint.h>

#define SBP_INLINE static inline __attribute__((always_inline, unused))

/* Holds a value in a register here: gcc's choice of what to spill is poor in loops that need nearly all of them. */
#if defined(SBP_IS_AVX512)
#define SBP_KEEP(value) __asm__("" : "+v"(value))
#elif defined(SBP_IS_AVX2)
#define SBP_KEEP(value) __asm__("" : "+x"(value))
#elif defined(SBP_IS_NEON)
#define SBP_KEEP(value) __asm__("" : "+w"(value))
#else
#define SBP_KEEP(value) (void)(value)
#endif

#define SBP_SIMD_OPS(name, type, vector, prefix, suffix)                                                         \
    typedef vector name;                                                                                              \
    SBP_INLINE name name##_load(const type *p) { return prefix##loadu_##suffix(p); }                                  \
    SBP_INLINE void name##_store(type *p, name v) { prefix##storeu_##suffix(p, v); }                                  \
    SBP_INLINE name name##_set(type x) { return prefix##set1_##suffix(x); }                                           \
    SBP_INLINE name name##_zero(void) { return prefix##setzero_##suffix(); }                                        \
    SBP_INLINE name name##_add(name a, name b) { return prefix##add_##suffix(a, b); }                                 \
    SBP_INLINE name name##_mul(name a, name b) { return prefix##mul_##suffix(a, b); }                                 \
    SBP_INLINE name name##_fma(name a, name b, name c) { return prefix##fmadd_##suffix(a, b, c); }

#if defined(SBP_IS_AVX2) || defined(SBP_IS_AVX512)

#if defined(SBP_IS_AVX512)
#define vf32_LANES 16
#define vf64_LANES 8
SBP_SIMD_OPS(vf32, float, __m512, _mm512_, ps)
SBP_SIMD_OPS(vf64, double, __m512d, _mm512_, pd)
SBP_SIMD_OPS(vf32_square, float, __m256, _mm256_, ps)
SBP_SIMD_OPS(vf64_square, double, __m256d, _mm256_, pd)
#else
#define vf32_LANES 8
#define vf64_LANES 4
SBP_SIMD_OPS(vf32, float, __m256, _mm256_, ps)
SBP_SIMD_OPS(vf64, double, __m256d, _mm256_, pd)
#define vf32_square vf32
#define vf64_square vf64
#define vf32_square_set vf32_set
#define vf32_square_zero vf32_zero
#define vf32_square_load vf32_load
#define vf32_square_store vf32_store
#define vf32_square_add vf32_add
#define vf32_square_fma vf32_fma
#define vf64_square_set vf64_set
#define vf64_square_zero vf64_zero
#define vf64_square_load vf64_load
#define vf64_square_store vf64_store
#define vf64_square_add vf64_add
#define vf64_square_fma vf64_fma
#endif

#define vf32_SQUARE 8
#define vf64_SQUARE 4

SBP_INLINE __m256 sbp_two_f32(const float *low, const float *high) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}

SBP_INLINE void sbp_half_square_f32(const float *p, int64_t line, __m256 *out) {
    const float *q = p + 4 * line;
    const __m256 a = sbp_two_f32(p, q), b = sbp_two_f32(p + line, q + line);
    const __m256 c = sbp_two_f32(p + 2 * line, q + 2 * line), d = sbp_two_f32(p + 3 * line, q + 3 * line);
    const __m256 ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d);
    const __m256 ab_high = _mm256_unpackhi_ps(a, b), cd_high = _mm256_unpackhi_ps(c, d);
    out[0] = _mm256_shuffle_ps(ab, cd, 0x44);
    out[1] = _mm256_shuffle_ps(ab, cd, 0xee);
    out[2] = _mm256_shuffle_ps(ab_high, cd_high, 0x44);
    out[3] = _mm256_shuffle_ps(ab_high, cd_high, 0xee);
}

SBP_INLINE void vf32_transpose(const float *p, int64_t line, vf32_square *out) {
    sbp_half_square_f32(p, line, out);
    sbp_half_square_f32(p + 4, line, out + 4);
}

SBP_INLINE __m256d sbp_two_f64(const double *low, const double *high) {
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(low)), _mm_loadu_pd(high), 1);
}

SBP_INLINE void vf64_transpose(const double *p, int64_t line, vf64_square *out) {
    for (int half = 0; half < 4; half += 2) {
        const __m256d a = sbp_two_f64(p + half, p + 2 * line + half);
        const __m256d b = sbp_two_f64(p + line + half, p + 3 * line + half);
        out[half] = _mm256_unpacklo_pd(a, b);
        out[half + 1] = _mm256_unpackhi_pd(a, b);
    }
}

#elif defined(SBP_IS_NEON)

#define SBP_NEON_OPS(name, type, vector, suffix)                                                                      \
    typedef vector name;                                                                                              \
    SBP_INLINE name name##_load(const type *p) { return vld1q_##suffix(p); }                                          \
    SBP_INLINE void name##_store(type *p, name v) { vst1q_##suffix(p, v); }                                           \
    SBP_INLINE name name##_set(type x) { return vdupq_n_##suffix(x); }                                                \
    SBP_INLINE name name##_zero(void) { return vdupq_n_##suffix(0); }                                                 \
    SBP_INLINE name name##_add(name a, name b) { return vaddq_##suffix(a, b); }                                       \
    SBP_INLINE name name##_mul(name a, name b) { return vmulq_##suffix(a, b); }                                       \
    SBP_INLINE name name##_fma(name a, name b, name c) { return vfmaq_##suffix(c, a, b); }

#define vf32_LANES 4
#define vf64_LANES 2
SBP_NEON_OPS(vf32, float, float32x4_t, f32)
SBP_NEON_OPS(vf64, double, float64x2_t, f64)
SBP_NEON_OPS(vf32_square, float, float32x4_t, f32)
SBP_NEON_OPS(vf64_square, double, float64x2_t, f64)
#define vf32_SQUARE 4
#define vf64_SQUARE 2

SBP_INLINE void vf32_transpose(const float *p, int64_t line, vf32_square *out) {
    const float32x4x2_t a = vtrnq_f32(vld1q_f32(p), vld1q_f32(p + line));
    const float32x4x2_t b = vtrnq_f32(vld1q_f32(p + 2 * line), vld1q_f32(p + 3 * line));
    out[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    out[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    out[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    out[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

SBP_INLINE void vf64_transpose(const double *p, int64_t line, vf64_square *out) {
    const float64x2_t a = vld1q_f64(p), b = vld1q_f64(p + line);
    out[0] = vzip1q_f64(a, b);
    out[1] = vzip2q_f64(a, b);
}

#else

#define SBP_SCALAR_OPS(name, type, fma_of)                                                                            \
    typedef type name;                                                                                                \
    SBP_INLINE name name##_load(const type *p) { return *p; }                                                         \
    SBP_INLINE void name##_store(type *p, name v) { *p = v; }                                                         \
    SBP_INLINE name name##_set(type x) { return x; }                                                                  \
    SBP_INLINE name name##_zero(void) { return 0; }                                                                   \
    SBP_INLINE name name##_add(name a, name b) { return a + b; }                                                      \
    SBP_INLINE name name##_mul(name a, name b) { return a * b; }                                                      \
    SBP_INLINE name name##_fma(name a, name b, name c) { return fma_of(a, b, c); }

#define vf32_LANES 1
#define vf64_LANES 1
SBP_SCALAR_OPS(vf32, float, fmaf)
SBP_SCALAR_OPS(vf64, double, fma)
SBP_SCALAR_OPS(vf32_square, float, fmaf)
SBP_SCALAR_OPS(vf64_square, double, fma)
#define vf32_SQUARE 1
#define vf64_SQUARE 1
SBP_INLINE void vf32_transpose(const float *p, int64_t line, vf32_square *out) { (void)line, *out = *p; }
SBP_INLINE void vf64_transpose(const double *p, int64_t line, vf64_square *out) { (void)line, *out = *p; }

#endif

#endif
