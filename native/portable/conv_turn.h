/* Transposing, eight by eight (float64: four by four) where the instruction set can. */

#if (defined(SBP_IS_AVX2) || defined(SBP_IS_AVX512)) && !defined(SBP_CONV_TURN)
#define SBP_CONV_TURN
static inline void SBP(conv_square_f32)(const float *from, int64_t from_row, float *to, int64_t to_row) {
    __m256 a[8], b[8];
    for (int i = 0; i < 8; i++)
        a[i] = _mm256_loadu_ps(from + i * from_row);
    for (int i = 0; i < 8; i += 2) {
        b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
        a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
        a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
        a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(to + i * to_row, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * to_row, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
}

static inline void SBP(conv_square_f64)(const double *from, int64_t from_row, double *to, int64_t to_row) {
    __m256d a[4], b[4];
    for (int i = 0; i < 4; i++)
        a[i] = _mm256_loadu_pd(from + i * from_row);
    for (int i = 0; i < 4; i += 2) {
        b[i] = _mm256_unpacklo_pd(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_pd(a[i], a[i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        _mm256_storeu_pd(to + i * to_row, _mm256_permute2f128_pd(b[i], b[i + 2], 0x20));
        _mm256_storeu_pd(to + (i + 2) * to_row, _mm256_permute2f128_pd(b[i], b[i + 2], 0x31));
    }
}
#endif

/* to[column * to_row + row] = from[row * from_row + column]. Blocks may overlap: what is written twice is the same. */
static void CONV(turn)(const T *from, int64_t from_row, int64_t rows, int64_t columns, T *to, int64_t to_row) {
    int64_t done = 0;
#ifdef SBP_CONV_TURN
    const int64_t side = 32 / (int64_t)sizeof(T);
    if (rows >= side)
        for (; done + side <= columns; done += side)
            for (int64_t i = 0; i < rows; i += side) {
                const int64_t row = i + side <= rows ? i : rows - side;
                SQUARE(from + row * from_row + done, from_row, to + done * to_row + row, to_row);
            }
#endif
    for (int64_t j = done; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            to[j * to_row + i] = from[i * from_row + j];
}
