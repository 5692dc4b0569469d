#include "philox.h"
#include "random.h"

/* A vector holds one counter word of several blocks, each in the low half of 64 bits; what is above is never read. */
#if defined(SBP_IS_AVX512)
#define PX_LANES 8
#define px_vector __m512i
#define px_set(x) _mm512_set1_epi64((int64_t)(x))
#define px_load(p) _mm512_loadu_si512(p)
#define px_mul(a, b) _mm512_mul_epu32(a, b)
#define px_xor(a, b) _mm512_xor_si512(a, b)
#define px_high(a) _mm512_srli_epi64(a, 32)
static inline void SBP(px_store)(uint32_t *out, __m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i ab = _mm512_mask_blend_epi32(0xAAAA, a, _mm512_slli_epi64(b, 32));
    const __m512i cd = _mm512_mask_blend_epi32(0xAAAA, c, _mm512_slli_epi64(d, 32));
    const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), up = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    _mm512_storeu_si512(out, _mm512_permutex2var_epi64(ab, low, cd));
    _mm512_storeu_si512(out + 16, _mm512_permutex2var_epi64(ab, up, cd));
}
#elif defined(SBP_IS_AVX2)
#define PX_LANES 4
#define px_vector __m256i
#define px_set(x) _mm256_set1_epi64x((int64_t)(x))
#define px_load(p) _mm256_loadu_si256((const __m256i *)(p))
#define px_mul(a, b) _mm256_mul_epu32(a, b)
#define px_xor(a, b) _mm256_xor_si256(a, b)
#define px_high(a) _mm256_srli_epi64(a, 32)
static inline void SBP(px_store)(uint32_t *out, __m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i ab = _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xAA);
    const __m256i cd = _mm256_blend_epi32(c, _mm256_slli_epi64(d, 32), 0xAA);
    const __m256i even = _mm256_unpacklo_epi64(ab, cd), odd = _mm256_unpackhi_epi64(ab, cd);
    _mm256_storeu_si256((__m256i *)out, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256((__m256i *)(out + 8), _mm256_permute2x128_si256(even, odd, 0x31));
}
#else
#define PX_LANES 4
typedef struct {
    uint64_t x[PX_LANES];
} SBP(px_lanes);
#define px_vector SBP(px_lanes)
static inline px_vector SBP(px_set)(uint64_t x) {
    px_vector v;
    for (int i = 0; i < PX_LANES; i++)
        v.x[i] = x;
    return v;
}
static inline px_vector SBP(px_load)(const uint64_t *p) {
    px_vector v;
    for (int i = 0; i < PX_LANES; i++)
        v.x[i] = p[i];
    return v;
}
static inline px_vector SBP(px_mul)(px_vector a, px_vector b) {
    for (int i = 0; i < PX_LANES; i++)
        a.x[i] = (uint64_t)(uint32_t)a.x[i] * (uint32_t)b.x[i];
    return a;
}
static inline px_vector SBP(px_xor)(px_vector a, px_vector b) {
    for (int i = 0; i < PX_LANES; i++)
        a.x[i] ^= b.x[i];
    return a;
}
static inline px_vector SBP(px_high)(px_vector a) {
    for (int i = 0; i < PX_LANES; i++)
        a.x[i] >>= 32;
    return a;
}
static inline void SBP(px_store)(uint32_t *out, px_vector a, px_vector b, px_vector c, px_vector d) {
    for (int i = 0; i < PX_LANES; i++) {
        out[4 * i] = (uint32_t)a.x[i], out[4 * i + 1] = (uint32_t)b.x[i];
        out[4 * i + 2] = (uint32_t)c.x[i], out[4 * i + 3] = (uint32_t)d.x[i];
    }
}
#define px_set(x) SBP(px_set)(x)
#define px_load(p) SBP(px_load)(p)
#define px_mul(a, b) SBP(px_mul)(a, b)
#define px_xor(a, b) SBP(px_xor)(a, b)
#define px_high(a) SBP(px_high)(a)
#endif

#define PX_SIDE 4 /* vectors at once: hides the latency of multiplications */

/* Words of PX_LANES * PX_SIDE blocks, in order. */
static void SBP(px_blocks)(const sbp_random *r, uint64_t block, uint32_t *out) {
    px_vector c0[PX_SIDE], c1[PX_SIDE], c2[PX_SIDE], c3[PX_SIDE];
    const px_vector m0 = px_set(SBP_PHILOX_M0), m1 = px_set(SBP_PHILOX_M1);
    uint32_t k0 = (uint32_t)r->key, k1 = (uint32_t)(r->key >> 32);
    for (int s = 0; s < PX_SIDE; s++) {
        uint64_t low[PX_LANES], up[PX_LANES];
        for (int i = 0; i < PX_LANES; i++, block++)
            low[i] = block, up[i] = block >> 32;
        c0[s] = px_load(low), c1[s] = px_load(up);
        c2[s] = px_set(r->stream), c3[s] = px_set(r->lane);
    }
    for (int round = 0; round < 10; round++, k0 += SBP_PHILOX_W0, k1 += SBP_PHILOX_W1) {
        const px_vector key0 = px_set(k0), key1 = px_set(k1);
        for (int s = 0; s < PX_SIDE; s++) {
            const px_vector p0 = px_mul(c0[s], m0), p1 = px_mul(c2[s], m1);
            c0[s] = px_xor(px_xor(px_high(p1), c1[s]), key0);
            c1[s] = p1;
            c2[s] = px_xor(px_xor(px_high(p0), c3[s]), key1);
            c3[s] = p0;
        }
    }
    for (int s = 0; s < PX_SIDE; s++)
        SBP(px_store)(out + 4 * PX_LANES * s, c0[s], c1[s], c2[s], c3[s]);
}

static void SBP(uniform_f32)(const sbp_random *r, float *out, const uint32_t *w, int64_t n) {
    const int shift = 32 - (int)r->bits;
    const float from = (float)r->a, to = (float)r->b, range = to - from, unit = 1.0f / (float)(1 << (int)r->bits);
    for (int64_t i = 0; i < n; i++)
        out[i] = sbp_uniform_f32((float)(int32_t)(w[i] >> shift) * unit, from, to, range);
}

static void SBP(uniform_f64)(const sbp_random *r, double *out, const sbp_word64 *w, int64_t n) {
    const double range = r->b - r->a;
    for (int64_t i = 0; i < n; i++)
        out[i] = sbp_uniform_f64((double)(int64_t)(w[i] >> 11) * 0x1p-53, r->a, r->b, range);
}

static void SBP(bernoulli_f32)(const sbp_random *r, float *out, const uint32_t *w, int64_t n) {
    const uint32_t below = (uint32_t)r->bits;
    const float past = r->bits >> 32 ? 1.0f : 0.0f;
    for (int64_t i = 0; i < n; i++)
        out[i] = w[i] < below ? 1.0f : past;
}

static void SBP(bernoulli_u8)(const sbp_random *r, uint8_t *out, const uint32_t *w, int64_t n) {
    const uint32_t below = (uint32_t)r->bits;
    const uint8_t past = (uint8_t)(r->bits >> 32);
    for (int64_t i = 0; i < n; i++)
        out[i] = (uint8_t)((w[i] < below) | past);
}

static void SBP(bernoulli_p_f32)(uint8_t *out, const float *p, const uint32_t *w, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = (double)w[i] * 0x1p-32 < (double)p[i];
}

static void SBP(bernoulli_p_f64)(uint8_t *out, const double *p, const uint32_t *w, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = (double)w[i] * 0x1p-32 < p[i];
}

static void SBP(range)(const sbp_random *r, int64_t *out, const sbp_word64 *w, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = (int64_t)(sbp_in_range(w[i], r->bits) + (uint64_t)r->low);
}

#define SBP_NORMALS(name, type, word, draw)                                                                           \
    static void SBP(name)(const sbp_random *r, type *out, const word *w, int64_t n) {                                 \
        const type mean = (type)r->a, deviation = (type)r->b;                                                         \
        type pair[2];                                                                                                 \
        for (int64_t i = 0; i < n / 2; i++) {                                                                         \
            type two[2];                                                                                              \
            draw(w[2 * i], w[2 * i + 1], two);                                                                        \
            out[2 * i] = two[0] * deviation + mean;                                                                   \
            out[2 * i + 1] = two[1] * deviation + mean;                                                               \
        }                                                                                                             \
        if (n & 1) {                                                                                                  \
            draw(w[n - 1], w[n], pair);                                                                               \
            out[n - 1] = pair[0] * deviation + mean;                                                                  \
        }                                                                                                             \
    }

#define SBP_EXPONENTIALS(name, type, word, draw)                                                                      \
    static void SBP(name)(const sbp_random *r, type *out, const word *w, int64_t n) {                                 \
        const type rate = (type)r->a;                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                                               \
            out[i] = draw(w[i]) / rate;                                                                               \
    }

SBP_NORMALS(normal_f32, float, uint32_t, sbp_normal_f32)
SBP_NORMALS(normal_f64, double, sbp_word64, sbp_normal_f64)
SBP_EXPONENTIALS(exponential_f32, float, uint32_t, sbp_exponential_f32)
SBP_EXPONENTIALS(exponential_f64, double, sbp_word64, sbp_exponential_f64)

/* `n` elements from the first one of a part on, whose words are `w`. */
static void SBP(random_values)(const sbp_random *r, int64_t first, const void *w, int64_t n) {
    switch (r->kind) {
    case SBP_WORDS: memcpy((uint32_t *)r->out + first, w, 4 * (size_t)n); break;
    case SBP_UNIFORM_F32: SBP(uniform_f32)(r, (float *)r->out + first, w, n); break;
    case SBP_UNIFORM_F64: SBP(uniform_f64)(r, (double *)r->out + first, w, n); break;
    case SBP_BERNOULLI_F32: SBP(bernoulli_f32)(r, (float *)r->out + first, w, n); break;
    case SBP_BERNOULLI_U8: SBP(bernoulli_u8)(r, (uint8_t *)r->out + first, w, n); break;
    case SBP_BERNOULLI_P_F32: SBP(bernoulli_p_f32)((uint8_t *)r->out + first, (const float *)r->in + first, w, n); break;
    case SBP_BERNOULLI_P_F64: SBP(bernoulli_p_f64)((uint8_t *)r->out + first, (const double *)r->in + first, w, n); break;
    case SBP_NORMAL_F32: SBP(normal_f32)(r, (float *)r->out + first, w, n); break;
    case SBP_NORMAL_F64: SBP(normal_f64)(r, (double *)r->out + first, w, n); break;
    case SBP_EXPONENTIAL_F32: SBP(exponential_f32)(r, (float *)r->out + first, w, n); break;
    case SBP_EXPONENTIAL_F64: SBP(exponential_f64)(r, (double *)r->out + first, w, n); break;
    case SBP_RANGE: SBP(range)(r, (int64_t *)r->out + first, w, n); break;
    }
}

static void SBP(random_fill)(const sbp_random *r, int64_t from, int64_t to) {
    uint32_t w[SBP_RANDOM_WORDS] __attribute__((aligned(64)));
    const int64_t wide = sbp_random_wide(r->kind), each = SBP_RANDOM_WORDS >> wide;
    for (int64_t part = from; part < to; part++) {
        const int64_t left = r->count - part * each, n = left < each ? left : each;
        int64_t word = 0;
        do {
            SBP(px_blocks)(r, r->first + (uint64_t)(part * SBP_RANDOM_WORDS + word) / 4, w + word);
            word += 4 * PX_LANES * PX_SIDE;
        } while (word < n << wide);
        SBP(random_values)(r, part * each, w, n);
    }
}

const sbp_random_table SBP(random) = {SBP(random_fill)};

#undef PX_LANES
#undef PX_SIDE
#undef px_vector
#undef px_set
#undef px_load
#undef px_mul
#undef px_xor
#undef px_high
