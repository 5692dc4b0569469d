/* The kernels of reduce_kernel.h for one type, SBR_T. A chunk's 16 lanes are SBR_PIECES vectors of SBR_WIDTH. */

typedef SBR_T SBR(vec) __attribute__((vector_size(SBP_VECTOR)));

SBR_INLINE SBR(vec) SBR(vec_load)(const SBR_T *p) {
    SBR(vec) v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* The first n values at p, +0 after them; the first n of `some`, then those of `others`; writes the first n. n > 0 */
#if defined(SBP_IS_AVX512)
SBR_INLINE SBR(vec) SBR(vec_part)(const SBR_T *p, int64_t n) {
    const unsigned first = n < SBR_WIDTH ? (1u << n) - 1 : (1u << SBR_WIDTH) - 1;
    return SBR_IS_F32 ? (SBR(vec))_mm512_maskz_loadu_ps((__mmask16)first, (const void *)p)
                      : (SBR(vec))_mm512_maskz_loadu_pd((__mmask8)first, (const void *)p);
}

SBR_INLINE SBR(vec) SBR(vec_until)(int64_t n, SBR(vec) some, SBR(vec) others) {
    const unsigned first = n < SBR_WIDTH ? (1u << n) - 1 : (1u << SBR_WIDTH) - 1;
    return SBR_IS_F32 ? (SBR(vec))_mm512_mask_mov_ps((__m512)others, (__mmask16)first, (__m512)some)
                      : (SBR(vec))_mm512_mask_mov_pd((__m512d)others, (__mmask8)first, (__m512d)some);
}

SBR_INLINE void SBR(vec_put)(SBR_T *p, SBR(vec) v, int64_t n) {
    const unsigned first = n < SBR_WIDTH ? (1u << n) - 1 : (1u << SBR_WIDTH) - 1;
    if (SBR_IS_F32)
        _mm512_mask_storeu_ps((void *)p, (__mmask16)first, (__m512)v);
    else
        _mm512_mask_storeu_pd((void *)p, (__mmask8)first, (__m512d)v);
}
#elif defined(SBP_IS_AVX2)
SBR_INLINE __m256i SBR(first)(int64_t n) {
    const int count = (int)(n < SBR_WIDTH ? n : SBR_WIDTH);
    return SBR_IS_F32 ? _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
                      : _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}

SBR_INLINE SBR(vec) SBR(vec_part)(const SBR_T *p, int64_t n) {
    return SBR_IS_F32 ? (SBR(vec))_mm256_maskload_ps((const void *)p, SBR(first)(n))
                      : (SBR(vec))_mm256_maskload_pd((const void *)p, SBR(first)(n));
}

SBR_INLINE SBR(vec) SBR(vec_until)(int64_t n, SBR(vec) some, SBR(vec) others) {
    const __m256i first = SBR(first)(n);
    return SBR_IS_F32 ? (SBR(vec))_mm256_blendv_ps((__m256)others, (__m256)some, (__m256)first)
                      : (SBR(vec))_mm256_blendv_pd((__m256d)others, (__m256d)some, (__m256d)first);
}

SBR_INLINE void SBR(vec_put)(SBR_T *p, SBR(vec) v, int64_t n) {
    if (SBR_IS_F32)
        _mm256_maskstore_ps((void *)p, SBR(first)(n), (__m256)v);
    else
        _mm256_maskstore_pd((void *)p, SBR(first)(n), (__m256d)v);
}
#else
SBR_INLINE SBR(vec) SBR(vec_part)(const SBR_T *p, int64_t n) {
    SBR(vec) v = {0};
    memcpy(&v, p, (size_t)(n < SBR_WIDTH ? n : SBR_WIDTH) * sizeof *p);
    return v;
}

SBR_INLINE SBR(vec) SBR(vec_until)(int64_t n, SBR(vec) some, SBR(vec) others) {
    memcpy(&others, &some, (size_t)(n < SBR_WIDTH ? n : SBR_WIDTH) * sizeof(SBR_T));
    return others;
}

SBR_INLINE void SBR(vec_put)(SBR_T *p, SBR(vec) v, int64_t n) {
    memcpy(p, &v, (size_t)(n < SBR_WIDTH ? n : SBR_WIDTH) * sizeof *p);
}
#endif

SBR_INLINE SBR(vec) SBR(vec_set)(SBR_T x) { return x - (SBR(vec)){0}; } /* subtracting +0 changes nothing */

SBR_INLINE void SBR(vec_store)(SBR_T *p, SBR(vec) v) { memcpy(p, &v, sizeof v); }

SBR_INLINE SBR(vec) SBR(vec_fma)(SBR(vec) a, SBR(vec) b, SBR(vec) c) {
#if defined(SBP_IS_AVX512)
    return SBR_IS_F32 ? (SBR(vec))_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c)
                      : (SBR(vec))_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(SBP_IS_AVX2)
    return SBR_IS_F32 ? (SBR(vec))_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c)
                      : (SBR(vec))_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(SBP_IS_NEON)
    return SBR_IS_F32 ? (SBR(vec))vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b)
                      : (SBR(vec))vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    for (int l = 0; l < SBR_WIDTH; l++)
        c[l] = SBR_FMA(a[l], b[l], c[l]);
    return c;
#endif
}

/* The greater of a and b; b if one of them is NaN. */
SBR_INLINE SBR(vec) SBR(vec_most)(SBR(vec) a, SBR(vec) b) {
#if defined(SBP_IS_AVX512)
    return SBR_IS_F32 ? (SBR(vec))_mm512_max_ps((__m512)a, (__m512)b) : (SBR(vec))_mm512_max_pd((__m512d)a, (__m512d)b);
#elif defined(SBP_IS_AVX2)
    return SBR_IS_F32 ? (SBR(vec))_mm256_max_ps((__m256)a, (__m256)b) : (SBR(vec))_mm256_max_pd((__m256d)a, (__m256d)b);
#else
    const __typeof__(a > b) is_more = a > b;
    return (SBR(vec))(((__typeof__(is_more))a & is_more) | ((__typeof__(is_more))b & ~is_more));
#endif
}

SBR_INLINE SBR(vec) SBR(vec_abs)(SBR(vec) a) {
    for (int l = 0; l < SBR_WIDTH; l++)
        a[l] = SBR_ABS(a[l]);
    return a;
}

SBR_INLINE SBR(vec) SBR(step)(const int kind, SBR(vec) lane, SBR(vec) a, SBR(vec) b, SBR(vec) m) {
    switch (kind) {
    case SBP_SUM:
        return lane + a;
    case SBP_SQUARES:
        return SBR(vec_fma)(a, a, lane);
    case SBP_PRODUCTS:
        return SBR(vec_fma)(a, b, lane);
    case SBP_DEVIATIONS:
        a = a - m;
        return SBR(vec_fma)(a, a, lane);
    case SBP_CROSS:
        return SBR(vec_fma)(b, a - m, lane);
    case SBP_MAGNITUDES:
        return lane + SBR(vec_abs)(a);
    default:
        return lane * a;
    }
}

SBR_INLINE SBR_T SBR(join)(const int kind, SBR_T a, SBR_T b) { return kind == SBP_PRODUCT ? a * b : a + b; }

/* The 16 lanes to one value: halves are joined while there are two vectors, then within the one. */
SBR_INLINE SBR_T SBR(fold)(const int kind, SBR(vec) *lane) {
#pragma GCC unroll 8
    for (int pieces = SBR_PIECES; pieces > 1; pieces /= 2)
#pragma GCC unroll 8
        for (int p = 0; p < pieces / 2; p++)
            lane[p] = kind == SBP_PRODUCT ? lane[p] * lane[p + pieces / 2] : lane[p] + lane[p + pieces / 2];
#if defined(SBP_IS_AVX512) || defined(SBP_IS_AVX2)
    if (kind != SBP_PRODUCT) {
#if SBR_IS_F32
#if defined(SBP_IS_AVX512)
        const __m512 all = (__m512)lane[0];
        const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
#else
        const __m256 eight = (__m256)lane[0];
#endif
        __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        four = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
#else
#if defined(SBP_IS_AVX512)
        const __m512d all = (__m512d)lane[0];
        const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(all), _mm512_extractf64x4_pd(all, 1));
#else
        const __m256d four = (__m256d)lane[0];
#endif
        const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
        return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
#endif
    }
#endif
    SBR_T one[SBR_WIDTH];
    memcpy(one, lane, sizeof one);
    for (int h = SBR_WIDTH / 2; h; h /= 2)
        for (int l = 0; l < h; l++)
            one[l] = SBR(join)(kind, one[l], one[l + h]);
    return one[0];
}

/* One chunk, that in row r, of n values (a constant 256 for most). In one stream, so that memory is read in order:
 * processors overlap the chains of adds of several chunks by themselves. */
SBR_INLINE SBR_T SBR(chunk)(const int kind, const int in_lines, const sbp_chunks *c, int64_t r, const int64_t n) {
    const SBR_T *a = (const SBR_T *)c->a + r * c->a_step;
    const SBR_T *b = SBP_USES_B(kind) ? (const SBR_T *)c->b + r * c->b_step : a;
    const SBR(vec) m = SBR(vec_set)(SBP_USES_M(kind) ? ((const SBR_T *)c->m)[r * c->m_step] : 0);
    SBR(vec) lane[SBR_PIECES];
    int64_t i = 0;
#pragma GCC unroll 8
    for (int p = 0; p < SBR_PIECES; p++)
        lane[p] = SBR(vec_set)(kind == SBP_PRODUCT);
    for (; i + SBP_LANES <= n; i += SBP_LANES) {
        const SBR_T *x = a + (in_lines ? c->offsets[i / SBP_LANES] : i);
        const SBR_T *y = b + (in_lines && SBP_USES_B(kind) ? c->b_offsets[i / SBP_LANES] : i);
#pragma GCC unroll 8
        for (int p = 0; p < SBR_PIECES; p++)
            lane[p] = SBR(step)(kind, lane[p], SBR(vec_load)(x + p * SBR_WIDTH), SBR(vec_load)(y + p * SBR_WIDTH), m);
    }
#pragma GCC unroll 8
    for (int p = 0; p < SBR_PIECES; p++, i += SBR_WIDTH)
        if (i < n) {
            const SBR(vec) x = SBR(vec_part)(a + i, n - i), y = SBR(vec_part)(b + i, n - i);
            lane[p] = SBR(vec_until)(n - i, SBR(step)(kind, lane[p], x, y, m), lane[p]);
        }
    return SBR(fold)(kind, lane);
}

SBR_INLINE void SBR(tree_of)(const int kind, SBR_T *values, int64_t n, int64_t width) {
    for (; n > 1; n = (n + 1) / 2) {
        for (int64_t i = 0; i < n / 2; i++)
            for (int64_t j = 0; j < width; j++)
                values[i * width + j] = SBR(join)(kind, values[2 * i * width + j], values[(2 * i + 1) * width + j]);
        if (n % 2)
            memmove(values + n / 2 * width, values + (n - 1) * width, (size_t)width * sizeof(SBR_T));
    }
}

/* The sums of whole nodes of a tree, that of the same number of chunks each; equal ones are joined as they come. */
typedef struct {
    SBR_T nodes[48];
    int64_t depth, made;
} SBR(tree);

SBR_INLINE void SBR(tree_add)(const int kind, SBR(tree) *t, SBR_T node) {
    t->nodes[t->depth++] = node;
    for (int64_t i = t->made++; i & 1; i >>= 1, t->depth--)
        t->nodes[t->depth - 2] = SBR(join)(kind, t->nodes[t->depth - 2], t->nodes[t->depth - 1]);
}

/* Returns their total, `nothing` if there are none. */
SBR_INLINE SBR_T SBR(tree_end)(const int kind, SBR(tree) *t, SBR_T nothing) {
    for (; t->depth > 1; t->depth--)
        t->nodes[t->depth - 2] = SBR(join)(kind, t->nodes[t->depth - 2], t->nodes[t->depth - 1]);
    return t->depth ? t->nodes[0] : nothing;
}


/* A reduction of n values next to each other. */
SBR_INLINE SBR_T SBR(total_of)(const int kind, const SBR_T *a, const SBR_T *b, SBR_T m, int64_t n) {
    SBR_T sums[SBR_NODE];
    SBR(tree) tree;
    tree.depth = tree.made = 0;
    for (int64_t from = 0; from < n; from += SBR_NODE * SBP_CHUNK) {
        const int64_t left = n - from, full = left / SBP_CHUNK < SBR_NODE ? left / SBP_CHUNK : SBR_NODE;
        const int64_t rest = full < SBR_NODE ? left % SBP_CHUNK : 0;
        const sbp_chunks c = {kind, a + from, b + from, &m, SBP_CHUNK, SBP_CHUNK, 0, full, SBP_CHUNK, NULL, NULL, sums};
        for (int64_t r = 0; r < full; r++)
            sums[r] = SBR(chunk)(kind, 0, &c, r, SBP_CHUNK);
        if (rest)
            sums[full] = SBR(chunk)(kind, 0, &c, full, rest);
        SBR(tree_of)(kind, sums, full + (rest > 0), 1);
        SBR(tree_add)(kind, &tree, sums[0]);
    }
    return SBR(tree_end)(kind, &tree, kind == SBP_PRODUCT);
}

#define SBR_TOTAL(name, kind)                                                                                          \
    static __attribute__((noinline, unused)) SBR_T SBR(name)(const SBR_T *a, const SBR_T *b, SBR_T m, int64_t n) {    \
        return SBR(total_of)(kind, a, b, m, n);                                                                       \
    }

SBR_TOTAL(total_sum, SBP_SUM)
SBR_TOTAL(total_squares, SBP_SQUARES)
SBR_TOTAL(total_products, SBP_PRODUCTS)
SBR_TOTAL(total_deviations, SBP_DEVIATIONS)
SBR_TOTAL(total_cross, SBP_CROSS)
SBR_TOTAL(total_magnitudes, SBP_MAGNITUDES)
SBR_TOTAL(total_product, SBP_PRODUCT)

/* The same for each kind, compiled once. */
SBR_INLINE SBR_T SBR(total)(const int kind, const SBR_T *a, const SBR_T *b, SBR_T m, int64_t n) {
    switch (kind) {
    case SBP_SUM:
        return SBR(total_sum)(a, b, m, n);
    case SBP_SQUARES:
        return SBR(total_squares)(a, b, m, n);
    case SBP_PRODUCTS:
        return SBR(total_products)(a, b, m, n);
    case SBP_DEVIATIONS:
        return SBR(total_deviations)(a, b, m, n);
    case SBP_CROSS:
        return SBR(total_cross)(a, b, m, n);
    case SBP_MAGNITUDES:
        return SBR(total_magnitudes)(a, b, m, n);
    default:
        return SBR(total_product)(a, b, m, n);
    }
}

SBR_INLINE void SBR(rows_of)(const int kind, const sbp_chunks *c) {
    SBR_T *out = c->out;
    if (c->offsets)
        for (int64_t r = 0; r < c->count; r++)
            out[r] = SBR(chunk)(kind, 1, c, r, c->n);
    else if (c->n == SBP_CHUNK)
        for (int64_t r = 0; r < c->count; r++)
            out[r] = SBR(chunk)(kind, 0, c, r, SBP_CHUNK);
    else if (c->n < SBP_CHUNK)
        for (int64_t r = 0; r < c->count; r++)
            out[r] = SBR(chunk)(kind, 0, c, r, c->n);
    else
        for (int64_t r = 0; r < c->count; r++) {
            const SBR_T *a = (const SBR_T *)c->a + r * c->a_step, *m = c->m;
            const SBR_T *b = SBP_USES_B(kind) ? (const SBR_T *)c->b + r * c->b_step : a;
            out[r] = SBR(total)(kind, a, b, SBP_USES_M(kind) ? m[r * c->m_step] : 0, c->n);
        }
}

enum { SBR(AT_ONCE) = 4 }; /* rows that a lane of columns takes in at a time */

/* Rows i, i + 16, ... of some columns: those which one lane takes in, one after the other. */
SBR_INLINE void SBR(take_rows)(const int kind, const int rows, const sbp_chunks *c, int64_t i, SBR_T *lane,
                               const SBR_T *m) {
    const SBR_T *a[SBR(AT_ONCE)], *b[SBR(AT_ONCE)];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        const int64_t row = i + r * SBP_LANES;
        a[r] = (const SBR_T *)c->a + (c->offsets ? c->offsets[row] : row * c->a_step);
        b[r] = !SBP_USES_B(kind) ? a[r] : (const SBR_T *)c->b + (c->b_offsets ? c->b_offsets[row] : row * c->b_step);
    }
    int64_t j = 0;
    for (; j + SBR_WIDTH <= c->count; j += SBR_WIDTH) {
        SBR(vec) sum = SBR(vec_load)(lane + j);
        const SBR(vec) shift = SBP_USES_M(kind) ? SBR(vec_load)(m + j) : sum;
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            __builtin_prefetch(a[r] + c->a_step + j); /* each row is a stream, often in another page of memory */
            sum = SBR(step)(kind, sum, SBR(vec_load)(a[r] + j), SBR(vec_load)(b[r] + j), shift);
        }
        SBR(vec_store)(lane + j, sum);
    }
    if (j < c->count) {
        SBR(vec) sum = SBR(vec_load)(lane + j);
        const SBR(vec) shift = SBP_USES_M(kind) ? SBR(vec_load)(m + j) : sum;
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
            sum = SBR(step)(kind, sum, SBR(vec_part)(a[r] + j, c->count - j), SBR(vec_part)(b[r] + j, c->count - j),
                              shift);
        SBR(vec_store)(lane + j, sum);
    }
}

/* Columns: the lanes are rows of a small table. */
SBR_INLINE void SBR(columns_of)(const int kind, const sbp_chunks *c) {
    SBR_T lane[SBP_LANES][SBP_COLUMNS], m[SBP_COLUMNS];
    const int64_t width = (c->count + SBR_WIDTH - 1) / SBR_WIDTH * SBR_WIDTH;
    enum { GROUP = SBR(AT_ONCE) * SBP_LANES };
    for (int64_t j = 0; j < width; j++)
        m[j] = SBP_USES_M(kind) && j < c->count ? ((const SBR_T *)c->m)[j * c->m_step] : 0;
    for (int l = 0; l < SBP_LANES; l++)
        for (int64_t j = 0; j < width; j++)
            lane[l][j] = kind == SBP_PRODUCT;
    int64_t i = 0;
    for (; i + GROUP <= c->n; i += GROUP)
        for (int l = 0; l < SBP_LANES; l++)
            SBR(take_rows)(kind, SBR(AT_ONCE), c, i + l, lane[l], m);
    for (; i < c->n; i++)
        SBR(take_rows)(kind, 1, c, i, lane[i % SBP_LANES], m);
    for (int h = SBP_LANES / 2; h; h /= 2)
        for (int l = 0; l < h && l + h < c->n; l++) /* a lane that took nothing in would change nothing */
            for (int64_t j = 0; j < width; j++)
                lane[l][j] = SBR(join)(kind, lane[l][j], lane[l + h][j]);
    memcpy(c->out, lane[0], (size_t)c->count * sizeof(SBR_T));
}

#define SBR_EACH_KIND(function)                                                                                       \
    switch (c->kind) {                                                                                                \
    case SBP_SUM:                                                                                                     \
        function(SBP_SUM, c);                                                                                         \
        break;                                                                                                        \
    case SBP_SQUARES:                                                                                                 \
        function(SBP_SQUARES, c);                                                                                     \
        break;                                                                                                        \
    case SBP_PRODUCTS:                                                                                                \
        function(SBP_PRODUCTS, c);                                                                                    \
        break;                                                                                                        \
    case SBP_DEVIATIONS:                                                                                              \
        function(SBP_DEVIATIONS, c);                                                                                  \
        break;                                                                                                        \
    case SBP_CROSS:                                                                                                   \
        function(SBP_CROSS, c);                                                                                       \
        break;                                                                                                        \
    case SBP_MAGNITUDES:                                                                                              \
        function(SBP_MAGNITUDES, c);                                                                                  \
        break;                                                                                                        \
    default:                                                                                                          \
        function(SBP_PRODUCT, c);                                                                                     \
    }

static void SBR(chunk_rows)(const sbp_chunks *c) { SBR_EACH_KIND(SBR(rows_of)) }

static void SBR(chunk_columns)(const sbp_chunks *c) { SBR_EACH_KIND(SBR(columns_of)) }

static void SBR(chunk_tree)(int kind, void *values, int64_t n, int64_t width) {
    if (kind == SBP_PRODUCT)
        SBR(tree_of)(SBP_PRODUCT, values, n, width);
    else if (width == 1)
        SBR(tree_of)(SBP_SUM, values, n, 1);
    else
        SBR(tree_of)(SBP_SUM, values, n, width);
}

#undef SBR_TOTAL
#undef SBR_EACH_KIND
