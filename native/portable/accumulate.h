/* Ordered accumulation. See "Accumulation" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_ACCUMULATE_H
#define SAMEBITS_PORTABLE_ACCUMULATE_H

#include <stdint.h>

enum { SBP_ADD, SBP_MULTIPLY, SBP_LARGEST, SBP_SMALLEST, SBP_SET };

/* out[n][index[n][m][c]][c] takes src[n][m][c], m ascending, for the given n and columns; strides in elements. Negative
 * indices count from the end (wrap = rows), or are left out (wrap = 0). */
typedef struct {
    void *out;
    const void *src;
    const int64_t *index;
    int64_t rows, columns, m, src_n, src_m, src_c, index_n, index_m, index_c, wrap, from, to;
} sbp_accumulate;

typedef struct {
    void (*f32[5])(const sbp_accumulate *a, int64_t n);
    void (*f64[5])(const sbp_accumulate *a, int64_t n);
} sbp_accumulate_table;

#endif
