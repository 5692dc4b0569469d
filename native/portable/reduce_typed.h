/* The kernels of reduce_kernel.h for one type, SBR_T. A chunk's 16 lanes are SBR_PIECES vectors of SBR_WIDTH. */

#define SBR_WIDTH ((int)(SBP_VECTOR / sizeof(SBR_T)))
#define SBR_PIECES (SBP_LANES / SBR_WIDTH)

typedef SBR_T SBR(vec) __attribute__((vector_size(SBP_VECTOR)));

SBR_INLINE SBR(vec) SBR(vec_load)(const SBR_T *p) {
    SBR(vec) v;
    memcpy(&v, p, sizeof v);
    return v;
}

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

SBR_INLINE SBR(vec) SBR(vec_abs)(SBR(vec) a) {
    for (int l = 0; l < SBR_WIDTH; l++)
        a[l] = SBR_ABS(a[l]);
    return a;
}

SBR_INLINE SBR(vec) SBR(step)(const int kind, SBR(vec) lane, SBR(vec) a, SBR(vec) b, SBR_T m) {
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

SBR_INLINE SBR_T SBR(step1)(const int kind, SBR_T lane, SBR_T a, SBR_T b, SBR_T m) {
    switch (kind) {
    case SBP_SUM:
        return lane + a;
    case SBP_SQUARES:
        return SBR_FMA(a, a, lane);
    case SBP_PRODUCTS:
        return SBR_FMA(a, b, lane);
    case SBP_DEVIATIONS:
        a = a - m;
        return SBR_FMA(a, a, lane);
    case SBP_CROSS:
        return SBR_FMA(b, a - m, lane);
    case SBP_MAGNITUDES:
        return lane + SBR_ABS(a);
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

/* The last `n` < 16 values of a chunk. A lane that has taken anything in is no -0: adding +0 to the others is nothing. */
SBR_INLINE void SBR(tail)(const int kind, SBR(vec) *lane, const SBR_T *a, const SBR_T *b, SBR_T m, int n) {
    const int shifted = SBP_USES_M(kind);
    SBR_T u[SBP_LANES], v[SBP_LANES];
    for (int l = 0; l < SBP_LANES; l++) {
        u[l] = kind == SBP_PRODUCT;
        v[l] = 0;
    }
    if (shifted)
        for (int l = 0; l < n; l++)
            u[l] = a[l] - m;
    else
        memcpy(u, a, (size_t)n * sizeof *u);
    if (SBP_USES_B(kind))
        memcpy(v, b, (size_t)n * sizeof *v);
    for (int p = 0; p < SBR_PIECES; p++) {
        const SBR(vec) x = SBR(vec_load)(u + p * SBR_WIDTH), y = SBR(vec_load)(v + p * SBR_WIDTH);
        lane[p] = kind == SBP_DEVIATIONS ? SBR(vec_fma)(x, x, lane[p])
                                         : SBR(step)(shifted ? SBP_PRODUCTS : kind, lane[p], x, y, 0);
    }
}

/* `several` chunks of n values side by side, so that their chains of adds overlap. */
SBR_INLINE void SBR(some_chunks)(const int kind, const int several, const SBR_T *const *a, const SBR_T *const *b,
                                 const SBR_T *m, int64_t n, SBR_T *out) {
    SBR(vec) lane[4][SBR_PIECES];
    const SBR_T start = kind == SBP_PRODUCT ? 1 : 0;
    for (int s = 0; s < several; s++)
        for (int p = 0; p < SBR_PIECES; p++)
            lane[s][p] = (SBR(vec)){0} + start;
    int64_t i = 0;
    for (; i + SBP_LANES <= n; i += SBP_LANES)
#pragma GCC unroll 4
        for (int s = 0; s < several; s++)
#pragma GCC unroll 8
            for (int p = 0; p < SBR_PIECES; p++) {
                const SBR(vec) va = SBR(vec_load)(a[s] + i + p * SBR_WIDTH);
                const SBR(vec) vb = SBP_USES_B(kind) ? SBR(vec_load)(b[s] + i + p * SBR_WIDTH) : va;
                lane[s][p] = SBR(step)(kind, lane[s][p], va, vb, m[s]);
            }
    for (int s = 0; s < several; s++) {
        if (i < n)
            SBR(tail)(kind, lane[s], a[s] + i, SBP_USES_B(kind) ? b[s] + i : NULL, m[s], (int)(n - i));
        out[s] = SBR(fold)(kind, lane[s]);
    }
}

SBR_INLINE void SBR(rows_at)(const int kind, const int several, const sbp_chunks *c, int64_t *row) {
    const SBR_T *a[4], *b[4];
    SBR_T m[4];
    int64_t r = *row;
    for (; r + several <= c->count; r += several) {
#pragma GCC unroll 4
        for (int s = 0; s < several; s++) {
            a[s] = (const SBR_T *)c->a + (r + s) * c->a_step;
            b[s] = SBP_USES_B(kind) ? (const SBR_T *)c->b + (r + s) * c->b_step : NULL;
            m[s] = SBP_USES_M(kind) ? ((const SBR_T *)c->m)[(r + s) * c->m_step] : 0;
        }
        SBR(some_chunks)(kind, several, a, b, m, c->n, (SBR_T *)c->out + r);
    }
    *row = r;
}

SBR_INLINE void SBR(rows_of)(const int kind, const sbp_chunks *c) {
    int64_t r = 0;
    SBR(rows_at)(kind, 4, c, &r);
    SBR(rows_at)(kind, 2, c, &r);
    SBR(rows_at)(kind, 1, c, &r);
}

/* `width` columns: the lanes are rows of a small table. */
SBR_INLINE void SBR(columns_of)(const int kind, const sbp_chunks *c, const int64_t width) {
    SBR_T lane[SBP_LANES][SBP_COLUMNS];
    const SBR_T *m = c->m;
    SBR_T *out = c->out;
    for (int l = 0; l < SBP_LANES; l++)
        for (int64_t j = 0; j < width; j++)
            lane[l][j] = kind == SBP_PRODUCT;
    for (int64_t i = 0; i < c->n; i++) {
        const SBR_T *a = (const SBR_T *)c->a + (c->offsets ? c->offsets[i] : i * c->a_step);
        const SBR_T *b = !SBP_USES_B(kind) ? a : (const SBR_T *)c->b + (c->b_offsets ? c->b_offsets[i] : i * c->b_step);
        SBR_T *row = lane[i % SBP_LANES];
        for (int64_t j = 0; j < width; j++)
            row[j] = SBR(step1)(kind, row[j], a[j], b[j], SBP_USES_M(kind) ? m[j * c->m_step] : 0);
    }
    for (int h = SBP_LANES / 2; h; h /= 2)
        for (int l = 0; l < h && l + h < c->n; l++) /* a lane that took nothing in would change nothing */
            for (int64_t j = 0; j < width; j++)
                lane[l][j] = SBR(join)(kind, lane[l][j], lane[l + h][j]);
    memcpy(out, lane[0], (size_t)width * sizeof(SBR_T));
}

SBR_INLINE void SBR(columns_wide)(const int kind, const sbp_chunks *c) {
    if (c->count == SBP_COLUMNS)
        SBR(columns_of)(kind, c, SBP_COLUMNS);
    else
        SBR(columns_of)(kind, c, c->count);
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

static void SBR(chunk_columns)(const sbp_chunks *c) { SBR_EACH_KIND(SBR(columns_wide)) }

SBR_INLINE void SBR(tree_of)(const int kind, SBR_T *values, int64_t n, int64_t width) {
    for (; n > 1; n = (n + 1) / 2) {
        for (int64_t i = 0; i < n / 2; i++)
            for (int64_t j = 0; j < width; j++)
                values[i * width + j] = SBR(join)(kind, values[2 * i * width + j], values[(2 * i + 1) * width + j]);
        if (n % 2)
            memmove(values + n / 2 * width, values + (n - 1) * width, (size_t)width * sizeof(SBR_T));
    }
}

static void SBR(chunk_tree)(int kind, void *values, int64_t n, int64_t width) {
    if (kind == SBP_PRODUCT)
        SBR(tree_of)(SBP_PRODUCT, values, n, width);
    else if (width == 1)
        SBR(tree_of)(SBP_SUM, values, n, 1);
    else
        SBR(tree_of)(SBP_SUM, values, n, width);
}

/* A reduction of n values next to each other. Every 16 chunks make a node; equal ones are joined as they come. */
SBR_INLINE SBR_T SBR(total)(const int kind, const SBR_T *a, const SBR_T *b, SBR_T m, int64_t n) {
    enum { NODE = 16 * SBP_CHUNK };
    SBR_T sums[16], nodes[48];
    int64_t depth = 0, made = 0;
    nodes[0] = kind == SBP_PRODUCT;
    for (int64_t from = 0; from < n; from += NODE) {
        const int64_t take = n - from < NODE ? n - from : NODE, full = take / SBP_CHUNK, rest = take % SBP_CHUNK;
        sbp_chunks c = {kind, a + from, b + from, &m, SBP_CHUNK, SBP_CHUNK, 0, full, SBP_CHUNK, NULL, NULL, sums};
        SBR(rows_of)(kind, &c);
        if (rest) {
            const SBR_T *last_a = a + from + full * SBP_CHUNK, *last_b = b + from + full * SBP_CHUNK;
            SBR(some_chunks)(kind, 1, &last_a, &last_b, &m, rest, sums + full);
        }
        SBR(tree_of)(kind, sums, full + (rest > 0), 1);
        nodes[depth++] = sums[0];
        for (int64_t i = made++; i & 1; i >>= 1, depth--)
            nodes[depth - 2] = SBR(join)(kind, nodes[depth - 2], nodes[depth - 1]);
    }
    for (; depth > 1; depth--)
        nodes[depth - 2] = SBR(join)(kind, nodes[depth - 2], nodes[depth - 1]);
    return nodes[0];
}

#undef SBR_EACH_KIND
#undef SBR_PIECES
#undef SBR_WIDTH
