/* Transposes for the gather: squares of 16 bytes a side in vector registers, the rest element by element.
 * Vectors are those of the compiler (SSE2 and NEON are part of every machine that has them here).
 */
#ifndef SAMEBITS_DIGEST_TRANSPOSE_H
#define SAMEBITS_DIGEST_TRANSPOSE_H

#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define SB_ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define SB_ALWAYS_INLINE static inline
#endif

/* The arguments of a transpose: out[r][c] = src[r + c * step] for rows x cols elements; step in bytes. */
typedef struct {
    const unsigned char *src;
    int64_t rows, cols, step;
} sb_columns;

/* Rows r0 .. r1 - 1, columns c0 .. c1 - 1, element by element. `width` is a constant at each call. */
SB_ALWAYS_INLINE void sb_transpose_plain(const sb_columns *t, int64_t r0, int64_t r1, int64_t c0, int64_t c1,
                                         unsigned char *out, size_t width) {
    for (int64_t c = c0; c < c1; c++)
        for (int64_t r = r0; r < r1; r++)
            memcpy(out + (int64_t)width * (t->cols * r + c), t->src + (int64_t)width * r + t->step * c, width);
}

#if defined(__GNUC__)

#if defined(__clang__)
#define SB_LOW_1(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define SB_HIGH_1(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define SB_LOW_2(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define SB_HIGH_2(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define SB_LOW_4(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define SB_HIGH_4(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define SB_LOW_8(a, b) __builtin_shufflevector(a, b, 0, 2)
#define SB_HIGH_8(a, b) __builtin_shufflevector(a, b, 1, 3)
#else
#define SB_LOW_1(a, b) __builtin_shuffle(a, b, (sb_v1){0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23})
#define SB_HIGH_1(a, b) __builtin_shuffle(a, b, (sb_v1){8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31})
#define SB_LOW_2(a, b) __builtin_shuffle(a, b, (sb_v2){0, 8, 1, 9, 2, 10, 3, 11})
#define SB_HIGH_2(a, b) __builtin_shuffle(a, b, (sb_v2){4, 12, 5, 13, 6, 14, 7, 15})
#define SB_LOW_4(a, b) __builtin_shuffle(a, b, (sb_v4){0, 4, 1, 5})
#define SB_HIGH_4(a, b) __builtin_shuffle(a, b, (sb_v4){2, 6, 3, 7})
#define SB_LOW_8(a, b) __builtin_shuffle(a, b, (sb_v8){0, 2})
#define SB_HIGH_8(a, b) __builtin_shuffle(a, b, (sb_v8){1, 3})
#endif

typedef uint8_t sb_v1 __attribute__((vector_size(16)));
typedef uint16_t sb_v2 __attribute__((vector_size(16)));
typedef uint32_t sb_v4 __attribute__((vector_size(16)));
typedef uint64_t sb_v8 __attribute__((vector_size(16)));

/* A square of `side` vectors: interleaving the first half with the second log2(side) times transposes it. */
#define SB_DEFINE_SQUARE(width, side)                                                                                  \
    SB_ALWAYS_INLINE void sb_square_##width(const unsigned char *src, int64_t step, unsigned char *out, int64_t pitch) \
    {                                                                                                                  \
        sb_v##width a[side], b[side];                                                                                  \
        for (int i = 0; i < side; i++)                                                                                 \
            memcpy(&a[i], src + step * i, 16);                                                                         \
        for (int round = 1; round < side; round *= 2) {                                                                \
            for (int i = 0; i < side / 2; i++) {                                                                       \
                b[2 * i] = SB_LOW_##width(a[i], a[i + side / 2]);                                                      \
                b[2 * i + 1] = SB_HIGH_##width(a[i], a[i + side / 2]);                                                 \
            }                                                                                                          \
            for (int i = 0; i < side; i++)                                                                             \
                a[i] = b[i];                                                                                           \
        }                                                                                                              \
        for (int i = 0; i < side; i++)                                                                                 \
            memcpy(out + pitch * i, &a[i], 16);                                                                        \
    }

SB_DEFINE_SQUARE(1, 16)
SB_DEFINE_SQUARE(2, 8)
SB_DEFINE_SQUARE(4, 4)
SB_DEFINE_SQUARE(8, 2)

SB_ALWAYS_INLINE void sb_square(const unsigned char *src, int64_t step, unsigned char *out, int64_t pitch,
                                size_t width) {
    switch (width) {
    case 1: sb_square_1(src, step, out, pitch); break;
    case 2: sb_square_2(src, step, out, pitch); break;
    case 4: sb_square_4(src, step, out, pitch); break;
    default: sb_square_8(src, step, out, pitch); break;
    }
}

#endif

/* All of it: a cache line of each column at a time, squares within it. */
SB_ALWAYS_INLINE void sb_transpose(const sb_columns *t, unsigned char *out, size_t width) {
    const int64_t w = (int64_t)width;
#if defined(__GNUC__)
    const int64_t side = 16 / w, line = 64 / w;
    const int64_t rows = side > 1 ? t->rows - t->rows % side : 0, cols = t->cols - t->cols % side;
    for (int64_t top = 0; top < rows; top += line)
        for (int64_t c = 0; c < cols; c += side)
            for (int64_t r = top; r < top + line && r < rows; r += side)
                sb_square(t->src + w * r + t->step * c, t->step, out + w * (t->cols * r + c), w * t->cols, width);
    sb_transpose_plain(t, 0, rows, cols, t->cols, out, width);
    sb_transpose_plain(t, rows, t->rows, 0, t->cols, out, width);
#else
    sb_transpose_plain(t, 0, t->rows, 0, t->cols, out, width);
#endif
}

#endif
