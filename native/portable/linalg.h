/* Factors of matrices and triangular systems. See "QR" and "Linear algebra" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_LINALG_H
#define SAMEBITS_PORTABLE_LINALG_H

#include <stdint.h>

/* `step`: elements from one value, or one row, to the next. Numbers of type double hold one of the type exactly. */
typedef struct {
    /* Subtracts (v tau) w from m rows of n values. */
    void (*reflect)(void *rows, int64_t step, int64_t m, int64_t n, const void *v, double tau, const void *w);
    /* Makes the reflection of a column of m values, whose values but the first are in v too, with their sum of squares;
     * writes v, and beta and zeros into the column. Returns tau. */
    double (*reflection)(void *column, int64_t step, int64_t m, double squares, void *v);
    void (*subtract)(void *x, int64_t step, int64_t n, const void *sums);
    void (*divide)(void *x, int64_t step, int64_t n, double by);
    int64_t (*pivot)(const void *x, int64_t step, int64_t n);
} sbp_linalg_kernels;

typedef struct {
    sbp_linalg_kernels f32, f64;
} sbp_linalg_table;

#endif
