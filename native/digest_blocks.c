#include "digest_blocks.h"

#include <string.h>

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#define SB_X86 1
#include <immintrin.h>
#endif
#if defined(__aarch64__) && defined(__ARM_NEON)
#define SB_NEON 1
#include <arm_neon.h>
#endif

/* ---- scalar: the definition, word by word */

static const uint64_t start[SB_LANES] = SB_STARTS;

static uint64_t load_word(const unsigned char *p) {
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

static void scalar_blocks(const unsigned char *data, size_t count, uint64_t first, sb_sums *sums) {
    for (uint64_t index = first; index < first + count; index++, data += SB_BLOCK) {
        uint64_t chain[SB_LANES], trail[SB_LANES] = {0};
        memcpy(chain, start, sizeof chain);
        for (int s = 0; s < SB_STRIPES; s++)
            for (int l = 0; l < SB_LANES; l++) {
                chain[l] = sb_step(chain[l], load_word(data + 128 * s + 8 * l));
                trail[l] += chain[l];
            }
        for (int l = 0; l < SB_LANES; l++) {
            sums->chain[l % SB_SUMS] += sb_mix(chain[l] ^ (index * SB_INDEX_1));
            sums->trail[l % SB_SUMS] += sb_mix(trail[l] ^ (index * SB_INDEX_2));
        }
    }
}

/* ---- AVX-512 and AVX2. Memory is read strictly in order: reading several blocks side by side confuses the
 * hardware's prefetching and halves the speed. */

#ifdef SB_X86

#define SB_AVX512 __attribute__((target("avx512f,avx512dq")))
#define SB_AVX2 __attribute__((target("avx2")))
#define SB_INLINE static inline __attribute__((always_inline))

SB_INLINE SB_AVX512 __m512i step_512(__m512i chain, __m512i word) {
    const __m512i t = _mm512_xor_si512(chain, word);
    return _mm512_mullo_epi64(_mm512_xor_si512(t, _mm512_srli_epi64(t, 29)), _mm512_set1_epi64(SB_CHAIN));
}

SB_INLINE SB_AVX512 __m512i mix_512(__m512i x, uint64_t salt) {
    x = _mm512_xor_si512(x, _mm512_set1_epi64((long long)salt));
    x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64(x, 32)), _mm512_set1_epi64(SB_MIX_1));
    x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64(x, 29)), _mm512_set1_epi64(SB_MIX_2));
    return _mm512_xor_si512(x, _mm512_srli_epi64(x, 32));
}

SB_AVX512 static void avx512_blocks(const unsigned char *data, size_t count, uint64_t first, sb_sums *sums) {
    const __m512i begin0 = _mm512_loadu_si512(start), begin1 = _mm512_loadu_si512(start + 8);
    __m512i sum1 = _mm512_loadu_si512(sums->chain), sum2 = _mm512_loadu_si512(sums->trail);
    for (uint64_t index = first; index < first + count; index++, data += SB_BLOCK) {
        __m512i c0 = begin0, c1 = begin1, t0 = _mm512_setzero_si512(), t1 = _mm512_setzero_si512();
        for (int s = 0; s < SB_STRIPES; s++) {
            c0 = step_512(c0, _mm512_loadu_si512(data + 128 * s));
            c1 = step_512(c1, _mm512_loadu_si512(data + 128 * s + 64));
            t0 = _mm512_add_epi64(t0, c0);
            t1 = _mm512_add_epi64(t1, c1);
        }
        const uint64_t salt1 = index * SB_INDEX_1, salt2 = index * SB_INDEX_2;
        sum1 = _mm512_add_epi64(sum1, _mm512_add_epi64(mix_512(c0, salt1), mix_512(c1, salt1)));
        sum2 = _mm512_add_epi64(sum2, _mm512_add_epi64(mix_512(t0, salt2), mix_512(t1, salt2)));
    }
    _mm512_storeu_si512(sums->chain, sum1);
    _mm512_storeu_si512(sums->trail, sum2);
}

SB_INLINE SB_AVX2 __m256i load_256(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }

/* x * m modulo 2^64 with m below 2^32, from the two halves of x (whatever lies above their 32 bits). */
SB_INLINE SB_AVX2 __m256i multiply_256(__m256i low, __m256i high, uint32_t multiplier) {
    const __m256i m = _mm256_set1_epi64x(multiplier);
    return _mm256_add_epi64(_mm256_mul_epu32(low, m), _mm256_slli_epi64(_mm256_mul_epu32(high, m), 32));
}

SB_INLINE SB_AVX2 __m256i step_256(__m256i chain, __m256i word) {
    __m256i t = _mm256_xor_si256(chain, word);
    t = _mm256_xor_si256(t, _mm256_srli_epi64(t, 29));
    return multiply_256(t, _mm256_srli_epi64(t, 32), SB_CHAIN);
}

SB_INLINE SB_AVX2 __m256i mix_256(__m256i x, uint64_t salt) {
    x = _mm256_xor_si256(x, _mm256_set1_epi64x((long long)salt));
    const __m256i high = _mm256_srli_epi64(x, 32);
    x = multiply_256(_mm256_xor_si256(x, high), high, SB_MIX_1);
    x = _mm256_xor_si256(x, _mm256_srli_epi64(x, 29));
    x = multiply_256(x, _mm256_srli_epi64(x, 32), SB_MIX_2);
    return _mm256_xor_si256(x, _mm256_srli_epi64(x, 32));
}

SB_INLINE SB_AVX2 void add_to_256(uint64_t *sum, __m256i x) {
    _mm256_storeu_si256((__m256i *)sum, _mm256_add_epi64(load_256(sum), x));
}

SB_AVX2 static void avx2_blocks(const unsigned char *data, size_t count, uint64_t first, sb_sums *sums) {
    for (uint64_t index = first; index < first + count; index++, data += SB_BLOCK) {
        __m256i c[4], t[4];
        for (int k = 0; k < 4; k++) {
            c[k] = load_256(start + 4 * k);
            t[k] = _mm256_setzero_si256();
        }
        for (int s = 0; s < SB_STRIPES; s++)
            for (int k = 0; k < 4; k++) {
                c[k] = step_256(c[k], load_256(data + 128 * s + 32 * k));
                t[k] = _mm256_add_epi64(t[k], c[k]);
            }
        for (int k = 0; k < 4; k++) {
            add_to_256(sums->chain + 4 * (k % 2), mix_256(c[k], index * SB_INDEX_1));
            add_to_256(sums->trail + 4 * (k % 2), mix_256(t[k], index * SB_INDEX_2));
        }
    }
}

#endif

/* ---- NEON: part of every 64-bit Arm */

#ifdef SB_NEON

static inline uint64x2_t multiply_neon(uint32x2_t low, uint32x2_t high, uint32_t m) {
    return vaddq_u64(vmull_n_u32(low, m), vshlq_n_u64(vmull_n_u32(high, m), 32));
}

static inline uint64x2_t step_neon(uint64x2_t chain, uint64x2_t word) {
    uint64x2_t t = veorq_u64(chain, word);
    t = veorq_u64(t, vshrq_n_u64(t, 29));
    return multiply_neon(vmovn_u64(t), vshrn_n_u64(t, 32), SB_CHAIN);
}

static inline uint64x2_t mix_neon(uint64x2_t x, uint64_t salt) {
    x = veorq_u64(x, vdupq_n_u64(salt));
    const uint32x2_t high = vshrn_n_u64(x, 32);
    x = multiply_neon(veor_u32(vmovn_u64(x), high), high, SB_MIX_1);
    x = veorq_u64(x, vshrq_n_u64(x, 29));
    x = multiply_neon(vmovn_u64(x), vshrn_n_u64(x, 32), SB_MIX_2);
    return veorq_u64(x, vshrq_n_u64(x, 32));
}

static inline void add_to_neon(uint64_t *sum, uint64x2_t x) { vst1q_u64(sum, vaddq_u64(vld1q_u64(sum), x)); }

static void neon_blocks(const unsigned char *data, size_t count, uint64_t first, sb_sums *sums) {
    for (uint64_t index = first; index < first + count; index++, data += SB_BLOCK) {
        uint64x2_t c[8], t[8];
        for (int k = 0; k < 8; k++) {
            c[k] = vld1q_u64(start + 2 * k);
            t[k] = vdupq_n_u64(0);
        }
        for (int s = 0; s < SB_STRIPES; s++)
            for (int k = 0; k < 8; k++) {
                c[k] = step_neon(c[k], vreinterpretq_u64_u8(vld1q_u8(data + 128 * s + 16 * k)));
                t[k] = vaddq_u64(t[k], c[k]);
            }
        for (int k = 0; k < 8; k++) {
            add_to_neon(sums->chain + 2 * (k % 4), mix_neon(c[k], index * SB_INDEX_1));
            add_to_neon(sums->trail + 2 * (k % 4), mix_neon(t[k], index * SB_INDEX_2));
        }
    }
}

#endif

/* ---- the choice, best first */

const sb_isa *sb_find_isa(const char *name) {
#ifdef SB_X86
    static const sb_isa avx512 = {"avx512", avx512_blocks}, avx2 = {"avx2", avx2_blocks};
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        (!*name || !strcmp(name, avx512.name)))
        return &avx512;
    if (__builtin_cpu_supports("avx2") && (!*name || !strcmp(name, avx2.name)))
        return &avx2;
#endif
#ifdef SB_NEON
    static const sb_isa neon = {"neon", neon_blocks};
    if (!*name || !strcmp(name, neon.name))
        return &neon;
#endif
    static const sb_isa scalar = {"scalar", scalar_blocks};
    return !*name || !strcmp(name, scalar.name) ? &scalar : NULL;
}
