/* Matrix products. See "Contractions" in docs/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_GEMM_H
#define SAMEBITS_PORTABLE_GEMM_H

#include <stdint.h>

#define SBP_K_BLOCK 128

/* c[i][j] = sum over k of a[i][k] b[k][j]; strides in elements. The columns of c are next to each other. */
typedef struct {
    const void *a, *b;
    void *c;
    int64_t m, n, k, a_row, a_column, b_row, b_column, c_row;
} sbp_gemm;

typedef struct {
    void (*f32)(const sbp_gemm *g);
    void (*f64)(const sbp_gemm *g);
} sbp_gemm_table;

#endif
