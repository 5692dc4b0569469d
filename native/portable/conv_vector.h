/* Vectors of the instruction set. SBP_V32 and SBP_V64 name the operations that the convolution kernels use. */
#ifndef SAMEBITS_PORTABLE_CONV_VECTOR_H
#define SAMEBITS_PORTABLE_CONV_VECTOR_H

#if defined(SBP_IS_AVX512)
typedef __m512 conv_v_f32;
typedef __m512d conv_v_f64;
#define CONV_ROWS 14
#define CONV_L_f32 16
#define CONV_L_f64 8
#define conv_load_f32 _mm512_loadu_ps
#define conv_load_f64 _mm512_loadu_pd
#define conv_store_f32 _mm512_storeu_ps
#define conv_store_f64 _mm512_storeu_pd
#define conv_all_f32 _mm512_set1_ps
#define conv_all_f64 _mm512_set1_pd
#define conv_fma_f32 _mm512_fmadd_ps
#define conv_fma_f64 _mm512_fmadd_pd
#define conv_add_f32 _mm512_add_ps
#define conv_add_f64 _mm512_add_pd
#elif defined(SBP_IS_AVX2)
typedef __m256 conv_v_f32;
typedef __m256d conv_v_f64;
#define CONV_ROWS 6
#define CONV_L_f32 8
#define CONV_L_f64 4
#define conv_load_f32 _mm256_loadu_ps
#define conv_load_f64 _mm256_loadu_pd
#define conv_store_f32 _mm256_storeu_ps
#define conv_store_f64 _mm256_storeu_pd
#define conv_all_f32 _mm256_set1_ps
#define conv_all_f64 _mm256_set1_pd
#define conv_fma_f32 _mm256_fmadd_ps
#define conv_fma_f64 _mm256_fmadd_pd
#define conv_add_f32 _mm256_add_ps
#define conv_add_f64 _mm256_add_pd
#elif defined(SBP_IS_NEON)
typedef float32x4_t conv_v_f32;
typedef float64x2_t conv_v_f64;
#define CONV_ROWS 12
#define CONV_L_f32 4
#define CONV_L_f64 2
#define conv_load_f32 vld1q_f32
#define conv_load_f64 vld1q_f64
#define conv_store_f32 vst1q_f32
#define conv_store_f64 vst1q_f64
#define conv_all_f32 vdupq_n_f32
#define conv_all_f64 vdupq_n_f64
#define conv_fma_f32(a, b, c) vfmaq_f32(c, a, b)
#define conv_fma_f64(a, b, c) vfmaq_f64(c, a, b)
#define conv_add_f32 vaddq_f32
#define conv_add_f64 vaddq_f64
#else
#define CONV_ROWS 4
#define CONV_L_f32 4
#define CONV_L_f64 4
#define CONV_PLAIN(type, suffix, fma_of)                                                                              \
    typedef struct {                                                                                                  \
        type lane[4];                                                                                                 \
    } conv_v_##suffix;                                                                                                \
    static inline conv_v_##suffix conv_load_##suffix(const type *from) {                                              \
        conv_v_##suffix v;                                                                                            \
        memcpy(&v, from, sizeof v);                                                                                   \
        return v;                                                                                                     \
    }                                                                                                                 \
    static inline void conv_store_##suffix(type *to, conv_v_##suffix v) { memcpy(to, &v, sizeof v); }                 \
    static inline conv_v_##suffix conv_all_##suffix(type x) { return (conv_v_##suffix){{x, x, x, x}}; }               \
    static inline conv_v_##suffix conv_fma_##suffix(conv_v_##suffix a, conv_v_##suffix b, conv_v_##suffix c) {        \
        for (int i = 0; i < 4; i++)                                                                                   \
            c.lane[i] = fma_of(a.lane[i], b.lane[i], c.lane[i]);                                                      \
        return c;                                                                                                     \
    }                                                                                                                 \
    static inline conv_v_##suffix conv_add_##suffix(conv_v_##suffix a, conv_v_##suffix b) {                           \
        for (int i = 0; i < 4; i++)                                                                                   \
            a.lane[i] += b.lane[i];                                                                                   \
        return a;                                                                                                     \
    }
CONV_PLAIN(float, f32, fmaf)
CONV_PLAIN(double, f64, fma)
#endif

#endif
